"""What planning tests and dissections have shown, as tables for terminal, page, JSON and export."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from agenteval.planning import tallies
from agenteval.planning.capability import THRESHOLD, bounds
from agenteval.planning.dissect import STAGES, Dissection
from agenteval.planning.evaluator import Attempt
from agenteval.planning.tallies import CaseLabel, LabelShares, SuccessTally
from agenteval.records.table import Cell, Column, Estimate, Table

EXTENDED = " (extended)"
_SYSTEM = Column("system", "system")
_RATES = (
    Column("success", "success", "share", "share of right plans among trials with a verdict"),
    Column("right", "right", "count", "trials whose plan is right"),
    Column("trials", "trials", "count", "trials with a verdict"),
    Column("cases", "cases", "count", "different cases among them: the units of the interval"),
    Column("failures", "no verdict", "count", "the endpoint or adapter failed: in no rate"),
    Column("guess", "random\norders", "share", "right plans among random orders of all tools"),
)
_INTERVALS = (
    "Intervals of 95% are Wilson's, over cases: repeated trials of a case do not add to their n."
)
_EXCLUSIVE = "Exclusive: the shares of a system add up to 100%; brackets hold 95% intervals."


def planning_tables(
    attempts: Iterable[Attempt],
    causes: Iterable[CaseLabel] = (),
    *,
    threshold: float | None = None,
) -> tuple[Table, ...]:
    """Return success by system, then the tables that explain it; empty tables are left out.

    `causes` are the labels of dissected cases. With a `threshold` for the capability bound, the
    bound comes first. If there are base and extended cases, each system has a row for each kind,
    because a common rate of easy and hard cases would mean nothing.
    """
    trials, labelled = by_kind(tuple(attempts), tuple(causes))
    by_actions = tallies.tallies(trials, tallies.actions)
    bound = _bounds(by_actions, threshold)
    made = [
        bound if threshold is not None else None,
        _systems(trials),
        _groups("actions", by_actions, always=True),
        _pairs(trials),
        bound if threshold is None else None,
        _groups("constraints", tallies.tallies(trials, tallies.constraints)),
        _groups("sub-sentences", tallies.tallies(trials, tallies.sub_sentences)),
        _groups("words", tallies.tallies(trials, tallies.word_bins(trials))),
        _groups("topic", tallies.tallies(trials, tallies.topic)),
        _shares(
            "errors",
            "Types of errors, as shares of a system's errors",
            "error",
            tallies.errors(trials),
        ),
        _shares(
            "causes",
            "Causes, as shares of a system's dissected cases",
            "cause",
            tallies.causes(labelled),
        ),
        _repeated(trials),
        _effort(trials),
    ]
    return tuple(table for table in made if table is not None)


def dissection_tables(dissections: Sequence[Dissection]) -> tuple[Table, ...]:
    """The causes of failures with their shares; then each case with the successes of its stages."""
    if not dissections:
        return ()
    causes = tallies.causes([CaseLabel(d.case, d.system, d.label) for d in dissections])
    shares = _shares(
        "causes",
        "Causes of failures, as shares of the dissected cases",
        "cause",
        causes,
        detail=False,
    )
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
        row: dict[str, Cell] = {
            "case": dissection.case,
            "system": dissection.system,
            "cause": dissection.label,
            "also": ", ".join(name for name in dissection.labels if name != dissection.label),
            "unknown": dissection.unknown,
            "runs": dissection.runs,
        }
        for stage in dissection.stages:
            row[stage.name] = f"{stage.passes}/{len(stage.tries) - stage.unknown}"
        rows.append(row)
    cases = Table("cases", "Dissected cases", columns, tuple(rows), detail=True)
    return (cases,) if shares is None else (shares, cases)


def by_kind(
    attempts: tuple[Attempt, ...], causes: tuple[CaseLabel, ...]
) -> tuple[tuple[Attempt, ...], tuple[CaseLabel, ...]]:
    """Trials and causes; of base and extended cases together, the latter under a name of their
    own."""
    extended = {a.case.id for a in attempts if a.case.durations is not None}
    if not extended or all(a.case.id in extended for a in attempts):
        return attempts, causes
    return (
        tuple(
            replace(a, system=a.system + EXTENDED) if a.case.id in extended else a for a in attempts
        ),
        tuple(replace(c, system=c.system + EXTENDED) if c.case in extended else c for c in causes),
    )


def _rates(tally: SuccessTally) -> dict[str, Cell]:
    return {
        "system": tally.system,
        "success": Estimate.of(tally.rate),
        "right": tally.passes,
        "trials": tally.rate.n,
        "cases": tally.rate.n_clusters or 0,
        "failures": tally.failures,
        "guess": tally.guess,
    }


def _systems(attempts: Sequence[Attempt]) -> Table:
    rows = tuple(_rates(tally) for tally in tallies.tallies(attempts))
    return Table("systems", "Success by system", (_SYSTEM, *_RATES), rows, (_INTERVALS,))


def _bounds(by_actions: Sequence[SuccessTally], threshold: float | None) -> Table | None:
    known = bounds(by_actions, THRESHOLD if threshold is None else threshold)
    if not known:
        return None
    columns = (
        _SYSTEM,
        Column(
            "bound",
            "actions",
            "count",
            "most actions, from the fewest tested on without a gap, with that success",
        ),
        Column("below", "first\nbelow", "count", "fewest actions with less"),
        Column("least", "at least", "count", "the bound by the lower ends of the intervals"),
        Column("most", "at most", "count", "the bound by their upper ends"),
        Column("certain", "certain", hint="no interval leaves it open"),
    )
    rows = tuple(
        {
            "system": b.system,
            "bound": b.found.last,
            "below": b.found.below,
            "least": b.least.last,
            "most": b.most.last,
            "certain": b.certain,
        }
        for b in known
    )
    title = f"Capability bound: most actions with a success of {100 * known[0].threshold:g}%"
    notes = tuple(f"{b.system}: {b.sentence}" for b in known)
    return Table("capability", title, columns, rows, notes, detail=threshold is None)


def _groups(name: str, groups: Sequence[SuccessTally], *, always: bool = False) -> Table | None:
    """Success by groups of cases; None where all cases are of one group."""
    if not groups or (len({t.group for t in groups}) < 2 and not always):
        return None
    rows = tuple({"group": t.group, **_rates(t)} for t in groups)
    title = f"Success by {'' if name == 'topic' else 'number of '}{name}"
    columns = (Column("group", name), _SYSTEM, *_RATES)
    return Table(f"by-{name}", title, columns, rows, group="system", detail=True)


def _pairs(attempts: Sequence[Attempt]) -> Table | None:
    pairs = tallies.paired(attempts)
    if not pairs:
        return None
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
        {
            "first": p.first,
            "second": p.second,
            "difference": Estimate.of(p.difference),
            "only_first": p.only_first,
            "only_second": p.only_second,
            "cases": p.tasks,
            "left_out": p.left_out,
            "p": p.p,
            "p_holm": p.corrected,
            "test": p.method + (f"; {p.reason}" if p.reason else ""),
        }
        for p in pairs
    )
    return Table("pairs", "Two systems on the same cases", columns, rows, detail=True)


def _shares(
    key: str, title: str, label: str, systems: Sequence[LabelShares], *, detail: bool = True
) -> Table | None:
    if not systems:
        return None
    columns = (
        Column(label, label),
        _SYSTEM,
        Column("count", "count", "count"),
        Column("share", "share", "share"),
        Column("cases", "cases", "count", "different cases among all: the units of the interval"),
    )
    rows = tuple(
        {
            "system": system.system,
            label: part.label.replace("_", " "),
            "count": part.count,
            "share": Estimate.of(part.share),
            "cases": part.share.n_clusters,
        }
        for system in systems
        for part in system.parts
    )
    return Table(key, title, columns, rows, (_EXCLUSIVE,), group="system", detail=detail)


def _repeated(attempts: Sequence[Attempt]) -> Table | None:
    rows = tuple(tallies.repeated(attempts))
    if not rows:
        return None
    columns = (
        _SYSTEM,
        Column("k", "k", "count"),
        Column("all_right", "all k right,\npass^k", "share"),
        Column("one_right", "one of k right,\npass@k", "share"),
        Column("cases", "cases", "count", "with k trials or more"),
        Column("left_out", "left out", "count", "cases with fewer than k trials with a verdict"),
    )
    return Table("repeated", "Repeated trials", columns, rows, detail=True)


def _effort(attempts: Sequence[Attempt]) -> Table:
    columns = (
        _SYSTEM,
        Column("seconds", "seconds", "seconds", "mean per trial"),
        Column("turns", "turns", "seconds", "mean per trial"),
        Column("plans", "plans", "number", "attempts at a plan: 1 + restarts; mean per trial"),
        Column("tokens", "tokens", "count", "mean per trial, where the endpoint states them"),
        Column("stated", "stated\nfor", "count", "trials whose tokens are known"),
        Column("trials", "trials", "count"),
        Column("requests", "requests", "count", "in all"),
        Column("total_seconds", "seconds\nin all", "seconds"),
        Column("cost", "cost\nin all", "money", "in the currency of the prices given"),
    )
    rows = tuple(tallies.effort(attempts))
    note = "Means are over trials with a log; sums are over all trials."
    return Table("effort", "What the trials took", columns, rows, (note,), detail=True)
