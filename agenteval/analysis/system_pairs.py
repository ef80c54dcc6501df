"""Group results by system, and compare each two systems on their common tasks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Protocol, TypeVar

import numpy as np

from agenteval.stats import Interval, adjust
from agenteval.stats.bounded import bounded_interval
from agenteval.stats.paired import PairedTest
from agenteval.stats.vectors import Floats


class _OfSystem(Protocol):
    @property
    def system(self) -> str: ...


_T = TypeVar("_T", bound=_OfSystem)
# Test of differences (one per task), given whether each task has one trial on both sides.
Test = Callable[[Floats, bool], PairedTest]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two systems, or two formats of one agent, on the tasks with verdicts for both.

    `difference` is the mean over tasks of the first's success rate minus the second's; the first is
    better on `only_first` tasks, the second on `only_second`. `p` is by `method`, or None with a
    `reason`; `corrected` is p after correction for all pairs of the table. `left_out` counts tasks
    with a verdict for only one of the two.
    """

    first: str
    second: str
    tasks: int
    left_out: int
    difference: Interval
    p: float | None
    corrected: float | None = None
    reason: str | None = None
    method: str = ""
    only_first: int = 0
    only_second: int = 0
    agent: str = ""


def by_system(results: Iterable[_T]) -> dict[str, list[_T]]:
    """Group results by system, in order of first appearance."""
    grouped: dict[str, list[_T]] = {}
    for result in results:
        grouped.setdefault(result.system, []).append(result)
    return grouped


def pairs(
    successes: Mapping[str, Mapping[str, Sequence[float]]], test: Test, agent: str = ""
) -> list[Pair]:
    """Compare each two systems with common tasks, given the trials (0 or 1) of each task."""
    comparisons = []
    for (first, a), (second, b) in combinations(successes.items(), 2):
        common = [task for task in a if task in b]
        if common:
            differences = np.array([np.mean(a[task]) - np.mean(b[task]) for task in common])
            tested = test(differences, all(len(a[t]) == len(b[t]) == 1 for t in common))
            comparisons.append(
                Pair(
                    first=first,
                    second=second,
                    tasks=len(common),
                    left_out=len(set(a) ^ set(b)),
                    difference=bounded_interval(differences, (-1.0, 1.0)),
                    p=tested.p,
                    reason=tested.reason,
                    method=tested.method,
                    only_first=int((differences > 0).sum()),
                    only_second=int((differences < 0).sum()),
                    agent=agent,
                )
            )
    return comparisons


def holm(pairs: Sequence[Pair]) -> list[Pair]:
    """Return the pairs with p corrected for multiple testing (Holm)."""
    corrected = adjust([pair.p for pair in pairs])
    return [replace(pair, corrected=q) for pair, q in zip(pairs, corrected, strict=True)]
