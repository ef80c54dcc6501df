"""Shared parts of the tests: input validation, one-sided and two-sided p-values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
_ROUNDING = 1e-12  # values closer than this share of the largest count as equal
Alternative = Literal["two-sided", "greater", "less"]


def finite_vector(values: Sequence[float] | Floats, name: str) -> Floats:
    """Return the values as a float64 vector. Raises ValueError unless 1-D and finite."""
    data = np.asarray(values, dtype=np.float64)
    if data.ndim != 1:
        raise ValueError(f"{name} must be one-dimensional")
    if not np.isfinite(data).all():
        raise ValueError(f"{name} must be finite; leave missing ones out and count them")
    return data


def round_near_ties(data: Floats) -> Floats:
    """Round values to 1e-12 of the largest, so that rounding errors do not break ties.

    For example, a mean over thirds may be .3333333333333333 or .3333333333333335.
    """
    least = float(np.abs(data).max(initial=0.0)) * _ROUNDING
    if least < np.finfo(np.float64).tiny:
        return data
    unit = 10.0 ** np.floor(np.log10(least))
    return np.asarray(np.round(data / unit) * unit, dtype=np.float64)


def p_value(less: float, greater: float, alternative: Alternative) -> float:
    """Return p from P(T <= t) and P(T >= t); two-sided is twice the smaller tail, at most 1."""
    tails = {"less": less, "greater": greater, "two-sided": 2 * min(less, greater)}
    return min(tails[alternative], 1.0)


def check_level(level: float) -> None:
    """Raise ValueError unless `level` is between 0 and 1."""
    if not 0 < level < 1:
        raise ValueError(f"level {level} is not between 0 and 1")


def normal_quantile(p: float) -> float:
    """Return z with P(Z <= z) = p."""
    from scipy.special import ndtri

    return float(ndtri(p))


def t_quantile(p: float, df: float) -> float:
    """Return t with P(T <= t) = p for Student's t with `df` degrees of freedom."""
    from scipy.special import stdtrit

    return float(stdtrit(df, p))
