"""A trace spread over prompts: slices of spans, and rows of slices that fit a window."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from agenteval.evaluators.traces.locator_text import tokens, windows
from agenteval.evaluators.traces.pieces import Piece
from agenteval.models.prompts import data_block, neutralise

_HINTS = 4  # shown for one span; the rest is counted
_NOTE = "; what follows is left out"
_LINE = 2  # line breaks between blocks, in bytes


@dataclass(frozen=True, slots=True)
class Slice:
    """What one prompt shows of one span: its text, or a stretch of it.

    `text` is neutralised already. `start` and `total` are characters; `tokens` is what the slice
    takes in a prompt, with its markers and its hints.
    """

    index: str
    kind: str
    text: str
    start: int
    total: int
    hints: tuple[str, ...] = ()
    note: str = ""

    @property
    def label(self) -> str:
        """How the slice is headed: `S7 llm`, or which characters of it these are."""
        if len(self.text) == self.total:
            return f"{self.index} {self.kind}{self.note}"
        end = self.start + len(self.text)
        return (
            f"{self.index} {self.kind}, characters {self.start + 1} to {end} of {self.total}"
            f"{self.note}"
        )

    @property
    def tokens(self) -> int:
        """Estimated tokens in a prompt."""
        lines = sum(tokens(h) + _LINE for h in self.hints)
        return tokens(data_block(self.text, self.label)) + _LINE + lines


@dataclass(frozen=True, slots=True)
class Row:
    """The slices of one prompt; the first `again` of them were shown before."""

    slices: tuple[Slice, ...]
    again: int = 0
    tokens: int = 0

    @property
    def new(self) -> tuple[Slice, ...]:
        """The slices not shown before."""
        return self.slices[self.again :]

    @property
    def name(self) -> str:
        """`S3`, or `S3 to S9`: the new slices."""
        first, last = self.new[0].index, self.new[-1].index
        return first if first == last else f"{first} to {last}"


def slices_of(
    pieces: Sequence[Piece], hints: Mapping[str, Sequence[str]], room: int, longest: int
) -> Iterator[Slice]:
    """Slices of all pieces, none of more than `room` tokens; at most `longest` of each piece.

    Of a piece that would need more, the middle is left out, and the headings say so. `hints` are
    lines by span id; each piece's stand with its first slice.
    """
    for piece in pieces:
        lines = tuple(f"{piece.index}: {line}" for line in hints.get(piece.span, ()))
        if len(lines) > _HINTS:
            lines = (*lines[:_HINTS], f"{piece.index}: and {len(lines) - _HINTS} more")
        text = neutralise(piece.text)
        whole = Slice(piece.index, piece.kind, text, 0, len(text), lines)
        parts = list(refit(whole, room))
        if len(parts) > longest:
            parts = _without_middle(parts, longest)
        yield from parts


def _without_middle(parts: list[Slice], longest: int) -> list[Slice]:
    head, tail = (longest + 1) // 2, longest // 2
    # A text that is cut must not pass for whole: `total` tells them apart, and so does the note.
    ends = replace(parts[head - 1], note=_NOTE)
    return [*parts[: head - 1], ends, *parts[len(parts) - tail :]] if tail else [*parts[:head - 1],
                                                                                 ends]  # fmt: skip


def refit(one: Slice, room: int) -> Iterator[Slice]:
    """The slice, or the slices of at most `room` tokens that it has to be cut into."""
    if one.tokens <= room:
        yield one
        return
    digits = len(f"{one.total}")
    frame = replace(one, text="", start=10**digits, total=10**digits, note=_NOTE)
    first = 3 * (room - frame.tokens - 1)
    if first < 24:  # no room beside the hints: they are the smaller loss
        frame = replace(frame, hints=())
        one = replace(one, hints=())
        first = max(3 * (room - frame.tokens - 1), 24)
    for start, end in windows(one.text, first):
        last = end == len(one.text)
        yield replace(
            one,
            text=one.text[start:end],
            start=one.start + start,
            hints=one.hints if start == 0 else (),
            note=one.note if last else "",
        )


def rows_of(slices: Sequence[Slice], room: int, overlap: int) -> Iterator[Row]:
    """Rows within `room` tokens, each with something new.

    Up to `overlap` slices are shown again at the start of the next row, if they take no more than
    a quarter of it. A slice that is larger than the room stands alone.
    """
    costs = [one.tokens for one in slices]
    at = 0
    while at < len(slices):
        begin, used = at, costs[at]
        while at - begin < overlap and begin > 0:
            shown = sum(costs[begin - 1 : at])
            if shown > room // 4 or used + costs[begin - 1] > room:
                break
            begin -= 1
            used += costs[begin]
        end = at + 1
        while end < len(slices) and used + costs[end] <= room:
            used += costs[end]
            end += 1
        yield Row(tuple(slices[begin:end]), at - begin, used)
        at = end
