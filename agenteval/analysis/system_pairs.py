"""Results by system, and every two systems compared on the tasks that both have a result on."""

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
# Of differences, one per task, and whether each task came once on both sides.
Test = Callable[[Floats, bool], PairedTest]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two systems, or two formats of one agent, on the tasks that both have a verdict on.

    `difference` is the mean over tasks of the first's share of successes less the second's; the
    first is better on `only_first` tasks, the second on `only_second`. `p` is that of `method`,
    None for the `reason`; `corrected` is for all pairs of the table. `left_out` counts tasks that
    only one of the two has a verdict on.
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
    """The results of every system, systems in the order in which they come."""
    grouped: dict[str, list[_T]] = {}
    for result in results:
        grouped.setdefault(result.system, []).append(result)
    return grouped


def pairs(
    successes: Mapping[str, Mapping[str, Sequence[float]]], test: Test, agent: str = ""
) -> list[Pair]:
    """Return the comparison of every two systems with common tasks, from the trials (0 or 1) of
    each task."""
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


def holm(made: Sequence[Pair]) -> list[Pair]:
    """The pairs with their p corrected for all of them."""
    corrected = adjust([pair.p for pair in made])
    return [replace(pair, corrected=q) for pair, q in zip(made, corrected, strict=True)]
