"""Convert attributes and events of other tools to those of OpenTelemetry's GenAI.

Names: Vercel's AI SDK (`ai.*`), Google ADK (`gcp.vertex.agent.*`), MLflow (`mlflow.*`, JSON in
every value), Langfuse's SDK (`langfuse.observation.*`), pydantic-ai (`events`, `all_messages`),
Monocle (`entity.N.*`, events `data.input`, `data.output` and `metadata`). Plain synonyms are in the
lists of `conventions`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

from agenteval.readers.chat_forms import first_of, to_messages
from agenteval.readers.fields import INPUT, OUTPUT, snake
from agenteval.readers.strict_json import json_or_none
from agenteval.records import SpanEvent

_Attributes = dict[str, Any]
_SENT, _ANSWERED = "gen_ai.input.messages", "gen_ai.output.messages"
_PROMPT, _COMPLETION = "gen_ai.usage.input_tokens", "gen_ai.usage.output_tokens"
_MODEL, _FINISH, _COST = "gen_ai.request.model", "gen_ai.response.finish_reason", "operation.cost"
_TOTAL = "gen_ai.usage.total_tokens"


def unpacked(
    single: _Attributes, events: list[SpanEvent]
) -> tuple[list[SpanEvent], dict[str, list[_Attributes]]]:
    """Return the remaining events, and messages by their GenAI attribute.

    Figures and names in `single` get their GenAI names; other converted attributes are removed.
    """
    messages: dict[str, list[_Attributes]] = {}
    for mark, unpack in _UNPACK.items():
        if mark in single:
            unpack(single, messages)
    if "span.type" in single and any(e.name in _MONOCLE_EVENTS for e in events):
        _monocle(single, events, messages)
        events = [event for event in events if event.name not in _MONOCLE_EVENTS]
    for event in events:
        if not event.name.startswith(("gen_ai.", "exception")):
            for key, names in _SPOKEN.items():
                if (text := _spoken_in(event, names)) is not None:
                    single.setdefault(key, text)
    return events, {key: rows for key, rows in messages.items() if rows}


def _spoken_in(event: SpanEvent, names: frozenset[str]) -> Any:
    """Return the value of an event under one of the names, or the event if it has such a name."""
    held = event.attributes
    by_key = (v for k, v in held.items() if snake(k.rpartition(".")[2]) in names and v)
    is_named = snake(event.name.rpartition(".")[2]) in names and len(held) == 1
    return next(by_key, next(iter(held.values())) if is_named else None)


_SPOKEN = {"data.input": frozenset({*INPUT, "request"}), "data.output": frozenset(OUTPUT)}


def _json(single: _Attributes, name: str) -> Any:
    """Remove and decode a JSON attribute; a value that is not JSON stays, and gives None."""
    value = single.get(name)
    decoded = json_or_none(value) if isinstance(value, str) else value
    if decoded is not None:
        del single[name]
    return decoded


def _decoded(value: Any) -> Any:
    decoded = json_or_none(value) if isinstance(value, str) else None
    return value if decoded is None else decoded


def usage_inside(answered: Any) -> Any:
    """Return the token usage inside a model's answer, in the format of OpenAI or LangChain."""
    stated = first_of(answered, "usage", "usage_metadata")
    stated = stated or first_of(first_of(answered, "llm_output"), "token_usage")
    inner = first_of(answered, "generations")
    while isinstance(inner, list) and inner:
        inner = inner[0]
    message = first_of(inner, "message")
    return stated or first_of(first_of(message, "kwargs") or message, "usage_metadata")


def _state(single: _Attributes, figures: Iterable[tuple[str, Any]]) -> None:
    for name, value in figures:
        if value is not None:
            single.setdefault(name, value)


def _usage(single: _Attributes, usage: Any) -> None:
    prompt = first_of(usage, "input_tokens", "prompt_tokens", "input", "prompt_token_count")
    completion = first_of(usage, "output_tokens", "completion_tokens", "output")
    completion = first_of(usage, "candidates_token_count") if completion is None else completion
    figures = [(_PROMPT, prompt), (_COMPLETION, completion)]
    if prompt is None and completion is None:
        figures = [(_TOTAL, first_of(usage, "total_tokens", "total", "total_token_count"))]
    _state(single, figures)


def _vercel(single: _Attributes, messages: dict[str, list[_Attributes]]) -> None:
    for name in [name for name in single if name.startswith("ai.result.")]:  # before version 4
        single.setdefault(name.replace("result", "response", 1), single.pop(name))
    tools = single.pop("ai.prompt.tools", None)
    messages["gen_ai.tool.definitions"] = list(map(_decoded, _items(tools)))
    prompt_key = next((n for n in ("ai.prompt.messages", "ai.prompt") if n in single), None)
    if prompt_key is not None:
        messages[_SENT] = to_messages(single.pop(prompt_key), "user")
    text = single.pop("ai.response.text", None) or single.pop("ai.response.object", None)
    calls = _json(single, "ai.response.toolCalls")
    content: list[Any] = [{"type": "text", "text": text}] if text else []
    for call in calls if isinstance(calls, list) else ():
        content.append({**call, "type": "tool-call"} if isinstance(call, dict) else call)
    if content:
        messages[_ANSWERED] = to_messages({"role": "assistant", "content": content}, "assistant")


def _adk(single: _Attributes, messages: dict[str, list[_Attributes]]) -> None:
    request = _json(single, "gcp.vertex.agent.llm_request")
    reply = _json(single, "gcp.vertex.agent.llm_response")
    system = first_of(first_of(request, "config"), "system_instruction")
    rows = to_messages({"role": "system", "content": system}, "system") if system else []
    messages[_SENT] = rows + to_messages(first_of(request, "contents"), "user")
    messages[_ANSWERED] = to_messages(first_of(reply, "content"), "assistant")
    _usage(single, first_of(reply, "usage_metadata"))


def _mlflow(single: _Attributes, messages: dict[str, list[_Attributes]]) -> None:
    usage, cost = _json(single, "mlflow.chat.tokenUsage"), _json(single, "mlflow.llm.cost")
    _usage(single, usage)
    _state(single, [(_COST, first_of(cost, "total_cost", "total"))])
    for name in ("mlflow.llm.model", "mlflow.spanInputs", "mlflow.spanOutputs"):
        decoded = _decoded(single.get(name))
        if isinstance(decoded, str):
            single[name] = decoded
        if decoded == "null":
            del single[name]
    if str(single.get("mlflow.spanType")).strip('"') in ("CHAT_MODEL", "LLM"):
        answered = _decoded(single.get("mlflow.spanOutputs"))
        _usage(single, usage_inside(answered))
        model = first_of(_decoded(single.get("mlflow.spanInputs")), "model")
        _state(single, [(_MODEL, first_of(answered, "model") or model)])
        _exchange(single, messages, "mlflow.spanInputs", "mlflow.spanOutputs")


def _langfuse(single: _Attributes, messages: dict[str, list[_Attributes]]) -> None:
    kind = "langfuse.observation."
    usage = _json(single, f"{kind}usage_details")
    if isinstance(usage, dict):  # sum all keys, as its viewer does, with cached and audio tokens
        for side in ("input", "output"):
            counts = [n for key, n in usage.items() if key.startswith(side) and type(n) is int]
            usage = {**usage, side: sum(counts)} if counts else usage
        usage = {k: n for k, n in usage.items() if k not in ("input_tokens", "output_tokens")}
    _usage(single, usage)
    _state(single, [(_COST, first_of(_json(single, f"{kind}cost_details"), "total"))])
    if str(single.get(f"{kind}type")).lower() == "generation":
        _exchange(single, messages, f"{kind}input", f"{kind}output")


def _exchange(
    single: _Attributes, messages: dict[str, list[_Attributes]], sent: str, answered: str
) -> None:
    for name, key, role in ((sent, _SENT, "user"), (answered, _ANSWERED, "assistant")):
        if rows := to_messages(single.get(name), role):
            messages[key] = rows
            del single[name]


def _pydantic(single: _Attributes, messages: dict[str, list[_Attributes]]) -> None:
    """Read messages from a list of events or parts; an agent's list includes its replies."""
    name = next(n for n in _PYDANTIC if n in single)
    rows = _json(single, name)
    for row in rows if isinstance(rows, list) else ():
        event = row.get("event.name", "") if isinstance(row, dict) else ""
        choice = event == "gen_ai.choice"
        inner = row.get("message", row) if choice else row
        role = event.removeprefix("gen_ai.").removesuffix(".message") or "user"
        default = "assistant" if choice else role
        if isinstance(inner, dict):
            inner = {"role": default, **inner}
        messages.setdefault(_ANSWERED if choice else _SENT, []).extend(to_messages(inner, default))


_PYDANTIC = ("events", "all_messages_events", "pydantic_ai.all_messages")
# Names that may have structured values
PACKED = (*_PYDANTIC, "gcp.vertex.agent.llm_request", "gcp.vertex.agent.llm_response")
_UNPACK: dict[str, Callable[[_Attributes, dict[str, list[_Attributes]]], None]] = {
    **dict.fromkeys(("ai.operationId", "ai.model.id"), _vercel),
    "gcp.vertex.agent.llm_request": _adk,
    "mlflow.spanType": _mlflow,
    "langfuse.observation.type": _langfuse,
    **dict.fromkeys(_PYDANTIC, _pydantic),
}


# ---- Monocle -------------------------------------------------------------------------------------

_MONOCLE_EVENTS = ("data.input", "data.output", "metadata")


def _monocle(
    single: _Attributes, events: list[SpanEvent], messages: dict[str, list[_Attributes]]
) -> None:
    """Read the events of a span: lists of JSON strings `{"user": "words"}`, or plain texts."""
    of_model = str(single["span.type"]).startswith("inference")
    for event in events:
        held = event.attributes
        if event.name == "metadata":
            _usage(single, held)
            _state(single, [(_FINISH, first_of(held, "finish_reason"))])
        elif event.name in _MONOCLE_EVENTS:
            is_input = event.name == "data.input"
            value = first_of(held, *(("input", "query") if is_input else ("response", "output")))
            error = None if is_input else first_of(held, "error_code")
            if of_model:
                key, role = (_SENT, "user") if is_input else (_ANSWERED, "assistant")
                messages[key] = [row for item in _items(value) for row in _spoken(item, role)]
            else:
                _state(single, [(event.name, "\n".join(map(str, _items(value))) or None)])
            _state(single, [("error.type", error)])
    entity_names = {
        str(single.get(f"entity.{n}.type", "")).split(".")[0]: single.get(f"entity.{n}.name")
        for n in (3, 2, 1)
    }
    if of_model:
        _state(single, [(_MODEL, entity_names.get("model"))])
    elif "tool" in str(single["span.type"]):
        _state(single, [("gen_ai.tool.name", entity_names.get("tool"))])
    elif str(single["span.type"]) == "agentic.invocation":
        _state(single, [("gen_ai.agent.name", entity_names.get("agent"))])


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else [] if value is None else [value]


def _spoken(item: Any, role: str) -> list[_Attributes]:
    """Return the messages of an object `{role: text}` or of any other format."""
    value = json_or_none(item) if isinstance(item, str) and item.startswith("{") else item
    if isinstance(value, dict) and len(value) == 1:
        who, text = next(iter(value.items()))
        return to_messages({"role": who, "content": text}, role) if text is not None else []
    return to_messages(value, role)
