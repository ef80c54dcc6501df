"""What `verify` prints: verdict and reasons per criterion, then what holds of the judge."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from agenteval.cli.console import clean, out
from agenteval.records.verification import Check, Effect, Verification, VerifiedSet

_COLOURS = {
    "keep": "green", "repair": "yellow", "drop": "red", "undecided": "cyan",
    "trustworthy": "green", "not trustworthy": "red", "not enough data": "yellow",
}  # fmt: skip
_MARKS = {"pass": "[green]✓[/green]", "fail": "[red]✗[/red]", "unknown": "[dim]?[/dim]"}


def print_verified(result: VerifiedSet, names: Mapping[str, str], about: Sequence[str]) -> None:
    """Head, the table of criteria, the reasons, the judge. `names` by criterion id."""
    for line in about:
        out().print(clean(line))
    _criteria(result, names)
    _effects(result, names)
    _reasons(result, names)
    _judge(result)


def _criteria(result: VerifiedSet, names: Mapping[str, str]) -> None:
    from rich import box
    from rich.table import Table

    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold")
    table.add_column("criterion")
    table.add_column("verdict")
    for head in (
        "rated",
        "mean [95 %]\nof runs",
        "agreement\nalpha [95 %]",
        "success / failed\nAUC [95 %]",
    ):
        table.add_column(head, justify="right")
    table.add_column("nearest\nrho", justify="right")
    for one in result.criteria:
        table.add_row(
            clean(names.get(one.criterion_id, one.criterion_id)),
            _verdict(one.verdict),
            "-" if one.coverage is None else f"{one.coverage:.0%}",
            _mean(one),
            _check(one.check("agreement")),
            _check(one.check("discrimination")),
            _check(one.check("redundancy")),
        )
    out().print(table)


def _verdict(verdict: str) -> str:
    return f"[{_COLOURS[verdict]}]{verdict}[/{_COLOURS[verdict]}]"


def _mean(one: Verification) -> str:
    if one.mean is None:
        return "-"
    limits = "" if one.low is None or one.high is None else f" [{one.low:.2f}, {one.high:.2f}]"
    return f"{one.mean:.2f}{limits}\n[dim]{one.runs}[/dim]"


def _check(check: Check | None) -> str:
    if check is None or check.estimate is None:
        return "-"
    text = f"{check.estimate:.2f}"
    if check.low is not None and check.high is not None:
        text += f" [{check.low:.2f}, {check.high:.2f}]"
    return f"{text} {_MARKS[check.outcome]}"


def _effects(result: VerifiedSet, names: Mapping[str, str]) -> None:
    """Original minus copy, one column per perturbation, with the length baseline below."""
    from rich import box
    from rich.table import Table

    rated = [one for one in result.criteria if any(e.n for e in one.effects)]
    if not rated:
        return
    columns = list(dict.fromkeys((e.operator, e.share) for one in rated for e in one.effects))
    table = Table(
        box=box.SIMPLE_HEAD, pad_edge=False, header_style="bold",
        title="original minus copy (share of the scale); expected ↓ lower, = same, ↑ higher",
        title_justify="left", title_style="",
    )  # fmt: skip
    table.add_column("criterion")
    for operator, share in columns:
        head = clean(operator).replace("_", "\n") + (f"\n{share:.0%}" if share is not None else "")
        table.add_column(head, justify="right")
    for one in rated:
        by_column = {(e.operator, e.share): e for e in one.effects}
        cells = [_effect(by_column.get(column)) for column in columns]
        table.add_row(clean(names.get(one.criterion_id, one.criterion_id)), *cells)
    table.add_section()
    table.add_row("[dim]copies that are shorter[/dim]", *(_shorter(rated, c) for c in columns))
    out().print(table)


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
    return f"[dim]{sum(shares) / len(shares):.0%}[/dim]" if shares else "[dim]?[/dim]"


def _reasons(result: VerifiedSet, names: Mapping[str, str]) -> None:
    together: dict[tuple[str, tuple[str, ...]], list[str]] = {}
    for one in result.criteria:
        name = names.get(one.criterion_id, one.criterion_id)
        together.setdefault((one.verdict, one.reasons), []).append(name)
    for (verdict, reasons), said in together.items():
        listed = clean(", ".join(said))
        out().print(f"{_verdict(verdict)} [bold]{listed}[/bold]: {clean('; '.join(reasons))}")
    if result.subset and len(result.subset) < len(result.criteria):
        chosen = ", ".join(names.get(i, i) for i in result.subset)
        out().print(f"smallest set that tells success from failure as well as all: {clean(chosen)}")
    if result.first_component is not None:
        out().print(
            f"one component holds {result.first_component:.0%} of the variance of all criteria"
            + (": they hardly differ" if result.first_component > 0.8 else "")
        )


def _judge(result: VerifiedSet) -> None:
    judge = result.judge
    out().print(f"\n[bold]judge: {_verdict(judge.verdict)}[/bold]")
    for reason in judge.reasons:
        out().print(f"  {clean(reason)}")
    for warning in judge.warnings:
        out().print(f"  [yellow]warning:[/yellow] {clean(warning)}")


def verified_json(result: VerifiedSet, more: Mapping[str, Any]) -> dict[str, Any]:
    """The same as a JSON value."""
    return {**result.model_dump(mode="json"), **more}
