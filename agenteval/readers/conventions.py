"""Typed fields of a span out of its attributes: OpenInference and OpenTelemetry's GenAI.

Both are tried on every span, OpenInference first. An attribute that is wholly said by a field is
taken away; everything else stays in the words of the trace.

Names: OpenInference semantic conventions; OpenTelemetry semantic conventions for generative AI
(with the older `gen_ai.prompt.N`, the events of version 1.27 to 1.36 and the messages since 1.37);
OpenLLMetry's `traceloop.*`.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

from agenteval.models.jsonish import is_deeper
from agenteval.readers.fields import Context
from agenteval.readers.messages import ROLES, Parts
from agenteval.readers.spans import RawEvent, RawSpan, insert, json_or_none, text_of, with_lists
from agenteval.readers.strict_json import decode_arguments
from agenteval.records import Message, ToolCall, ToolSpec, Usage
from agenteval.records.run import Role, SpanKind

_KINDS: dict[str, SpanKind] = {
    "llm": "llm",
    "tool": "tool",
    "agent": "agent",
    "chain": "chain",
    "retriever": "tool",
    # gen_ai.operation.name
    "chat": "llm",
    "text_completion": "llm",
    "generate_content": "llm",
    "execute_tool": "tool",
    "invoke_agent": "agent",
    "create_agent": "agent",
    "invoke_workflow": "chain",
    # llm.request.type and traceloop.span.kind
    "completion": "llm",
    "workflow": "chain",
    "task": "chain",
}
_SAID = frozenset({"llm", "tool", "agent", "chain"})  # the kind says all of it

# Names of attributes by what they say; the first that is there counts.
_KIND = (
    "openinference.span.kind",
    "gen_ai.operation.name",
    "traceloop.span.kind",
    "llm.request.type",
)
_MODEL = ("llm.model_name", "gen_ai.response.model", "gen_ai.request.model", "llm.request.model")
_PROMPT = ("llm.token_count.prompt", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_COMPLETION = (
    "llm.token_count.completion",
    "gen_ai.usage.output_tokens",
    "gen_ai.usage.completion_tokens",
)
_INPUT = ("input.value", "gen_ai.tool.call.arguments", "traceloop.entity.input")
_OUTPUT = ("output.value", "gen_ai.tool.call.result", "traceloop.entity.output")
_TOOL = ("tool.name", "gen_ai.tool.name", "tool_call.function.name")
_LIMIT = ("gen_ai.request.max_tokens", "llm.request.max_tokens")
_LIMIT_NAMES = (
    "max_tokens",
    "max_completion_tokens",
    "max_output_tokens",
    "maxTokens",
    "maxOutputTokens",
    "num_predict",
    "max_new_tokens",
)
_FINISH = ("llm.finish_reason", "gen_ai.response.finish_reasons", "gen_ai.response.finish_reason")
_FINISH_KEYS = ("finish_reason", "stop_reason", "finishReason")
_SENT = ("llm.input_messages", "gen_ai.input.messages", "gen_ai.prompt")
_ANSWERED = ("llm.output_messages", "gen_ai.output.messages", "gen_ai.completion")
_INSTRUCTIONS = "gen_ai.system_instructions"
_TOOLS = ("llm.tools", "gen_ai.tool.definitions")
_TREE = re.compile(
    rf"({'|'.join(map(re.escape, (*_SENT, *_ANSWERED, _INSTRUCTIONS, *_TOOLS)))})(?:\.|$)"
)
# Beyond the roles that message lists know; smolagents has these two.
_MORE_ROLES: dict[str, Role] = {"tool-response": "tool", "tool-call": "assistant"}
_MOST = 10**12  # a larger count is a defect of the trace


@dataclass
class Meaning:
    """What the attributes of one span say: arguments for Span, and the events that are left."""

    fields: dict[str, Any]
    events: list[RawEvent]


@dataclass
class Pool:
    """Messages and tools of one reading. Equal ones are one object: spans repeat them again and
    again."""

    _messages: dict[Any, Message] = field(default_factory=dict)
    _tools: dict[str, ToolSpec | None] = field(default_factory=dict)

    def intern(self, message: Message) -> Message:
        """The first message that is equal to this one."""
        calls = tuple(call.model_dump_json() for call in message.tool_calls)
        key = (message.role, message.content, message.name, message.tool_call_id, calls)
        return self._messages.setdefault(key, message)

    def tools(self, rows: Any) -> Iterator[ToolSpec | None]:
        """The tools of descriptions in the form of OpenAI, Anthropic or MCP; None for what is
        none."""
        for row in rows if isinstance(rows, list) else ():
            tool = row.get("tool") if isinstance(row, dict) else None
            text = text_of(tool.get("json_schema", tool) if isinstance(tool, dict) else row)
            if text not in self._tools:
                self._tools[text] = _tool(json_or_none(text))
            yield self._tools[text]


def _tool(value: Any) -> ToolSpec | None:
    inner = value.get("function") if isinstance(value, dict) else None
    tool = inner if isinstance(inner, dict) else value
    if not isinstance(tool, dict) or not isinstance(tool.get("name"), str):
        return None
    keys = ("parameters", "input_schema", "inputSchema", "inputs")
    schema = next((tool[k] for k in keys if isinstance(tool.get(k), dict)), None)
    return ToolSpec(
        name=tool["name"],
        description=text_of(tool.get("description")),
        parameters=None if is_deeper(schema, 64) else schema,
    )


class _Attributes:
    """The attributes of a span while its fields are taken out of them: what stands alone, and what
    belongs to lists of messages and tools, put together again."""

    def __init__(self, flat: dict[str, Any]) -> None:
        self.rest: dict[str, Any] = {}
        nested: dict[str, Any] = {}
        for key, value in flat.items():
            match = _TREE.match(key)
            if match is None:
                self.rest[key] = value
            else:
                inside = key[match.end() :]
                insert(nested, [match[1], *inside.split(".")] if inside else [match[1]], value)
        self.trees = {key: with_lists(value, 1) for key, value in nested.items()}

    def name_of(self, names: tuple[str, ...]) -> str | None:
        """The first of these attributes that is there."""
        return next((name for name in names if self.rest.get(name) not in (None, "")), None)

    def peek(self, *names: str) -> Any:
        """The value of the first of these attributes that is there."""
        name = self.name_of(names)
        return None if name is None else self.rest[name]

    def take(self, *names: str) -> Any:
        """The same; it is taken away."""
        name = self.name_of(names)
        return None if name is None else self.rest.pop(name)

    def count(self, names: tuple[str, ...]) -> int | None:
        """The same as a number of tokens; what is none is left."""
        number = count(self.peek(*names))
        if number is not None:
            self.take(*names)
        return number

    def rows(self, name: str) -> Any:
        """The value of a tree, out of its JSON text where it is one."""
        value = self.trees.get(name)
        return json_or_none(value) if isinstance(value, str) else value


def read_attributes(raw: RawSpan, pool: Pool, context: Context) -> Meaning:
    """The typed fields of a span. Numbers that are none are left in the attributes."""
    bag = _Attributes(raw.attributes)
    kind = _kind(raw, bag)
    messages, reply, events = _exchange(raw, bag, pool, context)
    tools = _tools(bag, pool)
    if kind is None:  # by what only one kind has
        talks = messages or reply or bag.name_of((*_MODEL, *_PROMPT, *_COMPLETION))
        kind = "tool" if bag.name_of(_TOOL) else "llm" if talks else "chain"
    fields: dict[str, Any] = {"kind": kind}
    if messages or reply or tools:
        fields |= {"messages": tuple(messages), "reply": tuple(reply), "tools": tools}
    fields["input"], fields["output"] = _input_and_output(bag, kind)
    if kind == "tool":
        name = bag.take(*_TOOL)
        fields["tool"] = name if isinstance(name, str) else raw.name or None
    if kind == "llm":
        fields |= _of_request(bag, fields["output"])
    trees = {key: value for key, value in bag.trees.items() if value is not None}
    fields["attributes"] = bag.rest | trees
    return Meaning(fields, events)


def _kind(raw: RawSpan, bag: _Attributes) -> SpanKind | None:
    for name in _KIND:
        value = bag.peek(name)
        word = value.lower() if isinstance(value, str) else ""
        if word in _SAID:
            bag.rest.pop(name)
        if word:
            return _KINDS.get(word, "chain")
    if raw.kind.lower() in _KINDS:
        return _KINDS[raw.kind.lower()]
    if raw.kind not in ("", "INTERNAL", "UNSPECIFIED", "0", "1"):
        bag.rest.setdefault("span_kind", raw.kind)
    return None


def _tools(bag: _Attributes, pool: Pool) -> tuple[ToolSpec, ...]:
    for name in _TOOLS:
        held = list(pool.tools(bag.rows(name)))
        specs = tuple(spec for spec in held if spec is not None)
        if specs:
            if len(specs) == len(held):
                bag.trees[name] = None
            return specs
    value = bag.peek("llm.invocation_parameters")
    sent = json_or_none(value) if isinstance(value, str) and '"tools"' in value else None
    rows = sent.get("tools") if isinstance(sent, dict) else None
    return tuple(spec for spec in pool.tools(rows) if spec is not None)


def _input_and_output(bag: _Attributes, kind: SpanKind) -> tuple[str, str]:
    given = bag.take(*_INPUT)
    if given is None and kind == "tool":  # some write the arguments there, some the signature
        given = bag.peek("tool_call.function.arguments", "tool.parameters")
    made = bag.take(*_OUTPUT)
    log = bag.peek("logs")  # a decorated function writes its arguments and result in a log
    first = log[0] if isinstance(log, list) and log else None
    body = first.get("body") if isinstance(first, dict) else None
    if isinstance(first, dict) and isinstance(body, dict):
        body = dict(body)
        given = body.pop("function.arguments", None) if given is None else given
        made = body.pop("function.output", None) if made is None else made
        bag.rest["logs"] = [{**first, "body": body}, *log[1:]]
    return text_of(given), text_of(made)


def _of_request(bag: _Attributes, output: str) -> dict[str, Any]:
    model = bag.take(*_MODEL)
    prompt, completion = bag.count(_PROMPT), bag.count(_COMPLETION)
    cost = bag.peek("llm.cost.total")
    paid = isinstance(cost, (int, float)) and not isinstance(cost, bool)
    usage = None
    if prompt is not None or completion is not None or paid:
        usage = Usage(
            requests=1,
            prompt_tokens=prompt,
            completion_tokens=completion,
            cost=bag.take("llm.cost.total") if paid else None,
        )
    return {
        "model": None if model is None else text_of(model),
        "usage": usage,
        "finish": _finish(bag, output),
        "limit": _limit(bag),
    }


def count(value: Any) -> int | None:
    """A number of tokens from a number or its text; None for anything else."""
    if isinstance(value, str) and re.fullmatch(r"\d{1,12}(\.0+)?", value.strip(), re.A):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if 0 <= value < _MOST and value == int(value) else None


def _finish(bag: _Attributes, output: str) -> str | None:
    value = bag.peek(*_FINISH)
    if isinstance(value, str) and value.startswith("["):
        value = json_or_none(value)
    if isinstance(value, list):
        if len(value) == 1:
            bag.take(*_FINISH)
        value = value[0] if value else None
    elif value is not None:
        bag.take(*_FINISH)
    if isinstance(value, str) and value:
        return value
    if not (output.startswith("{") and any(f'"{key}"' in output for key in _FINISH_KEYS)):
        return None
    reply = json_or_none(output)  # as the endpoint sent it
    choices = reply.get("choices") if isinstance(reply, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else reply
    if not isinstance(choice, dict):
        return None
    return next((choice[k] for k in _FINISH_KEYS if isinstance(choice.get(k), str)), None)


def _limit(bag: _Attributes) -> int | None:
    limit = bag.count(_LIMIT)
    if limit is not None:
        return limit
    held = bag.peek("llm.invocation_parameters")
    if isinstance(held, str):
        held = json_or_none(held) if "max" in held or "num_predict" in held else None
    names = (
        held
        if isinstance(held, dict)
        else {n: bag.rest.get(f"llm.invocation_parameters.{n}") for n in _LIMIT_NAMES}
    )
    return next((n for n in map(count, map(names.get, _LIMIT_NAMES)) if n is not None), None)


# ---- what an LLM span was sent and what it answered ----------------------------------------------


def _exchange(
    raw: RawSpan, bag: _Attributes, pool: Pool, context: Context
) -> tuple[list[Message], list[Message], list[RawEvent]]:
    """Messages sent, messages answered, and the events that say nothing of them."""
    if not bag.trees and not any(event.name.startswith("gen_ai.") for event in raw.events):
        return [], [], raw.events
    sent: list[Message] = []
    answered: list[Message] = []
    left = [e for e in raw.events if not _take_event(e, bag, sent, answered, pool, context)]
    instructions = _messages(bag, _INSTRUCTIONS, "system", pool, context)
    for name in _SENT:
        sent = sent or _messages(bag, name, "user", pool, context)
    finishes = [
        row["finish_reason"]
        for name in _ANSWERED[1:]
        for row in (bag.rows(name) if isinstance(bag.rows(name), list) else ())
        if isinstance(row, dict)
        and isinstance(row.get("finish_reason"), str)
        and row["finish_reason"]
    ]
    for name in _ANSWERED:
        answered = answered or _messages(bag, name, "assistant", pool, context)
    if finishes and bag.peek(*_FINISH) is None:
        bag.rest[_FINISH[0]] = finishes[0]
    return instructions + sent, answered, left


def _messages(
    bag: _Attributes, name: str, role: Role, pool: Pool, context: Context
) -> list[Message]:
    """The messages of an attribute, which is taken away when there are some."""
    value, parts = bag.trees.get(name), bag.rows(name)
    if isinstance(value, str) and parts is None and value.strip():
        parts = value = {"role": role, "content": value}  # a prompt in plain words
    if role == "system" and parts is not None:  # instructions are parts of one message
        value = {"role": role, "parts": parts if isinstance(parts, list) else [parts]}
    messages = _conversation(value, role, pool, context)
    if messages:
        bag.trees[name] = None
    return messages


def _take_event(
    event: RawEvent,
    bag: _Attributes,
    sent: list[Message],
    answered: list[Message],
    pool: Pool,
    context: Context,
) -> bool:
    """Whether an event tells what was sent or answered; if so it is taken in."""
    body = _body(event) if event.name.startswith("gen_ai.") else None
    if body is None:
        return False
    trees: tuple[str, ...] = ("gen_ai.input.messages", "gen_ai.output.messages")
    if "content.prompt" in event.name or "content.completion" in event.name:
        trees = ("gen_ai.prompt", "gen_ai.completion")
    role = event.name.removeprefix("gen_ai.").removesuffix(".message")
    if role == "choice":
        answered += _conversation(_event_message(body, "assistant"), "assistant", pool, context)
        if isinstance(body.get("finish_reason"), str):
            bag.rest.setdefault("gen_ai.response.finish_reasons", [body["finish_reason"]])
    elif role in ("system", "user", "assistant", "tool"):
        sent += _conversation(_event_message(body, role), "user", pool, context)
    elif trees[0] == "gen_ai.prompt" or any(name in body for name in trees):
        for name in trees:
            bag.trees[name] = bag.trees.get(name) or body.get(name)
    else:
        return False
    return True


def _event_message(body: dict[str, Any], role: str) -> dict[str, Any]:
    """The message of an event; a choice holds it one level down."""
    inner = body.get("message")
    if isinstance(inner, str):
        inner = json_or_none(inner) or {"content": inner}
    message = dict(inner) if isinstance(inner, dict) else body
    return message if message.get("role") else {**message, "role": role}


def _body(event: RawEvent) -> dict[str, Any] | None:
    """The contents of an event: its attributes as a tree, or the JSON text among them."""
    for name in ("gen_ai.event.content", "event.body", "body"):
        held = event.attributes.get(name)
        value = json_or_none(held) if isinstance(held, str) else held
        if isinstance(value, dict):
            return value
    nested: dict[str, Any] = {}
    for key, value in event.attributes.items():
        match = _TREE.match(key)
        if match is None:
            insert(nested, key.split("."), value)
        else:
            inside = key[match.end() :]
            insert(nested, [match[1], *inside.split(".")] if inside else [key], value)
    tree = with_lists(nested)
    return tree if isinstance(tree, dict) and tree else None


def _conversation(value: Any, default: Role, pool: Pool, context: Context) -> list[Message]:
    """Messages of a list in the form of OpenInference, GenAI parts or OpenAI; none if it is none.

    An item that is no message is shown as JSON, in its place, rather than dropped.
    """
    if isinstance(value, str):
        value = json_or_none(value)
    rows = value if isinstance(value, list) else [value]
    if not any(isinstance(item, dict) for item in rows):
        return []
    messages: list[Message] = []
    for item in rows:
        if isinstance(item, dict):
            inner = item.get("message")
            messages += _message(inner if isinstance(inner, dict) else item, default, pool, context)
        else:
            messages.append(pool.intern(Message(role=default, content=text_of(item))))
    return messages


def _message(item: dict[str, Any], default: Role, pool: Pool, context: Context) -> list[Message]:
    parts = Parts()
    for key in ("content", "contents", "parts"):
        held = item.get(key)
        for part in held if isinstance(held, list) else [held]:
            inner = part.get("message_content") if isinstance(part, dict) else None
            parts.add(inner if isinstance(inner, dict) else part)
    texts = [text for text in parts.texts if text]
    for key in ("refusal", "reasoning_content"):
        if not texts and isinstance(item.get(key), str):
            texts.append(item[key])
    calls = parts.calls + _calls(item.get("tool_calls")) + _calls(item.get("function_call"))
    legacy = item.get("function_call_name")
    if isinstance(legacy, str):
        arguments = _arguments(item.get("function_call_arguments_json"))
        calls.append(ToolCall(name=legacy, arguments=arguments))
    role = _role(item.get("role"), default, context)
    results = [pool.intern(result) for result in parts.results]
    if results and not texts and not calls:
        return results
    name, number = item.get("name"), item.get("tool_call_id", item.get("id"))
    made = Message(
        role=role,
        content="\n".join(texts),
        tool_calls=tuple(calls),
        name=name if isinstance(name, str) and name else None,
        tool_call_id=number if isinstance(number, str) and number and role == "tool" else None,
    )
    return [*results, pool.intern(made)]


def _role(value: Any, default: Role, context: Context) -> Role:
    if not isinstance(value, str) or not value:
        context.notes.add(f"a message without role was read as of the {default}", context.place)
        return default
    word = value.lower().rpartition(".")[2]
    role = ROLES.get(word) or _MORE_ROLES.get(word)
    if role is None:
        context.notes.add(f"the role {value[:40]!r} was read as {default}", context.place)
    return role or default


def _calls(value: Any) -> list[ToolCall]:
    """Calls in a list or alone; in the form of OpenAI, OpenInference or GenAI."""
    if isinstance(value, str):
        value = json_or_none(value)
    calls = []
    for row in value if isinstance(value, list) else [value]:
        if isinstance(row, dict) and row:
            outer = row["tool_call"] if isinstance(row.get("tool_call"), dict) else row
            function = outer["function"] if isinstance(outer.get("function"), dict) else outer
            name, number = function.get("name"), outer.get("id")
            keys = ("arguments", "args", "input")
            calls.append(
                ToolCall(
                    name=name if isinstance(name, str) else "",
                    arguments=_arguments(next((function[k] for k in keys if k in function), None)),
                    id=number if isinstance(number, str) and number else None,
                )
            )
    return calls


def _arguments(value: Any) -> Any:
    """Arguments of a call, out of their JSON text where they are one."""
    return (decode_arguments(value) if value else None) if isinstance(value, str) else value
