"""A condensed trace: one piece of text for each span that is kept, under a short index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from agenteval.records.run import SpanKind

SMALLEST = 64  # tokens of a chunk; less has no room for a part's label and some text


@dataclass(frozen=True, slots=True)
class Piece:
    """What a judge reads of one span. `tokens` is an estimate (see `estimate_tokens`)."""

    index: str  # S1 ... Sn, in the order of the trace; S7a, S7b ... for parts of S7
    span: str  # id of the span
    kind: SpanKind
    text: str
    tokens: int


@dataclass(frozen=True)
class Condensed:
    """The pieces of a trace in its order.

    `source_tokens` estimates the whole trace as it was, `tokens` what is left. `dropped` counts
    spans left out by reason (a wrapper, say); `folded` messages and outputs that stood elsewhere
    already; `cut` the characters left out of texts for length, each cut being marked in its text.
    `over` is by how many tokens the pieces exceed the budget that was asked for, because less
    than this would hide a span, an error or a call.
    """

    trace: str
    pieces: tuple[Piece, ...]
    source_tokens: int
    dropped: dict[str, int] = field(default_factory=dict)
    folded: int = 0
    cut: int = 0
    over: int = 0

    @cached_property
    def tokens(self) -> int:
        """Estimated tokens of all pieces."""
        return sum(piece.tokens for piece in self.pieces)

    @property
    def ratio(self) -> float:
        """Tokens left, as a share of the tokens there were; 1.0 for an empty trace."""
        return self.tokens / self.source_tokens if self.source_tokens else 1.0

    def chunks(self, budget: int, overlap: int = 1) -> Iterator[Sequence[Piece]]:
        """Rows of pieces, in their order, of at most `budget` tokens each.

        A row begins with up to `overlap` of the last pieces of the row before, as many as fit into
        half of the budget and leave room for the next new one; so every row has a new piece and
        the rows together hold less than about twice the pieces, whatever `overlap` is. A piece
        larger than `budget` is split at ends of lines into parts S7a, S7b ... of the same span.

        Raises ValueError for a budget below SMALLEST or a negative overlap.
        """
        if budget < SMALLEST:
            raise ValueError(f"a chunk needs at least {SMALLEST} tokens, not {budget}")
        if overlap < 0:
            raise ValueError(f"overlap must not be negative: {overlap}")
        return _rows([p for piece in self.pieces for p in parts(piece, budget)], budget, overlap)


def _rows(units: Sequence[Piece], budget: int, overlap: int) -> Iterator[Sequence[Piece]]:
    fresh = 0
    while fresh < len(units):
        start, used = fresh, units[fresh].tokens
        most = min(budget, used + budget // 2)
        while start > max(0, fresh - overlap) and used + units[start - 1].tokens <= most:
            start -= 1
            used += units[start].tokens
        end = fresh + 1
        while end < len(units) and used + units[end].tokens <= budget:
            used += units[end].tokens
            end += 1
        yield units[start:end]
        fresh = end


def parts(piece: Piece, budget: int) -> list[Piece]:
    """The piece itself when it has at most `budget` tokens, else parts that have.

    Each part begins with a line that says which part of what it is; without these lines the parts
    together are the text of the piece.
    """
    if piece.tokens <= budget:
        return [piece]
    head = clip(piece.text.split("\n", 1)[0], budget)  # at most a quarter of the room
    blocks = list(_blocks(piece.text, 4 * budget - size(head) - len(piece.index) - 56))
    found = []
    for k, block in enumerate(blocks):
        index = piece.index + _letters(k)
        of = f": {head}" if k else ""
        text = f"[{index}, part {k + 1} of {len(blocks)}{of}]\n{block}"
        found.append(Piece(index, piece.span, piece.kind, text, estimate_tokens(text)))
    return found


def _blocks(text: str, room: int) -> Iterator[str]:
    block: list[str] = []
    used = 0
    for line in text.splitlines(keepends=True):
        while used + size(line) > room:
            if block:
                yield "".join(block)
                block, used = [], 0
                continue
            taken = clip(line, room)
            yield taken
            line = line[len(taken) :]
        block.append(line)
        used += size(line)
    if used:
        yield "".join(block)


def _letters(k: int) -> str:
    """0 is a, 25 is z, 26 is aa."""
    text = ""
    k += 1
    while k:
        k, rest = divmod(k - 1, 26)
        text = chr(ord("a") + rest) + text
    return text


def size(text: str) -> int:
    """Bytes of the text in UTF-8, a lone surrogate counting as one."""
    return len(text) if text.isascii() else len(text.encode("utf-8", "replace"))


def clip(text: str, most: int, end: bool = False) -> str:
    """The longest beginning (or end) of `text` of at most `most` bytes; at least one character of
    a text that has one."""
    if size(text) <= most:
        return text
    taken = text[-max(most, 1) :] if end else text[: max(most, 1)]
    while size(taken) > most and len(taken) > 1:
        excess = max(1, (size(taken) - most) // 4)
        taken = taken[excess:] if end else taken[:-excess]
    return taken


def estimate_tokens(text: str) -> int:
    """Tokens, estimated as four bytes of UTF-8 each, which is close for English and JSON."""
    return size(text) // 4 + 1
