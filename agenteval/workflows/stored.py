"""Trials of workflows as they are stored, read back as results."""

from __future__ import annotations

from collections.abc import Iterable
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
    """Stored sessions (of these case and system keys), by agent, format, case and number.

    Raises StoreError for a damaged row.
    """
    return [
        SessionResult(
            *about,
            log=SessionFailure.model_validate(t.log)
            if t.status != "done"
            else SessionLog.model_validate(t.log),
            verdict=None if t.verdict is None else SessionVerdict.model_validate(t.verdict),
            seconds=None if t.started is None or t.ended is None else t.ended - t.started,
        )
        for about, t in _rows(store, "session", cases, systems)
    ]


@of_one_state
def load_turns(
    store: Store, *, cases: Iterable[str] | None = None, systems: Iterable[str] | None = None
) -> list[TurnResult]:
    """Stored predictions, as `load_sessions`."""
    results = []
    for about, t in _rows(store, "turn", cases, systems):
        judged = None if t.verdict is None else TurnJudged.model_validate(t.verdict)
        prediction = (
            AgentFailure.model_validate(t.log)
            if t.status != "done"
            else Prediction.model_validate(t.log)
        )
        verdict = (judged.turn, judged.grade, judged.failures) if judged else (None, None, ())
        results.append(TurnResult(*about, prediction, *verdict))
    return results


_About = tuple[CaseInfo, str, str, Format, dict[str, JsonValue], int]  # first fields of a result


def _rows(
    store: Store, level: Level, cases: Iterable[str] | None, systems: Iterable[str] | None
) -> list[tuple[_About, Trial]]:
    """What each trial is about, with the trial.

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
    known = {stored.key: _system(stored) for stored in tables.systems(name)}
    agents = distinct({same: agent for same, agent, _, _ in known.values()})
    rows = []
    for trial in tables.trials(name, cases, systems):
        same, _, format, settings = known[trial.system_key]
        agent, case = agents[same], infos[trial.case_key]
        about: _About = case, f"{agent} · {format}", agent, format, settings, trial.trial
        place = (agent, EVERY_FORMAT.index(format), about[1], case.id, trial.trial)
        rows.append((place, about, trial))
    rows.sort(key=lambda row: row[0])
    return [(about, trial) for _, about, trial in rows]


def _system(stored: TrialSystem) -> tuple[str, str, Format, dict[str, JsonValue]]:
    """A hash of all but the format, name of the agent, format, conditions."""
    parameters: dict[str, Any] = stored.parameters
    try:
        same = content_hash([parameters["agent"], parameters["conditions"]])
        name, format = str(parameters["agent"]["name"]), parameters["format"]
        EVERY_FORMAT.index(format)
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"the system {stored.name!r} is damaged in the store") from error
    return same, name, format, parameters["conditions"]
