"""Number of cases for a planned precision, from variances.

`between` is the variance between cases, `within` that of repeats of one case, both in squared
units of the values; K repeats of a case leave between + within / K per case. For a comparison of
two systems on the same cases they are the variance of the true difference between cases and the
variance of repeats of one system. All functions are for a two-sided test at 1 - level with 80%
power.
"""

from __future__ import annotations

import math

from agenteval.stats.interval import Interval
from agenteval.stats.mean_limit import n_for_zero_events
from agenteval.stats.vectors import check_level, normal_quantile

FEWEST = 6  # with fewer differing values, no two-sided sign test reaches .05 (2 x .5^5 = .0625)


def cases_for_difference(
    between: float,
    within: float,
    repeats: int,
    difference: float,
    *,
    level: float = 0.95,
) -> int:
    """Return the number of cases shared by two systems to detect a mean difference.

    n = (z_(1 - alpha/2) + z_power)^2 (between + 2 within / repeats) / difference^2, rounded up
    (Miller, arXiv 2411.00640, section 5). A normal approximation, slightly too small below about 20
    cases. Raises ValueError for negative variances, a difference of 0, or a level outside (0, 1).
    """
    if not 0 < abs(difference) < math.inf:
        raise ValueError(f"difference {difference} must not be 0")
    variance = _variance(between, within, repeats)
    return max(1, math.ceil(_z_sum(level) ** 2 * variance / difference**2 - 1e-9))


def smallest_difference(
    between: float,
    within: float,
    repeats: int,
    cases: int,
    *,
    level: float = 0.95,
) -> float | None:
    """Return the smallest mean difference that `cases` shared cases detect.

    The formula of `cases_for_difference` solved for the difference, in units of the values. None
    with fewer than two cases. Raises ValueError like `cases_for_difference`.
    """
    variance = _variance(between, within, repeats)
    return None if cases < 2 else _z_sum(level) * math.sqrt(variance / cases)


def cases_to_exclude(
    limit: float,
    figure: Interval,
    bounds: tuple[float, float],
    *,
    differing: int = FEWEST,
    level: float = 0.95,
) -> int | None:
    """Return the approximate number of cases until the interval of the mean excludes `limit`.

    Further cases are assumed to be like those of `figure`, a `bounded_interval` of values within
    `bounds`. The distance of mean and limit is detected as in `cases_for_difference`, with the
    variance of these values. Fewer than 6 `differing` values widen the interval, so enough cases
    for 6 of them are also needed. If all values are equal, the Clopper-Pearson limit of the share
    of unequal ones must be small enough (`n_for_zero_events`). None if the mean equals the limit,
    or with fewer than two cases.
    """
    if figure.mean is None or figure.se is None or figure.n < 2:
        return None
    distance = abs(figure.mean - limit)
    if distance < 1e-9:
        return None
    variance = figure.se**2 * figure.n
    if variance < 1e-12:
        room = bounds[1] - figure.mean if limit > figure.mean else figure.mean - bounds[0]
        return n_for_zero_events(distance, room, level=(1 + level) / 2)
    few = math.ceil(FEWEST * figure.n / differing) if 0 < differing < FEWEST else 0
    return max(cases_for_difference(variance, 0, 1, distance, level=level), few)


def _variance(between: float, within: float, repeats: int) -> float:
    if not (0 <= between < math.inf and 0 <= within < math.inf) or repeats < 1:
        raise ValueError(f"variances {between} and {within} of {repeats} repeats are impossible")
    return between + 2 * within / repeats


def _z_sum(level: float) -> float:
    check_level(level)
    return normal_quantile((1 + level) / 2) + normal_quantile(0.8)
