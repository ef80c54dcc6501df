"""Has a judge changed? New scores of the same runs against frozen ones, over repeated looks."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agenteval.stats.bounded import bounded_interval
from agenteval.stats.interval import Interval
from agenteval.stats.vectors import Floats

_LEAST = 1e-13  # what the rounding of the transform leaves of a p-value
_RECENT = 0.8  # share of the level for the last looks
_NEAR = 2.5  # standard deviations of the sum; nearer to its mean, no level used here is reached


@dataclass(frozen=True)
class Drift:
    """Mean difference new - frozen on one criterion, in shares of the scale.

    `interval` holds the drift over the last `looks` looks; its `n` counts cases. `p` is of no
    change, corrected for the windows that were tried; `shown` says whether it reaches the level.
    """

    looks: int
    interval: Interval
    p: float
    shown: bool


def find_drift(
    frozen: Floats, new: Floats, cases: NDArray[np.intp], *, recent: int, alpha: float
) -> Drift:
    """Return the drift of one criterion after the last of some looks.

    `frozen` has a row for each run and a column for each repeat, `new` a column for each look, in
    order; NaN where there is no score. Two windows are tested: the last `recent` looks with 80% of
    `alpha`, because a judge may change at any time, and all looks with 20%, for a small change that
    needs many answers. If each look of a year has its share of 5%, and each criterion an equal
    share of that, the chance of any false alarm within the year is at most 5% (Bonferroni).

    The interval is that of `bounded_interval` over cases: one difference for each, so it counts the
    noise of frozen and of new scores. It is of the window with the smaller corrected p if drift is
    shown, else of the last `recent` looks, at the level at which the window is tested.
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
    """Return the two-sided p-value of no change: within each run, frozen and new scores could be
    exchanged.

    The statistic is the mean over cases of (mean new - mean frozen), rounded to a grid. Its
    distribution over all exchanges is computed exactly: each run adds a sum drawn without
    replacement, whose characteristic function is an elementary symmetric polynomial, and the
    product over runs is inverted by a Fourier transform (as Pagano & Tritchler, JASA 78, 1983). So
    the p-value is valid for any noise, levels and number of runs. Nearer than 2.5 standard
    deviations to the mean the normal approximation is returned.
    """
    rows = list(_rows(frozen, new, cases))
    spread = math.sqrt(sum(row.variance for row in rows))
    away = abs(sum(row.away for row in rows))
    if away < _NEAR * spread or not rows:
        return math.erfc(away / spread / math.sqrt(2)) if rows else 1.0
    drawn = sum(row.drawn for row in rows)
    cells = 2 ** max(11, math.ceil(math.log2(8 * drawn)))
    scale = (cells - 2 - drawn / 2) / sum(row.drawn * float(row.steps.max()) for row in rows)
    roots = np.exp(-2j * np.pi * np.arange(cells) / cells)
    frequencies, reached = np.arange(cells // 2 + 1), 0
    spectrum = np.ones(len(frequencies), dtype=np.complex128)
    for row in rows:
        steps = np.rint(row.steps * scale).astype(np.intp)
        reached += int(steps[: row.drawn].sum())
        sums = [np.ones_like(spectrum)] + [np.zeros_like(spectrum)] * row.drawn
        for step in steps:
            turn = roots[step * frequencies % cells]
            for k in range(row.drawn, 0, -1):
                sums[k] = sums[k] + turn * sums[k - 1]
        spectrum *= sums[-1] / math.comb(len(steps), row.drawn)
    chances = np.fft.irfft(spectrum, cells)
    tails = float(chances[: reached + 1].sum()), float(chances[reached:].sum())
    return min(1.0, max(2 * min(tails), _LEAST))


@dataclass(frozen=True)
class _Row:
    """One run: its scores as steps above the lowest, those of the smaller group first (`drawn` of
    them), turned so that a sum of `drawn` steps rises with the difference new - frozen."""

    steps: Floats
    drawn: int

    @property
    def away(self) -> float:
        """By how much the observed sum exceeds its mean over all exchanges."""
        return float(self.steps[: self.drawn].sum() - self.drawn * self.steps.mean())

    @property
    def variance(self) -> float:
        """Variance of the sum over all exchanges (drawing without replacement)."""
        n = len(self.steps)
        return float(self.steps.var()) * self.drawn * (n - self.drawn) / (n - 1)


def _rows(frozen: Floats, new: Floats, cases: NDArray[np.intp]) -> Iterator[_Row]:
    """Yield the runs with scores of both kinds that differ, weighted so that cases count alike."""
    both, runs_of = _paired(frozen, new, cases)
    for i in np.flatnonzero(both):
        old, late = frozen[i][~np.isnan(frozen[i])], new[i][~np.isnan(new[i])]
        if len(late) <= len(old):
            values, drawn = np.concatenate([late, old]), len(late)
        else:
            values, drawn = -np.concatenate([old, late]), len(old)
        if (steps := values - values.min()).any():
            yield _Row(steps * (1 / len(old) + 1 / len(late)) / runs_of[cases[i]], drawn)


def _paired(
    frozen: Floats, new: Floats, cases: NDArray[np.intp]
) -> tuple[NDArray[np.bool_], NDArray[np.intp]]:
    """Return which runs have scores of both kinds, and how many of these each case has."""
    both = ~np.isnan(frozen).all(axis=1) & ~np.isnan(new).all(axis=1)
    return both, np.bincount(cases[both], minlength=int(cases.max(initial=0)) + 1)


def _by_case(frozen: Floats, new: Floats, cases: NDArray[np.intp]) -> Floats:
    """Return the mean difference of each case that has one."""
    both, runs_of = _paired(frozen, new, cases)
    difference = np.nanmean(new[both], axis=1) - np.nanmean(frozen[both], axis=1)
    sums = np.bincount(cases[both], difference, minlength=len(runs_of))
    return np.asarray(sums[runs_of > 0] / runs_of[runs_of > 0])
