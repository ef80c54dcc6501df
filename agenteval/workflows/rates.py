"""Precision, recall and F1 of counts some of which are undecided, and pass^k, over cases.

Micro averages: counts are summed over units, then divided. What is undecided (a judge was needed
and none has said anything) is neither right nor wrong: the figures leave it out, and beside them
stand the ends they would have with all of it wrong and all of it right. Where texts that agree are
decided by rule and those that differ wait for a judge, the figures over what is decided are too
high: then only the ends say something.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np

from agenteval.stats import Bootstrap, Interval, PassK, bootstrap_mean, bootstrap_sums, pass_hat_k
from agenteval.stats.bootstrap import Floats
from agenteval.stats.bounded import bounded_interval


@dataclass(frozen=True)
class Resampling:
    """Settings of intervals: cases are drawn with replacement, from `seed`, for each figure."""

    resamples: int = 2000
    seed: int = 0
    level: float = 0.95

    def bootstrap(self) -> Bootstrap:
        """Return a resampler that starts from the seed, so that figures do not depend on each
        other."""
        return Bootstrap(np.random.default_rng(self.seed), self.resamples, self.level)


@dataclass(frozen=True)
class Rate:
    """A share. `known` is over what is decided, with its interval; `low` and `high` are the share
    with all that is undecided wrong, and right. None where there is nothing to divide by."""

    known: Interval
    low: float | None
    high: float | None


@dataclass(frozen=True)
class Rates:
    """Counts in sum, and precision = right / predicted, recall = right / gold,
    F1 = 2 right / (predicted + gold), which is 2PR / (P + R)."""

    right: int
    undecided: int
    predicted: int
    gold: int
    precision: Rate
    recall: Rate
    f1: Rate


@dataclass(frozen=True, slots=True)
class MatchCounts:
    """Counts of one unit. `undecided` ones are counted as both predicted and gold."""

    right: int = 0
    undecided: int = 0
    predicted: int = 0
    gold: int = 0


def rates(
    counts: Sequence[MatchCounts], cases: Sequence[Hashable], how: Resampling | None = None
) -> Rates:
    """Return the rates of all units together; intervals resample `cases` (one label per unit).

    Raises ValueError for labels of another number than units.
    """
    how = how or Resampling()
    rows = [(c.right, c.undecided, c.predicted, c.gold) for c in counts]
    parts = np.array(rows, dtype=np.float64).reshape(len(rows), 4)
    right, undecided, predicted, gold = (int(x) for x in parts.sum(axis=0))

    def rate(weights: tuple[int, int]) -> Rate:
        """right · (sum of weights) over weights · (predicted, gold)."""
        share = float(sum(weights))

        def statistic(totals: Floats) -> Floats:
            below = totals[:, 2:] @ np.array(weights, dtype=np.float64) - share * totals[:, 1]
            rate = np.full(len(totals), np.nan)
            np.divide(share * totals[:, 0], below, out=rate, where=below > 0)
            return rate

        decided = bootstrap_sums(parts, statistic, list(cases), how=how.bootstrap())
        total = weights[0] * predicted + weights[1] * gold
        if not total:
            return Rate(decided, None, None)
        return Rate(decided, share * right / total, share * (right + undecided) / total)

    return Rates(right, undecided, predicted, gold, rate((1, 0)), rate((0, 1)), rate((1, 1)))


def pass_powers(
    tasks: Sequence[tuple[int, int]], most: int, how: Resampling | None = None
) -> tuple[PassK, ...]:
    """pass^1 to pass^most, as far as some task has that many attempts with a verdict.

    `tasks` as (successes, attempts with a verdict). Each is the mean over tasks of `pass_hat_k`,
    the interval by resampling tasks, or for few tasks, or such that hardly differ, a bound that
    holds all the same (`bounded_interval`); tasks with fewer attempts are left out, as neither 0
    nor 1.
    """
    powers = []
    for k in range(1, min(most, max((n for _, n in tasks), default=0)) + 1):
        values = [v for c, n in tasks if (v := pass_hat_k(c, n, k)) is not None]
        rate = bootstrap_mean(values, how=(how or Resampling()).bootstrap())
        if rate.low is None:
            rate = bounded_interval(np.array(values), (0.0, 1.0))
        powers.append(PassK(rate, k, len(tasks) - len(values)))
    return tuple(powers)
