"""pass^k over repeated sessions: the chance that all of k attempts at a task succeed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agenteval.evaluators.workflows.rates import Resampling
from agenteval.stats import Interval, bootstrap_mean, pass_hat_k


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
