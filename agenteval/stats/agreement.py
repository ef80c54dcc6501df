"""Krippendorff's alpha: agreement of independent ratings of the same units beyond chance.

Krippendorff, Content Analysis, 4th ed. 2019, chapter 12; "Computing Krippendorff's
Alpha-Reliability", 2011. alpha = 1 - D_o / D_e over the coincidence matrix o_ck, in which every
ordered pair of ratings of one unit counts 1 / (ratings of the unit - 1), n_c are its margins and n
its sum:  D_o = sum_ck o_ck d_ck / n,  D_e = sum_ck n_c n_k d_ck / (n (n - 1)).
The distance d is 1 for different values (nominal), (c - k)^2 (interval) and, for ordinal,
(sum_{g=c..k} n_g - (n_c + n_k) / 2)^2, which is the squared difference of the midranks of c and k.
Conventional interpretation: good from .800, tentative conclusions only from .667 to .800.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agenteval.stats.bootstrap import (
    Bootstrap,
    Clusters,
    bootstrap_interval,
    bootstrap_sums,
    cluster_codes,
)
from agenteval.stats.interval import Interval

Floats = NDArray[np.float64]
Measure = Literal["nominal", "ordinal", "interval"]

_DENSE_LEVELS = 64  # up to this many levels, coincidences are stored as a matrix per unit
_DENSE_CELLS = 50_000_000  # maximum numbers stored over all units


def krippendorff_alpha(
    ratings: ArrayLike,
    measure: Measure,
    *,
    clusters: Clusters | None = None,
    bootstrap: Bootstrap | None = None,
) -> Interval:
    """Alpha of a (units, raters) array of codes or values, NaN where a rating is missing.

    `mean` is alpha, in (-inf, 1]: 1 perfect, 0 as by chance, below 0 systematic disagreement. `n`
    counts the ratings that can be paired, `n_clusters` the units with at least two ratings; other
    units are left out. The order of raters and units does not matter. Ordinal alpha depends only on
    the order of the values, nominal alpha on their equality, interval alpha on their differences.

    With `bootstrap`, the interval resamples units or, if given, `clusters` (one label per unit),
    which `n_clusters` then counts. Krippendorff's own bootstrap resamples single ratings, which is
    too narrow (Zapf et al., BMC Medical Research Methodology 16, 2016).

    Undefined (None with the reason): no unit with two ratings, so always with one rater; only one
    such unit (alpha is always 0); all ratings equal ("no variation"). Raises ValueError for arrays
    that are not two-dimensional, infinite ratings, and clusters of a different length.
    """
    data = as_ratings(ratings)
    codes = None if clusters is None else cluster_codes(clusters, len(data))
    keep = (~np.isnan(data)).sum(axis=1) >= 2
    data = np.sort(data[keep], axis=1)  # makes the result independent of the order of raters
    data = data[:, : int((~np.isnan(data)).sum(axis=1).max(initial=0))]
    codes = None if codes is None else codes[keep]
    n, units = int((~np.isnan(data)).sum()), len(data)
    independent = units if codes is None else len(np.unique(codes))
    name = f"Krippendorff alpha, {measure}"
    alpha = _alpha(data, measure) if units >= 2 else None
    if alpha is None or bootstrap is None:
        reason = "no interval asked for" if alpha is not None else "no variation"
        if units < 2:
            reason = "one unit with two ratings" if units else "no unit with two ratings"
        return Interval.missing(reason, n, independent, mean=alpha, method=name)
    interval = _bootstrapped(data, measure, codes, bootstrap)
    method = f"{name}; {interval.method}"
    return replace(interval, mean=alpha, n=n, n_clusters=independent, method=method)


def as_ratings(ratings: ArrayLike) -> Floats:
    """Return a (units, raters) float64 array, NaN where missing. Raises ValueError."""
    data = np.asarray(ratings, dtype=np.float64)
    if data.ndim != 2:
        raise ValueError(f"ratings must be (units, raters), not {data.ndim}-dimensional")
    if np.isinf(data).any():
        raise ValueError("ratings must be finite, or NaN where missing")
    return data


def level_counts(data: Floats, levels: Floats) -> Floats:
    """Return the number of ratings per unit and level (units, levels); `levels` are sorted."""
    unit, rater = np.nonzero(~np.isnan(data))
    level = np.searchsorted(levels, data[unit, rater])
    flat = np.bincount(unit * len(levels) + level, minlength=len(data) * len(levels))
    return flat.reshape(len(data), len(levels)).astype(np.float64)


def _alpha(data: Floats, measure: Measure) -> float | None:
    """Return alpha for units with at least two ratings each.

    Interval: sum_{i != j} (x_i - x_j)^2 = 2 (m sum x^2 - (sum x)^2), so sums of squares within
    units and over all suffice. Ordinal: the same on midranks. Nominal: from the counts of equals.
    """
    valid = ~np.isnan(data)
    per_unit = valid.sum(axis=1)
    values, where = np.unique(data[valid], return_inverse=True)
    if len(values) < 2:
        return None
    n, margins = len(where), np.bincount(where)
    if measure == "nominal":
        unit = np.nonzero(valid)[0]
        pair, equal = np.unique(unit * len(values) + where, return_counts=True)
        owner = pair // len(values)
        same = np.bincount(owner, weights=equal.astype(np.float64) ** 2, minlength=len(data))
        observed = float(((per_unit**2 - same) / (per_unit - 1)).sum())
        expected = n**2 - float((margins.astype(np.float64) ** 2).sum())
        return 1 - observed * (n - 1) / expected
    if measure == "ordinal":
        values = np.cumsum(margins) - margins / 2
    centred = np.full(data.shape, np.nan)
    centred[valid] = (values - (values @ margins) / n)[where]
    residual = centred - np.nanmean(centred, axis=1, keepdims=True)
    within = np.nansum(residual**2, axis=1)
    observed = float((2 * per_unit * within / (per_unit - 1)).sum())
    expected = 2 * n * float(np.nansum(centred**2))
    return 1 - observed * (n - 1) / expected


def _bootstrapped(
    data: Floats, measure: Measure, codes: NDArray[np.intp] | None, how: Bootstrap
) -> Interval:
    levels = np.unique(data[~np.isnan(data)])
    width = len(levels) ** 2 if measure == "ordinal" else len(levels) + 2
    if measure == "interval":
        return bootstrap_sums(_moments(data), _interval_alpha, codes, how=how)
    if len(levels) > _DENSE_LEVELS or width * len(data) > _DENSE_CELLS:
        return bootstrap_interval(lambda d: _alpha(d, measure), [data], codes, how=how)
    parts_of = _nominal_parts if measure == "nominal" else _ordinal_parts
    parts, statistic = parts_of(level_counts(data, levels))
    return bootstrap_sums(parts, statistic, codes, how=how)


def _moments(data: Floats) -> Floats:
    """Return per unit the number, sum and sum of squares of ratings, and its part of n D_o."""
    centred = data - np.nanmean(data)
    number = (~np.isnan(data)).sum(axis=1).astype(np.float64)
    total, squares = np.nansum(centred, axis=1), np.nansum(centred**2, axis=1)
    residual = centred - (total / number)[:, None]
    observed = 2 * number * np.nansum(residual**2, axis=1) / (number - 1)
    return np.column_stack([number, total, squares, observed])


def _interval_alpha(totals: Floats) -> Floats:
    n, total, squares, observed = totals.T
    expected = 2 * (n * squares - total**2)
    # a resample of equal values leaves rounding noise instead of zero
    varied = expected > 1e-12 * n * squares
    return _one_minus(observed * (n - 1), np.where(varied, expected, 0.0))


def _nominal_parts(counts: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
    number = counts.sum(axis=1)
    observed = (number**2 - (counts**2).sum(axis=1)) / (number - 1)

    def statistic(totals: Floats) -> Floats:
        n = totals[:, 1:].sum(axis=1)
        return _one_minus(totals[:, 0] * (n - 1), n**2 - (totals[:, 1:] ** 2).sum(axis=1))

    return np.column_stack([observed, counts]), statistic


def _ordinal_parts(counts: Floats) -> tuple[Floats, Callable[[Floats], Floats]]:
    """Return the coincidences per unit; midranks are recomputed for each resample."""
    k = counts.shape[1]
    above, below = np.triu_indices(k, 1)
    number = counts.sum(axis=1, keepdims=True)
    coincidences = 2 * counts[:, above] * counts[:, below] / (number - 1)

    def statistic(totals: Floats) -> Floats:
        margins, unlike = totals[:, :k], totals[:, k:]
        rank = np.cumsum(margins, axis=1) - margins / 2
        n = margins.sum(axis=1)
        observed = (unlike * (rank[:, above] - rank[:, below]) ** 2).sum(axis=1)
        # midranks are centred on n / 2
        expected = 2 * n * (margins * (rank - n[:, None] / 2) ** 2).sum(axis=1)
        return _one_minus(observed * (n - 1), expected)

    return np.column_stack([counts, coincidences]), statistic


def _one_minus(numerator: Floats, denominator: Floats) -> Floats:
    """Return 1 - numerator / denominator, NaN if the denominator is 0."""
    result = np.full(len(numerator), np.nan)
    np.divide(numerator, denominator, out=result, where=denominator > 0)
    return 1 - result
