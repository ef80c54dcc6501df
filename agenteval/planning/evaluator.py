"""Run, check and store trials of agents under test, and load them from the store.

A trial is one attempt of one system at one planning case, by a fresh agent on the case's mock
tools. Its log is stored with the verdict of the oracle. A verdict from other rules or an older
oracle is recomputed from the log when it is read.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any, ClassVar, Self

from agenteval.agents import Agent, AgentFailure, AgentLimits, AgentLog, System, Toolbox, drive
from agenteval.agents.spec import uncounted
from agenteval.engine import Outcome, RequestBounds, Requests, Unit
from agenteval.engine.attempts import AttemptEvaluator
from agenteval.engine.measures import failed, level, levels, score, words
from agenteval.errors import BudgetExceeded
from agenteval.planning.case import Case, MockBackend
from agenteval.planning.oracle import OUTCOMES, CheckRules, Verdict, check
from agenteval.planning.scripted import ScriptedAgent
from agenteval.records import Criterion, Result, Run, Usage, content_hash
from agenteval.records.trial import Trial, TrialCase, TrialSystem, distinct
from agenteval.store import Store, Trials, of_one_state

EVALUATOR = "planning"
OUTCOME_RULES = 1  # raise it when the same log gets a different outcome
CHECKER = 2  # raise it when a log gets a different verdict; 2: without the nearest plan
PLAN = levels("plan", "Whether the plan was right, by the checker.", "fail", "pass")
OUTCOME = words("outcome", "The first error that applies, or a pass, by the checker.", OUTCOMES)
MEASURES: tuple[Criterion, ...] = (PLAN, OUTCOME)


def check_key(rules: CheckRules, version: int = CHECKER) -> str:
    """Return the content hash (hex) of a version of the checker and its rules.

    Stored verdicts with another key are recomputed from their logs.
    """
    options = rules.model_dump(mode="json")
    if not rules.log_order:  # the default's key predates this rule
        del options["log_order"]
    return content_hash({"checker": version, **options})


@dataclass(frozen=True, slots=True)
class Attempt:
    """One trial of one system on a case: its log and verdict. `verdict` is None if `log` is an
    AgentFailure: the endpoint or adapter failed, which says nothing about the agent."""

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
    trial: int = 0,
) -> tuple[AgentLog | AgentFailure, Verdict | None]:
    """Run an agent on a case; return its log and the verdict (None for an AgentFailure).

    Raises Unauthorized, BudgetExceeded and InputError.
    """
    toolbox = Toolbox(case.tools, MockBackend(case), limits, trial=trial)
    if isinstance(agent, ScriptedAgent):  # it does not read the request
        agent = agent.on(case)
    log = await drive(agent, case.request, toolbox)
    if isinstance(log, AgentFailure):
        return log, None
    return log, check(case, log, rules or CheckRules())


def as_run(attempt: Attempt) -> Run:
    """Return the trial as a Run for `quantify`. Raises ValueError for an AgentFailure."""
    if isinstance(attempt.log, AgentFailure) or attempt.verdict is None:
        raise ValueError("the endpoint of the agent failed, so its ability is unknown")
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


@dataclass(frozen=True, slots=True)
class Rules:
    """The settings for running and checking every trial of a campaign."""

    limits: AgentLimits = field(default_factory=AgentLimits)
    check: CheckRules = field(default_factory=CheckRules)


@dataclass(frozen=True)
class AgentEvaluator(AttemptEvaluator[Case]):
    """Runs an agent on planning cases; base class of the evaluators."""

    agent: System = field(kw_only=True)

    @classmethod
    def of_agent(
        cls, evaluator: str, agent: System, cases: Iterable[Case], trials: int, **fields: Any
    ) -> Self:
        """Return the evaluator of an agent on these cases."""
        system = TrialSystem(key=agent.sha256, name=agent.name, parameters=agent.parameters)
        by_key = {case.sha256: case for case in cases}
        return cls(evaluator, system, by_key, trials, agent=agent, **fields)

    @property
    def sends_by_client(self) -> bool:
        """Whether the agent sends its requests through this package's model client."""
        return not uncounted(self.agent.parameters)

    def stored_case(self, key: str, case: Case) -> TrialCase:
        """Return the case as it is stored."""
        body = case.model_dump(mode="json", exclude_none=True)
        return TrialCase(key=case.sha256, id=case.id, body=body)

    def trial(self, unit: Unit[Case], started: float, log: Any, **fields: Any) -> Trial:
        """Return the trial of a unit, with a failure or verdict only if passed in `fields`."""
        return Trial(
            evaluator=self.evaluator,
            system_key=self.system.key,
            case_key=unit.content.sha256,
            trial=unit.repeat,
            case_id=unit.content.id,
            log=log.model_dump(mode="json"),
            started=started,
            usage=log.usage,
            **fields,
        )


@dataclass(frozen=True)
class PlanningEvaluator(AgentEvaluator):
    """Runs an agent on planning cases; the oracle checks each attempt."""

    rules: Rules = field(kw_only=True)

    measures: ClassVar[tuple[Criterion, ...]] = MEASURES

    @classmethod
    def of(
        cls, agent: System, cases: Iterable[Case], trials: int, rules: Rules
    ) -> PlanningEvaluator:
        """Return the evaluator of an agent on these cases."""
        return cls.of_agent(EVALUATOR, agent, cases, trials, rules=rules)

    def requests(self, unit: Unit[Case]) -> Requests:
        """Count at least one request; at most one per turn and one for the final message."""
        return {"agent": RequestBounds(1, self.rules.limits.turns + 1)}

    async def evaluate(self, unit: Unit[Case]) -> Outcome:
        """Run a fresh agent on the case. Raises Unauthorized and InputError."""
        started, rules = time.time(), self.rules
        log: AgentLog | AgentFailure
        try:
            log, verdict = await run_case(
                unit.content, self.agent.make(), rules.limits, rules.check, trial=unit.repeat
            )
        except BudgetExceeded as error:
            log, verdict = over_budget(error, time.time() - started), None
        checked = (
            {}
            if verdict is None
            else {
                "outcome": verdict.outcome,
                "check_key": check_key(rules.check),
                "verdict": verdict.model_dump(mode="json"),
            }
        )
        status = log.status if isinstance(log, AgentFailure) else "done"
        trial = self.trial(
            unit, started, log, status=status, ended=started + log.seconds, **checked
        )
        return Outcome(measured(trial, log, verdict), trial)


def over_budget(error: BudgetExceeded, seconds: float = 0.0) -> AgentFailure:
    """Return the failure of an attempt that exceeded the budget, with its usage."""
    usage = error.spent if isinstance(error.spent, Usage) else Usage()
    return AgentFailure(
        status="error:budget", message=str(error)[:500], seconds=seconds, usage=usage
    )


def measured(
    trial: Trial, log: AgentLog | AgentFailure, verdict: Verdict | None
) -> tuple[Result, ...]:
    """Return the results of a trial: its verdict, or a failure for each measure."""
    if isinstance(log, AgentFailure):
        return failed(trial, MEASURES, log.status, log.message)
    if verdict is None:
        return ()
    return (
        level(trial, PLAN, verdict.passed, "" if verdict.passed else verdict.outcome),
        score(trial, OUTCOME, verdict.outcome),
    )


@of_one_state
def load_attempts(
    store: Store,
    rules: CheckRules | None = None,
    *,
    cases: Iterable[str] | None = None,
    systems: Iterable[str] | None = None,
) -> list[Attempt]:
    """Return stored trials (of these case and system keys), by system, case and number.

    Different cases with the same id, as from a changed suite, get part of their key in the id. A
    verdict from other rules or an older oracle is recomputed but not written back.
    """
    rules = rules or CheckRules()
    trials = Trials(store)
    case_keys = None if cases is None else frozenset(cases)
    case_of = {
        c.key: Case.model_validate(c.body)
        for c in trials.cases(EVALUATOR)
        if case_keys is None or c.key in case_keys
    }
    for key, name in distinct({key: case.id for key, case in case_of.items()}).items():
        if case_of[key].id != name:
            case_of[key] = case_of[key].model_copy(update={"id": name})
    names = distinct({s.key: s.name for s in trials.systems(EVALUATOR)})
    attempts = []
    for trial in trials.trials(EVALUATOR, case_keys, systems):
        case = case_of[trial.case_key]
        log: AgentLog | AgentFailure
        verdict: Verdict | None = None
        if trial.status != "done":
            log = AgentFailure.model_validate(trial.log)
        else:
            log = AgentLog.model_validate(trial.log)
            current = trial.check_key == check_key(rules) and trial.verdict is not None
            verdict = Verdict.model_validate(trial.verdict) if current else check(case, log, rules)
        attempts.append(Attempt(case, names[trial.system_key], trial.trial, log, verdict))
    return attempts
