"""Widths of the columns of a table on a terminal, and where its texts are broken.

Names are the longest texts of a table and the ones whose ends matter. They get room before the
numbers do, and are broken at their joints. A table that is too wide for the terminal all the same
goes on below, its names repeated.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from rich.cells import cell_len

GAP = 2  # between two columns
EDGES = 2  # at the left and at the right of a table
_JOINTS = re.compile(r"[^\s/+_:,·-]*[\s/+_:,·-]+|[^\s/+_:,·-]+")
# An interval is one word, and so are "41 %", "12 /" and "of 41".
_WORDS = re.compile(r"\[[^\[\]]*\]\S*\s*|(?:of\s)?[^\s\[]+(?:\s[/%])?\s*|\[\s*|\s+")
_MOST_FLOOR = 28  # a longer piece of a name may be folded
_LEAST = 8  # a name narrower than this is folded no more than a number is


@dataclass(frozen=True)
class Part:
    """Columns of a table that fit beside each other, by their index, and their widths."""

    columns: tuple[int, ...]
    widths: tuple[int, ...]


def parts(
    texts: Sequence[Sequence[str]],
    right: Sequence[bool],
    available: int,
    *,
    whole: Sequence[bool] | None = None,
    keys: int | None = None,
) -> list[Part]:
    """The parts of a table in their order, each no wider than `available` cells where that can be.

    `texts` are those of each column, its head first; `right` says which columns hold numbers.
    `whole` says which columns keep each of their texts, heads aside, on one line while there is
    room for that beside the keys. The first `keys` columns are in every part; unless told, those of
    words at the left.
    """
    if keys is None:
        keys = 0
        while keys < len(right) - 1 and not right[keys]:
            keys += 1
    floors = [_floor(own, number) for own, number in zip(texts, right, strict=True)]
    wants = [max((_longest_line(t) for t in own), default=1) for own in texts]
    if whole is not None:
        floors[:keys] = [min(want, max(available // 3, 1)) for want in wants[:keys]]
        room = available - sum(width + GAP for width in floors[:keys])
        for i, own in enumerate(texts):
            if whole[i] and (longest := max(map(_longest_line, own[1:]), default=1)) <= room:
                floors[i] = max(longest, _floor(own[:1], True))
    found = []
    for columns in _split(floors, keys, available):
        widths = _shared(columns, (floors, wants), right, available - GAP * (len(columns) - 1))
        found.append(Part(columns, widths))
    return found


def broken(text: str, width: int, *, number: bool) -> str:
    """The text with line breaks at its joints (of a number: between words), so that no line is
    wider than `width` unless a piece of it is."""
    return "\n".join(
        line for own in text.split("\n") for line in _lines(_pieces(own, number=number), width)
    )


def _pieces(text: str, *, number: bool) -> list[str]:
    return (_WORDS if number else _JOINTS).findall(text)


def _lines(pieces: Sequence[str], width: int) -> list[str]:
    lines = [""]
    for piece in pieces:
        if lines[-1] and cell_len((lines[-1] + piece).rstrip()) > width:
            lines[-1] = lines[-1].rstrip()
            lines.append("")
        lines[-1] += piece
    return lines


def _floor(texts: Sequence[str], number: bool) -> int:
    """The longest piece; names get half of their length, so that they need two lines at most."""
    longest = max(
        (cell_len(p.rstrip()) for t in texts for p in _pieces(t, number=number)), default=1
    )
    if number:
        return max(longest, 1)
    whole = max((_longest_line(t) for t in texts), default=1)
    return min(whole, _MOST_FLOOR, max(longest, whole // 2 + 4))


def _longest_line(text: str) -> int:
    return max((cell_len(line) for line in text.split("\n")), default=1) or 1


def _split(floors: Sequence[int], keys: int, available: int) -> list[tuple[int, ...]]:
    """Columns by part: no more parts than are needed, and those about as wide as each other."""
    fewest = _filled(floors, keys, available)
    if len(fewest) == 1:
        return fewest
    narrower = (_filled(floors, keys, width) for width in range(1, available))
    return next((found for found in narrower if len(found) == len(fewest)), fewest)


def _filled(floors: Sequence[int], keys: int, available: int) -> list[tuple[int, ...]]:
    """Columns by part: as many as fit beside the first `keys`, one at least."""
    first = tuple(range(keys))
    base = sum(floors[i] + GAP for i in first)
    made: list[tuple[int, ...]] = []
    own: list[int] = []
    for i in range(keys, len(floors)):
        if own and base + sum(floors[j] + GAP for j in (*own, i)) - GAP > available:
            made.append((*first, *own))
            own = []
        own.append(i)
    return [*made, (*first, *own)]


def _shared(
    columns: Sequence[int],
    bounds: tuple[Sequence[int], Sequence[int]],
    right: Sequence[bool],
    room: int,
) -> tuple[int, ...]:
    """Each its floor; what is left goes to words, then to numbers, the narrowest first."""
    floors, wants = bounds
    widths = {i: min(floors[i], wants[i]) for i in columns}
    spare = room - sum(widths.values())
    for number in (False, True):
        while spare > 0:
            short = [i for i in columns if right[i] == number and widths[i] < wants[i]]
            if not short:
                break
            widths[min(short, key=lambda i: widths[i])] += 1
            spare -= 1
    while spare < 0:  # not even the floors fit: the widest is folded, a name before a number
        widest = max(columns, key=lambda i: (not right[i] and widths[i] > _LEAST, widths[i]))
        if widths[widest] <= 1:
            break
        widths[widest] -= 1
        spare += 1
    return tuple(widths[i] for i in columns)
