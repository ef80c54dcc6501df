"""Verdicts on criteria and judges: `verify`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

from agenteval.analysis.flagged import flags_of
from agenteval.analysis.means import lines_on_failed_runs
from agenteval.analysis.rating_sources import chosen_raters
from agenteval.analysis.rubrics import DROP_ITEM
from agenteval.cli.options import read_options
from agenteval.cli.running import Watch, opened, planned, synchronous
from agenteval.engine import CostEstimate, RequestBounds, RequestCounter
from agenteval.errors import InputError
from agenteval.models.asking import MOST_REQUESTS
from agenteval.readers.scores import read_scores
from agenteval.records import CriteriaSet, Criterion, Task
from agenteval.records.run import no_answers
from agenteval.stats.scores import ScoreTable
from agenteval.store import Store
from agenteval.store.experiments import remark
from agenteval.text import plural
from agenteval.utility.combined import CombinedJudging
from agenteval.utility.criteria_file import find_criteria, save_criteria
from agenteval.utility.evaluator import rubrics_of
from agenteval.utility.judging import (
    Criteria,
    Judging,
    JudgingStopped,
    Runs,
    read_criteria,
    warn_of_versions,
)
from agenteval.utility.options import JudgeKeywords, VerifiedJudge
from agenteval.utility.panels import read_judges
from agenteval.utility.perturbed_runs import (
    DEFAULT_OPERATORS,
    VerificationData,
    make_copies,
    with_drift_warning,
)
from agenteval.utility.probes.attacks import most_targets
from agenteval.utility.probes.result import ProbeOptions
from agenteval.utility.probing import OTHER_WAYS, ProbeSession, probe
from agenteval.utility.reports import VerifyReport, unverified, verify_report
from agenteval.utility.stopping import in_random_order
from agenteval.utility.verify import VerifyOptions, verify_table
from agenteval.utility.verify.outside import number_criteria, verify_ratings

FIRST_LOOK = 20  # cases; each look doubles them


async def averify(
    runs: Runs | None = None,
    criteria: Criteria | None = None,
    *,
    scores: str | Path | None = None,
    labels: str | Path | None = None,
    perturbations: Sequence[str] = (),
    share: float = 0.25,
    options: VerifyOptions | None = None,
    probes: bool = False,
    attacked: int | None = None,
    sequential: bool = False,
    output: str | Path | None = None,
    **judge_options: Unpack[JudgeKeywords],
) -> VerifyReport:
    """Decide which criteria can be kept and whether the judge can be trusted, with reasons.

    Judges every run and perturbed copies of it (`perturbations` change the share `share` of a text)
    `repeats` times, with the parameters of `quantify`. With `probes` the judge is also given other
    prompts, and attacks in at most `attacked` runs. The criteria with their verdicts are written to
    `output` if given; `{task}` in it is replaced by the name of the task.

    With `sequential`, cases come in random order (by `seed`), and the verdicts are checked after
    20, 40, 80, ... cases until all are settled. All checks together keep the error rates
    (`VerifyOptions.at_look`); the notes say where it stopped.

    With `scores` instead of `runs`, existing ratings (a table or a log) are examined. With
    `labels`, human ratings of the runs (a file as for `agree`), the agreement among people is
    checked as well.

    `options` are the thresholds. Returns a report with a verdict on the judge and on each
    criterion. If judging stops early, the verdict is "not enough data", `unfinished` has the reason
    and `exit_code` is 3. With `dry_run` nothing is sent or stored, and `estimate` has the planned
    requests. Raises as `quantify`.
    """
    how = read_options(VerifiedJudge, judge_options, averify)
    watch = Watch(how.notify, how.progress)
    thresholds = options or VerifyOptions(seed=how.seed)
    if scores is not None:
        if probes:
            raise InputError("probes need a judge, and existing ratings have none", "--probes")
        if runs is not None:
            raise InputError(
                "give runs to judge, or existing ratings (--scores) with texts in a column `text`",
                "--scores",
            )
        written = None if output is None else Path(output)
        return _elsewhere(Path(scores), labels, how.task, criteria, thresholds, written, watch)
    if runs is None:
        raise InputError("say which runs, or give ratings with --scores", "RUNS")
    several = isinstance(how.judge, list | tuple) and len(how.judge) > 1
    judging = read_judges(runs, criteria, how, watch, labels=labels if several else None)
    no_answer = judging.no_answer
    judging = _answered(judging, thresholds, probes=probes)
    people = _labels(labels, judging.criteria)
    probing = ProbeOptions.like(thresholds, attacked=attacked) if probes else None
    material = _material(judging, perturbations, share)
    if how.dry_run:
        estimate = await _estimate(judging, material, probing)
        if sequential and len(judging.items) > FIRST_LOOK:
            estimate = estimate.uncertain()  # the first look may end it
        nothing = unverified("", watch.notes)
        return replace(nothing, estimate=estimate, unfinished=(), exit_code=0)
    judging.say_judge()
    try:
        with opened(how.store) as store, judging.executor:
            judging = await judging.prepared(store)
            work = _Verification(judging, store, thresholds, people, probing, sequential)
            report = await work.run(material)
        if output is not None and judging.criteria:  # rubrics are not criteria of the task
            path = Path(str(output).replace("{task}", judging.task.name))
            _write(path, judging.task.name, judging.criteria, report, watch)
    except JudgingStopped as early:
        report = unverified(str(early), watch.notes)
    line = no_answers(no_answer)
    notes = (*([f"{line}; they are not judged"] if line else ()), *report.notes)
    return replace(report, notes=notes, data={**report.data, "no_answer": no_answer})


verify = synchronous(averify)


def _answered(judging: Judging, thresholds: VerifyOptions, *, probes: bool) -> Judging:
    """Return the judging without runs whose system failed: they say nothing about the judge.

    Raises InputError where no run is left, and for options that do not fit the judge.
    """
    answered = tuple(item for item in judging.items if item[0].failure is None)
    if not answered:
        raise InputError("no run has an answer to judge", "RUNS")
    if thresholds.deterministic and judging.choice is not None and not judging.distributes:
        what = "needs --scores, or a judge that returns probabilities"
        raise InputError(what, "--deterministic")
    if isinstance(judging, CombinedJudging) and probes:
        raise InputError("probe each judge of a panel by itself", "--probes")
    if judging.recording is not None and probes:
        raise InputError("only judgements of runs and their copies are recorded", "--probes")
    if judging.distributes and judging.repeats > 1 and not thresholds.deterministic:
        judging.watch.warn(
            "probabilities are not sampled, so that repeats agree shows little: "
            "--deterministic --repeats 1 does without them"
        )
    return replace(judging, items=answered)


def _labels(path: str | Path | None, criteria: Sequence[Criterion]) -> tuple[ScoreTable, ...]:
    """Return the human labels, a table per rater in the file. Raises InputError."""
    if path is None:
        return ()
    raters = chosen_raters(Path(path), (), "--labels")
    return tuple(read_scores(Path(path), criteria, rater=rater) for rater in raters)


def _material(judging: Judging, operators: Sequence[str], share: float) -> VerificationData:
    """Return runs and perturbed copies; for recorded replies, the copies that are recorded.

    Raises InputError for an unknown operator, and for what is not recorded.
    """
    has_rubrics = bool(rubrics_of(judging.items))
    if has_rubrics and not operators:
        operators = (*DEFAULT_OPERATORS, DROP_ITEM)
    copies = make_copies(
        judging.items, operators, share=share, seed=judging.seed, watch=judging.watch
    )
    if judging.recording is not None:
        recorded = judging.recording.copied
        for i, copy in enumerate(copies):
            items = tuple(x for x in copy.items if (x[0].id, copy.variant) in recorded)
            copies[i] = replace(copy, items=items or copy.items)  # all where none is recorded
    if not has_rubrics and not any(c.expect for c in judging.criteria):
        judging.watch.warn(
            "no criterion says what a perturbation should do (`expect`): only controls are judged"
        )
    material = VerificationData(judging.items, tuple(copies), judging.criteria, judging.repeats)
    judging.refuse_unrecorded(material.variants)
    return material


async def _estimate(
    judging: Judging, material: VerificationData, options: ProbeOptions | None
) -> CostEstimate:
    """Return the requests that `verify` would send; without `options` there are no probes. Raises
    InputError for a cap without a price."""
    texts, originals, repeats = material.texts, len(material.items), material.repeats
    judged = plural(len(material.criteria), "criterion")
    if rubrics_of(material.items):
        judged = f"{judged} and their rubrics" if material.criteria else "their rubrics"
    about = (
        f"texts: {originals} originals and {texts - originals} perturbed copies",
        f"cells: {plural(texts, 'text')} × {judged} × {plural(repeats, 'repeat')} = "
        f"{material.cells:,}",
    )
    total = CostEstimate(command="verify", about=about, budget=judging.limits.budget())
    runs = [run for run, _ in material.items]
    attacked = 2 * repeats * most_targets(runs, options or ProbeOptions())
    if judging.sends_nothing:
        more = f", and {attacked} for probes" if options else ""
        calls = f"calls: {texts * repeats}{more} at most; {judging.local_cost}"
        return replace(total, about=(*about, calls))
    with planned(judging.how.store) as store:
        judge, client = judging.evaluator(store)
        total = await judging.estimate(total, material.rated_by(judge), client, store)
        if options is None:
            return total
        session = ProbeSession(judging, store, judge, material)
        for changes in OTHER_WAYS.values() if session.listed else ():
            other, client = judging.evaluator(store, **changes)
            total += await judging.experiment(session.originals(other), client, store).dry_run()
        counter = RequestCounter()
        most = MOST_REQUESTS * attacked * len(judge.batches(material.criteria))
        counter.count({"judge, of texts with an attack": RequestBounds(0, most)})
        return total + CostEstimate(tuple(counter.lines.values()))


@dataclass(frozen=True)
class _Verification:
    """A judge, the store of its ratings, and the verification data; `labels` are human labels."""

    judging: Judging
    store: Store
    options: VerifyOptions
    labels: Sequence[ScoreTable]
    probing: ProbeOptions | None
    sequential: bool

    async def run(self, material: VerificationData) -> VerifyReport:
        """Judge, verify and probe; if `sequential`, only as many cases as leave no verdict open.

        Raises JudgingStopped if the judging stopped early.
        """
        judging, store, watch = self.judging, self.store, self.judging.watch
        warn_of_versions(store, judging.items, watch)
        cases = in_random_order(material.items, judging.seed)
        counts = [len(cases)]
        if self.sequential:
            counts[:0] = [n for k in range(20) if (n := FIRST_LOOK * 2**k) < len(cases)]
        for number, count in enumerate(counts):
            last, part = count == counts[-1], material
            if not last:
                part = material.of({r.id for name in list(cases)[:count] for r, _ in cases[name]})
            evaluator, client = judging.evaluator(store)
            ended = await judging.run(part.rated_by(evaluator), client, store)
            if ended.stopped:
                raise JudgingStopped(ended)
            key = evaluator.source.sha256
            with store.snapshot():
                table, models = part.ratings(store, key), store.models(key)
            at_look = self.options.at_look(number, len(counts))
            result = verify_table(table, part.shown, at_look, copies=part.facts, labels=self.labels)
            result = with_drift_warning(result, models)
            store.save_verdict(key, judging.task.name, result)
            undecided = sum(v.verdict == "undecided" and bool(v.coverage) for v in result.criteria)
            if last or (not undecided and result.judge.verdict != "not enough data"):
                break
            watch.note(f"after {count} of {len(cases)} cases: {undecided} verdicts are open")
        if self.sequential:
            where = "judged all" if last else f"stopped after {count} of"
            open_ = f"{undecided} verdicts are open" if undecided else "no verdict is open"
            line = f"{where} {plural(len(cases), 'case')} (order of seed {judging.seed}), "
            line += f"look {number + 1} of {len(counts)}: {open_}"
            watch.warn(line)
            remark(store, key, line)
        probes = None
        if self.probing:
            probes = await probe(judging, store, evaluator, part, self.probing)
        source, runs = evaluator.source, len(part.items)
        about = f"{source.model} ({source.evaluator}, seed {source.seed}): {plural(runs, 'run')}"
        about += f" and {part.texts - runs} perturbed copies × {part.repeats} repeats"
        flags = flags_of(part.items)
        return verify_report(
            result, part.shown, about, table, probes=probes, flags=flags, notes=watch.notes
        )


def _elsewhere(
    scores: Path,
    labels: str | Path | None,
    task: str | Task | None,
    criteria: Criteria | None,
    options: VerifyOptions,
    output: Path | None,
    watch: Watch,
) -> VerifyReport:
    """Return verdicts on a file of ratings."""
    name = task.name if isinstance(task, Task) else Path(task or "").name
    read: tuple[Criterion, ...] = ()
    if criteria is not None or task:
        source = criteria if criteria is not None else find_criteria(str(task))
        read = read_criteria(source, name, watch)
    table = read_scores(scores, read)
    rated = read or number_criteria(table)
    result = verify_ratings(scores, table, rated, options, _labels(labels, rated))
    about = f"{scores}: {len(table)} ratings of {len(table.present('run'))} runs"
    notes = [*watch.notes, *lines_on_failed_runs(table)]
    report = verify_report(result, rated, about, table, notes=notes)
    if output is not None:
        _write(output, name, rated, report, watch)
    return report


def _write(
    path: Path, task: str, criteria: Sequence[Criterion], report: VerifyReport, watch: Watch
) -> None:
    """Write all criteria with their verdicts, and the probes of the judge after them."""
    verdicts = {
        v.criterion_id: v.model_dump(mode="json", exclude_none=True) for v in report.result.criteria
    }
    marked = tuple(
        c.model_copy(update={"verification": verdicts[c.id]}) if c.id in verdicts else c
        for c in criteria
    )
    more = {key: report.data[key] for key in ("probes",) if key in report.data}
    save_criteria(path, CriteriaSet(task=task, criteria=marked), more=more)
    watch.note(f"written to {path}: every criterion with its verdict and evidence")
