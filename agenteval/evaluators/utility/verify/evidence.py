"""What the checks look at: the ratings of one criterion, split into originals and copies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agenteval.records import Criterion
from agenteval.stats.scores import ORIGINAL, Matrix, ScoreTable, split_variant

Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Lengths:
    """Characters of the text that a judge saw, by (run id, variant)."""

    characters: Mapping[tuple[str, str], int]

    def of(self, run: str, variant: str) -> int | None:
        """Characters, or None when nobody knows."""
        return self.characters.get((run, variant))


@dataclass(frozen=True)
class Copies:
    """Originals and copies of one variant, paired by run: one entry per run that has both.

    `drop` is original minus copy of the means over repeats, in [-1, 1]; `case` holds codes.
    `missing` counts copies that were judged and have no value although their original has one.
    """

    variant: str
    operator: str
    share: float | None
    drop: Floats
    case: NDArray[np.int32]
    shorter: float | None
    missing: int
    unchanged: int


@dataclass(frozen=True)
class Evidence:
    """Everything about one criterion. `table` holds its originals, failures included."""

    criterion: Criterion
    table: ScoreTable
    originals: Matrix
    copies: tuple[Copies, ...]

    @property
    def rated(self) -> NDArray[np.bool_]:
        """Runs (rows of `originals`) with at least one value."""
        return ~np.isnan(self.originals.mean)

    @property
    def cases(self) -> int:
        """Cases with a value: the independent units."""
        return len(np.unique(self.originals.case[self.rated]))

    @property
    def asked(self) -> int:
        """Cases that were to be rated, with a value or without."""
        return len(np.unique(self.originals.case))


def share_of(written: str) -> float | None:
    """The share as a number; None where there is none, or other tools wrote something else."""
    try:
        return float(written)
    except ValueError:
        return None


def gather(
    table: ScoreTable,
    criteria: Sequence[Criterion],
    *,
    lengths: Lengths | None = None,
    unchanged: Mapping[str, Sequence[str]] | None = None,
) -> list[Evidence]:
    """The evidence on every criterion that has ratings, in the order of `criteria`.

    `unchanged` names, by variant, the runs whose copy equals the original; they were not judged
    and are counted.
    """
    same = unchanged or {}
    found = []
    for criterion in criteria:
        own = table.of(criterion=criterion.id)
        originals = own.of(variant=ORIGINAL)
        if not len(originals):
            continue
        matrix = originals.matrix()
        variants = sorted({*own.present("variant"), *same} - {ORIGINAL})
        copies = tuple(_pairs(own, matrix, v, lengths, same.get(v, ())) for v in variants)
        found.append(Evidence(criterion, originals, matrix, copies))
    return found


def _pairs(
    own: ScoreTable,
    originals: Matrix,
    variant: str,
    lengths: Lengths | None,
    unchanged: Sequence[str],
) -> Copies:
    copies = own.of(variant=variant).matrix()
    row = {int(run): i for i, run in enumerate(originals.run)}
    names, mean = own.run.names, originals.mean
    before, after, case = [], [], []
    shorter: list[bool] = []
    for run, value in zip(copies.run.tolist(), copies.mean.tolist(), strict=True):
        if run not in row or names[run] in unchanged:
            continue
        before.append(mean[row[run]])
        after.append(value)
        case.append(originals.case[row[run]])
        pair = [lengths.of(names[run], v) if lengths else None for v in (ORIGINAL, variant)]
        if pair[0] is not None and pair[1] is not None:
            shorter.append(pair[1] < pair[0])
    drop = np.array(before, dtype=np.float64) - np.array(after, dtype=np.float64)
    known = ~np.isnan(drop)
    missing = int((np.isnan(np.array(after)) & ~np.isnan(np.array(before))).sum()) if after else 0
    operator, written = split_variant(variant)
    return Copies(
        variant,
        operator,
        share_of(written),
        drop[known],
        np.array(case, dtype=np.int32)[known],
        sum(shorter) / len(shorter) if shorter else None,
        missing,
        len({names[run] for run in originals.run} & set(unchanged)),
    )
