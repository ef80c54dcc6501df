"""The runs: one number each, and which of them stand on the page with all their texts."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agenteval.report.grid import Cell, Grid, Head, count, number, words
from agenteval.report.material import Material
from agenteval.report.numbers import originals
from agenteval.stats.scores import ScoreTable

OUTCOMES = {1: "success", 0: "failed", -1: "unknown"}
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class RunLine:
    """What the list says of a run.

    `mean` over all criteria and repeats; `spread` is the largest difference between two repeats
    of one criterion; `gap` is how far the mean lies from the label (1 success, 0 failed). All in
    [0, 1], None where unknown. `failed` counts judgements without a result.
    """

    run: str
    system: str
    case: int
    success: int
    mean: float | None
    spread: float | None
    gap: float | None
    failed: int


def run_lines(material: Material) -> list[RunLine]:
    """One line per original run, ordered by id."""
    table = originals(material)
    size = len(table.run.names)
    total, rated, failed = _per_run(table, size)
    spread = _spread(table, size)
    first = np.full(size, -1, dtype=np.int64)
    first[table.run.codes[::-1]] = np.arange(len(table))[::-1]
    lines = []
    cases: dict[int, int] = {}  # numbered in the order of the runs
    for code in np.flatnonzero(first >= 0).tolist():
        row = int(first[code])
        mean = float(total[code] / rated[code]) if rated[code] else None
        success = int(table.success[row])
        gap = None if mean is None or success < 0 else abs(mean - success)
        system = table.system.codes[row]
        case = cases.setdefault(int(table.case.codes[row]), len(cases))
        lines.append(
            RunLine(
                table.run.names[code],
                table.system.names[system] if system >= 0 else "",
                case,
                success,
                mean,
                None if np.isnan(spread[code]) else float(spread[code]),
                gap,
                int(failed[code]),
            )
        )
    return sorted(lines, key=lambda line: line.run)


def _per_run(table: ScoreTable, size: int) -> tuple[Floats, NDArray[np.int64], NDArray[np.int64]]:
    known = ~np.isnan(table.value)
    codes = table.run.codes
    total = np.bincount(codes[known], weights=table.value[known], minlength=size)
    rated = np.bincount(codes[known], minlength=size)
    failed = np.bincount(codes[table.failed], minlength=size)
    return total.astype(np.float64), rated.astype(np.int64), failed.astype(np.int64)


def _spread(table: ScoreTable, size: int) -> Floats:
    """Largest difference between repeats of one criterion, by run code; NaN without two."""
    widest = np.full(size, np.nan)
    if not len(table) or int(table.repeat.max()) == 0:
        return widest
    known = ~np.isnan(table.value)
    part = table.where(known)
    key = part.run.codes.astype(np.int64) * (len(part.criterion.names) + 1) + part.criterion.codes
    pairs, at, counts = np.unique(key, return_inverse=True, return_counts=True)
    low, high = np.full(len(pairs), np.inf), np.full(len(pairs), -np.inf)
    np.minimum.at(low, at, part.value)
    np.maximum.at(high, at, part.value)
    several = counts > 1
    run = pairs[several] // (len(part.criterion.names) + 1)
    np.fmax.at(widest, run, (high - low)[several])
    return widest


def worth_reading(lines: list[RunLine], most: int) -> list[RunLine]:
    """At most `most` runs: farthest from their label first, then most failures, widest spread."""
    ranked = sorted(
        lines, key=lambda x: (-(x.gap if x.gap is not None else -1), -x.failed, -(x.spread or 0))
    )
    return sorted(ranked[:most], key=lambda line: line.run)


def runs_grid(lines: list[RunLine]) -> Grid:
    """The list of runs that can be opened; a row's link is the block that holds its texts."""
    labelled = any(line.success >= 0 for line in lines)
    repeated = any(line.spread is not None for line in lines)
    heads = [Head("run"), Head("system"), Head("case", "runs on one input share it", True)]
    heads += [Head("outcome")] if labelled else []
    heads.append(Head("mean", "over all criteria and repeats", True))
    heads += [Head("gap", "distance of the mean from the label", True)] if labelled else []
    heads += [Head("spread", "largest difference between repeats", True)] if repeated else []
    heads.append(Head("not rated", "judgements without a result", True))
    rows = []
    for i, line in enumerate(lines):
        row = [words(line.run, link=f"run-{i}", kind="run"), words(line.system or "–"),
               Cell(str(line.case + 1), float(line.case), True)]  # fmt: skip
        row += [Cell(OUTCOMES[line.success], float(-line.success), False,
                     f"outcome {OUTCOMES[line.success]}")] if labelled else []  # fmt: skip
        row.append(number(line.mean))
        row += [number(line.gap)] if labelled else []
        row += [number(line.spread)] if repeated else []
        rows.append((*row, count(line.failed)))
    return Grid("runs-table", "Runs", tuple(heads), tuple(rows))
