"""Lists of messages, in the forms of OpenAI, its relatives and AutoGen AgentChat, to Messages.

Every message of AgentChat has a `source` (the agent's name, or "user") and a `type`. Tool requests
become tool calls of an assistant message, executions become tool messages, thoughts and all texts
of agents become assistant messages under the agent's name. Streaming chunks are dropped when the
message they belong to follows, else joined. Ids, times and per-message metadata are bookkeeping and
are not kept; `models_usage` is kept as sums.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agenteval.errors import InputError
from agenteval.readers.fields import json_text
from agenteval.readers.strict_json import decode_arguments
from agenteval.records import Message, ToolCall
from agenteval.records.run import Role

ROLES: dict[str, Role] = {
    "system": "system",
    "developer": "system",
    "user": "user",
    "human": "user",
    "assistant": "assistant",
    "ai": "assistant",
    "gpt": "assistant",
    "model": "assistant",
    "bot": "assistant",
    "agent": "assistant",
    "tool": "tool",
    "function": "tool",
    "observation": "tool",
    "ipython": "tool",
}
_READ = {
    "role",
    "from",
    "content",
    "value",
    "text",
    "name",
    "tool_calls",
    "tool_call_id",
    "function_call",
    "refusal",
}
_PLAIN = {"role", "content"}
_PLACEHOLDERS = {
    "image": "[image]",
    "image_url": "[image]",
    "input_image": "[image]",
    "audio": "[audio]",
    "input_audio": "[audio]",
    "file": "[file]",
    "input_file": "[file]",
    "document": "[file]",
    "video": "[video]",
    "video_url": "[video]",
}
_USERS = frozenset({"user", "human", "user_proxy"})
_CHUNK = "ModelClientStreamingChunkEvent"
# Texts of agents that are steps on the way, never the answer.
_STEPS = frozenset(
    {
        "ThoughtEvent",
        "StopMessage",
        "HandoffMessage",
        "SelectSpeakerEvent",
        "SelectorEvent",
        "CodeGenerationEvent",
        "MemoryQueryEvent",
    }
)
# Word by which AutoGen agents end a conversation; alone it is no answer.
STOP_WORD = "TERMINATE"


@dataclass
class Conversation:
    """Messages read from one list.

    `answer` is the text of the last message that answers (None when there is none), `extras` holds
    what the messages said beyond the fields of Message, by position in the source list, `objects`
    what is shown as JSON: who said it, its place in the source list and the value.
    """

    messages: list[Message] = field(default_factory=list)
    answer: str | None = None
    extras: dict[str, Any] = field(default_factory=dict)
    objects: list[tuple[Role, str, Any]] = field(default_factory=list)

    @property
    def first_user(self) -> str | None:
        """Text of the first user message."""
        return next((m.content for m in self.messages if m.role == "user"), None)


def role_of(item: Any) -> Role | None:
    """Role of a message-like object (`role`, ShareGPT's `from`, LangChain's `type`), else None."""
    if not isinstance(item, dict):
        return None
    for key in ("role", "from", "type"):
        value = item.get(key)
        if isinstance(value, str):
            return ROLES.get(value.lower())
    return None


def is_message_list(value: Any) -> bool:
    """Whether `value` is a non-empty list of messages whose roles are all known."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            role_of(item) is not None and ("content" in item or len(item.keys() & _READ) > 1)
            for item in value
        )
    )


def messages_in(value: Any) -> list[Any] | None:
    """The messages that a value is: a list, the one list of a list, an object of `messages` and no
    more, also as LangChain writes its own objects; None where it is something else."""
    if isinstance(value, dict) and len(value) == 1:
        value = value.get("messages")
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    items = [_constructed(item) for item in value] if isinstance(value, list) else []
    return items if is_message_list(items) else None


def _constructed(item: Any) -> Any:
    """A message of LangChain from its constructor (`{"lc": 1, "id": [.., "AIMessage"], ..}`)."""
    match item:
        case {"lc": _, "id": [*_, str(name)], "kwargs": dict(fields)}:
            kind = name.removesuffix("Chunk").removesuffix("Message").lower()
            return {"type": kind, **fields}
    return item


def parse_messages(value: list[Any], key: str, place: str) -> Conversation:
    """Messages of a list in OpenAI's form. Raises InputError naming the message that is wrong."""
    conversation = Conversation()
    for i, item in enumerate(value):
        where = f"{key}[{i}]"
        role = role_of(item)
        if role is None:
            known = ", ".join(ROLES)
            raise InputError(f"{where} has no known role (known: {known})", place)
        conversation.messages.extend(_parse(item, role, where, place, conversation))
        if item.keys() <= _READ:
            continue
        extras = {k: v for k, v in item.items() if k not in _READ and not _is_role(k, v)}
        if extras:
            conversation.extras[str(i)] = extras
    answers = (m.content for m in reversed(conversation.messages) if m.role == "assistant")
    conversation.answer = next(filter(is_answer, answers), None)
    return conversation


def is_answer(text: str) -> bool:
    """Whether text says anything beyond AutoGen's stop word."""
    return text.strip().rstrip(".").strip() not in ("", STOP_WORD)


def _is_role(key: str, value: Any) -> bool:
    return (
        key == "type" and isinstance(value, str) and (value.lower() in ROLES or value == "message")
    )


def _parse(
    item: dict[str, Any], role: Role, where: str, place: str, conversation: Conversation
) -> list[Message]:
    if item.keys() == _PLAIN and isinstance(item["content"], str):  # most messages; 3 times faster
        return [Message(role=role, content=item["content"])]
    raw = next((item[k] for k in ("content", "value", "text") if item.get(k) is not None), None)
    parts = Parts()
    parts.add(raw)
    conversation.objects.extend((role, f"{where}.content", value) for value in parts.objects)
    for value in parts.result_objects:
        conversation.objects.append(("tool", f"{where}.content", value))
    if isinstance(item.get("refusal"), str) and item["refusal"]:
        parts.texts.append(item["refusal"])
    calls = list(parts.calls)
    if isinstance(item.get("function_call"), dict):
        calls.append(tool_call(item["function_call"], f"{where}.function_call", place, parse=True))
    calls.extend(_tool_calls(item.get("tool_calls"), where, place))
    messages = list(parts.results)
    if parts.texts or calls or not messages:
        messages.append(
            Message(
                role=role,
                content="\n".join(filter(None, parts.texts)),
                name=_text_or_none(item.get("name")),
                tool_calls=tuple(calls),
                tool_call_id=_text_or_none(item.get("tool_call_id")),
            )
        )
    return messages


def _tool_calls(value: Any, where: str, place: str) -> list[ToolCall]:
    if value is None:
        return []
    if not isinstance(value, list):
        raise InputError(f"{where}.tool_calls is no list", place)
    calls = []
    for i, item in enumerate(value):
        at = f"{where}.tool_calls[{i}]"
        if not isinstance(item, dict):
            raise InputError(f"{at} is no object", place)
        inner = item.get("function")
        if isinstance(inner, dict):  # OpenAI: the arguments are JSON inside a string
            calls.append(tool_call({**inner, "id": item.get("id")}, at, place, parse=True))
        else:  # our own form and LangChain's: the arguments are a value
            calls.append(tool_call(item, at, place, parse=False))
    return calls


def tool_call(item: dict[str, Any], where: str, place: str, *, parse: bool) -> ToolCall:
    """A ToolCall from `name`, `arguments` (or `args`, `input`) and `id`.

    `parse` says that arguments given as a string are JSON; invalid JSON stays as raw text.
    Raises InputError when there is no name.
    """
    name = item.get("name")
    if not isinstance(name, str):
        raise InputError(f"{where} has no name", place)
    arguments = next((item[k] for k in ("arguments", "args", "input") if k in item), None)
    if parse and isinstance(arguments, str):
        arguments = decode_arguments(arguments)
    return ToolCall(name=name, arguments=arguments, id=_text_or_none(item.get("id")))


def _text_or_none(value: Any) -> str | None:
    return value if isinstance(value, str) else None


@dataclass
class Parts:
    """Content of a message taken apart: texts, and calls or results that stand inside it.

    Objects that are shown as JSON are among the texts, and as values in `objects` (of results, in
    `result_objects`).
    """

    texts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    results: list[Message] = field(default_factory=list)
    objects: list[Any] = field(default_factory=list)
    result_objects: list[Any] = field(default_factory=list)

    def add(self, value: Any) -> None:
        """Take in a content value: text, null, a part, or a list of parts."""
        if value is None:
            return
        if isinstance(value, str):
            self.texts.append(value)
        elif isinstance(value, list):
            for item in value:
                self.add(item)
        elif isinstance(value, dict):
            self._part(value)
        else:
            self.texts.append(json_text(value))

    def _part(self, part: dict[str, Any]) -> None:
        kind = part.get("type")
        if kind in ("tool_use", "tool_call") and isinstance(part.get("name"), str):
            self.calls.append(tool_call(part, "", "", parse=kind == "tool_call"))
        elif kind in ("tool_result", "tool_call_response"):
            inner = Parts()
            inner.add(next((part[k] for k in ("response", "result", "content") if k in part), None))
            self.result_objects.extend(inner.objects)
            number = _text_or_none(part.get("tool_use_id", part.get("id")))
            content = "\n".join(inner.texts)
            self.results.append(Message(role="tool", content=content, tool_call_id=number))
        elif isinstance(kind, str) and kind in _PLACEHOLDERS:
            self.texts.append(_PLACEHOLDERS[kind])
        elif (text := _part_text(part)) is not None:
            self.texts.append(text)
        else:  # never dropped in silence: the judge sees that something stood here
            if not isinstance(kind, str):
                self.objects.append(part)
            self.texts.append(f"[{kind}]" if isinstance(kind, str) else json_text(part))


def _part_text(part: dict[str, Any]) -> str | None:
    if "type" not in part and len(part) > 1:  # an object of the system's own, not a part
        return None
    keys: tuple[str, ...] = ("text", "refusal", "thinking", "reasoning")
    if part.get("type") in ("text", "reasoning"):
        keys = ("content", *keys)
    return next((part[k] for k in keys if isinstance(part.get(k), str)), None)


# ---- AutoGen AgentChat ---------------------------------------------------------------------------


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
    conversation = Conversation()
    pending: dict[str, list[str]] = {}  # chunks by agent, until their whole message comes
    usage: dict[str, int] = {}
    for i, item in enumerate(value):
        source, kind, content = item["source"], item["type"], item.get("content")
        used = item.get("models_usage")
        for name in ("prompt_tokens", "completion_tokens") if isinstance(used, dict) else ():
            if type(used.get(name)) is int:
                usage[name] = usage.get(name, 0) + used[name]
        if kind == "UserInputRequestedEvent":
            continue
        if kind == _CHUNK:
            pending.setdefault(source, []).append(_content_text(content))
            continue
        messages = _parse_event(item, f"{key}[{i}]", place)
        if kind not in ("ToolCallExecutionEvent", "ThoughtEvent"):
            pending.pop(source, None)
        conversation.messages.extend(messages)
        conversation.objects.extend(
            (messages[0].role, f"{key}[{i}].content", shown) for shown in _objects_shown(item)
        )
        last = messages[-1] if messages else None
        if last and last.role == "assistant" and kind not in _STEPS and is_answer(last.content):
            conversation.answer = last.content
    for source, chunks in pending.items():
        conversation.messages.append(
            Message(role="assistant", name=source, content="".join(chunks))
        )
    if usage:
        conversation.extras["usage"] = usage
    return conversation


def _parse_event(item: dict[str, Any], where: str, place: str) -> list[Message]:
    source, kind = item["source"], item["type"]
    content: Any = item.get("content")
    if kind in ("ToolCallRequestEvent", "ToolCallExecutionEvent") and not (
        isinstance(content, list) and all(isinstance(part, dict) for part in content)
    ):
        raise InputError(f"{where}.content is no list of objects", place)
    if kind == "ToolCallRequestEvent":
        calls = tuple(
            tool_call(call, f"{where}.content[{i}]", place, parse=True)
            for i, call in enumerate(content)
        )
        return [Message(role="assistant", name=source, tool_calls=calls)]
    if kind == "ToolCallExecutionEvent":
        return [
            Message(
                role="tool",
                content=("[error] " if result.get("is_error") is True else "")
                + _content_text(result.get("content")),
                name=_text_or_none(result.get("name")),
                tool_call_id=_text_or_none(result.get("call_id")),
            )
            for result in content
        ]
    if kind == "CodeExecutionEvent":
        result = item.get("result")
        content = result.get("output") if isinstance(result, dict) else None
    if kind in ("CodeExecutionEvent", "MemoryQueryEvent"):
        return [Message(role="tool", name=source, content=_content_text(content))]
    if source.lower() in _USERS:
        return [Message(role="user", content=_content_text(content))]
    return [Message(role="assistant", name=source, content=_content_text(content))]


def _content_text(content: Any) -> str:
    """Text of a content: strings, lists of strings and images, objects of a structured message."""
    if isinstance(content, dict):
        return json_text(content)
    if isinstance(content, list):
        return "\n".join("[image]" if _is_image(part) else _content_text(part) for part in content)
    return content if isinstance(content, str) else "" if content is None else json_text(content)


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
