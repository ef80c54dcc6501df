"""The parts of a rendered trajectory that may be changed, and how a change is applied.

`read_layout` refines `split_sentences`. A sentence here is a unit of the system's own prose that
can go, move or change without breaking anything. These stay as they are and are no sentences:
headings of the view, Markdown headings, rows of tables, rules, code, tool calls, what tools and
users said, AutoGen's TERMINATE, and the mark of a cut. Sentences that share a pair of ** or a
LaTeX environment are one. A sentence under [final output] that repeats an earlier one word for
word is its copy: both are one statement shown twice, and what happens to one happens to the other.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import groupby
from typing import Literal

from agenteval.readers.messages import STOP_WORD
from agenteval.utility.sentences import (
    Span,
    Spans,
    TextTurn,
    TextUnit,
    split_turn,
    split_turns,
    unbroken,
)

PartKind = Literal["sentence", "code", "call", "fixed"]

_FRAME = re.compile(r"#{1,6}(?:\s|$)|\|")  # a Markdown heading, a row of a table
_ENVIRONMENT = re.compile(r"\\begin\{(\w+\*?)\}(?:(?!\\begin\{).){0,4000}?\\end\{\1\}", re.S)
_LINK = re.compile(
    r"(?:https?://|www\.)\S+"
    r"|(?<![\w.+-])[\w.+-]{1,64}@[\w-]{1,64}\.[\w.-]{1,64}"
    r"|(?<![\w.-])[\w-]{1,64}(?:\.[\w-]{1,64}){1,8}/[\w/.-]*"
)
# What would be read as a heading, a tool call or a fence if it came to stand at a line's start.
_LOADED = re.compile(
    r"^(?=\[(?:(?:span )?(?:system|user|assistant|tool)\b|tool call\]|final output\])"
    r"|[ \t]*(?:`{3}|~{3}))",
    re.M,
)
MARKER = re.compile(
    r"(?:>\s*)?(?:[-*+•]|\(?(?:\d{1,3}|[A-Za-z]|[ivx]{2,4})[.):]|(?:\*\*)?(?:Step|Case|Part|Phase)"
    r"\s+\d{1,3}[.):])(?:\s+|$)"
)


class Unchanged(Exception):
    """An operator can do nothing to a text; the message says why."""


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """text[start:end] becomes `new`."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class TextPart:
    """text[start:end], without blanks at either end; `turn` is an index into Layout.turns."""

    start: int
    end: int
    kind: PartKind
    turn: int


@dataclass(frozen=True, slots=True)
class Layout:
    """A text with its turns and parts, in order. `copies`: sentence → its copies (part indices)."""

    text: str
    turns: tuple[TextTurn, ...]
    parts: tuple[TextPart, ...]
    copies: dict[int, tuple[int, ...]]

    def of(self, index: int) -> str:
        """Return the text of a part."""
        return self.text[self.parts[index].start : self.parts[index].end]

    def own(self, *kinds: PartKind) -> list[int]:
        """Return the indices of the system's parts of these kinds, in order, copies left out."""
        copied = {c for copies in self.copies.values() for c in copies}
        return [i for i, p in enumerate(self.parts) if p.kind in kinds and i not in copied]

    def sentences(self, least: int = 1) -> list[int]:
        """Return the indices of the sentences in order, without copies. Raises Unchanged if there
        are fewer than `least`, or none."""
        pool = self.own("sentence")
        if not pool:
            kinds = {p.kind for p in self.parts}
            what = (
                "only code"
                if "code" in kinds
                else "only tool calls"
                if "call" in kinds
                else "no sentence"
            )
            raise Unchanged(f"the system wrote {what}")
        if len(pool) < least:
            raise Unchanged("there is only one sentence, and one must remain")
        return pool

    def with_copies(self, indices: Iterable[int]) -> list[int]:
        """Return the indices and those of their copies, in order."""
        chosen = set(indices)
        return sorted(chosen | {c for i in chosen for c in self.copies.get(i, ())})

    def body(self, index: int) -> Span:
        """Return the span of a sentence behind its list marker."""
        part = self.parts[index]
        marker = MARKER.match(self.text, part.start, part.end)
        return (marker.end() if marker and marker.end() < part.end else part.start), part.end

    def removal(self, indices: Iterable[int]) -> list[Edit]:
        """Return edits that remove whole parts and their copies.

        Of the gaps that fall together the widest (most line breaks) stays, so that paragraphs
        remain paragraphs. A turn that loses everything keeps its heading.
        """
        edits = []
        numbered = enumerate(self.with_copies(indices))
        for (turn, _), group in groupby(numbered, lambda n: (self.parts[n[1]].turn, n[1] - n[0])):
            gone = [i for _, i in group]
            before, after = gone[0] - 1, gone[-1] + 1
            has_before = before >= 0 and self.parts[before].turn == turn
            has_after = after < len(self.parts) and self.parts[after].turn == turn
            start = self.parts[before].end if has_before else self.turns[turn].start
            end = self.parts[after].start if has_after else self.turns[turn].end
            ends = [start, *(self.parts[i].end for i in gone)]
            starts = [*(self.parts[i].start for i in gone), end]
            gaps = [self.text[a:b] for a, b in zip(ends, starts, strict=True)]
            if has_before and has_after:
                gap = max(gaps, key=lambda g: g.count("\n"))
            elif has_after:
                gap = gaps[0]
            else:  # a turn without content looks as make_view shows it
                gap = gaps[-1] if has_before else gaps[-1].replace("\n", "", 1)
            edits.append(Edit(start, end, gap))
        return edits


def read_layout(text: str) -> Layout:
    """Return turns and parts of a trajectory rendered by `make_view`. Time linear in its length."""
    turns = tuple(split_turns(text))
    parts = tuple(p for i, turn in enumerate(turns) for p in _parts(text, i, turn))
    earlier: dict[str, int] = {}
    copies: dict[int, tuple[int, ...]] = {}
    for i, part in enumerate(parts):
        shown = text[part.start : part.end]
        if part.kind == "sentence" and not turns[part.turn].final:
            earlier[shown] = i
        elif part.kind == "sentence" and shown in earlier:
            copies[earlier[shown]] = (*copies.get(earlier[shown], ()), i)
    return Layout(text, turns, parts, copies)


def _parts(text: str, index: int, turn: TextTurn) -> Iterator[TextPart]:
    line_end = 0
    for first, end in _tied(text, list(split_turn(text, turn)), turn):
        shown = text[first.start : end]
        kind: PartKind = "fixed"
        if first.own and first.kind in ("code", "call"):
            kind = "code" if first.kind == "code" else "call"
        elif first.own and any(c.isalnum() for c in shown) and shown != STOP_WORD:
            kind = "sentence"
        if kind == "sentence" and _FRAME.match(shown):  # with all that stands on its line
            newline = text.find("\n", end, turn.end)
            line_end = newline if newline >= 0 else turn.end
        written = (turn.heading or "").startswith("[span ") and shown == "status: error"
        opens = not text[turn.start : first.start].strip()
        if kind == "sentence" and (first.start < line_end or (written and opens)):
            kind = "fixed"
        yield TextPart(first.start, end, kind, index)


def _tied(text: str, units: list[TextUnit], turn: TextTurn) -> Iterator[tuple[TextUnit, int]]:
    """Yield first unit and end of those that belong together by ** or a LaTeX environment."""
    markers = _ENVIRONMENT.finditer(text, turn.start, turn.end)
    environments = Spans(m.span() for m in markers)
    at = 0
    while at < len(units):
        last = _bold_end(text, units, at) if turn.own else at
        while turn.own and last + 1 < len(units) and environments.over(units[last + 1].start - 1):
            last += 1
        if any(u.kind != "prose" for u in units[at : last + 1]):
            last = at
        yield units[at], units[last].end
        at = last + 1


def _bold_end(text: str, units: list[TextUnit], at: int) -> int:
    """Return the index of the unit that closes the ** left open in unit `at`, else `at`."""

    def odd(unit: TextUnit) -> int:
        return text.count("**", unit.start, unit.end) % 2

    if units[at].kind != "prose" or not odd(units[at]):
        return at
    for last in range(at + 1, min(at + 12, len(units))):
        if "\n" in text[units[last - 1].end : units[last].start] or units[last].kind != "prose":
            return at
        if odd(units[last]):
            return last
    return at


def protected(text: str, start: int, end: int, *, formulas: bool = True) -> Spans:
    """Return addresses in a part, and its formulas and inline code unless `formulas` is False."""
    spans = [m.span() for m in _LINK.finditer(text, start, end)]
    if formulas:
        spans += [*unbroken(text, start, end)]
        spans += [m.span() for m in _ENVIRONMENT.finditer(text, start, end)]
    return Spans(merged(spans))


def merged(spans: Iterable[Span]) -> list[Span]:
    """Return the spans in order, those that touch or overlap merged."""
    result: list[Span] = []
    for start, end in sorted(spans):
        if result and start <= result[-1][1]:
            result[-1] = (result[-1][0], max(result[-1][1], end))
        else:
            result.append((start, end))
    return result


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """Return the text after the edits, which must be disjoint (ValueError otherwise).

    A line that only now begins like a heading, a tool call or a fence gets a backslash in front:
    no edit can make one speaker out of another.
    """
    pieces: list[str] = []
    copied: list[tuple[int, int, int]] = []  # position in the result, in the original, length
    at = size = 0
    for edit in [*sorted(edits), Edit(len(text), len(text), "")]:
        if edit.start < at or edit.end < edit.start:
            raise ValueError(f"edits overlap at {edit.start}")
        copied.append((size, at, edit.start - at))
        pieces += [text[at : edit.start], edit.new]
        size += edit.start - at + len(edit.new)
        at = edit.end
    starts = [new for new, _, _ in copied]

    def guard(match: re.Match[str]) -> str:
        new, old, length = copied[bisect_right(starts, match.start()) - 1]
        offset = match.start() - new
        return "" if offset < length and _LOADED.match(text, old + offset) else "\\"

    return _LOADED.sub(guard, "".join(pieces))


def count_of(share: float, n: int, most: int) -> int:
    """Return how many of `n` places a share is: rounded half up, at least 1, at most `most`."""
    return min(most, max(1, int(share * n + 0.5)))
