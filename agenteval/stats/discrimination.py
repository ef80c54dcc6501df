"""Does a criterion rate success above failure? AUC and Cliff's delta with interval and test."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from agenteval.stats.interval import Interval
from agenteval.stats.ranks import RankTest, mann_whitney
from agenteval.stats.vectors import (
    Alternative,
    Floats,
    check_level,
    finite_vector,
    normal_quantile,
    round_near_ties,
)

Magnitude = Literal["negligible", "small", "medium", "large"]
_BANDS: tuple[tuple[float, Magnitude], ...] = (
    (0.147, "negligible"),
    (0.33, "small"),
    (0.474, "medium"),
)


@dataclass(frozen=True)
class Discrimination:
    """How well one number per case separates `n_success` successes from `n_failed` failures.

    `auc` is P(success > failed) + P(equal) / 2 in [0, 1], and `delta` is 2 auc - 1 in [-1, 1];
    `magnitude` names the size of |delta|. They are None if they cannot be computed, with the reason
    in `auc.reason`. `test` is the Mann-Whitney test of auc = 1/2.
    """

    auc: Interval
    delta: Interval
    magnitude: Magnitude | None
    test: RankTest
    n_success: int
    n_failed: int


def discrimination(
    success: Sequence[float] | Floats,
    failed: Sequence[float] | Floats,
    *,
    level: float = 0.95,
    alternative: Alternative = "two-sided",
) -> Discrimination:
    """AUC and Cliff's delta of independent cases, one number each (a case's mean over repeats).

    The interval is the hull of two: DeLong, DeLong & Clarke-Pearson (Biometrics 44, 1988) on the
    logit scale with Satterthwaite's degrees of freedom, which allows for unequal spread but is
    too narrow near 0 and 1; and Newcombe's method 5 (Statistics in Medicine 25, 2006, 559-573),
    a score interval that keeps its width at AUC 0 and 1 but is too narrow when the smaller group
    spreads more. Each alone falls to .84-.92 in cells where the other holds. At AUC 0 or 1 it is
    Newcombe's alone. `auc.se` is DeLong's; there it is zero, which `auc.reason` says.

    Values that differ by rounding only (1e-12 of the largest) are ties.
    An empty group gives no AUC; one case in a group, or values that are all equal (AUC 1/2 by
    definition), no interval. Raises ValueError for values that are not finite or a bad level.
    """
    good, bad = finite_vector(success, "success"), finite_vector(failed, "failed")
    check_level(level)
    pooled = round_near_ties(np.concatenate([good, bad]))
    # sorted, so that the order of the cases changes no digit
    good, bad = np.sort(pooled[: len(good)]), np.sort(pooled[len(good) :])
    test = mann_whitney(good, bad, alternative=alternative)
    area = _auc(good, bad, level)
    if area.mean is None:
        delta = area
    else:
        low, high = (None if end is None else 2 * end - 1 for end in (area.low, area.high))
        se = None if area.se is None else 2 * area.se
        delta = Interval(2 * area.mean - 1, low, high, se, area.n, None, area.method, area.reason)
    return Discrimination(area, delta, magnitude(delta.mean), test, len(good), len(bad))


def magnitude(delta: float | None) -> Magnitude | None:
    """Name of |delta|: below .147 negligible, .33 small, .474 medium, else large.

    Bands of Romano, Kromrey, Coraggio & Skowronek (Annual meeting of the Florida Association of
    Institutional Research, 2006). None stays None.
    """
    if delta is None:
        return None
    return next((name for limit, name in _BANDS if abs(delta) < limit), "large")


def _auc(good: Floats, bad: Floats, level: float) -> Interval:
    m, n = len(good), len(bad)
    if not m or not n:
        which = "no cases" if not (m or n) else f"no {'failed' if m else 'successful'} case"
        return Interval(None, None, None, None, m + n, None, "none", which)
    above = _doubled_wins(good, bad)
    area = int(above.sum()) / (2 * m * n)
    if min(good[0], bad[0]) == max(good[-1], bad[-1]):
        reason = "no variation: all values are equal"
        return Interval(area, None, None, None, m + n, None, "none", reason)
    if min(m, n) < 2:
        reason = "one case in a group: no interval"
        return Interval(area, None, None, None, m + n, None, "none", reason)
    variance_good = float(np.var(above / (2 * n), ddof=1)) / m
    variance_bad = float(np.var(_doubled_wins(bad, good) / (2 * m), ddof=1)) / n
    se = math.sqrt(variance_good + variance_bad)
    low, high = _newcombe(area, m, n, level)
    if area in (0, 1) or se == 0:
        reason = "the groups do not overlap: the standard error is zero, the interval is not"
        return Interval(area, low, high, se, m + n, None, "Newcombe method 5", reason)
    from scipy.special import expit, logit, stdtrit

    df = (variance_good + variance_bad) ** 2 / (
        variance_good**2 / (m - 1) + variance_bad**2 / (n - 1)
    )
    half = float(stdtrit(df, (1 + level) / 2)) * se / (area * (1 - area))
    low = min(low, float(expit(logit(area) - half)))
    high = max(high, float(expit(logit(area) + half)))
    method = f"hull of DeLong (logit, t, {df:.1f} df) and Newcombe method 5"
    return Interval(area, low, high, se, m + n, None, method)


def _doubled_wins(these: Floats, those: Floats) -> Floats:
    """Twice the number of `those` (sorted) below each of `these`, ties half: whole numbers."""
    below = np.searchsorted(those, these, side="left")
    upto = np.searchsorted(those, these, side="right")
    return (below + upto).astype(np.float64)


def _newcombe(area: float, m: int, n: int, level: float) -> tuple[float, float]:
    """Limits theta with |area - theta| = z sqrt(V(theta)); V is symmetric in theta, 1 - theta."""
    z2 = normal_quantile((1 + level) / 2) ** 2
    return _score_limit(area, m, n, z2), 1 - _score_limit(1 - area, m, n, z2)


def _score_limit(area: float, m: int, n: int, z2: float) -> float:
    """Lower limit by bisection; exactly 0 at area 0."""
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
