"""Tables of figures: no line wider than the terminal, no figure cut, no part of a name lost."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from agenteval.cli.grid import Column, Grid, Group, Row, grid_lines

WIDTHS = (60, 80, 100, 120, 200)
NAMES = st.text(alphabet="abcö漢語 /+_·-🙂[", min_size=1, max_size=150)
FIGURES = st.builds(
    lambda mean, half: f"{mean:+.3f} [{mean - half:+.3f}, {mean + half:+.3f}]",
    st.floats(-1, 1), st.floats(0, 0.5),
) | st.integers(0, 10**6).map(str) | st.just("-")  # fmt: skip


def printed(grid: Grid, width: int) -> list[str]:
    console = Console(width=width, file=io.StringIO())
    return [line.plain for line in grid_lines(grid, console)]


@st.composite
def grids(draw: st.DrawFn) -> Grid:
    count = draw(st.integers(1, 8))
    heads = st.sampled_from(["p", "mean [95 %]\nof runs", "ratings\n/ cases", "agreement"])
    columns = (Column("criterion", number=False), *(Column(draw(heads)) for _ in range(count)))
    lines: list[Row | Group] = []
    for _ in range(draw(st.integers(1, 4))):
        if draw(st.booleans()):
            lines.append(Group(draw(NAMES), draw(NAMES)))
        lines.append(Row((draw(NAMES), *(draw(FIGURES) for _ in range(count)))))
    return Grid(columns, tuple(lines), draw(st.just("") | NAMES))


@settings(max_examples=60, deadline=None)
@given(grids(), st.sampled_from(WIDTHS))
def test_no_line_is_too_wide_and_every_figure_stands_whole_on_one_line(
    grid: Grid, width: int
) -> None:
    lines = printed(grid, width)
    assert max(map(cell_len, lines)) <= width
    cells = [cell for row in grid.lines if isinstance(row, Row) for cell in row.cells[1:]]
    text = "\n".join(lines)
    for cell in set(cells) - {"-"}:
        whole = re.findall(rf"  {re.escape(cell)}(?=  |\n|$)", text)
        assert len(whole) == cells.count(cell)


@settings(max_examples=60, deadline=None)
@given(NAMES, st.sampled_from(WIDTHS))
def test_a_long_name_goes_on_below_and_nothing_of_it_is_lost(name: str, width: int) -> None:
    lines = printed(Grid((Column("name", number=False), Column("n")), (Row((name, "7")),)), width)
    rule = next(i for i, line in enumerate(lines) if line.startswith(" ─"))
    body = "".join(lines[rule + 1 :]).replace("7", "")
    assert "".join(body.split()) == "".join(name.split())


def test_what_does_not_fit_is_continued_with_the_names_again() -> None:
    columns = (Column("criterion\n  system", number=False), *map(Column, "ABCD"))
    figures = tuple(f"0.{n}00 [0.000, 1.000]" for n in range(4))
    grid = Grid(
        columns, (Group("clarity"), Row(("one", *figures)), Row(("two", *figures))), "Scores"
    )
    assert printed(grid, 60) == [
        "",
        " Scores",
        " criterion",
        "   system                      A                     B",
        " ─────────────────────────────────────────────────────",
        " clarity",
        "   one      0.000 [0.000, 1.000]  0.100 [0.000, 1.000]",
        "   two      0.000 [0.000, 1.000]  0.100 [0.000, 1.000]",
        "",
        " Scores, continued",
        " criterion",
        "   system                      C                     D",
        " ─────────────────────────────────────────────────────",
        " clarity",
        "   one      0.200 [0.000, 1.000]  0.300 [0.000, 1.000]",
        "   two      0.200 [0.000, 1.000]  0.300 [0.000, 1.000]",
    ]


@pytest.mark.parametrize("text", ["[bold]x[/bold]", "a\nb", "\x1b[31mred"])
def test_a_name_is_shown_as_it_is_and_obeyed_by_nobody(text: str) -> None:
    grid = Grid((Column("name", number=False),), (Group(text), Row((text,))))
    shown = "\n".join(printed(grid, 80)[3:])
    assert "\x1b" not in shown
    assert shown.count("\n") == 1
    assert ("[bold]x[/bold]" in shown) == text.startswith("[bold]")
