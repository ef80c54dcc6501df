"""Messages and events of AutoGen AgentChat to Messages.

Every message has a `source` (the agent's name, or "user") and a `type`. Tool requests become tool
calls of an assistant message, executions become tool messages, thoughts and all texts of agents
become assistant messages under the agent's name. Streaming chunks are dropped when the message
they belong to follows, else joined. Ids, times and per-message metadata are bookkeeping and are not
kept; `models_usage` is kept as sums.
"""

from __future__ import annotations

from typing import Any

from agenteval.errors import InputError
from agenteval.readers.fields import json_text
from agenteval.readers.messages import Conversation, Parts, is_answer, tool_call
from agenteval.records import Message

_USERS = frozenset({"user", "human", "user_proxy"})
_SILENT = frozenset({"UserInputRequestedEvent"})
_CHUNK = "ModelClientStreamingChunkEvent"
# Texts of agents that are steps on the way, never the answer.
_STEPS = frozenset(
    {
        "ThoughtEvent", "StopMessage", "HandoffMessage", "SelectSpeakerEvent", "SelectorEvent",
        "CodeGenerationEvent", "MemoryQueryEvent",
    }
)  # fmt: skip


def is_event_list(value: Any) -> bool:
    """Whether `value` is a non-empty list of AgentChat messages and events."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(item, dict)
            and isinstance(item.get("source"), str)
            and isinstance(item.get("type"), str)
            for item in value
        )
    )


def parse_events(value: list[Any], key: str, place: str) -> Conversation:
    """Messages of a TaskResult. Raises InputError naming the message that is wrong."""
    talk = Conversation()
    pending: dict[str, list[str]] = {}  # chunks by agent, until their whole message comes
    for i, item in enumerate(value):
        source, kind = item["source"], item["type"]
        if kind in _SILENT:
            continue
        if kind == _CHUNK:
            pending.setdefault(source, []).append(_text(item.get("content")))
            continue
        messages = _parse(item, f"{key}[{i}]", place)
        if kind not in ("ToolCallExecutionEvent", "ThoughtEvent"):
            pending.pop(source, None)
        talk.messages.extend(messages)
        talk.objects.extend(
            (messages[0].role, f"{key}[{i}].content", shown) for shown in _objects_shown(item)
        )
        last = messages[-1] if messages else None
        if last and last.role == "assistant" and kind not in _STEPS and is_answer(last.content):
            talk.answer = last.content
    for source, chunks in pending.items():
        talk.messages.append(Message(role="assistant", name=source, content="".join(chunks)))
    if usage := _usage(value):
        talk.extras["usage"] = usage
    return talk


def _parse(item: dict[str, Any], where: str, place: str) -> list[Message]:
    source, kind, content = item["source"], item["type"], item.get("content")
    if kind == "ToolCallRequestEvent":
        calls = tuple(
            tool_call(call, f"{where}.content[{i}]", place, parse=True)
            for i, call in enumerate(_objects(content, where, place))
        )
        return [Message(role="assistant", name=source, tool_calls=calls)]
    if kind == "ToolCallExecutionEvent":
        return [_tool_result(result) for result in _objects(content, where, place)]
    if kind == "CodeExecutionEvent":
        result = item.get("result")
        output = result.get("output") if isinstance(result, dict) else None
        return [Message(role="tool", name=source, content=_text(output))]
    if kind == "MemoryQueryEvent":
        return [Message(role="tool", name=source, content=_text(content))]
    if source.lower() in _USERS:
        return [Message(role="user", content=_text(content))]
    return [Message(role="assistant", name=source, content=_text(content))]


def _tool_result(result: dict[str, Any]) -> Message:
    name, call_id = result.get("name"), result.get("call_id")
    return Message(
        role="tool",
        content=("[error] " if result.get("is_error") is True else "")
        + _text(result.get("content")),
        name=name if isinstance(name, str) else None,
        tool_call_id=call_id if isinstance(call_id, str) else None,
    )


def _objects(value: Any, where: str, place: str) -> list[dict[str, Any]]:
    if not isinstance(value, list) or not all(isinstance(item, dict) for item in value):
        raise InputError(f"{where}.content is no list of objects", place)
    return value


def _text(content: Any) -> str:
    """Text of a content: strings, lists of strings and images, objects of a structured message."""
    if isinstance(content, dict):
        return json_text(content)
    if isinstance(content, list):
        return "\n".join("[image]" if _is_image(part) else _text(part) for part in content)
    parts = Parts()
    parts.add(content)
    return "\n".join(parts.texts)


def _objects_shown(item: dict[str, Any]) -> list[Any]:
    """What of the content of a message or event is shown as JSON."""
    content = item.get("content")
    parts = content if isinstance(content, list) else [content]
    if item["type"] == "ToolCallRequestEvent":
        return []
    if item["type"] == "ToolCallExecutionEvent":
        parts = [part.get("content") for part in parts if isinstance(part, dict)]
    return [part for part in parts if isinstance(part, dict) and not _is_image(part)]


def _is_image(part: Any) -> bool:
    return isinstance(part, dict) and set(part) == {"data"} and isinstance(part["data"], str)


def _usage(value: list[Any]) -> dict[str, int]:
    sums: dict[str, int] = {}
    for item in value:
        usage = item.get("models_usage")
        for name in ("prompt_tokens", "completion_tokens"):
            count = usage.get(name) if isinstance(usage, dict) else None
            if isinstance(count, int) and not isinstance(count, bool):
                sums[name] = sums.get(name, 0) + count
    return sums
