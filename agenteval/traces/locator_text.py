"""A trace spread over prompts: measuring and cutting text, finding quoted words in it, slices of
spans, and rows of slices that fit a window."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from agenteval.models.client import estimate_tokens
from agenteval.models.prompts import data_block, neutralise
from agenteval.models.wire import NONCE, Request
from agenteval.traces.pieces import TracePiece

# 24 random hex digits are two characters to a token; the placeholder has 11 bytes.
_NONCE_EXTRA = 2 * 24 - len(NONCE.encode())
_SEAM = 120  # bytes shown in both windows, so that words at the border can be read
_ESCAPE = re.compile(r"\\+(?:u([0-9a-fA-F]{4})|[nrt])?")
_SHOWN_CODE = re.compile(r"\[U\+[0-9A-F]{4,6}\]")  # how prompts show invisible characters
_NOISE = re.compile(r"[\s\"'`´‘’‚‛“”„‟«»‹›\u200b-\u200f\u2060\ufeff]+")
_ELLIPSIS = re.compile(r"\[\s*(?:\.{3,}|…)\s*\]|\(\s*(?:\.{3,}|…)\s*\)|\.{3,}|…")
_SURROGATE = re.compile("[\ud800-\udfff]")
_FEWEST = 3  # characters of a quote, without white space and quote marks
_LONGEST = 8  # of the longest piece of a quote with gaps


def tokens(text: str) -> int:
    """Tokens of a text, estimated as the model client does: UTF-8 bytes / 3, rounded up."""
    return -(-(_bytes(text) + _NONCE_EXTRA * text.count(NONCE)) // 3)


def prompt_tokens(request: Request) -> int:
    """Tokens of a request's prompt, estimated, with the nonce that is yet to be put in."""
    nonces = sum(str(m.get("content") or "").count(NONCE) for m in request.messages)
    return estimate_tokens(request) + -(-_NONCE_EXTRA * nonces // 3)


def _bytes(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def shorten(text: str, most: int) -> str:
    """At most `most` tokens: beginning and end, and how many characters are missing between."""
    if tokens(text) <= most:
        return text
    data = text.encode("utf-8", "replace")
    room = max(3 * most - 60, 0)  # the mark takes up to 60 bytes
    head = data[: room * 2 // 3].decode("utf-8", "ignore")
    tail = data[len(data) - room // 3 :].decode("utf-8", "ignore") if room >= 3 else ""
    head, tail = re.sub(r"\S{1,30}$", "", head), re.sub(r"^\S{1,30}", "", tail)  # whole words
    left_out = len(text) - len(head) - len(tail)
    return f"{head}\n[... {left_out:,} characters left out ...]\n{tail}"


def windows(text: str, most: int) -> Iterator[tuple[int, int]]:
    """(start, end) offsets of stretches of at most `most` bytes that together cover the text.

    They end at a line break where one is near, and begin a few words before the last one ended.
    """
    if not text:
        yield 0, 0
        return
    start = 0
    while start < len(text):
        data = text[start : start + most].encode("utf-8", "replace")[:most]
        end = start + max(len(data.decode("utf-8", "ignore")), 1)
        if end < len(text) and (line := text.rfind("\n", start + 4 * (end - start) // 5, end)) > 0:
            end = line + 1
        yield start, end
        if end == len(text):
            return
        start = max(end - min(_SEAM, most // 8), start + 1)


def flat(text: str) -> str:
    """The text without what quoting changes: white space, quote marks, escapes, dashes, case."""
    text = _SHOWN_CODE.sub("", neutralise(text))  # a judge may quote the original or what it saw
    text = _ESCAPE.sub(lambda m: chr(int(m[1], 16)) if m[1] else "", text)
    if _SURROGATE.search(text):  # two escapes may make one character: \\ud83e\\udd9c
        text = text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    text = text.replace("–", "-").replace("—", "-")
    return _NOISE.sub("", text).casefold()


def quoted_in(quote: str, flat_text: str) -> str | None:
    """None when the quote stands in the text (`flat`), else why it does not count.

    White space, quote marks, backslash escapes and case do not matter. An ellipsis in the quote
    stands for words left out: its pieces must follow one another in the text, and one of them
    must have eight characters. A quote of fewer than three characters shows nothing.
    """
    whole = flat(quote)
    if len(_ELLIPSIS.sub("", whole)) < _FEWEST:
        return "no words are quoted"
    if whole in flat_text:
        return None
    pieces = [piece for part in _ELLIPSIS.split(quote) if (piece := flat(part))]
    if len(pieces) > 1 and max(map(len, pieces)) < _LONGEST:
        return "the pieces quoted are too short to be found again"
    at = 0
    for piece in pieces:
        position = flat_text.find(piece, at)
        if position < 0:
            return "the quoted words are not in the span"
        at = position + len(piece)
    return None


LONGEST = 4  # windows that one span may fill; of more, the middle is left out, visibly
OVERLAP = 1  # spans shown again at the start of the next part, where they fit
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
    """Slices of all pieces, none of more than `room` tokens; at most LONGEST of each piece.

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
        if len(parts) > LONGEST:
            # A text that is cut must not pass for whole: `total` and the note tell it.
            head = parts[: (LONGEST + 1) // 2]
            parts = [*head[:-1], replace(head[-1], note=_NOTE), *parts[-(LONGEST // 2) :]]
        yield from parts


def refit(whole: Slice, room: int) -> Iterator[Slice]:
    """The slice, or the slices of at most `room` tokens that it has to be cut into."""
    if whole.tokens <= room:
        yield whole
        return
    digits = len(f"{whole.total}")
    frame = replace(whole, text="", start=10**digits, total=10**digits, note=_NOTE)
    first = 3 * (room - frame.tokens - 1)
    if first < 24:  # no room beside the hints: they are the smaller loss
        frame = replace(frame, hints=())
        whole = replace(whole, hints=())
        first = max(3 * (room - frame.tokens - 1), 24)
    for start, end in windows(whole.text, first):
        last = end == len(whole.text)
        yield replace(
            whole,
            text=whole.text[start:end],
            start=whole.start + start,
            hints=whole.hints if start == 0 else (),
            note=whole.note if last else "",
        )


def rows_of(slices: Sequence[Slice], room: int, overlap: int = OVERLAP) -> Iterator[SliceRow]:
    """Rows within `room` tokens, each with something new.

    Up to `overlap` slices are shown again at the start of the next row, if they take no more than
    a quarter of it. A slice that is larger than the room stands alone.
    """
    costs = [piece.tokens for piece in slices]
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
        yield SliceRow(tuple(slices[begin:end]), at - begin, used)
        at = end
