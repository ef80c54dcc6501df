"""The page kit: one model and one template for everything that is written as HTML.

A page loads nothing, and its policy runs nothing but its own script, which sorts, finds and
unfolds. The template escapes every text and shows every invisible character, so builders hand over
texts as they are.
"""

from __future__ import annotations

import base64
import functools
import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from importlib.metadata import version
from importlib.resources import files
from itertools import chain, zip_longest
from typing import Any, Literal, NamedTuple, TypeVar

from agenteval.analysis.flagged import Flags
from agenteval.errors import InputError
from agenteval.records.table import Cell, Column, Estimate, Table, shown, sort_key
from agenteval.reporting.style import svg
from agenteval.reporting.text import cut
from agenteval.stats import Interval
from agenteval.text import visible

_T = TypeVar("_T")

# Badge of a word in a column "verdict" or "outcome", sorted in this order.
_BADGES = {
    **dict.fromkeys(("keep", "success"), "keep"),
    "repair": "repair",
    **dict.fromkeys(("undecided", "unknown", "not verified"), "undecided"),
    **dict.fromkeys(("drop", "failed"), "drop"),
}
_MOST_DRAWN = 4  # columns of estimates with a drawing; above that only the first has one
_FOLDED = 30  # rows of a table from which it is folded
_MOST_MESSAGES = 20
_NO_FLAGS = Flags()
_MOST_WORDS = 2_000  # characters of a message


@dataclass(frozen=True, slots=True)
class Fragment:
    """Part of a text. `kind` is an element (strong, small, code, mark, ins, del) or a class,
    `link` an id on the page or a path of the viewer (from "/"), `note` a number before it."""

    text: str
    kind: str = ""
    link: str = ""
    note: str = ""


Tile = tuple[int | str, str]  # number and name
Words = str | Sequence[str | Fragment]
BadgeKind = Literal["keep", "repair", "drop", "undecided"]
AnswerKind = Literal["", "trustworthy", "not-trustworthy", "not-enough-data"]


def with_code(text: str) -> Words:
    """Return a text whose parts between backticks are shown as code."""
    parts = text.split("`")
    if len(parts) % 2 == 0:  # a backtick without its partner
        return text
    return [Fragment(part, "code") if i % 2 else part for i, part in enumerate(parts)]


def badge(text: str, kind: BadgeKind) -> Fragment:
    """A word in a coloured frame, with a mark for those who see no colours."""
    return Fragment(text, f"badge {kind}")


@dataclass(frozen=True, slots=True)
class Text:
    """A paragraph, or a text whose lines are kept ("pre")."""

    text: Words
    form: Literal["p", "quiet", "note", "warning", "quote", "pre", "say"] = "p"
    title: str = ""


@dataclass(frozen=True, slots=True)
class Lines:
    """A list; "steps" are shown side by side with numbers, "nodes" with arrows. An empty list shows
    `empty` instead."""

    lines: Sequence[Words]
    title: str = ""
    form: Literal["list", "plain", "steps", "nodes"] = "list"
    empty: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """Names, each with a text."""

    pairs: Sequence[tuple[str, Words]]
    title: str = ""


@dataclass(frozen=True, slots=True)
class Tiles:
    """Large numbers, each with its name."""

    pairs: Sequence[Tile]


@dataclass(frozen=True, slots=True)
class Answer:
    """The answer of the page: `text` below a small `about`, with reasons."""

    about: str
    text: str
    lines: Sequence[Words] = ()
    kind: AnswerKind = ""


@dataclass(frozen=True, slots=True)
class Listing:
    """A table whose rows link to ids by their first cell (`links`); `find` adds a field that
    searches the section."""

    table: Table
    links: Mapping[str, str] = field(default_factory=dict)
    find: bool = False
    titled: bool = True


@dataclass(frozen=True, slots=True)
class Picture:
    """A figure: its title, how to read it, and its image as a data URL."""

    title: str
    caption: str
    source: str


@dataclass(frozen=True, slots=True)
class Gallery:
    """Figures side by side."""

    charts: Sequence[Picture]


@dataclass(frozen=True, slots=True)
class Card:
    """A box with a head, such as a message or a finding; `id` can be linked to."""

    head: Words
    blocks: Sequence[Block] = ()
    kind: str = ""
    id: str = ""


@dataclass(frozen=True, slots=True)
class Cards:
    """Cards in a grid, in a list, or as a conversation."""

    cards: Sequence[Card]
    title: str = ""
    form: Literal["grid", "list", "chat"] = "grid"


@dataclass(frozen=True, slots=True)
class Foldout:
    """Blocks that can be unfolded; `id` can be linked to. `signs` name why its text seems to
    address the judge."""

    id: str
    title: str
    blocks: Sequence[Block]
    badges: Sequence[Fragment] = ()
    about: str = ""
    open: bool = False
    kind: str = ""
    signs: Sequence[str] = ()


@dataclass(frozen=True, slots=True)
class Items:
    """Items in a list or as a tree; `hidden` says how many are not shown."""

    items: Sequence[Foldout]
    form: Literal["list", "tree"] = "list"
    hidden: str = ""


@dataclass(frozen=True, slots=True)
class Columns:
    """Blocks in two columns, in one on a narrow screen."""

    left: Sequence[Block]
    right: Sequence[Block]
    form: Literal["", "talk"] = ""


Block = Text | Lines | Facts | Tiles | Answer | Table | Listing | Gallery | Cards | Items | Columns
Plan = Sequence[tuple[str, str, Callable[[], Any]]]  # title, caption and drawing of figures


@dataclass(frozen=True, slots=True)
class PageSection:
    """A part of the page with its link at the top."""

    id: str
    title: str
    blocks: Sequence[Block]
    lead: str = ""


@dataclass(frozen=True, slots=True)
class Page:
    """`kind` names it ("planning report"). `unfinished` comes before everything else, `facts` at
    the end. Sections without blocks are left out."""

    kind: str
    title: str
    lead: str
    sections: Sequence[PageSection]
    unfinished: Sequence[str] = ()
    facts: Sequence[tuple[str, str]] = ()


def render(page: Page) -> str:
    """Return the page as HTML. The same page gives the same text."""
    style, script = asset("page.css"), asset("page.js")
    text: str = (
        environment()
        .get_template("page.html")
        .render(page=page, policy=policy(style, script), style=markup(style), script=markup(script))
    )
    return text


def report_page(
    title: str,
    tables: Sequence[Table],
    notes: Sequence[str] = (),
    unfinished: Sequence[str] = (),
    plan: Plan = (),
) -> str:
    """Return the page of tables with their notes, and the figures of `plan`, as HTML."""
    warnings = [Text(with_code(line), "warning") for line in dict.fromkeys(notes)]
    first = [table for table in tables if not table.detail]
    details = [table for table in tables if table.detail and (table.rows or table.notes)]
    sections = [
        PageSection("summary", "Summary", [*warnings, *first]),
        figures(plan) if plan else PageSection("figures", "Figures", ()),
        PageSection("details", "Details", details),
    ]
    return render(Page("report", title, "", sections, unfinished))


# ---- parts that several pages have ---------------------------------------------------------------


def summary(answer: Answer, tiles: Sequence[Tile], flags: Flags = _NO_FLAGS) -> PageSection:
    """Return the head of a page; `flags` name the runs whose text seems to address the judge."""
    warning = [Text(flags.line, "warning")] if flags.line else []
    numbers = Tiles([*tiles, *([flags.tile] if flags.examined else ())])
    return PageSection("summary", "Summary", [answer, numbers, *warning])


def foldouts(
    id: str, title: str, items: Sequence[Foldout], total: int, name: str, lead: str
) -> PageSection:
    """Return a section of foldouts, with how many of `total` there are (see `count_of`)."""
    count = count_of(len(items), total, name)
    return PageSection(id, title, [Items(items)] if items else (), f"{count} {lead}")


def figures(plan: Plan) -> PageSection:
    """Return the figures of `plan` as a section; those that raise InputError are listed below."""
    drawn: list[Picture] = []
    refused: list[Words] = []
    for title, caption, draw in plan:
        try:
            image = base64.b64encode(svg(draw()).encode()).decode()
        except InputError as error:
            refused.append(f"{title}: {error}")
        else:
            drawn.append(Picture(title, caption, f"data:image/svg+xml;base64,{image}"))
    blocks: list[Block] = [Gallery(drawn) if drawn else Text("None could be drawn.")]
    if refused:
        blocks.append(Lines(refused, "Figures that could not be drawn"))
    return PageSection("figures", "Figures", blocks)


class Lost(NamedTuple):
    """A trial without a verdict: system, case and reason."""

    system: str
    trial: str
    status: str
    message: str


def lost_section(trials: Mapping[str, Sequence[Lost]], lead: str) -> PageSection:
    """Return the trials without a verdict by their name ("session{s} without a verdict"): how
    many of which kind, and some messages."""
    blocks: list[Block] = []
    for name, lost in trials.items():
        if not lost:
            continue
        kinds = Counter((trial.system, trial.status) for trial in lost)
        by_kind = "; ".join(f"{system}, {status}: {n:,}" for (system, status), n in kinds.items())
        lines: list[Words] = [
            [
                Fragment(f"{trial.trial} · {trial.system}", "strong"),
                f": {trial.status}"
                + (f": {cut(trial.message, _MOST_WORDS)}" if trial.message else ""),
            ]
            for trial in lost[:_MOST_MESSAGES]
        ]
        blocks += [Text(f"{count_of(len(lines), len(lost), name)} {by_kind}."), Lines(lines)]
    return PageSection("without", "Without a verdict", blocks, lead)


def count_of(listed: int, total: int, name: str) -> str:
    """Return how many are listed, as in "All 3 wrong plans." for "wrong plan{s}"."""
    if listed < total:
        return f"{listed:,} of {total:,} {name.format(s='s')}."
    return f"The one {name.format(s='')}." if total == 1 else f"All {total:,} {name.format(s='s')}."


def round_robin(queues: Iterable[Sequence[_T]]) -> list[_T]:
    """Return the first of each queue, then the second of each, and so on."""
    rounds = chain.from_iterable(zip_longest(*queues))
    return [item for item in rounds if item is not None]


def bounded(lines: Sequence[str], most: int) -> list[str]:
    """Return the first lines, and how many more there are."""
    more = len(lines) - most
    return [*lines[:most], *([f"… and {more:,} more"] if more > 0 else [])]


def rate_words(rate: Interval) -> str:
    """Return a known rate with its interval, as in "75% (95% interval 30 to 95%)"."""
    text = shown(rate.mean, "share")
    if rate.low is None or rate.high is None or rate.low == rate.high:
        return f"{text} ({rate.reason or 'no interval'})"
    return f"{text} (95% interval {100 * rate.low:.0f} to {100 * rate.high:.0f}%)"


# ---- cells of tables -----------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _TableCell:
    """A cell as the template shows it. `span` are mean, low and high in per cent of its drawing."""

    text: str
    kind: str = ""
    key: float | None = None
    note: str = ""
    link: str = ""
    badge: str = ""
    span: tuple[float, float | None, float | None] | None = None


def _rows(block: Table | Listing) -> list[tuple[str, list[list[_TableCell]]]]:
    """Return groups of rows of cells."""
    table, links = (block.table, block.links) if isinstance(block, Listing) else (block, {})
    columns = table.shown_columns
    drawable = [c.key for c in table.columns if _drawable(table, c)]
    drawn = drawable if len(drawable) <= _MOST_DRAWN else drawable[:1]
    return [
        (
            name,
            [
                [
                    _cell(r.get(c.key), c, c.key in drawn, {} if i else links)
                    for i, c in enumerate(columns)
                ]
                for r in rows
            ],
        )
        for name, rows in table.grouped()
    ]


def _drawable(table: Table, column: Column) -> bool:
    """Return whether a column holds estimates, all of them in [0, 1]."""
    cells = [row.get(column.key) for row in table.rows]
    estimates = [c for c in cells if isinstance(c, Estimate) and c.value is not None]
    ends = [e for c in estimates for e in (c.value, c.low, c.high) if e is not None]
    return column.form in ("number", "share") and bool(ends) and 0 <= min(ends) <= max(ends) <= 1


def _cell(cell: Cell, column: Column, drawn: bool, links: Mapping[str, str]) -> _TableCell:
    text = shown(cell, column.form)
    if column.key in ("verdict", "outcome") and text in _BADGES:
        return _TableCell(text, key=float(list(_BADGES).index(text)), badge=_BADGES[text])
    key = sort_key(cell)
    number = float(key) if column.number and isinstance(key, (int, float)) else None
    if not isinstance(cell, Estimate):
        quiet = cell is None or (cell == 0 and column.number)
        kind = "none" if cell is None and column.number else "zero" if quiet else ""
        kind = "figure" if isinstance(cell, str) and column.number else kind
        return _TableCell(text, kind, number, link=links.get(text, ""))
    kind = {"passed": "pass", "failed": "fail"}.get(cell.mark, "" if number is not None else "none")
    span = None
    if drawn and cell.value is not None:
        has_bounds = cell.low is not None and cell.high is not None
        ends = (100 * (cell.low or 0), 100 * (cell.high or 0)) if has_bounds else (None, None)
        span = (3.5 + 93 * cell.value, *ends)
    return _TableCell(text, kind, number, cell.reason, span=span)


# ---- template ------------------------------------------------------------------------------------


def policy(style: str, script: str) -> str:
    """Return the content security policy: only this style sheet and this script, by their hashes.

    W3C, Content Security Policy Level 3, section 6.7.2 (hash sources).
    """
    digests = [hashlib.sha256(text.encode()).digest() for text in (style, script)]
    styles, scripts = ("sha256-" + base64.b64encode(digest).decode() for digest in digests)
    return (
        f"default-src 'none'; style-src '{styles}'; script-src '{scripts}'; "
        "img-src data:; base-uri 'none'; form-action 'none'"
    )


@functools.cache
def asset(name: str) -> str:
    return files("agenteval.reporting").joinpath(name).read_text(encoding="utf-8").strip()


def markup(text: str) -> Any:
    """Mark the style sheet or the script, which are ours, as markup."""
    from markupsafe import Markup

    return Markup(text)  # noqa: S704


@functools.cache
def environment(*packages: str) -> Any:
    """Return a Jinja environment that escapes texts and shows invisible characters.

    Templates are those of this package and of `packages`.
    """
    from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

    loaders = [PackageLoader(name, "") for name in ("agenteval.reporting", *packages)]
    templates = Environment(
        loader=ChoiceLoader(loaders),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        finalize=lambda value: visible(value) if type(value) is str else value,
    )
    templates.filters["kind_of"] = lambda block: type(block).__name__.lower()
    templates.filters["rows"] = _rows
    templates.filters["with_code"] = with_code
    templates.filters["number"] = lambda n: n if isinstance(n, str) else f"{n:,}"
    templates.globals |= {"FOLDED": _FOLDED, "version": version("agenteval")}
    return templates
