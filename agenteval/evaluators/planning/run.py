"""One trial: a fresh agent on a case's mock tools, and what the oracle says of it."""

from __future__ import annotations

from dataclasses import dataclass

from agenteval.agents import Agent, AgentFailure, AgentLimits, AgentLog, Toolbox, drive
from agenteval.evaluators.planning.case import Case, MockBackend
from agenteval.evaluators.planning.checker import CheckRules, Verdict, check
from agenteval.records import Run, content_hash

CHECKER = 1  # raised when the same log would get another verdict


def check_key(rules: CheckRules) -> str:
    """Content hash (hex) of the checker and its rules: verdicts of other keys are made anew."""
    return content_hash({"checker": CHECKER, **rules.model_dump(mode="json")})


@dataclass(frozen=True, slots=True)
class Attempt:
    """One trial of one system at a case: what it did, and the verdict.

    `verdict` is None where `log` is an AgentFailure: the endpoint or the adapter failed, and
    nothing is known of the agent.
    """

    case: Case
    system: str
    trial: int
    log: AgentLog | AgentFailure
    verdict: Verdict | None

    @property
    def outcome(self) -> str:
        """The verdict's outcome, or the failure's status (with a colon)."""
        if self.verdict is not None:
            return self.verdict.outcome
        return self.log.status if isinstance(self.log, AgentFailure) else "unchecked"


async def run_case(
    case: Case,
    agent: Agent,
    limits: AgentLimits | None = None,
    rules: CheckRules | None = None,
    *,
    explain: bool = True,
    trial: int = 0,
) -> tuple[AgentLog | AgentFailure, Verdict | None]:
    """What the agent did and the verdict, None for an AgentFailure.

    Raises what `drive` raises: Unauthorized, BudgetExceeded, InputError.
    """
    toolbox = Toolbox(case.tools, MockBackend(case), limits, trial=trial)
    log = await drive(agent, case.request, toolbox)
    if isinstance(log, AgentFailure):
        return log, None
    return log, check(case, log, rules or CheckRules(), explain=explain)


def as_run(attempt: Attempt) -> Run:
    """The trial as a Run, which `agenteval quantify` reads. ValueError for an AgentFailure."""
    if isinstance(attempt.log, AgentFailure) or attempt.verdict is None:
        raise ValueError("nothing is known of an agent whose endpoint failed")
    return Run(
        id=f"{attempt.system}/{attempt.case.id}/{attempt.trial}",
        task="planning",
        system=attempt.system,
        input=attempt.case.request,
        output=attempt.log.output,
        messages=attempt.log.messages,
        success=attempt.verdict.passed,
        metadata={
            "case": attempt.case.id,
            "outcome": attempt.verdict.outcome,
            "calls": [event.name for event in attempt.log.events if event.status == "ok"],
        },
    )
