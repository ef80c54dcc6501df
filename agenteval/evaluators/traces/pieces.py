"""A condensed trace: one piece of text for each span that is kept, under a short index."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from agenteval.records.run import SpanKind


@dataclass(frozen=True, slots=True)
class Piece:
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
    already.
    """

    trace: str
    pieces: tuple[Piece, ...]
    source_tokens: int
    dropped: dict[str, int] = field(default_factory=dict)
    folded: int = 0

    @property
    def tokens(self) -> int:
        """Estimated tokens of all pieces."""
        return sum(piece.tokens for piece in self.pieces)

    @property
    def ratio(self) -> float:
        """Tokens left, as a share of the tokens there were; 1.0 for an empty trace."""
        return self.tokens / self.source_tokens if self.source_tokens else 1.0

    def span_of(self, index: str) -> str | None:
        """The span id of an index such as "S12" (any case, with or without brackets)."""
        return self._spans.get(index.strip().strip("[]()<>").upper())

    @property
    def _spans(self) -> dict[str, str]:
        return {piece.index: piece.span for piece in self.pieces}

    def chunks(self, budget: int, overlap: int = 1) -> Iterator[Sequence[Piece]]:
        """Rows of pieces within `budget` tokens; each begins with the last `overlap` of the one
        before. A piece that is larger than the budget stands alone."""
        start = 0
        while start < len(self.pieces):
            end, used = start, 0
            while end < len(self.pieces) and (
                end == start or used + self.pieces[end].tokens <= budget
            ):
                used += self.pieces[end].tokens
                end += 1
            yield self.pieces[start:end]
            if end == len(self.pieces):
                return
            start = max(end - overlap, start + 1)


def estimate_tokens(text: str) -> int:
    """Tokens, estimated as four bytes of UTF-8 each, which is close for English and JSON."""
    return (len(text) if text.isascii() else len(text.encode("utf-8", "replace"))) // 4 + 1
