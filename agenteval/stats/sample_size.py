"""How many cases: planning from variances.

`between` is the variance between cases, `within` that of repeats of one case, both in squared
units of the values; K repeats of a case leave between + within / K per case. For a comparison of
two systems on the same cases they are the variance of the true difference between cases and the
variance of repeats of one system.
"""

from __future__ import annotations

import math

from agenteval.stats.interval import Interval
from agenteval.stats.mean_limit import n_for_zero_events
from agenteval.stats.vectors import check_level, normal_quantile

FEWEST = 6  # differing values below which no two-sided sign test reaches .05 (2 x .5^5 = .0625)


def cases_for_difference(
    between: float,
    within: float,
    repeats: int,
    difference: float,
    *,
    power: float = 0.8,
    level: float = 0.95,
) -> int:
    """Cases shared by two systems to detect a mean difference, two-sided at 1 - level.

    n = (z_(1 - alpha/2) + z_power)^2 (between + 2 within / repeats) / difference^2, rounded up
    (Miller, arXiv 2411.00640, section 5). Normal, so somewhat too small below about 20 cases.
    Raises ValueError for negative variances, a difference of 0, or power or level outside (0, 1).
    """
    _check(between, within, repeats)
    _check_positive(abs(difference), "difference")
    spread = between + 2 * within / repeats
    return max(1, math.ceil(_z_sum(power, level) ** 2 * spread / difference**2 - 1e-9))


def smallest_difference(
    between: float,
    within: float,
    repeats: int,
    cases: int,
    *,
    power: float = 0.8,
    level: float = 0.95,
) -> float | None:
    """Smallest mean difference that `cases` shared cases detect with the given power.

    The formula of `cases_for_difference` solved for the difference, in units of the values. None
    with fewer than two cases. Raises ValueError as `cases_for_difference`.
    """
    _check(between, within, repeats)
    if cases < 1:
        raise ValueError(f"{cases} cases: at least one is needed")
    if cases < 2:
        return None
    return _z_sum(power, level) * math.sqrt((between + 2 * within / repeats) / cases)


def cases_to_exclude(
    limit: float,
    found: Interval,
    bounds: tuple[float, float],
    *,
    differing: int = FEWEST,
    power: float = 0.8,
    level: float = 0.95,
) -> int | None:
    """About how many cases it takes until the interval of their mean lies on one side of `limit`.

    Further cases are taken to be like those of `found`, the `bounded_interval` of values within
    `bounds`. The distance of mean and limit is detected as by `cases_for_difference`, with the
    variance found. Fewer than 6 values that differ from the others (`differing`) widen that
    interval: then there must also be enough cases for 6 of them. Of equal values, the Clopper-
    Pearson limit of the share of unequal ones must come close enough (`n_for_zero_events`).
    None where the mean is the limit, or without two cases.
    """
    if found.mean is None or found.se is None or found.n < 2:
        return None
    distance = abs(found.mean - limit)
    if distance < 1e-9:
        return None
    variance = found.se**2 * found.n
    if variance < 1e-12:
        room = bounds[1] - found.mean if limit > found.mean else found.mean - bounds[0]
        return n_for_zero_events(distance, room, level=(1 + level) / 2)
    few = math.ceil(FEWEST * found.n / differing) if 0 < differing < FEWEST else 0
    cases = cases_for_difference(variance, 0, 1, distance, power=power, level=level)
    return max(cases, few)


def _z_sum(power: float, level: float) -> float:
    check_level(power)
    check_level(level)
    return normal_quantile((1 + level) / 2) + normal_quantile(power)


def _check(between: float, within: float, repeats: int) -> None:
    if not (0 <= between < math.inf and 0 <= within < math.inf):
        raise ValueError(f"variances {between} and {within} must be finite and not negative")
    if repeats < 1:
        raise ValueError(f"{repeats} repeats: at least one is needed")


def _check_positive(value: float, name: str) -> None:
    if not 0 < value < math.inf:
        raise ValueError(f"{name} {value} must be positive")
