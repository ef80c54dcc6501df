"""Trials of agents under test: what is missing is run, what was done is kept and never run again.

A trial is one attempt of one system at one planning case. Its log is stored with the verdict; a
verdict by other rules, or by an older checker, is made anew from the log when it is read.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field

from agenteval.agents import AgentFailure, AgentLimits, AgentLog, System
from agenteval.errors import BudgetExceeded
from agenteval.evaluators.planning.case import Case
from agenteval.evaluators.planning.checker import CheckRules, Verdict, check
from agenteval.evaluators.planning.measures import of_failure, of_verdict
from agenteval.evaluators.planning.run import Attempt, check_key, run_case
from agenteval.evaluators.trials import TrialOutcome, TrialPlan
from agenteval.records import Usage
from agenteval.store import Store, Trial, TrialCase, Trials, TrialSystem, distinct, of_one_state

EVALUATOR = "planning"


@dataclass(frozen=True, slots=True)
class Rules:
    """How every trial of a campaign is run and checked."""

    limits: AgentLimits = field(default_factory=AgentLimits)
    check: CheckRules = field(default_factory=CheckRules)


def plan_trials(
    store: Store,
    cases: Sequence[Case],
    system: System,
    trials: int,
    rules: Rules,
    *,
    retry_failed: bool = False,
) -> TrialPlan[tuple[Case, int]]:
    """What the store lacks, every case once before any comes twice, a fresh agent for each.

    Running it raises Unauthorized, InputError and StoreError; what was stored stays.
    """
    by_key = {case.sha256: case for case in cases}
    missing = Trials(store).missing(
        EVALUATOR, list(by_key), system.sha256, trials, retry_failed=retry_failed
    )

    async def run(unit: tuple[Case, int]) -> TrialOutcome:
        return TrialOutcome(await _run(system, *unit, rules))

    return TrialPlan(
        evaluator=EVALUATOR,
        system=stored_system(system),
        cases=[stored_case(by_key[key]) for key in dict(missing)],
        units=[(by_key[key], number) for key, number in missing],
        new=missing,
        act=run,
        worked=len(missing) < len(by_key) * trials,
    )


async def _run(system: System, case: Case, number: int, rules: Rules) -> Trial:
    """One trial; what it took is kept also where the cap broke it off."""
    started = time.time()
    log: AgentLog | AgentFailure
    verdict = None
    try:
        log, verdict = await run_case(case, system.make(), rules.limits, rules.check, trial=number)
    except BudgetExceeded as error:
        log = AgentFailure(
            status="error:budget",
            message=str(error)[:500],
            seconds=time.time() - started,
            usage=error.spent if isinstance(error.spent, Usage) else Usage(),
        )
    return Trial(
        evaluator=EVALUATOR,
        system_key=system.sha256,
        case_key=case.sha256,
        trial=number,
        case_id=case.id,
        status=log.status if isinstance(log, AgentFailure) else "done",
        log=log.model_dump(mode="json"),
        outcome=verdict.outcome if verdict else None,
        check_key=check_key(rules.check) if verdict else None,
        verdict=verdict.model_dump(mode="json") if verdict else None,
        results=(
            of_failure(log)
            if isinstance(log, AgentFailure)
            else of_verdict(verdict)
            if verdict
            else ()
        ),
        started=started,
        ended=started + log.seconds,
        usage=log.usage,
    )


@of_one_state
def load_attempts(
    store: Store,
    rules: CheckRules | None = None,
    *,
    cases: Iterable[str] | None = None,
    systems: Iterable[str] | None = None,
) -> list[Attempt]:
    """Stored trials (of these case and system keys), by system, case and number.

    Different cases of one id, as of a suite that was changed, get a piece of their key behind it.
    A verdict that other rules or an older checker made is made anew, and not written back.
    """
    rules = rules or CheckRules()
    tables = Trials(store)
    chosen = None if cases is None else frozenset(cases)
    known = {
        c.key: Case.model_validate(c.body)
        for c in tables.cases(EVALUATOR)
        if chosen is None or c.key in chosen
    }
    ids = distinct({key: case.id for key, case in known.items()})
    known = {
        key: case if case.id == ids[key] else case.model_copy(update={"id": ids[key]})
        for key, case in known.items()
    }
    names = distinct({s.key: s.name for s in tables.systems(EVALUATOR)})
    return [
        _attempt(trial, known[trial.case_key], names[trial.system_key], rules)
        for trial in tables.trials(EVALUATOR, chosen, systems)
    ]


def _attempt(trial: Trial, case: Case, name: str, rules: CheckRules) -> Attempt:
    if trial.status != "done":
        failure = AgentFailure.model_validate(trial.log)
        return Attempt(case, name, trial.trial, failure, None)
    log = AgentLog.model_validate(trial.log)
    if trial.check_key == check_key(rules) and trial.verdict is not None:
        verdict = Verdict.model_validate(trial.verdict)
    else:
        verdict = check(case, log, rules)
    return Attempt(case, name, trial.trial, log, verdict)


def stored_case(case: Case) -> TrialCase:
    """The case as the store keeps it."""
    body = case.model_dump(mode="json", exclude_none=True)
    return TrialCase(key=case.sha256, id=case.id, body=body)


def stored_system(system: System) -> TrialSystem:
    """The system as the store keeps it."""
    return TrialSystem(key=system.sha256, name=system.name, parameters=system.parameters)
