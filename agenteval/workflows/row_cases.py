"""Turns in the row format of FlowBench as cases for an agent.

The agent gets the row's own prompt, the messages so far and the tools that the row describes; its
next step is compared with the row's gold step.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
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
from agenteval.workflows.scenario import Role, Scenario, WorkflowTool, schema_problem
from agenteval.workflows.tool_schema import json_types


def row_cases(files: Sequence[Path]) -> list[TurnCase]:
    """Return a case for each turn row of the files. Raises InputError with file, row and what is
    wrong, also for a turn that is there twice."""
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
    """Yield the messages, the text of a call that is followed by its result as a call; a result
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
    """Return a tool as function calling offers it. Rows write `required` beside a parameter's
    type, and types by their Python names."""
    schema: dict[str, Any] = row.schemas[name]
    properties: dict[str, JsonValue] = {
        key: value if isinstance(value, dict) else {}
        for key, value in schema.get("properties", {}).items()
    }
    parameters = {"type": "object", "properties": properties, "required": schema.get("required")}
    parameters = json_types(parameters)
    if schema_problem(parameters):  # with types that JSON schema lacks, only the names are certain
        parameters = {"type": "object", "properties": {name: {} for name in properties}}
    text = re.search(rf"^API:\s*{re.escape(name)}\s*\nAPI Desc\w*:\s*(.+)$", row.prompt, re.M)
    return Tool(name=name, description=text[1].strip() if text else "", parameters=parameters)


def rows_among(paths: Sequence[object]) -> list[Path]:
    """Return the paths that are files of rows. Raises InputError where roles are beside them."""
    listed = [Path(path) for path in paths if isinstance(path, str | Path)]
    files = [path for path in listed if path.suffix in (".json", ".jsonl")]
    if files and len(files) < len(paths):
        raise InputError("give either files of rows or roles", "ROLE")
    return files
