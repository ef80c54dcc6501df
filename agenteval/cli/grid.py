"""Tables of figures on a terminal: one line per row, and what does not fit goes on below.

Nothing is cut. A figure stays whole at any width of 60 cells or more; a name that is too long is
broken at its joints, then folded, so that two names never look alike.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.cells import cell_len, chop_cells
from rich.text import Text

from agenteval.cli.console import out
from agenteval.cli.table_widths import EDGES, GAP, Part, broken, parts
from agenteval.text import visible_line

if TYPE_CHECKING:
    from rich.console import Console

_INDENT = 2  # of rows below the name of their group
_MARKS = {"✓": "green", "✗": "red", "?": "dim"}


@dataclass(frozen=True)
class Column:
    """A head (its line breaks are kept), and how the cells below it stand.

    `number`: flush right, with its marks coloured. `whole`: cells are not broken while the
    terminal has room for them beside the name of the row.
    """

    head: str
    number: bool = True
    whole: bool = True


@dataclass(frozen=True)
class Row:
    """The cells of a row as plain text; `style` is of all of them, `styles` of single columns."""

    cells: tuple[str, ...]
    style: str = ""
    styles: Mapping[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Group:
    """A line of its own above the rows that belong to it, across all columns; "" is a gap."""

    name: str
    remark: str = ""


@dataclass(frozen=True)
class Grid:
    """Columns, the first of which names the row, and lines; every row has a cell per column."""

    columns: tuple[Column, ...]
    lines: tuple[Row | Group, ...]
    title: str = ""

    @property
    def indent(self) -> int:
        """How far the names of the rows stand in."""
        grouped = any(isinstance(line, Group) and line.name for line in self.lines)
        return _INDENT if grouped else 0


def print_grids(*grids: Grid) -> None:
    """Tables on standard output, each in as many parts as it takes; the first column is in all."""
    console = out()
    for grid in grids:
        for line in grid_lines(grid, console):
            console.print(line, no_wrap=True, overflow="ignore", crop=False)
    console.print()


def grid_lines(grid: Grid, console: Console) -> list[Text]:
    """A gap and the lines of the table, none wider than the console if that has 60 cells or more.

    Lines of text with their styles; what is in the cells is shown as it is, never read as markup.
    """
    texts = [[column.head] for column in grid.columns]
    for row in grid.lines:
        if isinstance(row, Row):
            for i, (own, cell) in enumerate(zip(texts, row.cells, strict=True)):
                own.append(" " * (0 if i else grid.indent) + visible_line(cell))
    found = parts(
        texts,
        [column.number for column in grid.columns],
        console.width - EDGES,
        whole=[column.whole and i > 0 for i, column in enumerate(grid.columns)],
        keys=1,
    )
    made = []
    for n, part in enumerate(found):
        said = grid.title if n == 0 else f"{grid.title}, continued" if grid.title else "continued"
        made += [Text(), *_plain(said, console.width, "italic" if n else "")] if said else [Text()]
        made += _part(grid, part, console)
    return made


def _part(grid: Grid, part: Part, console: Console) -> list[Text]:
    heads = Row(tuple(column.head for column in grid.columns), "bold")
    rule = "-" if console.options.ascii_only else "─"
    across = sum(part.widths) + GAP * (len(part.widths) - 1)
    made = [*_row(grid, heads, part, head=True), Text(f" {rule * across}")]
    for n, line in enumerate(grid.lines):
        if isinstance(line, Row):
            made += _row(grid, line, part)
            continue
        if n and made[-1].plain:
            made.append(Text())
        made += _group(line, console.width)
    return made


def _group(group: Group, width: int) -> list[Text]:
    name = visible_line(group.name)
    if group.remark and cell_len(name) + GAP + cell_len(group.remark) + EDGES <= width:
        line = Text(f" {name}", "bold")
        return [line.append("  ").append(group.remark, "not bold dim")]
    return [*_plain(name, width, "bold"), *_plain(group.remark, width, "dim")]


def _plain(text: str, width: int, style: str) -> list[Text]:
    """A text across the columns, broken where it is too long for one line."""
    return [Text(f" {line}", style) for line in _folded(text, width - EDGES, number=False) if line]


def _row(grid: Grid, row: Row, part: Part, *, head: bool = False) -> list[Text]:
    """One line for each line of the cell that has the most of them; heads stand at the bottom."""
    cells = []
    for i, width in zip(part.columns, part.widths, strict=True):
        indent = 0 if i or head else grid.indent
        words = row.cells[i] if head else visible_line(row.cells[i])
        lines = _folded(words, width - indent, number=grid.columns[i].number)
        cells.append([" " * indent + line for line in lines])
    most = max(len(lines) for lines in cells)
    made = []
    for n in range(most):
        line = Text(" ", row.style)
        for (i, width), lines in zip(zip(part.columns, part.widths, strict=True), cells,
                                     strict=True):  # fmt: skip
            at = n - (most - len(lines) if head else 0)
            line.append(" " * GAP if i != part.columns[0] else "")
            own = lines[at] if 0 <= at < len(lines) else ""
            line.append_text(_cell(own, width, grid.columns[i].number, row.styles.get(i, "")))
        line.rstrip()
        made.append(line)
    return made


def _cell(text: str, width: int, number: bool, style: str) -> Text:
    pad = " " * max(width - cell_len(text), 0)
    if not number:
        return Text(text, style).append(pad)
    mark = _MARKS.get(text[-1:], style)
    return Text(pad).append(text[:-1], style).append(text[-1:], mark)


def _folded(text: str, width: int, *, number: bool) -> list[str]:
    """Lines no wider than `width`: broken at joints, and a piece that is longer is folded."""
    width = max(width, 2)  # a wide letter takes two cells
    made = []
    for line in broken(text, width, number=number).split("\n"):
        own = line.rstrip()
        made += chop_cells(own, width) if cell_len(own) > width else [own]
    return made
