"""Detect a changed judge: compare new scores of the same runs with frozen ones, repeatedly."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agenteval.stats.bounded import bounded_interval
from agenteval.stats.interval import Interval
from agenteval.stats.vectors import Floats

_LEAST = 1e-13  # smallest p-value, because of rounding in the transform
_RECENT = 0.8  # share of the level for the most recent looks
_NEAR = 3.0  # standard deviations of the sum; below, no level used here is reached


@dataclass(frozen=True)
class Drift:
    """Mean difference new - frozen on one criterion, in shares of the scale.

    `interval` is the drift over the last `looks` looks; its `n` counts cases. `p` is for no change,
    corrected for the tested windows; `shown` is whether it is significant.
    """

    looks: int
    interval: Interval
    p: float
    shown: bool


def find_drift(
    frozen: Floats, new: Floats, cases: NDArray[np.intp], *, recent: int, alpha: float
) -> Drift:
    """Return the drift of one criterion at the latest look.

    `frozen` has a row per run and a column per repeat, `new` a column per look, in order; NaN for
    missing scores. Two windows are tested: the last `recent` looks with 80% of `alpha`, because a
    judge may change at any time, and all looks with 20%, for small changes that need many scores.
    If 5% is divided among the looks of a year and then equally among criteria, the probability of
    any false alarm within the year is at most 5% (Bonferroni).

    The interval is `bounded_interval` over cases with one difference per case, so it includes the
    noise of frozen and new scores. It is for the window with the smaller corrected p if drift is
    shown, else for the last `recent` looks, at the level of the window's test.
    """
    looks = new.shape[1]
    shares = {looks: 1.0} if looks <= recent else {recent: _RECENT, looks: 1 - _RECENT}
    ps = {n: exchange_p(frozen, new[:, -n:], cases) / share for n, share in shares.items()}
    n = min(ps, key=lambda window: ps[window])
    shown = ps[n] <= alpha
    n = n if shown else min(recent, looks)
    values = _by_case(frozen, new[:, -n:], cases)
    interval = bounded_interval(values, (-1.0, 1.0), 1 - alpha * shares[n])
    return Drift(n, interval, min(1.0, *ps.values()), shown)


def exchange_p(frozen: Floats, new: Floats, cases: NDArray[np.intp]) -> float:
    """Return the two-sided p-value of no change: frozen and new scores of a run are exchangeable.

    The statistic is the mean over cases of (mean new - mean frozen), rounded to a grid. Its
    distribution over all exchanges is exact: each run adds a sum drawn without replacement, whose
    characteristic function is an elementary symmetric polynomial, and the product over runs is
    inverted by a Fourier transform (as Pagano & Tritchler, JASA 78, 1983). So the p-value is valid
    for any noise, levels and number of runs. Within 3 standard deviations of the mean, the normal
    approximation is returned.
    """
    rows = list(_rows(frozen, new, cases))
    away = abs(sum(steps[:k].sum() - k * steps.mean() for steps, k in rows))
    parts = (k * (len(x) - k) / (len(x) - 1) * x.var() for x, k in rows)  # without replacement
    spread = math.sqrt(sum(parts))
    if away <= _NEAR * spread:
        return math.erfc(away / spread / math.sqrt(2)) if rows else 1.0
    drawn = sum(k for _, k in rows)
    cells = 2 ** max(11, math.ceil(math.log2(8 * drawn)))
    scale = (cells - 2 - drawn / 2) / sum(k * float(steps.max()) for steps, k in rows)
    roots = np.exp(-2j * np.pi * np.arange(cells) / cells)
    frequencies, reached = np.arange(cells // 2 + 1), 0
    spectrum = np.ones(len(frequencies), dtype=np.complex128)
    for steps, k in rows:
        rounded = np.rint(steps * scale).astype(np.intp)
        reached += int(rounded[:k].sum())
        sums = [np.ones_like(spectrum)] + [np.zeros_like(spectrum)] * k
        for step in rounded:
            turn = roots[step * frequencies % cells]
            for j in range(k, 0, -1):
                sums[j] = sums[j] + turn * sums[j - 1]
        spectrum *= sums[k] / math.comb(len(rounded), k)
    chances = np.fft.irfft(spectrum, cells)
    tails = float(chances[: reached + 1].sum()), float(chances[reached:].sum())
    return min(1.0, max(2 * min(tails), _LEAST))


def _rows(frozen: Floats, new: Floats, cases: NDArray[np.intp]) -> Iterator[tuple[Floats, int]]:
    """Yield the scores of each run with differing scores, as steps above the lowest, weighted so
    that cases count equally, and the size of the smaller group, which comes first.

    The sign is chosen so that the sum of the first group increases with new - frozen.
    """
    both, runs_of = _paired(frozen, new, cases)
    for i in np.flatnonzero(both):
        old, late = frozen[i][~np.isnan(frozen[i])], new[i][~np.isnan(new[i])]
        few = len(late) <= len(old)
        values = np.concatenate([late, old]) if few else -np.concatenate([old, late])
        if (steps := values - values.min()).any():
            weight = (1 / len(old) + 1 / len(late)) / runs_of[cases[i]]
            yield steps * weight, min(len(late), len(old))


def _paired(
    frozen: Floats, new: Floats, cases: NDArray[np.intp]
) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Return which runs have both kinds of scores, and their number in each case."""
    both = np.asarray(~np.isnan(frozen).all(axis=1) & ~np.isnan(new).all(axis=1))
    return both, np.bincount(cases[both], minlength=int(cases.max(initial=0)) + 1)


def _by_case(frozen: Floats, new: Floats, cases: NDArray[np.intp]) -> Floats:
    """Return the mean difference of each case with both kinds of scores."""
    both, runs_of = _paired(frozen, new, cases)
    difference = np.nanmean(new[both], axis=1) - np.nanmean(frozen[both], axis=1)
    sums = np.bincount(cases[both], difference, minlength=len(runs_of))
    return np.asarray(sums[runs_of > 0] / runs_of[runs_of > 0])
