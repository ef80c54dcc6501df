"""What the plan commands print: the tables of a campaign, causes, and the same as JSON."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenteval.cli.console import clean, clean_lines, out
from agenteval.text import visible_line

if TYPE_CHECKING:
    from rich.table import Table

    from agenteval.cli.table_widths import Part
    from agenteval.report.sheet import PlainTable


def print_table(table: PlainTable) -> None:
    """One table with its note below: names broken at their joints, and what does not fit beside
    them in a part of its own."""
    from agenteval.cli.table_widths import EDGES, parts

    table = _one_line_each(table)
    columns = list(zip(table.columns, *table.rows, strict=True))
    for i, found in enumerate(parts(columns, table.right, out().width - EDGES)):
        above, more = ("\n", ", continued") if i else ("", "")
        out().print(f"{above}[italic]{clean(table.title)}{more}[/italic]")
        out().print(_grid(table, found))
    out().print(f"[dim]{clean(table.note)}[/dim]\n" if table.note else "")


def _one_line_each(table: PlainTable) -> PlainTable:
    """The table as it will be seen, so that widths are those of what is printed."""
    from dataclasses import replace

    return replace(
        table,
        columns=tuple(visible_line(head) for head in table.columns),
        rows=tuple(tuple(visible_line(cell) for cell in row) for row in table.rows),
    )


def _grid(table: PlainTable, found: Part) -> Table:
    """The columns of one part as rich prints them."""
    from rich.box import SIMPLE_HEAD
    from rich.table import Table

    from agenteval.cli.table_widths import GAP, broken

    grid = Table(box=SIMPLE_HEAD, padding=(0, GAP - 1, 0, 0), pad_edge=False)

    def text(words: str, i: int, width: int) -> str:
        return clean_lines(broken(words, width, number=table.right[i]))

    own = list(zip(found.columns, found.widths, strict=True))
    for i, width in own:
        # what is longer than its column is folded, not cut: names often differ at their ends
        grid.add_column(text(table.columns[i], i, width), overflow="fold", width=width,
                        justify="right" if table.right[i] else "left")  # fmt: skip
    for row in table.rows:
        grid.add_row(*(text(row[i], i, width) for i, width in own))
    return grid
