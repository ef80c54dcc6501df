"""Trials of workflows as they are stored, read back as results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from pydantic import JsonValue

from agenteval.agents import AgentFailure
from agenteval.errors import StoreError
from agenteval.records import content_hash
from agenteval.records.trial import Trial, TrialSystem, distinct
from agenteval.store import Store, Trials, of_one_state
from agenteval.workflows.results import (
    CaseInfo,
    Level,
    SessionResult,
    SessionVerdict,
    TurnJudged,
    TurnResult,
)
from agenteval.workflows.scenario import EVERY_FORMAT, Format
from agenteval.workflows.session import Prediction, SessionFailure, SessionLog

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
    """Yield each trial, with what it is about.

    Agents of one name under different conditions, and tasks of one name in several versions, get a
    piece of a hash behind their names.
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
    """Return a hash of all but the format. Raises StoreError for a damaged system."""
    parameters: dict[str, Any] = system.parameters
    try:
        EVERY_FORMAT.index(parameters["format"])
        _ = parameters["agent"]["name"]
        return content_hash([parameters["agent"], parameters["conditions"]])
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"the system {system.name!r} is damaged in the store") from error
