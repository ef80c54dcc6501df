"""Adjusted p-values for multiple tests."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np


def adjust(
    p_values: Sequence[float | None], method: Literal["holm", "by"] = "holm"
) -> tuple[float | None, ...]:
    """Return adjusted p-values, in order, to be compared with the level of a single test.

    holm: probability of any false claim, under any dependence (Holm, Scandinavian Journal of
    Statistics 6, 1979). by: share of false claims among all, under any dependence (Benjamini &
    Yekutieli, Annals of Statistics 29, 2001, theorem 1.3).

    None entries (not tested) stay None and do not count. A single p is unchanged; an empty input
    gives an empty result. Raises ValueError for a p outside [0, 1].
    """
    tested = [i for i, p in enumerate(p_values) if p is not None]
    defined = np.array([p for p in p_values if p is not None], dtype=np.float64)
    if not ((defined >= 0) & (defined <= 1)).all():
        raise ValueError("p-values must lie in [0, 1]; use None where nothing was tested")
    order = np.argsort(defined, kind="stable")
    rank, m = np.arange(1, len(tested) + 1), len(tested)
    if method == "holm":
        stepped = np.maximum.accumulate(defined[order] * rank[::-1])
    else:
        # m / rank first: at rank m the factor is exactly 1, so adjusted >= raw to the last digit
        scaled = defined[order] * (m / rank) * float((1 / rank).sum())
        stepped = np.minimum.accumulate(scaled[::-1])[::-1]
    result: list[float | None] = [None] * len(p_values)
    for place, p in zip(order, stepped, strict=True):
        result[tested[place]] = min(float(p), 1.0)
    return tuple(result)
