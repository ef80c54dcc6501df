"""shuffle_sentences: the same sentences in another order, each speaker keeping its own."""

from __future__ import annotations

import re

import numpy as np

from agenteval.evaluators.utility.perturb.edits import Change, Edit, nothing
from agenteval.evaluators.utility.perturb.layout import Layout

_TRIES = 20
_FULL_MARK = re.compile(r"[.!?…。！？][)\]\"'”’»*_$]*\Z")


def shuffle_sentences(layout: Layout, share: float, rng: np.random.Generator) -> Change:
    """The sentences change places within the turns of one speaker; the order surely changes.

    Turns with the same heading share a pool, so sentences may move from a speaker's first turn to
    its last, but nobody is given another's words; [final output] is a pool of its own. List
    numbers and bullets stay where they are, their contents move: numbers out of order would tell
    of the shuffling. So would "Dear Ann," in the middle of a line: what ends its line without a
    full mark moves only to a place that ends a line, and to a line of its own if it had one. A
    speaker with fewer than two different sentences is left alone.
    """
    edits: list[Edit] = []
    moved = of = 0
    for slots in _pools(layout).values():
        spans = [layout.body(i) for i in slots]
        parts = [layout.text[start:end] for start, end in spans]
        of += len(parts)
        new = _other_order(parts, [_line(layout, i) for i in slots], rng)
        for (start, end), before, after in zip(spans, parts, new, strict=True):
            if before != after:
                edits.append(Edit(start, end, after))
                moved += 1
    if not edits:
        why = "no speaker has two different sentences" if of else layout.why_nothing()
        return nothing(why, of)
    return Change(
        edits=tuple(edits),
        applied=moved,
        of=of,
        detail=f"{moved} of {of} places hold another sentence",
    )


def _pools(layout: Layout) -> dict[str | None, list[int]]:
    pools: dict[str | None, list[int]] = {}
    for i in layout.with_copies(layout.sentences()):
        heading = layout.turns[layout.parts[i].turn].heading
        pools.setdefault(heading, []).append(i)
    return pools


def _line(layout: Layout, index: int) -> int:
    """2 when a sentence has a line for itself, 1 when it ends its line, 0 otherwise."""
    part = layout.parts[index]
    before = layout.text[max(0, part.start - 1) : part.start]
    after = layout.text[part.end : part.end + 1]
    if after not in ("", "\n", "\r"):
        return 0
    return 2 if before in ("", "\n") else 1


def _other_order(parts: list[str], lines: list[int], rng: np.random.Generator) -> list[str]:
    """A random order that is not the given one; the given one if all parts are equal."""
    if len(set(parts)) < 2:
        return parts
    needs = [n if not _FULL_MARK.search(p) else 0 for p, n in zip(parts, lines, strict=True)]
    for _ in range(_TRIES):
        new = [parts[k] for k in _draw(needs, lines, rng)]
        if new != parts:
            return new
    first = next(i for i, p in enumerate(parts) if p != parts[0])
    new = list(parts)
    new[0], new[first] = new[first], new[0]
    return new


def _draw(needs: list[int], lines: list[int], rng: np.random.Generator) -> list[int]:
    """For each place the sentence it gets; one that needs a line's end gets one."""
    placed = [-1] * len(needs)
    for need in (2, 1, 0):
        free = [k for k, line in enumerate(lines) if placed[k] < 0 and line >= need]
        wanting = [k for k, n in enumerate(needs) if n == need]
        for place, k in zip(rng.permutation(free)[: len(wanting)], wanting, strict=True):
            placed[int(place)] = k
    return placed
