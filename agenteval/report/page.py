"""The page: one model and one template for everything that is written as HTML.

A page loads nothing, and its policy runs nothing but its own script, which sorts, finds and
unfolds. Every text is escaped and every invisible character shown where it is put into the
template, so builders hand over texts as they are.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.resources import files
from itertools import chain, zip_longest
from typing import Any, Literal, TypeVar

from agenteval.errors import InputError
from agenteval.records.table import Cell, Column, Estimate, Table, shown, sort_key
from agenteval.report.style import inline, svg
from agenteval.stats import Interval
from agenteval.text import visible

_T = TypeVar("_T")

# What a word in a column of this key says of its row: a class of the style sheet, in their order.
_BADGE_COLUMNS = ("verdict", "outcome")
_BADGES = {
    "keep": "keep", "success": "keep", "repair": "repair", "undecided": "undecided",
    "unknown": "undecided", "not verified": "undecided", "drop": "drop", "failed": "drop",
}  # fmt: skip
_MOST_DRAWN = 4  # columns of estimates with a drawing; of more only the first has one
FOLDED = 30  # rows of a table from which it is folded


@dataclass(frozen=True, slots=True)
class Piece:
    """A piece of a text. `kind` is an element (strong, small, code, mark, ins, del) or a class;
    `link` an id on the page, `note` a number before it."""

    text: str
    kind: str = ""
    link: str = ""
    note: str = ""


Words = str | Sequence[str | Piece]
BadgeKind = Literal["keep", "repair", "drop", "undecided"]


def badge(text: str, kind: BadgeKind) -> Piece:
    """A word in a coloured frame, with a mark for those who see no colours."""
    return Piece(text, f"badge {kind}")


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph, or a text kept in its lines ("pre")."""

    text: Words
    form: Literal["p", "quiet", "note", "warning", "quote", "pre", "say"] = "p"
    title: str = ""


@dataclass(frozen=True, slots=True)
class Lines:
    """A list; "steps" stand side by side with their numbers, "nodes" with arrows."""

    lines: Sequence[Words]
    title: str = ""
    form: Literal["list", "plain", "steps", "nodes"] = "list"


@dataclass(frozen=True, slots=True)
class Facts:
    """Names with a text each."""

    pairs: Sequence[tuple[str, Words]]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Tiles:
    """Numbers with their names, large."""

    pairs: Sequence[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the page answers: `text` below a small `about`, with reasons."""

    about: str
    text: str
    lines: Sequence[Words] = ()
    kind: Literal["", "trustworthy", "not-trustworthy", "not-enough-data"] = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """A table; rows whose first cell is in `links` lead to an id, `find` adds a field to search
    the section."""

    table: Table
    links: Mapping[str, str] = field(default_factory=dict)
    find: bool = False
    titled: bool = True


@dataclass(frozen=True, slots=True)
class Chart:
    """A drawing: what it is called, how to read it, and its SVG element."""

    title: str
    caption: str
    svg: str


@dataclass(frozen=True, slots=True)
class Gallery:
    """Charts side by side."""

    charts: Sequence[Chart]


@dataclass(frozen=True, slots=True)
class Card:
    """Something said or found, with its parts; `id` can be linked to."""

    head: Words
    blocks: Sequence[Block] = ()
    kind: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Cards:
    """Cards side by side, one below the other, or as a talk."""

    cards: Sequence[Card]
    title: str = ""
    form: Literal["grid", "list", "chat"] = "grid"


@dataclass(frozen=True, slots=True)
class Item:
    """What can be unfolded; `id` can be linked to."""

    id: str
    title: str
    blocks: Sequence[Block]
    badges: Sequence[Piece] = ()
    about: str = ""
    open: bool = False
    kind: str = ""


@dataclass(frozen=True, slots=True)
class Items:
    """Things to unfold, in a list or as a tree; `hidden` says what stands here and is not shown."""

    items: Sequence[Item]
    form: Literal["list", "tree"] = "list"
    hidden: str = ""


@dataclass(frozen=True, slots=True)
class Columns:
    """Blocks in two columns, one on a narrow screen."""

    left: Sequence[Block]
    right: Sequence[Block]
    form: Literal["", "talk"] = ""


Block = Text | Lines | Facts | Tiles | Verdict | Table | Listing | Gallery | Cards | Items | Columns


@dataclass(frozen=True, slots=True)
class Section:
    """A part of the page with its link at the top."""

    id: str
    title: str
    blocks: Sequence[Block]
    lead: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """`kind` names it ("planning report"); `unfinished` are said before everything else, `facts`
    at the end."""

    kind: str
    title: str
    lead: str
    sections: Sequence[Section]
    unfinished: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()


def render(page: Page) -> str:
    """The page as HTML. The same page gives the same text."""
    style, script = _part("page.css"), _part("page.js")
    text: str = _template().render(
        page=page,
        policy=_policy(style, script),
        style=_markup(style),
        script=_markup(script),
        version=version("agenteval"),
    )
    return text


def signs_text(signs: Sequence[str]) -> list[Block]:
    """That a text is meant for the judge; nothing without a sign."""
    if not signs:
        return []
    words: list[str | Piece] = ["This text seems to talk to the judge: "]
    for sign in signs:
        words += [badge(sign, "drop"), " "]
    return [Text(words, "warning")]


def report_page(
    title: str, tables: Sequence[Table], notes: Sequence[str] = (), unfinished: Sequence[str] = (),
    plan: Sequence[tuple[str, str, Callable[[], Any]]] = (),
) -> str:  # fmt: skip
    """The page of tables with what must be said of them, and the charts of `plan`, as HTML."""
    blocks: list[Block] = [Text(line, "warning") for line in dict.fromkeys(notes)]
    first = [table for table in tables if not table.detail]
    details = [table for table in tables if table.detail and (table.rows or table.notes)]
    sections = [Section("summary", "Summary", [*blocks, *first])]
    if plan:
        sections.append(figures(plan))
    if details:
        sections.append(Section("details", "Details", details))
    return render(Page("report", title, "", sections, unfinished))


def taking_turns(queues: Iterable[Sequence[_T]]) -> list[_T]:
    """The first of each queue, then the second of each, and so on."""
    rounds = chain.from_iterable(zip_longest(*queues))
    return [item for item in rounds if item is not None]


def some_of(names: Sequence[str], most: int = 5) -> str:
    """As in "a, b and 3 more"."""
    rest = len(names) - most
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def bounded(lines: Sequence[str], most: int) -> list[str]:
    """The first lines, and how many more there are."""
    rest = len(lines) - most
    return [*lines[:most], *([f"… and {rest:,} more"] if rest > 0 else [])]


def rate_words(rate: Interval) -> str:
    """A rate that is known with its interval, as in "75% (95% interval 30 to 95%)"."""
    text = shown(rate.mean, "share")
    if rate.low is None or rate.high is None or rate.low == rate.high:
        return f"{text} ({rate.reason or 'no interval'})"
    return f"{text} (95% interval {100 * rate.low:.0f} to {100 * rate.high:.0f}%)"


def gallery(
    plan: Iterable[tuple[str, str, Callable[[], Any]]],
) -> tuple[list[Chart], list[str]]:
    """Charts that the data allow, and a line for each that they do not. `plan` are title, caption
    and what draws it or raises InputError."""
    drawn: list[Chart] = []
    left_out: list[str] = []
    for i, (title, caption, draw) in enumerate(plan):
        try:
            drawn.append(Chart(title, caption, inline(svg(draw()), f"f{i}-")))
        except InputError as error:
            left_out.append(f"{title}: {error}")
    return drawn, left_out


def figures(plan: Iterable[tuple[str, str, Callable[[], Any]]]) -> Section:
    """The charts of `plan` as a section (see `gallery`), and what could not be drawn."""
    drawn, left_out = gallery(plan)
    blocks: list[Block] = [Gallery(drawn) if drawn else Text("None could be drawn.")]
    if left_out:
        blocks.append(Lines(left_out, "Figures that could not be drawn"))
    return Section("figures", "Figures", blocks)


@dataclass(frozen=True, slots=True)
class _TableCell:
    """A cell as the template shows it. `span` are mean, low and high in per cent of its drawing."""

    text: str
    kind: str
    key: float | None
    note: str = ""
    link: str = ""
    badge: str = ""
    span: tuple[float, float | None, float | None] | None = None


def _rows(block: Table | Listing) -> list[tuple[str, list[list[_TableCell]]]]:
    """Groups of rows of cells."""
    table = block.table if isinstance(block, Listing) else block
    links = block.links if isinstance(block, Listing) else {}
    drawn = {c.key for c in table.columns if _drawable(table, c)}
    if len(drawn) > _MOST_DRAWN:
        drawn = {next(c.key for c in table.columns if c.key in drawn)}
    return [
        (name, [[_cell(row.get(c.key), c, c.key in drawn, links if i == 0 else {})
                 for i, c in enumerate(table.shown_columns)] for row in rows])
        for name, rows in table.grouped()
    ]  # fmt: skip


def _drawable(table: Table, column: Column) -> bool:
    """Whether a column holds estimates, all of them in [0, 1]."""
    cells = [row.get(column.key) for row in table.rows]
    known = [c for c in cells if isinstance(c, Estimate) and c.value is not None]
    ends = [e for c in known for e in (c.value, c.low, c.high) if e is not None]
    return column.form in ("number", "share") and bool(ends) and 0 <= min(ends) <= max(ends) <= 1


def _cell(cell: Cell, column: Column, drawn: bool, links: Mapping[str, str]) -> _TableCell:
    text = shown(cell, column.form)
    if column.key in _BADGE_COLUMNS and text in _BADGES:
        return _TableCell(text, "", float(list(_BADGES).index(text)), badge=_BADGES[text])
    key = sort_key(cell)
    number = float(key) if column.number and isinstance(key, (int, float)) else None
    kind = "none" if cell is None else "zero" if cell == 0 and column.number else ""
    if isinstance(cell, str) and column.number:
        kind = "figure"
    if not isinstance(cell, Estimate):
        return _TableCell(text, kind, number, link=links.get(text, ""))
    kind = {"passed": "pass", "failed": "fail"}.get(cell.mark, "" if number is not None else "none")
    span = None
    if drawn and cell.value is not None:
        whole = cell.low is not None and cell.high is not None
        span = (3.5 + 93 * cell.value, 100 * cell.low if whole and cell.low is not None else None,
                100 * cell.high if whole and cell.high is not None else None)  # fmt: skip
    return _TableCell(text, kind, number, cell.reason, span=span)


def _policy(style: str, script: str) -> str:
    """The content security policy: nothing but this style sheet and this script, by their hashes.

    W3C, Content Security Policy Level 3, section 6.7.2 (hash sources).
    """
    return (
        f"default-src 'none'; style-src '{_hash(style)}'; script-src '{_hash(script)}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()


@functools.cache
def _part(name: str) -> str:
    return files("agenteval.report").joinpath(name).read_text(encoding="utf-8").strip()


def _markup(text: str) -> Any:
    """Text of ours that is markup already: style sheet, script, drawings."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704


@functools.cache
def _template() -> Any:
    from jinja2 import Environment, StrictUndefined
    from markupsafe import Markup

    def whole(value: Any) -> Any:
        return visible(value) if type(value) is str else value

    environment = Environment(
        autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True,
        finalize=whole,
    )  # fmt: skip
    environment.filters["kind_of"] = lambda block: type(block).__name__.lower()
    environment.filters["rows"] = _rows
    environment.filters["drawing"] = lambda chart: Markup(chart.svg)  # noqa: S704  our own
    environment.globals["FOLDED"] = FOLDED
    return environment.from_string(_part("page.html"))
