"""The protocol of judges, and the conversion of exceptions to Failures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from pydantic import JsonValue

from agenteval.engine import Outcome
from agenteval.errors import (
    BadRequest,
    BudgetExceeded,
    Filtered,
    ReplyError,
    RequestTimeout,
    StoreError,
    TooLong,
    Transient,
    Unauthorized,
)
from agenteval.records import (
    CallRecord,
    CellKey,
    Criterion,
    Failure,
    FailureStatus,
    Run,
    RunFailure,
    Score,
    ScoreStatus,
    Source,
    Usage,
    View,
)
from agenteval.text import redacted


@dataclass(frozen=True, slots=True)
class JudgeUnit:
    """Input of one call: one view of a run, some criteria, one repeat. `attempt` counts earlier
    content failures, so that a new try is not answered from the cache."""

    run: Run
    view: View
    criteria: tuple[Criterion, ...]
    repeat: int = 0
    variant: str = "original"
    attempt: int = 0


class RunJudge(Protocol):
    """A judge of units. Its constructor must not do any work."""

    @property
    def source(self) -> Source:
        """Identity of the judge: everything that can change an answer."""
        ...

    def batches(self, criteria: Sequence[Criterion]) -> list[tuple[Criterion, ...]]:
        """Return the criteria of each call."""
        ...

    async def evaluate(self, unit: JudgeUnit) -> Outcome:
        """Return one result per criterion; `judge` turns exceptions into Failures."""
        ...


def cell_key(unit: JudgeUnit, criterion: Criterion, source_key: str) -> CellKey:
    """Return the key of the unit's result for one criterion."""
    return CellKey(
        run=unit.view.sha256,
        variant=unit.variant,
        criterion=criterion.sha256,
        source=source_key,
        repeat=unit.repeat,
    )


def fail_all(
    unit: JudgeUnit,
    source_key: str,
    status: FailureStatus,
    message: str,
    call: CallRecord | None = None,
) -> Outcome:
    """Return the same Failure for every criterion of the unit."""
    failures = tuple(
        Failure(
            key=cell_key(unit, criterion, source_key),
            criterion_id=criterion.id,
            status=status,
            message=redacted(message)[:500],
        )
        for criterion in unit.criteria
    )
    return Outcome(failures, call or CallRecord(shown=tuple(c.id for c in unit.criteria)))


def worst_by_rule(
    unit: JudgeUnit, source_key: str, status: ScoreStatus, evidence: dict[str, JsonValue]
) -> Outcome:
    """Return the worst level of each ordered criterion, and no value for the others."""
    scores = []
    for criterion in unit.criteria:
        ordered = all(leaf.ordered for _, leaf in criterion.leaves())
        levels = criterion.accepted_values if ordered else ()
        scores.append(
            Score(
                key=cell_key(unit, criterion, source_key),
                criterion_id=criterion.id,
                status=status,
                label=levels[0] if levels else None,
                value=0.0 if ordered else None,
                evidence=evidence,
            )
        )
    return Outcome(tuple(scores), CallRecord(shown=tuple(c.id for c in unit.criteria)))


def without_answer(unit: JudgeUnit, failure: RunFailure, source_key: str) -> Outcome:
    """Return Failures for a run whose system failed, or the worst levels if `failed_as` is set."""
    if unit.view.failed_as != "worst":
        status = cast("FailureStatus", f"no_answer:{failure.kind}")
        return fail_all(unit, source_key, status, failure.message)
    evidence: dict[str, JsonValue] = {"kind": failure.kind, "reason": failure.message}
    return worst_by_rule(unit, source_key, "failed_run", evidence)


async def judge(evaluator: RunJudge, unit: JudgeUnit) -> Outcome:
    """Evaluate one unit; errors become Failures with a matching status.

    Raises Unauthorized, because a rejected key would fail every unit, StoreError if a store or
    recording cannot be used, KeyboardInterrupt and CancelledError. A run whose system failed is not
    judged.
    """
    source_key = evaluator.source.sha256
    if unit.run.failure is not None:
        return without_answer(unit, unit.run.failure, source_key)
    try:
        return await evaluator.evaluate(unit)
    except (Unauthorized, StoreError):
        raise
    except Exception as error:  # noqa: BLE001  crashes become records here
        status, message = classify(error)
        call = CallRecord(shown=tuple(c.id for c in unit.criteria))
        if isinstance(spent := getattr(error, "spent", None), Usage):  # paid for in any case
            call = call.model_copy(update={"usage": spent, "attempts": spent.requests})
        return fail_all(unit, source_key, status, message, call)


def classify(error: Exception) -> tuple[FailureStatus, str]:
    """Return status and message for an exception.

    A StoreError is re-raised: a store failure is not a judging failure, and results that cannot be
    saved must not be paid for.
    """
    if isinstance(error, StoreError):
        raise error
    kinds: tuple[tuple[type[Exception], FailureStatus], ...] = (
        (RequestTimeout, "error:timeout"),
        (BudgetExceeded, "error:budget"),
        (Filtered, "unscored:refusal"),
        (ReplyError, "unscored:parse"),
        (TooLong, "unscored:too_long"),
        (Transient, "error:infrastructure"),
        (BadRequest, "error:infrastructure"),
    )
    for kind, status in kinds:
        if isinstance(error, kind):
            return status, str(error)
    return "error:infrastructure", f"unexpected {type(error).__name__}: {error}"
