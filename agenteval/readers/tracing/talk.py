"""Messages and tools of LLM spans. Equal ones are one object: spans repeat them again and again."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

from agenteval.readers.decode import decode_arguments
from agenteval.readers.draft import Context
from agenteval.readers.messages import ROLES, Parts
from agenteval.readers.tracing.flat import json_or_none, text_of
from agenteval.records import Message, ToolCall, ToolSpec
from agenteval.records.run import Role

# Beyond the roles that message lists know; smolagents has the two last.
_MORE_ROLES: dict[str, Role] = {"tool-response": "tool", "tool-call": "assistant"}
_Call = tuple[str | None, str, str]  # id, name, arguments as text


@dataclass
class Pool:
    """What spans share. Lives as long as one reading."""

    _messages: dict[Any, Message] = field(default_factory=dict)
    _tools: dict[str, ToolSpec | None] = field(default_factory=dict)

    def message(
        self,
        role: Role,
        content: str,
        calls: Sequence[_Call] = (),
        name: str | None = None,
        call_id: str | None = None,
    ) -> Message:
        """The one Message with these fields; arguments of calls are read as JSON."""
        key = (role, content, tuple(calls), name, call_id)
        found = self._messages.get(key)
        if found is None:
            made = tuple(
                ToolCall(name=called, arguments=_arguments(text), id=number)
                for number, called, text in calls
            )
            found = self._messages[key] = Message(
                role=role, content=content, name=name, tool_calls=made, tool_call_id=call_id
            )
        return found

    def tool(self, value: Any) -> ToolSpec | None:
        """The tool of a description in the form of OpenAI, Anthropic or MCP; None if it is none."""
        text = text_of(value)
        if text not in self._tools:
            self._tools[text] = _tool(json_or_none(text))
        return self._tools[text]


def _arguments(text: str) -> Any:
    return decode_arguments(text) if text else None


def _tool(value: Any) -> ToolSpec | None:
    inner = value.get("function") if isinstance(value, dict) else None
    tool = inner if isinstance(inner, dict) else value
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        return None
    keys = ("parameters", "input_schema", "inputSchema", "inputs")
    schema = next((tool[k] for k in keys if isinstance(tool.get(k), dict)), None)
    if _depth_over(schema, 64):
        schema = None
    return ToolSpec(name=tool["name"], description=text_of(tool.get("description")),
                    parameters=schema)  # fmt: skip


def _depth_over(value: Any, most: int) -> bool:
    level = [value]
    for _ in range(most):
        level = [
            inner
            for item in level
            if isinstance(item, (dict, list))
            for inner in (item.values() if isinstance(item, dict) else item)
        ]
    return bool(level)


def parse_talk(value: Any, default: Role, pool: Pool, context: Context) -> list[Message] | None:
    """Messages of a list in the form of OpenInference, GenAI parts or OpenAI; None if it is none.

    An item that is no message is shown as JSON, in its place, rather than dropped.
    """
    if isinstance(value, str):
        value = json_or_none(value)
    if isinstance(value, dict):
        value = [value]
    if not isinstance(value, list) or not any(isinstance(item, dict) for item in value):
        return None
    messages: list[Message] = []
    for item in value:
        if isinstance(item, dict):
            inner = item.get("message")
            messages += _message(inner if isinstance(inner, dict) else item, default, pool, context)
        else:
            messages.append(pool.message(default, text_of(item)))
    return messages


def _message(item: dict[str, Any], default: Role, pool: Pool, context: Context) -> list[Message]:
    said = _Said()
    for key in ("content", "contents", "parts"):
        said.add(item.get(key))
    for key in ("refusal", "reasoning_content"):
        if not said.texts and isinstance(item.get(key), str):
            said.add(item[key])
    said.calls += _calls(item.get("tool_calls"))
    said.calls += _calls(item.get("function_call"))
    legacy = item.get("function_call_name")
    if isinstance(legacy, str):
        said.calls.append((None, legacy, text_of(item.get("function_call_arguments_json"))))
    role = _role(item.get("role"), default, context)
    results = [pool.message("tool", text, call_id=number) for number, text in said.results]
    if results and not said.texts and not said.calls:
        return results
    name, number = item.get("name"), item.get("tool_call_id", item.get("id"))
    made = pool.message(
        role,
        "\n".join(said.texts),
        said.calls,
        name if isinstance(name, str) and name else None,
        number if isinstance(number, str) and number and role == "tool" else None,
    )
    return [*results, made]


def _role(value: Any, default: Role, context: Context) -> Role:
    if not isinstance(value, str) or not value:
        context.notes.add(f"a message without role was read as of the {default}", context.place)
        return default
    word = value.lower().rpartition(".")[2]
    role = ROLES.get(word) or _MORE_ROLES.get(word)
    if role is None:
        context.notes.add(f"the role {value[:40]!r} was read as {default}", context.place)
        return default
    return role


@dataclass
class _Said:
    """Contents of a message taken apart: texts, calls, and results of tools (call id, text)."""

    texts: list[str] = field(default_factory=list)
    calls: list[_Call] = field(default_factory=list)
    results: list[tuple[str | None, str]] = field(default_factory=list)

    def add(self, value: Any) -> None:
        for part in value if isinstance(value, list) else [value]:
            if isinstance(part, dict):
                inner = part.get("message_content")
                self._part(inner if isinstance(inner, dict) else part)
            elif part is not None and part != "":
                self.texts.append(text_of(part))

    def _part(self, part: dict[str, Any]) -> None:
        kind = part.get("type")
        if kind in ("tool_call", "tool_use") and isinstance(part.get("name"), str):
            self.calls += _calls(part)
        elif kind in ("tool_call_response", "tool_result"):
            held = next((part[k] for k in ("response", "result", "content") if k in part), None)
            inner = _Said()
            inner.add(held)
            number = part.get("id", part.get("tool_use_id"))
            text = "\n".join(inner.texts)
            self.results.append((number if isinstance(number, str) else None, text))
        elif isinstance(part.get("content"), str) and kind in ("text", "reasoning"):
            self.texts.append(part["content"])
        else:
            parts = Parts()
            parts.add(part)
            self.texts += parts.texts


def _calls(value: Any) -> list[_Call]:
    """Calls in a list or alone; in the form of OpenAI, OpenInference or GenAI."""
    if isinstance(value, str):
        value = json_or_none(value)
    rows = value if isinstance(value, list) else [value]
    return [_call(row) for row in rows if isinstance(row, dict) and row]


def _call(item: dict[str, Any]) -> _Call:
    inner = item.get("tool_call")
    outer: dict[str, Any] = inner if isinstance(inner, dict) else item
    inner = outer.get("function")
    function: dict[str, Any] = inner if isinstance(inner, dict) else outer
    name, number = function.get("name"), outer.get("id")
    keys = ("arguments", "args", "input")
    arguments = next((function[k] for k in keys if k in function), None)
    return (
        number if isinstance(number, str) and number else None,
        name if isinstance(name, str) else "",
        arguments if isinstance(arguments, str) else _json(arguments),
    )


def _json(value: Any) -> str:
    return "" if value is None else json.dumps(value, ensure_ascii=False)
