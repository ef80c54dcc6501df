"""Results of planning tests and dissections as tables for terminal, page, JSON and export."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from agenteval.planning import rates
from agenteval.planning.capability import THRESHOLD, Bound, bounds
from agenteval.planning.dissect import STAGES, Dissection
from agenteval.planning.evaluator import Attempt
from agenteval.planning.rates import CaseLabel, LabelShare, SuccessRate
from agenteval.records.table import Cell, Column, Estimate, Table, cells_of, columns_of, table_of

EXTENDED = " (extended)"
_SYSTEM = Column("system", "system")
_INTERVALS = (
    "Intervals of 95% are Wilson's, over cases: repeated trials of a case do not add to their n."
)
_EXCLUSIVE = "Exclusive: the shares of a system add up to 100%; brackets hold 95% intervals."
_EFFORT = "Means are over trials with a log; sums are over all trials."


def planning_tables(
    attempts: Iterable[Attempt], causes: Iterable[CaseLabel] = (), *, threshold: float | None = None
) -> tuple[Table, ...]:
    """Return success by system, then the tables that explain it; empty tables are left out.

    `causes` are the labels of dissected cases. With a `threshold` for the capability bound, the
    bound comes first. If there are base and extended cases, each system has a row for each kind,
    because a common rate of easy and hard cases would mean nothing.
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
            "What the trials took",
            rates.effort(trials),
            notes=[_EFFORT],
            detail=True,
        ),
    ]
    bound = bounds(features["actions"], THRESHOLD if threshold is None else threshold)
    tables.insert(3 if threshold is None else 0, _bounds(bound, threshold))
    always = ("systems", "effort")
    return tuple(table for table in tables if table.rows or table.key in always)


def dissection_tables(dissections: Sequence[Dissection]) -> tuple[Table, ...]:
    """Return the causes of failures with their shares, and the stages of each case."""
    if not dissections:
        return ()
    causes = rates.cause_shares([CaseLabel(d.case, d.system, d.label) for d in dissections])
    title = "Causes of failures, as shares of the dissected cases"
    columns = (
        Column("case", "case"),
        _SYSTEM,
        Column("cause", "cause"),
        Column("also", "also seen", hint="other stages in which the agent succeeded"),
        *(Column(name, name, hint="successes of the tries with a verdict") for name in STAGES),
        Column("unknown", "no verdict", "count", "tries without a verdict"),
        Column("runs", "runs", "count", "runs of the agent"),
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
    """Return trials and causes; where there are base and extended cases, systems of extended ones
    are renamed."""
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
    """Success by groups of cases; without rows where all cases are of one group, except that the
    number of actions is always shown."""
    columns = (Column("group", name), *columns_of(SuccessRate))
    several = name == "actions" or len({row.group for row in groups}) > 1
    rows = tuple(cells_of(row, columns) for row in groups if several)
    title = f"Success by {'' if name == 'topic' else 'number of '}{name}"
    return Table(f"by-{name}", title, columns, rows, group="system", detail=True)


def _pairs(attempts: Sequence[Attempt]) -> Table:
    columns = (
        Column("first", "first"),
        Column("second", "second"),
        Column("difference", "first less\nsecond", "signed", "of the shares of right plans"),
        Column("only_first", "only first\nright", "count"),
        Column("only_second", "only second\nright", "count"),
        Column("cases", "cases", "count", "with a verdict on both"),
        Column("left_out", "left out", "count", "cases with a verdict on one only"),
        Column("p", "p", "p"),
        Column("p_holm", "p\ncorrected", "p", "Holm, over all pairs"),
        Column("test", "test"),
    )
    rows = tuple(
        cells_of(
            pair,
            columns,
            cases=pair.tasks,
            p_holm=pair.corrected,
            test=pair.method + (f"; {pair.reason}" if pair.reason else ""),
        )
        for pair in rates.system_pairs(attempts)
    )
    return Table("pairs", "Two systems on the same cases", columns, rows, detail=True)


def _shares(label: str, title: str, shares: Sequence[LabelShare]) -> Table:
    columns = (
        Column(label, label),
        _SYSTEM,
        Column("count", "count", "count"),
        Column("share", "share", "share"),
        Column("cases", "cases", "count", "different cases among all: the units of the interval"),
    )
    rows = tuple(
        {
            "system": row.system,
            label: row.label.replace("_", " "),
            "count": row.count,
            "share": Estimate.of(row.share),
            "cases": row.share.n_clusters,
        }
        for row in shares
    )
    return Table(f"{label}s", title, columns, rows, (_EXCLUSIVE,), group="system", detail=True)
