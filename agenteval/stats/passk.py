"""pass@k and pass^k: at least one, and every one, of k attempts succeeds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agenteval.stats.interval import Interval, mean_interval


@dataclass(frozen=True)
class PassK:
    """Mean over tasks with the tasks as units; `left_out` had fewer than k scored attempts."""

    rate: Interval
    k: int
    left_out: int


def pass_at_k(successes: int, attempts: int, k: int) -> float | None:
    """Chance that at least one of k attempts succeeds: 1 - C(n - c, k) / C(n, k).

    Unbiased (Chen et al., arXiv 2107.03374, equation 1). None with fewer than k scored attempts.
    Raises ValueError for impossible counts or k < 1.
    """
    _check(successes, attempts, k)
    if attempts < k:
        return None
    return 1 - math.comb(attempts - successes, k) / math.comb(attempts, k)


def pass_hat_k(successes: int, attempts: int, k: int) -> float | None:
    """Chance that all of k attempts succeed: C(c, k) / C(n, k).

    Unbiased (Yao et al., tau-bench, arXiv 2406.12045, section 4). None with fewer than k scored
    attempts. Raises ValueError for impossible counts or k < 1.
    """
    _check(successes, attempts, k)
    if attempts < k:
        return None
    return math.comb(successes, k) / math.comb(attempts, k)


def pass_rate(
    tasks: Sequence[tuple[int, int]],
    k: int,
    *,
    kind: Literal["at", "hat"],
    level: float = 0.95,
) -> PassK:
    """Mean of pass@k ("at") or pass^k ("hat") over tasks given as (successes, scored attempts).

    Tasks with fewer than k scored attempts are left out and counted, never taken as 0 or 1; with
    none left the mean is None. The interval is a t interval over tasks, clipped to [0, 1]. Raises
    ValueError for impossible counts, k < 1 or an unknown kind.
    """
    if kind not in ("at", "hat"):
        raise ValueError(f"kind {kind!r} is not at or hat")
    estimate = pass_at_k if kind == "at" else pass_hat_k
    each = [estimate(successes, attempts, k) for successes, attempts in tasks]
    scored = [value for value in each if value is not None]
    rate = mean_interval(scored, level=level, bounds=(0.0, 1.0))
    if not scored:
        reason = f"no task has {k} scored attempts"
        rate = Interval(None, None, None, None, 0, None, "none", reason)
    return PassK(rate, k, len(each) - len(scored))


def _check(successes: int, attempts: int, k: int) -> None:
    if not 0 <= successes <= attempts:
        raise ValueError(f"{successes} successes of {attempts} attempts")
    if k < 1:
        raise ValueError(f"k must be at least 1, not {k}")
