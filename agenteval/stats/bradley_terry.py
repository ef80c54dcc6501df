"""Bradley-Terry strengths of several systems from pairwise preferences.

The probability that i is preferred to j is 1 / (1 + exp(s_j - s_i)) (Bradley and Terry, Biometrika
39, 1952). A tie counts as half a win of either.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from agenteval.stats.interval import Interval
from agenteval.stats.vectors import Floats, t_quantile

NO_MAXIMUM = "some systems won or lost every comparison with the others, or have none"
_STEPS, _TOLERANCE = 100, 1e-10


def bradley_terry(wins: Floats) -> Floats:
    """Return the maximum likelihood strengths (..., k), natural log odds with mean 0, from the wins
    (..., k, k) of the row's system against the column's.

    The strengths are NaN if the likelihood has no maximum, because some systems won or lost all
    comparisons with the others (Ford, American Mathematical Monthly 64, 1957).
    """
    k = wins.shape[-1]
    itself = np.eye(k, dtype=bool)
    counts = np.where(itself, 0.0, wins)
    reached: NDArray[np.bool_] = np.logical_or(counts > 0, itself)
    for _ in range(k.bit_length()):  # doubles the length of the paths
        reached = reached @ reached
    finite = np.asarray(reached.all(axis=(-1, -2)))[..., None]
    counts = np.where(finite[..., None], counts, 1.0)
    games, won = counts + counts.swapaxes(-1, -2), np.where(itself, 0.0, counts).sum(axis=-1)
    strengths = np.zeros(counts.shape[:-1])
    for _ in range(_STEPS):  # Newton
        chance = 1 / (1 + np.exp(strengths[..., None, :] - strengths[..., :, None]))
        expected = np.where(itself, 0.0, games * chance)
        weight = expected * (1 - chance)
        # only differences are determined: 1 / k in each cell keeps the mean where it is
        information = np.eye(k) * weight.sum(axis=-1)[..., None] - weight + 1 / k
        gradient = won - expected.sum(axis=-1)
        step = np.clip(np.linalg.solve(information, gradient[..., None])[..., 0], -1.0, 1.0)
        strengths = strengths + step
        if np.abs(step).max(initial=0.0) < _TOLERANCE:
            break
    return np.where(finite, strengths - strengths.mean(axis=-1, keepdims=True), np.nan)


def strength_intervals(wins: Floats) -> list[Interval]:
    """Return the strength of each of k systems from their wins in each case (cases, k, k).

    The standard error comes from leaving out one case at a time (jackknife; Efron and Stein, Annals
    of Statistics 9, 1981), the 95% interval from t with cases - 1 degrees of freedom (percentiles
    of resampled cases cover less). Without a maximum of the likelihood there are no strengths; if
    it has no maximum without some case, there are no intervals.
    """
    n, total = len(wins), wins.sum(axis=0)
    strengths, without = bradley_terry(total), bradley_terry(total - wins)
    if np.isnan(strengths).any():
        return [Interval.missing(NO_MAXIMUM, n, n)] * len(strengths)
    if n < 2 or np.isnan(without).any():
        reason = "a single case decides whether it is finite"
        return [Interval.missing(reason, n, n, mean=float(s)) for s in strengths]
    errors = np.sqrt((n - 1) / n * ((without - strengths) ** 2).sum(axis=0))
    half = t_quantile(0.975, n - 1) * errors
    method = f"jackknife over cases, t, {n - 1} df"
    return [
        Interval(float(s), float(s - h), float(s + h), float(se), n, n, method)
        for s, h, se in zip(strengths, half, errors, strict=True)
    ]
