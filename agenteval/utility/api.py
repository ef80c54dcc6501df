"""Criteria and scores: `propose`, `quantify`, `perturb`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

from agenteval.analysis.flagged import flags_of
from agenteval.analysis.means import load_ratings
from agenteval.analysis.stopping import Until
from agenteval.cli.options import read_options
from agenteval.cli.running import (
    Notify,
    Stopped,
    Watch,
    at_once,
    opened,
    planned,
    synchronous,
    why_stopped,
)
from agenteval.engine import (
    CostEstimate,
    ExperimentResult,
    RequestBounds,
    RequestCounter,
    answered,
    first_requests,
)
from agenteval.engine.dry_run import LOCAL
from agenteval.errors import InputError, ModelError
from agenteval.files import write_atomically
from agenteval.models.asking import MOST_REQUESTS
from agenteval.models.factory import ModelChoice, choose_model, make_client, notes_on
from agenteval.models.limits import Limits
from agenteval.readers import make_view
from agenteval.readers.tasks import recording_of
from agenteval.records import Task
from agenteval.records.base import content_hash
from agenteval.records.score import INFRASTRUCTURE
from agenteval.records.table import column, table_of
from agenteval.reporting.report import Report
from agenteval.stats.scores import ORIGINAL
from agenteval.store import Store, default_path, is_there
from agenteval.text import plural
from agenteval.utility.bank import longest_entries, task_kinds
from agenteval.utility.combined import PeopleLabels
from agenteval.utility.consolidate import most_questions
from agenteval.utility.criteria_file import criteria_named, save_criteria
from agenteval.utility.critic import Critic
from agenteval.utility.critic_reply import MOST
from agenteval.utility.embedded import load_kinds
from agenteval.utility.escalation import read_escalation
from agenteval.utility.evaluator import JudgeEvaluator
from agenteval.utility.judging import (
    Criteria,
    Judging,
    JudgingStopped,
    Runs,
    read_run_list,
    read_task,
    warn_of_versions,
)
from agenteval.utility.options import (
    Escalation,
    JudgeKeywords,
    JudgeOptions,
    ProposeKeywords,
    ProposeOptions,
)
from agenteval.utility.panels import read_judges
from agenteval.utility.perturbed_runs import DEFAULT_OPERATORS, make_copies
from agenteval.utility.proposals import (
    Proposals,
    choose_embedder,
    propose_by_chat,
    propose_from_bank,
    refuse_unrecorded,
)
from agenteval.utility.reports import CriteriaReport, ScoreReport, criteria_report, score_report
from agenteval.utility.stopping import judge_until

if TYPE_CHECKING:
    from agenteval.models.client import Client

_ONE_LOOK = "the intervals in the other tables are valid for a single look only"

# -- propose ---------------------------------------------------------------------------------------


async def apropose(task: str | Path | Task, **options: Unpack[ProposeKeywords]) -> CriteriaReport:
    """Let critics propose criteria for a task, merge duplicates, and check the scales.

    `seeds` critics are asked, each with its own seed, starting at `seed`. Criteria proposed by at
    least `min_seeds` of them are kept, and written to `output` if given. Two criteria are merged
    from a cosine similarity of `tau` (1: only equal names). `kinds` selects criteria from the bank
    (default: guessed). With `consolidate` a chat model is asked which names are equivalent. Replies
    are kept in the store; `retry_failed` asks again when a stored reply is unreadable. With
    `dry_run` nothing is sent or stored, and the report's `estimate` has the planned requests.

    Returns a report with the criteria and their problems; failed seeds are listed in its notes.
    Raises ModelError when no criterion is left, ModelUnavailable when optional packages are
    missing, InputError for invalid input, and Unauthorized when a key is refused.
    """
    how = read_options(ProposeOptions, options, apropose)
    folder = read_task(task)
    watch = Watch(how.notify)
    choice = choose_model(how.model, how.base_url, need_key=not how.dry_run)
    if choice.provider == "recorded":
        choice = replace(choice, path=recording_of(str(folder.path), "critic"))
    how = replace(how, examples=bool(folder.task.examples) and how.examples)
    if how.dry_run:
        estimate = await _critics_estimate(choice, folder.task, how)
        return CriteriaReport(title="criteria", tables=(), proposals=None, estimate=estimate)
    if choice.provider == "recorded":
        refuse_unrecorded(choice, how, folder.task)
        watch.note(
            "critics: replies of a capable large language model, written offline and recorded in "
            f"{choice.path}"
        )
    if choice.kind == "embedded":
        with at_once():
            proposals = propose_from_bank(choice, how, folder.task)
        _note_bank(proposals, folder.task.name, watch, guessed=not how.kinds)
    else:
        proposals = await _ask_critics(choice, folder.task, how, watch)
    if not proposals.criteria.criteria:
        raise _nothing_readable(proposals, how.min_seeds, watch)
    written = None if how.output is None else Path(how.output)
    if written is not None:
        save_criteria(written, proposals.criteria)
    return criteria_report(proposals, written, watch.notes)


propose = synchronous(apropose)


async def _ask_critics(
    choice: ModelChoice, task: Task, how: ProposeOptions, watch: Watch
) -> Proposals:
    """Return the proposals of a chat model.

    When cancelled, no more requests are sent, and the replies to running ones are stored before
    CancelledError is raised.
    """
    embedder = choose_embedder(choice, how)
    if embedder is None and how.tau is None:
        watch.note(
            "no embedder is installed (agenteval[local]): only equal names are merged"
            + (", and names that the critic calls one idea" if how.consolidate else "")
        )
    with opened(how.store) as store:
        client = make_client(choice, how.limits or Limits(), store)
        try:
            pending = propose_by_chat(client, how, task, embedder, choice.name)
            return await answered(pending, client, watch.waiting)
        finally:
            await client.close()


async def _critics_estimate(choice: ModelChoice, task: Task, how: ProposeOptions) -> CostEstimate:
    """Return the requests of `propose`. Raises InputError for a cap without a price."""
    limits = how.limits or Limits()
    mode = "solution-based" if how.examples else "task-based"
    about = (f"task: {task.name}, {mode}; seeds: {how.seeds}",)
    total = CostEstimate(command="criteria", about=about, budget=limits.budget())
    if choice.kind == "embedded":
        line = f"the embedded critic retrieves from the bank; {LOCAL}"
        return replace(total, about=(*about, line))
    counter = RequestCounter()
    with planned(how.store) as store:
        client = make_client(choice, limits, store)
        critic = Critic(
            client,
            task,
            use_examples=how.examples,
            temperature=how.temperature,
            # which entries are shown is known only when the bank is ranked
            bank=longest_entries() if how.bank else (),
            sub_criteria=how.sub_criteria,
            retry_failed=how.retry_failed,
        )
        # a question for the criteria, one to divide them, one for the order of levels
        most = MOST_REQUESTS * (1 + how.sub_criteria + how.retry_failed) + 1
        stored = isinstance(how.store, Store) or is_there(how.store or default_path())
        least = int(not (how.bank and stored))
        for seed in how.all_seeds:
            if first := await first_requests(critic.propose(seed)):
                counter.count({"critic": RequestBounds(least, most)}, first)
    if how.asks_the_same:
        questions = most_questions(how.seeds * MOST)
        same = {"critic, about equal names": RequestBounds(0, MOST_REQUESTS * questions)}
        counter.count(same)
    notes = notes_on(choice)
    if (how.embedder or "").startswith("endpoint:"):
        notes += ("requests for embeddings are neither counted nor capped",)
    return replace(total, lines=tuple(counter.lines.values()), notes=notes)


def _nothing_readable(proposals: Proposals, min_seeds: int, watch: Watch) -> ModelError:
    """Return the error for no criteria; warn of each reason why seeds failed."""
    by_reason: dict[str, list[str]] = {}
    for failure in proposals.failures:
        reason = f"{failure.status}: {failure.message}"
        by_reason.setdefault(reason, []).append(str(failure.seed))
    for reason, failed in by_reason.items():
        watch.warn(f"{'seeds' if failed[1:] else 'seed'} {', '.join(failed)}: {reason}")
    if proposals.proposed:
        return ModelError(
            f"none of {proposals.proposed} proposals came from at least {min_seeds} seeds; no "
            "criteria were written"
        )
    return ModelError("no seed returned a readable criterion; no criteria were written")


def _note_bank(proposals: Proposals, task: str, watch: Watch, *, guessed: bool) -> None:
    """Note the kinds of task that the embedded critic used, and which criteria can be judged."""
    left_out = ", ".join(kind for kind in task_kinds() if kind not in proposals.kinds)
    how = "guessed; override it with --kind; " if guessed else ""
    if proposals.kinds:
        watch.note(f"kind of task: {', '.join(proposals.kinds)} ({how}left out: {left_out})")
    else:
        watch.note(
            "kind of task: no kind in the bank is similar, so only general criteria are used; "
            f"choose one with --kind: {', '.join(task_kinds())}"
        )
    rated = [c.name for c in proposals.criteria.criteria if c.provenance.concept in load_kinds()]
    watch.note(
        f"of these, the embedded judge can rate {', '.join(rated) or 'none'}; the others need a "
        "model or a function as a judge"
    )
    if reviewed := criteria_named(f"{task}.reviewed.json"):
        watch.note(f"this task has a reviewed set of criteria: --criteria {reviewed}")


# -- quantify --------------------------------------------------------------------------------------


async def aquantify(
    runs: Runs,
    criteria: Criteria | None = None,
    *,
    max_unscored: float = 0.1,
    score_failed_runs: str | None = None,
    until: str | float | Until | None = None,
    labels: PeopleLabels | None = None,
    escalation: Escalation | None = None,
    **options: Unpack[JudgeKeywords],
) -> ScoreReport:
    """Score every run on every criterion. Results already in the store are not requested again.

    `runs` is a path (file, folder, pattern) or Run records. `criteria` is a file, a CriteriaSet or
    Criterion records (None: the file that belongs to the task). `judge` is the name of a model
    ("openai:gpt-4o-mini", "embedded", ...), a function or a scorer of another framework (see
    `FunctionJudge`, which may need a `version`), or "python:MODULE:NAME" (None: AGENTEVAL_MODEL,
    else the embedded judge). `mapping` assigns columns of a table to fields (`{"output":
    "bot_reply"}`; None: the map of the task). `task` is required if neither runs nor their folder
    name it and the judge is a model. `with_reference` shows the judge the reference answers. With
    `probabilities` the value comes from the log-probabilities of a chat model's one-letter answer
    (docs/verify.md); "decisions:NAME" is a model that returns probabilities itself.
    `agenteval.utility.options.JudgeOptions` lists all keywords.

    Runs whose system failed are counted but not judged. With `score_failed_runs="worst"` they get
    the worst level of every ordered criterion.

    With `until`, cases are judged in random order (by `seed`), and only as many as needed: until no
    always-valid interval of a mean is wider than this number, or, with "decided", until it is
    settled which of two systems is better; see `agenteval.analysis.stopping.Until`. The notes say
    where it stopped.

    Returns a report. Its `exit_code` is 3 when the budget or an outage ended it early (see
    `unfinished`) or when more than the share `max_unscored` of the results is missing. With
    `dry_run` nothing is sent or stored, and `estimate` has the planned requests. Raises InputError
    for invalid input, StoreError, and Unauthorized when a key is refused.
    """
    rule = until if isinstance(until, Until) or until is None else Until.of(str(until))
    how = read_options(JudgeOptions, options, aquantify)
    watch = Watch(how.notify, how.progress)
    failed = {"score_failed_runs": score_failed_runs}
    judging: Judging
    if escalation is None:
        judging = read_judges(runs, criteria, how, watch, labels=labels, **failed)
    else:
        judging = read_escalation(runs, criteria, how, watch, escalation, labels, **failed)
        if rule is not None:
            raise InputError("cannot be combined with --until", "--escalate")
    if how.dry_run:
        judge, _ = judging.evaluator(None)
        return ScoreReport(
            title="quantify",
            tables=(),
            source=judge.source,
            criteria=judging.criteria,
            ratings=(),
            cells=0,
            store=Path(),
            estimate=await quantify_estimate(judging),
        )
    if rule is not None:
        rule.check(sorted({run.system for run, _ in judging.items}))
    judging.refuse_unrecorded([(ORIGINAL, judging.items)])
    judging.say_judge()
    with opened(how.store) as store, judging.executor:
        warn_of_versions(store, judging.items, judging.watch)
        judge, client = judging.evaluator(store)
        before = client.usage.requests if client else 0
        rated = JudgeEvaluator.of(judge, judging.items, judging.criteria, judging.repeats)
        result = look = None
        try:
            if (prepared := await judging.prepared(store)) is not judging:
                judging, (judge, client) = prepared, prepared.evaluator(store)
                rated = replace(rated, judge=judge)
            if rule is None:
                result = await judging.run(rated, client, store)
            else:
                judged = await judge_until(judging, judge, client, store, rule)
                rated, result, look = judged.rated, judged.result, judged.look
        except JudgingStopped as early:  # before the labels could decide anything
            result = early.ended
        except asyncio.CancelledError:
            raise Stopped(_scored(judging, rated, None, store, client, before)) from None
        report = _scored(judging, rated, result, store, client, before)
    if look is not None:
        table = replace(look.table, notes=(look.reason, _ONE_LOOK))
        report = replace(report, tables=(*report.tables, table))
    return report.gate(max_unscored=max_unscored)


quantify = synchronous(aquantify)


async def quantify_estimate(judging: Judging) -> CostEstimate:
    """Return the requests of `quantify`. Raises InputError for a cap without a price."""
    runs, criteria = len(judging.items), judging.criteria
    rubrics = sum(run.rubric is not None for run, _ in judging.items)
    cells = (runs * len(criteria) + rubrics) * judging.repeats
    listed = f"criteria: {len(criteria)} ({', '.join(c.name for c in criteria)})"
    judged = f"{plural(runs, 'run')} × {plural(len(criteria), 'criterion')}"
    if rubrics and not criteria:
        listed, judged = f"rubrics: of {plural(rubrics, 'run')}", plural(rubrics, "rubric")
    elif rubrics:
        listed, judged = f"{listed}, and {plural(rubrics, 'rubric')}", f"({judged} + {rubrics})"
    about = (
        f"runs: {runs} of task {judging.task.name}",
        f"reference answers: {'shown to the judge' if judging.how.with_reference else 'withheld'}",
        listed,
        f"cells: {judged} × {plural(judging.repeats, 'repeat')} = {cells:,}",
    )
    total = CostEstimate(command="quantify", about=about, budget=judging.limits.budget())
    if judging.sends_nothing:
        answered = runs - sum(map(len, judging.no_answer.values()))
        calls = f"calls: {answered * judging.repeats} at most; {judging.local_cost}"
        return replace(total, about=(*about, calls))
    with planned(judging.how.store) as store:
        judge, client = judging.evaluator(store)
        rated = JudgeEvaluator.of(judge, judging.items, criteria, judging.repeats)
        return await judging.estimate(total, rated, client, store)


def _scored(
    judging: Judging,
    rated: JudgeEvaluator,
    result: ExperimentResult | None,
    store: Store,
    client: Client | None,
    before: int,
) -> ScoreReport:
    """Return the report; `result` is None after an interrupt. The client had sent `before`
    requests when this command began."""
    with store.snapshot():
        ratings = load_ratings(
            store,
            rated.source_key,
            run_keys=[view.sha256 for _, view in rated.items],
            criterion_keys=[c.sha256 for c in rated.criteria],
            repeats=rated.repeats,
        )
        usage = store.usage(rated.source_key)
    unfinished, code = "", 0
    if result is None:
        unfinished, code = "interrupted", 130
    elif result.stopped:
        unfinished, code = why_stopped(result, "calls not made"), 3
    if unfinished:
        judged = sum(r.status not in INFRASTRUCTURE for r in ratings)
        far = f"not complete: {judged} of {rated.cells} cells are judged"
        unfinished = f"{far}; {unfinished}; run the same command to continue"
    report = score_report(
        rated.source,
        rated.criteria,
        ratings,
        usage,
        store.address,
        flags_of(rated.items),
        cells=rated.cells,
        notes=judging.watch.notes,
        unfinished=(unfinished,) if unfinished else (),
        exit_code=code,
        now=client.usage.requests - before if client else None,
    )
    tables = judging.tables(store, rated) if ratings else ()
    return replace(report, tables=(*report.tables, *tables))


# -- perturb ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _CopiesRow:
    variant: str = column("perturbation")
    copies: int = column("copies", "count")
    unchanged: int = column("equal their original", "count")


@dataclass(frozen=True, kw_only=True)
class PerturbReport(Report):
    """Texts of runs and of perturbed copies, to be rated by any judge: a row for each, with run,
    variant, system, case, success, problem and text."""

    texts: tuple[dict[str, Any], ...]

    def records(self) -> list[dict[str, Any]]:
        """Return the rows."""
        return [dict(row) for row in self.texts]

    def write(self, path: str | Path) -> Path:
        """Write the rows as JSON lines; `verify(scores=...)` reads them with ratings added."""
        lines = (json.dumps(row, ensure_ascii=False) + "\n" for row in self.texts)
        write_atomically(Path(path), "".join(lines))
        return Path(path)


def perturb(
    runs: Runs,
    perturbations: Sequence[str] = DEFAULT_OPERATORS,
    *,
    share: float = 0.25,
    seed: int = 0,
    limit: int | None = None,
    mapping: Mapping[str, str] | None = None,
    notify: Notify | None = None,
) -> PerturbReport:
    """Return the text of every run and of perturbed copies. The same seed gives the same copies.

    Raises InputError for runs that cannot be read and for an unknown perturbation.
    """
    watch = Watch(notify)
    all_runs = read_run_list(runs, "", watch, mapping)[:limit]
    items = tuple((run, make_view(run)) for run in all_runs if run.failure is None)
    if len(items) < len(all_runs):
        watch.warn(f"left out: {plural(len(all_runs) - len(items), 'run')} without an answer")
    copies = make_copies(items, perturbations, share=share, seed=seed, watch=watch)
    rows = tuple(
        {"run": run.id, "variant": variant, "system": run.system}
        | {"case": content_hash(run.input or ["run", run.id]), "success": run.success}
        | {"problem": view.problem, "text": view.trajectory}
        for variant, texts in ((ORIGINAL, items), *((c.variant, c.items) for c in copies))
        for run, view in texts
    )
    counts = [_CopiesRow(c.variant, len(c.items), len(c.unchanged)) for c in copies]
    return PerturbReport(
        title=f"{len(items)} originals and {len(rows) - len(items)} copies",
        tables=(table_of(_CopiesRow, "copies", "", counts),),
        notes=tuple(watch.notes),
        texts=rows,
    )
