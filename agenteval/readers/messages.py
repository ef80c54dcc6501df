"""Convert lists of messages of OpenAI, similar formats and AutoGen AgentChat to Messages.

Every message of AgentChat has a `source` (the agent's name, or "user") and a `type`. Tool requests
become tool calls of an assistant message, executions become tool messages, thoughts and all texts
of agents become assistant messages under the agent's name. Streaming chunks are dropped if their
message follows, otherwise joined. Ids, times and per-message metadata are dropped; `models_usage`
is summed.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

from agenteval.errors import InputError
from agenteval.readers.fields import json_text, words
from agenteval.readers.strict_json import decode_arguments
from agenteval.records import Message, ToolCall
from agenteval.records.run import Role

ROLES: dict[str, Role] = {
    **dict.fromkeys(words("system developer"), "system"),
    **dict.fromkeys(words("user human"), "user"),
    **dict.fromkeys(words("assistant ai gpt model bot agent"), "assistant"),
    **dict.fromkeys(words("tool function observation ipython"), "tool"),
}
_PLAIN = {"role", "content"}
_READ = _PLAIN | {*words("from value text name tool_calls tool_call_id function_call refusal")}
_PLACEHOLDERS = {
    **dict.fromkeys(words("image image_url input_image"), "[image]"),
    **dict.fromkeys(words("audio input_audio"), "[audio]"),
    **dict.fromkeys(words("file input_file document"), "[file]"),
    **dict.fromkeys(words("video video_url"), "[video]"),
}
_THOUGHTS = ("reasoning", "thinking")
_USERS = frozenset({"user", "human", "user_proxy"})
_CHUNK = "ModelClientStreamingChunkEvent"
# Texts of agents that are intermediate steps, never the answer
_STEPS = words("""
    ThoughtEvent StopMessage HandoffMessage SelectSpeakerEvent SelectorEvent CodeGenerationEvent
    MemoryQueryEvent
""")
# The word with which AutoGen agents end a conversation; alone, it is not an answer.
STOP_WORD = "TERMINATE"


@dataclass
class Conversation:
    """Messages read from one list.

    `answer` is the text of the last message that is an answer. `extras` has the fields of messages
    that Message lacks, by position in the list. `objects` has everything that is shown as JSON:
    role, position in the list and value.
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
    """Return the role of a message (`role`, ShareGPT's `from`, LangChain's `type`) or None."""
    if not isinstance(item, dict):
        return None
    value = next((item[k] for k in ("role", "from", "type") if isinstance(item.get(k), str)), "")
    return ROLES.get(value.lower())


def is_message_list(value: Any) -> bool:
    """Return whether `value` is a non-empty list of messages with known roles."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            role_of(item) is not None and ("content" in item or len(item.keys() & _READ) > 1)
            for item in value
        )
    )


def messages_in(value: Any) -> list[Any] | None:
    """Return the messages of a value: a list, a list of one list, or an object with only
    `messages`, including serialized LangChain objects; None for anything else."""
    if isinstance(value, dict) and len(value) == 1:
        value = value.get("messages")
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    items = [constructed(item) for item in value] if isinstance(value, list) else []
    return items if is_message_list(items) else None


def constructed(item: Any) -> Any:
    """Return a LangChain message from its constructor, `{"lc": 1, "id": [.., "AIMessage"]}`."""
    match item:
        case {"lc": _, "id": [*_, str(name)], "kwargs": dict(fields)}:
            return {"type": name.removesuffix("Chunk").removesuffix("Message").lower(), **fields}
    return item


def parse_messages(value: list[Any], key: str, place: str) -> Conversation:
    """Read a list in OpenAI's format. Raises InputError with the invalid message."""
    conversation = Conversation()
    for i, item in enumerate(value):
        where = f"{key}[{i}]"
        role = role_of(item)
        if role is None:
            roles = ", ".join(ROLES)
            raise InputError(f"{where} has no known role (known: {roles})", place)
        if item.keys() == _PLAIN and isinstance(item["content"], str):  # common; 3 times as fast
            conversation.messages.append(Message(role=role, content=item["content"]))
            continue
        parts = _message_parts(item, where, place)
        conversation.messages.extend(_messages_of(item, role, parts))
        objects = [(role, o) for o in parts.objects] + [("tool", o) for o in parts.result_objects]
        conversation.objects.extend((who, f"{where}.content", shown) for who, shown in objects)
        kind = str(item.get("type")).lower()
        read = _READ | ({"type"} if kind in ROLES or kind == "message" else set())
        if extras := {k: v for k, v in item.items() if k not in read}:
            conversation.extras[str(i)] = extras
    answers = (m.content for m in reversed(conversation.messages) if m.role == "assistant")
    conversation.answer = next(filter(is_answer, answers), None)
    return conversation


def is_answer(text: str) -> bool:
    """Return whether a text is more than AutoGen's stop word."""
    return text.strip().rstrip(".").strip() not in ("", STOP_WORD)


def _message_parts(item: dict[str, Any], where: str, place: str) -> Parts:
    parts = Parts()
    names = ("content", "value", "text")
    parts.add(next((item[k] for k in names if item.get(k) is not None), None))
    if isinstance(item.get("refusal"), str) and item["refusal"]:
        parts.texts.append(item["refusal"])
    if isinstance(item.get("function_call"), dict):
        at = f"{where}.function_call"
        parts.calls.append(tool_call(item["function_call"], at, place, parse=True))
    calls = item.get("tool_calls")
    if not (calls is None or isinstance(calls, list)):
        raise InputError(f"{where}.tool_calls is not a list", place)
    for i, call in enumerate(calls or ()):
        at = f"{where}.tool_calls[{i}]"
        if not isinstance(call, dict):
            raise InputError(f"{at} is not an object", place)
        inner = call.get("function")
        if isinstance(inner, dict):  # OpenAI: the arguments are a JSON string
            parts.calls.append(tool_call({**inner, "id": call.get("id")}, at, place, parse=True))
        else:  # our own format and LangChain's: the arguments are a value
            parts.calls.append(tool_call(call, at, place, parse=False))
    return parts


def _messages_of(item: dict[str, Any], role: Role, parts: Parts) -> list[Message]:
    if not parts.text and not parts.calls and parts.results:
        return parts.results
    message = Message(
        role=role,
        content=parts.text,
        name=_text_or_none(item.get("name")),
        tool_calls=tuple(parts.calls),
        tool_call_id=_text_or_none(item.get("tool_call_id")),
    )
    thought = [Message(role=role, content=text) for text in parts.thoughts_before_text]
    return [*parts.results, *thought, message]


def tool_call(item: dict[str, Any], where: str, place: str, *, parse: bool) -> ToolCall:
    """Return a ToolCall from `name`, `arguments` (or `args`, `input`) and `id`.

    With `parse`, a string of arguments is decoded as JSON; invalid JSON stays raw text. Raises
    InputError without a name.
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
    """The content of a message, split into texts, calls and results.

    Objects shown as JSON are in the texts, and as values in `objects` (those of results in
    `result_objects`). Thoughts are not part of an answer: they are the text only if there is no
    other.
    """

    texts: list[str] = field(default_factory=list)
    thoughts: list[str] = field(default_factory=list)
    calls: list[ToolCall] = field(default_factory=list)
    results: list[Message] = field(default_factory=list)
    objects: list[Any] = field(default_factory=list)
    result_objects: list[Any] = field(default_factory=list)

    @property
    def text(self) -> str:
        """The texts, or the thoughts if there are no texts."""
        return "\n".join(filter(None, self.texts)) or "\n".join(filter(None, self.thoughts))

    @property
    def thoughts_before_text(self) -> list[str]:
        """The thoughts that are not part of `text`."""
        return [thought for thought in self.thoughts if thought] if any(self.texts) else []

    def add(self, value: Any) -> None:
        """Add a content value: text, null, a part, or a list of parts."""
        if isinstance(value, list):
            for item in value:
                self.add(item)
        elif isinstance(value, dict):
            self._add_part(value)
        elif value is not None:
            self.texts.append(value if isinstance(value, str) else json_text(value))

    def _add_part(self, part: dict[str, Any]) -> None:
        kind = part.get("type")
        if kind in ("tool_use", "tool_call") and isinstance(part.get("name"), str):
            self.calls.append(tool_call(part, "", "", parse=kind == "tool_call"))
        elif kind in ("tool_result", "tool_call_response"):
            inner = Parts()
            inner.add(next((part[k] for k in ("response", "result", "content") if k in part), None))
            self.result_objects.extend(inner.objects)
            call_id = _text_or_none(part.get("tool_use_id", part.get("id")))
            content = "\n".join(inner.texts)
            self.results.append(Message(role="tool", content=content, tool_call_id=call_id))
        elif isinstance(kind, str) and kind in _PLACEHOLDERS:
            self.texts.append(_PLACEHOLDERS[kind])
        elif (text := _part_text(part)) is not None:
            is_thought = kind in _THOUGHTS or part.get("thought") is True
            (self.thoughts if is_thought else self.texts).append(text)
        elif isinstance(kind, str):  # show the judge that there was something
            self.texts.append(f"[{kind}]")
        else:
            self.objects.append(part)
            self.texts.append(json_text(part))


def _part_text(part: dict[str, Any]) -> str | None:
    if "type" not in part and len(part) > 1 and "thought" not in part:  # the system's own object
        return None
    keys: tuple[str, ...] = ("text", "refusal", "thinking", "reasoning")
    if part.get("type") in ("text", *_THOUGHTS):
        keys = ("content", *keys)
    return next((part[k] for k in keys if isinstance(part.get(k), str)), None)


# ---- AutoGen AgentChat ---------------------------------------------------------------------------


def is_event_list(value: Any) -> bool:
    """Return whether `value` is a non-empty list of AgentChat messages and events."""
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
    """Read the messages of a TaskResult. Raises InputError with the invalid message."""
    conversation = Conversation()
    pending: dict[str, list[str]] = {}  # chunks by agent, until their message follows
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
        messages, shown = _event(item, f"{key}[{i}]", place)
        if kind not in ("ToolCallExecutionEvent", "ThoughtEvent"):
            pending.pop(source, None)
        conversation.messages.extend(messages)
        conversation.objects.extend((messages[0].role, f"{key}[{i}].content", o) for o in shown)
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


def _event(item: dict[str, Any], where: str, place: str) -> tuple[list[Message], list[Any]]:
    """Return the messages of an event, and the objects in it that are shown as JSON."""
    source, kind, content = item["source"], item["type"], item.get("content")
    if kind in ("ToolCallRequestEvent", "ToolCallExecutionEvent"):
        if not (isinstance(content, list) and all(isinstance(part, dict) for part in content)):
            raise InputError(f"{where}.content is not a list of objects", place)
        if kind == "ToolCallRequestEvent":
            calls = tuple(
                tool_call(call, f"{where}.content[{i}]", place, parse=True)
                for i, call in enumerate(content)
            )
            return [Message(role="assistant", name=source, tool_calls=calls)], []
        results = [
            Message(
                role="tool",
                content=("[error] " if result.get("is_error") is True else "")
                + _content_text(result.get("content")),
                name=_text_or_none(result.get("name")),
                tool_call_id=_text_or_none(result.get("call_id")),
            )
            for result in content
        ]
        return results, _objects_in([result.get("content") for result in content])
    shown = _objects_in(content if isinstance(content, list) else [content])
    if kind == "CodeExecutionEvent":
        result = item.get("result")
        content = result.get("output") if isinstance(result, dict) else None
    role: Role = "user" if source.lower() in _USERS else "assistant"
    if kind in ("CodeExecutionEvent", "MemoryQueryEvent"):
        role = "tool"
    name = None if role == "user" else source
    return [Message(role=role, name=name, content=_content_text(content))], shown


def _content_text(content: Any) -> str:
    if isinstance(content, list):
        return "\n".join("[image]" if _is_image(part) else _content_text(part) for part in content)
    return content if isinstance(content, str) else "" if content is None else json_text(content)


def _objects_in(parts: list[Any]) -> list[Any]:
    return [part for part in parts if isinstance(part, dict) and not _is_image(part)]


def _is_image(part: Any) -> bool:
    return isinstance(part, dict) and set(part) == {"data"} and isinstance(part["data"], str)
