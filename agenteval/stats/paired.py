"""Paired tests on differences: sign test and sign-flip permutation.

A pair is a case with two values (original and perturbed, system A and B); average its repeats
first. Differences that are equal up to rounding (1e-12 of the largest) count as equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from agenteval.stats.vectors import (
    Alternative,
    Floats,
    finite_vector,
    p_value,
    round_near_ties,
)

FLIP_LIMIT = 16  # up to this many untied pairs, all 2^n sign flips are enumerated
_CHUNK = 2**20  # random signs in memory


@dataclass(frozen=True)
class PairedTest:
    """A p-value with the counts behind it.

    `positive`, `negative`, `ties` count the differences by sign. Only untied pairs count, and n of
    them cannot give a p below .5^n (two-sided: twice that). If that is above .05, the `reason` says
    "too few", which is not the same as "not significant". `p` is None without pairs, and 1 with a
    reason if all pairs are tied.
    """

    p: float | None
    positive: int
    negative: int
    ties: int
    method: str
    reason: str | None = None


def sign_test(
    differences: Sequence[float] | Floats, *, alternative: Alternative = "two-sided"
) -> PairedTest:
    """Exact binomial test that positive and negative differences are equally likely, without ties.

    Dixon & Mood (Journal of the American Statistical Association 41, 1946). The alternative
    `greater` is that positive differences prevail. Raises ValueError for values that are not finite
    or an unknown alternative.
    """
    data = round_near_ties(finite_vector(differences, "differences"))
    positive, untied = int((data > 0).sum()), int((data != 0).sum())
    less, greater = binomial_half_tails(positive, untied)
    p = p_value(less, greater, alternative)
    return _result(data, p, alternative, "sign test, exact")


def binomial_half_tails(k: int, n: int) -> tuple[float, float]:
    """Return P(X <= k) and P(X >= k) for X ~ Binomial(n, 1/2); both are 1 at n = 0."""
    from scipy.stats import binom

    # use the symmetry, so that swapping the sides swaps the tails exactly
    return float(binom.cdf(k, n, 0.5)), float(binom.cdf(n - k, n, 0.5))


def sign_flip_test(
    differences: Sequence[float] | Floats,
    *,
    alternative: Alternative = "two-sided",
    draws: int = 20_000,
    rng: np.random.Generator | None = None,
) -> PairedTest:
    """Permutation test of the mean difference: under the null, signs are exchangeable.

    Fisher, The Design of Experiments (1935), section 21. The statistic is the mean difference.
    Up to 16 untied pairs, all 2^n flips are enumerated and no rng is needed. Beyond that, `draws`
    random flips give p = (b + 1) / (draws + 1), which is never zero (Phipson & Smyth, Statistical
    Applications in Genetics and Molecular Biology 9, 2010). Sums that differ only by rounding count
    as equal.

    Raises ValueError like `sign_test`, for draws < 1, and without an rng if one is needed.
    """
    data = round_near_ties(finite_vector(differences, "differences"))
    untied = np.sort(data[data != 0])  # sorted, so that the order of pairs does not matter
    slack = 1e-9 * float(np.abs(untied).sum())
    observed = float(untied.sum())
    if len(untied) <= FLIP_LIMIT:
        sums = np.zeros(1)
        for value in untied:
            sums = np.concatenate([sums + value, sums - value])
        less = float((sums <= observed + slack).mean())
        greater = float((sums >= observed - slack).mean())
        p = p_value(less, greater, alternative)
        name = f"sign flips, all {len(sums)}"
    else:
        if rng is None or draws < 1:
            raise ValueError(f"{len(untied)} untied pairs: random flips need an rng and draws >= 1")
        p = (_random_hits(untied, draws, rng, slack, alternative) + 1) / (draws + 1)
        name = f"sign flips, {draws} random"
    return _result(data, p, alternative, name)


def _random_hits(
    untied: Floats, draws: int, rng: np.random.Generator, slack: float, alternative: Alternative
) -> int:
    """Count the random sums that are <= the observed, >= it, or at least as far from zero."""
    observed, hits = float(untied.sum()), 0
    rows = max(1, _CHUNK // len(untied))
    for start in range(0, draws, rows):
        signs = rng.integers(0, 2, size=(min(rows, draws - start), len(untied))) * 2.0 - 1
        sums = signs @ untied
        if alternative == "less":
            as_extreme = sums <= observed + slack
        elif alternative == "greater":
            as_extreme = sums >= observed - slack
        else:
            as_extreme = np.abs(sums) >= abs(observed) - slack
        hits += int(as_extreme.sum())
    return hits


def _result(data: Floats, p: float, alternative: Alternative, method: str) -> PairedTest:
    positive, negative = int((data > 0).sum()), int((data < 0).sum())
    untied = positive + negative
    smallest = 0.5**untied * (2 if alternative == "two-sided" else 1)
    ties, reason = len(data) - untied, None
    if not len(data):
        return PairedTest(None, 0, 0, 0, "none", "no pairs")
    if not untied:
        reason = f"all {ties} pairs are tied: nothing to test"
    elif smallest > 0.05:
        reason = f"too few untied pairs ({untied}): p cannot fall below {smallest:.3g}"
    return PairedTest(p, positive, negative, ties, method, reason)
