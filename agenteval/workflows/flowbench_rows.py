"""Read the row format of FlowBench (arXiv 2406.14884): predictions of turns, and of sessions.

A file is a JSON list or JSON Lines. A turn has `messages` (system prompt first), `gt_thought` (an
object, with `Action` and `Action Input` if a call is due), `gt_response` and `predict`; in the
layout of FlowSwitch, `turn_id` and `ground_truth`. A session has `gt_actions_string`,
`gen_dialog_str` or `gen_dialog_list`, and optionally the verdicts of an earlier judge. The system
prompt describes the tools as text. null counts as absent.

As a case for an agent, a turn gives it the row's own prompt, the messages so far and the tools that
the row describes; the agent's next step is compared with the row's gold step.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

from pydantic import JsonValue, ValidationError

from agenteval.agents import Dialogue
from agenteval.agents.protocol import Tool
from agenteval.errors import InputError
from agenteval.files import opened
from agenteval.readers.messages import parse_messages
from agenteval.readers.strict_json import Notes, read_items
from agenteval.records import Message, ToolCall, content_hash
from agenteval.workflows.cases import OpenRole, TurnCase, each_once
from agenteval.workflows.reply_text import read_actions, read_object, read_reply
from agenteval.workflows.results import CaseInfo, Level
from agenteval.workflows.scenario import (
    Action,
    Role,
    Scenario,
    WorkflowTool,
    json_types,
    schema_problem,
)
from agenteval.workflows.scores import GoldTurn

Schemas = dict[str, dict[str, JsonValue]]
_Object = Mapping[str, Any]
_TURN_ID = re.compile(r"(?:\A|[_-])(?:agent[_-])?turn[_-]?(\d{1,6})\Z", re.I)
_SESSION_KEYS = {"gt_actions_string", "gen_dialog_str", "gen_dialog_list"}
_ROLES = ("system", "user", "assistant", "function", "tool")
_API = re.compile(r"^API:[ \t]*(\w{1,128})[ \t]*$", re.M)
_PARAMETERS = re.compile(r"^Input parameters:[ \t]*", re.M)


class _FlowBenchRow:
    """A row as read. `schemas` are those of the parameters by tool."""

    def __init__(self, row: _Object, where: str) -> None:
        self.where, self._row = where, row
        self.workflow = self.text("workflow_text")
        name = row.get("turn_id", "") if row.get("id") is None else row["id"]
        if type(name) not in (str, int):
            raise InputError("id must be text or a number", where)
        self.name = str(name)

    def text(self, key: str, *, needed: bool = False) -> str:
        """Return the text, "" without one unless it is needed."""
        return _text(self._row, key, self.where, needed=needed)

    def contents(self, key: str) -> list[tuple[str, str]]:
        """Return role and content of each message."""
        messages = self._row.get(key) or []
        if not isinstance(messages, list) or not all(isinstance(m, dict) for m in messages):
            raise InputError(f"{key} must be a list of objects", self.where)
        return [(str(m.get("role") or "user"), _text(m, "content", self.where)) for m in messages]

    def described(self, prompt: str) -> Schemas:
        """Return the schemas in the prompt, then those in `apis`."""
        tools, apis = dict(_toolbox(prompt)), self._row.get("apis")
        for api in apis if isinstance(apis, list) else ():
            match api:
                case {"name": str(name), "parameters": dict(parameters)}:
                    tools.setdefault(name, _schema(parameters))
        return tools


class TurnRow(_FlowBenchRow):
    """A turn with its prediction. `action` and `action_input` are the gold texts, "" for a reply;
    `messages` are those of the row."""

    def __init__(self, row: _Object, where: str, prefix: str, index: int) -> None:
        truth = row.get("ground_truth")
        if isinstance(truth, dict):
            row = {"gt_thought": truth.get("thought"), "gt_response": truth.get("response"), **row}
        super().__init__(row, where)
        self.predict = self.text("predict")
        self.failed = "api call error" in self.predict  # instead of a prediction
        contents, self.messages = self.contents("messages"), row.get("messages") or []
        self.prompt = "\n\n".join(content for role, content in contents if role == "system")
        self.schemas = self.described(self.prompt)
        spoken = [f"{role}: {content}" for role, content in contents if role != "system"]
        self.history = "\n".join(spoken)
        thought = row.get("gt_thought")
        if not isinstance(thought, dict):
            raise InputError("gt_thought must be an object", where)
        self.action, text = _text(thought, "Action", where).strip(), thought.get("Action Input")
        if not isinstance(text, str):
            text = "" if text is None else json.dumps(text, ensure_ascii=False)
        self.action_input = text
        arguments = read_object(text) if self.action and text else {}
        if arguments is None:
            problem = "gt_thought: the Action Input must be a JSON object, or one as text"
            raise InputError(problem, where)
        tool, name = self.action.removeprefix("functions."), self.name or f"row{index}"
        step = {k: v.strip() for k, v in thought.items() if isinstance(v, str)}
        match = _TURN_ID.search(name)
        self.gold = GoldTurn(
            session=prefix + str(row.get("session") or _TURN_ID.sub("", name)),
            turn=len(spoken) or index,
            scenario=str(row.get("scenario") or ""),
            action=Action(tool=tool, arguments=arguments) if tool else None,
            response=self.text("gt_response"),
            node=step.get("current_node") or None,
            intent=step.get("intent") or None,
        )
        self.number = int(match[1]) if match else self.gold.turn


class SessionRow(_FlowBenchRow):
    """A session: gold and generated calls, as text and as read. `wanted` is the user's goal;
    `success` and `progress` are the verdicts of an earlier judge, or None."""

    def __init__(self, row: _Object, where: str, prefix: str) -> None:
        super().__init__(row, where)
        self.id = prefix + (self.name or where)
        self.wanted = self.text("user_target")
        self.gold_text = self.text("gt_actions_string", needed=True)
        gold = read_actions(self.gold_text)
        if self.gold_text.strip() and not gold:
            raise InputError("gt_actions_string holds no line 'Action: <tool>'", where)
        for call in gold:
            if not isinstance(call.arguments, dict):
                raise InputError(f"gold's input of {call.tool} is not a JSON object", where)
        self.gold = tuple(Action(tool=call.tool, arguments=call.arguments) for call in gold)
        listed = row.get("gen_dialog_list")
        roles = isinstance(listed, list) and all(type(m) is dict and "role" in m for m in listed)
        contents = self.contents("gen_dialog_list") if roles else []
        for role, _ in contents:
            if role not in _ROLES:  # otherwise one could only guess whose calls they are
                raise InputError(f"role must be one of {', '.join(_ROLES)}, not {role:.40}", where)
        from_list = "\n\n".join(f"{role}:\n{content}" for role, content in contents)
        self.dialogue = self.text("gen_dialog_str", needed=not contents) or from_list
        by_agent = "\n\n".join(content for role, content in contents if role == "assistant")
        self.calls = read_actions(by_agent if contents else self.dialogue)
        agent = row.get("assistant_agent")
        prompt = agent.get("assistant_prompt") if isinstance(agent, dict) else None
        self.schemas = self.described(str(prompt or row.get("assistant_prompt") or ""))
        success, progress = row.get("success_gpt"), row.get("progress_gpt")
        if success not in (None, "0", "1", 0, 1):
            raise InputError(f"success_gpt must be 0 or 1, not {success!r:.40}", where)
        if progress is not None and not (type(progress) in (int, float) and 0 <= progress <= 1):
            raise InputError(
                f"progress_gpt must be a number from 0 to 1, not {progress!r:.40}", where
            )
        self.success = None if success is None else success in ("1", 1)
        self.progress: float | None = progress


class Rows(NamedTuple):
    """The rows of files, all of the same level."""

    level: Level
    turns: tuple[TurnRow, ...] = ()
    sessions: tuple[SessionRow, ...] = ()


def _text(row: _Object, key: str, where: str, *, needed: bool = False) -> str:
    value = row.get(key)
    if value is None and not needed:
        return ""
    if not isinstance(value, str):
        kind = "missing" if value is None else f"no text, but {type(value).__name__}"
        raise InputError(f"{key} is {kind}", where)
    return value


def read_rows(paths: Sequence[Path], level: Level | None = None, *, predicted: bool = True) -> Rows:
    """Return the rows of files. The level defaults to that of the first row of each file.

    Turns need a prediction unless `predicted` is false. With several files, session names start
    with the file name. Raises InputError with file, row (from 1) and problem, or if some files
    contain turns and others sessions.
    """
    turns: list[TurnRow] = []
    sessions: list[SessionRow] = []
    for path in paths:
        rows = _objects(path)
        prefix = f"{path}: " if len(paths) > 1 else ""
        if level == "session" or (level is None and _SESSION_KEYS & rows[0][1].keys()):
            sessions += [SessionRow(row, at, prefix) for at, row in rows]
        else:
            turns += [TurnRow(row, at, prefix, index) for index, (at, row) in enumerate(rows)]
    for turn in turns if predicted else ():
        turn.text("predict", needed=True)
    if turns and sessions:
        raise InputError(
            "some files contain turns, others sessions; score them separately", "FILES"
        )
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
            raise InputError("a row must be an object", at)
    return rows


def _schema(parameters: _Object) -> dict[str, JsonValue]:
    """Return the parameters as a JSON schema; a JSON schema is returned unchanged."""
    if isinstance(parameters.get("properties"), dict):
        return {**parameters}
    properties: dict[str, JsonValue] = {
        name: about for name, about in parameters.items() if isinstance(about, dict)
    }
    return {"type": "object", "properties": properties}


@lru_cache(maxsize=256)  # the turns of a scenario share their prompt
def _toolbox(prompt: str) -> Schemas:
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


def row_cases(files: Sequence[Path]) -> list[TurnCase]:
    """Return a case for each turn row of the files. Raises InputError with file, row and problem,
    also for a duplicate turn."""
    rows = [
        (path, row) for path in files for row in read_rows([path], "turn", predicted=False).turns
    ]
    return each_once([_case(path, row) for path, row in rows])


def _case(path: Path, row: TurnRow) -> TurnCase:
    try:
        tools = tuple(_tool(row, name) for name in row.schemas)
    except ValidationError as error:
        raise InputError(f"a tool: {error.errors()[0]['msg']}", row.where) from error
    parsed = parse_messages(row.messages, "messages", row.where).messages
    messages = [message for message in parsed if message.role != "system"]
    if not messages or messages[-1].role == "assistant":
        raise InputError(
            "messages must end with what the agent answers: the user, or a tool's result", row.where
        )
    text, name, gold = row.workflow or row.prompt, path.stem, row.gold
    offered = tuple(WorkflowTool(**tool.model_dump()) for tool in tools)
    scenario = Scenario.model_construct(id="rows", title=name, text=text, tools=offered)
    role = Role(id="rows", domain="", title=name, scenarios=(scenario,))
    task = f"{name}/{gold.session}"
    info = CaseInfo(
        level="turn",
        id=f"{task}:{row.number}",
        task=task,
        role=name,
        domain="FlowBench rows",
        scenarios=(gold.scenario or name,),
        said=messages[-1].content,
        gold=f"{gold.action.tool}({row.action_input})" if gold.action else gold.response,
        version=content_hash([row.prompt, row.workflow]),
    )
    dialogue = Dialogue(instructions=row.prompt or None, messages=tuple(_conversation(messages)))
    shown = [message.model_dump(mode="json") for message in dialogue.messages]
    schemas = [tool.model_dump(mode="json") for tool in tools]
    of, due = OpenRole(role, path, None, None), gold.model_dump(mode="json")
    workflow = of.procedures(("rows",))
    return TurnCase(
        info=info,
        of=of,
        given=("rows",),
        gold=gold,
        before=dialogue.messages,
        key=content_hash(["row", task, dialogue.instructions, shown, schemas, due, workflow]),
        own_prompt=(dialogue, tools),
    )


def _conversation(messages: Sequence[Message]) -> Iterator[Message]:
    """Yield the messages. A text followed by the result of its call becomes a call; a result
    without a call becomes a message of the user."""
    calls: list[str] = []
    for at, message in enumerate(messages):
        if message.role == "tool" and message.tool_call_id is None:
            if calls:
                yield message.model_copy(update={"tool_call_id": calls.pop(0)})
            else:
                content = f"{message.name or 'A tool'} returned: {message.content}"
                yield Message(role="user", content=content)
            continue
        if message.role == "assistant":
            calls = []
            answered = at + 1 < len(messages) and messages[at + 1].role == "tool"
            read = read_reply(message.content)
            if not message.tool_calls and read.form == "call" and answered:
                calls = [f"call_{at}"]
                call = ToolCall(name=read.tool, arguments=read.arguments, id=calls[0])
                message = message.model_copy(update={"tool_calls": (call,)})
        yield message


def _tool(row: TurnRow, name: str) -> Tool:
    """Return a tool in the form of function calling. Rows have `required` next to a parameter's
    type, and Python names of types."""
    schema: dict[str, Any] = row.schemas[name]
    properties: dict[str, JsonValue] = {
        key: value if isinstance(value, dict) else {}
        for key, value in schema.get("properties", {}).items()
    }
    parameters = {"type": "object", "properties": properties, "required": schema.get("required")}
    parameters = json_types(parameters)
    if schema_problem(parameters):  # if JSON schema lacks the types, only the names are certain
        parameters = {"type": "object", "properties": {name: {} for name in properties}}
    text = re.search(rf"^API:\s*{re.escape(name)}\s*\nAPI Desc\w*:\s*(.+)$", row.prompt, re.M)
    return Tool(name=name, description=text[1].strip() if text else "", parameters=parameters)


def rows_among(paths: Sequence[object]) -> list[Path]:
    """Return the paths that are files of rows. Raises InputError if roles are given too."""
    listed = [Path(path) for path in paths if isinstance(path, str | Path)]
    files = [path for path in listed if path.suffix in (".json", ".jsonl")]
    if files and len(files) < len(paths):
        raise InputError("give either files of rows or roles", "ROLE")
    return files
