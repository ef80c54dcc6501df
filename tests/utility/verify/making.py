"""Tables of ratings whose properties are known, because they are made to have them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from agenteval.records import Criterion
from agenteval.records.criteria import Direction
from agenteval.stats.scores import ScoreTable, score_table

LEVELS = ("none", "little", "some", "much", "all")
Rating = float | str | None  # a value, the status of a failure, or nothing at all
Rate = Callable[[int, int, str, np.random.Generator], Rating]


def criterion(name: str, **expect: Direction) -> Criterion:
    return Criterion(name=name, accepted_values=LEVELS, expect=dict(expect))


def table(
    rates: Mapping[str, Rate],
    *,
    cases: int = 30,
    repeats: int = 3,
    variants: tuple[str, ...] = ("original",),
    success: Callable[[int], bool | None] = lambda case: case % 2 == 0,
    seed: int = 0,
) -> ScoreTable:
    """One run per case; `rates` says per criterion id what (case, repeat, variant, rng) gets."""
    rng = np.random.default_rng(seed)
    rows: list[dict[str, Any]] = []
    for variant in variants:
        for case in range(cases):
            for repeat in range(repeats):
                for name, rate in rates.items():
                    got = rate(case, repeat, variant, rng)
                    if got is None:
                        continue
                    row: dict[str, Any] = {
                        "run": f"run-{case:03}",
                        "case": f"case-{case:03}",
                        "criterion": name,
                        "repeat": repeat,
                        "variant": variant,
                        "success": success(case),
                    }
                    row |= {"status": got} if isinstance(got, str) else {"value": got}
                    rows.append(row)
    return score_table(rows)


def quality(case: int) -> float:
    """A level of five for every case; even cases are better on the whole."""
    return (case * 7 % 4 + (case % 2 == 0)) / 4
