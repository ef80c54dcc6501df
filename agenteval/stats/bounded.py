"""Mean of bounded values, with an interval that is valid even if nearly all are equal."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from agenteval.stats.interval import Interval, mean_interval
from agenteval.stats.proportion import proportion_interval
from agenteval.stats.sample_size import FEWEST
from agenteval.stats.vectors import Floats


def bounded_interval(values: Floats, bounds: tuple[float, float], level: float = 0.95) -> Interval:
    """Return the mean of independent values within `bounds`, with an interval of nonzero width.

    Yes/no values: Clopper-Pearson. If fewer than 6 values differ from the most frequent one, m, a
    t interval collapses, so the shares of values below and above m are bounded instead: the mean
    is between m - u_below (m - lowest) and m + u_above (highest - m), u the upper Clopper-Pearson
    limit of the share; without any differing value of 20 it is .168 (Hanley & Lippman-Hand, JAMA
    249, 1983). Otherwise the t interval, clipped. Fewer than two values give no interval.
    """
    n = len(values)
    plain = mean_interval(values.tolist(), level=level, bounds=bounds)
    if n < 2:
        return plain
    distinct, times = np.unique(values, return_counts=True)
    if bounds == (0.0, 1.0) and set(distinct.tolist()) <= {0.0, 1.0}:
        exact = proportion_interval(int(values.sum()), n, method="clopper-pearson", level=level)
        return replace(exact, se=plain.se)
    middle = float(distinct[times == times.max()].mean())  # any of them gives a valid bound
    below, above = int((values < middle).sum()), int((values > middle).sum())
    if below + above >= FEWEST:
        return plain
    share_below, share_above = (
        proportion_interval(k, n, method="clopper-pearson", level=level).high or 1.0
        for k in (below, above)
    )
    low = middle - share_below * (middle - bounds[0])
    high = middle + share_above * (bounds[1] - middle)
    method = f"bound from {below + above} of {n} values that differ"
    return Interval(plain.mean, low, high, plain.se, n, None, method)
