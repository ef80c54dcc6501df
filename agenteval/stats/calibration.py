"""Expected calibration error, with an interval that is valid even without error."""

from __future__ import annotations

from collections.abc import Hashable, Sequence

import numpy as np
from numpy.typing import NDArray

from agenteval.stats.bootstrap import cluster_codes
from agenteval.stats.interval import Interval
from agenteval.stats.ppi import FEWEST_LABELS
from agenteval.stats.vectors import Floats, t_quantile

_DRAWS = 4000


def calibration_error(
    gaps: Floats,
    bins: NDArray[np.intp],
    clusters: Sequence[Hashable] | NDArray[np.generic] | None = None,
    *,
    rng: np.random.Generator,
) -> Interval:
    """Sum over bins of share × |mean gap| (Naeini, Cooper & Hauskrecht, AAAI 2015), of `gaps` (n,),
    forecast minus outcome, in predefined `bins` (n,).

    It is |d|_1, where d are the means over all values of gap × [in bin b]. The plug-in estimate T
    is too high, especially if the true value is 0, so `mean` subtracts from each part its bias
    under a normal distribution with the same standard error. The interval is [T - q, T + t × se]: T
    - |d|_1 is never above |d^ - d|_1, whose quantile q is drawn from the normal with the covariance
    of d^; |d|_1 - T is never above s × (d - d^) for the true signs s, and se is that of the signed
    sum. Covariances are cluster-robust over cases. Without values, or with fewer than 20 cases,
    there is no interval.
    """
    from scipy.special import erf

    n, codes = len(gaps), cluster_codes(clusters, len(gaps))
    cases = len(np.unique(codes))
    if not n:
        return Interval.missing("no values", 0, 0)
    parts = np.zeros((n, int(bins.max()) + 1))
    parts[np.arange(n), bins] = gaps
    d = parts.mean(axis=0)
    sums = np.zeros((cases, len(d)))
    np.add.at(sums, codes, (parts - d) / n)
    covariance = sums.T @ sums * cases / max(cases - 1, 1)
    size, s = np.abs(d), np.sqrt(np.maximum(np.diag(covariance), 1e-24))
    z = size / s
    folded = s * np.sqrt(2 / np.pi) * np.exp(-(z**2) / 2) + size * erf(z / np.sqrt(2))
    plain, corrected = float(size.sum()), float(np.maximum(2 * size - folded, 0.0).sum())
    if cases < FEWEST_LABELS:
        reason = f"{cases} cases; {FEWEST_LABELS} are needed"
        return Interval.missing(reason, n, cases, mean=corrected)
    t = t_quantile(0.975, cases - 1)
    drawn = rng.multivariate_normal(np.zeros(len(d)), covariance, _DRAWS, method="eigh")
    q = float(np.quantile(np.abs(drawn).sum(axis=1), 0.975))
    q *= t / t_quantile(0.975, np.inf)
    se = float(np.sqrt(max(np.sign(d) @ covariance @ np.sign(d), 0.0)))
    low, high = max(0.0, plain - q), min(1.0, plain + t * se)
    return Interval(max(low, corrected), low, high, se, n, cases, f"normal, {cases - 1} df")
