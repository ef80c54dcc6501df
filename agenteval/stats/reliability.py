"""Intraclass correlation: the share of the variance of ratings that is between units."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from agenteval.stats.agreement import as_ratings
from agenteval.stats.interval import Interval

_METHOD = "ICC(1,1), F interval"


def icc(ratings: ArrayLike) -> Interval:
    """Return ICC(1,1) of a complete (units, raters) array with its 95% F interval.

    The one-way form: raters are exchangeable, like independent repeats. Formulas: McGraw and
    Wong, Psychological Methods 1, 1996, tables 4 and 7; Shrout and Fleiss (1979) use the same name.
    Koo and Li (Journal of Chiropractic Medicine 15, 2016) call values below .5 poor, to .75
    moderate, to .9 good, and above excellent.

    `mean` is the coefficient, at most 1 and possibly negative; `n` counts ratings, `n_clusters`
    units; there is no standard error. The interval assumes normal unit and error effects.

    The coefficient is None with a reason for missing ratings (use Krippendorff's alpha), one rater,
    fewer than two units, or no variation. Ratings that never differ within a unit give 1 with a
    collapsed interval and a reason; units that do not differ give a coefficient of at most 0 and no
    interval. Raises ValueError for ratings that are not (units, raters) or infinite.
    """
    from scipy.special import fdtri

    data = as_ratings(ratings)
    units, raters = data.shape
    n, incomplete = int((~np.isnan(data)).sum()), int(np.isnan(data).any(axis=1).sum())

    def undefined(reason: str, value: float | None = None) -> Interval:
        return Interval.missing(reason, n, units, mean=value, method=_METHOD)

    if not n:
        return undefined("no ratings")
    if raters < 2:
        return undefined("one rater")
    if incomplete:
        reason = f"needs complete data: {incomplete} of {units} units have missing ratings"
        return undefined(reason)
    if units < 2:
        return undefined("one unit")
    centred = data - data.mean()
    means = centred.mean(axis=1)
    rounding = 1e-24 * float(np.abs(data).max()) ** 2 * data.size  # of a sum that is exactly zero
    between = raters * float(means @ means)
    within = float(((centred - means[:, None]) ** 2).sum())
    freedom = units * (raters - 1)
    between_square = 0.0 if between <= rounding else between / (units - 1)
    within_square = 0.0 if within <= rounding else within / freedom
    if within_square == 0:
        if between_square == 0:
            return undefined("no variation")
        return Interval(1.0, 1.0, 1.0, None, n, units, _METHOD, "no variation within units")
    value = (between_square - within_square) / (between_square + (raters - 1) * within_square)
    if between_square == 0:
        return undefined("no variation between units: no interval", value)
    ratio = between_square / within_square
    low = ratio / float(fdtri(units - 1, freedom, 0.975))
    high = ratio * float(fdtri(freedom, units - 1, 0.975))
    low, high = (low - 1) / (low + raters - 1), (high - 1) / (high + raters - 1)
    return Interval(value, low, high, None, n, units, _METHOD)
