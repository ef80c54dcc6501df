"""Several criteria tested at once: adjusted p-values."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from agenteval.stats.vectors import Floats

Correction = Literal["holm", "bh", "by"]


@dataclass(frozen=True)
class Adjusted:
    """Raw and adjusted p-values in the order given; None where there was no test.

    `n_tests` is the number of p-values that were there, the m of the correction.
    """

    raw: tuple[float | None, ...]
    adjusted: tuple[float | None, ...]
    method: Correction
    n_tests: int


def adjust(p_values: Sequence[float | None], method: Correction = "holm") -> Adjusted:
    """Adjusted p-values: compare them with the level as if each were the only one.

    holm: chance of any false claim, under any dependence (Holm, Scandinavian Journal of
    Statistics 6, 1979); for claims. bh: share of false claims among all, independent or
    positively dependent tests (Benjamini & Hochberg, JRSS B 57, 1995); for screening. by: the
    same under any dependence (Benjamini & Yekutieli, Annals of Statistics 29, 2001, theorem 1.3).

    None entries (nothing was tested) stay None and do not count. One test is unchanged; no test
    gives an empty result. Raises ValueError for a p outside [0, 1] or an unknown method.
    """
    if method not in ("holm", "bh", "by"):
        raise ValueError(f"method {method!r} is not holm, bh or by")
    tested = [i for i, p in enumerate(p_values) if p is not None]
    defined = np.array([p for p in p_values if p is not None], dtype=np.float64)
    if not ((defined >= 0) & (defined <= 1)).all():
        raise ValueError("p-values must lie in [0, 1]; use None where nothing was tested")
    order = np.argsort(defined, kind="stable")
    stepped = _step_down(defined[order]) if method == "holm" else _step_up(defined[order], method)
    result: list[float | None] = [None] * len(p_values)
    for rank, index in enumerate(order):
        result[tested[int(index)]] = float(stepped[rank])
    return Adjusted(tuple(p_values), tuple(result), method, len(tested))


def _step_down(ascending: Floats) -> Floats:
    m = len(ascending)
    return np.minimum(np.maximum.accumulate(ascending * np.arange(m, 0, -1)), 1.0)


def _step_up(ascending: Floats, method: Correction) -> Floats:
    m = len(ascending)
    rank = np.arange(1, m + 1)
    harmonic = float((1 / rank).sum()) if method == "by" else 1.0
    # m / rank first: at rank m the factor is exactly 1, so adjusted >= raw to the last digit
    scaled = ascending * (m / rank) * harmonic
    return np.minimum(np.minimum.accumulate(scaled[::-1])[::-1], 1.0)
