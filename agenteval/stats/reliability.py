"""Intraclass correlation: which share of the variance of ratings is between the units?

Names, formulas and intervals: McGraw and Wong, Psychological Methods 1, 1996, tables 4 and 7
(with the correction of 1996, p. 390); choice of form and reading: Koo and Li, Journal of
Chiropractic Medicine 15, 2016: below .5 poor, to .75 moderate, to .9 good, above excellent, applied
to the ends of the interval. Shrout and Fleiss (1979) call the forms ICC(1,1), (2,1) and (3,1).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike

from agenteval.stats.agreement import Floats, as_ratings
from agenteval.stats.interval import Interval

IccForm = Literal["ICC(1,1)", "ICC(A,1)", "ICC(C,1)", "ICC(1,k)", "ICC(A,k)", "ICC(C,k)"]


def icc(ratings: ArrayLike, form: IccForm, *, level: float = 0.95) -> Interval:
    """One form of the ICC of a complete (units, raters) array, with its F interval.

    ICC(1,1): raters differ from unit to unit or are exchangeable, as independent repeats are (one-
    way). ICC(A,1): the same raters rate all units and their levels must agree (two-way, absolute).
    ICC(C,1): as before, a constant shift between raters is forgiven (consistency). The k forms
    are about the mean of the k ratings of a unit instead of a single one.

    `mean` is the coefficient, at most 1 and possibly negative; `n` counts ratings, `n_clusters`
    units; there is no standard error. The interval assumes normal unit and error effects; that of
    the A forms is approximate (Satterthwaite). Two units are enough for a coefficient, and its
    interval then says how little that is.

    Undefined, None with the reason: missing ratings (these formulas need complete data: leave out
    the units, or use Krippendorff's alpha), one rater, fewer than two units, no variation. Ratings
    that never differ within a unit give 1 with the collapsed interval and that reason; units that
    do not differ give a coefficient of 0 or less and no interval.
    Raises ValueError for ratings that are not (units, raters) or infinite, and for an unknown form.
    """
    if form not in get_args(IccForm):
        raise ValueError(f"form {form!r} is not one of {get_args(IccForm)}")
    if not 0 < level < 1:
        raise ValueError(f"level {level} is not between 0 and 1")
    data = as_ratings(ratings)
    reason = _unfit(data)
    value, ends = None, None
    if reason is None:
        value, ends, reason = _estimate(_mean_squares(data), form, level)
    low, high = (None, None) if ends is None else ends
    rated = int((~np.isnan(data)).sum())
    return Interval(value, low, high, None, rated, len(data), f"{form}, F interval", reason)


def icc_table(ratings: ArrayLike, *, level: float = 0.95) -> dict[IccForm, Interval]:
    """All six forms by name."""
    return {form: icc(ratings, form, level=level) for form in get_args(IccForm)}


@dataclass(frozen=True)
class _MeanSquares:
    """Of an (n, k) table: units (MSR), raters (MSC), within units (MSW), rest (MSE)."""

    n: int
    k: int
    units: float
    raters: float
    error_one: float
    error_two: float


def _unfit(data: Floats) -> str | None:
    units, raters = data.shape
    if units == 0 or np.isnan(data).all():
        return "no ratings"
    if raters < 2:
        return "one rater"
    incomplete = int(np.isnan(data).any(axis=1).sum())
    if incomplete:
        return f"needs complete data: {incomplete} of {units} units have missing ratings"
    return "one unit" if units == 1 else None


def _estimate(
    s: _MeanSquares, form: IccForm, level: float
) -> tuple[float | None, tuple[float, float] | None, str | None]:
    """Coefficient, ends and the reason why one is missing or collapsed."""
    if s.error_one == 0:
        if s.units == 0:
            return None, None, "no variation"
        return 1.0, (1.0, 1.0), "no variation within units"
    scaled = _single if form.endswith("1)") else _averaged
    single = _SINGLE[form[4]](s)
    value = None if single is None else scaled(single, s.k)
    if single is None or value is None:
        return None, None, "no variation between units: the coefficient has no finite value"
    if s.units == 0:
        return value, None, "no variation between units: no interval"
    ends = _ends(form[4], s, single, level)
    low, high = (None, None) if ends is None else (scaled(end, s.k) for end in ends)
    if low is None or high is None:
        return value, None, "the F interval diverges: none is given"
    if not low - 1e-9 <= value <= high + 1e-9:  # A forms, few units, negative coefficient
        return value, None, "the approximate F interval misses the coefficient: none is given"
    return value, (low, high), None


def _mean_squares(data: Floats) -> _MeanSquares:
    n, k = data.shape
    centred = data - data.mean()
    rows, columns = centred.mean(axis=1), centred.mean(axis=0)
    noise = 1e-24 * float(np.abs(data).max()) ** 2 * data.size  # rounding of a true zero

    def clean(total: float, df: int) -> float:
        return 0.0 if total <= noise else total / df

    return _MeanSquares(
        n=n,
        k=k,
        units=clean(k * float(rows @ rows), n - 1),
        raters=clean(n * float(columns @ columns), k - 1),
        error_one=clean(float(((centred - rows[:, None]) ** 2).sum()), n * (k - 1)),
        error_two=clean(float(((centred - rows[:, None] - columns) ** 2).sum()), (n - 1) * (k - 1)),
    )


def _one_way(s: _MeanSquares) -> float | None:
    return (s.units - s.error_one) / (s.units + (s.k - 1) * s.error_one)


def _absolute(s: _MeanSquares) -> float | None:
    below = s.units + (s.k - 1) * s.error_two + s.k / s.n * (s.raters - s.error_two)
    return (s.units - s.error_two) / below if below > 0 else None


def _consistent(s: _MeanSquares) -> float | None:
    below = s.units + (s.k - 1) * s.error_two
    return (s.units - s.error_two) / below if below > 0 else None


_SINGLE = {"1": _one_way, "A": _absolute, "C": _consistent}


def _single(single: float, k: int) -> float | None:
    return single


def _averaged(single: float, k: int) -> float | None:
    """Spearman-Brown: the form of the mean of k ratings; None at and beyond its pole."""
    below = 1 + (k - 1) * single
    return k * single / below if below > 1e-12 else None


def _ends(kind: str, s: _MeanSquares, value: float, level: float) -> tuple[float, float] | None:
    """Lower and upper end for single ratings (McGraw and Wong, table 7)."""
    from scipy.special import fdtri

    def quantile(df1: float, df2: float) -> float:
        return float(fdtri(df1, df2, (1 + level) / 2))

    n, k = s.n, s.k
    if kind == "A":
        ends = _absolute_ends(s, value, quantile)
        return ends if ends is not None and np.isfinite(ends).all() else None
    error = s.error_one if kind == "1" else s.error_two
    df = n * (k - 1) if kind == "1" else (n - 1) * (k - 1)
    if error == 0:  # raters differ by constants only, which consistency forgives
        return 1.0, 1.0
    ratio = s.units / error
    low, high = ratio / quantile(n - 1, df), ratio * quantile(df, n - 1)
    return (low - 1) / (low + k - 1), (high - 1) / (high + k - 1)


def _absolute_ends(
    s: _MeanSquares, value: float, quantile: Callable[[float, float], float]
) -> tuple[float, float] | None:
    n, k = s.n, s.k
    if value >= 1:
        return None
    a = k * value / (n * (1 - value))
    b = 1 + k * value * (n - 1) / (n * (1 - value))
    spread = (a * s.raters) ** 2 / (k - 1) + (b * s.error_two) ** 2 / ((n - 1) * (k - 1))
    df = (a * s.raters + b * s.error_two) ** 2 / spread if spread > 0 else 0.0
    if not df > 0:
        return None
    rest = k * s.raters + (k * n - k - n) * s.error_two
    lower, upper = quantile(n - 1, df), quantile(df, n - 1)
    low = n * (s.units - lower * s.error_two) / (lower * rest + n * s.units)
    high = n * (upper * s.units - s.error_two) / (rest + n * upper * s.units)
    return low, high
