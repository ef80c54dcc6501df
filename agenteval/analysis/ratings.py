"""Levels and means of one rater (a judge or a person) by run, for one criterion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from agenteval.records import Criterion
from agenteval.stats.agreement import level_counts
from agenteval.stats.scores import ORIGINAL, CodedColumn, ScoreTable

Floats = NDArray[np.float64]
Cases = NDArray[np.object_]
Measure = Literal["nominal", "ordinal", "interval"]

MOST_LEVELS = 20  # of an unknown criterion; with more distinct values it is a measured number


@dataclass(frozen=True)
class Levels:
    """Grades of a criterion: names worst to best; `values` in [0, 1], None without an order.

    Without names (a measured number) there are no levels to agree on.
    """

    names: tuple[str, ...]
    values: tuple[float, ...] | None
    measure: Measure


def levels_of(name: str, criteria: Sequence[Criterion], tables: Sequence[ScoreTable]) -> Levels:
    """Return the levels of a criterion; if it is unknown, the values that occur."""
    criterion = next((c for c in criteria if c.id == name), None)
    if criterion is not None and criterion.accepted_values:
        if not criterion.ordered:
            return Levels(criterion.accepted_values, None, "nominal")
        top = len(criterion.accepted_values) - 1
        values = tuple(i / top for i in range(top + 1))
        return Levels(criterion.accepted_values, values, "ordinal")
    if criterion is not None:
        return Levels((), (), "interval")
    rated = np.concatenate([table.value for table in tables])
    distinct = np.unique(rated[~np.isnan(rated)])
    if len(distinct) > MOST_LEVELS:
        return Levels((), (), "interval")
    return Levels(tuple(f"{v:g}" for v in distinct), tuple(float(v) for v in distinct), "ordinal")


@dataclass(frozen=True)
class RunRatings:
    """The ratings of one rater on one criterion; each entry belongs to one run.

    `mean` is the mean over repeats, and `level` the position of the most common level, or NaN. Ties
    are resolved to the level nearest to the mean, then to the worse one; unordered ties have no
    level. `reason` says why a run is not rated ("" if it is), and `failures` counts ratings with
    neither level nor value, by run and status.
    """

    position: Mapping[str, int]
    case: tuple[str, ...]
    mean: Floats
    level: Floats
    tied: NDArray[np.bool_]
    reason: tuple[str, ...]
    failures: Mapping[str, Counter[str]]
    levels: Levels

    @classmethod
    def of(cls, ratings: ScoreTable, levels: Levels) -> RunRatings:
        """Return the ratings of one criterion on original runs."""
        place = {name: float(i) for i, name in enumerate(levels.names)}
        by_label = np.array([place.get(name, np.nan) for name in ratings.label.names] + [np.nan])
        codes = by_label[ratings.label.codes]
        for i, value in enumerate(levels.values or ()):  # without a label, match the exact value
            codes[np.isnan(codes) & (np.abs(ratings.value - value) < 1e-9)] = i
        matrix = ratings.matrix()
        level, tied = _commonest(replace(ratings, value=codes).matrix().values, levels)
        runs = [ratings.run.names[i] for i in matrix.run]
        empty = np.isnan(ratings.value) & np.isnan(codes)
        failures: dict[str, Counter[str]] = {}
        for at in np.flatnonzero(empty):
            status = ratings.status.names[ratings.status.codes[at]]
            if status == "scored":
                status = "no level"  # a value that is not on the scale
            failures.setdefault(ratings.run.names[ratings.run.codes[at]], Counter())[status] += 1
        rated = ~np.isnan(matrix.mean) | ~np.isnan(level) | tied
        not_applicable = {run for run, n in failures.items() if {*n} == {"not_applicable"}}
        reason = tuple(
            "" if ok else "not_applicable" if run in not_applicable else "failed"
            for run, ok in zip(runs, rated, strict=True)
        )
        case = tuple(ratings.case.names[i] for i in matrix.case)
        position = {run: i for i, run in enumerate(runs)}
        return cls(position, case, matrix.mean, level, tied, reason, failures, levels)

    def reason_of(self, run: str) -> str | None:
        """Return why a run is not rated, "" if it is; None for an unknown run."""
        return self.reason[self.position[run]] if run in self.position else None

    def case_of(self, run: str) -> str | None:
        """Return the case of a run; None if it equals the run or the run is unknown."""
        at = self.position.get(run)
        return None if at is None or self.case[at] == run else self.case[at]

    def level_of(self, run: str) -> float | None:
        """Return the position of a run's most common level, or None."""
        at = self.position.get(run)
        return None if at is None or np.isnan(self.level[at]) else float(self.level[at])

    def means(self) -> dict[str, float]:
        """Return the mean over repeats of each run with a value."""
        values = {run: float(self.mean[at]) for run, at in self.position.items()}
        return {run: value for run, value in values.items() if not np.isnan(value)}

    def good(self, run: str, cut: float) -> bool | None:
        """Return whether the run's level (without levels: its mean) is at least `cut`."""
        at = self.position.get(run)
        if at is None or self.levels.values is None:
            return None
        level, mean = self.level[at], self.mean[at]
        value = mean if np.isnan(level) else self.levels.values[int(level)]
        return None if np.isnan(value) else bool(value >= cut - 1e-9)


def _commonest(codes: Floats, levels: Levels) -> tuple[Floats, NDArray[np.bool_]]:
    """Return the most common level of each run, (runs, repeats) -> (runs,), and ties."""
    result = np.full(len(codes), np.nan)
    if not levels.names or not codes.size:
        return result, np.zeros(len(codes), dtype=np.bool_)
    counts = level_counts(codes, np.arange(len(levels.names), dtype=np.float64))
    total = counts.sum(axis=1)
    most = (counts == counts.max(axis=1, keepdims=True)) & (total > 0)[:, None]
    tied = most.sum(axis=1) > 1
    place = np.arange(counts.shape[1])
    mean = (counts @ place) / np.maximum(total, 1)
    distance = np.where(most, np.abs(place - mean[:, None]).round(9), np.inf)
    decided = (total > 0) & ~(tied & (levels.values is None))
    result[decided] = np.argmin(distance, axis=1)[decided]
    return result, tied


@dataclass(frozen=True)
class RatedCriterion:
    """Ratings of several raters on one criterion, in the order of their tables."""

    id: str
    levels: Levels
    raters: tuple[RunRatings, ...]


def rated_criteria(
    criteria: Sequence[Criterion], tables: Sequence[ScoreTable], *, at_least: int | None = None
) -> Iterator[RatedCriterion]:
    """Yield the ratings of original runs for each criterion in at least `at_least` tables (default:
    all); those in `criteria` come first, in that order."""
    originals = [table.of(variant=ORIGINAL) for table in tables]
    count = Counter(name for table in originals for name in table.present("criterion"))
    rank = {c.id: i for i, c in enumerate(criteria)}
    for name in sorted(count, key=lambda name: rank.get(name, len(rank))):
        if count[name] < (at_least or len(tables)):
            continue
        parts = [table.of(criterion=name) for table in originals]
        levels = levels_of(name, criteria, parts)
        yield RatedCriterion(name, levels, tuple(RunRatings.of(part, levels) for part in parts))


def clusters_of(runs: Sequence[str], raters: Sequence[RunRatings]) -> Cases | None:
    """Return the case of each run; None if every run is its own case."""
    cases = [next((c for rater in raters if (c := rater.case_of(run))), run) for run in runs]
    return np.array(cases, dtype=object) if len(set(cases)) < len(cases) else None


def with_runs(
    table: ScoreTable, case: Mapping[str, str], success: Mapping[str, bool | None]
) -> ScoreTable:
    """Return the table with new cases and successes by run id; other runs are unchanged."""
    names = tuple(dict.fromkeys([*table.case.names, *case.values()]))
    place = {name: i for i, name in enumerate(names)}
    codes = [place[case[run]] if run in case else -1 for run in table.run.names]
    truth = [-1 if (s := success.get(run)) is None else int(s) for run in table.run.names]
    by_row, outcomes = (np.array(x, dtype=np.int32)[table.run.codes] for x in (codes, truth))
    cases = np.where(by_row >= 0, by_row, table.case.codes).astype(np.int32)
    return replace(
        table,
        case=CodedColumn(cases, names),
        success=np.where(outcomes >= 0, outcomes, table.success).astype(np.int8),
    )
