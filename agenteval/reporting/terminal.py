"""Tables on a terminal: figures stay whole, and columns that do not fit go on below."""

from __future__ import annotations

from collections.abc import Sequence

from rich.box import Box
from rich.cells import cell_len
from rich.console import Console
from rich.table import Table as RichTable
from rich.text import Text

from agenteval.records.table import Cell, Column, Table, shown
from agenteval.text import visible, visible_line

_COLOURS = {"✓": "green", "✗": "red", "?": "dim"}
_RULE = Box("    \n    \n ── \n    \n    \n    \n    \n    \n")
_RULE_ASCII = Box("    \n    \n -- \n    \n    \n    \n    \n    \n", ascii=True)
_GAP = 2
_NARROWEST = 24  # cells that a column of words gets at least where it has so many


def print_table(table: Table, console: Console) -> None:
    """The table with its title and notes. What is in cells is shown as it is, never as markup.

    Words are folded, figures are not: where columns do not fit side by side, the first column is
    repeated with the rest of them.
    """
    if table.title:
        console.print(Text(visible_line(table.title), "bold"))
    key, *columns = table.shown_columns
    least = {column.key: _least(table, column) for column in (key, *columns)}
    parts: list[list[Column]] = [[key]]
    for column in columns:
        width = sum(least[c.key] + _GAP for c in parts[-1]) + least[column.key]
        if width > console.width and len(parts[-1]) > 1:
            parts.append([key])
        parts[-1].append(column)
    for number, part in enumerate(parts):
        if number:
            console.print(Text("continued", "italic"))
        console.print(_rich(table, part, least, console))
    for note in table.notes:
        console.print(Text(visible_line(note), "dim"))
    console.print()


def _least(table: Table, column: Column) -> int:
    """The cells that a column cannot do without: figures are never broken."""
    texts = visible(column.head).split("\n")
    texts += [_text(row.get(column.key), column) for row in table.rows]
    longest = max(map(cell_len, texts))
    return longest if column.number else min(longest, _NARROWEST)


def _rich(
    table: Table, columns: Sequence[Column], least: dict[str, int], console: Console
) -> RichTable:
    grid = RichTable(
        box=_RULE_ASCII if console.options.ascii_only else _RULE,
        pad_edge=False,
        show_edge=False,
        padding=(0, _GAP - 1, 0, 0),
    )
    for column in columns:
        grid.add_column(
            Text(visible(column.head), "bold"),
            justify="right" if column.number else "left",
            no_wrap=column.number,
            overflow="fold",
            min_width=min(least[column.key], console.width),
        )
    for name, rows in table.grouped():
        if name:
            grid.add_row(Text(visible_line(name), "bold"))
        for row in rows:
            texts = [Text(_text(row.get(column.key), column)) for column in columns]
            for text, column in zip(texts, columns, strict=True):
                if column.number and text.plain[-1:] in _COLOURS:
                    text.stylize(_COLOURS[text.plain[-1]], len(text) - 1)
            if name:
                texts[0].pad_left(2)
            grid.add_row(*texts)
    return grid


def _text(cell: Cell, column: Column) -> str:
    return visible_line(shown(cell, column.form))
