"""Tables on a terminal: figures are never broken, and columns that do not fit continue below."""

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
_INDENT = 2  # of rows in a group
_NARROWEST = 24  # minimum width of a column of words, if it has that many


def print_table(table: Table, console: Console) -> None:
    """The table with its title and notes. Cells are shown literally, never as markup. Words are
    folded, figures are not: if columns do not fit side by side, the first column is repeated with
    the others.
    """
    if table.title:
        console.print(Text(visible_line(table.title), "bold"))
    for number, part in enumerate(rich_tables(table, console)):
        if number:
            console.print(Text("continued", "italic"))
        console.print(part)
    for note in table.notes:
        console.print(Text(visible_line(note), "dim"))
    console.print()


def rich_tables(table: Table, console: Console) -> list[RichTable]:
    """Return the parts of a table that fit the console, one below the other."""
    return [_rich(table, part, console) for part in _parts(table, console.width)]


def _parts(table: Table, width: int) -> list[list[Column]]:
    """Return the columns that fit side by side; the first column begins each part."""
    parts: list[list[Column]] = []
    for column in table.shown_columns:
        if not parts:
            parts.append([column])
            continue
        needed = sum(_least(table, c) + _GAP for c in parts[-1]) + _least(table, column)
        if needed > width and len(parts[-1]) > 1:
            parts.append([parts[0][0]])
        parts[-1].append(column)
    return parts


def _least(table: Table, column: Column) -> int:
    """Return the minimum width of a column: figures are never broken."""
    texts = visible(column.head).split("\n")
    texts += [_text(row.get(column.key), column) for row in table.rows]
    longest = max(map(cell_len, texts))
    least = longest if column.number else min(longest, _NARROWEST)
    names = [visible_line(name) for name, _ in table.grouped() if name]
    if names and column is table.shown_columns[0]:  # it is indented below the name of its group
        return max(least + _INDENT, min(max(map(cell_len, names)), _NARROWEST))
    return least


def _rich(table: Table, columns: Sequence[Column], console: Console) -> RichTable:
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
            min_width=min(_least(table, column), console.width),
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
                texts[0].pad_left(_INDENT)
            grid.add_row(*texts)
    return grid


def _text(cell: Cell, column: Column) -> str:
    return visible_line(shown(cell, column.form))
