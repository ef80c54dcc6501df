"""What a request demands: orders of actions and times, each with the sub-sentences that say so."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal

Side = Literal["before", "after"]


@dataclass(frozen=True, slots=True, order=True)
class Before:
    """Action `first` is over before action `second` starts (numbers from 0)."""

    first: int
    second: int


@dataclass(frozen=True, slots=True, order=True)
class TimeLimit:
    """Action ends at `hour` at the latest ("before"), or starts at `hour` at the earliest."""

    action: int
    side: Side
    hour: int


Constraint = Before | TimeLimit


@dataclass(frozen=True, slots=True)
class Stated:
    """A constraint and the numbers of the sub-sentences that state it, rising."""

    constraint: Constraint
    sentences: tuple[int, ...]


def stated(pairs: Iterable[tuple[Constraint, int]]) -> tuple[Stated, ...]:
    """Constraints with their sub-sentences, each constraint once, in order of first mention."""
    found: dict[Constraint, list[int]] = {}
    for constraint, sentence in pairs:
        where = found.setdefault(constraint, [])
        if sentence not in where:
            where.append(sentence)
    return tuple(Stated(c, tuple(sorted(s))) for c, s in found.items())


def orders(constraints: Iterable[Constraint]) -> list[Before]:
    """The orders among them."""
    return [c for c in constraints if isinstance(c, Before)]


def limits(constraints: Iterable[Constraint]) -> list[TimeLimit]:
    """The time limits among them."""
    return [c for c in constraints if isinstance(c, TimeLimit)]
