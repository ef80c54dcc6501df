"""Upper limits of a mean, given few bounded values that may be nearly all equal."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from agenteval.stats.vectors import Floats, check_level, finite_vector, round_near_ties

_STEP, _FROM, _TO = 0.05, -18.0, 12.0  # log of the integration variable, in units of the scale
_FAR = 10.0  # deviations; further out the integrand turns faster than the step


def mean_limit(
    values: Sequence[float] | Floats, highest: float, *, level: float = 0.975, times: float = 1.0
) -> float:
    """One-sided upper confidence limit of the mean of independent values up to `highest`.

    Gaffke's limit (Mathematical Methods of Statistics 14, 2005): the `level` quantile of
    sum_i w_i x_i + w_0 highest, weights w uniform on the simplex; in other words, one more case at
    `highest` represents unseen cases. For yes/no values it is Clopper and Pearson's. It is
    valid for all bounded distributions that were tried, but not proven in general (a conjecture
    in Learned-Miller & Thomas, arXiv 1905.06208). Proven limits, such as Hoeffding's or betting
    limits, are wider if values vary on both sides.

    The quantile is computed, not drawn: weights are exponential variables over their sum, so
    P(sum > t) = P(sum_i (x_i - t) E_i > 0), by Imhof's integral (Biometrika 48, 1961, eq. 3.2).
    With `times`, each value counts as if it had been observed that many times. The unit is that of
    the values. Raises ValueError for no values, values that are not finite or above `highest`, a
    `level` outside [.01, .99] and `times` that are not positive.
    """
    from scipy.optimize import brentq

    data = round_near_ties(finite_vector(values, "values"))
    check_level(level)
    if not len(data) or not times > 0 or not 0.01 <= level <= 0.99:
        raise ValueError("there must be values, a level of .01 to .99, and times that are positive")
    if data.max() > highest + 1e-9:
        raise ValueError(f"a value lies above {highest}")
    distinct, counts = np.unique(data, return_counts=True)
    low, high = float(distinct[0]), float(highest)
    if high - low <= 1e-12 * max(abs(low), abs(high), 1.0):
        return high
    points, shapes = np.append(distinct, highest), np.append(counts * times, 1.0)

    def beyond(limit: float) -> float:
        return _above(points - limit, shapes) - (1 - level)

    return float(brentq(beyond, low, high, xtol=1e-9 * (high - low)))


def _above(factors: Floats, shapes: Floats) -> float:
    """Return P(sum_i factors_i G_i > 0) for independent gamma variables G_i of these shapes."""
    deviation = math.sqrt(float((shapes * factors**2).sum()))
    middle = float((shapes * factors).sum()) / deviation
    if abs(middle) > _FAR:  # by Cantelli's inequality less than .01 lies on the other side
        return float(middle > 0)
    scale = math.log(deviation)
    # in the logarithm of Imhof's variable the integrand falls off on both sides, where the
    # trapezoidal rule converges faster than any power of the step
    at = np.exp(np.arange(_FROM, _TO, _STEP) - scale)[:, None] * factors
    angle = np.arctan(at) @ shapes
    size = np.log1p(at**2) @ shapes / 2
    return 0.5 + float((np.sin(angle) * np.exp(-size)).sum()) * _STEP / math.pi


def upper_limit_unobserved(rooms: Sequence[float] | Floats, *, level: float = 0.975) -> float:
    """The one room that stands for all: how far a case that was not seen to rise might have risen.

    Case i could rise by rooms_i at most. If it does so with chance q_i, none of n rises is seen
    with chance prod (1 - q_i). The largest mean rise, sum q_i rooms_i / n, at which that chance is
    still 1 - level comes from q_i = 1 - t / rooms_i wherever rooms_i > t (Lagrange: the chance is
    log-concave in q), with t such that the product is 1 - level. Divided by the share that could
    rise among equal cases, 1 - (1 - level)^(1/n) (Clopper and Pearson), it is the value returned:
    the room itself where all are equal, otherwise more than the mean room and at most the largest.
    So it need not be assumed that obedience has nothing to do with the room.

    Raises ValueError for no rooms, negative or not finite ones, and a `level` outside (0, 1).
    """
    data = np.sort(finite_vector(rooms, "rooms"))[::-1]
    if not len(data) or data[-1] < 0:
        raise ValueError("there must be rooms, none of them negative")
    log_tail, n = math.log(1 - level), len(data)
    with np.errstate(divide="ignore"):
        sums = np.cumsum(np.log(data))
    # t if exactly the first m rooms exceed it; the m for which that is true is the one
    levels = np.exp((sums + log_tail) / np.arange(1, n + 1))
    following = np.append(data[1:], 0.0)
    m = int(np.argmax(levels >= following))
    mean = float((data[: m + 1] - levels[m]).sum()) / n
    return min(mean / (1 - math.exp(log_tail / n)), float(data[0]))


def n_for_zero_events(limit: float, room: float, *, level: float = 0.975) -> int:
    """Return the number of cases without an increase needed for a mean increase below `limit`.

    This is the smallest n with room (1 - (1 - level)^(1/n)) <= limit (Clopper and Pearson at 0 of
    n; at 95% the rule of three, Hanley & Lippman-Hand, JAMA 249, 1983), or 1 if the room is at most
    the limit. Raises ValueError unless `limit` is positive and `level` in (0, 1).
    """
    check_level(level)
    if not limit > 0:
        raise ValueError(f"limit {limit} is not positive")
    if room <= limit:
        return 1
    return math.ceil(math.log(1 - level) / math.log1p(-limit / room) - 1e-9)
