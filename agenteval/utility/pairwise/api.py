"""Pairwise judging: `prefer`, and the stored figures of one judge."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Unpack

from agenteval.analysis.gates import unscored_gate
from agenteval.analysis.means import load_ratings
from agenteval.analysis.rating_sources import PAIRWISE, latest_source
from agenteval.analysis.tables import spent
from agenteval.cli.options import read_options
from agenteval.cli.running import Stopped, Watch, how_it_ended, opened, planned, synchronous
from agenteval.engine import CostEstimate, ExperimentResult
from agenteval.errors import InputError
from agenteval.stats.scores import ORIGINAL
from agenteval.store import Store
from agenteval.store.experiments import unfinished_of
from agenteval.text import plural
from agenteval.utility.evaluator import Item, JudgeEvaluator
from agenteval.utility.judging import Criteria, Runs, warn_of_versions
from agenteval.utility.options import JudgeKeywords
from agenteval.utility.pairwise.input import pairs_of_file, pairs_of_systems
from agenteval.utility.pairwise.judge import PairJudging
from agenteval.utility.pairwise.options import PreferOptions
from agenteval.utility.pairwise.pairs import SEPARATOR, PairedRuns, ResponsePair, pair_outcomes
from agenteval.utility.pairwise.readers import RecordedPairs, read_pairs
from agenteval.utility.pairwise.tables import PreferenceReport, figure_table, preference_report
from agenteval.utility.pairwise.verify import pairs_to_verify, with_verdict


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
    if sum(source is not None for source in (sides or runs, pairs, verdicts)) > 1:
        raise InputError("give systems, --pairs or --verdicts, only one of them", "prefer")
    if verdicts is not None:
        if how.judge is not None or verify:
            option = "--verify" if verify else "--model"
            raise InputError("no judge is asked with --verdicts; use --pairs", option)
        return _recorded(Path(verdicts))
    how.check()
    watch = Watch(how.notify, how.progress)
    recorded = None if pairs is None else read_pairs(Path(pairs))
    if recorded is None:
        judging, paired = pairs_of_systems(sides, runs, criteria, how, watch)
    else:
        judging, paired = pairs_of_file(recorded, criteria, how, watch)
    by_variant: dict[str, Sequence[ResponsePair]] = {ORIGINAL: paired.pairs}
    if verify:
        by_variant |= pairs_to_verify(paired.pairs, perturbations, share, how.seed, watch)
    material = [
        (variant, [pair.shown(swapped=swapped) for pair in shown for swapped in pair.orders])
        for variant, shown in by_variant.items()
    ]
    judging = replace(judging, items=tuple(item for _, items in material for item in items))
    if how.dry_run:
        estimate = await _estimate(judging, material, paired)
        return PreferenceReport(title="prefer", tables=(), outcomes=(), estimate=estimate)
    with opened(how.store) as store, judging.executor:
        warn_of_versions(store, judging.items, watch)
        judge, client = judging.evaluator(store)
        rated = JudgeEvaluator(judge, material, judging.criteria, how.repeats)
        try:
            result = await judging.run(rated, client, store)
        except asyncio.CancelledError:
            raise Stopped(_report(rated, None, store, paired, recorded)) from None
        report = _report(rated, result, store, paired, recorded)
        if verify and result.stopped is None:
            report = with_verdict(report, by_variant, rated, store, judging.task.name)
    missing = sum(o.outcome == "missing" for o in report.outcomes)
    gate = unscored_gate(len(report.outcomes), missing, max_unscored, "comparisons have no result")
    return replace(report, notes=(*watch.notes, *report.notes)).gated(gate)


prefer = synchronous(aprefer)


def preferences(
    store: str | Path | Store | None = None, *, source: str | None = None
) -> PreferenceReport:
    """Return the stored comparisons of one judge (by the start of its hash; default: the latest
    judge of pairs) as `prefer` does, systems in the order in which they were first compared. Raises
    InputError and StoreError."""
    with opened(store, create=False) as opened_store, opened_store.snapshot():
        judges = [key for key, s in opened_store.sources() if s.evaluator == PAIRWISE]
        if source is None and not judges:
            raise InputError("the store has no comparisons yet; run `agenteval prefer`", "--store")
        key, record = latest_source(opened_store, source or judges[-1])
        if record.evaluator != PAIRWISE:
            raise InputError(f"{record.model} rates single runs: `agenteval show`", "--source")
        judged = opened_store.judged(key, variant=ORIGINAL)
        shown = [run["system"] for k, run in opened_store.items().items() if k in judged]
        systems = list(dict.fromkeys(name for both in shown for name in both.split(SEPARATOR)))
        outcomes = pair_outcomes(load_ratings(opened_store, key), systems)
        report = preference_report(outcomes, record.model, systems)
        unfinished = tuple(open_.line for open_ in unfinished_of(opened_store, [key]))
        stored = opened_store.verdict_on(key)
    verdict = "the judge was not verified: run `agenteval prefer --verify`"
    if stored is not None:
        verdict = f"verification of the judge: {stored.result.judge.verdict}"
    judge = None if stored is None else stored.result.judge
    return replace(report, judge=judge, notes=(verdict,), unfinished=unfinished)


async def _estimate(
    judging: PairJudging, material: Sequence[tuple[str, Sequence[Item]]], paired: PairedRuns
) -> CostEstimate:
    """Return what `prefer` would ask."""
    copies = sum(len(items) for _, items in material[1:])
    about = (
        f"systems: {', '.join(paired.systems)}",
        f"pairs: {len(paired.pairs)} in both orders, repeats: {judging.repeats}"
        + (f"; to verify the judge: {copies} texts" if copies else ""),
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
    rated: JudgeEvaluator,
    result: ExperimentResult | None,
    store: Store,
    paired: PairedRuns,
    recorded: RecordedPairs | None,
) -> PreferenceReport:
    """Return the report; `result` is None after an interrupt."""
    with store.snapshot():
        ratings = load_ratings(
            store,
            rated.source_key,
            run_keys=[view.sha256 for _, view in rated.variants[0][1]],
            criterion_keys=[c.sha256 for c in rated.criteria],
            repeats=rated.repeats,
        )
        usage = store.usage(rated.source_key)
    labels = {} if recorded is None else recorded.labels
    outcomes = pair_outcomes(ratings, paired.systems)
    report = preference_report(outcomes, rated.source.model, paired.systems, labels)
    unfinished, code = how_it_ended(result, "calls not made")
    by_rule = sum(r.status == "degenerate" for r in ratings)
    notes = [
        f"not compared: {both}: "
        + "; ".join(f"{reason} ({plural(n, 'case')})" for reason, n in reasons.items())
        for both, reasons in paired.left_out.items()
    ]
    notes += [f"{plural(by_rule, 'judgment')} by rule: an empty response loses"] if by_rule else []
    return replace(
        report,
        notes=(*notes, f"spent: {spent(usage)}"),
        unfinished=unfinished,
        exit_code=code,
        data={
            **report.data,
            "left_out": {
                f"{both}: {reason}": n
                for both, reasons in paired.left_out.items()
                for reason, n in reasons.items()
            },
            "source": rated.source.model_dump(),
            "usage": usage.model_dump(),
        },
    )


def _recorded(path: Path) -> PreferenceReport:
    """Return the figures of recorded verdicts. Raises InputError without any."""
    recorded = read_pairs(path)
    outcomes = [pair.outcome() for pair in recorded.pairs]
    if all(o.outcome == "missing" for o in outcomes):
        raise InputError("it has no verdicts; --pairs judges the pairs", str(path))
    labels = recorded.labels if recorded.format == "JudgeBench" else {}  # else the verdicts
    report = preference_report(outcomes, recorded.format, labels=labels)
    published = figure_table("published", "as published", recorded.published())
    return replace(report, tables=(*report.tables, published))
