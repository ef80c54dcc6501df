"""Trials of assistants at workflows: whole sessions, and single turns of recorded ones.

What is missing is run and kept with its verdict. A verdict by other rules or judges is made anew
from the log that is stored, without asking the assistant again.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from pydantic import JsonValue

from agenteval.agents import AgentFailure, AgentLimits, System
from agenteval.agents.spec import uncounted
from agenteval.engine import Outcome, Requests, Unit
from agenteval.engine.attempts import AttemptEvaluator
from agenteval.errors import BudgetExceeded, InputError
from agenteval.models.dry_run import is_dry_run
from agenteval.records import Criterion, FailureStatus, Record, Usage, content_hash
from agenteval.records.score import INFRASTRUCTURE
from agenteval.records.trial import Trial, TrialCase, TrialSystem
from agenteval.store import Store, Trials
from agenteval.workflows.cases import OpenRole, SessionCase, TurnCase
from agenteval.workflows.instructions import instructions_prompt
from agenteval.workflows.measures import (
    RESPONSE,
    SESSION,
    TURN,
    of_failure,
    of_session,
    of_turn,
)
from agenteval.workflows.predict import predict_next
from agenteval.workflows.results import Level, SessionVerdict, TurnJudged
from agenteval.workflows.run_session import SessionSettings, run_session
from agenteval.workflows.scenario import Format
from agenteval.workflows.session import Prediction, SessionFailure, SessionLog
from agenteval.workflows.simulated_tools import ToolSimulator
from agenteval.workflows.simulated_user import UserSimulator
from agenteval.workflows.stored import EVALUATORS
from agenteval.workflows.verdicts import Verdicts

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


@dataclass(frozen=True)
class WorkflowEvaluator(AttemptEvaluator[Case]):
    """An assistant at sessions, or at single turns of recorded ones; `act` makes an attempt and
    `verdicts` judges it.

    A verdict by other rules or judges is made again from the stored log. `bounds` says how many
    requests a case takes, or the verdict on a stored attempt. `only` are the attempts
    there are, as (case key, number), where they are recorded; None: all.
    """

    tables: Trials = field(kw_only=True)
    level: Level = field(kw_only=True)
    candidate: Candidate = field(kw_only=True)
    act: Act = field(kw_only=True)
    verdicts: Verdicts = field(kw_only=True)
    bounds: Callable[[Case, Trial | None], Requests] = field(kw_only=True, default=lambda *_: {})
    only: Container[tuple[str, int]] | None = field(kw_only=True, default=None)

    @classmethod
    def of(  # noqa: PLR0913  each is one side of a campaign
        cls,
        store: Store,
        level: Level,
        cases: Iterable[Case],
        candidate: Candidate,
        trials: int,
        act: Act,
        verdicts: Verdicts,
        **options: Any,
    ) -> WorkflowEvaluator:
        """Return the evaluator of an assistant at these cases; `options` are `bounds`, `only`."""
        system = TrialSystem(
            key=candidate.sha256, name=candidate.name, parameters=candidate.parameters
        )
        return cls(
            EVALUATORS[level],
            system,
            {case.key: case for case in cases},
            trials,
            tables=Trials(store),
            level=level,
            candidate=candidate,
            act=act,
            verdicts=verdicts,
            **options,
        )

    @property
    def noun(self) -> str:  # type: ignore[override]
        """Session or turn."""
        return self.level

    @property
    def measures(self) -> tuple[Criterion, ...]:  # type: ignore[override]
        """Those of a session or a turn."""
        return SESSION if self.level == "session" else (*TURN, RESPONSE)

    @property
    def sends_by_client(self) -> bool:
        """Whether the assistant runs on a model of this package."""
        return not uncounted(self.candidate.assistant.parameters)

    def stored_case(self, key: str, case: Case) -> TrialCase:
        """Return the case as the store keeps it; what is not in its key, such as the name of a
        domain, follows the last call."""
        return TrialCase(
            key=key,
            id=case.info.id,
            body=case.info.model_dump(mode="json"),
            unit=f"{case.info.task} {case.info.version}",
        )

    def units(self) -> Iterator[Unit[Case]]:
        """Yield every case, `trials` times, or the recorded attempts."""
        for unit in super().units():
            if self.only is None or (unit.key, unit.repeat) in self.only:
                yield unit

    def is_current(self, unit: Unit[Case], check_key: str | None) -> bool:
        """Return whether the stored verdict is by these judges and rules."""
        return check_key == self.verdicts.judges.key(unit.content)

    def requests(self, unit: Unit[Case]) -> Requests:
        """Return the requests of an attempt and its verdict, or of the missing verdict alone."""
        place = self.evaluator, self.system.key, unit.key, unit.repeat
        return self.bounds(unit.content, self.tables.find_done(*place) if unit.stored else None)

    def failure_log(self, case: Case, message: str) -> Record:
        """Return that of a session or a turn."""
        kind = SessionFailure if self.level == "session" else AgentFailure
        return kind(status="error:infrastructure", message=message)

    def __getstate__(self) -> dict[str, Any]:
        """Leave out what is for the dry run, too."""
        return {**super().__getstate__(), "bounds": None, "only": None}

    async def evaluate(self, unit: Unit[Case]) -> Outcome:
        """Make the attempt, or take the stored one, and judge it. Raises Unauthorized, InputError
        and StoreError."""
        place = self.evaluator, self.system.key, unit.key, unit.repeat
        stored = await self.tables.finished(*place) if unit.stored else None
        if stored is not None:
            # what it took was counted when it was made
            return await self._judged(unit, stored.model_copy(update={"usage": Usage()}))
        started = time.time()
        try:
            log = await self.act(unit.content, self.candidate, unit.repeat)
        except BudgetExceeded as error:
            log = self._failed(error)
        trial = self._trial(unit, log, started)
        if isinstance(log, SessionFailure | AgentFailure):
            return Outcome(of_failure(trial, log), trial)
        if is_dry_run():
            return Outcome((), trial)
        # The attempt is stored before it is judged: it must survive an interrupt or a refused key.
        await self.tables.save(trial)
        return await self._judged(unit, trial)

    async def _judged(self, unit: Unit[Case], trial: Trial) -> Outcome:
        verdict = await self._verdict(unit.content, trial)
        key = self.verdicts.judges.key_with(unit.content, verdict.failures)
        of = of_session if isinstance(verdict, SessionVerdict) else of_turn
        judged = trial.judged(key, verdict.outcome, verdict.model_dump(mode="json"))
        results = of(judged, verdict)  # type: ignore[arg-type]
        return Outcome(results, judged, verdict_only=True, failure=_broken(verdict))

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

    def _failed(self, error: BudgetExceeded) -> SessionFailure | AgentFailure:
        spent = error.spent if isinstance(error.spent, Usage) else Usage()
        kind = SessionFailure if self.level == "session" else AgentFailure
        return kind(status="error:budget", message=str(error)[:_MESSAGE], usage=spent)

    def _trial(self, unit: Unit[Case], log: Log, started: float) -> Trial:
        failure = log if isinstance(log, SessionFailure | AgentFailure) else None
        more = log.simulator_usage if isinstance(log, SessionLog | SessionFailure) else Usage()
        return Trial(
            evaluator=self.evaluator,
            system_key=self.system.key,
            case_key=unit.key,
            trial=unit.repeat,
            case_id=unit.content.info.id,
            status="done" if failure is None else failure.status,
            log=log.model_dump(mode="json"),
            started=started,
            ended=time.time(),
            usage=log.usage + more,
        )


def _broken(verdict: SessionVerdict | TurnJudged) -> tuple[FailureStatus, str] | None:
    """The status of a judge that the infrastructure failed, the end of the budget first."""
    broken = sorted((f for f in verdict.failures if f in INFRASTRUCTURE), key="error:budget".__ne__)
    if not broken:
        return None
    failed: list[Any] = (
        [verdict.judge]
        if isinstance(verdict, SessionVerdict)
        else [verdict.grade, *verdict.turn.parameters]
    )
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
