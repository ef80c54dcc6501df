"""Number of distinct criteria proposed by M critic runs, for M = 1..N.

The criteria of all N sets are clustered once; a draw of M sets counts the clusters that it touches.
If each draw were clustered separately, two criteria could be the same in one draw and different in
another, so a draw could have more criteria than a larger draw that contains it. With fixed
clusters, each curve increases, its expectation is exact, and curves of different thresholds never
cross.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class UniqueCurve:
    """Number of distinct criteria against the number of sets.

    `m` is 1..N; `mean`, `low`, `high` have one entry each per m: the exact mean over all draws, and
    the central 95% of the resampled ones. The band is the spread of single draws, not the
    uncertainty of the mean; it has no width at m = N, where all draws are equal.
    """

    m: tuple[int, ...]
    mean: tuple[float, ...]
    low: tuple[float, ...]
    high: tuple[float, ...]


def expected_unique(counts: Sequence[int], n_sets: int) -> NDArray[np.float64]:
    """Exact expected number of distinct criteria in M of `n_sets` sets, for M = 1..n_sets.

    `counts` has the number of sets in which each criterion (or cluster) occurs. A draw of M sets
    without replacement misses a criterion that occurs in n sets with probability C(N-n, M) / C(N,
    M), so the expectation is sum_i 1 - C(N-n_i, M) / C(N, M) (the rarefaction of Hurlbert, Ecology
    52, 1971). The ratio is a running product of factors in [0, 1]: no overflow for any N.

    Returns float64 of length `n_sets`. Raises ValueError for a count outside 0..n_sets.
    """
    result = np.zeros(n_sets)
    step = np.arange(n_sets, dtype=np.float64)
    for count, names in sorted(Counter(counts).items()):
        if not 0 <= count <= n_sets:
            raise ValueError(f"a criterion in {count} of {n_sets} sets")
        missed = np.cumprod(np.maximum(n_sets - count - step, 0) / (n_sets - step))
        result += names * (1 - missed)
    return result


def unique_curve(
    set_members: Sequence[Sequence[int]], *, resamples: int = 50, rng: np.random.Generator
) -> UniqueCurve:
    """Curve of distinct criteria: exact mean (`expected_unique`) and a resampled band.

    `set_members[i]` are the cluster ids in set i (any integers; duplicates are ignored). Each
    resample is a random order of the sets, whose first M sets are the draw for M: each draw is
    uniform among the subsets of size M, without replacement.

    Raises ValueError without sets or with fewer than one resample.
    """
    n_sets = len(set_members)
    if n_sets < 1 or resamples < 1:
        raise ValueError(f"{n_sets} sets and {resamples} resamples: both must be at least 1")
    pairs = sorted({(i, c) for i, members in enumerate(set_members) for c in members})
    owner = np.array([i for i, _ in pairs], dtype=np.intp)
    ids, cluster = np.unique(np.array([c for _, c in pairs], dtype=np.int64), return_inverse=True)
    draws = np.empty((resamples, n_sets))
    for row in draws:
        position = rng.permutation(n_sets)
        first = np.full(len(ids), n_sets, dtype=np.intp)
        np.minimum.at(first, cluster, position[owner])
        row[:] = np.cumsum(np.bincount(first, minlength=n_sets)[:n_sets])
    low, high = np.quantile(draws, (0.025, 0.975), axis=0)
    counts = np.bincount(cluster, minlength=len(ids)).tolist()
    return UniqueCurve(
        m=tuple(range(1, n_sets + 1)),
        mean=tuple(expected_unique(counts, n_sets).tolist()),
        low=tuple(low.tolist()),
        high=tuple(high.tolist()),
    )
