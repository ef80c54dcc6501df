"""What `compare` prints: figures per criterion, verdicts with reasons, gates; the same as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from agenteval.cli.console import clean, out
from agenteval.cli.grid import Column, Grid, print_grids
from agenteval.cli.grid import Row as GridRow
from agenteval.trust.means import cases_answered_twice

if TYPE_CHECKING:
    from agenteval.cli.compare_sides import Sides
    from agenteval.stats import Interval
    from agenteval.stats.scores import ScoreTable
    from agenteval.trust.comparison import Comparison, Counts, Row
    from agenteval.trust.gates import Gate

_COLOURS = {
    "better": "green", "higher": "green", "worse": "red", "lower": "red", "no difference": "cyan",
    "identical": "cyan", "cannot tell": "yellow", "undecided": "yellow", "met": "green",
    "missed": "red",
}  # fmt: skip
_JUDGES = {"better": "higher", "worse": "lower"}  # a judge that rates higher is not better for it
_UNEVEN = 0.05  # difference of the shares not rated that is worth a warning


def print_comparison(
    sides: Sides, comparison: Comparison, gates: Sequence[Gate], *, undecided_passes: bool = False
) -> None:
    """Head, figures, verdicts with the data behind them, gates."""
    _head(sides, comparison)
    print_grids(_figures(comparison), _verdicts(comparison))
    _not_rated(comparison)
    for row in comparison.rows:
        word = _coloured(verdict(comparison, row))
        out().print(f"{word} [bold]{clean(row.criterion)}[/bold]: {clean(row.reason)}")
    _gates(gates, undecided_passes=undecided_passes)


def _gates(gates: Sequence[Gate], *, undecided_passes: bool) -> None:
    """What a value was asked of, fails or is undecided, line by line; what passes by name."""
    passed = [g for g in gates if g.name == "regression" and g.outcome == "met"]
    for gate in gates:
        if gate not in passed:
            under = gate.name == "fail-under"
            what = f"at least {gate.bound:g}" if under else f"no regression beyond {gate.bound:g}"
            out().print(
                f"gate [bold]{clean(gate.criterion)}[/bold], {what}: {_coloured(gate.outcome)}: "
                f"{clean(gate.detail)}"
            )
    if passed:
        listed = clean(", ".join(g.criterion for g in passed))
        out().print(f"gate no regression beyond {passed[0].bound:g}: {_coloured('met')}: {listed}")
    if any(gate.outcome == "undecided" for gate in gates):
        out().print(
            "undecided gates pass (--on-undecided pass)" if undecided_passes
            else "undecided gates end with 4: add cases, or say --on-undecided pass"
        )  # fmt: skip


def verdict(comparison: Comparison, row: Row) -> str:
    """The verdict on B as a word; two judges are higher or lower, not better or worse."""
    word: str = row.verdict
    return _JUDGES.get(word, word) if comparison.pair_by == "run" else word


def warnings(sides: Sides, comparison: Comparison) -> list[str]:
    """What a reader must know before the figures."""
    found = [f"not compared: {name}: {why}" for name, why in sides.left_out.items()]
    if comparison.pair_by != "run":
        answers = {answer for side in (sides.first, sides.second) for answer in _answers(side)}
        found += cases_answered_twice(sorted(answers))
    least = comparison.options.min_cases
    if len(comparison.common) < least:
        found.append(f"{len(comparison.common)} common cases: below {least} nothing is decided")
    for row in comparison.rows:
        missing = [1 - _share(c) for c in row.counts]
        if row.lost and abs(missing[0] - missing[1]) > _UNEVEN:
            found.append(
                f"{row.criterion}: {missing[0]:.0%} of A and {missing[1]:.0%} of B are not rated; "
                "what is missing may differ from the rest"
            )
    return found


def _answers(table: ScoreTable) -> set[tuple[str, str, str]]:
    """System, case and run id of every run."""
    codes = zip(table.system.codes, table.case.codes, table.run.codes, strict=True)
    return {
        (table.system.names[s] if s >= 0 else "", table.case.names[c], table.run.names[r])
        for s, c, r in set(codes)
    }


def _share(counts: Counts) -> float:
    return counts.rated / counts.ratings if counts.ratings else 0.0


def _head(sides: Sides, comparison: Comparison) -> None:
    out().print(
        f"A = [bold]{clean(sides.names[0])}[/bold], B = [bold]{clean(sides.names[1])}[/bold]"
    )
    for line in sides.about:
        out().print(clean(line))
    out().print(f"{len(comparison.common)} common cases, one pair each{_within(comparison)}")
    for side, cases in (("A", comparison.only_first), ("B", comparison.only_second)):
        if cases:
            more = ", ..." if len(cases) > 3 else ""
            listed = clean(", ".join(_short(c) for c in cases[:3]))
            out().print(f"[yellow]left out: {len(cases)} cases only in {side}[/yellow] "
                        f"({listed}{more})")  # fmt: skip
    if comparison.unmatched:
        out().print(
            f"[yellow]left out: {comparison.unmatched} {comparison.pair_by}s of common cases that "
            "only one side has[/yellow]"
        )
    for line in warnings(sides, comparison):
        out().print(f"[yellow]warning:[/yellow] {clean(line)}")


def _within(comparison: Comparison) -> str:
    return {
        "case": " (runs and repeats averaged)",
        "system": " (per system, repeats averaged; then the mean over systems)",
        "run": " (the same runs, repeats averaged)",
    }[comparison.pair_by]


def _short(case: str) -> str:
    return case if len(case) <= 24 else case[:12]  # stored cases are named by a hash


def _columns(*heads: str) -> tuple[Column, ...]:
    return Column("criterion", number=False), *map(Column, heads)


def _figures(comparison: Comparison) -> Grid:
    columns = _columns(
        "A", "B", "B - A [95 %]\n(share of the scale)", "wins/\nties/\nlosses", "p", "p\nHolm"
    )
    rows = tuple(
        GridRow(
            (row.criterion, _mean(row.first), _mean(row.second), _span(row.difference),
             f"{row.wins}/{row.ties}/{row.losses}", _p(row.p), _p(row.p_holm))
        )
        for row in comparison.rows
    )  # fmt: skip
    return Grid(columns, rows)


def _verdicts(comparison: Comparison) -> Grid:
    columns = _columns(
        "verdict\non B", "pairs", "r of\npairs", "detectable\nat 80 %",
        "cases to\ndecide", "not rated\nA / B",
    )  # fmt: skip
    rows = []
    for row in comparison.rows:
        a, b = (c.ratings - c.rated for c in row.counts)
        word = verdict(comparison, row)
        cells = (
            row.criterion, word, str(row.n),
            "-" if row.correlation is None else f"{row.correlation:.2f}",
            "-" if row.detectable is None else f"{row.detectable:.3f}",
            "-" if row.cases_to_decide is None else f"{row.cases_to_decide:,}", f"{a} / {b}",
        )  # fmt: skip
        rows.append(GridRow(cells, styles={1: _COLOURS[word]}))
    return Grid(columns, tuple(rows))


def _not_rated(comparison: Comparison) -> None:
    for row in comparison.rows:
        name = clean(row.criterion)
        for side, counts in zip("AB", row.counts, strict=True):
            if row.unordered:
                listed = ", ".join(f"{label} {n}" for label, n in counts.labels.items())
                out().print(f"counted: {name}, {side}: {clean(listed) or 'none'}")
            if counts.rated < counts.ratings:
                out().print(f"[dim]not rated: {name}, {side}: {_missing(counts)}[/dim]")


def _mean(interval: Interval) -> str:
    return "-" if interval.mean is None else f"{interval.mean:.3f}"


def _span(interval: Interval) -> str:
    if interval.mean is None:
        return "-"
    if interval.low is None or interval.high is None:
        return f"{interval.mean:+.3f}"
    mean, low, high = (round(v, 3) + 0.0 for v in (interval.mean, interval.low, interval.high))
    return f"{mean:+.3f} [{low:+.3f}, {high:+.3f}]"


def _p(p: float | None) -> str:
    if p is None:
        return "-"
    return "<.001" if p < 0.001 else f"{p:.3f}"


def _missing(counts: Counts) -> str:
    parts = [f"{n} {status.partition(':')[2] or status}" for status, n in counts.failures.items()]
    if counts.not_applicable:
        parts.append(f"{counts.not_applicable} not applicable")
    return f"{clean(', '.join(parts))} of {counts.ratings}"


def _coloured(word: str) -> str:
    return f"[{_COLOURS[word]}]{word}[/{_COLOURS[word]}]"


def figures(row: Row) -> str:
    """One line with the figures of a row."""
    found = (
        f"pairs {row.n}; A {_mean(row.first)}; B {_mean(row.second)}; "
        f"B - A {_span(row.difference)}; wins {row.wins}, ties {row.ties}, losses {row.losses}; "
        f"p {_p(row.p)}, Holm {_p(row.p_holm)}"
    )
    return found if row.detectable is None else f"{found}; detectable {row.detectable:.3f}"


def properties(sides: Sides, comparison: Comparison) -> dict[str, str]:
    """What a JUnit suite says of the comparison, and the figures of every row."""
    found = {
        "A": sides.names[0],
        "B": sides.names[1],
        "about": "; ".join(sides.about),
        "common cases": str(len(comparison.common)),
        "cases only in A": str(len(comparison.only_first)),
        "cases only in B": str(len(comparison.only_second)),
        "margin": f"{comparison.options.margin:g}",
    }
    for row in comparison.rows:
        found |= {f"{row.criterion}.{k}": v for k, v in _row_figures(comparison, row).items()}
    return found


def _row_figures(comparison: Comparison, row: Row) -> dict[str, str]:
    difference = row.difference
    numbers = {
        "A": row.first.mean, "B": row.second.mean, "difference": difference.mean,
        "low": difference.low, "high": difference.high, "p": row.p, "p_holm": row.p_holm,
        "detectable": row.detectable,
    }  # fmt: skip
    known = {k: f"{v:.6g}" for k, v in numbers.items() if v is not None}
    return {"pairs": str(row.n), **known, "verdict": verdict(comparison, row)}


def comparison_json(
    sides: Sides, comparison: Comparison, gates: Sequence[Gate], *, undecided_passes: bool = False
) -> dict[str, Any]:
    """The same as a JSON value; `first` is A, `second` is B."""
    from agenteval.trust.gates import exit_code

    value = asdict(comparison)
    for row, record in zip(comparison.rows, value["rows"], strict=True):
        record["verdict"] = verdict(comparison, row)
    return {
        "a": sides.names[0],
        "b": sides.names[1],
        "about": list(sides.about),
        "warnings": warnings(sides, comparison),
        **value,
        "gates": [asdict(g) for g in gates],
        "on_undecided": "pass" if undecided_passes else "fail",
        "exit_code": exit_code(gates, undecided_passes=undecided_passes),
    }
