"""The units of pairing in a comparison: cases, and within them runs or systems."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Literal

import numpy as np

from agenteval.errors import InputError
from agenteval.stats.scores import CodedColumn, ScoreTable

SUCCESS = "success"
UNKNOWN = f"{SUCCESS}:unknown"  # status of a run with unknown success
PairBy = Literal["case", "system", "run"]
PairKey = tuple[str, str]  # case, and the run or system paired within it
PairMeans = Mapping[PairKey, float]


def pair_keys(table: ScoreTable, pair_by: PairBy) -> list[PairKey]:
    """Return the pairing key of each row's run."""
    cases = [table.case.names[code] for code in table.case.codes]
    if pair_by == "case":
        return [(case, "") for case in cases]
    column = table.run if pair_by == "run" else table.system
    names = [*column.names, ""]  # -1: a run without a system
    return [(case, names[code]) for case, code in zip(cases, column.codes, strict=True)]


def pair_means(ratings: ScoreTable, pair_by: PairBy) -> PairMeans:
    """Return the mean over the runs of each pairing key; runs are averaged over repeats. `ratings`
    are those of one criterion."""
    matrix = ratings.matrix()
    means = dict(zip(matrix.run.tolist(), matrix.mean.tolist(), strict=True))
    first = _one_row_each(ratings)
    grouped: defaultdict[PairKey, list[float]] = defaultdict(list)
    for key, run in zip(pair_keys(first, pair_by), first.run.codes.tolist(), strict=True):
        if not math.isnan(means[run]):
            grouped[key].append(means[run])
    return {key: math.fsum(values) / len(values) for key, values in grouped.items()}


def _one_row_each(table: ScoreTable) -> ScoreTable:
    """Return the first row of each run."""
    mask = np.zeros(len(table), dtype=np.bool_)
    mask[np.unique(table.run.codes, return_index=True)[1]] = True
    return table.where(mask)


def success_rows(table: ScoreTable) -> ScoreTable:
    """Return each run's success as a rating of 1 or 0; unknown success is a failure."""
    runs = _one_row_each(table)
    nothing = np.zeros(len(runs), dtype=np.int32)
    return replace(
        runs,
        criterion=CodedColumn(nothing, (SUCCESS,)),
        status=CodedColumn((runs.success < 0).astype(np.int32), ("scored", UNKNOWN)),
        label=CodedColumn(nothing - 1, ()),
        repeat=np.zeros_like(runs.repeat),
        value=np.where(runs.success < 0, np.nan, runs.success),
    )


def chosen_criteria(tables: Sequence[ScoreTable], criteria: Sequence[str] | None) -> list[str]:
    """Return the requested or all criteria, with `success` if it differs. Raises InputError."""
    rated = sorted({n for t in tables for n in t.present("criterion")})
    if SUCCESS not in rated and _outcomes_differ(tables):
        rated.append(SUCCESS)
    for name in criteria or ():
        if name not in rated:
            raise InputError(
                f"criterion {name!r} is not rated; available: {', '.join(rated)}",
                "--criterion",
            )
    return rated if criteria is None else list(dict.fromkeys(criteria))


def _outcomes_differ(tables: Sequence[ScoreTable]) -> bool:
    """Whether success is known on both sides and these are not the same runs rated twice."""
    first, second = (
        {t.run.names[run]: success for run, success in zip(t.run.codes, t.success, strict=True)}
        for t in map(_one_row_each, tables)
    )
    shared = first.keys() & second.keys()
    same = bool(shared) and all(first[run] == second[run] for run in shared)
    return not same and all(any(s >= 0 for s in side.values()) for side in (first, second))
