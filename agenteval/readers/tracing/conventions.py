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
from dataclasses import dataclass
from typing import Any

from agenteval.readers.draft import Context
from agenteval.readers.tracing.bag import FINISH, Attributes
from agenteval.readers.tracing.exchange import exchange
from agenteval.readers.tracing.flat import json_or_none, text_of
from agenteval.readers.tracing.raw import RawEvent, RawSpan
from agenteval.readers.tracing.talk import Pool
from agenteval.records import ToolSpec, Usage
from agenteval.records.run import SpanKind

_KINDS: dict[str, SpanKind] = {
    "llm": "llm", "tool": "tool", "agent": "agent", "chain": "chain", "retriever": "tool",
    # gen_ai.operation.name
    "chat": "llm", "text_completion": "llm", "generate_content": "llm", "execute_tool": "tool",
    "invoke_agent": "agent", "create_agent": "agent", "invoke_workflow": "chain",
    # llm.request.type and traceloop.span.kind
    "completion": "llm", "workflow": "chain", "task": "chain",
}  # fmt: skip
_KIND = (
    "openinference.span.kind", "gen_ai.operation.name", "traceloop.span.kind", "llm.request.type",
)  # fmt: skip
_SAID = frozenset({"llm", "tool", "agent", "chain"})  # the kind says all of it
_MODEL = ("llm.model_name", "gen_ai.response.model", "gen_ai.request.model", "llm.request.model")
_PROMPT = ("llm.token_count.prompt", "gen_ai.usage.input_tokens", "gen_ai.usage.prompt_tokens")
_COMPLETION = (
    "llm.token_count.completion", "gen_ai.usage.output_tokens", "gen_ai.usage.completion_tokens",
)  # fmt: skip
_INPUT = ("input.value", "gen_ai.tool.call.arguments", "traceloop.entity.input")
_OUTPUT = ("output.value", "gen_ai.tool.call.result", "traceloop.entity.output")
_TOOL = ("tool.name", "gen_ai.tool.name", "tool_call.function.name")
_LIMIT = ("gen_ai.request.max_tokens", "llm.request.max_tokens")
_LIMIT_NAMES = (
    "max_tokens", "max_completion_tokens", "max_output_tokens", "maxTokens", "maxOutputTokens",
    "num_predict", "max_new_tokens",
)  # fmt: skip
_FINISH_KEYS = ("finish_reason", "stop_reason", "finishReason")
_MOST = 10**12  # a larger count is a defect of the trace


@dataclass
class Meaning:
    """What the attributes of one span say: arguments for Span, and the events that are left."""

    fields: dict[str, Any]
    events: list[RawEvent]


def read_attributes(raw: RawSpan, pool: Pool, context: Context) -> Meaning:
    """The typed fields of a span. Numbers that are none are left in the attributes."""
    bag = Attributes.of(raw.attributes)
    kind = _kind(raw, bag)
    messages, reply, events = exchange(raw, bag, pool, context)
    tools = _tools(bag, pool)
    if kind is None:
        kind = _guess(bag, bool(messages or reply))
    fields: dict[str, Any] = {"kind": kind}
    if messages or reply or tools:
        fields |= {"messages": tuple(messages), "reply": tuple(reply), "tools": tools}
    fields["input"], fields["output"] = _input_and_output(bag, kind)
    if kind == "tool":
        name = bag.take(*_TOOL)
        fields["tool"] = name if isinstance(name, str) else raw.name or None
    if kind == "llm":
        fields |= _of_request(bag, fields["output"])
    fields["attributes"] = bag.left()
    return Meaning(fields, events)


def _kind(raw: RawSpan, bag: Attributes) -> SpanKind | None:
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


def _guess(bag: Attributes, talks: bool) -> SpanKind:
    """The kind of a span that names none, by what only one kind has."""
    if bag.peek(*_TOOL) is not None:
        return "tool"
    return "llm" if talks or bag.peek(*_MODEL, *_PROMPT, *_COMPLETION) is not None else "chain"


def _tools(bag: Attributes, pool: Pool) -> tuple[ToolSpec, ...]:
    for name in ("llm.tools", "gen_ai.tool.definitions"):
        value = bag.trees.get(name)
        rows = json_or_none(value) if isinstance(value, str) else value
        held = list(_schemas(rows))
        specs = tuple(spec for spec in map(pool.tool, held) if spec is not None)
        if specs:
            if len(specs) == len(held):
                bag.trees[name] = None
            return specs
    value = bag.peek("llm.invocation_parameters")
    if isinstance(value, str) and '"tools"' in value:
        sent = json_or_none(value)
        rows = sent.get("tools") if isinstance(sent, dict) else None
        return tuple(spec for spec in map(pool.tool, _schemas(rows)) if spec is not None)
    return ()


def _schemas(rows: Any) -> Iterator[Any]:
    for row in rows if isinstance(rows, list) else []:
        tool = row.get("tool") if isinstance(row, dict) else None
        if isinstance(tool, dict):
            yield tool.get("json_schema", tool)
        else:
            yield row


def _input_and_output(bag: Attributes, kind: SpanKind) -> tuple[str, str]:
    given = bag.take(*_INPUT)
    if given is None and kind == "tool":  # some write the arguments there, some the signature
        given = bag.peek("tool_call.function.arguments", "tool.parameters")
    made = bag.take(*_OUTPUT)
    log = bag.peek("logs")  # a decorated function writes its arguments and result in a log
    first = log[0] if isinstance(log, list) and log else None
    body = first.get("body") if isinstance(first, dict) else None
    if isinstance(body, dict):
        given = body.get("function.arguments") if given is None else given
        made = body.get("function.output") if made is None else made
    return text_of(given), text_of(made)


def _of_request(bag: Attributes, output: str) -> dict[str, Any]:
    model = bag.take(*_MODEL)
    prompt, completion = _count(bag, _PROMPT), _count(bag, _COMPLETION)
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


def _count(bag: Attributes, names: tuple[str, ...]) -> int | None:
    name = next((n for n in names if bag.rest.get(n) not in (None, "")), None)
    if name is None:
        return None
    number = count(bag.rest[name])
    if number is not None:
        del bag.rest[name]
    return number


def count(value: Any) -> int | None:
    """A number of tokens from a number or its text; None for anything else."""
    if isinstance(value, str) and re.fullmatch(r"\d{1,12}(\.0+)?", value.strip(), re.A):
        value = float(value)
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return None
    return int(value) if 0 <= value < _MOST and value == int(value) else None


def _finish(bag: Attributes, output: str) -> str | None:
    value = bag.peek(*FINISH)
    if isinstance(value, str) and value.startswith("["):
        value = json_or_none(value)
    if isinstance(value, list):
        if len(value) == 1:
            bag.take(*FINISH)
        value = value[0] if value else None
    elif value is not None:
        bag.take(*FINISH)
    if isinstance(value, str) and value:
        return value
    if not (output.startswith("{") and any(f'"{key}"' in output for key in _FINISH_KEYS)):
        return None
    return _finish_in(json_or_none(output))  # the reply as the endpoint sent it


def _finish_in(reply: Any) -> str | None:
    choices = reply.get("choices") if isinstance(reply, dict) else None
    choice = choices[0] if isinstance(choices, list) and choices else reply
    if not isinstance(choice, dict):
        return None
    return next((choice[k] for k in _FINISH_KEYS if isinstance(choice.get(k), str)), None)


def _limit(bag: Attributes) -> int | None:
    limit = _count(bag, _LIMIT)
    if limit is not None:
        return limit
    held = bag.peek("llm.invocation_parameters")
    if isinstance(held, str):
        held = json_or_none(held) if "max" in held or "num_predict" in held else None
    names = held if isinstance(held, dict) else {
        n: bag.rest.get(f"llm.invocation_parameters.{n}") for n in _LIMIT_NAMES
    }  # fmt: skip
    return next((n for n in map(count, map(names.get, _LIMIT_NAMES)) if n is not None), None)
