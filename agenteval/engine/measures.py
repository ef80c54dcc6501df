"""Measures: the criteria on which an evaluator rates a trial, and their results.

A trial is stored with one result per measure of its evaluator, so that tables, comparisons and
exports treat it like any other rating.
"""

from __future__ import annotations

from collections.abc import Iterable

from agenteval.records import Criterion, Failure, FailureStatus, Result, Score
from agenteval.records.trial import Trial

UNDECIDED: FailureStatus = "unscored:unsupported"  # no verdict was possible or requested


def levels(id: str, description: str, worst: str, best: str) -> Criterion:
    """Return a measure with two levels, which may not apply."""
    return Criterion(
        id=id,
        name=id,
        description=description,
        accepted_values=(worst, best),
        order_confirmed=True,
        allow_na=True,
    )


def number(id: str, description: str, worst: float = 0.0, best: float = 1.0) -> Criterion:
    """Return a numeric measure between two bounds, which may not apply."""
    return Criterion(
        id=id,
        name=id,
        description=description,
        scale="numeric",
        numeric_range=(worst, best),
        order_confirmed=True,
        allow_na=True,
    )


def words(id: str, description: str, accepted: Iterable[str]) -> Criterion:
    """Return a nominal measure, which is counted but never averaged."""
    return Criterion(
        id=id, name=id, description=description, accepted_values=tuple(accepted), scale="nominal"
    )


def level(trial: Trial, measure: Criterion, good: bool, message: str = "") -> Score:
    """Return the best or the worst of two levels as a Score."""
    return score(trial, measure, measure.accepted_values[good], float(good), message)


def score(
    trial: Trial,
    measure: Criterion,
    label: str | None,
    value: float | None = None,
    message: str = "",
) -> Score:
    """Return a Score with a label, a value, or both."""
    return Score(
        key=trial.cell(measure),
        criterion_id=measure.id,
        label=label,
        value=value,
        explanation=message or None,
    )


def place(trial: Trial, measure: Criterion, value: float) -> Result:
    """Score a number by its position between the bounds; a number outside is a failure."""
    worst, best = measure.numeric_range or (0.0, 1.0)
    share = (value - worst) / (best - worst)
    if not 0 <= share <= 1:
        message = f"{value:g} is not between {worst:g} and {best:g}"
        return failed(trial, (measure,), "unscored:off_scale", message)[0]
    return score(trial, measure, None, share)


def not_applicable(trial: Trial, measure: Criterion, why: str) -> Score:
    """Return the Score of a measure that does not apply to the trial."""
    return Score(
        key=trial.cell(measure), criterion_id=measure.id, status="not_applicable", explanation=why
    )


def failed(
    trial: Trial, measures: Iterable[Criterion], status: FailureStatus, message: str
) -> tuple[Failure, ...]:
    """Return the same failure for each measure."""
    return tuple(
        Failure(key=trial.cell(m), criterion_id=m.id, status=status, message=message)
        for m in measures
    )
