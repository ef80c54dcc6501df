"""A table as the page shows it: heads, and cells with a text and a key to sort by."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

from agenteval.report.text import shown
from agenteval.stats import Interval


@dataclass(frozen=True)
class Span:
    """An interval to be drawn in a cell: `mean` with `low` and `high` on an axis 0 to 1."""

    mean: float
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Cell:
    """`key` sorts (a number, or the text itself when None and `number` is false)."""

    text: str
    key: float | None = None
    number: bool = False
    kind: str = ""  # a class of the style sheet
    note: str = ""
    span: Span | None = None
    link: str = ""  # an id on this page


@dataclass(frozen=True)
class Head:
    """A column: its title, a hint, and whether it holds numbers."""

    text: str
    hint: str = ""
    number: bool = False


@dataclass(frozen=True)
class Grid:
    """A table with its caption; `id` names it on the page."""

    id: str
    caption: str
    heads: tuple[Head, ...]
    rows: tuple[tuple[Cell, ...], ...]


def words(text: object, *, kind: str = "", note: str = "", link: str = "") -> Cell:
    """A cell of words from outside."""
    return Cell(shown(text), kind=kind, note=shown(note), link=link)


def number(value: float | None, form: str = ".2f", *, kind: str = "", note: str = "") -> Cell:
    """A number, or a dash where there is none."""
    if value is None:
        return Cell("–", None, True, kind or "none", note)
    return Cell(_minus(format(value, form)), float(value), True, kind, note)


def _minus(text: str) -> str:
    """With the sign for minus, and no zero below zero."""
    return re.sub(r"-(0\.0+)(?![0-9])", r"\1", text).replace("-", "−")


def signed(value: float) -> str:
    """With its sign, and zero without one."""
    text = f"{value:+.2f}"
    return "0.00" if text == "+0.00" else _minus(text)


def difference(found: Interval) -> Cell:
    """A signed mean with its interval."""
    if found.mean is None:
        return Cell("–", None, True, "none", found.reason or "")
    text = signed(found.mean)
    if found.low is not None and found.high is not None:
        text += f" [{signed(found.low)}, {signed(found.high)}]"
    return Cell(text, found.mean, True, "", found.method)


def p_value(value: float | None, reason: str | None = None) -> Cell:
    """A p-value to three digits."""
    if value is not None and value < 0.001:
        return Cell("< .001", value, True, note=reason or "")
    return number(value, ".3f", note=reason or "")


def count(value: int) -> Cell:
    """A count; zero is pale."""
    return Cell(f"{value:,}", float(value), True, "" if value else "zero")


def percent(value: float | None) -> Cell:
    """A share in [0, 1] as per cent; never rounded up to 100 or down to 0."""
    if value is None:
        return Cell("–", None, True, "none")
    rounded = f"{value:.0%}"
    if (value < 1 and rounded == "100%") or (value > 0 and rounded == "0%"):
        rounded = f"{value:.1%}" if 0.0005 <= value < 0.9995 else f"{value:.3%}"
    return Cell(rounded.replace("%", " %"), value, True, "" if value else "zero")


def estimate(
    value: float | None, low: float | None, high: float | None, *, kind: str = "", note: str = ""
) -> Cell:
    """A number with its interval in brackets."""
    if value is None:
        return Cell("–", None, True, kind or "none", note)
    text = f"{value:.2f}"
    if low is not None and high is not None:
        text += f" [{low:.2f}, {high:.2f}]"
    return Cell(_minus(text), value, True, kind, note)


def mean(interval: Interval) -> Cell:
    """A mean with its interval, drawn and written; the reason where there is none."""
    if interval.mean is None:
        return Cell("–", None, True, "none", interval.reason or "")
    flat = interval.low == interval.high  # no width is no certainty
    low, high = (None, None) if flat else (interval.low, interval.high)
    cell = estimate(interval.mean, low, high)
    note = (interval.reason or "") if low is None else ""
    return Cell(cell.text, cell.key, True, "", note, Span(interval.mean, low, high))


def plain(cell: Cell) -> Cell:
    """The cell without its drawing, where columns are many."""
    return replace(cell, span=None)
