"""Mann-Whitney: does one group rate higher than the other? Exact with ties for small groups."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from agenteval.stats.correlation import midranks
from agenteval.stats.vectors import Alternative, Floats, finite_vector, p_value, round_near_ties

EXACT_LIMIT = 100  # values in both groups together; the count of subsets takes well under a second


@dataclass(frozen=True)
class RankTest:
    """A p-value of two groups; `u` counts pairs (first > second), ties half; None if undefined."""

    p: float | None
    u: float | None
    n_first: int
    n_second: int
    alternative: Alternative
    method: str
    reason: str | None = None


def mann_whitney(
    first: Sequence[float] | Floats,
    second: Sequence[float] | Floats,
    *,
    alternative: Alternative = "two-sided",
    method: Literal["auto", "exact", "asymptotic"] = "auto",
) -> RankTest:
    """Mann-Whitney test of two independent groups; `greater` means that the first is higher.

    exact: every division of the pooled values into groups of these sizes is counted, with the
    ties as they are (the permutation distribution of the midrank sum; Lehmann, Nonparametrics,
    1975, section 1.4). asymptotic: normal with tie and continuity correction (Hollander & Wolfe,
    Nonparametric Statistical Methods, section 4.1). auto is exact up to 100 values. Two-sided is
    twice the smaller tail.

    Values that differ by rounding only (1e-12 of the largest) are ties.
    An empty group has no p. Values that are all equal give p = 1, and the reason says so. Groups
    so small that no outcome reaches .05 are named in the reason. Raises ValueError for values
    that are not finite and for an unknown alternative or method.
    """
    a, b = finite_vector(first, "first"), finite_vector(second, "second")
    m, n = len(a), len(b)
    if method not in ("auto", "exact", "asymptotic"):
        raise ValueError(f"method {method!r} is not auto, exact or asymptotic")
    p_value(1.0, 1.0, alternative)
    if not m or not n:
        return RankTest(None, None, m, n, alternative, "none", "a group is empty")
    doubled = 2 * midranks(
        round_near_ties(np.concatenate([a, b]))
    )  # whole, so that sums compare exactly
    u = (int(doubled[:m].sum()) - m * (m + 1)) / 2
    if doubled.min() == doubled.max():
        return RankTest(1.0, u, m, n, alternative, "none", "all values are equal")
    if method == "exact" or (method == "auto" and m + n <= EXACT_LIMIT):
        less, greater = _exact_tails(doubled, m)
        name = "Mann-Whitney, exact with ties"
    else:
        less, greater = _normal_tails(doubled, m, u)
        name = "Mann-Whitney, normal with tie and continuity correction"
    reason = None
    if m + n <= EXACT_LIMIT:  # beyond, the smallest p is far below any level
        smallest = (2 if alternative == "two-sided" else 1) / math.comb(m + n, m)
        if smallest > 0.05:
            reason = f"too few values ({m} and {n}): p cannot fall below {min(smallest, 1):.2g}"
    return RankTest(p_value(less, greater, alternative), u, m, n, alternative, name, reason)


def _exact_tails(doubled: Floats, m: int) -> tuple[float, float]:
    """P(sum <= observed) and P(sum >= observed) over all subsets of size m."""
    ranks = doubled.astype(np.intp)
    lowest = int(ranks.min())
    step = int(np.gcd.reduce(ranks - lowest))
    share = _subset_sums(tuple(sorted(((ranks - lowest) // step).tolist())), m)
    observed = (int(ranks[:m].sum()) - m * lowest) // step
    return float(share[: observed + 1].sum()), float(share[observed:].sum())


@lru_cache(maxsize=64)  # without ties the same for all groups of these sizes
def _subset_sums(ranks: tuple[int, ...], m: int) -> Floats:
    """Share of the subsets of size m by their sum (index); `ranks` ascend from 0."""
    total = len(ranks)
    count = np.zeros((m + 1, sum(ranks[-m:]) + 1))  # subsets by size and sum
    count[0, 0] = 1
    for seen, rank in enumerate(ranks):
        first, last = max(0, m - (total - seen)), min(seen, m - 1)  # sizes that can still matter
        reach = sum(ranks[seen - last : seen]) + 1 if last else 1
        reach = min(reach, count.shape[1] - rank)
        grown = count[first : last + 1, :reach].copy()
        count[first + 1 : last + 2, rank : rank + reach] += grown
    return np.asarray(count[m] / count[m].sum())


def _normal_tails(doubled: Floats, m: int, u: float) -> tuple[float, float]:
    from scipy.special import ndtr

    total = len(doubled)
    n = total - m
    _, sizes = np.unique(doubled, return_counts=True)
    ties = float((sizes.astype(np.float64) ** 3 - sizes).sum())
    variance = m * n / 12 * (total + 1 - ties / (total * (total - 1)))
    deviation, sd = u - m * n / 2, math.sqrt(variance)
    return float(ndtr((deviation + 0.5) / sd)), float(ndtr((0.5 - deviation) / sd))
