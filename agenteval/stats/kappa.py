"""Agreement on classes beyond chance (Cohen and Gwet), together with the raw agreement.

If nearly all units have the same class, kappa can be low although raters agree on nearly all of
them; AC1 does not have this paradox (Gwet 2008). No coefficient should be interpreted alone.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from agenteval.stats.agreement import Floats, as_ratings, level_counts
from agenteval.stats.bootstrap import Bootstrap, Clusters, bootstrap_sums, cluster_codes
from agenteval.stats.interval import Interval, mean_interval
from agenteval.stats.proportion import proportion_interval

Weights = Literal["none", "linear", "quadratic"]


@dataclass(frozen=True)
class Kappa:
    """A chance-corrected coefficient and the raw agreement.

    `coefficient` is at most 1, and 0 for chance agreement; it has an interval if a bootstrap was
    requested. `agreement` is the share of equal pairs of ratings of a unit, averaged over units
    (Wilson interval for two raters, else t; over cases if there are clusters). In both intervals,
    `n` counts units and `n_clusters` cases.
    """

    coefficient: Interval
    agreement: Interval


def cohen_kappa(
    ratings: ArrayLike,
    *,
    weights: Weights = "none",
    categories: Sequence[float] | None = None,
    clusters: Clusters | None = None,
    bootstrap: Bootstrap | None = None,
) -> Kappa:
    """Cohen's kappa of two raters: 1 - sum w o / sum w e.

    Cohen, Educational and Psychological Measurement 20, 1960; weighted: Psych. Bull. 70, 1968.

    `ratings` is (units, 2), NaN where missing; units without both are left out. The disagreement
    w_ij is 1 for different classes, |i - j| (linear) or (i - j)^2 (quadratic), where i and j are
    positions in `categories` in ascending order. Pass all levels of the scale, because an omitted
    unused level would make its neighbours adjacent. Default: the values that occur.

    Undefined (None with the reason): no complete unit, or both raters always use the same single
    class ("no variation"). One unit gives 0 or undefined and no interval. Raises ValueError for a
    number of raters other than two, a value outside `categories`, or clusters of a different
    length.
    """
    data = as_ratings(ratings)
    if data.shape[1] != 2:
        raise ValueError(f"Cohen's kappa is of two raters, not {data.shape[1]}")
    keep = np.isnan(data).sum(axis=1) == 0
    data, codes = data[keep], _codes(clusters, keep)
    levels = _categories(data, categories)
    k, position = len(levels), np.searchsorted(levels, data)
    cell = np.zeros((len(position), k * k))
    cell[np.arange(len(cell)), position[:, 0] * k + position[:, 1]] = 1
    loss = _losses(k, weights)

    def shares(totals: Floats) -> tuple[Floats, Floats]:
        table = totals.reshape(len(totals), k, k)
        table = table / table.sum(axis=(1, 2), keepdims=True)
        by_chance = table.sum(axis=2)[:, :, None] * table.sum(axis=1)[:, None, :]
        return 1 - (table * loss).sum(axis=(1, 2)), 1 - (by_chance * loss).sum(axis=(1, 2))

    name = "Cohen kappa" if weights == "none" else f"Cohen kappa, {weights} weights"
    reason = "" if len(data) else "no unit with two ratings"
    return Kappa(
        _coefficient(name, cell, shares, codes, bootstrap, reason),
        _agreement(data, codes, bootstrap),
    )


def gwet_ac2(
    ratings: ArrayLike,
    *,
    weights: Weights = "linear",
    categories: Sequence[float] | None = None,
    clusters: Clusters | None = None,
    bootstrap: Bootstrap | None = None,
) -> Kappa:
    """Gwet's AC2: weighted agreement of ordered classes; AC1 with weights "none".

    AC1: British Journal of Mathematical and Statistical Psychology 61, 2008; AC2: Handbook of
    Inter-Rater Reliability, 4th ed. 2014, chapter 4. `ratings` is (units, raters), NaN where
    missing. The weight w_kl is 1 for equal classes, 0 for others (none), 1 - |k - l| / (q - 1)
    (linear) or 1 - (k - l)^2 / (q - 1)^2 (quadratic), where k and l are positions among the q
    `categories` (default: the values that occur; pass all levels of the scale, because unused ones
    lower the chance agreement). Agreement is the mean weight of pairs over units with two ratings;
    chance is sum_kl w_kl sum_c p_c (1 - p_c) / (q (q - 1)), p_c the mean over rated units of the
    share of class c. A unit with one rating only counts for p_c.

    Undefined (None with the reason): no unit with two ratings; a single category. Constant ratings
    on a scale with several `categories` give 1. Raises ValueError for a value outside `categories`,
    for clusters of a different length, and like `as_ratings`.
    """
    data = as_ratings(ratings)
    keep = (~np.isnan(data)).sum(axis=1) > 0
    data, codes = data[keep], _codes(clusters, keep)
    levels = _categories(data, categories)
    q = len(levels)
    counts = level_counts(data, levels)
    number = counts.sum(axis=1)
    reason = "" if q >= 2 else "no variation"
    if not (number >= 2).any():
        reason = "no unit with two ratings"
    weight = 1 - _losses(q, weights)
    pairs = number * (number - 1)
    agreeing = np.zeros(len(counts))
    np.divide((counts * (counts @ weight - 1)).sum(axis=1), pairs, out=agreeing, where=pairs > 0)
    paired = (number >= 2).astype(np.float64)
    share = counts / number[:, None]
    parts = np.column_stack([agreeing, paired, np.ones(len(counts)), share])

    def shares(totals: Floats) -> tuple[Floats, Floats]:
        mean = totals[:, 3:] / totals[:, 2:3]
        agreement = np.full(len(totals), np.nan)
        np.divide(totals[:, 0], totals[:, 1], out=agreement, where=totals[:, 1] > 0)
        return agreement, (mean * (1 - mean)).sum(axis=1) * weight.sum() / (q * (q - 1))

    name = "Gwet AC1" if weights == "none" else f"Gwet AC2, {weights} weights"
    return Kappa(
        _coefficient(name, parts, shares, codes, bootstrap, reason),
        _agreement(data, codes, bootstrap),
    )


def equal_pairs(counts: Floats) -> Floats:
    """Return the share of equal pairs of ratings per unit, 0 for units without a pair."""
    number = counts.sum(axis=1)
    pairs = number * (number - 1)
    result = np.zeros(len(counts))
    np.divide((counts * (counts - 1)).sum(axis=1), pairs, out=result, where=pairs > 0)
    return result


def _losses(classes: int, weights: Weights) -> Floats:
    """Return the disagreement of two classes (q, q): 0 if equal, 1 for the two ends."""
    distance = np.abs(np.subtract.outer(np.arange(classes), np.arange(classes))).astype(np.float64)
    power = {"none": 0, "linear": 1, "quadratic": 2}[weights]
    return np.asarray(np.where(distance > 0, distance**power, 0.0) / max(classes - 1, 1) ** power)


def _codes(clusters: Clusters | None, keep: NDArray[np.bool_]) -> NDArray[np.intp] | None:
    """Cluster codes of the kept units."""
    return None if clusters is None else cluster_codes(clusters, len(keep))[keep]


def _categories(data: Floats, categories: Sequence[float] | None) -> Floats:
    seen = np.unique(data[~np.isnan(data)])
    if categories is None:
        return seen
    levels = np.unique(np.asarray(categories, dtype=np.float64))
    strange = np.setdiff1d(seen, levels)
    if len(strange):
        raise ValueError(f"rating {strange[0]:g} is not among the categories")
    return levels


def _agreement(
    data: Floats, codes: NDArray[np.intp] | None, bootstrap: Bootstrap | None
) -> Interval:
    """Raw agreement: mean over units of the share of equal pairs."""
    counts = level_counts(data, _categories(data, None))
    paired = counts.sum(axis=1) >= 2
    values = equal_pairs(counts)[paired]
    level = 0.95 if bootstrap is None else bootstrap.level
    if codes is None and np.isin(values, (0, 1)).all():
        return proportion_interval(int(values.sum()), len(values), level=level)
    labels = None if codes is None else codes[paired].tolist()
    return mean_interval(values.tolist(), labels, level=level, bounds=(0, 1))


def _coefficient(
    name: str,
    parts: Floats,
    shares: Callable[[Floats], tuple[Floats, Floats]],
    codes: NDArray[np.intp] | None,
    bootstrap: Bootstrap | None,
    undefined: str,
) -> Interval:
    """Return (agreement - chance) / (1 - chance) from sums over units with a bootstrap interval;
    None with the reason `undefined`."""

    def statistic(totals: Floats) -> Floats:
        agreement, chance = shares(totals)
        result = np.full(len(totals), np.nan)
        # 1e-12: chance agreement is 1 up to rounding
        np.divide(agreement - chance, 1 - chance, out=result, where=1 - chance > 1e-12)
        return result

    cases = None if codes is None else len(np.unique(codes))
    value = np.nan if undefined else float(statistic(parts.sum(axis=0)[None, :])[0])
    if np.isnan(value):
        return Interval.missing(undefined or "no variation", len(parts), cases, method=name)
    if bootstrap is None:
        reason = "no interval asked for"
        return Interval.missing(reason, len(parts), cases, mean=value, method=name)
    interval = bootstrap_sums(parts, statistic, codes, how=bootstrap)
    method = f"{name}; {interval.method}"
    return replace(interval, mean=value, n=len(parts), n_clusters=cases, method=method)
