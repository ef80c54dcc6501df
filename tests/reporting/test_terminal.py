"""Tables on a terminal: whole at 80 columns, figures unbroken, nothing read as markup."""

from __future__ import annotations

import io

import pytest
from rich.console import Console

from agenteval.analysis.gates import least_gate, unscored_gate
from agenteval.records.table import Column, Estimate, Table
from agenteval.reporting.report import Report

WIDE = Table(
    "criteria",
    "Criteria",
    (
        Column("criterion", "criterion"),
        *(Column(f"m{n}", f"measure {n}", "number") for n in range(9)),
        Column("why", "reason"),
    ),
    (
        {"criterion": "a very long name of a criterion [red]with markup", "why": "short"}
        | {f"m{n}": Estimate(0.5, 0.25, 0.75, 40, mark="passed") for n in range(9)},
        {"criterion": "b", "why": "a reason in many words that has to be folded somewhere, " * 2},
    ),
    notes=("a note",),
)


def printed(report: Report, width: int, *, everything: bool = False) -> list[str]:
    stream = io.StringIO()
    report.print(all=everything, console=Console(file=stream, width=width, highlight=False))
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("width", [60, 80, 120])
def test_whole_at_any_width(width: int) -> None:
    lines = printed(Report(title="t", tables=(WIDE,)), width)
    assert max(map(len, lines)) <= width
    assert sum(line.count("0.50 [0.25, 0.75] ✓") for line in lines) == 9
    assert any("[red]with" in line for line in lines)
    assert any(line.strip() == "continued" for line in lines)


@pytest.mark.parametrize("width", range(30, 60))
def test_the_name_and_the_indent_of_a_group_leave_figures_whole(width: int) -> None:
    columns = (
        Column("criterion", "criterion"),
        Column("system", "system"),
        Column("n", "cases", "count"),
        Column("rate", "win rate\n[95% CI]", "number"),
    )
    row = {"criterion": "preference", "system": "mymodel", "n": 7, "rate": Estimate(1, 0.59, 1, 7)}
    table = Table("t", "", columns, (row,), group="criterion")
    lines = printed(Report(title="t", tables=(table,)), width)
    cells = [line.strip() for line in lines]
    assert "preference" in cells
    assert any(cell.startswith("mymodel") for cell in cells)
    assert any(cell.endswith("[95% CI]") for cell in cells)
    assert any(cell.endswith("1.00 [0.59, 1.00]") for cell in cells)


@pytest.mark.parametrize("text", ["[bold]x[/bold]", "a\nb", "\x1b[31mred"])
def test_a_name_is_shown_as_it_is_and_obeyed_by_nobody(text: str) -> None:
    table = Table("t", text, (Column("name", "name"),), ({"name": text},), notes=(text,))
    lines = printed(Report(title="t", tables=(table,)), 80)
    shown = "\n".join(lines)
    assert "\x1b" not in shown
    assert "b" not in lines
    assert ("[bold]x[/bold]" in shown) == text.startswith("[bold]")


def test_one_table_first_and_each_note_once() -> None:
    detail = Table("more", "More", WIDE.columns[:1], ({"criterion": "x"},), detail=True)
    report = Report(title="t", tables=(WIDE, detail), notes=("say this", "say this"))
    brief = printed(report, 200)
    assert sum("say this" in line for line in brief) == 1
    assert not any("More" in line for line in brief)
    assert any("1 table more with --all" in line for line in brief)
    assert any("More" in line for line in printed(report, 200, everything=True))


def test_gates_decide_the_exit_code() -> None:
    """Too much unscored is no verdict on what was judged, and what was broken off stays that."""
    report = Report(title="t", tables=(WIDE,))
    least = least_gate("success", 0.5, 0.7, "of 14 trials")
    gated = report.gated(unscored_gate(10, 1, 0.2), least)
    assert (gated.exit_code, gated.to_json()["exit_code"]) == (1, 1)
    assert report.gated(least, unscored_gate(10, 9, 0.2)).exit_code == 3
    assert Report(title="t", tables=(), exit_code=3).gated(least).exit_code == 3
    assert "gate success at least 0.7: missed: 0.500 of 14 trials" in printed(gated, 80)
