"""pass@k and pass^k: the probability that at least one, or all, of k attempts succeed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agenteval.stats.interval import Interval, mean_interval


@dataclass(frozen=True)
class PassK:
    """Mean over tasks; `left_out` counts tasks with fewer than k scored attempts."""

    rate: Interval
    k: int
    left_out: int


def pass_at_k(successes: int, attempts: int, k: int) -> float | None:
    """Return the probability that at least one of k attempts succeeds: 1 - C(n - c, k) / C(n, k).

    Unbiased (Chen et al., arXiv 2107.03374, equation 1). None with fewer than k scored attempts.
    Raises ValueError for impossible counts or k < 1.
    """
    all_fail = pass_hat_k(attempts - successes, attempts, k)
    return None if all_fail is None else 1 - all_fail


def pass_hat_k(successes: int, attempts: int, k: int) -> float | None:
    """Return the probability that all of k attempts succeed: C(c, k) / C(n, k).

    Unbiased (Yao et al., tau-bench, arXiv 2406.12045, section 4). None with fewer than k scored
    attempts. Raises ValueError for impossible counts or k < 1.
    """
    if not 0 <= successes <= attempts or k < 1:
        raise ValueError(f"{successes} successes of {attempts} attempts, k = {k}")
    return None if attempts < k else math.comb(successes, k) / math.comb(attempts, k)


def pass_rate(tasks: Sequence[tuple[int, int]], k: int, *, kind: Literal["at", "hat"]) -> PassK:
    """Return mean pass@k ("at") or pass^k ("hat") over tasks given as (successes, scored attempts).

    Tasks with fewer than k scored attempts are left out and counted, never treated as 0 or 1; if
    none are left, the mean is None. The interval is a 95% t interval over tasks, clipped to [0, 1].
    Raises ValueError for impossible counts or k < 1.
    """
    estimate = pass_at_k if kind == "at" else pass_hat_k
    values = [estimate(successes, attempts, k) for successes, attempts in tasks]
    scored = [value for value in values if value is not None]
    rate = Interval.missing(f"no task has {k} scored attempts")
    if scored:
        rate = mean_interval(scored, bounds=(0.0, 1.0))
    return PassK(rate, k, len(values) - len(scored))
