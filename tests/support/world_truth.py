"""Truth of a ledger derivation, read from its text and its problem alone.

A problem names an opening stock and bookings in order; a derivation books each of them by an
equation such as "438 + 56 = 494" in a sentence that names the place, and states the closing
balance. Whatever has neither (filler, padding, Markdown, white space) does not count, so a changed
text has its own true level, and a control that changes no content leaves it alone.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from agenteval.errors import InputError

CRITERIA = ("completeness", "accuracy", "coherence")
# A share of at least the i-th bound reaches level i + 1 of 0..4.
BOUNDS: dict[str, tuple[float, ...]] = {
    "completeness": (0.5, 0.65, 0.8, 0.95),
    "accuracy": (0.5, 0.65, 0.8, 0.95),
    "coherence": (0.4, 0.6, 0.75, 0.9),
}

_OPENING = re.compile(r"opens the day with (\d+) crates")
_BOOKING = re.compile(r"(received from|sent to) (\w+) (\d+)")
_MARKUP = re.compile(r"[*_`$\\]+")
# The last number must be followed by something: at the very end it may have been cut short.
_EQUATION = re.compile(r"(?<![\d.,])(\d+)\s*([-+−–])\s*(\d+)\s*=\s*(\d+)(?=[^\d])")
_CLOSING = re.compile(r"\b(?:closing|final)\s+balance\b[^\d.!?]{0,40}\d+(?=\D)", re.I)
_STOP = re.compile(r"[.!?](?=\s|$)")


@dataclass(frozen=True, slots=True)
class Problem:
    """What has to be booked: signed amounts by place (in lower case), in order."""

    opening: int
    places: tuple[str, ...]
    amounts: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Truth:
    """Shares in [0, 1] of one text; `levels` are their levels 0..4 by BOUNDS.

    completeness: required parts present (each booking with its equation, and the closing balance).
    accuracy: equations that book the right amount and whose result follows; 0 without equations.
    coherence: neighbouring bookings of which the later is the next of those present, in the order
    of the problem; 0 with fewer than two bookings.
    """

    completeness: float
    accuracy: float
    coherence: float

    @property
    def levels(self) -> tuple[int, int, int]:
        """Levels 0..4 in the order of CRITERIA."""
        completeness, accuracy, coherence = (level_of(c, getattr(self, c)) for c in CRITERIA)
        return completeness, accuracy, coherence


def level_of(criterion: str, share: float) -> int:
    """Level 0..4 of a share. Raises KeyError for a criterion that is not of this world."""
    return bisect_right(BOUNDS[criterion], share + 1e-9)


@lru_cache(maxsize=1 << 14)
def read_problem(problem: str) -> Problem:
    """The bookings of a problem statement. Raises InputError when it is not of this world."""
    opening = _OPENING.search(problem)
    found = _BOOKING.findall(problem)
    if opening is None or not found:
        raise InputError("the problem names no opening stock and bookings")
    places = tuple(place.lower() for _, place, _ in found)
    amounts = tuple(int(n) if verb == "received from" else -int(n) for verb, _, n in found)
    return Problem(int(opening.group(1)), places, amounts)


@lru_cache(maxsize=1 << 16)
def truth(text: str, problem: str) -> Truth:
    """Shares of a text; remembered, so that repeats cost nothing. Raises InputError."""
    task = read_problem(problem)
    plain = _MARKUP.sub(" ", text)
    booked, right, equations = _bookings(plain, task)
    parts = len(set(booked)) + bool(_CLOSING.search(plain))
    return Truth(
        parts / (len(task.places) + 1), right / equations if equations else 0.0, _in_order(booked)
    )


def truth_levels(
    texts: Sequence[str], problems: Sequence[str], criteria: Sequence[str] = CRITERIA
) -> NDArray[np.int64]:
    """True levels 0..4, shape (texts, criteria); InputError for another world's criterion."""
    unknown = [c for c in criteria if c not in CRITERIA]
    if unknown:
        raise InputError(f"no truth is known on {', '.join(unknown)}")
    columns = [CRITERIA.index(c) for c in criteria]
    rows = [truth(t, p).levels for t, p in zip(texts, problems, strict=True)]
    return np.array(rows, dtype=np.int64).reshape(len(rows), len(CRITERIA))[:, columns]


def _bookings(text: str, task: Problem) -> tuple[list[int], int, int]:
    """Bookings in the order of the text, right equations, equations that belong to a booking."""
    stops = [m.end() for m in _STOP.finditer(text)]
    named: dict[int, list[tuple[int, int]]] = {}  # sentence → (position, booking)
    for match in re.finditer(r"[^\W\d_]+", text):
        if (word := match.group().lower()) in task.places:
            sentence = bisect_left(stops, match.end())
            named.setdefault(sentence, []).append((match.start(), task.places.index(word)))
    booked: list[int] = []
    right = equations = 0
    for match in _EQUATION.finditer(text):
        candidates = named.get(bisect_left(stops, match.end()), [])
        if not candidates:
            continue
        nearest = min(candidates, key=lambda c: abs(c[0] - match.start()))
        candidates.remove(nearest)
        booked.append(nearest[1])
        equations += 1
        right += _is_right(match, task.amounts[nearest[1]])
    return booked, right, equations


def _is_right(match: re.Match[str], amount: int) -> bool:
    before, sign, moved, after = match.groups()
    signed = int(moved) if sign == "+" else -int(moved)
    return signed == amount and int(before) + signed == int(after)


def _in_order(booked: Sequence[int]) -> float:
    first = list(dict.fromkeys(booked))  # a booking told twice stands where it is told first
    if len(first) < 2:
        return 0.0
    rank = {step: i for i, step in enumerate(sorted(first))}
    follows = sum(rank[b] == rank[a] + 1 for a, b in pairwise(first))
    return follows / (len(first) - 1)
