"""What is paired in a comparison: cases, and within them runs or systems."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Literal

import numpy as np

from agenteval.errors import InputError
from agenteval.stats.scores import ScoreTable

SUCCESS = "success"
PairBy = Literal["case", "system", "run"]
PairKey = tuple[str, str]  # case, and what is paired within it
PairMeans = Mapping[PairKey, float]


def pair_key(table: ScoreTable, pair_by: PairBy, case: int, system: int, run: int) -> PairKey:
    """What a run, by its codes in the table, is paired as."""
    if pair_by == "case":
        return table.case.names[case], ""
    if pair_by == "run":
        return table.case.names[case], table.run.names[run]
    return table.case.names[case], table.system.names[system] if system >= 0 else ""


def pair_keys(table: ScoreTable, pair_by: PairBy) -> set[PairKey]:
    """Everything in the table that can be paired."""
    _, at = np.unique(table.run.codes, return_index=True)
    codes = zip(table.case.codes[at], table.system.codes[at], table.run.codes[at], strict=True)
    return {pair_key(table, pair_by, c, s, r) for c, s, r in codes}


def nothing_common(names: Sequence[set[str]], pair_by: PairBy) -> str:
    """Why no pair is left of two sides with these cases."""
    a, b = len(names[0]), len(names[1])
    if names[0] & names[1]:
        return f"the two sides have cases in common, but no {pair_by} within them"
    return f"the two sides have no case in common ({a} cases and {b} cases)"


def chosen_criteria(tables: Sequence[ScoreTable], criteria: Sequence[str] | None) -> list[str]:
    """The criteria asked for, else all, with `success` where it differs. Raises InputError."""
    known = sorted({n for t in tables for n in t.present("criterion")})
    if SUCCESS not in known and outcomes_differ(tables):
        known.append(SUCCESS)
    if criteria is None:
        return known
    for name in criteria:
        if name not in known:
            raise InputError(
                f"criterion {name!r} is not rated here; there are {', '.join(known)}", "--criterion"
            )
    return list(dict.fromkeys(criteria))


def successes(table: ScoreTable) -> dict[str, tuple[int, int, int, int]]:
    """Case, system and run code with success (1, 0, -1), by run."""
    _, place = np.unique(table.run.codes, return_index=True)
    return {
        table.run.names[table.run.codes[i]]: (
            int(table.case.codes[i]), int(table.system.codes[i]), int(table.run.codes[i]),
            int(table.success[i]),
        )
        for i in place
    }  # fmt: skip


def outcomes_differ(tables: Sequence[ScoreTable]) -> bool:
    """Success is known on both sides, and these are not the same runs rated twice."""
    first, second = ({run: s[3] for run, s in successes(t).items()} for t in tables)
    shared = first.keys() & second.keys()
    same = bool(shared) and all(first[run] == second[run] for run in shared)
    return not same and all(any(s >= 0 for s in side.values()) for side in (first, second))


def means_by_pair(pairs: Sequence[tuple[PairKey, float]]) -> PairMeans:
    """The mean of all values of each pair."""
    grouped: defaultdict[PairKey, list[float]] = defaultdict(list)
    for cell, value in pairs:
        grouped[cell].append(value)
    return {cell: math.fsum(v) / len(v) for cell, v in grouped.items()}
