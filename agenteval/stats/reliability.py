"""Intraclass correlation: which share of the variance of ratings is between the units?"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from agenteval.stats.agreement import Floats, as_ratings
from agenteval.stats.interval import Interval
from agenteval.stats.vectors import check_level

_METHOD = "ICC(1,1), F interval"


def icc(ratings: ArrayLike, *, level: float = 0.95) -> Interval:
    """Return ICC(1,1) of a complete (units, raters) array with its F interval.

    The one-way form: raters are exchangeable, as independent repeats are. Formulas: McGraw and
    Wong, Psychological Methods 1, 1996, tables 4 and 7; Shrout and Fleiss (1979) use the same name.
    Koo and Li (Journal of Chiropractic Medicine 15, 2016) call values below .5 poor, to .75
    moderate, to .9 good, and above excellent.

    `mean` is the coefficient, at most 1 and possibly negative; `n` counts ratings, `n_clusters`
    units; there is no standard error. The interval assumes normal unit and error effects.

    The coefficient is None, with the reason, for missing ratings (use Krippendorff's alpha), one
    rater, fewer than two units, or no variation. Ratings that never differ within a unit give 1
    with the collapsed interval and that reason; units that do not differ give a coefficient of 0 or
    less and no interval. Raises ValueError for ratings that are not (units, raters) or infinite.
    """
    check_level(level)
    data = as_ratings(ratings)
    rated, units = int((~np.isnan(data)).sum()), len(data)

    def result(
        value: float | None, low: float | None, high: float | None, reason: str | None
    ) -> Interval:
        return Interval(value, low, high, None, rated, units, _METHOD, reason)

    if (unfit := _unfit(data)) is not None:
        return result(None, None, None, unfit)
    raters = data.shape[1]
    centred = data - data.mean()
    means = centred.mean(axis=1)
    rounding = 1e-24 * float(np.abs(data).max()) ** 2 * data.size  # of a sum that is truly zero
    between = raters * float(means @ means)
    within = float(((centred - means[:, None]) ** 2).sum())
    between_square = 0.0 if between <= rounding else between / (units - 1)
    within_square = 0.0 if within <= rounding else within / (units * (raters - 1))
    if within_square == 0:
        if between_square == 0:
            return result(None, None, None, "no variation")
        return result(1.0, 1.0, 1.0, "no variation within units")
    value = (between_square - within_square) / (between_square + (raters - 1) * within_square)
    if between_square == 0:
        return result(value, None, None, "no variation between units: no interval")
    from scipy.special import fdtri

    quantile = (1 + level) / 2
    freedom = units * (raters - 1)
    ratio = between_square / within_square
    low = ratio / float(fdtri(units - 1, freedom, quantile))
    high = ratio * float(fdtri(freedom, units - 1, quantile))
    return result(value, (low - 1) / (low + raters - 1), (high - 1) / (high + raters - 1), None)


def _unfit(data: Floats) -> str | None:
    units, raters = data.shape
    if units == 0 or np.isnan(data).all():
        return "no ratings"
    if raters < 2:
        return "one rater"
    incomplete = int(np.isnan(data).any(axis=1).sum())
    if incomplete:
        return f"needs complete data: {incomplete} of {units} units have missing ratings"
    return "one unit" if units == 1 else None
