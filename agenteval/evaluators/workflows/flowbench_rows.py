"""Reads the row format of FlowBench (arXiv 2406.14884): predictions of turns, and of sessions.

One JSON list or JSON Lines. A turn has `messages` (system prompt first), `gt_thought` (an object,
with `Action` and `Action Input` where a call is due), `gt_response`, `predict`; or, as FlowSwitch
has it, `turn_id` and `ground_truth`. A session has `gt_actions_string`, `gen_dialog_str` (or
`gen_dialog_list`, or `gen_actions_string`) and what it keeps of a judge. The toolbox stands as text
in the system prompt.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal

from pydantic import JsonValue

from agenteval.errors import InputError
from agenteval.evaluators.workflows.align import Call
from agenteval.evaluators.workflows.reply_text import read_actions, read_object
from agenteval.evaluators.workflows.scenario import Action
from agenteval.evaluators.workflows.turn_score import GoldTurn
from agenteval.files import LARGE, read_text
from agenteval.readers.messages import parse_messages
from agenteval.readers.strict_json import Notes, decode
from agenteval.records import Message

Level = Literal["turn", "session"]
Row = Mapping[str, Any]
_PREDICT = ("predict", "prediction", "output")
_ID = ("id", "turn_id", "session_id")
_WORKFLOW = ("workflow_text", "text_workflow", "knowledge_text")
_TURN_ID = re.compile(r"(?:\A|[_-])(?:agent[_-])?turn[_-]?(\d{1,6})\Z", re.I)
_ROLES = frozenset({"system", "user", "assistant", "function", "tool"})
_SESSION_KEYS = ("gt_actions_string", "gen_dialog_str", "gen_dialog_list", "gen_actions_string")


@dataclass(frozen=True, slots=True)
class TurnRow:
    """A turn with its prediction. `action` and `action_input` are gold's own texts, None where it
    has none; `schemas` are those of the parameters by tool, as far as the row tells them."""

    where: str
    gold: GoldTurn
    predict: str
    action: str | None
    action_input: str | None
    prompt: str
    schemas: dict[str, dict[str, JsonValue]]
    history: str = ""
    workflow: str = ""
    messages: tuple[Message, ...] = ()  # without the prompt
    number: int = 0  # of the turn, as its id says, else as many as were before


@dataclass(frozen=True, slots=True)
class SessionRow:
    """A session: gold and generated calls, as texts and as read; what was wanted, and what the
    row keeps of an earlier judge (None where it keeps nothing)."""

    where: str
    id: str
    gold_text: str
    dialogue: str
    gold: tuple[Action, ...]
    calls: tuple[Call, ...]
    schemas: dict[str, dict[str, JsonValue]]
    wanted: str = ""
    workflow: str = ""
    success: bool | None = None
    progress: float | None = None


@dataclass(frozen=True, slots=True)
class Rows:
    """The rows of a file, all of one level."""

    level: Level
    turns: tuple[TurnRow, ...] = ()
    sessions: tuple[SessionRow, ...] = ()


def read_rows(path: Path, level: Level | None = None, *, predicted: bool = True) -> Rows:
    """The rows of a file; the level is told by the first row where it is not given. Turns must have
    a prediction, or with `predicted=False` messages.

    Raises InputError with the file, the row (from 1) and what is wrong with it.
    """
    rows = _documents(path)
    if level is None:
        level = "session" if any(key in rows[0][1] for key in _SESSION_KEYS) else "turn"
    if level == "turn":
        return Rows("turn", turns=tuple(_turn(row, at, i, predicted=predicted)
                                        for i, (at, row) in enumerate(rows)))  # fmt: skip
    return Rows("session", sessions=tuple(_session(row, at) for at, row in rows))


def pooled(files: Sequence[tuple[Path, Rows]]) -> Rows:
    """The rows of files of one level. What has one name in two files is two sessions: with more
    than one file, sessions are named after theirs too. Raises ValueError for several levels."""
    (level,) = {rows.level for _, rows in files}
    turns = [(path, row) for path, rows in files for row in rows.turns]
    sessions = [(path, row) for path, rows in files for row in rows.sessions]
    if len(files) == 1:
        return files[0][1]
    return Rows(
        level,
        tuple(
            replace(t, gold=t.gold.model_copy(update={"session": f"{path}: {t.gold.session}"}))
            for path, t in turns
        ),
        tuple(replace(s, id=f"{path}: {s.id}") for path, s in sessions),
    )


def _documents(path: Path) -> list[tuple[str, Row]]:
    """(place, row) of every row."""
    text, name = read_text(path, LARGE), str(path)
    notes = Notes()
    if text.lstrip().startswith("["):
        values = decode(text, name, notes=notes)
        rows = [(f"{name}, row {i}", value) for i, value in enumerate(values, 1)]
    else:
        rows = [
            (f"{name}:{i}", decode(line, name, i, notes))
            for i, line in enumerate(text.split("\n"), 1)
            if line.strip()
        ]
    if not rows:
        raise InputError("there are no rows", name)
    for at, row in rows:
        if not isinstance(row, dict):
            raise InputError("a row is an object", at)
    return rows


def _turn(row: Row, at: str, index: int, *, predicted: bool) -> TurnRow:
    truth = row.get("ground_truth")
    truth = truth if isinstance(truth, dict) else {}
    thought = row.get("gt_thought", truth.get("thought"))
    thought = read_object(thought) if isinstance(thought, str) else thought
    if not isinstance(thought, dict):
        raise InputError("gt_thought must be an object", at)
    action, text, arguments = _gold_call(thought, at)
    messages = _messages(row.get("messages", []), "messages", at)
    prompt = "\n\n".join(content for role, content in messages if role == "system")
    spoken = [(role, content) for role, content in messages if role != "system"]
    id = _id(row, at, f"row{index}")
    turn_number = _TURN_ID.search(id)
    node, intent = (thought.get(name) for name in ("current_node", "intent"))
    gold = GoldTurn(
        session=str(row.get("session") or (id[: turn_number.start()] if turn_number else id)),
        turn=len(spoken) or index,
        scenario=str(row.get("scenario") or ""),
        action=None if action is None
        else Action(tool=action.removeprefix("functions."), arguments=arguments),
        response=_text({"gt_response": truth.get("response"), **row}, ("gt_response",), at),
        node=node.strip() or None if isinstance(node, str) else None,
        intent=intent.strip() or None if isinstance(intent, str) else None,
    )  # fmt: skip
    return TurnRow(
        where=at, gold=gold, predict=_text(row, _PREDICT, at, needed=True) if predicted else "",
        action=action, action_input=text, prompt=prompt, schemas=told_schemas(row, prompt),
        history="\n".join(f"{role}: {content}" for role, content in spoken),
        workflow=_text(row, _WORKFLOW, at),
        messages=() if predicted else tuple(
            message for message in parse_messages(row.get("messages", []), "messages", at).messages
            if message.role != "system"
        ),
        number=int(turn_number[1]) if turn_number else gold.turn,
    )  # fmt: skip


def _gold_call(
    thought: dict[str, Any], at: str
) -> tuple[str | None, str | None, dict[str, JsonValue]]:
    """(tool, text of its input, the input read); (None, None, {}) where gold replies."""
    action = thought.get("Action") or ""
    given = thought.get("Action Input")
    if not isinstance(action, str):
        raise InputError("gt_thought.Action must be the name of a tool", at)
    action = action.strip()
    if not action:
        return None, None, {}
    if isinstance(given, dict):
        return action, json.dumps(given, ensure_ascii=False), given
    if given in (None, ""):
        return action, "", {}
    arguments = read_object(given) if isinstance(given, str) else None
    if arguments is None:
        raise InputError("gt_thought.Action Input must be a JSON object, or one as text", at)
    return action, given, arguments


def _messages(messages: Any, name: str, at: str) -> list[tuple[str, str]]:
    """(role, content) of each."""
    if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
        raise InputError(f"{name} must be a list of objects", at)
    return [(str(m.get("role") or "user"), _text(m, ("content",), at)) for m in messages]


def _session(row: Row, at: str) -> SessionRow:
    gold_text = _text(row, ("gt_actions_string",), at, needed=True)
    gold = []
    for call in read_actions(gold_text):
        if not isinstance(call.arguments, dict):
            raise InputError(f"gold's input of {call.tool} is no JSON object", at)
        gold.append(Action(tool=call.tool, arguments=call.arguments))
    if gold_text.strip() and not gold:
        raise InputError("gt_actions_string holds no line 'Action: <tool>'", at)
    dialogue, by_agent = _dialogue(row, at)
    agent = row.get("assistant_agent")
    prompt = (agent.get("assistant_prompt") if isinstance(agent, dict) else None) or row.get(
        "assistant_prompt"
    )
    success, progress = row.get("success_gpt"), row.get("progress_gpt")
    if success is not None and str(success) not in ("0", "1"):
        raise InputError(f"success_gpt must be 0 or 1, not {success!r:.40}", at)
    if progress is not None and (
        isinstance(progress, bool)
        or not isinstance(progress, int | float)
        or not 0 <= progress <= 1
    ):
        raise InputError(f"progress_gpt must be a number from 0 to 1, not {progress!r:.40}", at)
    return SessionRow(
        where=at, id=_id(row, at, at), gold_text=gold_text, dialogue=dialogue, gold=tuple(gold),
        calls=read_actions(by_agent), schemas=told_schemas(row, str(prompt or "")),
        wanted=_text(row, ("user_target",), at), workflow=_text(row, _WORKFLOW, at),
        success=None if success is None else str(success) == "1",
        progress=None if progress is None else float(progress),
    )  # fmt: skip


def _dialogue(row: Row, at: str) -> tuple[str, str]:
    """The whole dialogue, and what of it the agent said where the roles are told."""
    listed = row.get("gen_dialog_list")
    by_agent, spoken = None, list[tuple[str, str]]()
    if isinstance(listed, list) and listed and all(
        isinstance(m, dict) and "role" in m for m in listed
    ):  # fmt: skip
        unknown = sorted({str(m["role"]) for m in listed} - _ROLES)
        if unknown:  # whose calls they are could only be guessed
            raise InputError(
                f"role must be one of {', '.join(sorted(_ROLES))}, not {unknown[0]!r:.40}", at
            )
        spoken = _messages(listed, "gen_dialog_list", at)
        by_agent = "\n\n".join(content for role, content in spoken if role == "assistant")
    for key in ("gen_dialog_str", "gen_actions_string"):
        if row.get(key) is not None:
            text = _text(row, (key,), at)
            return text, text if by_agent is None else by_agent
    if by_agent is None:
        raise InputError("gen_dialog_str is missing (or gen_dialog_list with roles)", at)
    return "\n\n".join(f"{role}:\n{content}" for role, content in spoken), by_agent


def _id(row: Row, at: str, otherwise: str) -> str:
    value = next((row[name] for name in _ID if row.get(name) is not None), "")
    if isinstance(value, str | int) and not isinstance(value, bool):
        return str(value) or otherwise
    raise InputError("id must be a text or a number", at)


def _text(row: Row, names: tuple[str, ...], at: str, *, needed: bool = False) -> str:
    """The first of these members that is there, as a text; "" or an error without any."""
    name = next((name for name in names if row.get(name) is not None), None)
    if name is None:
        if needed:
            raise InputError(f"{names[0]} is missing", at)
        return ""
    value = row[name]
    if not isinstance(value, str):
        raise InputError(f"{name} must be a text, not {type(value).__name__}", at)
    return value


_API = re.compile(r"^API:[ \t]*(\w{1,128})[ \t]*$", re.M)
_INPUT = re.compile(r"^Input parameters:[ \t]*", re.M)


def told_schemas(row: Mapping[str, Any], prompt: str) -> dict[str, dict[str, JsonValue]]:
    """Schemas of the parameters by tool: those of the prompt, and those of the row's `apis`."""
    tools = dict(toolbox(prompt))
    apis = row.get("apis")
    for api in apis if isinstance(apis, list) else []:
        if not isinstance(api, dict):
            continue
        name = api.get("name") or api.get("api_name")
        parameters = next(
            (api[k] for k in ("parameters", "input_parameters") if isinstance(api.get(k), dict)),
            None,
        )
        if isinstance(name, str) and parameters is not None:
            tools.setdefault(name, _schema(parameters))
    return tools


def _schema(parameters: dict[str, Any]) -> dict[str, JsonValue]:
    """The parameters as a JSON schema; what is one already stays as it is."""
    if isinstance(parameters.get("properties"), dict):
        return parameters
    known: dict[str, JsonValue] = {
        name: about for name, about in parameters.items() if isinstance(about, dict)
    }
    return {"type": "object", "properties": known}


@lru_cache(maxsize=256)  # the turns of a scenario share their prompt
def toolbox(prompt: str) -> dict[str, dict[str, JsonValue]]:
    """Schemas of the parameters of the tools that a system prompt describes ("API: <name>", then
    "Input parameters: <JSON>"); tools whose parameters cannot be read are left out."""
    tools: dict[str, dict[str, JsonValue]] = {}
    names = list(_API.finditer(prompt))
    for i, name in enumerate(names):
        end = names[i + 1].start() if i + 1 < len(names) else len(prompt)
        start = _INPUT.search(prompt, name.end(), end)
        parameters = read_object(prompt[start.end() : end]) if start else None
        if parameters is not None:
            tools[name.group(1)] = _schema(parameters)
    return tools
