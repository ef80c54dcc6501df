"""Bootstrap intervals that resample whole cases (clusters).

A case is drawn with all its values: also resampling the repeats within a case would count their
spread twice (Davison and Hinkley, Bootstrap Methods and their Application, 1997, section 3.8). Many
statistics are functions of sums over cases; `bootstrap_sums` resamples those sums, and draws cases
with equal sums together (a multinomial draw has the same distribution), so that its cost depends on
the number of distinct cases, not on the number of values.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from agenteval.stats.interval import Interval

Floats = NDArray[np.float64]
Clusters = Sequence[Hashable] | NDArray[np.generic]

UNDEFINED_LIMIT = 0.05  # maximum share of undefined resamples that is ignored
_CELLS = 1 << 22  # numbers per block of draws


@dataclass(frozen=True)
class Bootstrap:
    """Options of a bootstrap.

    `rng` is consumed; `resamples` is stated in the result. The ends are expanded percentiles
    (Hesterberg, The American Statistician 69, 2015): quantiles of the resamples with the tails
    moved out to undo the narrowness at few cases,
    Phi^-1(tail') = sqrt(C / (C - 1)) * t_{C-1}^-1(tail).
    """

    rng: np.random.Generator
    resamples: int = 2000
    level: float = 0.95

    def tail(self, cases: int) -> float:
        """Return the share of resamples beyond each end of the interval, for `cases` cases."""
        from scipy.special import ndtr, stdtrit

        tail = (1 - self.level) / 2
        return float(ndtr((cases / (cases - 1)) ** 0.5 * stdtrit(cases - 1, tail)))


def bootstrap_interval(
    statistic: Callable[..., float | None],
    arrays: Sequence[NDArray[np.generic]],
    clusters: Clusters | None = None,
    *,
    how: Bootstrap,
) -> Interval:
    """Bootstrap any statistic of arrays with a common first axis by resampling cases.

    `statistic(*arrays)` returns a number, or None or NaN if undefined; it is called once per
    resample. `clusters` has the case of each row (default: each row is a case); a case that is
    drawn twice is included twice. The result and small samples are handled as in `bootstrap_sums`.
    The draws depend on the order of the rows.

    Raises ValueError for arrays or clusters of different lengths, and without arrays.
    """
    lengths = {len(array) for array in arrays}
    if len(lengths) != 1:
        raise ValueError(f"arrays of lengths {sorted(lengths)}: they must share the first axis")
    rows = lengths.pop()
    codes = cluster_codes(clusters, rows)
    cases = int(codes.max()) + 1 if rows else 0
    order = np.argsort(codes, kind="stable")
    sizes = np.bincount(codes, minlength=cases)
    starts = np.concatenate([[0], np.cumsum(sizes)])[:-1]

    def value(drawn: NDArray[np.intp]) -> float:
        lengths = sizes[drawn]
        within = np.arange(lengths.sum()) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        index = order[np.repeat(starts[drawn], lengths) + within]
        result = statistic(*(array[index] for array in arrays))
        return np.nan if result is None else float(result)

    def draw() -> Floats:
        picks = (how.rng.integers(cases, size=cases) for _ in range(how.resamples))
        return np.array([value(pick) for pick in picks])

    estimate = value(np.arange(cases)) if cases else np.nan
    return _result(estimate, draw, how, rows, None if clusters is None else cases)


def bootstrap_sums(
    parts: Floats,
    statistic: Callable[[Floats], Floats],
    clusters: Clusters | None = None,
    *,
    how: Bootstrap,
) -> Interval:
    """Bootstrap a statistic that depends only on sums over units by resampling cases.

    `parts` is (units, p); `statistic` maps totals (B, p) to B values, NaN where undefined.
    `clusters` has the case of each unit (default: each unit is a case). The order of units and the
    names of clusters do not matter.

    `se` is the standard deviation of the resamples times sqrt(C / (C - 1)), which corrects it for a
    mean over C cases. Without an estimate, it is None with the reason "undefined". There is no
    interval for one case, or for so few cases that drawing a single one C times is more likely than
    a tail (C^-C > tail; at 95%, below 5 cases). Undefined resamples are left out and counted in
    `method`; above 5% there is no interval. If all resamples are equal: low = high = mean, with
    reason "no variation between cases".

    Raises ValueError for clusters of a different length or values that are not finite.
    """
    if not np.isfinite(parts).all():
        raise ValueError("values must be finite; leave missing ones out and count them")
    sums = _sums_by_case(parts, clusters)
    cases = len(sums)
    kinds, multiplicity = np.unique(sums, axis=0, return_counts=True)

    def draw() -> Floats:
        block = max(1, _CELLS // max(len(kinds), 1))
        chances = multiplicity / cases
        starts = range(0, how.resamples, block)
        sizes = (min(block, how.resamples - start) for start in starts)
        return np.concatenate(
            [statistic(how.rng.multinomial(cases, chances, size=n) @ kinds) for n in sizes]
        )

    estimate = float(statistic((multiplicity @ kinds)[None, :])[0]) if cases else np.nan
    return _result(estimate, draw, how, len(parts), cases)


def bootstrap_mean(
    values: Sequence[float] | Floats, clusters: Clusters | None = None, *, how: Bootstrap
) -> Interval:
    """Bootstrap the mean of all values (equal weights) by cases; see `bootstrap_sums`."""
    data = np.asarray(values, dtype=np.float64)
    codes = cluster_codes(clusters, len(data))
    # a fixed order of summation makes the result independent of the order of the file; 16-bit keys
    # are sorted by radix, and equal values need no stable sort
    small = codes.astype(np.uint16) if codes.max(initial=0) < 1 << 16 else codes
    by_value = np.argsort(data)
    order = by_value[np.argsort(small[by_value], kind="stable")]
    parts = np.column_stack([data[order], np.ones(len(data))])
    result = bootstrap_sums(
        parts, lambda totals: totals[:, 0] / totals[:, 1], codes[order], how=how
    )
    return result if clusters is not None else replace(result, n_clusters=None)


def cluster_codes(clusters: Clusters | None, n: int) -> NDArray[np.intp]:
    """Return codes 0..C-1 of n cluster labels (hashable); 0..n-1 without clusters."""
    if clusters is None:
        return np.arange(n, dtype=np.intp)
    if len(clusters) != n:
        raise ValueError(f"{n} values but {len(clusters)} cluster labels")
    if isinstance(clusters, np.ndarray) and clusters.dtype != object:
        return np.unique(clusters, return_inverse=True)[1].astype(np.intp)
    seen: dict[Hashable, int] = {}
    return np.array([seen.setdefault(label, len(seen)) for label in clusters], dtype=np.intp)


def _sums_by_case(parts: Floats, clusters: Clusters | None) -> Floats:
    """Return the sums over the units of each case (C, p), in order of first appearance."""
    if clusters is None or not len(parts):
        return parts
    codes = cluster_codes(clusters, len(parts))
    if (codes[1:] < codes[:-1]).any():
        order = np.argsort(codes, kind="stable")
        codes, parts = codes[order], parts[order]
    starts = np.flatnonzero(np.concatenate([[True], codes[1:] != codes[:-1]]))
    return np.asarray(np.add.reduceat(parts, starts, axis=0))


def _result(
    estimate: float, draw: Callable[[], Floats], how: Bootstrap, n: int, n_clusters: int | None
) -> Interval:
    cases = n if n_clusters is None else n_clusters
    reason = None
    if not cases:
        reason = "no values"
    elif not np.isfinite(estimate):
        reason = "undefined"
    elif cases == 1:
        reason = "one case: no interval"
    elif float(cases) ** -min(cases, 100) > how.tail(cases):
        reason = f"{cases} cases: too few for a bootstrap"
    if reason is not None:
        mean = estimate if np.isfinite(estimate) else None
        return Interval.missing(reason, n, n_clusters, mean=mean)
    method = f"bootstrap of cases (expanded), {how.resamples} resamples"
    result = Interval(estimate, None, None, None, n, n_clusters, method)
    draws = draw()
    valid = draws[np.isfinite(draws)]
    lost = len(draws) - len(valid)
    if lost > UNDEFINED_LIMIT * len(draws):
        return replace(result, reason=f"undefined in {lost} of {len(draws)} resamples")
    if lost:
        result = replace(result, method=f"{method}, {lost} undefined left out")
    scale = 1e-12 * max(abs(estimate), float(np.abs(valid).max()))
    if np.abs(valid - estimate).max() <= scale:
        reason = "no variation between cases"
        return replace(result, low=estimate, high=estimate, se=0.0, reason=reason)
    se = float(valid.std(ddof=1)) * (cases / (cases - 1)) ** 0.5
    tail = how.tail(cases)
    low, high = (float(end) for end in np.quantile(valid, np.array([tail, 1 - tail])))
    return replace(result, low=low, high=high, se=se)
