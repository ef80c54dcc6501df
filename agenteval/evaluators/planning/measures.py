"""What a planning trial and a dissection are rated on."""

from __future__ import annotations

from agenteval.agents import AgentFailure
from agenteval.evaluators.measures import failed, level, levels, words
from agenteval.evaluators.planning.checker import Verdict
from agenteval.evaluators.planning.tallies import CAUSES, OUTCOMES
from agenteval.records import Criterion, FailureStatus
from agenteval.store import Measured

PLAN = levels("plan", "Whether the plan was right, by the checker.", "fail", "pass")
OUTCOME = words("outcome", "The first error that applies, or a pass, by the checker.", OUTCOMES)
CAUSE = words("cause", "The single cause of a failed case (algorithm 2).", CAUSES)
MEASURES: tuple[Criterion, ...] = (PLAN, OUTCOME)


def of_verdict(verdict: Verdict) -> tuple[Measured, ...]:
    """The results of a trial that was checked."""
    return (
        level(PLAN, verdict.passed, "" if verdict.passed else verdict.outcome),
        Measured(criterion=OUTCOME, label=verdict.outcome),
    )


def of_failure(failure: AgentFailure) -> tuple[Measured, ...]:
    """The results of a trial that brought no verdict."""
    return failed(MEASURES, failure.status, failure.message)


def of_dissection(
    label: str, status: FailureStatus | None = None, why: str = ""
) -> tuple[Measured, ...]:
    """The result of a dissection: its cause, or why there is none."""
    if status is not None:
        return failed((CAUSE,), status, why)
    return (Measured(criterion=CAUSE, label=label),)
