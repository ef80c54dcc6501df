"""The tables of a comparison, and warnings about it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from agenteval.analysis.compared_ratings import ComparedRatings
from agenteval.analysis.comparison import Comparison, ComparisonRow
from agenteval.analysis.means import cases_answered_twice, lines_on_failed_runs
from agenteval.analysis.table_parts import CriterionColumns, criterion_cells
from agenteval.records.table import Table, column, shown, table_of
from agenteval.stats.interval import Interval
from agenteval.stats.scores import ORIGINAL, ScoreTable
from agenteval.text import plural

_JUDGES = {"better": "higher", "worse": "lower"}  # a judge that rates higher is not better
_FEW = 3  # cases named in the first table
_UNEVEN = 0.05  # warn if the shares of missing ratings differ by more


@dataclass(frozen=True)
class _VerdictColumns(CriterionColumns):
    a: float | None = column("A", "number", "mean of A, 0 worst, 1 best")
    b: float | None = column("B", "number", "mean of B")
    difference: Interval = column("B − A [95%]", "signed", "share of the scale, paired by case")
    n: int = column("pairs", "count", "cases with a value on both sides")
    verdict: str = column("verdict\non B")


@dataclass(frozen=True)
class _CaseColumns(CriterionColumns):
    case: str = column("case", hidden=True)
    run: str = column("run of B")
    a: float = column("A", "number")
    b: float = column("B", "number")
    difference: float = column("B − A", "signed")


@dataclass(frozen=True)
class _TestColumns(CriterionColumns):
    wins: int = column("wins", "count", "cases where B is higher")
    ties: int = column("ties", "count")
    losses: int = column("losses", "count")
    p: float | None = column("p", "p", "two-sided")
    p_holm: float | None = column("p\nHolm", "p", "corrected for all rows that could differ")
    p_regression: float | None = column(
        "p of a\nregression", "p", "one-sided: B is lower by more than the margin"
    )
    p_regression_holm: float | None = column("Holm", "p")
    correlation: float | None = column("r of\npairs", "number")
    detectable: float | None = column("detectable\nat 80%", "number", "true difference that shows")
    cases_to_decide: int | None = column("cases to\ndecide", "count")
    lost: int = column("lost to\nfailures", "count", "common cases without a pair")
    inapplicable: int = column("without\nvalue", "count", "common cases without a pair")
    test: str = column("test")
    reason: str = column("reason")


@dataclass(frozen=True)
class _SideColumns(CriterionColumns):
    side: str = column("side")
    mean: Interval = column("mean [95%]", "number")
    ratings: int = column("ratings", "count")
    rated: int = column("rated", "count")
    not_applicable: int = column("not\napplicable", "count")
    failures: str = column("failures")
    labels: str = column("labels")


def verdict_of(comparison: Comparison, row: ComparisonRow) -> str:
    """Return the verdict on B in words; a judge is higher or lower, not better or worse."""
    word: str = row.verdict
    return _JUDGES.get(word, word) if comparison.pair_by == "run" else word


def comparison_tables(pair: ComparedRatings, comparison: Comparison) -> tuple[Table, ...]:
    """Return the verdicts, the cases that differ, the tests, and both sides."""
    runs = _runs_of_cases(pair.second)
    rows = [(row, criterion_cells(row.criterion, pair.criteria)) for row in comparison.rows]
    verdicts = [
        (
            row,
            {
                **cells,
                "a": row.first.mean,
                "b": row.second.mean,
                "verdict": verdict_of(comparison, row),
            },
        )
        for row, cells in rows
    ]
    cases = [(p, {**cells, "run": runs[p.case]}) for row, cells in rows for p in row.pairs]
    sides = [
        (
            counts,
            {
                **cells,
                "side": side,
                "mean": mean,
                "failures": ", ".join(f"{s} {n}" for s, n in counts.failures.items()),
                "labels": ", ".join(f"{label} {n}" for label, n in counts.labels.items()),
            },
        )
        for row, cells in rows
        for side, mean, counts in zip("AB", (row.first, row.second), row.counts, strict=True)
    ]
    within = {
        "case": "runs and repeats averaged",
        "system": "per system, repeats averaged; then the mean over systems",
        "run": "the same runs, repeats averaged",
    }[comparison.pair_by]
    reasons: dict[tuple[str, str], list[str]] = {}
    for row in comparison.rows:
        verdict = verdict_of(comparison, row), row.reason
        reasons.setdefault(verdict, []).append(pair.name_of(row.criterion))
    notes = [f"{', '.join(of)}: {verdict}, {why}" for (verdict, why), of in reasons.items()]
    notes += [
        f"{pair.name_of(row.criterion)}: {_largest(row, runs)}"
        for row in comparison.rows
        if row.differs
    ]
    notes += [comparison.about_tests(pair.name_of), *_missing(pair, comparison), *pair.about]
    return (
        table_of(
            _VerdictColumns,
            "rows",
            f"{len(comparison.common)} common cases, one pair each ({within})",
            verdicts,
            notes=notes,
        ),
        table_of(
            _CaseColumns,
            "cases",
            "Cases that differ, largest difference first",
            cases,
            group="criterion",
            detail=True,
        ),
        table_of(_TestColumns, "tests", "Tests", rows, detail=True),
        table_of(_SideColumns, "sides", "Both sides on the common cases", sides, detail=True),
    )


def comparison_warnings(pair: ComparedRatings, comparison: Comparison) -> tuple[str, ...]:
    """Return warnings about the comparison."""
    lines = [f"not compared: {pair.name_of(c)}: {why}" for c, why in pair.left_out.items()]
    if pair.other_rubrics:
        count = plural(pair.other_rubrics, "case")
        lines.append(f"rubric: {count} left out; their rubrics differ between A and B")
    sides_of = {"A": pair.first.of(variant=ORIGINAL), "B": pair.second.of(variant=ORIGINAL)}
    for side, cases in (("A", comparison.only_first), ("B", comparison.only_second)):
        if cases:
            runs = _runs_of_cases(sides_of[side])
            # a store names cases by a hash
            some = ", ".join(case if len(case) <= 24 else runs[case] for case in cases[:3])
            more = ", ..." if len(cases) > 3 else ""
            lines.append(f"omitted: {len(cases)} cases only in {side} ({some}{more})")
        lines += [f"{side}: {line}" for line in lines_on_failed_runs(sides_of[side])]
        failed = sides_of[side].runs_by_status("no_answer:")
        if names := sorted({name for runs in failed.values() for name in runs}):
            more = f" and {len(names) - 20} more" if names[20:] else ""
            lines.append(f"{side}: missing because the run failed: {', '.join(names[:20])}{more}")
    if comparison.unmatched:
        lines.append(
            f"omitted: {comparison.unmatched} {comparison.pair_by}s of common cases that only one "
            "side has"
        )
    if comparison.pair_by != "run":
        entries = pair.first.entries() | pair.second.entries()
        answers = sorted((entry.system or "", entry.case, entry.run) for entry in entries)
        lines += cases_answered_twice(answers)
    least = comparison.options.min_cases
    if len(comparison.common) < least:
        lines.append(f"{len(comparison.common)} common cases; at least {least} are needed")
    for row in comparison.rows:
        missing = [1 - c.rated / c.ratings if c.ratings else 1.0 for c in row.counts]
        if row.lost and abs(missing[0] - missing[1]) > _UNEVEN:
            lines.append(
                f"{pair.name_of(row.criterion)}: {missing[0]:.0%} of A and {missing[1]:.0%} of B "
                "are not rated; the missing ratings may differ from the rest"
            )
    return tuple(lines)


def _runs_of_cases(table: ScoreTable) -> dict[str, str]:
    """Return a readable name for each case: its run, or the first of several."""
    runs: dict[str, set[str]] = {}
    for entry in table.entries():
        runs.setdefault(entry.case, set()).add(entry.run)
    return {
        case: min(runs_of_case)
        + (f" and {len(runs_of_case) - 1} more" if len(runs_of_case) > 1 else "")
        for case, runs_of_case in runs.items()
    }


def _largest(row: ComparisonRow, runs: Mapping[str, str]) -> str:
    """Return a line about the cases that changed most in the direction of the difference."""
    sign = 1 if (row.difference.mean or 0) > 0 else -1
    moved = [pair for pair in row.pairs if pair.difference * sign > 0]
    some = ", ".join(f"{runs[p.case]} {shown(p.difference, 'signed')}" for p in moved[:_FEW])
    more = ", ... (--all lists them)" if len(moved) > _FEW else ""
    return f"{'higher' if sign > 0 else 'lower'} in {len(moved)} of {row.n} cases: {some}{more}"


def _missing(pair: ComparedRatings, comparison: Comparison) -> list[str]:
    """Return lines about nominal labels and missing values; criteria with the same remark share a
    line."""
    lines = []
    missing: dict[tuple[str, str], list[str]] = {}
    for row in comparison.rows:
        name = pair.name_of(row.criterion)
        sides_by_counts: dict[str, list[str]] = {}
        for side, counts in zip("AB", row.counts, strict=True):
            if row.unordered:
                listed = ", ".join(f"{label} {n}" for label, n in counts.labels.items())
                lines.append(f"counted: {name}, {side}: {listed or 'none'}")
            if counts.rated < counts.ratings:
                kinds = [f"{n} {s.partition(':')[2] or s}" for s, n in counts.failures.items()]
                if counts.not_applicable:
                    kinds.append(f"{counts.not_applicable} not applicable")
                counted = f"{', '.join(kinds)} of {counts.ratings}"
                sides_by_counts.setdefault(counted, []).append(side)
        for counted, of_sides in sides_by_counts.items():
            missing.setdefault((" and ".join(of_sides), counted), []).append(name)
    return lines + [
        f"not rated: {', '.join(of)}, {side}: {counted}" for (side, counted), of in missing.items()
    ]
