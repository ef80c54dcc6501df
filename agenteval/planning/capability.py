"""The capability bound: how many actions an agent can plan (arXiv 2404.17833, section 6.2).

The number of actions n rises from 2; the campaign stops when success falls below 20%. The paper
does not say whether its bound is the last n at or above the threshold or the first one below. Both
are reported; the bound is the last n that is reached without a gap from the smallest n.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agenteval.analysis.system_pairs import by_system
from agenteval.planning.rates import SuccessRate
from agenteval.records.table import column

THRESHOLD = 0.20
PER_PAIR = 20
MAX_CASES = 300


@dataclass(frozen=True, slots=True)
class Bound:
    """The capability bound of one system, as a row of a table.

    `bound` is the largest n such that every number from the smallest tested up to it reaches the
    threshold, `below` the smallest n that does not; None if there is none. `least` and `most` are
    the bounds from the lower and upper ends of the 95% intervals. The bound is `certain` if each
    interval up to it lies at or above the threshold and the next one below.
    """

    system: str = column("system")
    bound: int | None = column(
        "actions",
        "count",
        "largest number of actions up to which every tested number reaches this success rate",
    )
    below: int | None = column(
        "first\nbelow", "count", "smallest number of actions below this success rate"
    )
    least: int | None = column("at least", "count", "bound from the lower ends of the intervals")
    most: int | None = column("at most", "count", "bound from the upper ends of the intervals")
    certain: bool = column("certain", hint="confirmed by the intervals")
    sentence: str = ""  # the bound in words


def cases_for(n: int) -> int:
    """Return the published number of cases, min(300, 20 C(n, 2)). Raises ValueError if n < 2."""
    if n < 2:
        raise ValueError(f"{n} actions: a plan needs at least 2")
    return min(MAX_CASES, PER_PAIR * math.comb(n, 2))


def reaches(rate: float, threshold: float = THRESHOLD) -> bool:
    """Return whether a rate reaches the threshold. Raises ValueError for rates outside [0, 1]."""
    if not 0 <= rate <= 1:
        raise ValueError(f"rate {rate} is not in [0, 1]")
    return rate >= threshold


def last_and_below(
    rates: Mapping[int, float], threshold: float = THRESHOLD
) -> tuple[int | None, int | None]:
    """Return both readings of the bound from rates by number of actions; a missing n is a gap.

    These are the last n reached without a gap, and the first n below the threshold. Raises
    ValueError for rates outside [0, 1].
    """
    last = None
    for n in sorted(rates):
        if not reaches(rates[n], threshold) or (last is not None and n != last + 1):
            break
        last = n
    return last, min((n for n in rates if not reaches(rates[n], threshold)), default=None)


def bounds(rates: Sequence[SuccessRate], threshold: float = THRESHOLD) -> list[Bound]:
    """Return the bound of every system from its rates by number of actions (`rates.by_actions`).

    A number of actions without a verdict is a gap, not a rate of 0. A system without any verdict
    has no bound.
    """
    return [
        _bound(system, tested, threshold)
        for system, rows in by_system(rates).items()
        if (tested := [row for row in rows if row.success.mean is not None])
    ]


def _bound(system: str, rows: Sequence[SuccessRate], threshold: float) -> Bound:
    means = {int(r.place): r.success.mean or 0.0 for r in rows}
    # A rate without an interval excludes nothing.
    lows = {int(r.place): 0.0 if r.success.low is None else r.success.low for r in rows}
    highs = {int(r.place): 1.0 if r.success.high is None else r.success.high for r in rows}
    last, below = last_and_below(means, threshold)
    least, least_below = last_and_below(lows, threshold)
    most, most_below = last_and_below(highs, threshold)
    certain = (least, least_below) == (most, most_below) and below == (
        min(means) if last is None else last + 1
    )
    sentence = _reading(means, last, below, f"{100 * threshold:g}%")
    if least != most:
        low = f"fewer than {min(means)}" if least is None else f"{least}"
        high = f"{most} or more" if most_below is None else f"{most}"
        sentence += f"; the 95% intervals allow {low} to {high}"
    later_passes = [
        n for n in sorted(means) if below and n > below and reaches(means[n], threshold)
    ]
    if later_passes:
        sentence += (
            f"; at or above {100 * threshold:g}% again at {', '.join(map(str, later_passes))}"
        )
    return Bound(system, last, below, least, most, certain, sentence)


def _reading(tested: Mapping[int, float], last: int | None, below: int | None, share: str) -> str:
    if last is None:
        return f"no bound: below {share} already at {_actions(min(tested))}"
    if below is None:
        text = f"capability bound at least {_actions(last)}"
        text += ", the largest tested" if last == max(tested) else ""
    else:
        text = f"capability bound {_actions(last)} (first below {share} at {below})"
    if last == max(tested) or below == last + 1:
        return text
    return f"{text}; not tested: {_actions(last + 1)}"


def _actions(n: int) -> str:
    return f"{n} action{'s' if n != 1 else ''}"
