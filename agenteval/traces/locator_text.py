"""Split a trace over prompts: measure and cut texts, slice spans, fill rows with slices."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from agenteval.models.client import estimate_tokens
from agenteval.models.prompts import data_block, neutralise
from agenteval.models.wire import NONCE, Request
from agenteval.traces.condense import TracePiece
from agenteval.traces.excerpt import size

# 24 random hex digits take a token per two characters; the placeholder has 11 bytes.
_NONCE_EXTRA = 2 * 24 - len(NONCE.encode())
_SEAM = 120  # bytes shown in both windows, so that words at the border are readable
_MAX_SLICES = 4  # of one span; the middle of a longer one is omitted with a mark
_MAX_HINTS = 4  # shown per span; the others are counted
_NOTE = "; what follows is left out"
_LINE_BREAKS = 2  # between blocks, in bytes


def tokens(text: str) -> int:
    """Estimate tokens as the model client does: UTF-8 bytes / 3, rounded up."""
    return -(-(size(text) + _NONCE_EXTRA * text.count(NONCE)) // 3)


def prompt_tokens(request: Request) -> int:
    """Estimate the tokens of a request's prompt, including the nonce that is inserted later."""
    nonces = sum(str(m.get("content") or "").count(NONCE) for m in request.messages)
    return estimate_tokens(request) + -(-_NONCE_EXTRA * nonces // 3)


def shorten(text: str, most: int) -> str:
    """Cut the middle of a text to fit `most` tokens, with a mark that counts omitted characters."""
    if tokens(text) <= most:
        return text
    data = text.encode("utf-8", "replace")
    room = max(3 * most - 60, 0)  # the mark takes up to 60 bytes
    head = data[: room * 2 // 3].decode("utf-8", "ignore")
    tail = data[len(data) - room // 3 :].decode("utf-8", "ignore") if room >= 3 else ""
    head, tail = re.sub(r"\S{1,30}$", "", head), re.sub(r"^\S{1,30}", "", tail)  # whole words
    omitted = len(text) - len(head) - len(tail)
    return f"{head}\n[... {omitted:,} characters left out ...]\n{tail}"


def windows(text: str, most: int) -> Iterator[tuple[int, int]]:
    """Yield (start, end) of windows of at most `most` bytes that together cover the text.

    They end at a nearby line break, if any, and start a few words before the previous end.
    """
    if not text:
        yield 0, 0
    start = end = 0
    while end < len(text):
        data = text[start : start + most].encode("utf-8", "replace")[:most]
        end = start + max(len(data.decode("utf-8", "ignore")), 1)
        if end < len(text) and (line := text.rfind("\n", start + 4 * (end - start) // 5, end)) > 0:
            end = line + 1
        yield start, end
        start = max(end - min(_SEAM, most // 8), start + 1)


@dataclass(frozen=True, slots=True)
class Slice:
    """The part of a span in one prompt: its neutralised text or a section of it.

    `start` and `total` are in characters; `hints` are lines on findings of detectors there.
    """

    index: str
    kind: str
    text: str
    start: int
    total: int
    hints: tuple[str, ...] = ()
    note: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether the slice shows its whole span."""
        return len(self.text) == self.total

    @property
    def label(self) -> str:
        """The heading: `S7 llm`, with the range of characters if incomplete."""
        end = self.start + len(self.text)
        where = f", characters {self.start + 1} to {end} of {self.total}"
        return f"{self.index} {self.kind}{'' if self.is_complete else where}{self.note}"

    @property
    def tokens(self) -> int:
        """Estimated tokens in a prompt, including markers and hints."""
        hints = sum(tokens(hint) + _LINE_BREAKS for hint in self.hints)
        return tokens(data_block(self.text, self.label)) + _LINE_BREAKS + hints


@dataclass(frozen=True, slots=True)
class SliceRow:
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
    pieces: Sequence[TracePiece], hints: Mapping[str, Sequence[str]], room: int
) -> Iterator[Slice]:
    """Yield slices of at most `room` tokens, up to four per piece.

    Headings say where the middle of a piece is omitted. `hints` are lines by span id, shown with
    the first slice.
    """
    for piece in pieces:
        lines = tuple(f"{piece.index}: {line}" for line in hints.get(piece.span, ()))
        if len(lines) > _MAX_HINTS:
            lines = (*lines[:_MAX_HINTS], f"{piece.index}: and {len(lines) - _MAX_HINTS} more")
        text = neutralise(piece.text)
        parts = list(refit(Slice(piece.index, piece.kind, text, 0, len(text), lines), room))
        if len(parts) > _MAX_SLICES:
            first, second, *_, third, last = parts
            parts = [first, replace(second, note=_NOTE), third, last]
        yield from parts


def refit(slice_: Slice, room: int) -> Iterator[Slice]:
    """Yield the slice, split into slices of at most `room` tokens if needed."""
    if slice_.tokens <= room:
        yield slice_
        return
    number = 10 ** len(f"{slice_.total}")
    frame = replace(slice_, text="", start=number, total=number, note=_NOTE)
    width = 3 * (room - frame.tokens - 1)
    if width < 24:  # no room for text next to the hints: drop the hints, the smaller loss
        slice_ = replace(slice_, hints=())
        width = max(3 * (room - replace(frame, hints=()).tokens - 1), 24)
    for start, end in windows(slice_.text, width):
        yield replace(
            slice_,
            text=slice_.text[start:end],
            start=slice_.start + start,
            hints=slice_.hints if start == 0 else (),
            note=slice_.note if end == len(slice_.text) else "",
        )


def rows_of(slices: Sequence[Slice], room: int, *, overlap: bool = True) -> Iterator[SliceRow]:
    """Yield rows within `room` tokens, each with at least one new slice.

    With `overlap`, the last slice of a row is repeated in the next row if it takes at most a
    quarter of the room. A slice larger than the room gets its own row.
    """
    costs = [slice_.tokens for slice_ in slices]
    at = 0
    while at < len(slices):
        begin, used = at, costs[at]
        before = costs[at - 1]
        if overlap and at and before <= room // 4 and used + before <= room:
            begin, used = at - 1, used + before
        end = at + 1
        while end < len(slices) and used + costs[end] <= room:
            used += costs[end]
            end += 1
        yield SliceRow(tuple(slices[begin:end]), at - begin, used)
        at = end
