"""How often repeats of a judgement contradict one another."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike

from agenteval.stats.agreement import as_ratings, level_counts
from agenteval.stats.interval import Interval, mean_interval
from agenteval.stats.proportion import proportion_interval


@dataclass(frozen=True)
class Flips:
    """Instability of repeated labels; every interval is over cases.

    `rate`: share of the repeats that differ from the most frequent label of their case. The label
    is taken from the same repeats, so with few of them the rate is too low: of two, one half of a
    disagreement. `pairs`: share of pairs of repeats of a case that differ, mean over cases; free
    of that and comparable between different numbers of repeats. `unstable`: share of cases whose
    repeats are not unanimous; grows with the number of repeats. `n` counts repeats in `rate`, cases
    in the others. `left_out` counts cases with fewer than two repeats.
    """

    rate: Interval
    pairs: Interval
    unstable: Interval
    left_out: int


def flip_rate(labels: ArrayLike, *, level: float = 0.95) -> Flips:
    """Flips of a (cases, repeats) array of label codes, NaN where a repeat has no label.

    `rate` and `pairs` have cluster-robust t intervals clipped to [0, 1], `unstable` a Wilson
    interval. Where no case flips, t would claim certainty; the upper end is then Wilson's for the
    share of unstable cases, which neither share can exceed in expectation with equal numbers of
    repeats. No case with two repeats (all missing, one repeat): None, "no case with two repeats".
    One case: no interval but for `unstable`. Ties for the most frequent label change nothing.

    Raises ValueError for labels that are not (cases, repeats) or infinite.
    """
    data = as_ratings(labels)
    number = (~np.isnan(data)).sum(axis=1)
    kept = data[number >= 2]
    number = number[number >= 2]
    if not len(kept):
        nothing = Interval(None, None, None, None, 0, 0, "none", "no case with two repeats")
        return Flips(nothing, nothing, replace(nothing, n_clusters=None), len(data))
    counts = level_counts(kept, np.unique(kept[~np.isnan(kept)]))
    flipped = (number - counts.max(axis=1)).astype(np.intp)
    unlike = 1 - (counts * (counts - 1)).sum(axis=1) / (number * (number - 1))
    unstable = proportion_interval(int((flipped > 0).sum()), len(kept), level=level)
    single = np.concatenate([np.arange(m) < f for m, f in zip(number, flipped, strict=True)])
    cases = np.repeat(np.arange(len(kept)), number)
    return Flips(
        rate=_share(single.astype(np.float64).tolist(), cases.tolist(), unstable, level),
        pairs=_share(unlike.tolist(), list(range(len(kept))), unstable, level),
        unstable=unstable,
        left_out=len(data) - len(kept),
    )


def _share(
    values: Sequence[float], cases: Sequence[int], unstable: Interval, level: float
) -> Interval:
    result = mean_interval(values, cases, level=level, bounds=(0, 1))
    if any(values) or result.low is None:
        return result
    method = "no flip seen: Wilson over cases"
    return replace(result, high=unstable.high, se=None, method=method, reason="no flip seen")
