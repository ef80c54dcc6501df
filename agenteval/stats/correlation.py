"""Redundancy of criteria: rank correlation, its matrix, and the first component's share."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from agenteval.stats.interval import Interval
from agenteval.stats.vectors import Floats, check_level, finite_vector, normal_quantile

Kind = Literal["spearman", "pearson"]


@dataclass(frozen=True)
class CorrelationMatrix:
    """`rho[i][j]` in [-1, 1] over the `n[i][j]` rows with both values; None if undefined."""

    rho: tuple[tuple[float | None, ...], ...]
    n: tuple[tuple[int, ...], ...]


@dataclass(frozen=True)
class FirstComponent:
    """Share of variance of the first principal component, in [1 / columns, 1].

    `share` is None with a reason if undefined. `rows` counts complete rows, `columns` has the
    indices of columns that vary over them.
    """

    share: float | None
    rows: int
    columns: tuple[int, ...]
    reason: str | None = None


def spearman(
    first: Sequence[float] | Floats, second: Sequence[float] | Floats, *, level: float = 0.95
) -> Interval:
    """Spearman's rank correlation of pairs, ties with midranks, in [-1, 1].

    The interval is Fisher's z with the standard error sqrt((1 + r^2 / 2) / (n - 3)) of Bonett &
    Wright (Psychometrika 65, 2000, equation 7); `se` is None. It assumes independent pairs, so it
    is too narrow for several runs per case. Fewer than three pairs, or a side without variation,
    give no correlation; fewer than 10 pairs or |r| = 1, no interval.

    Raises ValueError for different lengths, values that are not finite, or a bad level.
    """
    a, b = finite_vector(first, "first"), finite_vector(second, "second")
    check_level(level)
    n = len(a)
    if n != len(b):
        raise ValueError(f"{n} and {len(b)} values: the pairs do not match")
    r = _correlation(midranks(a), midranks(b)) if n >= 3 else None
    if r is None:
        reason = "fewer than three pairs" if n < 3 else "no variation in one of the two"
        return Interval.missing(reason, n)
    if n < 10 or abs(r) >= 1:
        reason = "perfect order: no interval" if n >= 10 else "fewer than 10 pairs: no interval"
        return Interval.missing(reason, n, mean=r, method="Spearman")
    half = normal_quantile((1 + level) / 2) * math.sqrt((1 + r * r / 2) / (n - 3))
    low, high = math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)
    return Interval(r, low, high, None, n, None, "Spearman, Fisher z (Bonett & Wright)")


def correlation_matrix(table: Floats, *, kind: Kind = "spearman") -> CorrelationMatrix:
    """Return the correlation of each two columns of `table` (rows, columns) over common rows.

    NaN marks a missing rating. Fewer than three common rows, or a column constant over them, give
    None. Pairwise rows differ, so the matrix need not be positive definite.
    """
    data = np.asarray(table, dtype=np.float64)
    columns = data.shape[1]
    rho: list[list[float | None]] = [[None] * columns for _ in range(columns)]
    counts = [[0] * columns for _ in range(columns)]
    for i in range(columns):
        for j in range(i, columns):
            both = ~np.isnan(data[:, i]) & ~np.isnan(data[:, j])
            counts[i][j] = counts[j][i] = int(both.sum())
            if counts[i][j] >= 3:
                a, b = (data[both, c] for c in (i, j))
                if kind == "spearman":
                    a, b = midranks(a), midranks(b)
                rho[i][j] = rho[j][i] = _correlation(a, b)
    return CorrelationMatrix(tuple(map(tuple, rho)), tuple(map(tuple, counts)))


def first_component(table: Floats) -> FirstComponent:
    """Return the share of variance that one common factor could explain (halo effect).

    Largest eigenvalue of the correlation matrix over its trace (Jolliffe, Principal Component
    Analysis, 2nd ed., section 2.3), over the rows without a missing value (NaN); columns that are
    constant over these rows are left out. With few rows the share is too high: at 20 rows of 6
    unrelated columns it is about .30, not 1/6. Fewer than two columns that vary, or fewer than
    three complete rows, give None.
    """
    data = np.asarray(table, dtype=np.float64)
    complete = data[~np.isnan(data).any(axis=1)]
    rows = len(complete)
    if rows < 3:
        return FirstComponent(None, rows, (), f"{rows} rows are complete: at least 3 needed")
    varying = np.flatnonzero(complete.min(axis=0) != complete.max(axis=0))
    columns = tuple(int(c) for c in varying)
    if len(columns) < 2:
        reason = f"{len(columns)} columns vary: at least 2 needed"
        return FirstComponent(None, rows, columns, reason)
    values = np.ascontiguousarray(complete[:, varying])
    centred = values - values.mean(axis=0)
    unit = centred / np.sqrt((centred**2).sum(axis=0))
    largest = float(np.linalg.svd(unit, compute_uv=False)[0]) ** 2
    return FirstComponent(min(largest / len(columns), 1.0), rows, columns)


def midranks(values: Floats) -> Floats:
    """Return ranks from 1; ties get their mean rank."""
    ordered = np.sort(values)
    below, upto = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
    return (below + upto + 1) / 2


def _correlation(a: Floats, b: Floats) -> float | None:
    if a.min() == a.max() or b.min() == b.max():
        return None
    x, y = a - a.mean(), b - b.mean()
    r = float((x * y).sum() / math.sqrt(float((x * x).sum()) * float((y * y).sum())))
    return 1.0 if r > 1 - 1e-14 else -1.0 if r < -1 + 1e-14 else r
