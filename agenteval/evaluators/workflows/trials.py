"""Trials of assistants at workflows: whole sessions, and single turns of recorded ones.

What is missing is run and kept with its verdict. A verdict by other rules or judges is made anew
from the log that is stored, without asking the assistant again.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Container, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import JsonValue

from agenteval.agents import AgentFailure, AgentLimits, System
from agenteval.errors import BudgetExceeded, InputError
from agenteval.evaluators.trials import TrialOutcome, TrialPlan
from agenteval.evaluators.workflows.cases import OpenRole, SessionCase, TurnCase
from agenteval.evaluators.workflows.instructions import instructions_prompt
from agenteval.evaluators.workflows.measures import of_failure, of_session, of_turn
from agenteval.evaluators.workflows.predict import predict_next
from agenteval.evaluators.workflows.results import Level, SessionVerdict, TurnJudged
from agenteval.evaluators.workflows.run_session import SessionSettings, run_session
from agenteval.evaluators.workflows.scenario import Format
from agenteval.evaluators.workflows.session import Prediction, SessionFailure, SessionLog
from agenteval.evaluators.workflows.simulated_tools import ToolSimulator
from agenteval.evaluators.workflows.simulated_user import UserSimulator
from agenteval.evaluators.workflows.stored import EVALUATORS
from agenteval.evaluators.workflows.verdicts import Judges, Verdicts
from agenteval.records import FailureStatus, Usage, content_hash
from agenteval.records.score import INFRASTRUCTURE
from agenteval.store import Store, Trial, TrialCase, Trials, TrialSystem

Case = SessionCase | TurnCase
_MESSAGE = 500


@dataclass(frozen=True, slots=True)
class Candidate:
    """An assistant told the procedure in one format, under conditions that are part of it.

    `conditions` is everything else that can change what happens: limits, simulators, seed.
    `for_case` returns the agent for a case, None where there is none; recorded agents need it.
    """

    assistant: System
    format: Format
    conditions: Mapping[str, JsonValue]
    for_case: Callable[[Case], System | None] | None = None

    def at(self, case: Case) -> System | None:
        """Who does the case."""
        return self.assistant if self.for_case is None else self.for_case(case)

    @property
    def name(self) -> str:
        """Assistant and format."""
        return f"{self.assistant.name} · {self.format}"

    @property
    def parameters(self) -> dict[str, JsonValue]:
        """As the store keeps them."""
        return {
            "agent": {"name": self.assistant.name, **self.assistant.parameters},
            "format": self.format,
            "conditions": {"instructions": instructions_prompt().sha256, **self.conditions},
        }

    @property
    def sha256(self) -> str:
        """Content hash (hex): the key under which trials are stored."""
        return content_hash({"name": self.name, "parameters": self.parameters})


Log = SessionLog | SessionFailure | Prediction | AgentFailure
# Does what a trial is about: the log or the failure of one case, for the trial of that number.
Act = Callable[[Any, Candidate, int], Awaitable[Log]]


def sessions(
    user: UserSimulator, tools: Callable[[OpenRole], ToolSimulator], settings: SessionSettings
) -> Act:
    """Holds sessions with this simulated user and the tools of each role; repeats differ by the
    number of their trial."""

    async def act(case: SessionCase, candidate: Candidate, number: int) -> Log:
        own = replace(settings, format=candidate.format, repeat=number)
        assistant = _present(candidate, case)
        return await run_session(case.of.role, case.profile, assistant, user, tools(case.of), own)

    return act


def turns(limits: AgentLimits) -> Act:
    """Predicts single turns."""

    async def act(case: TurnCase, candidate: Candidate, number: int) -> Log:
        given = case.asked(candidate.format)
        assistant = _present(candidate, case)
        return await predict_next(assistant, *given, limits, in_words=case.in_words)

    return act


def _present(candidate: Candidate, case: Case) -> System:
    system = candidate.at(case)
    if system is None:
        raise InputError(f"{candidate.assistant.name} has no session for {case.info.id}")
    return system


@dataclass(frozen=True, slots=True)
class Work:
    """What is to be done for one case and trial; `stored` is the log whose verdict is missing."""

    case: Case
    number: int
    stored: Trial | None = None


def open_work(  # noqa: PLR0913  each narrows what is open
    store: Store,
    level: Level,
    cases: Sequence[Case],
    candidate: Candidate,
    trials: int,
    *,
    judges: Judges,
    retry_failed: bool = False,
    only: Container[tuple[str, int]] | None = None,
) -> list[Work]:
    """What the store lacks: trials, every case once before any comes twice, then verdicts; of
    `only` these, as (case key, number)."""
    tables, name = Trials(store), EVALUATORS[level]
    by_key = {case.key: case for case in cases}
    missing = tables.missing(
        name, list(by_key), candidate.sha256, trials, retry_failed=retry_failed
    )
    unjudged = [
        Work(by_key[t.case_key], t.trial, t)
        for t in tables.trials(name, by_key, [candidate.sha256])
        if t.status == "done"
        and (only is None or (t.case_key, t.trial) in only)
        and t.check_key != judges.key(by_key[t.case_key])
        and t.trial < trials
    ]
    new = [(key, n) for key, n in missing if only is None or (key, n) in only]
    return [*(Work(by_key[key], number) for key, number in new), *unjudged]


def plan_workflows(  # noqa: PLR0913  each is one side of a campaign
    store: Store,
    level: Level,
    cases: Sequence[Case],
    candidate: Candidate,
    trials: int,
    act: Act,
    verdicts: Verdicts,
    *,
    retry_failed: bool = False,
    only: Container[tuple[str, int]] | None = None,
) -> TrialPlan[Work]:
    """What the store lacks of sessions or single turns (see `open_work`), to be done by `act`.

    All `cases` are made known: what is not in their keys (a domain's name) follows the last call.
    Running it raises Unauthorized, InputError and StoreError; what was stored stays.
    """
    work = open_work(
        store, level, cases, candidate, trials,
        judges=verdicts.judges, retry_failed=retry_failed, only=only,
    )  # fmt: skip
    new = [(one.case.key, one.number) for one in work if one.stored is None]
    if only is not None:  # recorded trials may lack numbers: what is planned here has all below one
        new = [(key, n) for key, n in new if all((key, i) in only for i in range(n))]
    return TrialPlan(
        evaluator=EVALUATORS[level],
        system=TrialSystem(
            key=candidate.sha256, name=candidate.name, parameters=candidate.parameters
        ),
        cases=[
            TrialCase(
                key=case.key,
                id=case.info.id,
                body=case.info.model_dump(mode="json"),
                unit=f"{case.info.task} {case.info.version}",
            )
            for case in cases
        ],
        units=work,
        keys=[(one.case.key, one.number) for one in work],
        new=new,
        worked=len(new) < len({case.key for case in cases}) * trials,
        act=_Trialled(Trials(store), level, candidate, act, verdicts).do,
    )


@dataclass(frozen=True, slots=True)
class _Trialled:
    tables: Trials
    level: Level
    candidate: Candidate
    act: Act
    verdicts: Verdicts

    async def do(self, work: Work) -> TrialOutcome:
        """The trial with its verdict, which is of the stored log where there is one."""
        if work.stored is not None:
            # What it took was counted when it was run.
            return await self._judged(work, work.stored.model_copy(update={"usage": Usage()}))
        started = time.time()
        try:
            log = await self.act(work.case, self.candidate, work.number)
        except BudgetExceeded as error:
            return TrialOutcome(self._failed(work, error, started))
        trial = self._trial(work, log, started)
        if trial.status != "done":
            return TrialOutcome(trial)
        # What was paid for is kept whatever becomes of the verdict: an interrupt, a refused key.
        if self.verdicts.judges.name is not None:
            await self.tables.write_trial(trial)
            return await self._judged(work, trial)
        try:
            return TrialOutcome((await self._with_verdict(work.case, trial))[0])
        except Exception:
            await self.tables.write_trial(trial)
            raise

    async def _judged(self, work: Work, trial: Trial) -> TrialOutcome:
        """The verdict, put where the log is stored."""
        judged, broken = await self._with_verdict(work.case, trial)
        self.tables.write_verdicts([judged])
        return TrialOutcome(judged, stored=True, failure=broken)

    async def _with_verdict(
        self, case: Case, trial: Trial
    ) -> tuple[Trial, tuple[FailureStatus, str] | None]:
        """The trial with its verdict, and how the infrastructure failed a judge."""
        verdict = await self._verdict(case, trial)
        key = self.verdicts.judges.key_with(case, verdict.failures)
        results = of_session(verdict) if isinstance(verdict, SessionVerdict) else of_turn(verdict)
        judged = trial.judged(key, verdict.outcome, verdict.model_dump(mode="json"), results)
        return judged, _broken(verdict)

    async def _verdict(self, case: Case, trial: Trial) -> SessionVerdict | TurnJudged:
        """A new verdict; its usage is that of earlier ones on the same log as well."""
        verdict: SessionVerdict | TurnJudged
        if isinstance(case, SessionCase):
            verdict = await self.verdicts.session(case, SessionLog.model_validate(trial.log))
        else:
            verdict = await self.verdicts.turn(case, Prediction.model_validate(trial.log))
        before = judges_usage(trial)
        return (
            verdict.model_copy(update={"usage": before + verdict.usage})
            if before.requests
            else verdict
        )

    def _failed(self, work: Work, error: BudgetExceeded, started: float) -> Trial:
        spent = error.spent if isinstance(error.spent, Usage) else Usage()
        kind = SessionFailure if self.level == "session" else AgentFailure
        failure = kind(status="error:budget", message=str(error)[:_MESSAGE], usage=spent)
        return self._trial(work, failure, started)

    def _trial(
        self,
        work: Work,
        log: Log,
        started: float,
    ) -> Trial:
        failure = log if isinstance(log, SessionFailure | AgentFailure) else None
        more = log.simulator_usage if isinstance(log, SessionLog | SessionFailure) else Usage()
        return Trial(
            evaluator=EVALUATORS[self.level],
            system_key=self.candidate.sha256,
            case_key=work.case.key,
            trial=work.number,
            case_id=work.case.info.id,
            status="done" if failure is None else failure.status,
            log=log.model_dump(mode="json"),
            results=() if failure is None else of_failure(failure),
            started=started,
            ended=time.time(),
            usage=log.usage + more,
        )


def _broken(verdict: SessionVerdict | TurnJudged) -> tuple[FailureStatus, str] | None:
    """The status of a judge that the infrastructure failed, the end of the budget first."""
    broken = sorted((f for f in verdict.failures if f in INFRASTRUCTURE), key="error:budget".__ne__)
    if not broken:
        return None
    failed: list[Any] = [verdict.judge] if isinstance(verdict, SessionVerdict) else [
        verdict.grade, *verdict.turn.parameters
    ]  # fmt: skip
    words = [one.message for one in failed if getattr(one, "status", None) == broken[0]]
    reason = "the cap on calls or cost is reached" if broken[0] == "error:budget" else broken[0]
    return broken[0], f"a judge failed: {next(filter(None, words), reason)}"


def judges_usage(trial: Trial) -> Usage:
    """What judges took for the verdicts on a trial."""
    return Usage.model_validate((trial.verdict or {}).get("usage") or {})


def spent(store: Store, level: Level, systems: Sequence[str]) -> Usage:
    """What the trials of these systems took so far: agent, simulators and judges."""
    tables, name = Trials(store), EVALUATORS[level]
    total = sum((tables.usage(name, key) for key in systems), Usage())
    return sum((judges_usage(t) for t in tables.trials(name, None, systems)), total)
