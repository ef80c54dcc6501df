"""What attributes mean: OpenInference and OpenTelemetry's GenAI, in all their ages."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.records import Message, ToolCall, ToolSpec, Usage
from tests.readers.tracing.samples import (
    FIRST,
    ROOT,
    SECOND,
    any_value,
    nested,
    one_span,
    otlp,
    read,
    span,
)

SYSTEM = Message(role="system", content="Be brief.")
ASKED = Message(role="user", content="What is the weather in Rome?")
CALL = ToolCall(name="weather", arguments={"city": "Rome"}, id="c1")
CALLED = Message(role="assistant", tool_calls=(CALL,))
TOLD = Message(role="tool", content="rain", tool_call_id="c1")
ANSWER = Message(role="assistant", content="It rains.")
SCHEMA = {"type": "object", "properties": {"city": {"type": "string"}}, "required": ["city"]}
TOOL = ToolSpec(name="weather", description="Tells the weather.", parameters=SCHEMA)

OPENINFERENCE: dict[str, Any] = {
    "openinference.span.kind": "LLM",
    "llm.model_name": "m-1",
    "llm.system": "openai",
    "llm.invocation_parameters": '{"temperature": 0, "max_tokens": 300}',
    "llm.input_messages.0.message.role": "system",
    "llm.input_messages.0.message.content": "Be brief.",
    "llm.input_messages.1.message.role": "user",
    "llm.input_messages.1.message.contents.0.message_content.type": "text",
    "llm.input_messages.1.message.contents.0.message_content.text": ASKED.content,
    "llm.input_messages.2.message.role": "assistant",
    "llm.input_messages.2.message.tool_calls.0.tool_call.id": "c1",
    "llm.input_messages.2.message.tool_calls.0.tool_call.function.name": "weather",
    "llm.input_messages.2.message.tool_calls.0.tool_call.function.arguments": '{"city": "Rome"}',
    "llm.input_messages.3.message.role": "tool",
    "llm.input_messages.3.message.content": "rain",
    "llm.input_messages.3.message.tool_call_id": "c1",
    "llm.output_messages.0.message.role": "assistant",
    "llm.output_messages.0.message.content": "It rains.",
    "llm.tools.0.tool.json_schema": json.dumps(
        {"type": "function", "function": {"name": "weather", "description": "Tells the weather.",
                                          "parameters": SCHEMA}}),
    "llm.token_count.prompt": "41", "llm.token_count.completion": 7, "llm.token_count.total": "48",
    "llm.finish_reason": "stop",
    "input.value": "raw request", "input.mime_type": "text/plain", "output.value": "raw reply",
}  # fmt: skip


def check(one: Any) -> None:
    """The conversation of the samples above and below."""
    assert one.kind == "llm"
    assert one.messages == (SYSTEM, ASKED, CALLED, TOLD)
    assert one.reply == (ANSWER,)
    assert one.tools == (TOOL,)
    assert (one.model, one.limit, one.finish) == ("m-1", 300, "stop")
    assert one.usage == Usage(requests=1, prompt_tokens=41, completion_tokens=7)


def unfold(flat: dict[str, Any]) -> dict[str, Any]:
    """Nested objects with lists, built by hand from the dotted keys."""
    root: dict[str, Any] = {}
    for key, value in flat.items():
        node: Any = root
        parts = key.split(".")
        for part, after in zip(parts, [*parts[1:], None], strict=True):
            new: Any = value if after is None else [] if after.isdigit() else {}
            if part.isdigit():
                if len(node) <= int(part):
                    node.append(new)
                node = node[int(part)]
            else:
                node = node.setdefault(part, new)
    return root


@pytest.mark.parametrize("form", ["flat", "nested", "otlp", "otlp nested", "text"])
def test_openinference(tmp_path: Path, form: str) -> None:
    attributes = OPENINFERENCE if "nested" not in form else unfold(OPENINFERENCE)
    tree = span(ROOT, span_attributes=attributes)
    if form == "text":
        tree["span_attributes"] = json.dumps(attributes)
    result = read(tmp_path, otlp(tree) if "otlp" in form else nested(tree))
    assert result.warnings == []
    (one,) = result.runs[0].spans
    check(one)
    assert (one.input, one.output) == ("raw request", "raw reply")
    expected: dict[str, Any] = {
        "llm.system": "openai", "llm.token_count.total": "48", "input.mime_type": "text/plain",
        "llm.invocation_parameters": '{"temperature": 0, "max_tokens": 300}',
        "scope_name": "by.hand",
    }  # fmt: skip
    assert {k: one.attributes[k] for k in expected} == expected
    assert set(one.attributes) <= {*expected, "scope_version", "service_name"}
    run = result.runs[0]
    assert (run.input, run.output) == (ASKED.content, "It rains.")
    assert run.messages == (SYSTEM, ASKED, CALLED, TOLD, ANSWER)


PARTS = {
    "gen_ai.system_instructions": [{"type": "text", "content": "Be brief."}],
    "gen_ai.input.messages": [
        {"role": "user", "parts": [{"type": "text", "content": ASKED.content}]},
        {"role": "assistant", "parts": [{"type": "tool_call", "id": "c1", "name": "weather",
                                         "arguments": {"city": "Rome"}}]},
        {"role": "tool", "parts": [{"type": "tool_call_response", "id": "c1",
                                    "response": "rain"}]},
    ],
    "gen_ai.output.messages": [
        {"role": "assistant", "parts": [{"type": "text", "content": "It rains."}],
         "finish_reason": "stop"}],
    "gen_ai.tool.definitions": [{"type": "function", "name": "weather", "parameters": SCHEMA,
                                 "description": "Tells the weather."}],
}  # fmt: skip
REQUEST = {
    "gen_ai.operation.name": "chat", "gen_ai.provider.name": "somebody",
    "gen_ai.request.model": "m-1", "gen_ai.request.max_tokens": 300,
    "gen_ai.usage.input_tokens": 41, "gen_ai.usage.output_tokens": 7,
    "gen_ai.response.finish_reasons": ["stop"],
}  # fmt: skip


@pytest.mark.parametrize("form", ["values", "texts", "otlp", "event"])
def test_genai_messages_of_parts(tmp_path: Path, form: str) -> None:
    parts = {k: json.dumps(v) for k, v in PARTS.items()} if form == "texts" else PARTS
    if form == "event":
        event = {"name": "gen_ai.client.inference.operation.details", "attributes": {
            k: json.dumps(v) for k, v in PARTS.items() if "messages" in k}}  # fmt: skip
        rest = {k: v for k, v in PARTS.items() if "messages" not in k}
        tree = span(ROOT, span_attributes=REQUEST | rest, events=[event])
    else:
        tree = span(ROOT, span_attributes=REQUEST | parts)
    result = read(tmp_path, otlp(tree) if form == "otlp" else nested(tree))
    assert result.warnings == []
    (one,) = result.runs[0].spans
    check(one)
    assert one.events == ()
    assert not {k for k in one.attributes if "messages" in k or "definitions" in k}


def test_genai_prompts_by_number(tmp_path: Path) -> None:
    numbered = {
        "gen_ai.prompt.0.role": "system", "gen_ai.prompt.0.content": "Be brief.",
        "gen_ai.prompt.1.role": "user", "gen_ai.prompt.1.content": ASKED.content,
        "gen_ai.prompt.2.role": "assistant", "gen_ai.prompt.2.tool_calls.0.id": "c1",
        "gen_ai.prompt.2.tool_calls.0.name": "weather",
        "gen_ai.prompt.2.tool_calls.0.arguments": '{"city": "Rome"}',
        "gen_ai.prompt.3.role": "tool", "gen_ai.prompt.3.content": "rain",
        "gen_ai.prompt.3.tool_call_id": "c1",
        "gen_ai.completion.0.role": "assistant", "gen_ai.completion.0.content": "It rains.",
        "gen_ai.completion.0.finish_reason": "stop",
        "llm.request.type": "chat", "gen_ai.request.model": "m-1", "gen_ai.system": "x",
        "gen_ai.request.max_tokens": 300, "gen_ai.usage.prompt_tokens": 41,
        "gen_ai.usage.completion_tokens": 7,
        "gen_ai.tool.definitions": json.dumps(PARTS["gen_ai.tool.definitions"]),
    }  # fmt: skip
    check(one_span(tmp_path, a=numbered))


@pytest.mark.parametrize("nest", [False, True])
def test_genai_events(tmp_path: Path, nest: bool) -> None:
    def event(name: str, **body: Any) -> dict[str, Any]:
        held = {"gen_ai.event.content": json.dumps(body)} if nest else body
        return {"name": name, "attributes": held}

    call = {"id": "c1", "type": "function",
            "function": {"name": "weather", "arguments": '{"city": "Rome"}'}}  # fmt: skip
    events = [
        event("gen_ai.system.message", content="Be brief."),
        event("gen_ai.user.message", content=ASKED.content),
        event("gen_ai.assistant.message", tool_calls=[call]),
        event("gen_ai.tool.message", content="rain", id="c1"),
        event("gen_ai.choice", index=0, finish_reason="stop",
              message={"role": "assistant", "content": "It rains."}),
        {"name": "exception", "attributes": {"exception.type": "Late"}},
        {"name": "gen_ai.unheard_of", "attributes": {"x": 1}},
    ]  # fmt: skip
    request = {k: v for k, v in REQUEST.items() if "finish" not in k}
    definitions = {"gen_ai.tool.definitions": PARTS["gen_ai.tool.definitions"]}
    one = one_span(tmp_path, a=request | definitions, events=events)
    check(one)
    assert [e.name for e in one.events] == ["exception", "gen_ai.unheard_of"]


def test_genai_tools_and_agents(tmp_path: Path) -> None:
    tool = one_span(tmp_path, a={
        "gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": "weather",
        "gen_ai.tool.call.id": "c1", "gen_ai.tool.call.arguments": {"city": "Rome"},
        "gen_ai.tool.call.result": "rain"})  # fmt: skip
    assert (tool.kind, tool.tool, tool.output) == ("tool", "weather", "rain")
    assert tool.attributes["gen_ai.tool.call.id"] == "c1"
    agent = one_span(tmp_path, a={"gen_ai.operation.name": "invoke_agent",
                                  "gen_ai.agent.name": "guide"})  # fmt: skip
    assert agent.kind == "agent"
    task = one_span(
        tmp_path,
        a={
            "traceloop.span.kind": "workflow",
            "traceloop.entity.input": "in",
            "traceloop.entity.output": "out",
        },
    )
    assert (task.kind, task.input, task.output) == ("chain", "in", "out")


@pytest.mark.parametrize(
    ("attributes", "kind"),
    [
        ({"openinference.span.kind": "RETRIEVER"}, "tool"),
        ({"openinference.span.kind": "EMBEDDING"}, "chain"),
        ({"openinference.span.kind": "GUARDRAIL"}, "chain"),
        ({"tool.name": "x"}, "tool"), ({"gen_ai.request.model": "m"}, "llm"),
        ({"gen_ai.operation.name": "embeddings", "gen_ai.request.model": "m"}, "chain"),
        ({}, "chain"),
    ],
)  # fmt: skip
def test_kinds(tmp_path: Path, attributes: dict[str, Any], kind: str) -> None:
    one = one_span(tmp_path, a=attributes)
    assert one.kind == kind
    for key, value in attributes.items():  # only a field takes an attribute away
        assert one.attributes.get(key, value) == value
    if "span.kind" in str(attributes):
        assert one.attributes["openinference.span.kind"] == attributes["openinference.span.kind"]


@pytest.mark.parametrize("bad", ["many", -3, 2.5, "NaN", True, [7], 10**15])
def test_a_count_that_is_none_is_not_read_as_one(tmp_path: Path, bad: Any) -> None:
    attributes = {"openinference.span.kind": "LLM", "llm.token_count.prompt": bad}
    one = one_span(tmp_path, a=attributes)
    assert one.usage is None
    assert one.attributes["llm.token_count.prompt"] == bad
    full = one_span(tmp_path, a={**attributes, "llm.token_count.completion": 4})
    assert full.usage == Usage(requests=1, prompt_tokens=None, completion_tokens=4)


def test_finish_and_limit_from_elsewhere(tmp_path: Path) -> None:
    body = {"choices": [{"finish_reason": "length", "message": {"content": "x"}}]}
    one = one_span(tmp_path, a={
        "openinference.span.kind": "LLM", "output.value": json.dumps(body),
        "llm.invocation_parameters": {"max_completion_tokens": 12}})  # fmt: skip
    assert (one.finish, one.limit) == ("length", 12)
    said = 'I would set "finish_reason" myself.'
    one = one_span(tmp_path, a={"openinference.span.kind": "LLM", "output.value": said})
    assert (one.finish, one.limit) == (None, None)


def test_tools_out_of_the_request(tmp_path: Path) -> None:
    tools = [{"type": "function", "function": {"name": "weather", "parameters": SCHEMA,
                                               "description": "Tells the weather."}}]  # fmt: skip
    held = {"openinference.span.kind": "LLM",
            "llm.invocation_parameters": json.dumps({"tools": tools})}  # fmt: skip
    assert one_span(tmp_path, a=held).tools == (TOOL,)
    odd = {"openinference.span.kind": "LLM", "llm.tools.0.tool.json_schema": "no schema",
           "llm.tools.1.tool.name": "plain"}  # fmt: skip
    one = one_span(tmp_path, a=odd)
    assert [tool.name for tool in one.tools] == ["plain"]
    assert "llm.tools" in one.attributes  # not all of it was understood


def test_contents_of_several_kinds(tmp_path: Path) -> None:
    prefix = "llm.input_messages.0.message"
    one = one_span(tmp_path, a={
        "openinference.span.kind": "LLM", f"{prefix}.role": "user",
        f"{prefix}.contents.0.message_content.type": "text",
        f"{prefix}.contents.0.message_content.text": "Look:",
        f"{prefix}.contents.1.message_content.type": "image",
        f"{prefix}.contents.1.message_content.image.image.url": "data:...",
        "llm.output_messages.0.message.role": "assistant",
        "llm.output_messages.0.message.function_call_name": "zoom",
        "llm.output_messages.0.message.function_call_arguments_json": "{not json",
    })  # fmt: skip
    assert one.messages[0].content == "Look:\n[image]"
    assert one.reply[0].tool_calls == (ToolCall(name="zoom", arguments="{not json"),)


def test_roles(tmp_path: Path) -> None:
    rows = ["MessageRole.SYSTEM", "developer", "tool-response", "tool-call", "critic", None]
    attributes: dict[str, Any] = {"openinference.span.kind": "LLM"}
    for i, role in enumerate(rows):
        attributes[f"llm.input_messages.{i}.message.content"] = str(i)
        if role:
            attributes[f"llm.input_messages.{i}.message.role"] = role
    result = read(tmp_path, nested(span(ROOT, span_attributes=attributes)))
    assert [m.role for m in result.runs[0].spans[0].messages] == [
        "system", "system", "tool", "assistant", "user", "user",
    ]  # fmt: skip
    assert [w.partition(": ")[2] for w in result.warnings] == [
        "the role 'critic' was read as user", "a message without role was read as of the user",
    ]  # fmt: skip


def test_logs_of_decorated_functions(tmp_path: Path) -> None:
    body = {"function.name": "main", "function.arguments": {"n": 3}, "function.output": "done"}
    tree = span(ROOT, logs=[{"timestamp": "2025-03-01T10:00:00Z", "body": body}])
    run = read(tmp_path, nested(tree)).runs[0]
    assert (run.spans[0].input, run.output) == ('{"n": 3}', "done")


def test_a_run_goes_from_the_first_root_to_the_last(tmp_path: Path) -> None:
    roots = [
        span(number, span_attributes={"input.value": f"ask {i}", "output.value": f"say {i}"})
        for i, number in enumerate((ROOT, FIRST, SECOND))
    ]
    run = read(tmp_path, nested(*roots)).runs[0]
    assert (run.input, run.output) == ("ask 0", "say 2")


def test_messages_of_a_run_stand_once(tmp_path: Path) -> None:
    def llm(number: str, *said: tuple[str, str], reply: str) -> dict[str, Any]:
        attributes: dict[str, Any] = {"openinference.span.kind": "LLM",
                                      "llm.output_messages.0.message.role": "assistant",
                                      "llm.output_messages.0.message.content": reply}  # fmt: skip
        for i, (role, text) in enumerate(said):
            attributes[f"llm.input_messages.{i}.message.role"] = role
            attributes[f"llm.input_messages.{i}.message.content"] = text
        return span(number, span_attributes=attributes)

    go, yes = ("user", "go on"), ("assistant", "yes")
    tree = span(
        ROOT, llm(FIRST, go, reply="yes"), llm(SECOND, go, yes, go, reply="no"),
        llm(SECOND[:-1] + "b", ("user", "other agent"), reply="yes"),
    )  # fmt: skip
    run = read(tmp_path, nested(tree)).runs[0]
    assert [(m.role, m.content) for m in run.messages] == [
        go, yes, go, ("assistant", "no"), ("user", "other agent"),
    ]  # fmt: skip


def test_any_values_of_otlp(tmp_path: Path) -> None:
    held = {"deep": {"list": [1, [2, 3]], "none": None}, "yes": True, "part": 0.5, "empty": {}}
    tree = otlp(span(ROOT, span_attributes=held))
    values = tree["resourceSpans"][0]["scopeSpans"][0]["spans"][0]["attributes"]
    assert values[0] == {"key": "deep", "value": any_value(held["deep"])}
    values.append({"key": "huge", "value": {"doubleValue": "NaN"}})
    values.append({"value": {"stringValue": "no key"}})
    one = read(tmp_path, tree).runs[0].spans[0]
    assert one.attributes == {
        "deep.list": [1, [2, 3]], "deep.none": None, "yes": True, "part": 0.5, "empty": {},
        "huge": None, "scope_name": "by.hand",
    }  # fmt: skip
