"""How many actions an agent can plan: the capability upper bound of arXiv 2404.17833, section 6.2.

The number of actions n rises from 2; the campaign stops where success falls below 20%. The paper
does not say whether its bound is the last n at or above the threshold or the first below: both
are given, and the bound that is named is the last one, reached without a gap from the smallest n.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agenteval.planning.tallies import SuccessTally

THRESHOLD = 0.20
PER_PAIR = 20
MOST_CASES = 300


@dataclass(frozen=True, slots=True)
class Capability:
    """Both readings of the bound; None where there is no such n among those tested.

    `last`: the largest n such that every number from the smallest tested up to it reaches the
    threshold. `below`: the smallest n that does not. `above_again`: larger ones that reach it
    after all, which the idea of a bound does not foresee.
    """

    last: int | None
    below: int | None
    above_again: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Bound:
    """The bound of one system with what its intervals leave open.

    `found` is read from the rates, `least` from the lower and `most` from the upper ends of their
    95% intervals, so the bound lies between `least.last` and `most.last`. It is `certain` if each
    interval up to the bound lies at or above the threshold and that of the next n below it.
    `smallest` and `largest` are the numbers of actions tested; `untested` those without a verdict.
    """

    system: str
    found: Capability
    least: Capability
    most: Capability
    certain: bool
    smallest: int
    largest: int
    untested: tuple[int, ...]
    threshold: float = THRESHOLD

    @property
    def sentence(self) -> str:
        """The bound in words."""
        found, share = self.found, f"{100 * self.threshold:g}%"
        if found.last is None:
            text = f"no bound: below {share} already at {_actions(self.smallest)}"
        elif found.below is None:
            text = f"capability bound at least {_actions(found.last)}"
            text += ", the most tested" if found.last == self.largest else ""
        else:
            text = f"capability bound {_actions(found.last)} (first below {share} at {found.below})"
        if self._gap is not None:
            text += f"; nothing is known of {_actions(self._gap)}"
        text += self._open
        if found.above_again:
            text += f"; at or above {share} again at {', '.join(map(str, found.above_again))}"
        return text

    @property
    def _gap(self) -> int | None:
        """The number of actions that is missing behind the last one."""
        last = self.found.last
        if last is None or last == self.largest or self.found.below == last + 1:
            return None
        return last + 1

    @property
    def _open(self) -> str:
        low, high = self.least.last, self.most.last
        if low == high:
            return ""
        least = f"fewer than {self.smallest}" if low is None else str(low)
        most = f"{high} or more" if self.most.below is None else str(high)
        return f"; the 95% intervals allow {least} to {most}"


def cases_for(n: int) -> int:
    """Cases to run with n actions: min(300, 20 C(n, 2)). ValueError below 2 actions."""
    if n < 2:
        raise ValueError(f"{n} actions: a plan needs at least 2")
    return min(MOST_CASES, PER_PAIR * math.comb(n, 2))


def goes_on(rate: float, threshold: float = THRESHOLD) -> bool:
    """Does a campaign go on to n + 1 actions after this rate at n? ValueError outside [0, 1]."""
    if not 0 <= rate <= 1:
        raise ValueError(f"rate {rate} is not in [0, 1]")
    return rate >= threshold


def capability(rates: Mapping[int, float], threshold: float = THRESHOLD) -> Capability:
    """Both readings of the bound from success rates by number of actions.

    A missing n ends what is contiguous. Raises ValueError for rates outside [0, 1].
    """
    reach = {n: goes_on(rates[n], threshold) for n in sorted(rates)}
    last: int | None = None
    for n, reaches in reach.items():
        if not reaches or (last is not None and n != last + 1):
            break
        last = n
    below = next((n for n, reaches in reach.items() if not reaches), None)
    again = tuple(n for n, reaches in reach.items() if reaches and below is not None and n > below)
    return Capability(last, below, again)


def bounds(tallies: Sequence[SuccessTally], threshold: float = THRESHOLD) -> list[Bound]:
    """The bound of every system from its tallies by number of actions (`tallies.actions`).

    Numbers of actions without a verdict are not taken for 0: they are a gap. A system without
    any verdict has no bound and no row.
    """
    systems = dict.fromkeys(t.system for t in tallies)
    bounds = (_bound(s, [t for t in tallies if t.system == s], threshold) for s in systems)
    return [bound for bound in bounds if bound is not None]


def _bound(system: str, tallies: Sequence[SuccessTally], threshold: float) -> Bound | None:
    rates: dict[int, float] = {}
    lows: dict[int, float] = {}
    highs: dict[int, float] = {}
    for t in tallies:
        n, rate = int(t.place), t.rate
        if rate.mean is not None:
            rates[n] = rate.mean
            lows[n] = 0.0 if rate.low is None else rate.low  # no interval excludes nothing
            highs[n] = 1.0 if rate.high is None else rate.high
    if not rates:
        return None
    found, least, most = (capability(r, threshold) for r in (rates, lows, highs))
    certain = (
        least.last == most.last
        and least.below == most.below
        and found.below == (min(rates) if found.last is None else found.last + 1)
    )
    untested = tuple(int(t.place) for t in tallies if t.rate.mean is None)
    return Bound(system, found, least, most, certain, min(rates), max(rates), untested, threshold)


def _actions(n: int) -> str:
    return f"{n} action{'s' if n != 1 else ''}"
