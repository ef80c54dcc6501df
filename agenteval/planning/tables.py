"""Tables of planning tests and dissections, for terminal, page, JSON and export."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from agenteval.planning import rates
from agenteval.planning.capability import THRESHOLD, Bound, bounds
from agenteval.planning.dissect import STAGES, Dissection
from agenteval.planning.evaluator import Attempt
from agenteval.planning.rates import CaseLabel, LabelShare, SuccessRate
from agenteval.records.table import (
    Cell,
    Column,
    Table,
    cells_of,
    column,
    columns_headed,
    columns_of,
    table_of,
)
from agenteval.stats.interval import Interval

EXTENDED = " (extended)"
_INTERVALS = (
    "95% intervals are Wilson's, over cases: repeated trials of a case do not add to their n."
)
_EXCLUSIVE = "Exclusive: the shares of a system add up to 100%; 95% intervals in brackets."
_EFFORT = "Means are over trials with a log; sums are over all trials."


def planning_tables(
    attempts: Iterable[Attempt], causes: Iterable[CaseLabel] = (), *, threshold: float | None = None
) -> tuple[Table, ...]:
    """Return success by system, then the tables that explain it; empty tables are omitted.

    `causes` are the labels of dissected cases. With a `threshold`, the capability bound comes
    first. If there are base and extended cases, each system has a row for each kind, because a
    combined rate of easy and hard cases would be meaningless.
    """
    trials, labelled = by_kind(tuple(attempts), tuple(causes))
    features = {name: rates.success_rates(trials, rates.FEATURES[name]) for name in rates.FEATURES}
    tables = [
        table_of(
            SuccessRate,
            "systems",
            "Success by system",
            rates.success_rates(trials),
            notes=[_INTERVALS],
        ),
        _groups("actions", features["actions"]),
        _pairs(trials),
        _groups("constraints", features["constraints"]),
        _groups("sub-sentences", features["sub-sentences"]),
        _groups("words", rates.by_words(trials)),
        _groups("topic", features["topic"]),
        _shares(
            "error", "Types of errors, as shares of a system's errors", rates.error_shares(trials)
        ),
        _shares(
            "cause", "Causes, as shares of a system's dissected cases", rates.cause_shares(labelled)
        ),
        table_of(
            rates.RepeatedTrials, "repeated", "Repeated trials", rates.repeated(trials), detail=True
        ),
        table_of(
            rates.Effort,
            "effort",
            "Cost of the trials",
            rates.effort(trials),
            notes=[_EFFORT],
            detail=True,
        ),
    ]
    bound = bounds(features["actions"], THRESHOLD if threshold is None else threshold)
    tables.insert(3 if threshold is None else 0, _bounds(bound, threshold))
    always = ("systems", "effort")
    return tuple(table for table in tables if table.rows or table.key in always)


@dataclass(frozen=True)
class _DissectionColumns:
    case: str = column("case")
    system: str = column("system")
    cause: str = column("cause")
    also: str = column("also seen", hint="other stages in which the agent succeeded")


@dataclass(frozen=True)
class _TryColumns:
    unknown: int = column("no verdict", "count", "tries without a verdict")
    runs: int = column("runs", "count", "runs of the agent")


def dissection_tables(dissections: Sequence[Dissection]) -> tuple[Table, ...]:
    """Return the causes of failures with their shares, and the stages of each case."""
    if not dissections:
        return ()
    causes = rates.cause_shares([CaseLabel(d.case, d.system, d.label) for d in dissections])
    title = "Causes of failures, as shares of the dissected cases"
    stages_hint = "successes among the tries with a verdict"
    columns = (
        *columns_of(_DissectionColumns),
        *columns_headed({name: name for name in STAGES}, hint=stages_hint),
        *columns_of(_TryColumns),
    )
    rows = []
    for dissection in dissections:
        stages: dict[str, Cell] = {
            stage.name: f"{stage.passes}/{len(stage.tries) - stage.unknown}"
            for stage in dissection.stages
        }
        also = ", ".join(name for name in dissection.labels if name != dissection.label)
        rows.append(cells_of(dissection, columns, cause=dissection.label, also=also, **stages))
    cases = Table("cases", "Dissected cases", columns, tuple(rows), detail=True)
    return replace(_shares("cause", title, causes), detail=False), cases


def by_kind(
    attempts: tuple[Attempt, ...], causes: tuple[CaseLabel, ...]
) -> tuple[tuple[Attempt, ...], tuple[CaseLabel, ...]]:
    """Return trials and causes; if there are base and extended cases, systems of the latter are
    renamed."""
    extended = {a.case.id for a in attempts if a.case.durations is not None}
    if not extended or all(a.case.id in extended for a in attempts):
        return attempts, causes
    return (
        tuple(
            replace(a, system=a.system + EXTENDED) if a.case.id in extended else a for a in attempts
        ),
        tuple(replace(c, system=c.system + EXTENDED) if c.case in extended else c for c in causes),
    )


def _bounds(rows: Sequence[Bound], threshold: float | None) -> Table:
    share = 100 * (THRESHOLD if threshold is None else threshold)
    return table_of(
        Bound,
        "capability",
        f"Capability bound: most actions with a success of {share:g}%",
        rows,
        notes=[f"{row.system}: {row.sentence}" for row in rows],
        detail=threshold is None,
    )


def _groups(name: str, groups: Sequence[SuccessRate]) -> Table:
    """Return success by groups of cases; empty if all cases are in one group, except by number of
    actions."""
    columns = (Column("group", name), *columns_of(SuccessRate))
    several = name == "actions" or len({row.group for row in groups}) > 1
    rows = tuple(cells_of(row, columns) for row in groups if several)
    title = f"Success by {'' if name == 'topic' else 'number of '}{name}"
    return Table(f"by-{name}", title, columns, rows, group="system", detail=True)


@dataclass(frozen=True)
class _SystemPairColumns:
    first: str = column("first")
    second: str = column("second")
    difference: Interval = column("first less\nsecond", "signed", "of the shares of correct plans")
    only_first: int = column("only first\ncorrect", "count")
    only_second: int = column("only second\ncorrect", "count")
    cases: int = column("cases", "count", "with a verdict on both")
    left_out: int = column("left out", "count", "cases with a verdict on one only")
    p: float | None = column("p", "p")
    p_holm: float | None = column("p\ncorrected", "p", "Holm, over all pairs")
    test: str = column("test")


def _pairs(attempts: Sequence[Attempt]) -> Table:
    rows = [
        (
            pair,
            {
                "cases": pair.tasks,
                "p_holm": pair.corrected,
                "test": pair.method + (f"; {pair.reason}" if pair.reason else ""),
            },
        )
        for pair in rates.system_pairs(attempts)
    ]
    return table_of(_SystemPairColumns, "pairs", "Two systems on the same cases", rows, detail=True)


@dataclass(frozen=True)
class _ShareColumns:
    system: str = column("system")
    count: int = column("count", "count")
    share: Interval = column("share", "share")
    cases: int = column("cases", "count", "distinct cases among all (the units of the interval)")


def _shares(label: str, title: str, shares: Sequence[LabelShare]) -> Table:
    columns = (Column(label, label), *columns_of(_ShareColumns))
    rows = tuple(
        cells_of(
            row, columns, **{label: row.label.replace("_", " "), "cases": row.share.n_clusters}
        )
        for row in shares
    )
    return Table(f"{label}s", title, columns, rows, (_EXCLUSIVE,), group="system", detail=True)
