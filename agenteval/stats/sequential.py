"""Intervals and tests that are valid at every look while results arrive.

Checking an ordinary interval after every case and stopping when it looks good finds differences
that do not exist. The methods here keep their error rate over all looks together.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache

import numpy as np

from agenteval.stats.interval import Interval
from agenteval.stats.vectors import Floats, check_level, finite_vector, normal_quantile

BOUNDARY = 2.5  # constant boundary, in standard deviations of the final sum
HOPELESS = 0.01  # stop if all cases decide with a lower probability
_GRID = 1000  # number of tested means
_ROWS = 1000  # values per block


def confidence_sequence(values: Sequence[float] | Floats, *, level: float = 0.95) -> Interval:
    """Return the mean of independent values in [0, 1], in order, with an interval that is valid at
    every n simultaneously: the true mean is in all of these intervals with probability at least
    `level`.

    The method is betting (Waudby-Smith & Ramdas, JRSS B 86, 2024, theorem 3): a mean m is excluded
    once fair bets against it, which pay prod (1 + lambda_i (x_i - m)), have won 1 / alpha (Ville's
    inequality). Bets on the two sides have half of the money each; lambda_i is their predictable
    plug-in (eq. 26), capped at 1/2 of the ruinous bet. No model of the values is needed. The ends
    are the tightest so far, on a grid of a thousandth of the scale, rounded outwards. Raises
    ValueError for values outside [0, 1] or not finite.
    """
    check_level(level)
    data = finite_vector(values, "values")
    n = len(data)
    if not n:
        return Interval.missing("no values")
    if data.min() < -1e-12 or data.max() > 1 + 1e-12:
        raise ValueError("a value lies outside [0, 1]")
    t = np.arange(1, n + 1)
    mean = (0.5 + np.cumsum(data)) / (t + 1)
    variance = (0.25 + np.cumsum((data - mean) ** 2)) / (t + 1)
    before = np.concatenate([[0.25], variance[:-1]])
    bet = np.sqrt(2 * math.log(2 / (1 - level)) / (before * t * np.log1p(t)))[:, None]
    tried = np.linspace(0, 1, _GRID + 1)
    up, down = (np.minimum(bet, 0.5 / np.maximum(m, 1e-12)) for m in (tried, 1 - tried))
    wins = [np.zeros(_GRID + 1), np.zeros(_GRID + 1)]
    possible = np.ones(_GRID + 1, dtype=np.bool_)
    for start in range(0, n, _ROWS):
        part = slice(start, start + _ROWS)
        beyond = data[part, None] - tried
        for side, sign, bets in ((0, 1, up), (1, -1, down)):
            paid = wins[side] + np.cumsum(np.log1p(sign * bets[part] * beyond), axis=0)
            wins[side] = paid[-1]
            possible &= (paid < math.log(2 / (1 - level))).all(axis=0)
    average, points = float(data.mean()), np.flatnonzero(possible)
    ends = (points[0] - 1, points[-1] + 1) if len(points) else (average * _GRID,) * 2
    low, high = (min(max(float(end) / _GRID, 0.0), 1.0) for end in ends)
    return Interval(average, low, high, None, n, None, "always valid, by betting")


def look_level(n: int, planned: int, *, level: float = 0.95) -> float:
    """Return the level of a z test and its interval after `n` of `planned` cases, so that the error
    over all looks is 1 - `level`.

    A look before the last decides if |sum| reaches 2.5 standard deviations of the sum of all
    planned cases: z = 2.5 sqrt(planned / n) (a constant boundary, as in O'Brien & Fleming,
    Biometrics 35, 1979). The last look has the remaining error: for a Brownian path, the total is 2
    P(Z > z) + 2 P(Z > 5 - z) by reflection. For `level` .95, z is 1.99 instead of 1.96, so
    continuous looks cost almost nothing. Raises ValueError for n outside [1, planned], and for a
    `level` that the boundary cannot guarantee (above .98).
    """
    check_level(level)
    if not 1 <= n <= planned:
        raise ValueError(f"{n} of {planned} cases")
    z = _last(level) if n == planned else BOUNDARY * math.sqrt(planned / n)
    return 1 - max(2 * _beyond(z), 1e-15)  # distinguishable from 1 as a float


def is_futile(differences: Sequence[float] | Floats, planned: int) -> bool:
    """Return whether all `planned` cases would decide with a probability below 1%.

    This is the predictive probability: after n differences with mean d and standard deviation s,
    the sum of all is modelled as normal around planned * d with variance s^2 planned (planned - n)
    / n (flat prior; Spiegelhalter, Freedman & Blackburn, Controlled Clinical Trials 7, 1986).
    Stopping early for futility can only lower the error rate. False with fewer than two
    differences.
    """
    data = finite_vector(differences, "differences")
    n = len(data)
    if n < 2 or n >= planned:
        return False
    spread = float(data.std(ddof=1))
    if spread == 0:
        return False
    needed = _last(0.95) * spread * math.sqrt(planned)
    centre, scale = planned * float(data.mean()), spread * math.sqrt(planned * (planned - n) / n)
    return _beyond((needed - centre) / scale) + _beyond((needed + centre) / scale) < HOPELESS


def normalized_sum(differences: Sequence[float] | Floats) -> float:
    """Return the sum of differences over the root of the sum of squares; 0 if all are 0.

    This z score cannot exceed the root of n, so that a few equal differences are not significant.
    Under symmetry, its tails are below those of a normal distribution (Efron 1969).
    """
    data = finite_vector(differences, "differences")
    size = math.sqrt(math.fsum(data**2))
    return math.fsum(data) / size if size else 0.0


@lru_cache(maxsize=8)
def _last(level: float) -> float:
    """z of the last look."""
    from scipy.optimize import brentq

    if 4 * _beyond(BOUNDARY) > 1 - level:
        raise ValueError(f"the boundary does not keep level {level}")

    def spare(z: float) -> float:
        return 2 * _beyond(z) + 2 * _beyond(2 * BOUNDARY - z) - (1 - level)

    return float(brentq(spare, normal_quantile((1 + level) / 2), BOUNDARY))


def _beyond(z: float) -> float:
    """P(Z > z)."""
    return math.erfc(z / math.sqrt(2)) / 2
