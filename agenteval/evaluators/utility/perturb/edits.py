"""Edits: how an operator says what it changes, and the one place where they are applied."""

from __future__ import annotations

import math
import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from agenteval.evaluators.utility.perturb.layout import Layout

# What would be read as a heading, a tool call or a fence if it came to stand at a line's start.
_LOADED = re.compile(
    r"^(?=\[(?:(?:span )?(?:system|user|assistant|tool)\b|tool call\]|final output\])"
    r"|[ \t]*(?:`{3}|~{3}))",
    re.M,
)


@dataclass(frozen=True, slots=True, order=True)
class Edit:
    """text[start:end] becomes `new`."""

    start: int
    end: int
    new: str


@dataclass(frozen=True, slots=True)
class Change:
    """What an operator wants: `applied` of `of` places (sentences, words, numbers, characters).

    `removed` holds the texts taken out, `detail` says in words what was done. An operator that can
    do nothing returns no edits and the `reason`.
    """

    edits: tuple[Edit, ...] = ()
    applied: int = 0
    of: int = 0
    removed: tuple[str, ...] = ()
    detail: str = ""
    reason: str | None = None


def nothing(reason: str, of: int = 0) -> Change:
    """A change that changes nothing, and why."""
    return Change(of=of, reason=reason)


def count_of(share: float, n: int) -> int:
    """How many of `n` places a share is: rounded half up, at least 1, at most n - 1.

    Raises ValueError for n below 2, where nothing can go and something stay.
    """
    if n < 2:
        raise ValueError(f"a share of {n} place(s)")
    return min(n - 1, max(1, math.floor(share * n + 0.5)))


def apply_edits(text: str, edits: Iterable[Edit]) -> str:
    """The text after the edits, which must be disjoint (ValueError otherwise).

    A line that only now begins like a heading, a tool call or a fence gets a backslash in front:
    no edit can make one speaker out of another.
    """
    out: list[str] = []
    kept: list[tuple[int, int, int]] = []  # position in the result, in the original, length
    at = size = 0
    for edit in sorted(edits):
        if edit.start < at or edit.end < edit.start:
            raise ValueError(f"edits overlap at {edit.start}")
        kept.append((size, at, edit.start - at))
        out += [text[at : edit.start], edit.new]
        size += edit.start - at + len(edit.new)
        at = edit.end
    kept.append((size, at, len(text) - at))
    out.append(text[at:])
    return _guarded("".join(out), text, kept)


def _guarded(result: str, text: str, kept: list[tuple[int, int, int]]) -> str:
    starts = [new for new, _, _ in kept]
    out: list[str] = []
    at = 0
    for match in _LOADED.finditer(result):
        new, old, length = kept[bisect_right(starts, match.start()) - 1]
        offset = match.start() - new
        if offset < length and _LOADED.match(text, old + offset):
            continue  # it began a line before
        out += [result[at : match.start()], "\\"]
        at = match.start()
    return "".join([*out, result[at:]])


def removal(layout: Layout, indices: Iterable[int]) -> tuple[Edit, ...]:
    """Edits that take out whole parts.

    Of the gaps that fall together the widest (most line breaks) stays, so that paragraphs remain
    paragraphs. A turn that loses everything keeps its heading.
    """
    gone = set(indices)
    edits = []
    for first, last in _runs(layout, sorted(gone)):
        parts, turn = layout.parts, layout.turns[layout.parts[first].turn]
        alone_left = first == 0 or parts[first - 1].turn != parts[first].turn
        alone_right = last + 1 == len(parts) or parts[last + 1].turn != parts[last].turn
        start = turn.start if alone_left else parts[first - 1].end
        end = turn.end if alone_right else parts[last + 1].start
        gaps = _gaps(layout, first, last, start, end)
        if alone_left and alone_right:
            gap = gaps[-1].replace("\n", "", 1)  # as make_view shows a turn without content
        elif alone_left or alone_right:
            gap = gaps[-1] if alone_right else gaps[0]
        else:
            gap = max(gaps, key=lambda g: g.count("\n"))
        edits.append(Edit(start, end, gap))
    return tuple(edits)


def _runs(layout: Layout, gone: list[int]) -> Iterator[tuple[int, int]]:
    """First and last of neighbours within one turn."""
    at = 0
    while at < len(gone):
        last = at
        while (
            last + 1 < len(gone)
            and gone[last + 1] == gone[last] + 1
            and layout.parts[gone[last + 1]].turn == layout.parts[gone[at]].turn
        ):
            last += 1
        yield gone[at], gone[last]
        at = last + 1


def _gaps(layout: Layout, first: int, last: int, start: int, end: int) -> list[str]:
    ends = [start, *(layout.parts[i].end for i in range(first, last + 1))]
    starts = [*(layout.parts[i].start for i in range(first, last + 1)), end]
    return [layout.text[a:b] for a, b in zip(ends, starts, strict=True)]
