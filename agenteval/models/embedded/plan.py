"""What is computed together: windows for long texts, batches for many.

A window is a context and the tokens scored after it. At most WINDOW tokens are seen at once:

* prefix and text fit: one window with the whole prefix.
* they do not: every window keeps the prefix (its last WINDOW // 2 tokens when it is longer, so
  that the end, which opens the assistant's turn, stays). The room left is filled by the first
  window with the first tokens of the text; each further window scores the next half room and
  sees the half room before it. So a token of a long text is scored after the prefix and at least
  WINDOW // 4 preceding tokens of the text (all of them in the first window).
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

WINDOW = 2048
_ROW_TOKENS = 1024  # padded tokens per batch; larger batches were no faster on 2 cores
_PADDING = 1.15  # at most this many computed positions per useful one
_SHARED = 16  # a context from this length on is computed once for all texts that follow it


@dataclass(frozen=True)
class Window:
    """`targets` (tokens at..at+n of text `item`) are scored after `context` (never empty)."""

    item: int
    at: int
    context: tuple[int, ...]
    targets: tuple[int, ...]


@dataclass(frozen=True)
class Batch:
    """Windows computed together. `shared` tokens of context are common and computed once."""

    shared: int
    windows: tuple[Window, ...]


def windows(
    item: int, prefix: Sequence[int], text: Sequence[int], limit: int = WINDOW
) -> Iterator[Window]:
    """The windows that score every token of `text` exactly once, in order.

    `prefix` must hold at least one token; `limit` is the number of tokens seen at once.
    """
    if len(prefix) + len(text) <= limit:
        if text:
            yield Window(item, 0, tuple(prefix), tuple(text))
        return
    kept = tuple(prefix[-(limit // 2) :])
    room = limit - len(kept)
    at = 0
    while at < len(text):
        seen = 0 if at == 0 else room // 2
        end = min(len(text), at - seen + room)
        yield Window(item, at, kept + tuple(text[at - seen : at]), tuple(text[at:end]))
        at = end


def batches(wanted: Sequence[Window]) -> Iterator[Batch]:
    """Every window in exactly one batch, in an order that depends on the windows alone."""
    by_context: dict[tuple[int, ...], list[Window]] = defaultdict(list)
    for window in wanted:
        by_context[window.context].append(window)
    alone: list[Window] = []
    for context, group in by_context.items():
        if len(group) > 1 and len(context) >= _SHARED:
            # The last token of the context is computed in each row: it predicts the first target.
            yield from _packed(len(context) - 1, group)
        else:
            alone += group
    yield from _packed(0, alone)


def _packed(shared: int, group: Sequence[Window]) -> Iterator[Batch]:
    ordered = sorted(group, key=lambda w: (_length(w, shared), w.item, w.at))
    start = 0
    useful = 0
    for index, window in enumerate(ordered):
        length = _length(window, shared)
        padded = length * (index - start + 1)
        if index > start and (padded > _ROW_TOKENS or padded > _PADDING * (useful + length)):
            yield Batch(shared, tuple(ordered[start:index]))
            start, useful = index, 0
        useful += length
    if start < len(ordered):
        yield Batch(shared, tuple(ordered[start:]))


def _length(window: Window, shared: int) -> int:
    """Positions of a row: what stands before each target; the last target is only predicted."""
    return len(window.context) - shared + len(window.targets) - 1
