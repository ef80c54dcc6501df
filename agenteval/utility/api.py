"""Criteria and scores: `propose`, `quantify`, `perturb`."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Unpack

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
    Estimate,
    ExperimentResult,
    RequestBounds,
    RequestCounter,
    answered,
    first_requests,
)
from agenteval.engine.dry_run import LOCAL
from agenteval.errors import ModelError
from agenteval.files import write_atomically
from agenteval.models.asking import MOST_REQUESTS
from agenteval.models.client import Client
from agenteval.models.factory import ModelChoice, choose_model, make_client, notes_on
from agenteval.models.limits import Limits
from agenteval.readers import make_view
from agenteval.readers.tasks import recording_of
from agenteval.records import Task
from agenteval.records.base import content_hash
from agenteval.records.score import INFRASTRUCTURE
from agenteval.records.table import Cell, Column, Table
from agenteval.reporting.report import Report
from agenteval.stats.scores import ORIGINAL
from agenteval.store import Store, default_path, is_there
from agenteval.text import plural
from agenteval.utility.bank import longest_entries, task_kinds
from agenteval.utility.consolidate import most_questions
from agenteval.utility.criteria_file import criteria_named, save_criteria
from agenteval.utility.critic import Critic
from agenteval.utility.critic_reply import MOST
from agenteval.utility.embedded import load_kinds
from agenteval.utility.evaluator import JudgeEvaluator
from agenteval.utility.judging import (
    Criteria,
    Judging,
    Runs,
    read_judging,
    read_run_list,
    read_task,
    warn_of_versions,
    warn_unchanged,
)
from agenteval.utility.options import JudgeKeywords, JudgeOptions, ProposeKeywords, ProposeOptions
from agenteval.utility.perturbed_runs import (
    DEFAULT_OPERATORS,
    make_copies,
)
from agenteval.utility.proposals import (
    CriticOptions,
    Proposals,
    choose_embedder,
    propose_by_chat,
    propose_from_bank,
    refuse_unrecorded,
)
from agenteval.utility.reports import (
    CriteriaReport,
    ScoreReport,
    criteria_report,
    score_report,
)
from agenteval.utility.stopping import judge_until

StorePath = str | Path | Store | None

# -- propose ---------------------------------------------------------------------------------------


async def apropose(task: str | Path | Task, **options: Unpack[ProposeKeywords]) -> CriteriaReport:
    """Have critics propose criteria for a task, merge what means the same, check the scales.

    `seeds` critics are asked, each with its own seed from `seed` on; what at least `min_seeds` of
    them proposed is kept, and written to `output` where one is named. Two criteria merge from
    cosine `tau` on (1: only equal names); what comes from the bank is of the task's `kinds` (none:
    guessed). With `consolidate` a chat model is asked which names are the same. Replies are kept in
    the store; `retry_failed` asks again where a stored one cannot be read. With `dry_run` nothing
    is sent or stored, and the report's `estimate` says what would be asked.

    Raises ModelError when no criterion is left, ModelUnavailable when local parts are missing,
    InputError for what cannot be used, Unauthorized when a key is refused. A seed that fails is
    among the notes.
    """
    how = read_options(ProposeOptions, options, apropose)
    limits = how.limits or Limits()
    folder = read_task(task)
    watch = Watch(how.notify)
    choice = choose_model(how.model, how.base_url, need_key=not how.dry_run)
    if choice.provider == "recorded":
        choice = replace(choice, path=recording_of(str(folder.path), "critic"))
    critics = CriticOptions(
        seeds=tuple(range(how.seed, how.seed + how.seeds)),
        tau=how.tau,
        embedder=how.embedder,
        base_url=how.base_url,
        use_examples=bool(folder.task.examples) and how.examples,
        sub_criteria=how.sub_criteria,
        bank=how.bank,
        min_seeds=how.min_seeds,
        temperature=how.temperature,
        consolidate=how.consolidate,
        kinds=tuple(how.kinds),
        retry_failed=how.retry_failed,
    )
    if how.dry_run:
        estimate = await _critics_estimate(choice, critics, folder.task, limits, how.store)
        return CriteriaReport(title="criteria", tables=(), proposals=None, estimate=estimate)
    if choice.provider == "recorded":
        refuse_unrecorded(choice, critics, folder.task)
        watch.note(
            "critics: replies of a capable large language model, written offline and recorded in "
            f"{choice.path}"
        )
    if choice.kind == "embedded":
        with at_once():
            proposals = propose_from_bank(choice, critics, folder.task)
    else:
        proposals = await ask_critics(choice, critics, folder.task, limits, how.store, watch)
    if choice.kind == "embedded":
        _say_bank(proposals, folder.task.name, watch, guessed=not how.kinds)
    if not proposals.criteria.criteria:
        raise _nothing_readable(proposals, how.min_seeds, watch)
    written = None if how.output is None else Path(how.output)
    if written is not None:
        save_criteria(written, proposals.criteria)
    return criteria_report(proposals, written, watch.notes)


async def _critics_estimate(
    choice: ModelChoice, options: CriticOptions, task: Task, limits: Limits, path: StorePath
) -> Estimate:
    """What `propose` would ask. Raises InputError for a cap without a price."""
    mode = "solution-based" if options.use_examples else "task-based"
    about = (f"task: {task.name}, {mode}; seeds: {len(options.seeds)}",)
    total = Estimate(command="criteria", about=about, budget=limits.budget())
    if choice.kind == "embedded":
        how = f"the embedded critic retrieves from the bank; {LOCAL}"
        return replace(total, about=(*about, how))
    counter = RequestCounter()
    with planned(path) as store:
        client = make_client(choice, limits, store)
        critic = Critic(
            client,
            task,
            use_examples=options.use_examples,
            temperature=options.temperature,
            # which entries are shown is known only when the bank is ranked
            bank=longest_entries() if options.bank else (),
            sub_criteria=options.sub_criteria,
            retry_failed=options.retry_failed,
        )
        # a question for the criteria, one to divide them, one for the order of levels
        most = MOST_REQUESTS * (1 + options.sub_criteria + options.retry_failed) + 1
        least = int(
            not options.bank or not (isinstance(path, Store) or is_there(path or default_path()))
        )
        for seed in options.seeds:
            if first := await first_requests(critic.propose(seed)):
                counter.count({"critic": RequestBounds(least, most)}, first)
    if options.asks_the_same:
        questions = most_questions(len(options.seeds) * MOST)
        same = {"critic, about equal names": RequestBounds(0, MOST_REQUESTS * questions)}
        counter.count(same)
    notes = notes_on(choice)
    if (options.embedder or "").startswith("endpoint:"):
        notes += ("requests for embeddings are not counted; no cap holds for them",)
    return replace(total, lines=tuple(counter.lines.values()), notes=notes)


def _nothing_readable(proposals: Proposals, min_seeds: int, watch: Watch) -> ModelError:
    """The error where no criterion is left, after a line for each reason why seeds failed."""
    by_reason: dict[str, list[str]] = {}
    for failure in proposals.failures:
        reason = f"{failure.status}: {failure.message}"
        by_reason.setdefault(reason, []).append(str(failure.seed))
    for reason, failed in by_reason.items():
        watch.warn(f"{'seeds' if failed[1:] else 'seed'} {', '.join(failed)}: {reason}")
    if proposals.proposed:
        return ModelError(
            f"none of {proposals.proposed} proposals came from {min_seeds} seeds or more; "
            "no criteria were written"
        )
    return ModelError("no seed gave a readable criterion; no criteria were written")


def _say_bank(proposals: Proposals, task: str, watch: Watch, *, guessed: bool) -> None:
    """What the proposals of the embedded critic are of, and what can be done with them."""
    left_out = ", ".join(kind for kind in task_kinds() if kind not in proposals.kinds)
    how = "guessed; --kind says otherwise; " if guessed else ""
    if proposals.kinds:
        watch.note(f"kind of task: {', '.join(proposals.kinds)} ({how}left out: {left_out})")
    else:
        watch.note(
            "kind of task: none that the bank knows is near, so general criteria alone; --kind "
            f"takes {', '.join(task_kinds())}"
        )
    rated = [c.name for c in proposals.criteria.criteria if c.provenance.concept in load_kinds()]
    watch.note(
        f"of these the embedded judge rates {', '.join(rated) or 'none'}; the others need a model "
        "or a function as a judge"
    )
    if reviewed := criteria_named(f"{task}.reviewed.json"):
        watch.note(f"for this task there is a set that people reviewed: --criteria {reviewed}")


async def ask_critics(
    choice: ModelChoice,
    options: CriticOptions,
    task: Task,
    limits: Limits,
    store: str | Path | Store | None,
    watch: Watch,
) -> Proposals:
    """What a chat model proposes. When it is cancelled, nothing more is asked, and the replies
    under way are kept before CancelledError is raised."""
    embedder = choose_embedder(choice, options)
    if embedder is None and options.tau is None:
        watch.note(
            "no embedder is installed (agenteval[local]): equal names merge"
            + (", and what the critic calls one idea" if options.consolidate else "")
        )
    with opened(store) as kept:
        client = make_client(choice, limits, kept)
        try:
            asked = propose_by_chat(client, options, task, embedder, choice.name)
            return await answered(asked, client, watch.waiting)
        finally:
            await client.close()


propose = synchronous(apropose)


ONE_LOOK = "intervals of the other tables hold for a single look"

# -- quantify --------------------------------------------------------------------------------------


async def aquantify(
    runs: Runs,
    criteria: Criteria | None = None,
    *,
    max_unscored: float = 0.1,
    score_failed_runs: str | None = None,
    until: str | float | Until | None = None,
    **options: Unpack[JudgeKeywords],
) -> ScoreReport:
    """Score every run on every criterion; what the store holds already is not asked again.

    `runs`: a path (file, folder, pattern) or Run records. `criteria`: a file, a CriteriaSet or
    Criterion records; None: those found by the name of the task. `judge`: a model's name
    ("openai:gpt-4o-mini", "embedded", ...), a function or a scorer of another framework, see
    `FunctionJudge`, for which `version` may be needed, or "python:MODULE:NAME" of one; None:
    AGENTEVAL_MODEL, else the embedded judge. `mapping` says which column of a
    table is which field (`{"output": "bot_reply"}`; None: what the task says). `task` is needed
    where neither runs nor their folder name it and the judge is a model. `with_reference` shows
    the judge the reference answers. With `probabilities` a chat model answers with a letter, of
    which the log-probabilities give the value (docs/verify.md); "decisions:NAME" is a model that
    gives probabilities itself. `agenteval.utility.options.JudgeOptions` lists all keywords.

    Runs whose system failed are not judged; they are counted. With `score_failed_runs="worst"` they
    get the worst level of every ordered criterion.

    With `until` cases are judged in random order (of `seed`) and only as many as it takes: a width
    that no always-valid interval of a mean exceeds, or "decided" for two systems of which it is to
    be known which is better; see `trust.stopping.Until`. Where it stopped is among the notes.

    The report's `exit_code` is 3 where the budget or an outage ended it early, which `unfinished`
    explains, and where more than the share `max_unscored` of the results are missing, which is a
    gate of the report. With `dry_run` nothing is sent or stored, and its `estimate` says what
    would be asked. Raises InputError for what cannot be used, StoreError, Unauthorized.
    """
    rule = until if isinstance(until, Until) or until is None else Until.of(str(until))
    how = read_options(JudgeOptions, options, aquantify)
    judging = read_judging(
        runs, criteria, how, Watch(how.notify, how.progress), score_failed_runs=score_failed_runs
    )
    if how.dry_run:
        judge, _ = judging.evaluator(None)
        estimate = await quantify_estimate(judging, how.store, with_reference=how.with_reference)
        return ScoreReport(
            title="quantify",
            tables=(),
            source=judge.source,
            criteria=judging.criteria,
            ratings=(),
            cells=0,
            store=Path(),
            estimate=estimate,
        )
    if rule is not None:
        rule.check(sorted({run.system for run, _ in judging.items}))
    judging.refuse_unrecorded([(ORIGINAL, judging.items)])
    judging.say_judge()
    with opened(how.store) as store, judging.executor:
        warn_of_versions(store, judging.items, judging.watch)
        judge, client = judging.evaluator(store)
        requests = _requests_counter(client)
        rated = JudgeEvaluator.of(judge, judging.items, judging.criteria, judging.repeats)
        look = None
        try:
            if rule is None:
                result = await judging.run(rated, client, store)
            else:
                judged = await judge_until(judging, judge, client, store, rule)
                rated, result, look = judged.rated, judged.result, judged.look
        except asyncio.CancelledError:
            raise Stopped(_scored(judging, rated, None, store, requests())) from None
        report = _scored(judging, rated, result, store, requests())
    if look is not None:
        report = replace(
            report, tables=(*report.tables, replace(look.table, notes=(look.reason, ONE_LOOK)))
        )
    return report.gate(max_unscored=max_unscored)


async def quantify_estimate(judging: Judging, path: StorePath, *, with_reference: bool) -> Estimate:
    """Return what `quantify` would ask. Raises InputError for a cap without a price."""
    runs, criteria = len(judging.items), judging.criteria
    cells = runs * len(criteria) * judging.repeats
    about = (
        f"runs: {runs} of task {judging.task.name}",
        f"reference answers: {'shown to the judge' if with_reference else 'withheld'}",
        f"criteria: {len(criteria)} ({', '.join(c.name for c in criteria)})",
        f"cells: {plural(runs, 'run')} × {plural(len(criteria), 'criterion')} × "
        f"{plural(judging.repeats, 'repeat')} = {cells:,}",
    )
    total = Estimate(command="quantify", about=about, budget=judging.limits.budget())
    if judging.asks_nobody:
        answered = runs - sum(map(len, judging.no_answer.values()))
        calls = f"calls: {answered * judging.repeats} at most; {judging.local_cost}"
        return replace(total, about=(*about, calls))
    with planned(path) as store:
        judge, client = judging.evaluator(store)
        rated = JudgeEvaluator.of(judge, judging.items, criteria, judging.repeats)
        return await judging.estimate(total, rated, client, store)


quantify = synchronous(aquantify)


def _requests_counter(client: Client | None) -> Callable[[], int | None]:
    """Return a function that counts the requests sent from now on.

    It returns None for judges in Python.
    """
    if client is None:
        return lambda: None
    before = client.usage.requests
    return lambda: client.usage.requests - before


def _scored(
    judging: Judging,
    rated: JudgeEvaluator,
    result: ExperimentResult | None,
    store: Store,
    requests: int | None,
) -> ScoreReport:
    """The report; `result` is None after an interrupt, `requests` are those of this command."""
    with store.snapshot():
        ratings = load_ratings(
            store,
            rated.source_key,
            run_keys=[view.sha256 for _, view in rated.items],
            criterion_keys=[c.sha256 for c in rated.criteria],
            repeats=rated.repeats,
        )
        usage = store.usage(rated.source_key)
    judged = sum(r.status not in INFRASTRUCTURE for r in ratings)
    far = f"{judged} of {rated.cells} cells are judged"
    unfinished: tuple[str, ...] = ()
    code = 0
    if result is None:
        unfinished, code = (f"not complete: {far}; interrupted; the same command goes on",), 130
    elif result.stopped:
        why = why_stopped(result, "calls not made")
        unfinished, code = (f"not complete: {far}; {why}; the same command goes on",), 3
    return score_report(
        rated.source,
        rated.criteria,
        ratings,
        usage,
        store.address,
        flags_of(rated.items),
        cells=rated.cells,
        notes=judging.watch.notes,
        unfinished=unfinished,
        exit_code=code,
        now=requests,
    )


# -- perturb ---------------------------------------------------------------------------------------


@dataclass(frozen=True, kw_only=True)
class PerturbReport(Report):
    """Texts of runs and of perturbed copies, to be rated by any judge: a row for each, with run,
    variant, system, case, success, problem and text."""

    texts: tuple[dict[str, Any], ...]

    def records(self) -> list[dict[str, Any]]:
        """The rows."""
        return [dict(row) for row in self.texts]

    def write(self, path: str | Path) -> Path:
        """Write the rows as JSON lines, as `verify(scores=...)` wants them back with ratings."""
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
    """The text of every run and of perturbed copies; the same seed makes the same copies.

    Raises InputError for runs that cannot be read and for an unknown perturbation.
    """
    watch = Watch(notify)
    read = read_run_list(runs, "", watch, mapping)[:limit]
    items = [(run, make_view(run)) for run in read if run.failure is None]
    if len(items) < len(read):
        watch.warn(f"left out: {plural(len(read) - len(items), 'run')} without an answer")
    copies = make_copies(items, perturbations or DEFAULT_OPERATORS, share=share, seed=seed)
    warn_unchanged(copies, len(items), watch)
    texts = [(ORIGINAL, items), *((c.variant, c.items) for c in copies)]
    rows = tuple(
        {
            "run": run.id,
            "variant": variant,
            "system": run.system,
            "case": content_hash(run.input or ["run", run.id]),
            "success": run.success,
            "problem": view.problem,
            "text": view.trajectory,
        }
        for variant, some in texts
        for run, view in some
    )
    counts: tuple[dict[str, Cell], ...] = tuple(
        {"variant": c.variant, "copies": len(c.items), "unchanged": len(c.unchanged)}
        for c in copies
    )
    columns = (
        Column("variant", "perturbation"),
        Column("copies", "copies", "count"),
        Column("unchanged", "equal their original", "count"),
    )
    return PerturbReport(
        title=f"{len(items)} originals and {len(rows) - len(items)} copies",
        tables=(Table("copies", "", columns, counts),),
        notes=tuple(watch.notes),
        texts=rows,
    )
