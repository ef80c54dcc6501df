"""Verdicts on criteria and judges: `verify`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Unpack

from pydantic import JsonValue

from agenteval.analysis.flagged import flags_of
from agenteval.analysis.means import lines_on_failed_runs
from agenteval.analysis.rating_sources import chosen_raters
from agenteval.cli.options import read_options
from agenteval.cli.running import (
    Watch,
    opened,
    planned,
    synchronous,
    why_stopped,
)
from agenteval.engine import Estimate, RequestBounds, RequestCounter
from agenteval.errors import InputError
from agenteval.models.asking import MOST_REQUESTS
from agenteval.readers.scores import read_scores
from agenteval.records import CriteriaSet, Criterion, Source, Task
from agenteval.records.run import no_answers
from agenteval.records.verification import VerifiedSet
from agenteval.stats.scores import ORIGINAL, ScoreTable
from agenteval.store import Store
from agenteval.store.experiments import remark
from agenteval.text import plural
from agenteval.utility.criteria_file import find_criteria, save_criteria
from agenteval.utility.judging import (
    Criteria,
    Judging,
    Runs,
    Unfinished,
    read_criteria,
    read_judging,
    warn_of_versions,
    warn_unchanged,
)
from agenteval.utility.options import JudgeKeywords, VerifiedJudge
from agenteval.utility.perturbed_runs import (
    DEFAULT_OPERATORS,
    PerturbedRuns,
    VerificationData,
    make_copies,
    stored_table,
    verify_stored,
)
from agenteval.utility.probes.result import Probe, ProbeOptions
from agenteval.utility.probes.targets import most_targets
from agenteval.utility.probing import OTHER_WAYS, Asking, probe
from agenteval.utility.reports import (
    VerifyReport,
    unverified,
    verify_report,
)
from agenteval.utility.stopping import in_random_order
from agenteval.utility.verify.options import VerifyOptions
from agenteval.utility.verify.outside import verify_ratings

FIRST_LOOK = 20  # cases, as many as a verdict needs


# -- verify ----------------------------------------------------------------------------------------


async def averify(
    runs: Runs | None = None,
    criteria: Criteria | None = None,
    *,
    scores: str | Path | None = None,
    labels: str | Path | None = None,
    perturbations: Sequence[str] = DEFAULT_OPERATORS,
    share: float = 0.25,
    options: VerifyOptions | None = None,
    probes: bool = False,
    attacked: int | None = None,
    sequential: bool = False,
    output: str | Path | None = None,
    **judge_options: Unpack[JudgeKeywords],
) -> VerifyReport:
    """Say which criteria can be kept and whether the judge can be trusted, and why.

    Judges every run and perturbed copies of it (`perturbations` touch `share` of a text)
    `repeats` times, as `quantify` does and with its parameters. With `probes` the judge is also
    asked in other ways, and with attacks in at most `attacked` runs. The
    criteria with their verdicts are written to `output` if it is given; `{task}` in it is replaced
    by the name of the task.

    With `sequential` cases come in random order (of `seed`), and there is a look after 20, 40, 80
    and so on: it ends where no verdict is open any more. All looks together keep the error rates
    (`VerifyOptions.at_look`); where it stopped is among the notes.

    With `scores` instead of `runs`, ratings made elsewhere (a table or a log) are examined. With
    `labels`, ratings of the runs by people (a file as for `agree`), it is also checked whether
    people agree.
    `options` holds the thresholds. Where the judging stopped early the verdict is "not enough
    data", `unfinished` says why and `exit_code` is 3. With `dry_run` nothing is sent or stored, and
    the report's `estimate` says what would be asked of a judge of runs. Raises as `quantify`.
    """
    how = read_options(VerifiedJudge, judge_options, averify)
    watch = Watch(how.notify, how.progress)
    options = options or VerifyOptions(seed=how.seed)
    written = None if output is None else Path(output)
    if scores is not None:
        if probes:
            raise InputError("the probes ask a judge; ratings made elsewhere have none", "--probes")
        if runs is not None:
            raise InputError(
                "give runs to judge or ratings made elsewhere; texts may stand in a column `text`",
                "--scores",
            )
        return _elsewhere(Path(scores), labels, how.task, criteria, options, written, watch)
    if runs is None:
        raise InputError("say which runs, or give ratings with --scores", "RUNS")
    judging = read_judging(runs, criteria, how, watch)
    no_answer, judging = judging.no_answer, _answered(judging)
    _refuse_more(judging, options, probes=probes)
    labelled = _labels(labels, judging.criteria)
    if judging.distributes and how.repeats > 1 and not options.deterministic:
        watch.warn(
            "probabilities are not sampled, so that repeats agree shows little: "
            "--deterministic --repeats 1 does without them"
        )
    probing = ProbeOptions.like(options, attacked=attacked) if probes else None
    if how.dry_run:
        material = _material(judging, judging.criteria, perturbations, share)
        estimate = await _estimate(judging, material, how.store, probing)
        if sequential and len(judging.items) > FIRST_LOOK:
            estimate = estimate.uncertain()  # the first look may end it
        nothing = unverified("", watch.notes)
        return replace(nothing, estimate=estimate, unfinished=(), exit_code=0)
    if output is not None:
        written = Path(str(output).replace("{task}", judging.task.name))
    examination = _How(
        tuple(perturbations or DEFAULT_OPERATORS),
        share,
        options,
        probing,
        written,
        sequential,
        labelled,
    )
    try:
        report = await _verified(judging, how.store, examination)
    except Unfinished as early:
        report = unverified(str(early), watch.notes)
    line = no_answers(no_answer)
    notes = (*([f"{line}; they are not judged"] if line else ()), *report.notes)
    return replace(report, notes=notes, data={**report.data, "no_answer": no_answer})


verify = synchronous(averify)


@dataclass(frozen=True)
class _How:
    """How the runs are perturbed and what is done with the ratings."""

    operators: tuple[str, ...]
    share: float
    options: VerifyOptions
    probing: ProbeOptions | None
    output: Path | None
    sequential: bool = False
    labels: tuple[ScoreTable, ...] = ()


def _labels(path: str | Path | None, criteria: Sequence[Criterion]) -> tuple[ScoreTable, ...]:
    """Labels of people, a table for each rater of the file. Raises InputError."""
    if path is None:
        return ()
    raters = chosen_raters(Path(path), (), "--labels")
    return tuple(read_scores(Path(path), criteria, rater=rater) for rater in raters)


def _answered(judging: Judging) -> Judging:
    """The same without runs whose system failed: they say nothing about the judge."""
    answered = tuple(item for item in judging.items if item[0].failure is None)
    if not answered:
        raise InputError("no run has an answer to judge", "RUNS")
    return replace(judging, items=answered)


def _refuse_more(judging: Judging, options: VerifyOptions, *, probes: bool) -> None:
    """Raise InputError for a judge that cannot be had, or not asked so, before anything is made."""
    if options.deterministic and judging.choice is not None and not judging.distributes:
        what = "is said of ratings made elsewhere (--scores) and of judges that give probabilities"
        raise InputError(what, "--deterministic")
    if judging.recording is not None and probes:
        raise InputError("only judgements of runs and their copies are recorded", "--probes")


async def _verified(judging: Judging, store: str | Path | Store | None, how: _How) -> VerifyReport:
    """Judge, verify and report. Raises Unfinished if the judging stopped early."""
    criteria = judging.criteria
    material = _material(judging, criteria, how.operators, how.share)
    judging.say_judge()
    with opened(store) as opened_store, judging.executor:
        if how.sequential:
            material, how = await _looked(judging, opened_store, material, how)
        source, result, table, probes = await _judge_and_verify(
            judging, opened_store, material, how
        )
    if how.output is not None:
        _write(how.output, judging.task.name, criteria, result, probes, judging.watch)
    about = (
        f"{source.model} ({source.evaluator}, seed {source.seed}): {len(material.items)} runs and "
        f"{material.texts - len(material.items)} perturbed copies × {material.repeats} repeats"
    )
    return verify_report(
        result,
        criteria,
        about,
        table,
        probes=probes,
        flags=flags_of(material.items),
        notes=judging.watch.notes,
    )


async def _estimate(
    judging: Judging,
    material: VerificationData,
    path: str | Path | Store | None,
    options: ProbeOptions | None,
) -> Estimate:
    """What `verify` would ask; without `options` nothing is probed. Raises InputError for a cap
    without a price."""
    texts, originals, repeats = material.texts, len(material.items), material.repeats
    about = (
        f"texts: {originals} originals and {texts - originals} perturbed copies",
        f"cells: {plural(texts, 'text')} × {plural(len(material.criteria), 'criterion')} × "
        f"{plural(repeats, 'repeat')} = {texts * len(material.criteria) * repeats:,}",
    )
    total = Estimate(command="verify", about=about, budget=judging.limits.budget())
    attacked = (
        2 * repeats * most_targets([run for run, _ in material.items], options or ProbeOptions())
    )
    if judging.asks_nobody:
        more = f", and {attacked} for probes" if options else ""
        calls = f"calls: {texts * repeats}{more} at most; {judging.local_cost}"
        return replace(total, about=(*about, calls))
    with planned(path) as store:
        judge, client = judging.evaluator(store)
        total = await judging.estimate(total, material.rated_by(judge), client, store)
        if options is None:
            return total
        asking = Asking(judging, store, judge, material)
        counter = RequestCounter()
        for changes in OTHER_WAYS.values() if asking.listed else ():
            other, client = judging.evaluator(store, **changes)
            experiment = judging.experiment(asking.in_another_way(other), client, store)
            total += await experiment.dry_run()
        most = MOST_REQUESTS * attacked * len(judge.batches(material.criteria))
        counter.count({"judge, of texts with an attack": RequestBounds(0, most)})
        return total + Estimate(tuple(counter.lines.values()))


async def _looked(
    judging: Judging, store: Store, material: VerificationData, how: _How
) -> tuple[VerificationData, _How]:
    """What is verified in the end: the cases until the first look at which no verdict is open, all
    where there is none; and with which error rates. Raises Unfinished where it had to stop."""
    cases = in_random_order(material.items, judging.options.seed)
    counts = [n for k in range(20) if (n := FIRST_LOOK * 2**k) < len(cases)] + [len(cases)]
    for number, count in enumerate(counts):
        ids = {run.id for name in list(cases)[:count] for run, _ in cases[name]}
        part = replace(
            material,
            items=tuple(item for item in material.items if item[0].id in ids),
            copies=tuple(
                replace(
                    copy,
                    items=tuple(item for item in copy.items if item[0].id in ids),
                    unchanged={run: why for run, why in copy.unchanged.items() if run in ids},
                )
                for copy in material.copies
            ),
        )
        own = replace(how, options=how.options.at_look(number, len(counts)))
        source, result, _, _ = await _judge_and_verify(
            judging, store, part, replace(own, probing=None)
        )
        waiting = [v for v in result.criteria if v.verdict == "undecided" and v.coverage]
        last = number == len(counts) - 1
        if last or (not waiting and result.judge.verdict != "not enough data"):
            where = "all" if last else f"{count} of"
            line = (
                f"{'judged' if last else 'stopped after'} {where} {plural(len(cases), 'case')} "
                f"(order of seed {judging.options.seed}), look {number + 1} of {len(counts)}: "
                + (f"{len(waiting)} verdicts are open" if waiting else "no verdict is open")
            )
            judging.watch.warn(line)
            remark(store, source.sha256, line)
            return part, own
        judging.watch.note(f"after {count} of {len(cases)} cases: {len(waiting)} verdicts are open")
    raise AssertionError("the last look ends it")


def _material(
    judging: Judging, criteria: tuple[Criterion, ...], operators: Sequence[str], share: float
) -> VerificationData:
    """Runs and perturbed copies, and a word on those that equal their original and on what nobody
    expects. Of recorded replies only the copies that are recorded. Raises InputError for an unknown
    operator, and for what is not recorded."""
    copies = make_copies(
        judging.items, operators or DEFAULT_OPERATORS, share=share, seed=judging.options.seed
    )
    warn_unchanged(copies, len(judging.items), judging.watch)
    if judging.recording is not None:
        recorded = judging.recording.copied
        copies = [_only(copy, recorded) for copy in copies]
    if not any(c.expect for c in criteria):
        judging.watch.warn(
            "no criterion says what a perturbation should do (`expect`): only controls are judged"
        )
    judging.refuse_unrecorded([(ORIGINAL, judging.items), *((c.variant, c.items) for c in copies)])
    return VerificationData(judging.items, tuple(copies), criteria, judging.repeats)


def _only(copies: PerturbedRuns, recorded: frozenset[tuple[str, str]]) -> PerturbedRuns:
    """The copies that are recorded; all of them where none of this perturbation is."""
    items = tuple(i for i in copies.items if (i[0].id, copies.variant) in recorded)
    return replace(copies, items=items or copies.items)


async def _judge_and_verify(
    judging: Judging, store: Store, material: VerificationData, how: _How
) -> tuple[Source, VerifiedSet, ScoreTable, tuple[Probe, ...] | None]:
    """Judge and verify once. Raises Unfinished where it had to stop."""
    warn_of_versions(store, judging.items, judging.watch)
    evaluator, client = judging.evaluator(store)
    ended = await judging.run(material.rated_by(evaluator), client, store)
    if ended.stopped:
        raise Unfinished(why_stopped(ended, "calls not made"))
    with store.snapshot():
        key = evaluator.source.sha256
        result = verify_stored(store, key, material, how.options, how.labels)
        table = stored_table(store, key, material)
    store.save_verdict(key, judging.task.name, result)
    probes = None
    if how.probing is not None:
        probes = await probe(judging, store, evaluator, material, how.probing)
    return evaluator.source, result, table, probes


def _elsewhere(
    scores: Path,
    labels: str | Path | None,
    task: str | Task | None,
    criteria: Criteria | None,
    options: VerifyOptions,
    output: Path | None,
    watch: Watch,
) -> VerifyReport:
    """Verdicts on a file of ratings."""
    name = task.name if isinstance(task, Task) else Path(task or "").name
    known: tuple[Criterion, ...] = ()
    if criteria is not None or task:
        given = criteria if criteria is not None else find_criteria(str(task))
        known = read_criteria(given, name, watch)
    table = read_scores(scores, known)
    if not known:
        # Values say how good; a scale of numbers is all that is known of such criteria.
        known = tuple(
            Criterion(id=name, name=name, scale="numeric", numeric_range=(0.0, 1.0))
            for name in table.present("criterion")
        )
    result = verify_ratings(scores, table, known, options, _labels(labels, known))
    if output is not None:
        _write(output, name, known, result, None, watch)
    about = f"{scores}: {len(table)} ratings of {len(table.present('run'))} runs"
    notes = [*watch.notes, *lines_on_failed_runs(table)]
    return verify_report(result, known, about, table, notes=notes)


def _write(
    path: Path,
    task: str,
    criteria: tuple[Criterion, ...],
    result: VerifiedSet,
    probes: tuple[Probe, ...] | None,
    watch: Watch,
) -> None:
    """The criteria with what was found, those to be dropped among them, for a person to cut; what
    probes found of the judge stands behind them."""
    verdicts = {
        v.criterion_id: v.model_dump(mode="json", exclude_none=True) for v in result.criteria
    }
    marked = tuple(
        c.model_copy(update={"verification": verdicts[c.id]}) if c.id in verdicts else c
        for c in criteria
    )
    more: dict[str, JsonValue] = (
        {} if probes is None else {"probes": [p.model_dump(mode="json") for p in probes]}
    )
    save_criteria(path, CriteriaSet(task=task, criteria=marked), more=more)
    watch.note(f"written to {path}: every criterion with its verdict and evidence")
