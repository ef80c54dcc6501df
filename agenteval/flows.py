"""Trials of assistants at workflows: whole sessions, and single turns of recorded ones.

What is missing is run and kept with its verdict. A verdict by other rules or judges is made anew
from the log that is stored, without asking the assistant again.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple, Protocol

from pydantic import JsonValue

from agenteval.agents import AgentFailure, AgentLimits
from agenteval.agents.dialogue import AssistantSystem
from agenteval.errors import BudgetExceeded, InputError, StoreError
from agenteval.evaluators.workflows.cases import OpenRole, SessionCase, TurnCase
from agenteval.evaluators.workflows.predict import predict
from agenteval.evaluators.workflows.response_judge import ResponseVerdict
from agenteval.evaluators.workflows.results import (
    CaseInfo,
    Level,
    SessionResult,
    SessionVerdict,
    TurnResult,
)
from agenteval.evaluators.workflows.run_session import SessionSettings, run_session
from agenteval.evaluators.workflows.scenario import FORMATS, Format
from agenteval.evaluators.workflows.session import Prediction, SessionFailure, SessionLog
from agenteval.evaluators.workflows.simulators.nouns import UserSimulator
from agenteval.evaluators.workflows.simulators.tools import ToolSimulator
from agenteval.evaluators.workflows.turn_score import TurnVerdict
from agenteval.evaluators.workflows.verdicts import Verdicts
from agenteval.records import Usage, content_hash
from agenteval.store import Store, Trial, TrialCase, Trials, TrialSystem
from agenteval.trialling import Ended, Job, Progress, run_jobs

Case = SessionCase | TurnCase
EVALUATORS: dict[Level, str] = {"turn": "workflows.turn", "session": "workflows.session"}
_MESSAGE = 500


@dataclass(frozen=True, slots=True)
class Candidate:
    """An assistant told the procedure in one format, under conditions that are part of it.

    `conditions` is everything else that can change what happens: limits, simulators, seed.
    `for_case`, of scripted assistants, makes the one for a case, None where it has no place.
    """

    assistant: AssistantSystem
    format: Format
    conditions: Mapping[str, JsonValue]
    for_case: Callable[[Case], AssistantSystem | None] | None = None

    def at(self, case: Case) -> AssistantSystem | None:
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
            "conditions": dict(self.conditions),
        }

    @property
    def sha256(self) -> str:
        """Content hash (hex): the key under which trials are stored."""
        return content_hash({"name": self.name, "parameters": self.parameters})


class Act(Protocol):
    """Does what a trial is about: the log or the failure of one case."""

    async def __call__(
        self, case: Any, candidate: Candidate, number: int
    ) -> SessionLog | SessionFailure | Prediction | AgentFailure: ...


@dataclass(frozen=True, slots=True)
class Sessions:
    """How sessions are held: the simulated user, the tools of each role, and the settings."""

    user: UserSimulator
    tools: Callable[[OpenRole], ToolSimulator]
    settings: SessionSettings

    async def __call__(
        self, case: SessionCase, candidate: Candidate, number: int
    ) -> SessionLog | SessionFailure:
        """One session; `number` is that of the trial, by which repeats differ."""
        settings = replace(self.settings, format=candidate.format, repeat=number)
        role, assistant = case.of.role, _present(candidate, case)
        return await run_session(
            role, case.profile, assistant, self.user, self.tools(case.of), settings
        )


@dataclass(frozen=True, slots=True)
class Turns:
    """How single turns are predicted."""

    limits: AgentLimits

    async def __call__(
        self, case: TurnCase, candidate: Candidate, number: int
    ) -> Prediction | AgentFailure:
        """One prediction."""
        role, assistant = case.of.role, _present(candidate, case)
        return await predict(
            role, case.session, case.index, assistant, candidate.format, self.limits
        )


def _present(candidate: Candidate, case: Case) -> AssistantSystem:
    found = candidate.at(case)
    if found is None:
        raise InputError(f"{candidate.assistant.name} has no place in {case.info.id}")
    return found


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
    check_key: str,
    retry_failed: bool = False,
) -> list[Work]:
    """What the store lacks: trials, every case once before any comes twice, then verdicts."""
    tables, name = Trials(store), EVALUATORS[level]
    by_key = {case.key: case for case in cases}
    missing = tables.missing(
        name, list(by_key), candidate.sha256, trials, retry_failed=retry_failed
    )
    stale = [
        Work(by_key[t.case_key], t.trial, t)
        for t in tables.trials(name, by_key, [candidate.sha256])
        if t.status == "done" and t.check_key != check_key and t.trial < trials
    ]
    return [*(Work(by_key[key], number) for key, number in missing), *stale]


async def run_work(  # noqa: PLR0913  each is one side of a campaign
    store: Store,
    level: Level,
    candidate: Candidate,
    work: Sequence[Work],
    act: Act,
    verdicts: Verdicts,
    *,
    concurrency: int = 8,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Ended:
    """Do the work; a trial counts when it is durable with its verdict.

    Stops early, with a reason, at the budget and when trial after trial fails for the
    infrastructure. Raises Unauthorized, InputError and StoreError; what was stored stays.
    """
    tables, name = Trials(store), EVALUATORS[level]
    cases = {w.case.key: w.case for w in work}
    tables.add_cases(name, [_stored_case(key, case) for key, case in cases.items()])
    tables.add_system(
        TrialSystem(key=candidate.sha256, name=candidate.name, parameters=candidate.parameters)
    )
    trialled = _Trialled(tables, level, candidate, act, verdicts)
    jobs: list[Job] = [partial(trialled.do, one) for one in work]
    return await run_jobs(tables, jobs, concurrency=concurrency, on_progress=on_progress)


@dataclass(frozen=True, slots=True)
class _Trialled:
    tables: Trials
    level: Level
    candidate: Candidate
    act: Act
    verdicts: Verdicts

    async def do(self, work: Work) -> Trial:
        """The trial with its verdict, which is of the stored log where there is one."""
        started = time.time()
        if work.stored is not None:
            return await self._judged_anew(work, work.stored)
        try:
            log = await self.act(work.case, self.candidate, work.number)
        except BudgetExceeded as error:
            return self._failed(work, error, started)
        trial = self._trial(work, log, started)
        return trial if trial.status != "done" else await self._judged(work, trial)

    async def _judged(self, work: Work, trial: Trial) -> Trial:
        try:
            outcome, verdict = await self._verdict(work.case, trial.log)
        except BudgetExceeded:  # the log is kept; its verdict is made when the campaign goes on
            return trial
        return trial.judged(self.verdicts.judges.key, outcome, verdict)

    async def _judged_anew(self, work: Work, stored: Trial) -> Trial:
        """Verdicts of what is done are replaced where they stand, see `Trials.write_verdicts`."""
        trial = await self._judged(work, stored)
        if trial.outcome is not None:
            self.tables.write_verdicts([trial])
        return trial.model_copy(update={"usage": Usage()})  # asked for long ago

    async def _verdict(self, case: Case, log: dict[str, Any]) -> tuple[str, dict[str, Any]]:
        if isinstance(case, SessionCase):
            said = await self.verdicts.session(case, SessionLog.model_validate(log))
            return said.outcome, said.model_dump(mode="json")
        turn, grade = await self.verdicts.turn(case, Prediction.model_validate(log))
        body = {
            "turn": turn.model_dump(mode="json"),
            "grade": grade and grade.model_dump(mode="json"),
        }
        return turn_outcome(turn), body

    def _failed(self, work: Work, error: BudgetExceeded, started: float) -> Trial:
        spent = error.spent if isinstance(error.spent, Usage) else Usage()
        kind = SessionFailure if self.level == "session" else AgentFailure
        failure = kind(status="error:budget", message=str(error)[:_MESSAGE], usage=spent)
        return self._trial(work, failure, started)

    def _trial(
        self,
        work: Work,
        log: SessionLog | SessionFailure | Prediction | AgentFailure,
        started: float,
    ) -> Trial:
        more = log.simulator_usage if isinstance(log, SessionLog | SessionFailure) else Usage()
        return Trial(
            evaluator=EVALUATORS[self.level],
            system_key=self.candidate.sha256,
            case_key=work.case.key,
            trial=work.number,
            case_id=work.case.info.id,
            status=log.status if isinstance(log, SessionFailure | AgentFailure) else "done",
            log=log.model_dump(mode="json"),
            started=started,
            ended=time.time(),
            usage=log.usage + more,
        )


def turn_outcome(verdict: TurnVerdict) -> str:
    """A word for a predicted turn: of a due call right, wrong, undecided, missed or unreadable;
    of a due reply replied, spurious (a call) or unreadable."""
    if verdict.form == "unreadable":
        return "unreadable"
    if verdict.gold_call:
        return verdict.call or "missed"
    return "spurious" if verdict.form == "call" else "replied"


class _About(NamedTuple):
    """The first fields of a result."""

    case: CaseInfo
    system: str
    agent: str
    format: Format
    settings: dict[str, JsonValue]
    trial: int


def load_sessions(
    store: Store, *, cases: Iterable[str] | None = None, systems: Iterable[str] | None = None
) -> list[SessionResult]:
    """Stored sessions (of these case and system keys), by agent, format, case and number.

    Raises StoreError for a damaged row.
    """
    rows = _rows(store, "session", cases, systems)
    return [
        SessionResult(
            *about,
            SessionFailure.model_validate(t.log)
            if t.status != "done"
            else SessionLog.model_validate(t.log),
            None if t.verdict is None else SessionVerdict.model_validate(t.verdict),
            None if t.started is None or t.ended is None else t.ended - t.started,
        )
        for about, t in rows
    ]


def load_turns(
    store: Store, *, cases: Iterable[str] | None = None, systems: Iterable[str] | None = None
) -> list[TurnResult]:
    """Stored predictions, as `load_sessions`."""
    found = []
    for about, t in _rows(store, "turn", cases, systems):
        said: dict[str, Any] = t.verdict or {}
        grade, turn = said.get("grade"), said.get("turn")
        found.append(
            TurnResult(
                *about,
                AgentFailure.model_validate(t.log)
                if t.status != "done"
                else Prediction.model_validate(t.log),
                None if turn is None else TurnVerdict.model_validate(turn),
                None if grade is None else ResponseVerdict.model_validate(grade),
            )
        )
    return found


def _rows(
    store: Store, level: Level, cases: Iterable[str] | None, systems: Iterable[str] | None
) -> list[tuple[_About, Trial]]:
    """What each trial is about, with the trial."""
    tables, name = Trials(store), EVALUATORS[level]
    infos = {c.key: CaseInfo.model_validate(c.body) for c in tables.cases(name)}
    known = {s.key: s for s in tables.systems(name)}
    often = Counter(s.name for s in known.values())
    found = []
    for trial in tables.trials(name, cases, systems):
        system = known[trial.system_key]
        parameters: dict[str, Any] = system.parameters
        tail = "" if often[system.name] == 1 else f" [{system.key[:6]}]"
        try:
            about = _About(
                infos[trial.case_key], system.name + tail, parameters["agent"]["name"] + tail,
                parameters["format"], parameters["conditions"], trial.trial,
            )  # fmt: skip
        except (KeyError, TypeError) as error:
            raise StoreError(f"the system {system.name!r} is damaged in the store") from error
        found.append((about, trial))
    return sorted(found, key=lambda row: _place(row[0]))


def _place(about: _About) -> tuple[str, int, str, str, int]:
    """By agent, format as in FORMATS, system, case and number."""
    return (
        about.agent, FORMATS.index(about.format), about.system, about.case.id, about.trial,
    )  # fmt: skip


def _stored_case(key: str, case: Case) -> TrialCase:
    return TrialCase(key=key, id=case.info.id, body=case.info.model_dump(mode="json"))
