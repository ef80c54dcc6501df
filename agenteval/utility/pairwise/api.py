"""Pairwise judging: `prefer`, and the stored figures of one judge."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from agenteval.analysis.gates import unscored_gate
from agenteval.analysis.means import Rating, load_ratings
from agenteval.analysis.tables import spent
from agenteval.cli.options import read_options
from agenteval.cli.running import Stopped, Watch, how_it_ended, opened, planned, synchronous
from agenteval.engine import CostEstimate, ExperimentResult
from agenteval.errors import InputError
from agenteval.files import same_file
from agenteval.readers.tasks import TASK_FILE
from agenteval.records import Run, Task
from agenteval.stats.bounded import bounded_interval
from agenteval.stats.scores import ORIGINAL
from agenteval.store import Store
from agenteval.store.experiments import unfinished_of
from agenteval.text import did_you_mean, plural
from agenteval.utility.evaluator import Item, JudgeEvaluator
from agenteval.utility.judging import (
    Criteria,
    Judging,
    Runs,
    read_judging,
    read_run_list,
    warn_of_versions,
)
from agenteval.utility.options import JudgeKeywords
from agenteval.utility.pairwise.judge import PairJudging
from agenteval.utility.pairwise.options import PreferOptions
from agenteval.utility.pairwise.outcomes import PairOutcome, by_case, pair_outcomes, win_rate
from agenteval.utility.pairwise.pairs import (
    OVERALL,
    PairedRuns,
    ResponsePair,
    pair_runs,
    preference_on,
)
from agenteval.utility.pairwise.readers import RecordedPairs, read_pairs
from agenteval.utility.pairwise.tables import (
    PreferenceReport,
    figure_table,
    left_out_table,
    preference_tables,
)
from agenteval.utility.pairwise.verify import PairVerification

NO_TASK = Task(name="pairs", description="The system answers the request of a user.")


async def aprefer(
    *sides: Runs,
    runs: Runs | None = None,
    pairs: str | Path | None = None,
    verdicts: str | Path | None = None,
    criteria: Criteria | None = None,
    verify: bool = False,
    perturbations: Sequence[str] = (),
    share: float = 0.25,
    max_unscored: float = 0.1,
    **options: Unpack[JudgeKeywords],
) -> PreferenceReport:
    """Judge which of two or more systems does better on each case, in both orders.

    `sides` are files (or lists) of runs, one for each system, or names of systems in `runs`; with
    `runs` and no names, all of its systems are compared. Each order is a request of its own, with
    `repeats` times as many. The answer is first, second or tie, on the task as a whole or on each
    of `criteria`. `pairs` is a file of AlpacaEval, arena-hard or JudgeBench whose pairs are judged,
    and whose labels the judge is compared with; `verdicts` is such a file whose recorded verdicts
    are counted without a judge.

    With `verify` the judge is examined as well: identical pairs must tie, swapped pairs mirror, and
    originals beat their damaged copies (`perturbations` change the share `share` of a text).

    Returns a report with wins, losses, ties, flips and missing judgments, the win rate with its
    interval over cases, and the bias of the first position; for more than two systems also
    Bradley-Terry strengths. `exit_code` and errors are those of `quantify`.
    """
    how = read_options(PreferOptions, options, aprefer)
    if sum(given is not None for given in (sides or None, pairs, verdicts)) > 1 or (
        runs is not None and (pairs is not None or verdicts is not None)
    ):
        raise InputError("give systems to compare, --pairs or --verdicts, only one of them")
    if verdicts is not None:
        return _recorded(read_pairs(Path(verdicts)), verdicts)
    if how.system is not None or how.probabilities:
        raise InputError("not available for pairs", "system, probabilities")
    watch = Watch(how.notify, how.progress)
    recorded = None if pairs is None else read_pairs(Path(pairs))
    if recorded is None:
        judging, paired = _paired(sides, runs, criteria, how, watch)
    else:
        judging, paired = _recorded_pairs(recorded, criteria, how, watch)
    examined = (
        PairVerification.of(paired.pairs, perturbations, share, how, watch) if verify else None
    )
    material: list[tuple[str, Sequence[Item]]] = [(ORIGINAL, _both_orders(paired.pairs))]
    if examined is not None:
        material += [(variant, _both_orders(copies)) for variant, copies in examined.copies]
    judging = replace(judging, items=tuple(item for _, items in material for item in items))
    if how.dry_run:
        estimate = await _estimate(judging, material, paired)
        return PreferenceReport(title="prefer", tables=(), outcomes=(), estimate=estimate)
    with opened(how.store) as store, judging.executor:
        warn_of_versions(store, judging.items, watch)
        judge, client = judging.evaluator(store)
        rated = JudgeEvaluator(judge, material, judging.criteria, how.repeats)
        result: ExperimentResult | None = None
        try:
            result = await judging.run(rated, client, store)
        except asyncio.CancelledError:
            raise Stopped(_report(judging, rated, result, store, paired, recorded)) from None
        report = _report(judging, rated, result, store, paired, recorded)
        if examined is not None and result.stopped is None:
            report = examined.added(report, store, rated, judging.task.name)
    missing = sum(o.outcome == "missing" for o in report.outcomes)
    what = "comparisons have no result"
    return report.gated(unscored_gate(len(report.outcomes), missing, max_unscored, what))


prefer = synchronous(aprefer)


def preferences(
    store: str | Path | Store | None = None, *, source: str | None = None
) -> PreferenceReport:
    """Return the stored comparisons of one judge (by the start of its hash; default: the latest
    judge of pairs), as `prefer` does. Raises InputError and StoreError."""
    from agenteval.analysis.rating_sources import PAIRWISE, latest_source

    with opened(store, create=False) as opened_store, opened_store.snapshot():
        judges = [k for k, s in opened_store.sources() if s.evaluator == PAIRWISE]
        if source is None and not judges:
            raise InputError("the store has no comparisons yet; run `agenteval prefer`", "--store")
        key, record = latest_source(opened_store, source or judges[-1])
        if record.evaluator != PAIRWISE:
            raise InputError(f"{record.model} rates single runs: `agenteval show`", "--source")
        outcomes = pair_outcomes(load_ratings(opened_store, key))
        unfinished = [open_.line for open_ in unfinished_of(opened_store, [key])]
        stored = opened_store.verdict_on(key)
    judge = None if stored is None else stored.result.judge
    report = _preferences(outcomes, record.model, unfinished=unfinished)
    verdict = () if judge is None else (f"verified: the judge is {judge.verdict}",)
    return replace(report, judge=judge, notes=(*report.notes, *verdict))


def _both_orders(pairs: Sequence[ResponsePair]) -> list[Item]:
    return [pair.shown(swapped=swapped) for pair in pairs for swapped in pair.orders]


def _paired(
    sides: Sequence[Runs],
    runs: Runs | None,
    criteria: Criteria | None,
    how: PreferOptions,
    watch: Watch,
) -> tuple[PairJudging, PairedRuns]:
    """Read the runs of the systems and pair them. Raises InputError."""
    source, systems, options = runs, [str(side) for side in sides], replace(how, limit=None)
    if runs is None:
        source, systems = _read_sides(sides, how, watch)
        folder = Path(str(sides[0])).parent if isinstance(sides[0], str | Path) else None
        if how.task is None and folder is not None and (folder / TASK_FILE).is_file():
            options = replace(options, task=str(folder))
    assert source is not None  # one or the other
    judging = _read(source, criteria, options, watch)
    present = list(dict.fromkeys(run.system for run, _ in judging.items))
    for name in systems:
        if name not in present:
            hint = did_you_mean(name, present) or f"there are {', '.join(present)}"
            raise InputError(f"there is no system {name!r}; {hint}", "--runs")
    if repeated := [name for name, n in Counter(systems).items() if n > 1]:
        raise InputError(f"{repeated[0]!r} is compared with itself", "prefer")
    return judging, pair_runs(judging.items, systems or present, how.limit)


def _read_sides(
    sides: Sequence[Runs], how: PreferOptions, watch: Watch
) -> tuple[list[Run], list[str]]:
    """Return the runs of all sides with their systems. A side whose name is taken, or that has
    none, is called by its file. Raises InputError."""
    if len(sides) < 2:
        what = "two systems are needed: two files of runs, or names of systems with --runs FILE"
        raise InputError(what, "prefer")
    files = [Path(side) if isinstance(side, str | Path) else None for side in sides]
    for i, file in enumerate(files):
        if any(file and other and same_file(file, other) for other in files[:i]):
            raise InputError(f"{file} is compared with itself", "prefer")
    task = how.task.name if isinstance(how.task, Task) else how.task or ""
    lists = [read_run_list(side, task, watch, how.mapping) for side in sides]
    names = [{run.system for run in runs} for runs in lists]
    called = list[str]()
    for i, (found, file) in enumerate(zip(names, files, strict=True)):
        if len(found) > 1:
            listed = ", ".join(sorted(found))
            what = f"it has several systems ({listed}): prefer {' '.join(sorted(found)[:2])} --runs"
            raise InputError(f"{what} {file or 'RUNS'}", str(file or f"side {i + 1}"))
        (name,) = found or {"unnamed"}
        stem = f"side {i + 1}" if file is None else file.stem
        if name == "unnamed" or sum(name in other for other in names) > 1:
            name = stem if [f.stem for f in files if f].count(stem) < 2 else str(file)
        called.append(name)
    watch.note(f"systems: {', '.join(called)}")
    named = [
        run.model_copy(update={"system": name})
        for runs, name in zip(lists, called, strict=True)
        for run in runs
    ]
    return named, called


def _read(runs: Runs, criteria: Criteria | None, how: PreferOptions, watch: Watch) -> PairJudging:
    judging = read_judging(runs, [OVERALL] if criteria is None else criteria, how, watch)
    if criteria is None:
        return PairJudging.of(judging)
    if computed := [c.name for c in judging.criteria if c.judge]:
        watch.warn(f"left out, because they are computed for single runs: {', '.join(computed)}")
    usable = preference_on([c for c in judging.criteria if not c.judge])
    if not usable:
        raise InputError("no criterion is left to compare by", "--criteria")
    return PairJudging.of(judging, criteria=usable)


def _recorded_pairs(
    recorded: RecordedPairs, criteria: Criteria | None, how: PreferOptions, watch: Watch
) -> tuple[PairJudging, PairedRuns]:
    """Return the pairs of a file, to be judged. Raises InputError where it has no texts."""
    chosen = recorded.pairs[: how.limit]
    if without := [p.id for p in chosen if p.text_a is None or p.text_b is None]:
        what = f"{plural(len(without), 'pair')} without texts (first: {without[0]})"
        raise InputError(f"{what}; --verdicts counts the recorded verdicts", "--pairs")
    runs = [
        Run(id=p.id, system=system, input=p.problem or "", output=text or "")
        for p in chosen
        for system, text in ((p.a, p.text_a), (p.b, p.text_b))
    ]
    options = replace(how, limit=None, task=how.task or NO_TASK)
    judging = _read(runs, criteria, options, watch)
    items = judging.items
    pairs = [ResponsePair(*both) for both in zip(items[::2], items[1::2], strict=True)]
    systems = dict.fromkeys(run.system for run, _ in items)
    return judging, PairedRuns(tuple(systems), tuple(pairs), {})


async def _estimate(
    judging: PairJudging, material: Sequence[tuple[str, Sequence[Item]]], paired: PairedRuns
) -> CostEstimate:
    """Return what `prefer` would ask."""
    pairs, copies = len(paired.pairs), sum(len(items) for _, items in material[1:])
    about = (
        f"systems: {', '.join(paired.systems)}",
        f"pairs: {pairs} in both orders"
        + (f", and {copies} texts to verify the judge" if copies else "")
        + (f", {judging.repeats} repeats each" if judging.repeats > 1 else ""),
        f"criteria: {', '.join(c.name for c in judging.criteria)}",
    )
    total = CostEstimate(command="prefer", about=about, budget=judging.limits.budget())
    if judging.sends_nothing:
        calls = f"calls: {len(judging.items) * judging.repeats} at most; {judging.local_cost}"
        return replace(total, about=(*about, calls))
    with planned(judging.how.store) as store:
        judge, client = judging.evaluator(store)
        rated = JudgeEvaluator(judge, material, judging.criteria, judging.repeats)
        return await judging.estimate(total, rated, client, store)


def _report(
    judging: Judging,
    rated: JudgeEvaluator,
    result: ExperimentResult | None,
    store: Store,
    paired: PairedRuns,
    recorded: RecordedPairs | None,
) -> PreferenceReport:
    with store.snapshot():
        ratings = load_ratings(
            store,
            rated.source_key,
            run_keys=[view.sha256 for _, view in rated.variants[0][1]],
            criterion_keys=[c.sha256 for c in rated.criteria],
            repeats=rated.repeats,
        )
        usage = store.usage(rated.source_key)
    unfinished, code = how_it_ended(result, "calls not made")
    labels = recorded.labels if recorded else {}
    report = _preferences(
        pair_outcomes(ratings, paired.systems),
        rated.source.model,
        paired.systems,
        notes=(*judging.watch.notes, *_by_rule(ratings), f"spent: {spent(usage)}"),
        unfinished=unfinished,
        left_out=paired.left_out,
        labels=labels,
    )
    return replace(
        report, exit_code=code, data={**report.data, "source": rated.source.model_dump()}
    )


def _by_rule(ratings: Sequence[Rating]) -> list[str]:
    decided = sum(r.status == "degenerate" for r in ratings)
    return [f"{plural(decided, 'judgment')} by rule: an empty response loses"] if decided else []


def _recorded(recorded: RecordedPairs, path: str | Path) -> PreferenceReport:
    """Return the figures of recorded verdicts. Raises InputError without any."""
    outcomes = [pair.outcome() for pair in recorded.pairs]
    if all(o.outcome == "missing" for o in outcomes):
        raise InputError("it has no verdicts; --pairs judges the pairs", str(path))
    own = recorded.format == "JudgeBench"  # elsewhere the label is the verdict itself
    report = _preferences(outcomes, recorded.format, labels=recorded.labels if own else {})
    published = figure_table("published", "as published", recorded.published())
    return replace(report, tables=(*report.tables, published))


def _preferences(
    outcomes: Sequence[PairOutcome],
    judge: str,
    systems: Sequence[str] = (),
    *,
    notes: Sequence[str] = (),
    unfinished: Sequence[str] = (),
    left_out: Mapping[str, int] | None = None,
    labels: Mapping[tuple[str, str], float] | None = None,
) -> PreferenceReport:
    """Return the report of some comparisons; `labels` are the right preferences for a system, by
    run and system."""
    systems = systems or list(dict.fromkeys(n for o in outcomes for n in (o.a, o.b)))
    tables = preference_tables(outcomes, systems)
    if labels:
        labelled = [o for o in outcomes if (o.run, o.a) in labels]
        right = [
            None if o.score is None else float((o.score - 0.5) * (labels[o.run, o.a] - 0.5) > 0)
            for o in labelled
        ]
        share = bounded_interval(by_case(labelled, right), (0.0, 1.0))
        title = "agreement with the labels"
        tables.append(figure_table("labels", title, {"the labelled response wins": share}))
    if left_out:
        tables.append(left_out_table(left_out))
    title = f"{len(systems)} systems compared by {judge}"
    if len(systems) == 2 and outcomes:
        rate = win_rate(outcomes) if len({o.criterion for o in outcomes}) == 1 else None
        title = f"{systems[0]} against {systems[1]}, compared by {judge}"
        title += f": win rate {rate.mean:.2f}" if rate and rate.mean is not None else ""
    return PreferenceReport(
        title=title,
        tables=tuple(tables),
        notes=tuple(notes),
        unfinished=tuple(unfinished),
        data={"systems": list(systems), "left_out": dict(left_out or {})},
        outcomes=tuple(outcomes),
    )
