"""What `verify` prints: verdict and reasons per criterion, then what holds of the judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agenteval.cli.console import clean, out
from agenteval.cli.grid import Column, Grid, Group, Row, print_grids
from agenteval.records.verification import Check, Effect, Verification, VerifiedSet
from agenteval.text import visible_line

_COLOURS = {
    "keep": "green", "repair": "yellow", "drop": "red", "undecided": "cyan",
    "trustworthy": "green", "not trustworthy": "red", "not enough data": "yellow",
}  # fmt: skip
_MARKS = {"pass": "✓", "fail": "✗", "unknown": "?"}


def print_verified(result: VerifiedSet, names: Mapping[str, str], about: Sequence[str]) -> None:
    """Head, the table of criteria, the reasons, the judge. `names` by criterion id."""
    for line in about:
        out().print(clean(line))
    print_grids(_criteria(result, names), *_effects(result, names))
    _reasons(result, names)
    _judge(result)


def _criteria(result: VerifiedSet, names: Mapping[str, str]) -> Grid:
    columns = (
        Column("criterion", number=False),
        Column("verdict", number=False),
        Column("rated"),
        Column("runs"),
        Column("mean [95 %]\nof runs"),
        Column("agreement\nalpha [95 %]"),
        Column("success / failed\nAUC [95 %]"),
        Column("nearest\nrho"),
    )
    rows = tuple(
        Row(
            (
                names.get(one.criterion_id, one.criterion_id),
                one.verdict,
                "-" if one.coverage is None else f"{one.coverage:.0%}",
                str(one.runs),
                _mean(one),
                *map(_check, map(one.check, ("agreement", "discrimination", "redundancy"))),
            ),
            styles={1: _COLOURS[one.verdict]},
        )
        for one in result.criteria
    )
    return Grid(columns, rows)


def _verdict(verdict: str) -> str:
    return f"[{_COLOURS[verdict]}]{verdict}[/{_COLOURS[verdict]}]"


def _mean(one: Verification) -> str:
    if one.mean is None:
        return "-"
    limits = "" if one.low is None or one.high is None else f" [{one.low:.2f}, {one.high:.2f}]"
    return f"{one.mean:.2f}{limits}"


def _check(check: Check | None) -> str:
    if check is None or check.estimate is None:
        return "-"
    text = f"{check.estimate:.2f}"
    if check.low is not None and check.high is not None:
        text += f" [{check.low:.2f}, {check.high:.2f}]"
    return f"{text} {_MARKS[check.outcome]}"


def _effects(result: VerifiedSet, names: Mapping[str, str]) -> list[Grid]:
    """Original minus copy, one column per perturbation, with the length baseline below."""
    rated = [one for one in result.criteria if any(e.n for e in one.effects)]
    if not rated:
        return []
    found = list(dict.fromkeys((e.operator, e.share) for one in rated for e in one.effects))
    heads = (
        visible_line(operator).replace("_", "\n") + (f"\n{share:.0%}" if share is not None else "")
        for operator, share in found
    )
    rows = []
    for one in rated:
        by_column = {(e.operator, e.share): e for e in one.effects}
        cells = [_effect(by_column.get(column)) for column in found]
        rows.append(Row((names.get(one.criterion_id, one.criterion_id), *cells)))
    shorter = Row(("copies that are shorter", *(_shorter(rated, c) for c in found)), "dim")
    return [
        Grid(
            (Column("criterion", number=False), *map(Column, heads)),
            (*rows, Group(""), shorter),
            "original minus copy (share of the scale)\n"
            "expected ↓ lower, = same, ↑ higher, · unknown; ✓ surely so, ✗ surely not, ? undecided",
        )
    ]


_SIGNS = {"lower": "↓", "none": "=", "higher": "↑", "unknown": "·"}


def _effect(effect: Effect | None) -> str:
    if effect is None or effect.estimate is None:
        return "-"
    mark = _MARKS[effect.outcome] if effect.expected != "unknown" else " "
    return f"{effect.estimate:+.2f} {_SIGNS[effect.expected]}{mark}"


def _shorter(rated: Sequence[Verification], column: tuple[str, float | None]) -> str:
    shares = [
        e.shorter
        for one in rated
        for e in one.effects
        if (e.operator, e.share) == column and e.shorter is not None
    ]
    return f"{sum(shares) / len(shares):.0%}" if shares else "?"


def _reasons(result: VerifiedSet, names: Mapping[str, str]) -> None:
    """Reasons and next step of each verdict; what holds of several criteria stands once."""
    whose: dict[tuple[str, str], list[str]] = {}
    for one in result.criteria:
        step = [f"→ {one.next_step}"] if one.next_step else []
        for text in (*one.reasons, *step):
            name = names.get(one.criterion_id, one.criterion_id)
            whose.setdefault((one.verdict, text), []).append(name)
    together: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for (verdict, text), criteria in whose.items():
        together.setdefault((verdict, tuple(criteria)), []).append(text)
    for (verdict, those), texts in together.items():
        listed, said = clean(", ".join(those)), clean("; ".join(texts).replace("; →", " →"))
        out().print(f"{_verdict(verdict)} [bold]{listed}[/bold]: {said}")
    if result.subset and len(result.subset) < len(result.criteria):
        chosen = ", ".join(names.get(i, i) for i in result.subset)
        out().print(f"smallest set that tells success from failure as well as all: {clean(chosen)}")
    if result.first_component is not None:
        out().print(
            f"one component holds {result.first_component:.0%} of the variance of all criteria"
            + (": they hardly differ" if result.first_component > 0.8 else "")
        )


def _judge(result: VerifiedSet) -> None:
    """Verdict, reasons, what to do now, warnings."""
    judge = result.judge
    out().print(f"\n[bold]judge: {_verdict(judge.verdict)}[/bold]")
    for reason in judge.reasons:
        out().print(f"  {clean(reason)}")
    if judge.next_step:
        out().print(f"  → {clean(judge.next_step)}")
    for warning in judge.warnings:
        out().print(f"  [yellow]warning:[/yellow] {clean(warning)}")


def verified_json(result: VerifiedSet, more: Mapping[str, Any]) -> dict[str, Any]:
    """The same as a JSON value."""
    return {**result.model_dump(mode="json"), **more}
