"""Cases, verdicts and results of trials, and their loading from the store."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from pydantic import Field, JsonValue

from agenteval.agents import AgentFailure
from agenteval.analysis.flagged import Flag, Flags
from agenteval.errors import StoreError
from agenteval.readers.injection import texts_signs
from agenteval.records import FailureStatus, Record, Usage, content_hash
from agenteval.records.trial import Trial, TrialSystem, distinct
from agenteval.store import Store, Trials, of_one_state
from agenteval.workflows.conformance import Cause, Deviation
from agenteval.workflows.judges import GoalsVerdict, JudgeFailure, ResponseVerdict
from agenteval.workflows.scenario import EVERY_FORMAT, Demand, Format
from agenteval.workflows.scores import TurnVerdict
from agenteval.workflows.session import DecidedBy, Prediction, SessionFailure, SessionLog

Level = Literal["turn", "session"]


class CaseInfo(Record):
    """A stored case, with all data to group and show it without the folder of its role.

    `id` is role/scenario/profile, or role/scenario/session:turn; `task` identifies one input in
    comparisons and intervals: the profile, or the recorded session. `version` is a hash (hex) of
    its definition in the role: tasks with one name and different versions are different.
    """

    level: Level
    id: str
    task: str
    role: str
    domain: str
    scenarios: tuple[str, ...]
    persona: str = ""
    goals: tuple[str, ...] = ()
    version: str = ""
    said: str = ""  # turn level: the preceding message or call
    gold: str = ""  # turn level: the gold call or reply, as text

    @property
    def cross(self) -> bool:
        """Needs several scenarios of its role."""
        return len(self.scenarios) > 1


class SessionVerdict(Record):
    """The verdict on one session.

    `success` is no if anyone but the user ended the session; otherwise the final state (by
    `demand`) or else the judge decides; None if neither can. A session in which the agent saw a
    simulator's mistake has no success however it ended (`simulator`), and no progress or
    deviations. `progress` is the share of goals achieved. `right`, `gold`, `generated` and
    `unjudged` count calls (see `SessionCounts`), `sequence` is that of `order_f1`. `conforms` (None
    without any call) and `fitness` are against the chart alone, None where the procedure has none
    (not `charted`); `deviations` are against chart and gold, `cause` is the first one's, "other"
    for a failed session without any. `failures` are the statuses of failed judges; `usage` is that
    of judges, including earlier verdicts on the session.
    """

    success: bool | None
    decided_by: DecidedBy | None
    demand: Demand = "state"
    progress: float | None = Field(default=None, ge=0, le=1)
    state_success: bool | None = None
    state_goals: tuple[bool, ...] = ()
    differences: tuple[str, ...] = ()
    judge: GoalsVerdict | JudgeFailure | None = None
    right: int = Field(ge=0)
    gold: int = Field(ge=0)
    generated: int = Field(ge=0)
    unjudged: int = Field(default=0, ge=0)
    sequence: float | None = Field(default=None, ge=0, le=1)
    charted: bool = True
    conforms: bool | None
    fitness: float | None = Field(default=None, ge=0, le=1)
    deviations: tuple[Deviation, ...] = ()
    cause: Cause | Literal["other"] | None = None
    nodes: tuple[str, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()
    unchecked: int = Field(default=0, ge=0)
    failures: tuple[FailureStatus, ...] = ()
    usage: Usage = Usage()

    @property
    def outcome(self) -> str:
        """Outcome as stored with the trial."""
        return {True: "success", False: "failure", None: "undecided"}[self.success]


class TurnJudged(Record):
    """The verdict on one predicted turn; `grade` is a judge's grade of the reply.

    `outcome` is right, wrong, undecided, missed or unreadable for a due call, and replied, spurious
    (a call) or unreadable for a due reply. `failures` and `usage` are as in SessionVerdict.
    """

    turn: TurnVerdict
    grade: ResponseVerdict | None = None
    failures: tuple[FailureStatus, ...] = ()
    usage: Usage = Usage()

    @property
    def outcome(self) -> str:
        """Outcome as stored with the trial."""
        if self.turn.form == "unreadable":
            return "unreadable"
        if self.turn.gold_call:
            return self.turn.call or "missed"
        return "spurious" if self.turn.form == "call" else "replied"


@dataclass(frozen=True, slots=True)
class TrialOfCase:
    """A trial of a case: `system` is the agent with its format, `agent` without it."""

    case: CaseInfo
    system: str
    agent: str
    format: Format
    settings: dict[str, JsonValue]
    trial: int


@dataclass(frozen=True, slots=True)
class SessionResult(TrialOfCase):
    """One stored session. `verdict` is None for a failure or a session not yet judged."""

    log: SessionLog | SessionFailure
    verdict: SessionVerdict | None
    seconds: float | None = None

    @property
    def failure(self) -> SessionFailure | None:
        """Reason for a missing session."""
        return self.log if isinstance(self.log, SessionFailure) else None


@dataclass(frozen=True, slots=True)
class TurnResult(TrialOfCase):
    """One stored prediction of a recorded turn, with its scores; `failures` are those of judges."""

    prediction: Prediction | AgentFailure
    verdict: TurnVerdict | None
    grade: ResponseVerdict | None = None
    failures: tuple[FailureStatus, ...] = ()

    @property
    def failure(self) -> AgentFailure | None:
        """Reason for a missing prediction."""
        return self.prediction if isinstance(self.prediction, AgentFailure) else None


EVALUATORS: dict[Level, str] = {"turn": "workflows.turn", "session": "workflows.session"}


@of_one_state
def load_sessions(
    store: Store, *, cases: Iterable[str] | None = None, systems: Iterable[str] | None = None
) -> list[SessionResult]:
    """Return stored sessions (of these case and system keys), by agent, format, case and number.

    Raises StoreError for a damaged row.
    """
    results = []
    for about, t in _rows(store, "session", cases, systems):
        record = SessionLog if t.status == "done" else SessionFailure
        verdict = None if t.verdict is None else SessionVerdict.model_validate(t.verdict)
        seconds = None if t.started is None or t.ended is None else t.ended - t.started
        results.append(SessionResult(*about, record.model_validate(t.log), verdict, seconds))
    return results


@of_one_state
def load_turns(
    store: Store, *, cases: Iterable[str] | None = None, systems: Iterable[str] | None = None
) -> list[TurnResult]:
    """Return stored predictions, as `load_sessions`."""
    results = []
    for about, t in _rows(store, "turn", cases, systems):
        record = Prediction if t.status == "done" else AgentFailure
        prediction = record.model_validate(t.log)
        if t.verdict is None:
            results.append(TurnResult(*about, prediction, None))
        else:
            judged = TurnJudged.model_validate(t.verdict)
            verdict = (judged.turn, judged.grade, judged.failures)
            results.append(TurnResult(*about, prediction, *verdict))
    return results


_About = tuple[CaseInfo, str, str, Format, dict[str, JsonValue], int]  # fields of TrialOfCase


def _rows(
    store: Store, level: Level, cases: Iterable[str] | None, systems: Iterable[str] | None
) -> Iterator[tuple[_About, Trial]]:
    """Yield each trial with its case and system.

    Agents with one name and different conditions, and tasks with one name and several versions, get
    a hash suffix.
    """
    tables, name = Trials(store), EVALUATORS[level]
    infos = {c.key: CaseInfo.model_validate(c.body) for c in tables.cases(name)}
    tasks = distinct({info.version + info.task: info.task for info in infos.values()})
    for key, info in infos.items():
        task = tasks[info.version + info.task]
        id = info.id + task.removeprefix(info.task)
        infos[key] = info.model_copy(update={"id": id, "task": task})
    stored = {system.key: system for system in tables.systems(name)}
    agent_keys = {key: _agent_key(system) for key, system in stored.items()}
    parameters: dict[str, Any] = {key: system.parameters for key, system in stored.items()}
    agents = distinct({agent_keys[k]: str(parameters[k]["agent"]["name"]) for k in stored})
    rows = []
    for trial in tables.trials(name, cases, systems):
        key, case = trial.system_key, infos[trial.case_key]
        agent, format = agents[agent_keys[key]], parameters[key]["format"]
        system, settings = f"{agent} · {format}", parameters[key]["conditions"]
        about: _About = case, system, agent, format, settings, trial.trial
        place = (agent, EVERY_FORMAT.index(format), system, case.id, trial.trial)
        rows.append((place, about, trial))
    rows.sort(key=lambda row: row[0])
    return ((about, trial) for _, about, trial in rows)


def _agent_key(system: TrialSystem) -> str:
    """Return a hash of everything but the format. Raises StoreError for a damaged system."""
    parameters: dict[str, Any] = system.parameters
    try:
        EVERY_FORMAT.index(parameters["format"])
        _ = parameters["agent"]["name"]
        return content_hash([parameters["agent"], parameters["conditions"]])
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"the system {system.name!r} is damaged in the store") from error


# ---- texts that seem to address the judge --------------------------------------------------------
#
# This examines texts that judges read and that the agent or its tools wrote: messages of the agent,
# its calls with arguments, and their results; for a turn, the reply or call. It skips messages of
# the simulated user and the recorded conversation before a turn. Logs are examined even without a
# judge, because one may be used later.


def flow_signs(result: SessionResult | TurnResult) -> tuple[str, ...] | None:
    """Return the names of the signs in the texts that a judge reads; None if there is nothing to
    judge."""
    log = result.log if isinstance(result, SessionResult) else result.prediction
    if isinstance(log, SessionLog):
        return text_signs(_of_session(log))
    return text_signs(turn_texts(log)) if isinstance(log, Prediction) else None


def flow_flags(sessions: Sequence[SessionResult], turns: Sequence[TurnResult]) -> Flags:
    """Return the flags of all results that can be judged, by case and (from the second) trial."""
    flags, examined = [], 0
    results: list[SessionResult | TurnResult] = [*sessions, *turns]
    for result in results:
        signs = flow_signs(result)
        examined += signs is not None
        if signs:
            trial = f", trial {result.trial}" if result.trial else ""
            flags.append(Flag(result.case.id + trial, result.system, signs))
    return Flags(tuple(flags), examined)


def text_signs(texts: Iterable[str]) -> tuple[str, ...]:
    """Return the names of the signs in texts that a judge reads."""
    return tuple(sign.name for sign in texts_signs(dict.fromkeys(filter(None, texts))))


def _of_session(log: SessionLog) -> Iterator[str]:
    messages = [m for m in log.messages if m.role in ("assistant", "tool")]
    yield from (message.content for message in messages)
    # From the log, because the judge of values also gets calls without a message.
    calls = [(call.name, call.arguments) for m in messages for call in m.tool_calls]
    for tool, arguments in (*calls, *((call.tool, call.arguments) for call in log.calls)):
        yield from _leaves([tool, arguments])


def turn_texts(prediction: Prediction) -> Iterator[str]:
    """Yield the texts of a predicted turn that a judge reads."""
    called = prediction.form == "call"
    return _leaves([prediction.tool, prediction.arguments] if called else prediction.response)


def _leaves(value: JsonValue) -> Iterator[str]:
    """Yield the names and texts in a JSON value, unescaped."""
    stack = [value]
    while stack:
        part = stack.pop()
        if isinstance(part, str):
            yield part
        elif isinstance(part, dict):
            yield from part
            stack.extend(part.values())
        elif isinstance(part, list):
            stack.extend(part)
