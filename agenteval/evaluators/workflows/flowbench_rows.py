"""Reads the row format of FlowBench (arXiv 2406.14884): predictions of turns, and of sessions.

A file is a JSON list or JSON Lines. A turn has `messages` (system prompt first), `gt_thought` (an
object, with `Action` and `Action Input` where a call is due), `gt_response` and `predict`; in the
layout of FlowSwitch, `turn_id` and `ground_truth`. A session has `gt_actions_string`,
`gen_dialog_str` or `gen_dialog_list`, and perhaps what an earlier judge said. The system prompt
describes the tools as text. null counts as absent.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import JsonValue

from agenteval.errors import InputError
from agenteval.evaluators.workflows.align import Call
from agenteval.evaluators.workflows.reply_text import read_actions, read_object
from agenteval.evaluators.workflows.scenario import Action
from agenteval.evaluators.workflows.turn_score import GoldTurn
from agenteval.files import opened
from agenteval.readers.strict_json import Notes, read_items

Level = Literal["turn", "session"]
Schemas = dict[str, dict[str, JsonValue]]
_Object = Mapping[str, Any]
_ERROR = "api call error"  # what FlowBench's scripts write in place of a prediction
_TURN_ID = re.compile(r"(?:\A|[_-])(?:agent[_-])?turn[_-]?(\d{1,6})\Z", re.I)
_SESSION_KEYS = {"gt_actions_string", "gen_dialog_str", "gen_dialog_list"}
_ROLES = {"system", "user", "assistant", "function", "tool"}
_API = re.compile(r"^API:[ \t]*(\w{1,128})[ \t]*$", re.M)
_PARAMETERS = re.compile(r"^Input parameters:[ \t]*", re.M)


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A turn with its prediction. `action` and `action_input` are gold's own texts, "" at a reply;
    `schemas` are those of the parameters by tool, `messages` those of the row."""

    where: str
    gold: GoldTurn
    predict: str
    action: str
    action_input: str
    prompt: str
    schemas: Schemas
    history: str
    workflow: str
    messages: Any
    number: int  # of the turn, from its id, else the number of messages before it

    @property
    def failed(self) -> bool:
        """Whether an error is in the place of the prediction."""
        return _ERROR in self.predict


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session: gold and generated calls, as text and as read. `wanted` is the user's goal;
    `success` and `progress` are those of an earlier judge, None where the row has none."""

    where: str
    id: str
    gold_text: str
    dialogue: str
    gold: tuple[Action, ...]
    calls: tuple[Call, ...]
    schemas: Schemas
    wanted: str
    workflow: str
    success: bool | None
    progress: float | None


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of files, all of one level."""

    level: Level
    turns: tuple[TurnRow, ...] = ()
    sessions: tuple[SessionRow, ...] = ()

    @property
    def all(self) -> tuple[TurnRow | SessionRow, ...]:
        """Return the rows, whatever their level."""
        return (*self.turns, *self.sessions)


def read_rows(paths: Sequence[Path], level: Level | None = None, *, predicted: bool = True) -> Rows:
    """Return the rows of files; the first row of each tells the level unless it is given.

    Turns need a prediction unless `predicted` is false. With several files, names of sessions begin
    with their file's. Raises InputError with the file, the row (from 1) and what is wrong, and when
    some files hold turns and others sessions.
    """
    turns: list[TurnRow] = []
    sessions: list[SessionRow] = []
    for path in paths:
        rows = _objects(path)
        prefix = f"{path}: " if len(paths) > 1 else ""
        if level == "session" or (level is None and _SESSION_KEYS & rows[0][1].keys()):
            sessions += [_session(row, at, prefix) for at, row in rows]
        else:
            turns += [_turn(row, at, prefix, index) for index, (at, row) in enumerate(rows)]
            for at, row in rows if predicted else ():
                _text(row, "predict", at, needed=True)
    if turns and sessions:
        raise InputError("some files hold turns, others sessions; score them apart", "FILES")
    return Rows("turn" if turns else "session", tuple(turns), tuple(sessions))


def _objects(path: Path) -> list[tuple[str, _Object]]:
    """Return the rows, each with its place."""
    rows: list[tuple[str, _Object]] = []
    with opened(path) as stream:
        for item in read_items(stream, str(path), Notes(), lines=False):
            if isinstance(item.value, list):
                rows += [(f"{path}, row {n}", value) for n, value in enumerate(item.value, 1)]
            else:
                rows.append((item.place, item.value))
    if not rows:
        raise InputError("there are no rows", str(path))
    for at, row in rows:
        if not isinstance(row, dict):
            raise InputError("a row is an object", at)
    return rows


def _turn(row: _Object, at: str, prefix: str, index: int) -> TurnRow:
    truth = row.get("ground_truth")
    if isinstance(truth, dict):
        row = {"gt_thought": truth.get("thought"), "gt_response": truth.get("response")} | {**row}
    thought = row.get("gt_thought")
    if not isinstance(thought, dict):
        raise InputError("gt_thought must be an object", at)
    action, action_input = _text(thought, "Action", at).strip(), thought.get("Action Input")
    if not isinstance(action_input, str):
        action_input = "" if action_input is None else json.dumps(action_input, ensure_ascii=False)
    arguments = read_object(action_input) if action and action_input else {}
    if arguments is None:
        raise InputError("gt_thought: the Action Input must be a JSON object, or one as text", at)
    messages = _messages(row, "messages", at)
    prompt = "\n\n".join(content for role, content in messages if role == "system")
    spoken = [f"{role}: {content}" for role, content in messages if role != "system"]
    name = _name(row, at) or f"row{index}"
    match = _TURN_ID.search(name)
    gold = GoldTurn(
        session=prefix + str(row.get("session") or _TURN_ID.sub("", name)),
        turn=len(spoken) or index,
        scenario=str(row.get("scenario") or ""),
        action=Action(tool=action.removeprefix("functions."), arguments=arguments)
        if action
        else None,
        response=_text(row, "gt_response", at),
        node=_stated(thought.get("current_node")),
        intent=_stated(thought.get("intent")),
    )
    return TurnRow(
        where=at,
        gold=gold,
        predict=_text(row, "predict", at),
        action=action,
        action_input=action_input,
        prompt=prompt,
        schemas=_schemas(row, prompt),
        history="\n".join(spoken),
        workflow=_text(row, "workflow_text", at),
        messages=row.get("messages") or [],
        number=int(match[1]) if match else gold.turn,
    )


def _session(row: _Object, at: str, prefix: str) -> SessionRow:
    gold_text = _text(row, "gt_actions_string", at, needed=True)
    gold = read_actions(gold_text)
    if gold_text.strip() and not gold:
        raise InputError("gt_actions_string holds no line 'Action: <tool>'", at)
    for call in gold:
        if not isinstance(call.arguments, dict):
            raise InputError(f"gold's input of {call.tool} is not a JSON object", at)
    listed = row.get("gen_dialog_list")
    if not isinstance(listed, list) or not all(type(m) is dict and "role" in m for m in listed):
        row = {**row, "gen_dialog_list": None}
    messages = _messages(row, "gen_dialog_list", at)
    if unknown := sorted({role for role, _ in messages} - _ROLES):  # whose calls would be guessed
        problem = f"role must be one of {', '.join(sorted(_ROLES))}, not {unknown[0]!r:.40}"
        raise InputError(problem, at)
    dialogue = "\n\n".join(f"{role}:\n{content}" for role, content in messages)
    dialogue = _text(row, "gen_dialog_str", at, needed=not messages) or dialogue
    by_agent = "\n\n".join(content for role, content in messages if role == "assistant")
    agent, success, progress = map(row.get, ("assistant_agent", "success_gpt", "progress_gpt"))
    prompt = agent.get("assistant_prompt") if isinstance(agent, dict) else None
    if success not in (None, "0", "1", 0, 1):
        raise InputError(f"success_gpt must be 0 or 1, not {success!r:.40}", at)
    if progress is not None and not (type(progress) in (int, float) and 0 <= progress <= 1):
        raise InputError(f"progress_gpt must be a number from 0 to 1, not {progress!r:.40}", at)
    return SessionRow(
        where=at,
        id=prefix + (_name(row, at) or at),
        gold_text=gold_text,
        dialogue=dialogue,
        gold=tuple(Action(tool=call.tool, arguments=call.arguments) for call in gold),
        calls=read_actions(by_agent if messages else dialogue),
        schemas=_schemas(row, str(prompt or row.get("assistant_prompt") or "")),
        wanted=_text(row, "user_target", at),
        workflow=_text(row, "workflow_text", at),
        success=None if success is None else success in ("1", 1),
        progress=progress,
    )


def _messages(row: _Object, key: str, at: str) -> list[tuple[str, str]]:
    """Return role and content of each message."""
    messages = row.get(key) or []
    if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
        raise InputError(f"{key} must be a list of objects", at)
    return [(str(m.get("role") or "user"), _text(m, "content", at)) for m in messages]


def _name(row: _Object, at: str) -> str:
    name = row.get("id") if row.get("id") is not None else row.get("turn_id", "")
    if type(name) not in (str, int):
        raise InputError("id must be text or a number", at)
    return str(name)


def _text(row: _Object, key: str, at: str, *, needed: bool = False) -> str:
    value = row.get(key)
    if value is None and not needed:
        return ""
    if not isinstance(value, str):
        kind = type(value).__name__
        raise InputError(
            f"{key} is missing" if value is None else f"{key} must be text, not {kind}", at
        )
    return value


def _stated(value: Any) -> str | None:
    return value.strip() or None if isinstance(value, str) else None


def _schemas(row: _Object, prompt: str) -> Schemas:
    """Return the schemas of parameters by tool: those of the prompt, then those of `apis`."""
    tools = dict(toolbox(prompt))
    for api in row["apis"] if isinstance(row.get("apis"), list) else ():
        match api:
            case {"name": str(name), "parameters": dict(parameters)}:
                tools.setdefault(name, _schema(parameters))
    return tools


def _schema(parameters: _Object) -> dict[str, JsonValue]:
    """Return the parameters as a JSON schema; what is one already stays as it is."""
    if isinstance(parameters.get("properties"), dict):
        return {**parameters}
    properties: dict[str, JsonValue] = {
        name: about for name, about in parameters.items() if isinstance(about, dict)
    }
    return {"type": "object", "properties": properties}


@lru_cache(maxsize=256)  # the turns of a scenario share their prompt
def toolbox(prompt: str) -> Schemas:
    """Return the schemas of the parameters of the tools that a system prompt describes
    ("API: <name>", then "Input parameters: <JSON>"), without those that cannot be read."""
    tools: Schemas = {}
    names = list(_API.finditer(prompt))
    ends = [*(name.start() for name in names), len(prompt)][1:]
    for name, end in zip(names, ends, strict=bool(names)):
        start = _PARAMETERS.search(prompt, name.end(), end)
        parameters = read_object(prompt[start.end() : end]) if start else None
        if parameters is not None:
            tools[name[1]] = _schema(parameters)
    return tools
