"""Shared parts of the agreement tables: identifying columns, and lines about criteria."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agenteval.records.table import Cell, column


@dataclass(frozen=True)
class CriterionColumns:
    """The criterion of a row."""

    criterion_id: str = column("criterion id", hidden=True)
    criterion: str = column("criterion")


@dataclass(frozen=True)
class JudgeColumn:
    """The judge of all rows."""

    judge: str = column("judge", hidden=True)


@dataclass(frozen=True)
class JudgeCriterionColumns(JudgeColumn):
    """The judge of all rows, and the criterion of a row."""

    criterion_id: str = column("criterion id", hidden=True)
    criterion: str = column("criterion")


@dataclass(frozen=True)
class PairColumns:
    """Judge, rater and criterion of a row."""

    pair: str = column("judge / rater")
    judge: str = column("judge", hidden=True)
    rater: str = column("rater", hidden=True)
    criterion_id: str = column("criterion id", hidden=True)
    criterion: str = column("criterion")


def criterion_cells(criterion: str, names: Mapping[str, str]) -> dict[str, Cell]:
    """Return the cells of `CriterionColumns`; `names` are by criterion id."""
    return {"criterion_id": criterion, "criterion": names.get(criterion, criterion)}


def pair_cells(judge: str, rater: str, criterion: str, names: Mapping[str, str]) -> dict[str, Cell]:
    """Return the cells of `PairColumns`."""
    pair = f"{judge} / {rater}"
    return {"pair": pair, "judge": judge, "rater": rater, **criterion_cells(criterion, names)}


def criterion_lines(
    criteria: Mapping[str, Sequence[str]], total: int, *, at_least: int = 2
) -> tuple[str, ...]:
    """Return a line per remark with its criteria, or "all criteria" if there are `total` and at
    least `at_least` of them."""
    lines = []
    for remark, repeated in criteria.items():
        names = list(dict.fromkeys(repeated))
        every = len(names) >= max(total, at_least)
        lines.append(f"{'all criteria' if every else ', '.join(names)}: {remark}")
    return tuple(lines)
