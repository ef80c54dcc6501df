"""A real AutoGen AssistantAgent against a real server whose model is scripted."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.agents import AgentLog, drive
from agenteval.agents.autogen import autogen
from agenteval.agents.endpoint import Endpoint, connect
from agenteval.testing import serve
from tests.agents.conftest import TOOLS, box, call, calls, instant, made, script, statuses


async def run(replies: Any, turns: int = 5, **more: Any) -> tuple[Any, list[dict[str, Any]]]:
    with serve(replies) as server:
        endpoint = Endpoint("test-model", server.base_url, max_tokens=40)
        client = connect(endpoint, sleep=instant)
        system = autogen(endpoint, client, **more)
        log = await drive(made(system), "Go on a trip.", box(turns=turns))
        await client.close()
        return log, [r.body for r in server.requests if r.body]


async def test_a_perfect_model_finishes() -> None:
    log, bodies = await run(
        script(
            calls(call("pack_bag", number="a1"), text="First the bag."),
            calls(call("book_train", '{"minute": 30}', "a2")),
            {"content": "All done. TERMINATE"},
        )
    )
    assert isinstance(log, AgentLog)
    assert (log.ending, log.output, log.turns) == ("finished", "All done. TERMINATE", 2)
    assert statuses(log.events) == [(0, "pack_bag", "ok"), (1, "book_train", "ok")]
    assert log.events[1].arguments == {"minute": 30}
    assert log.usage.requests == 3
    assert bodies[0]["messages"][0]["content"].startswith("You are a helpful AI assistant.")
    assert bodies[0]["messages"][1] == {"role": "user", "content": "Go on a trip."}
    assert (bodies[0]["temperature"], bodies[0]["max_tokens"]) == (0.0, 40)
    assert [t["function"] for t in bodies[0]["tools"]] == [t.model_dump() for t in TOOLS]
    assert bodies[2]["messages"][2:] == [
        {
            "role": "assistant",
            "content": "First the bag.",
            "tool_calls": [call("pack_bag", "{}", "a1")],
        },
        {"role": "tool", "tool_call_id": "a1", "content": "pack_bag done {}"},
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [call("book_train", '{"minute": 30}', "a2")],
        },
        {"role": "tool", "tool_call_id": "a2", "content": 'book_train done {"minute": 30}'},
    ]
    assert [m.role for m in log.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "assistant",
        "tool",
        "assistant",
    ]
    assert log.messages[2].content == "First the bag."
    assert log.messages[5].tool_call_id == log.messages[4].tool_calls[0].id == "a2"


@pytest.mark.parametrize(
    ("wrong", "event", "told"),
    [
        # answered by AutoGen itself, in its words, and logged all the same
        (call("book_train", '{"minute": 3'), (0, "book_train", "bad_arguments"), "Error: Expec"),
        (call("fly_home"), (0, "fly_home", "unknown_tool"), "not found in any workbench"),
        (
            {"id": "c1", "type": "function", "function": {"arguments": "{}"}},
            (0, "", "malformed"),
            "not found in any workbench",
        ),
        # passed on to the tool
        (call("book_train", "[3]"), (0, "book_train", "bad_arguments"), "must be a JSON object"),
        (call("book_train", '{"minute": "x"}'), (0, "book_train", "bad_arguments"), "minute"),
        (call("pack_bag", "null"), (0, "pack_bag", "bad_arguments"), "must be a JSON object"),
    ],
)
async def test_what_the_model_does_wrong_is_logged(
    wrong: dict[str, Any], event: Any, told: str
) -> None:
    log, bodies = await run(script(calls(wrong), {"content": "sorry"}))
    assert isinstance(log, AgentLog)
    assert statuses(log.events) == [event]
    assert (log.output, log.turns) == ("sorry", 1)
    asked, answered = bodies[1]["messages"][-2:]
    assert told in answered["content"]
    assert log.messages[3].content == answered["content"]
    function = asked["tool_calls"][0]["function"]
    assert function["name"]
    assert isinstance(json.loads(function["arguments"]), dict)


async def test_missing_ids_do_not_mix_up_the_answers() -> None:
    reply = calls(call("pack_bag", number=None), call("call_taxi", number=None))
    log, bodies = await run(script(reply, {"content": "done"}))
    asked = bodies[1]["messages"][2]["tool_calls"]
    said = {m["tool_call_id"]: m["content"] for m in bodies[1]["messages"] if m["role"] == "tool"}
    assert [said[c["id"]] for c in asked] == ["pack_bag done {}", "call_taxi done {}"]
    assert len(log.events) == 2


async def test_own_instructions() -> None:
    log, bodies = await run(script({"content": "done"}), instructions="Be quick.")
    assert bodies[0]["messages"][0] == {"role": "system", "content": "Be quick."}
    assert log.messages[0].content == "Be quick."
