"""Measures: the criteria on which an evaluator rates a trial, and how one is filled in.

A trial is stored with one result for each measure of its evaluator, so that tables, comparisons and
exports treat it as any other rating.
"""

from __future__ import annotations

from collections.abc import Iterable

from agenteval.records import Criterion, FailureStatus
from agenteval.store import Measured

UNDECIDED: FailureStatus = "unscored:unsupported"  # nobody could say, or nobody was asked


def levels(id: str, description: str, worst: str, best: str) -> Criterion:
    """A measure of two levels, which may not apply."""
    return Criterion(
        id=id, name=id, description=description, accepted_values=(worst, best),
        order_confirmed=True, allow_na=True,
    )  # fmt: skip


def number(id: str, description: str, worst: float = 0.0, best: float = 1.0) -> Criterion:
    """A measure that is a number between two bounds, and may not apply."""
    return Criterion(
        id=id, name=id, description=description, scale="numeric", numeric_range=(worst, best),
        order_confirmed=True, allow_na=True,
    )  # fmt: skip


def words(id: str, description: str, accepted: Iterable[str]) -> Criterion:
    """A measure of words without an order: counted, never averaged."""
    return Criterion(
        id=id, name=id, description=description, accepted_values=tuple(accepted), scale="nominal"
    )


def level(measure: Criterion, good: bool, message: str = "") -> Measured:
    """The best or the worst of two levels."""
    return Measured(
        criterion=measure, label=measure.accepted_values[good], value=float(good), message=message
    )


def place(measure: Criterion, value: float) -> Measured:
    """A number; its value is its place between the bounds. One beyond them is a failure."""
    worst, best = measure.numeric_range or (0.0, 1.0)
    share = (value - worst) / (best - worst)
    if not 0 <= share <= 1:
        message = f"{value:g} is not between {worst:g} and {best:g}"
        return Measured(criterion=measure, status="unscored:off_scale", message=message)
    return Measured(criterion=measure, value=share)


def not_applicable(measure: Criterion, why: str) -> Measured:
    """The measure says nothing about this trial."""
    return Measured(criterion=measure, status="not_applicable", message=why)


def failed(
    measures: Iterable[Criterion], status: FailureStatus, message: str
) -> tuple[Measured, ...]:
    """The same failure on each measure."""
    return tuple(Measured(criterion=m, status=status, message=message) for m in measures)
