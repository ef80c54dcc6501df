"""Share of successes among independent yes/no values, with its interval."""

from __future__ import annotations

import math
from typing import Literal

from agenteval.stats.interval import Interval
from agenteval.stats.vectors import check_level, normal_quantile

ProportionMethod = Literal["wilson", "clopper-pearson"]


def proportion_interval(
    successes: int, n: int, *, method: ProportionMethod = "wilson", level: float = 0.95
) -> Interval:
    """Return the share `successes / n` of independent values with a two-sided interval.

    wilson: the p whose score test does not reject (Wilson, JASA 22, 1927). Its coverage is close
    to `level` on average over p and may fall below it at single values of p; the default.
    clopper-pearson: the p whose exact binomial tests do not reject (Clopper and Pearson,
    Biometrika 26, 1934; quantiles of the beta distribution). It covers at least `level` at every
    p and n, and is wider for it.

    Both stay in [0, 1] and are informative even for one value: 1 of 1 is [.21, 1] and [.025, 1].
    `se` is sqrt(p (1 - p) / n); at 0 and n successes, where this is misleadingly 0, it is None with
    a reason. Without values there is no share. Repeats of a case are not independent: use
    `mean_interval` or `bootstrap_mean` over cases.

    Raises ValueError unless 0 <= successes <= n and 0 < level < 1.
    """
    from scipy.special import betaincinv

    if not 0 <= successes <= n:
        raise ValueError(f"{successes} successes of {n}: must be between 0 and n")
    check_level(level)
    if n == 0:
        return Interval.missing("no values")
    share, low, high = successes / n, 0.0, 1.0  # the ends are exact at 0 and n successes
    if method == "wilson":
        name, z = "Wilson", normal_quantile((1 + level) / 2)
        middle, scale = share + z * z / (2 * n), 1 + z * z / n
        half = z * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))
        low = (middle - half) / scale if successes else low
        high = (middle + half) / scale if successes < n else high
    else:
        name, tail = "Clopper-Pearson", (1 - level) / 2
        if successes:
            low = float(betaincinv(successes, n - successes + 1, tail))
        if successes < n:
            high = float(betaincinv(successes + 1, n - successes, 1 - tail))
    if successes in (0, n):
        return Interval(share, low, high, None, n, None, name, "all alike: no standard error")
    return Interval(share, low, high, math.sqrt(share * (1 - share) / n), n, None, name)
