"""Precision, recall and F1 of counts some of which are undecided, and pass^k, over cases.

Micro averages: counts are summed over units, then divided. What is undecided (a judge was needed
and none has said anything) is neither right nor wrong: the figures leave it out, and beside them
stand the ends they would have with all of it wrong and all of it right. Where texts that agree are
decided by rule and those that differ wait for a judge, the figures over what is decided are too
high: then only the ends say something.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from agenteval.stats import Bootstrap, Interval, bootstrap_mean, bootstrap_sums, pass_hat_k
from agenteval.stats.bootstrap import Floats


@dataclass(frozen=True)
class Resampling:
    """How intervals are made: cases are drawn with replacement, from `seed`, for each figure."""

    resamples: int = 2000
    seed: int = 0
    level: float = 0.95

    def bootstrap(self) -> Bootstrap:
        """From the start of the seed: no figure depends on another."""
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
class Counts:
    """Of one unit. `undecided` ones are among both the predicted and the gold ones."""

    right: int = 0
    undecided: int = 0
    predicted: int = 0
    gold: int = 0


def rates(
    counts: Sequence[Counts], cases: Sequence[Hashable], how: Resampling | None = None
) -> Rates:
    """The rates of all units together; intervals resample `cases` (one label per unit).

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
            found = np.full(len(totals), np.nan)
            np.divide(share * totals[:, 0], below, out=found, where=below > 0)
            return found

        known = bootstrap_sums(parts, statistic, list(cases), how=how.bootstrap())
        whole = weights[0] * predicted + weights[1] * gold
        if not whole:
            return Rate(known, None, None)
        return Rate(known, share * right / whole, share * (right + undecided) / whole)

    return Rates(right, undecided, predicted, gold, rate((1, 0)), rate((0, 1)), rate((1, 1)))


@dataclass(frozen=True)
class PassPower:
    """pass^k with its interval over cases.

    `few` counts cases with fewer than k attempts that have a verdict: they are left out, as
    neither 0 nor 1. `unknown` counts attempts without a verdict, in all cases.
    """

    k: int
    rate: Interval
    few: int
    unknown: int


def pass_power(
    attempts: Mapping[str, Sequence[bool | None]], k: int, how: Resampling | None = None
) -> PassPower:
    """Mean over cases of C(c, k) / C(n, k), the interval by resampling cases.

    `attempts` by case: True or False, None where a failure left no verdict. c of n attempts with a
    verdict succeeded (Yao et al., tau-bench, arXiv 2406.12045, section 4). The mean is None where
    no case has k attempts with a verdict. Raises ValueError for k < 1.
    """
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
    values: list[float] = []
    few = unknown = 0
    for tries in attempts.values():
        known = [one for one in tries if one is not None]
        unknown += len(tries) - len(known)
        value = pass_hat_k(sum(known), len(known), k)
        if value is None:
            few += 1
        else:
            values.append(value)
    return PassPower(k, bootstrap_mean(values, how=(how or Resampling()).bootstrap()), few, unknown)


def pass_powers(
    attempts: Mapping[str, Sequence[bool | None]], most: int, how: Resampling | None = None
) -> tuple[PassPower, ...]:
    """pass^1 to pass^most, as far as some case has that many attempts with a verdict."""
    counts = [sum(one is not None for one in tries) for tries in attempts.values()]
    longest = min(most, max(counts, default=0))
    return tuple(pass_power(attempts, k, how) for k in range(1, longest + 1))
