"""Sharing out room: everyone gets the least, the rest goes by weight to those who want more."""

from __future__ import annotations

from collections.abc import Sequence


def shares(
    least: Sequence[int], wanted: Sequence[int], weights: Sequence[float], room: int
) -> list[int]:
    """What each gets of `room`: between its least and what it wants, in proportion to its weight.

    Weighted max-min fairness: share i is min(wanted, max(least, level * weight)) at the highest
    level at which the sum stays within `room`. When the least is more than the room, everyone
    gets the least. All four are in the same unit, weights above 0, least <= wanted.
    """
    if sum(wanted) <= room:
        return list(wanted)
    total = sum(least)
    if total >= room:
        return list(least)
    changes = [(low / w, w) for low, w in zip(least, weights, strict=True)]
    changes += [(high / w, -w) for high, w in zip(wanted, weights, strict=True)]
    level, slope, used = 0.0, 0.0, float(total)
    for at, change in sorted(changes):
        if slope > 0 and used + slope * (at - level) >= room:
            break
        used += slope * (at - level)
        level, slope = at, slope + change
    if slope > 0:
        level += (room - used) / slope
    return [
        min(high, max(low, int(level * w)))
        for low, high, w in zip(least, wanted, weights, strict=True)
    ]
