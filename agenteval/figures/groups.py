"""What a figure shows, taken from the table: groups of ratings and their intervals."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from agenteval.errors import InputError
from agenteval.stats import Interval, mean_interval
from agenteval.stats.scores import ONLY_EMPTY, ORIGINAL, ScoreTable

UNNAMED = "system not named"
_GROUPS = {1: "success", 0: "failed", -1: "success unknown"}


@dataclass(frozen=True)
class Criteria:
    """Criteria that can be drawn, and those without a rating that has a value (nominal, all failed,
    or all replies empty)."""

    drawn: tuple[str, ...]
    empty: tuple[str, ...]


def originals(table: ScoreTable) -> ScoreTable:
    """Ratings of the original runs. Raises InputError when there are none."""
    part = table.of(variant=ORIGINAL)
    if not len(part):
        raise InputError("there are no ratings of original runs to draw")
    return part


def criteria_of(table: ScoreTable, least: int = 1) -> Criteria:
    """Criteria in their order. Raises InputError when fewer than `least` have a value."""
    names = table.present("criterion")
    codes = {n: table.criterion.code(n) for n in names}
    rated = ~np.isnan(table.value) & (table.status.codes != table.status.code("degenerate"))
    filled = set(np.unique(table.criterion.codes[rated]).tolist())
    drawn = tuple(n for n in names if codes[n] in filled)
    if len(drawn) < least:
        raise InputError(
            f"this figure needs ratings with a value on at least {least} "
            f"criteri{'on' if least == 1 else 'a'}; the table has {len(drawn)}"
        )
    return Criteria(drawn, tuple(n for n in names if codes[n] not in filled))


def systems(table: ScoreTable) -> dict[str, ScoreTable]:
    """The rows of every system, in order; runs without a system come last."""
    found = {name: table.of(system=name) for name in table.present("system")}
    nameless = table.where(table.system.codes < 0)
    return {**found, UNNAMED: nameless} if len(nameless) else found


def by_success(table: ScoreTable) -> dict[str, ScoreTable]:
    """Rows of successful and of failed runs, of both also when empty.

    Where nobody knows of any run, one group "success unknown".
    """
    wanted = (1, 0) if (table.success >= 0).any() else (-1,)
    return {_GROUPS[code]: table.where(table.success == code) for code in wanted}


def unlabelled_runs(table: ScoreTable) -> int:
    """Runs of unknown success in a table that has known ones: they are in no group."""
    if not (table.success >= 0).any():
        return 0
    return len(np.unique(table.run.codes[table.success < 0]))


def interval(table: ScoreTable) -> Interval:
    """Mean of all values with its 95 % interval, cases as clusters (`stats.mean_interval`).

    No mean where all of them are those of empty replies, which nobody rated.
    """
    part = table.where(~np.isnan(table.value))
    if len(part) and part.present("status") == ["degenerate"]:
        return replace(mean_interval([]), reason=ONLY_EMPTY)
    return mean_interval(part.value.tolist(), clusters(part).tolist(), bounds=(0.0, 1.0))


def clusters(table: ScoreTable) -> NDArray[np.int64]:
    """A number per row that is equal for ratings of one case; a run without a case is its own."""
    case = table.case.codes.astype(np.int64)
    return np.where(case >= 0, case, -1 - table.run.codes.astype(np.int64))


def run_means(table: ScoreTable) -> NDArray[np.float64]:
    """Mean value of every run, by run code: (len(table.run.names),), NaN without a value."""
    known = ~np.isnan(table.value)
    size = len(table.run.names)
    count = np.bincount(table.run.codes[known], minlength=size)
    total = np.bincount(table.run.codes[known], weights=table.value[known], minlength=size)
    mean = np.full(size, np.nan)
    np.divide(total, count, out=mean, where=count > 0)
    return mean


def run_clusters(table: ScoreTable) -> NDArray[np.int64]:
    """Case of every run, by run code: (len(table.run.names),); see `clusters`."""
    result = -1 - np.arange(len(table.run.names), dtype=np.int64)
    result[table.run.codes] = clusters(table)
    return result
