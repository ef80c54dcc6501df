"""What of a rendered trajectory may be touched: turns, parts and the sentences of the system.

`read_layout` refines `split_sentences`. A sentence here is a unit of the system's own prose that
can go, move or change without breaking anything. These stay as they are and are no sentences:
headings of the view, Markdown headings, rows of tables, rules, code, tool calls, what tools and
users said, AutoGen's TERMINATE, and the mark of a cut. Sentences that share a pair of ** or a
LaTeX environment are one. A sentence under [final output] that repeats an earlier one word for
word is its copy: both are one statement shown twice, and what happens to one happens to the other.
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from agenteval.evaluators.utility.sentences import Sentence, split_sentences, unbroken
from agenteval.readers.messages import STOP_WORD
from agenteval.readers.view import FINAL, HEADING

Span = tuple[int, int]
PartKind = Literal["sentence", "code", "call", "fixed"]

_LINE = re.compile(r"[^\r\n]*(?:\r\n?|\n|\Z)")
_FRAME = re.compile(r"#{1,6}(?:\s|$)|\|")  # a Markdown heading, a row of a table
_ENVIRONMENT = re.compile(r"\\begin\{(\w+\*?)\}(?:(?!\\begin\{).){0,4000}?\\end\{\1\}", re.S)
_LINK = re.compile(
    r"(?:https?://|www\.)\S+"
    r"|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{1,64}"
    r"|(?<![\w.-])[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}/[\w/.-]*"
)
_QUOTE = re.compile(r'"[^"\n]{1,400}"|“[^”\n]{1,400}”|«[^»\n]{1,400}»|„[^“”\n]{1,400}[“”]')
MARKER = re.compile(
    r"(?:>\s*)?(?:[-*+•]|\(?(?:\d{1,3}|[A-Za-z]|[ivx]{2,4})[.):]|(?:\*\*)?(?:Step|Case|Part|Phase)"
    r"\s+\d{1,3}[.):])(?:\s+|$)"
)


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn: its heading line (None before the first heading) and its body as a span."""

    heading: str | None
    start: int
    end: int
    own: bool

    @property
    def final(self) -> bool:
        """Whether this is the [final output]."""
        return self.heading == FINAL


@dataclass(frozen=True, slots=True)
class Part:
    """text[start:end], without blanks at either end; `turn` is an index into Layout.turns."""

    start: int
    end: int
    kind: PartKind
    turn: int


@dataclass(frozen=True, slots=True)
class Layout:
    """A text with its turns and parts, in order. `copies`: sentence → its copies (part indices)."""

    text: str
    turns: tuple[Turn, ...]
    parts: tuple[Part, ...]
    copies: dict[int, tuple[int, ...]] = field(default_factory=dict)

    def of(self, index: int) -> str:
        """Text of a part."""
        return self.text[self.parts[index].start : self.parts[index].end]

    def own(self, *kinds: PartKind) -> list[int]:
        """Indices of the system's parts of these kinds, in order, copies left out."""
        copied = {c for copies in self.copies.values() for c in copies}
        return [i for i, p in enumerate(self.parts) if p.kind in kinds and i not in copied]

    def sentences(self) -> list[int]:
        """Indices of the sentences, in order, copies left out."""
        return self.own("sentence")

    def with_copies(self, indices: Iterable[int]) -> list[int]:
        """The indices and those of their copies, in order."""
        chosen = set(indices)
        return sorted(chosen | {c for i in chosen for c in self.copies.get(i, ())})

    def body(self, index: int) -> Span:
        """Span of a sentence behind its list marker."""
        part = self.parts[index]
        marker = MARKER.match(self.text, part.start, part.end)
        return (marker.end() if marker and marker.end() < part.end else part.start), part.end

    def why_nothing(self) -> str:
        """In words why there is no sentence to change."""
        kinds = {p.kind for p in self.parts}
        if "code" in kinds:
            return "the system wrote nothing but code"
        if "call" in kinds:
            return "the system wrote nothing but tool calls"
        return "the system wrote no sentence"


def read_layout(text: str) -> Layout:
    """Turns and parts of a trajectory rendered by `make_view`. Time linear in its length."""
    turns = tuple(_turns(text))
    parts: list[Part] = []
    units = split_sentences(text)
    at = 0
    for index, turn in enumerate(turns):
        first = at
        while at < len(units) and units[at].start < turn.end:
            at += 1
        parts.extend(_parts(text, units[first:at], index, turn))
    return Layout(text, turns, tuple(parts), _copies(text, turns, parts))


def _turns(text: str) -> Iterator[Turn]:
    heading: str | None = None
    own, start = True, 0
    for match in _LINE.finditer(text):
        line = match.group().rstrip("\r\n")
        found = HEADING.match(line)
        if not found:
            continue
        if match.start() > start or heading is not None:
            yield Turn(heading, start, match.start(), own)
        heading, start = line, match.end()
        own = found.group(1) in (None, "assistant")
    yield Turn(heading, start, len(text), own)


def _parts(text: str, units: list[Sentence], index: int, turn: Turn) -> Iterator[Part]:
    tied = _tied(text, units, turn) if turn.own else {}
    at = line_end = 0
    while at < len(units):
        last = tied.get(at, at)
        shown = text[units[at].start : units[last].end]
        kind = _kind(shown, units[at])
        if kind == "sentence" and _FRAME.match(shown):  # with all that stands on its line
            found = text.find("\n", units[last].end, turn.end)
            line_end = found if found >= 0 else turn.end
        if kind == "sentence" and units[at].start < line_end:
            kind = "fixed"
        if at == 0 and shown == "status: error" and (turn.heading or "").startswith("[span "):
            kind = "fixed"  # written by make_view, not by the system
        yield Part(units[at].start, units[last].end, kind, index)
        at = last + 1


def _kind(shown: str, unit: Sentence) -> PartKind:
    if not unit.own:
        return "fixed"
    if unit.kind == "code":
        return "code"
    if unit.kind == "call":
        return "call"
    said = any(c.isalnum() for c in shown) and shown != STOP_WORD
    return "sentence" if said else "fixed"


def _tied(text: str, units: list[Sentence], turn: Turn) -> dict[int, int]:
    """First unit → last unit of those that belong together by ** or a LaTeX environment."""
    tied: dict[int, int] = {}
    environments = Spans(m.span() for m in _ENVIRONMENT.finditer(text, turn.start, turn.end))
    at = 0
    while at < len(units):
        last = _bold_end(text, units, at)
        while last + 1 < len(units) and environments.over(units[last + 1].start - 1):
            last += 1
        if last > at and all(u.kind == "prose" for u in units[at : last + 1]):
            tied[at] = last
            at = last
        at += 1
    return tied


def _bold_end(text: str, units: list[Sentence], at: int) -> int:
    """Index of the unit that closes the ** left open in unit `at` (`at` itself if none does)."""
    if units[at].kind != "prose" or _marks(text, units[at]) % 2 == 0:
        return at
    for last in range(at + 1, min(at + 12, len(units))):
        if "\n" in text[units[last - 1].end : units[last].start] or units[last].kind != "prose":
            return at
        if _marks(text, units[last]) % 2:
            return last
    return at


def _marks(text: str, unit: Sentence) -> int:
    return text.count("**", unit.start, unit.end)


def _copies(text: str, turns: tuple[Turn, ...], parts: list[Part]) -> dict[int, tuple[int, ...]]:
    if not any(turn.final for turn in turns):
        return {}
    earlier: dict[str, int] = {}
    copies: dict[int, tuple[int, ...]] = {}
    for i, part in enumerate(parts):
        shown = text[part.start : part.end]
        if part.kind != "sentence":
            continue
        if not turns[part.turn].final:
            earlier[shown] = i
        elif shown in earlier:
            copies[earlier[shown]] = (*copies.get(earlier[shown], ()), i)
    return copies


class Spans:
    """Disjoint spans in order, asked for a position or an overlap by bisection."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self.spans = sorted(spans)

    def over(self, position: int) -> bool:
        """Whether the position lies inside a span."""
        return self.overlap(position, position + 1)

    def overlap(self, start: int, end: int) -> bool:
        """Whether text[start:end] shares a character with a span."""
        i = bisect_left(self.spans, (end, -1)) - 1
        return i >= 0 and start < self.spans[i][1]


def protected(
    text: str, start: int, end: int, *, formulas: bool = True, quotes: bool = False
) -> Spans:
    """Addresses, formulas and inline code (unless told) and quotations (if asked) in a part."""
    found = [m.span() for m in _LINK.finditer(text, start, end)]
    if formulas:
        found += [*unbroken(text, start, end)]
        found += [m.span() for m in _ENVIRONMENT.finditer(text, start, end)]
    if quotes:
        found += [m.span() for m in _QUOTE.finditer(text, start, end)]
    return Spans(merged(found))


def merged(spans: Iterable[Span]) -> Iterator[Span]:
    """The spans in order, those that touch or overlap as one."""
    at: Span | None = None
    for start, end in sorted(spans):
        if at is None or start > at[1]:
            if at is not None:
                yield at
            at = (start, end)
        else:
            at = (at[0], max(at[1], end))
    if at is not None:
        yield at
