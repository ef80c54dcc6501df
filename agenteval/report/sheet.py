"""A table with what must be said of it, for a page; and the same as plain text, for a terminal."""

from __future__ import annotations

from dataclasses import dataclass

from agenteval.report.grid import Grid


@dataclass(frozen=True)
class Sheet:
    """A table and what must be said with it."""

    grid: Grid
    note: str = ""


@dataclass(frozen=True)
class PlainTable:
    """A table as text: every row has a text per column; `right` says which to set flush right."""

    title: str
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    right: tuple[bool, ...]
    note: str = ""


def plain_table(sheet: Sheet) -> PlainTable:
    """The sheet as text. What comes from outside is cleared of control characters, but not of the
    markup of whoever prints it."""
    return PlainTable(
        sheet.grid.caption,
        tuple(head.text for head in sheet.grid.heads),
        tuple(tuple(cell.text for cell in row) for row in sheet.grid.rows),
        tuple(head.number for head in sheet.grid.heads),
        sheet.note,
    )
