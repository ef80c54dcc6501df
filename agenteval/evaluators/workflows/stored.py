"""Trials of workflows as they are stored, read back as results."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

from pydantic import JsonValue

from agenteval.agents import AgentFailure
from agenteval.errors import StoreError
from agenteval.evaluators.workflows.results import (
    CaseInfo,
    Level,
    SessionResult,
    SessionVerdict,
    TurnJudged,
    TurnResult,
)
from agenteval.evaluators.workflows.scenario import FORMATS, Format
from agenteval.evaluators.workflows.session import Prediction, SessionFailure, SessionLog
from agenteval.records import content_hash
from agenteval.store import Store, Trial, Trials, TrialSystem, distinct, of_one_state

EVALUATORS: dict[Level, str] = {"turn": "workflows.turn", "session": "workflows.session"}


class _System(NamedTuple):
    """A stored system: `same` is a hash of all but its format."""

    agent: str
    format: Format
    settings: dict[str, JsonValue]
    same: str


class _About(NamedTuple):
    """The first fields of a result."""

    case: CaseInfo
    system: str
    agent: str
    format: Format
    settings: dict[str, JsonValue]
    trial: int


@of_one_state
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


@of_one_state
def load_turns(
    store: Store, *, cases: Iterable[str] | None = None, systems: Iterable[str] | None = None
) -> list[TurnResult]:
    """Stored predictions, as `load_sessions`."""
    found = []
    for about, t in _rows(store, "turn", cases, systems):
        said = None if t.verdict is None else TurnJudged.model_validate(t.verdict)
        found.append(
            TurnResult(
                *about,
                AgentFailure.model_validate(t.log)
                if t.status != "done"
                else Prediction.model_validate(t.log),
                said.turn if said else None,
                said.grade if said else None,
                said.failures if said else (),
            )
        )
    return found


def _rows(
    store: Store, level: Level, cases: Iterable[str] | None, systems: Iterable[str] | None
) -> list[tuple[_About, Trial]]:
    """What each trial is about, with the trial.

    Agents of one name under different conditions, and tasks of one name in several versions, get a
    piece of a hash behind their names.
    """
    tables, name = Trials(store), EVALUATORS[level]
    infos = _told_apart({c.key: CaseInfo.model_validate(c.body) for c in tables.cases(name)})
    known = {s.key: _system(s) for s in tables.systems(name)}
    agents = distinct({s.same: s.agent for s in known.values()})
    found = []
    for trial in tables.trials(name, cases, systems):
        system = known[trial.system_key]
        agent = agents[system.same]
        about = _About(
            infos[trial.case_key], f"{agent} · {system.format}", agent, system.format,
            system.settings, trial.trial,
        )  # fmt: skip
        found.append((about, trial))
    return sorted(found, key=lambda row: _place(row[0]))


def _system(stored: TrialSystem) -> _System:
    parameters: dict[str, Any] = stored.parameters
    try:
        same = content_hash([parameters["agent"], parameters["conditions"]])
        name, format = str(parameters["agent"]["name"]), parameters["format"]
        FORMATS.index(format)
    except (KeyError, TypeError, ValueError) as error:
        raise StoreError(f"the system {stored.name!r} is damaged in the store") from error
    return _System(name, format, parameters["conditions"], same)


def _told_apart(infos: dict[str, CaseInfo]) -> dict[str, CaseInfo]:
    """The same, a task of several versions under a name for each."""
    tasks = distinct({info.version + info.task: info.task for info in infos.values()})
    named = {}
    for key, info in infos.items():
        task = tasks[info.version + info.task]
        id = info.id + task.removeprefix(info.task)
        named[key] = info.model_copy(update={"id": id, "task": task})
    return named


def _place(about: _About) -> tuple[str, int, str, str, int]:
    """By agent, format as in FORMATS, system, case and number."""
    return (
        about.agent, FORMATS.index(about.format), about.system, about.case.id, about.trial,
    )  # fmt: skip
