"""Turns in the row format of FlowBench as cases for an agent.

The agent gets the row's own prompt, the messages so far and the tools that the row describes; its
next step is compared with the row's gold step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pydantic import JsonValue, ValidationError

from agenteval.agents import Dialogue
from agenteval.agents.protocol import Tool
from agenteval.errors import InputError
from agenteval.readers.messages import parse_messages
from agenteval.records import Message, ToolCall, content_hash
from agenteval.workflows.cases import OpenRole, TurnCase, each_once
from agenteval.workflows.flowbench_rows import TurnRow, read_rows
from agenteval.workflows.reply_text import read_reply
from agenteval.workflows.results import CaseInfo
from agenteval.workflows.scenario import (
    Format,
    Goal,
    Profile,
    RecordedSession,
    Role,
    Scenario,
    Turn,
    WorkflowTool,
    schema_problem,
)
from agenteval.workflows.turn_score import GoldTurn

ENDINGS = (".json", ".jsonl")
_PROFILE = Profile(id="user", scenarios=("rows",), persona="", opening="-", goals=(Goal(text="-"),))
_NO_SESSION = RecordedSession.model_construct(id="rows", profile="user", turns=())
_TYPES = {"list": "array", "dict": "object", "str": "string", "int": "integer"}
_TYPES |= {"float": "number", "bool": "boolean"}


@dataclass(frozen=True, slots=True)
class RowCase(TurnCase):
    """A row: `dialogue` is what the agent is given, `row_gold` what it should do."""

    dialogue: Dialogue
    tools: tuple[Tool, ...]
    row_gold: GoldTurn

    in_words = True

    @property
    def turn(self) -> Turn:
        """The gold turn."""
        action = self.row_gold.action
        if action is None:
            return Turn.model_construct(kind="reply", text=self.row_gold.response)
        return Turn.model_construct(kind="call", tool=action.tool, arguments=action.arguments)

    @property
    def gold(self) -> GoldTurn:
        """What the row says that was right."""
        return self.row_gold

    @property
    def before(self) -> tuple[Message, ...]:
        """The talk before the turn."""
        return self.dialogue.messages

    @property
    def key(self) -> str:
        """Content hash (hex) of what is given, and gold."""
        shown = [message.model_dump(mode="json") for message in self.before]
        tools = [tool.model_dump(mode="json") for tool in self.tools]
        gold = self.row_gold.model_dump(mode="json")
        return content_hash(
            ["row", self.info.task, self.dialogue.instructions, shown, tools, gold, self.workflow]
        )

    def asked(self, format: Format) -> tuple[Dialogue, tuple[Tool, ...]]:
        """What the agent is given: the row has one format, its own."""
        return self.dialogue, self.tools


def row_cases(files: Sequence[Path]) -> list[TurnCase]:
    """Return a case for each turn row of the files. Raises InputError with file, row and what is
    wrong, also for a turn that is there twice."""
    cases: list[TurnCase] = []
    for path in files:
        rows = read_rows([path], "turn", predicted=False)
        cases += [_case(path, row) for row in rows.turns]
    return each_once(cases)


def _case(path: Path, row: TurnRow) -> RowCase:
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
    text, name = row.workflow or row.prompt, path.stem
    offered = tuple(WorkflowTool(**t.model_dump(), effect=None) for t in tools)
    scenario = Scenario.model_construct(id="rows", title=name, text=text, tools=offered)
    role = Role(id="rows", domain="", title=name, scenarios=(scenario,))
    gold, task = row.gold, f"{name}/{row.gold.session}"
    due = gold.response if gold.action is None else f"{gold.action.tool}({row.action_input})"
    info = CaseInfo(
        level="turn",
        id=f"{task}:{row.number}",
        task=task,
        role=name,
        domain="FlowBench rows",
        scenarios=(gold.scenario or name,),
        said=messages[-1].content,
        gold=due,
        version=content_hash([row.prompt, row.workflow]),
    )
    dialogue = Dialogue(instructions=row.prompt or None, messages=tuple(_talk(messages)))
    of = OpenRole(role, path, None, None)
    return RowCase(info, of, _PROFILE, _NO_SESSION, gold.turn, dialogue, tools, gold)


def _talk(messages: Sequence[Message]) -> Iterator[Message]:
    """Yield the messages with calls and results as such, where the text of a call is followed by
    its result; a result without a call becomes a message of the user."""
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
            answered = at + 1 < len(messages) and messages[at + 1].role == "tool"
            read = read_reply(message.content)
            if not message.tool_calls and read.form == "call" and answered:
                call = ToolCall(name=read.tool, arguments=read.arguments, id=f"call_{at}")
                message = message.model_copy(update={"tool_calls": (call,)})
                calls = [f"call_{at}"]
            else:
                calls = []
        yield message


def _tool(row: TurnRow, name: str) -> Tool:
    """Return a tool as function calling offers it. Rows write `required` beside a parameter's
    type, and types by their Python names."""
    schema: dict[str, Any] = row.schemas[name]
    properties: dict[str, JsonValue] = {}
    required = list(schema["required"]) if isinstance(schema.get("required"), list) else []
    for key, value in schema.get("properties", {}).items():
        about = dict(value) if isinstance(value, dict) else {}
        if about.pop("required", False) is True:
            required.append(key)
        if isinstance(kind := about.get("type"), str):
            about["type"] = _TYPES.get(kind.lower(), kind.lower())
        properties[key] = about
    parameters = {"type": "object", "properties": properties}
    parameters |= {"required": required} if required else {}
    if schema_problem(parameters):  # with types that JSON schema lacks, only the names are certain
        parameters = {"type": "object", "properties": {name: {} for name in properties}}
    text = re.search(rf"^API:\s*{re.escape(name)}\s*\nAPI Desc\w*:\s*(.+)$", row.prompt, re.M)
    return Tool(name=name, description=text[1].strip() if text else "", parameters=parameters)


def rows_among(paths: Sequence[object]) -> list[Path]:
    """Return the paths that are files of rows. Raises InputError where roles are beside them."""
    listed = [Path(path) for path in paths if isinstance(path, str | Path)]
    files = [path for path in listed if path.suffix in ENDINGS]
    if files and len(files) < len(paths):
        raise InputError("give files of rows, or roles, not both at once", "ROLE")
    return files
