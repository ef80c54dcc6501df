"""The tools loop over chat completions, against a real server whose model is scripted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.agents import AgentFailure, AgentLog, drive
from agenteval.agents.endpoint import Endpoint, connect, whole_calls
from agenteval.agents.openai_chat import openai_chat
from agenteval.testing import Fault, serve
from tests.agents.conftest import CANARY, box, call, calls, instant, made, script, statuses


async def run(answer: Any, turns: int = 5, **settings: Any) -> tuple[Any, list[dict[str, Any]]]:
    """What the agent did, and the bodies of its requests."""
    with serve(answer) as server:
        endpoint = Endpoint("test-model", server.base_url, api_key=CANARY, **settings)
        client = connect(endpoint, sleep=instant)
        log = await drive(made(openai_chat(endpoint, client)), "Go on a trip.", box(turns=turns))
        await client.close()
        return log, [r.body for r in server.requests if r.body]


@pytest.mark.parametrize(
    ("wrong", "event", "told"),
    [
        (call("book_train", '{"minute": 3'), (0, "book_train", "bad_arguments"), "not valid JSON"),
        (call("book_train", '{"minute": "x"}'), (0, "book_train", "bad_arguments"), "minute"),
        (call("book_train", "[3]"), (0, "book_train", "bad_arguments"), "must be a JSON object"),
        (call("fly_home"), (0, "fly_home", "unknown_tool"), "no tool 'fly_home'"),
        (call("functions.pack bag"), (0, "functions.pack bag", "unknown_tool"), "no tool"),
        (
            {"id": "c1", "type": "function", "function": {"arguments": "{}"}},
            (0, "", "malformed"),
            "could not be read",
        ),
        (
            {"id": "c1", "type": "custom", "custom": {"name": "sh", "input": "ls"}},
            (0, "", "malformed"),
            "could not be read",
        ),
    ],
)
async def test_what_the_model_does_wrong_is_logged_and_told(
    wrong: dict[str, Any], event: Any, told: str
) -> None:
    log, bodies = await run(script(calls(wrong), {"content": "sorry"}))
    assert isinstance(log, AgentLog)
    assert statuses(log.events) == [event]
    assert log.output == "sorry"
    asked, answered = bodies[1]["messages"][-2:]
    assert told in answered["content"]
    # a history that every endpoint takes: a name in the letters allowed, arguments a JSON object
    function = asked["tool_calls"][0]["function"]
    assert asked["tool_calls"][0]["id"] == answered["tool_call_id"] == "c1"
    assert function["name"]
    assert function["name"].replace("_", "").replace("-", "").isalnum()
    assert isinstance(json.loads(function["arguments"]), dict)


async def test_arguments_as_an_object_instead_of_text() -> None:
    log, _ = await run(script(calls(call("book_train", {"minute": 4})), {"content": "x"}))
    assert [(e.status, e.arguments) for e in log.events] == [("ok", {"minute": 4})]


async def test_missing_and_repeated_ids_are_replaced() -> None:
    reply = calls(
        call("pack_bag", number=None), call("call_taxi", number="x"), call("pack_bag", number="x")
    )
    _, bodies = await run(script(reply, {"content": "done"}))
    messages = bodies[1]["messages"]
    asked = [c["id"] for c in messages[2]["tool_calls"]]
    assert len(set(asked)) == 3
    assert all(asked)
    assert [m["tool_call_id"] for m in messages[3:]] == asked


async def test_a_legacy_function_call_is_a_call() -> None:
    legacy = {"content": None, "function_call": {"name": "pack_bag", "arguments": "{}"}}
    log, bodies = await run(script(legacy, {"content": "done"}))
    assert statuses(log.events) == [(0, "pack_bag", "ok")]
    asked, answered = bodies[1]["messages"][2:]
    assert asked["tool_calls"][0]["id"] == answered["tool_call_id"] != ""


@pytest.mark.parametrize(
    "payload",
    [
        b"",
        b'{"choices": [] , "_call": 1}',
        b'"_call"',
        b'{"choices": [{"message": "_call"}]}',
        b'{"choices": [{"message": {"tool_calls": []}}]}',
        b'[{"_call": NaN}',
    ],
)
def test_a_body_without_calls_stays_as_it_is(payload: bytes) -> None:
    assert whole_calls(payload) == payload


async def test_a_call_in_the_notation_of_a_template_is_malformed() -> None:
    text = '<tool_call>\n{"name": "pack_bag", "arguments": {}}\n</tool_call>'
    log, _ = await run(script({"content": text}))
    assert [(e.status, e.arguments) for e in log.events] == [("malformed", text)]
    assert log.output == text


async def test_a_reply_cut_by_length() -> None:
    def cut(body: dict[str, Any], n: int) -> Any:
        if len(body["messages"]) > 2:
            return {"content": "gave up"}
        message = {"role": "assistant", **calls(call("book_train", '{"min'))}
        return {"model": "m", "choices": [{"finish_reason": "length", "message": message}]}

    log, _ = await run(cut)
    assert statuses(log.events) == [(0, "book_train", "bad_arguments")]
    log, _ = await run(lambda body, n: Fault("length"))
    assert (log.ending, log.events) == ("finished", ())


async def test_a_content_filter_is_no_verdict_on_the_agent() -> None:
    log, bodies = await run(lambda body, n: Fault("content_filter"))
    assert isinstance(log, AgentFailure)
    assert "content filter" in log.message
    assert log.usage.requests == 1 == len(bodies)
