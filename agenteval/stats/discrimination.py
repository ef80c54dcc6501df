"""Test whether a criterion rates success above failure: AUC and Mann-Whitney with ties."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np

from agenteval.stats.correlation import midranks
from agenteval.stats.interval import Interval
from agenteval.stats.vectors import (
    Alternative,
    Floats,
    check_level,
    finite_vector,
    normal_quantile,
    p_value,
    round_near_ties,
)

EXACT_LIMIT = 100  # maximum total number of values for the exact test


@dataclass(frozen=True)
class RankTest:
    """A p-value for two groups; `u` counts pairs (first > second), ties half; None if undefined."""

    p: float | None
    u: float | None
    method: str
    reason: str | None = None


@dataclass(frozen=True)
class Discrimination:
    """How well a value per case separates successes from failures.

    `auc` is P(success > failed) + P(equal) / 2 in [0, 1]; `magnitude` names the size of Cliff's
    delta, 2 auc - 1. They are None if they cannot be computed, with the reason in `auc.reason`.
    `test` is the Mann-Whitney test of auc = 1/2.
    """

    auc: Interval
    magnitude: str | None
    test: RankTest


def discrimination(
    success: Sequence[float] | Floats,
    failed: Sequence[float] | Floats,
    *,
    level: float = 0.95,
    alternative: Alternative = "two-sided",
) -> Discrimination:
    """Return the AUC of independent cases with one value each (the mean over repeats).

    The interval is the hull of two intervals: DeLong, DeLong & Clarke-Pearson (Biometrics 44, 1988)
    on the logit scale with Satterthwaite's degrees of freedom, which allows for unequal spread but
    is too narrow near 0 and 1; and Newcombe's method 5 (Statistics in Medicine 25, 2006, 559-573),
    a score interval that keeps its width at AUC 0 and 1 but is too narrow when the smaller group
    spreads more. Each alone has a coverage of only .84-.92 in settings where the other is valid. At
    AUC 0 or 1, only Newcombe's is used. `auc.se` is DeLong's, which is then zero (see
    `auc.reason`).

    Values that differ only by rounding (1e-12 of the largest) are ties. An empty group gives no
    AUC; one case in a group, or all values equal (AUC 1/2 by definition), gives no interval. Raises
    ValueError for values that are not finite or a bad level.
    """
    good, bad = finite_vector(success, "success"), finite_vector(failed, "failed")
    check_level(level)
    pooled = round_near_ties(np.concatenate([good, bad]))
    # sorted, so that the order of cases does not matter
    good, bad = np.sort(pooled[: len(good)]), np.sort(pooled[len(good) :])
    area = _auc(good, bad, level)
    size = None if area.mean is None else magnitude(2 * area.mean - 1)
    return Discrimination(area, size, mann_whitney(good, bad, alternative=alternative))


def magnitude(delta: float) -> str:
    """Name the size of |delta|: below .147 negligible, .33 small, .474 medium, else large.

    Bands of Romano, Kromrey, Coraggio & Skowronek (Annual meeting of the Florida Association of
    Institutional Research, 2006).
    """
    bands = ((0.147, "negligible"), (0.33, "small"), (0.474, "medium"))
    return next((name for limit, name in bands if abs(delta) < limit), "large")


def _auc(good: Floats, bad: Floats, level: float) -> Interval:
    from scipy.special import expit, logit, stdtrit

    m, n = len(good), len(bad)
    if not m or not n:
        which = "no cases" if not (m or n) else f"no {'failed' if m else 'successful'} case"
        return Interval.missing(which, m + n)
    above = _doubled_wins(good, bad)
    area = int(above.sum()) / (2 * m * n)
    if min(good[0], bad[0]) == max(good[-1], bad[-1]):
        return Interval.missing("no variation: all values are equal", m + n, mean=area)
    if min(m, n) < 2:
        return Interval.missing("one case in a group: no interval", m + n, mean=area)
    variance_good = float(np.var(above / (2 * n), ddof=1)) / m
    variance_bad = float(np.var(_doubled_wins(bad, good) / (2 * m), ddof=1)) / n
    se = math.sqrt(variance_good + variance_bad)
    z2 = normal_quantile((1 + level) / 2) ** 2
    low, high = _score_limit(area, m, n, z2), 1 - _score_limit(1 - area, m, n, z2)
    if area in (0, 1) or se == 0:
        reason = "the groups do not overlap: the standard error is zero, the interval is not"
        return Interval(area, low, high, se, m + n, None, "Newcombe method 5", reason)
    df = (variance_good + variance_bad) ** 2 / (
        variance_good**2 / (m - 1) + variance_bad**2 / (n - 1)
    )
    half = float(stdtrit(df, (1 + level) / 2)) * se / (area * (1 - area))
    low = min(low, float(expit(logit(area) - half)))
    high = max(high, float(expit(logit(area) + half)))
    method = f"hull of DeLong (logit, t, {df:.1f} df) and Newcombe method 5"
    return Interval(area, low, high, se, m + n, None, method)


def _doubled_wins(these: Floats, those: Floats) -> Floats:
    """Return twice the number of `those` (sorted) below each of `these`, ties half: integers."""
    below = np.searchsorted(those, these, side="left")
    upto = np.searchsorted(those, these, side="right")
    return (below + upto).astype(np.float64)


def _score_limit(area: float, m: int, n: int, z2: float) -> float:
    """Return the lower limit theta with |area - theta| = z sqrt(V(theta)) by bisection; 0 at
    area 0. V is symmetric in theta and 1 - theta."""
    size = (m + n) / 2 - 1
    outside, inside = 0.0, area
    for _ in range(60):
        theta = (outside + inside) / 2
        spread = 1 + size * ((1 - theta) / (2 - theta) + theta / (1 + theta))
        if (area - theta) ** 2 > z2 * theta * (1 - theta) / (m * n) * spread:
            outside = theta
        else:
            inside = theta
    return outside


def mann_whitney(
    first: Sequence[float] | Floats,
    second: Sequence[float] | Floats,
    *,
    alternative: Alternative = "two-sided",
    method: Literal["auto", "exact", "asymptotic"] = "auto",
) -> RankTest:
    """Mann-Whitney test of two independent groups; `greater`: the first group is higher.

    exact: counts every division of the pooled values into groups of these sizes, including
    ties (the permutation distribution of the midrank sum; Lehmann, Nonparametrics,
    1975, section 1.4). asymptotic: normal with tie and continuity correction (Hollander & Wolfe,
    Nonparametric Statistical Methods, section 4.1). auto is exact up to 100 values. Two-sided is
    twice the smaller tail.

    Values that differ only by rounding (1e-12 of the largest) are ties. An empty group gives no p.
    If all values are equal, p is 1, with a reason. There is also a reason if the groups are too
    small for a p below .05. Raises ValueError for values that are not finite.
    """
    a, b = finite_vector(first, "first"), finite_vector(second, "second")
    m, n = len(a), len(b)
    if not m or not n:
        return RankTest(None, None, "none", "a group is empty")
    # doubled ranks are integers, so that sums compare exactly
    doubled = 2 * midranks(round_near_ties(np.concatenate([a, b])))
    u = (int(doubled[:m].sum()) - m * (m + 1)) / 2
    if doubled.min() == doubled.max():
        return RankTest(1.0, u, "none", "all values are equal")
    if method == "exact" or (method == "auto" and m + n <= EXACT_LIMIT):
        less, greater = _exact_tails(doubled, m)
        name = "Mann-Whitney, exact with ties"
    else:
        less, greater = _normal_tails(doubled, m, u)
        name = "Mann-Whitney, normal with tie and continuity correction"
    reason = None
    if m + n <= EXACT_LIMIT:  # above, the smallest p is far below any level
        smallest = (2 if alternative == "two-sided" else 1) / math.comb(m + n, m)
        if smallest > 0.05:
            reason = f"too few values ({m} and {n}): p cannot fall below {min(smallest, 1):.2g}"
    return RankTest(p_value(less, greater, alternative), u, name, reason)


def _exact_tails(doubled: Floats, m: int) -> tuple[float, float]:
    """Return P(sum <= observed) and P(sum >= observed) over all subsets of size m."""
    ranks = doubled.astype(np.intp)
    lowest = int(ranks.min())
    step = int(np.gcd.reduce(ranks - lowest))
    share = _subset_sums(tuple(sorted(((ranks - lowest) // step).tolist())), m)
    observed = (int(ranks[:m].sum()) - m * lowest) // step
    return float(share[: observed + 1].sum()), float(share[observed:].sum())


@lru_cache(maxsize=64)  # without ties the same for all groups of these sizes
def _subset_sums(ranks: tuple[int, ...], m: int) -> Floats:
    """Return the distribution of sums (index) of subsets of size m; `ranks` ascend from 0."""
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
