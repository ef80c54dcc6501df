"""Real traces: agents run against a server on loopback with a scripted model, and are read back."""

from __future__ import annotations

import json
import sys
import warnings
from pathlib import Path
from typing import Any

import openai
import pytest

from agenteval.agents import drive
from agenteval.agents.autogen import AutogenAgent, autogen
from agenteval.agents.endpoint import Endpoint, connect
from agenteval.agents.openai_chat import OpenAIChatAgent, openai_chat
from agenteval.agents.openai_responses import openai_responses
from agenteval.agents.protocol import AgentLog
from agenteval.agents.react import react
from agenteval.agents.toolbox import Toolbox
from agenteval.agents.traced import traced
from agenteval.errors import InputError, ModelUnavailable
from agenteval.readers.traces import read_traces
from agenteval.records import Run, Span, ToolCall
from agenteval.testing import Fault, serve
from tests.agents.conftest import (
    CANARY,
    TOOLS,
    ResponsesServer,
    box,
    call,
    calls,
    instant,
    item,
    item_script,
    response,
    script,
    words,
)

SCRIPT = (
    calls(call("pack_bag", number="a1"), text="First the bag."),
    calls(call("book_train", '{"minute": 30}', "a2")),
    {"content": "All done. TERMINATE"},
)


async def record(path: Path, make: Any, answer: Any, request: str = "Go on a trip.") -> Any:
    """Run one agent under tracing; returns what it did and the requests the server saw."""
    with serve(answer) as server:
        endpoint = Endpoint("test-model", server.base_url, api_key=CANARY, max_tokens=50,
                            max_retries=1)  # fmt: skip
        client = connect(endpoint, sleep=instant)
        with traced(path, service="travel"):
            log = await drive(make(endpoint, client).make(), request, box())
        await client.close()
        return log, [r.body for r in server.requests if r.body]


def only(path: Path) -> Run:
    result = read_traces(path)
    assert result.warnings == []
    (run,) = result.runs
    return run


def tree(run: Run) -> list[tuple[str, str | None, str]]:
    """Kind, kind of the parent and name, in order."""
    kinds = {span.id: span.kind for span in run.spans}
    return [(s.kind, kinds.get(s.parent_id or ""), s.tool or s.name) for s in run.spans]


def of_kind(run: Run, kind: str) -> list[Span]:
    return [span for span in run.spans if span.kind == kind]


def wire(run: Run) -> list[list[dict[str, Any]]]:
    """What each LLM span was sent, in the words of chat completions."""
    return [
        [
            {"role": m.role, "content": m.content}
            | ({"tool_call_id": m.tool_call_id} if m.tool_call_id else {})
            | ({"calls": [(c.id, c.name, c.arguments) for c in m.tool_calls]}
               if m.tool_calls else {})
            for m in span.messages
        ]
        for span in of_kind(run, "llm")
    ]  # fmt: skip


def sent(bodies: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The same of what the server saw."""
    rows = []
    for body in bodies:
        row = []
        for message in body["messages"]:
            made = {"role": message["role"], "content": message["content"] or ""}
            if message.get("tool_call_id"):
                made["tool_call_id"] = message["tool_call_id"]
            if message.get("tool_calls"):
                made["calls"] = [
                    (c["id"], c["function"]["name"], json.loads(c["function"]["arguments"]))
                    for c in message["tool_calls"]
                ]
            row.append(made)
        rows.append(row)
    return rows


async def test_the_tools_loop(tmp_path: Path) -> None:
    path = tmp_path / "chat.jsonl"
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # the instrumentation must not leave coroutines unawaited
        log, bodies = await record(path, openai_chat, script(*SCRIPT))
    assert isinstance(log, AgentLog)
    run = only(path)
    assert tree(run) == [
        ("agent", None, "OpenAIChatAgent"),
        ("llm", "agent", "ChatCompletion"), ("tool", "agent", "pack_bag"),
        ("llm", "agent", "ChatCompletion"), ("tool", "agent", "book_train"),
        ("llm", "agent", "ChatCompletion"),
    ]  # fmt: skip
    assert (run.system, run.input, run.output) == ("travel", "Go on a trip.", log.output)
    assert wire(run) == sent(bodies)
    # what was asked and answered
    first, second, third = of_kind(run, "llm")
    assert [t.model_dump() for t in first.tools] == [t.model_dump() for t in TOOLS]
    assert (first.model, first.limit, first.finish) == ("test-model", 50, "tool_calls")
    assert third.finish == "stop"
    assert first.reply[0].content == "First the bag."
    assert second.reply[0].tool_calls == (
        ToolCall(name="book_train", arguments={"minute": 30}, id="a2"),
    )
    # the trace counts what the agent's own log counts
    usages = [span.usage for span in of_kind(run, "llm") if span.usage]
    assert sum(usages[1:], usages[0]) == log.usage
    # tools
    assert [(s.tool, json.loads(s.input), s.output, s.status) for s in of_kind(run, "tool")] == [
        (e.name, e.arguments, e.result, "ok") for e in log.events
    ]
    # times: children within their parents
    (root,) = of_kind(run, "agent")
    for span in run.spans:
        assert root.start is not None
        assert root.end is not None
        assert span.start is not None
        assert span.end is not None
        assert root.start <= span.start <= span.end <= root.end
    # the conversation, each message once: what the toolbox kept
    assert [(m.role, m.content) for m in run.messages] == [(m.role, m.content)
                                                           for m in log.messages]  # fmt: skip


async def test_an_autogen_agent(tmp_path: Path) -> None:
    path = tmp_path / "autogen.jsonl"
    log, bodies = await record(path, autogen, script(*SCRIPT))
    run = only(path)
    assert tree(run) == [
        ("agent", None, "AutogenAgent"),
        ("agent", "agent", "assistant.on_messages_stream"),
        ("llm", "agent", "ChatCompletion"), ("tool", "agent", "pack_bag"),
        ("llm", "agent", "ChatCompletion"), ("tool", "agent", "book_train"),
        ("llm", "agent", "ChatCompletion"),
    ]  # fmt: skip
    outer, inner = of_kind(run, "agent")
    assert {s.parent_id for s in of_kind(run, "tool") + of_kind(run, "llm")} == {inner.id}
    assert inner.parent_id == outer.id
    assert wire(run) == sent(bodies)
    assert (run.input, run.output) == ("Go on a trip.", log.output)
    assert [(s.tool, s.input, s.output) for s in of_kind(run, "tool")] == [
        ("pack_bag", "{}", "pack_bag done {}"),
        ("book_train", '{"minute": 30}', 'book_train done {"minute": 30}'),
    ]
    assert sum(s.usage.prompt_tokens or 0 for s in of_kind(run, "llm") if s.usage) == (
        log.usage.prompt_tokens
    )


async def test_react_and_the_responses_api(tmp_path: Path) -> None:
    def step(action: str, given: str) -> dict[str, str]:
        return {"content": f"Thought: go on\nAction: {action}\nAction Input: {given}"}

    reacting = script(step("pack_bag", "{}"), {"content": "Thought: done\nFinal Answer: packed"})
    await record(tmp_path / "react.jsonl", react, reacting)
    run = only(tmp_path / "react.jsonl")
    assert [kind for kind, _, _ in tree(run)] == ["agent", "llm", "tool", "llm"]
    assert run.output == "packed"

    replies = item_script(response(item("pack_bag")), response(words("packed")))
    with ResponsesServer(replies) as server:
        endpoint = Endpoint("test-model", server.base_url, api_key=CANARY)
        system, client = openai_responses(endpoint, made := responses_client(endpoint)), made
        with traced(tmp_path / "responses.jsonl"):
            await drive(system.make(), "Pack.", box())
        await client.close()
    run = only(tmp_path / "responses.jsonl")
    assert [kind for kind, _, _ in tree(run)] == ["agent", "llm", "tool", "llm"]
    first, second = of_kind(run, "llm")
    assert first.reply[0].tool_calls[0].name == "pack_bag"
    assert second.reply[0].content == "packed"
    assert first.usage is not None
    assert (first.usage.prompt_tokens, first.usage.completion_tokens) == (11, 3)


def responses_client(endpoint: Endpoint) -> Any:
    from agenteval.agents.openai_responses import ResponsesTransport

    return connect(endpoint, transport=ResponsesTransport, sleep=instant)


async def test_errors_of_endpoint_and_tools(tmp_path: Path) -> None:
    def answer(body: dict[str, Any], n: int) -> Any:
        said = sum(m["role"] == "assistant" for m in body["messages"])
        if said == 0:
            return calls(call("fly_home", number="x1"), call("book_train", "{", "x2"))
        return Fault("status", status=429, body="slow down")

    await record(tmp_path / "t.jsonl", openai_chat, answer)
    run = only(tmp_path / "t.jsonl")
    tools = of_kind(run, "tool")
    assert [(s.tool, s.status, s.status_message) for s in tools] == [
        ("fly_home", "error", "unknown_tool"), ("book_train", "error", "bad_arguments"),
    ]  # fmt: skip
    assert (tools[1].input, "not valid JSON" in tools[1].output) == ("{", True)
    first, *failed = of_kind(run, "llm")
    assert first.reply[0].tool_calls[1].arguments == "{"  # the raw text, since it is no JSON
    assert failed
    for span in failed:
        assert span.status == "error"
        (event,) = [e for e in span.events if e.name == "exception"]
        assert "RateLimitError" in str(event.attributes["exception.type"])
        assert "429" in str(event.attributes["exception.message"])
        assert "Traceback" in str(event.attributes["exception.stacktrace"])
        assert span.usage is None  # nothing is known, nothing is said
    assert of_kind(run, "agent")[0].status == "error"


async def test_a_tool_that_raises(tmp_path: Path) -> None:
    def backend(name: str, arguments: Any) -> str:
        raise RuntimeError("disk on fire")

    with serve(script(*SCRIPT)) as server:
        endpoint = Endpoint("test-model", server.base_url)
        client = connect(endpoint)
        with traced(tmp_path / "t.jsonl"):
            await drive(openai_chat(endpoint, client).make(), "Go.", Toolbox(TOOLS, backend))
        await client.close()
    (span,) = of_kind(only(tmp_path / "t.jsonl"), "tool")
    assert span.status == "error"
    assert span.events[0].attributes["exception.message"] == "disk on fire"


async def test_nothing_is_left_behind(tmp_path: Path) -> None:
    from opentelemetry import trace

    before = (openai.AsyncOpenAI.request, openai.OpenAI.request, OpenAIChatAgent.run,
              AutogenAgent.run, Toolbox.attempt, trace.get_tracer_provider())  # fmt: skip

    def fails() -> None:
        with traced(tmp_path / "t.jsonl"):
            assert openai.AsyncOpenAI.request is not before[0]
            raise KeyError("out")

    with pytest.raises(KeyError):
        fails()
    after = (openai.AsyncOpenAI.request, openai.OpenAI.request, OpenAIChatAgent.run,
             AutogenAgent.run, Toolbox.attempt, trace.get_tracer_provider())  # fmt: skip
    assert all(a is b for a, b in zip(before, after, strict=True))
    await record(tmp_path / "again.jsonl", openai_chat, script({"content": "hello"}))
    assert len(only(tmp_path / "again.jsonl").spans) == 2


async def test_one_block_at_a_time_and_a_file_that_cannot_be_written(tmp_path: Path) -> None:
    with traced(tmp_path / "a"), pytest.raises(InputError, match="on already"):
        traced(tmp_path / "b").__enter__()
    with pytest.raises(InputError, match="cannot write"):
        traced(tmp_path / "no" / "where").__enter__()
    with traced(tmp_path / "a"):  # the failed attempts have let go
        pass
    with pytest.raises(InputError, match="no spans"):
        read_traces(tmp_path / "a")


async def test_keys_are_blotted_out(tmp_path: Path) -> None:
    refused = Fault("status", status=401, body=f"Incorrect API key provided: {CANARY}")
    with pytest.raises(Exception, match="401"):
        await record(tmp_path / "t.jsonl", openai_chat, lambda body, n: refused)
    text = (tmp_path / "t.jsonl").read_text("utf-8")
    assert CANARY not in text
    assert "401" in text


async def test_a_span_that_has_not_ended_with_the_block(tmp_path: Path) -> None:
    """AutoGen leaves the stream of an agent before its end when it has the answer."""
    from autogen_agentchat.agents import AssistantAgent
    from autogen_core import FunctionCall
    from autogen_core.models import CreateResult, RequestUsage
    from autogen_ext.models.replay import ReplayChatCompletionClient

    async def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    asked = CreateResult(
        finish_reason="function_calls", cached=False,
        content=[FunctionCall(id="c", name="add", arguments='{"a": 1, "b": 2}')],
        usage=RequestUsage(prompt_tokens=1, completion_tokens=1),
    )  # fmt: skip
    info = {"vision": False, "function_calling": True, "json_output": False, "family": "unknown",
            "structured_output": False}  # fmt: skip
    with traced(tmp_path / "t.jsonl"):
        client = ReplayChatCompletionClient([asked, "Done."], model_info=info)  # type: ignore
        await AssistantAgent("helper", client, tools=[add], max_tool_iterations=3).run(task="Go.")
    run = only(tmp_path / "t.jsonl")
    root, tool = run.spans
    assert (root.kind, root.name, root.end) == ("agent", "helper.on_messages_stream", None)
    assert (tool.tool, tool.parent_id, tool.output) == ("add", root.id, "3")
    assert tool.end is not None


def test_missing_packages_are_one_clear_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "openinference.instrumentation.openai", None)
    with pytest.raises(ModelUnavailable, match=r"pip install 'agenteval\[tracing\]'") as caught:
        traced(tmp_path / "t.jsonl").__enter__()
    assert "openinference.instrumentation.openai" in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "t.jsonl").exists()
