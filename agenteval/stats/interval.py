"""The mean of a sample with its confidence interval, over values or over cases."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Hashable, Sequence
from dataclasses import dataclass

from agenteval.stats.vectors import check_level, t_quantile


@dataclass(frozen=True)
class Interval:
    """A mean with its confidence interval.

    `mean`, `low`, `high`, `se` are in the unit of the values, None if undefined.
    `n` counts values, `n_clusters` the independent units (None when values are the units).
    `method` names the method, `reason` says why the interval is missing or collapsed.
    """

    mean: float | None
    low: float | None
    high: float | None
    se: float | None
    n: int
    n_clusters: int | None
    method: str
    reason: str | None = None

    @classmethod
    def missing(
        cls,
        reason: str,
        n: int = 0,
        n_clusters: int | None = None,
        *,
        mean: float | None = None,
        method: str = "none",
    ) -> Interval:
        """Return an interval without ends, with a reason."""
        return cls(mean, None, None, None, n, n_clusters, method, reason)


def mean_interval(
    values: Sequence[float],
    clusters: Sequence[Hashable] | None = None,
    *,
    level: float = 0.95,
    bounds: tuple[float, float] | None = None,
) -> Interval:
    """Mean of all values with a two-sided `level` t interval.

    Without `clusters` the values are independent: se = s / sqrt(n), n - 1 degrees of freedom.
    With `clusters` (one label per value, for example its case) every value has
    equal weight and the standard error is cluster-robust:
    se^2 = C / (C - 1) * sum_c (sum_{i in c} (x_i - mean))^2 / n^2 with C - 1 degrees of freedom
    (Miller, "Adding Error Bars to Evals", arXiv 2411.00640, appendix A, with the small-sample
    factor C / (C - 1), which makes clusters of one value the ordinary standard error).

    The result does not depend on the order of the values. Fewer than two independent units give no
    interval, with a reason. `bounds` clips low and high; `method` mentions it if they change. For
    few yes/no values, a t interval is too narrow near 0 and 1.

    Raises ValueError for values that are not finite or outside `bounds`, for a `level` outside
    (0, 1), and for `clusters` of a different length.
    """
    data = [float(v) for v in values]
    check_level(level)
    if not all(math.isfinite(v) for v in data):
        raise ValueError("values must be finite; leave missing ones out and count them")
    if clusters is not None and len(clusters) != len(data):
        raise ValueError(f"{len(data)} values but {len(clusters)} cluster labels")
    if bounds is not None and data and not bounds[0] <= min(data) <= max(data) <= bounds[1]:
        raise ValueError(f"a value lies outside the bounds {bounds}")
    members: defaultdict[Hashable, list[float]] = defaultdict(list)
    for unit, value in zip(range(len(data)) if clusters is None else clusters, data, strict=True):
        members[unit].append(value)
    n, units = len(data), len(members)
    n_clusters = None if clusters is None else units
    method = f"{'t' if clusters is None else 'cluster-robust t'}, {units - 1} df"
    if not data:
        return Interval.missing("no values", 0, n_clusters)
    lowest, highest = min(data), max(data)
    mean = lowest if lowest == highest else math.fsum(data) / n
    if units < 2:
        reason = f"one {'value' if clusters is None else 'case'}: no interval"
        return Interval.missing(reason, n, n_clusters, mean=mean)
    if lowest == highest:
        return Interval(mean, mean, mean, 0.0, n, n_clusters, method, "no variation")
    sums = [math.fsum(value - mean for value in group) for group in members.values()]
    se = math.sqrt(units / (units - 1) * math.fsum(s * s for s in sums)) / n
    if se <= 1e-12 * max(abs(lowest), abs(highest)):  # rounding noise of a true zero
        return Interval(mean, mean, mean, 0.0, n, n_clusters, method, "no variation between cases")
    half = t_quantile((1 + level) / 2, units - 1) * se
    low, high = mean - half, mean + half
    if bounds is not None and not (bounds[0] <= low and high <= bounds[1]):
        low, high = max(low, bounds[0]), min(high, bounds[1])
        method += f", clipped to [{bounds[0]:g}, {bounds[1]:g}]"
    return Interval(mean, low, high, se, n, n_clusters, method)
