"""McNemar: two systems or judges on the same cases, each right or wrong."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agenteval.stats.paired import binomial_half_tails
from agenteval.stats.vectors import Alternative, p_value


@dataclass(frozen=True)
class McNemar:
    """Exact and mid-p value of the discordant pairs.

    `p` is the exact conditional test, never too small; `mid_p` is less conservative. `reason`
    says when there is nothing to compare, or too few discordant pairs for a p of .05 or less.
    """

    p: float
    mid_p: float
    only_first: int
    only_second: int
    alternative: Alternative
    reason: str | None = None


def mcnemar(
    only_first: int, only_second: int, *, alternative: Alternative = "two-sided"
) -> McNemar:
    """McNemar's test from the discordant counts; pairs that agree say nothing about a difference.

    exact: X = only_first is binomial(only_first + only_second, 1/2) under the null. mid_p: the
    probability of the observed count is halved (Fagerland, Lydersen & Laake, BMC Medical
    Research Methodology 13:91, 2013). Two-sided is twice the smaller one-sided value, at most 1.
    `greater` means that the first is right more often. Without discordant pairs p and mid_p are 1.

    Raises ValueError for negative counts or an unknown alternative.
    """
    if only_first < 0 or only_second < 0:
        raise ValueError(f"counts {only_first} and {only_second} must not be negative")
    n = only_first + only_second
    less, greater = binomial_half_tails(only_first, n)
    exact = p_value(less, greater, alternative)
    point = _point(min(only_first, only_second), n)
    mid = 1.0 if not n else p_value(less - point / 2, greater - point / 2, alternative)
    smallest = min(1.0, 0.5**n * (2 if alternative == "two-sided" else 1))
    reason = None
    if not n:
        reason = "no discordant pairs: nothing to test"
    elif smallest > 0.05:
        reason = f"too few discordant pairs ({n}): p cannot fall below {smallest:.3g}"
    return McNemar(exact, mid, only_first, only_second, alternative, reason)


def discordant(
    first: Sequence[bool] | NDArray[np.bool_], second: Sequence[bool] | NDArray[np.bool_]
) -> tuple[int, int]:
    """How many cases only the first, and only the second, gets right.

    Raises ValueError for different lengths or anything but true and false.
    """
    if len(first) != len(second):
        raise ValueError(f"{len(first)} and {len(second)} cases: the pairs do not match")
    a, b = np.asarray(first), np.asarray(second)
    if not len(a):
        return 0, 0
    if a.dtype != np.bool_ or b.dtype != np.bool_:
        raise ValueError("outcomes must be true or false; leave unknown ones out and count them")
    return int((a & ~b).sum()), int((~a & b).sum())


def _point(k: int, n: int) -> float:
    from scipy.stats import binom

    return float(binom.pmf(k, n, 0.5))
