"""A condensed trace: one piece of text for each span that is kept, under a short index."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

from agenteval.records.run import SpanKind


@dataclass(frozen=True, slots=True)
class TracePiece:
    """What a judge reads of one span. `tokens` is an estimate (see `estimate_tokens`)."""

    index: str  # S1 ... Sn, in the order of the trace
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
    pieces: tuple[TracePiece, ...]
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
