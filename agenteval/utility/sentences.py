"""Split a text into sentences, as character spans that operators drop and judges count.

One unit is a sentence of prose, a fenced block of code (whole, so that no fence is ever broken), a
tool call, or a line of tool output. Headings written by `readers.view` are not units.
The rules are simple and deterministic; no model is used.

Usage::

    for unit in split_sentences(view.trajectory):
        text = view.trajectory[unit.start : unit.end]
        if unit.prose:   # written by the system under evaluation, in sentences
            ...
"""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Literal

from agenteval.readers.view import FINAL, HEADING

Kind = Literal["prose", "code", "call", "output", "mark"]
Span = tuple[int, int]

_LINE = re.compile(r"[^\n]*(?:\n|\Z)")
# Code runs to the line that closes its fence, a call to the next call, both at most to the end.
_BLOCK = re.compile(
    r"^[ \t]*(?P<fence>`{3,}|~{3,}).*(?:\n(?![ \t]*(?P=fence)[`~]*[ \t\r]*$).*)*(?:\n.*)?"
    r"|^(?P<call>\[tool call\]).*(?:\n(?!\[tool call\]).*)*"
    r"|^\[\.\.\. [\d,]+ characters cut out here \.\.\.\]\r?$",
    re.M,
)
# Openers of formulas and inline code, their closers, and the maximum distance.
_OPENER = re.compile(r"\\\[|\\\(|\$\$|(?<![\\$])\$(?=[^\s$])|(?<!`)`(?=[^`\n])")
_CLOSERS = {
    "\\[": ("\\]", 2000),
    "\\(": ("\\)", 500),
    "$$": ("$$", 2000),
    "$": ("$", 300),
    "`": ("`", 300),
}
_BLANK_LINE = re.compile(r"\n[ \t]*\r?\n")
_END = re.compile(r"(?:[.!?…]+[)\]\"'”’»*_`]*(?=\s|$))|(?:[。！？]+[」』）”]*)")
_MARKER = re.compile(r"(?:[-*+•>]|#{1,6}|\(?(?:\d{1,3}|[A-Za-z]|[ivx]{1,4})[.):])(?=\s|$)")
_INITIALS = re.compile(r"(?:[A-Z]\.\s*)+")
_VARIABLE = re.compile(r"[b-z](?![A-Za-z'])")
# Abbreviations that do not end a sentence: always, before a lower-case letter, before a digit.
_ALWAYS = re.compile(r"e\.g|i\.e|dr|mr|mrs|ms|prof|figs?|eqs?|vs|cf|approx|ca|viz")
_BEFORE_LOWER = re.compile(r"etc|[ap]\.m|al|inc|ltd|co|u\.s|u\.k|e\.u|min|max|hrs|dept|ed|jr|sr")
_BEFORE_DIGIT = re.compile(r"no|nr|pp?|vol|art|sec|ch")
_WRAPPED = 40  # a shorter line was not wrapped by an editor


@dataclass(frozen=True, slots=True)
class TextTurn:
    """One turn: its heading line and speaker (None before the first heading), and the span of its
    body. The final output belongs to the assistant."""

    heading: str | None
    speaker: str | None
    start: int
    end: int

    @property
    def own(self) -> bool:
        """Whether the system under evaluation speaks, not a user or a tool."""
        return self.speaker in (None, "assistant")

    @property
    def final(self) -> bool:
        """Whether this is the [final output]."""
        return self.heading == FINAL


@dataclass(frozen=True, slots=True)
class TextUnit:
    """text[start:end], without blanks at either end; `speaker` is that of its turn."""

    start: int
    end: int
    kind: Kind = "prose"
    speaker: str | None = None

    @property
    def own(self) -> bool:
        """Whether the system under evaluation produced it, not a user, a tool or a cut."""
        return self.speaker in (None, "assistant") and self.kind in ("prose", "code", "call")

    @property
    def prose(self) -> bool:
        """Whether it is a sentence of the system under evaluation."""
        return self.own and self.kind == "prose"


class Spans:
    """Disjoint spans, searched for a position or an overlap by bisection."""

    def __init__(self, spans: Iterable[Span]) -> None:
        self.spans = sorted(spans)

    def over(self, position: int) -> bool:
        """Whether the position lies inside a span."""
        return self.overlap(position, position + 1)

    def overlap(self, start: int, end: int) -> bool:
        """Whether text[start:end] shares a character with a span."""
        i = bisect_left(self.spans, (end, -1)) - 1
        return i >= 0 and start < self.spans[i][1]


def split_sentences(text: str) -> list[TextUnit]:
    """Return the units of a text in order: disjoint, covering all but headings and blanks."""
    return [unit for turn in split_turns(text) for unit in split_turn(text, turn)]


def split_turns(text: str) -> Iterator[TextTurn]:
    """Yield the turns of a trajectory rendered by `make_view`; a text without headings is one."""
    heading: str | None = None
    speaker: str | None = None
    start = 0
    for line in _LINE.finditer(text):
        match = HEADING.match(line.group().rstrip("\r\n"))
        if match:
            if line.start() > start or heading is not None:
                yield TextTurn(heading, speaker, start, line.start())
            heading, speaker, start = match.group(), match.group(1) or "assistant", line.end()
    yield TextTurn(heading, speaker, start, len(text))


def split_turn(text: str, turn: TextTurn) -> Iterator[TextUnit]:
    """Yield the units of one turn, in order."""

    def trimmed(start: int, end: int, kind: Kind) -> Iterator[TextUnit]:
        shown = text[start:end]
        if visible := shown.strip():
            start += len(shown) - len(shown.lstrip())
            yield TextUnit(start, start + len(visible), kind, turn.speaker)

    if turn.speaker == "tool":
        for line in _LINE.finditer(text, turn.start, turn.end):
            yield from trimmed(*line.span(), "output")
        return
    at = turn.start
    for block in _BLOCK.finditer(text, turn.start, turn.end):
        for span in _prose(text, at, block.start()):
            yield from trimmed(*span, "prose")
        kind: Kind = "code" if block["fence"] else "call" if block["call"] else "mark"
        yield from trimmed(*block.span(), kind)
        at = block.end()
    for span in _prose(text, at, turn.end):
        yield from trimmed(*span, "prose")


def unbroken(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield spans in which no sentence ends: formulas and inline code.

    A single dollar follows pandoc's rule, so that "$5 and $10" is no formula.
    """
    at = start
    while opener := _OPENER.search(text, at, end):
        at = opener.end()
        sign = opener.group()
        closer, reach = _CLOSERS[sign]
        close = text.find(closer, at, min(end, at + reach))
        if close < 0 or _BLANK_LINE.search(text, at, close):
            continue
        if sign in "$`" and "\n" in text[at:close]:
            continue
        if sign == "$" and (text[close - 1].isspace() or text[close + 1 : close + 2].isdigit()):
            continue
        at = close + len(closer)
        yield opener.start(), at


def _prose(text: str, start: int, end: int) -> Iterator[Span]:
    """Yield the sentences of a stretch of prose, with the blanks around them."""
    atoms = Spans(unbroken(text, start, end))
    for first, last in _paragraphs(text, start, end, atoms):
        at = first
        for mark in _END.finditer(text, first, last):
            after = text[mark.end() : min(last, mark.end() + 40)].lstrip()
            so_far = text[at : mark.end()].strip()
            if not atoms.over(mark.start()) and not (after and _goes_on(so_far, after)):
                yield at, mark.end()
                at = mark.end()
        yield at, last


def _paragraphs(text: str, start: int, end: int, atoms: Spans) -> Iterator[Span]:
    """Yield lines, joined where a sentence continues: wrapped by a margin, or in a formula."""
    at = start
    for newline in re.finditer(r"\r?\n", text[start:end]):
        here, after = start + newline.start(), start + newline.end()
        line = text[max(at, text.rfind("\n", at, here) + 1) : here].rstrip()
        wrapped = len(line) >= _WRAPPED and line[-1] not in ".!?:;…"
        if not atoms.over(here) and not (wrapped and text[after : after + 1].islower()):
            yield at, here
            at = after
    yield at, end


def _goes_on(so_far: str, after: str) -> bool:
    """Whether the mark that ends `so_far` does not end a sentence, given what follows it."""
    if _MARKER.fullmatch(so_far):  # "2." at the start of a step
        return True
    first = after[0]
    if not so_far.endswith("."):  # "Really?" he asked.   (maybe.) so
        return first.islower() and not _VARIABLE.match(after)
    if so_far.endswith(".."):
        return first.islower()
    words = so_far[-40:-1].split()
    word = words[-1].lstrip("([\"'“‘").casefold() if words else ""
    if _ALWAYS.fullmatch(word):
        return True
    if _BEFORE_LOWER.fullmatch(word):
        return first.islower() or first in ",;"
    if _BEFORE_DIGIT.fullmatch(word):
        return first.isdigit()
    if _INITIALS.fullmatch(so_far[-20:]):  # "J. R. Smith"
        return True
    return bool(re.search(r"(?:^|\s)[A-Z]\.$", so_far[-3:]) and re.match(r"[A-Z]\.\s", after))
