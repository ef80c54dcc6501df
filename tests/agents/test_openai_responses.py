"""The tools loop over the Responses API, against a real server on loopback."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest

from agenteval.agents import AgentFailure, AgentLog, drive
from agenteval.agents.endpoint import INSTRUCTIONS, Endpoint, connect
from agenteval.agents.openai_responses import ResponsesTransport, openai_responses, read_response
from agenteval.errors import Transient
from tests.agents.conftest import (
    CANARY,
    TOOLS,
    box,
    instant,
    item,
    item_script,
    made,
    response,
    serving_responses,
    statuses,
    words,
)


async def run(respond: Any, **more: Any) -> tuple[Any, list[dict[str, Any]]]:
    tools = box(more.pop("seconds", 20.0), more.pop("turns", 5))
    async with serving_responses(respond) as (url, bodies):
        endpoint = Endpoint("test-model", url, api_key=CANARY, **more)
        client = connect(endpoint, transport=ResponsesTransport, sleep=instant)
        try:
            log = await drive(made(openai_responses(endpoint, client)), "Go on a trip.", tools)
        finally:
            await client.close()
        return log, bodies


async def test_a_perfect_model_finishes() -> None:
    kept = {"type": "reasoning", "id": "rs_1", "summary": [], "encrypted_content": "XYZ"}
    thinking = {**kept, "status": None}
    named_only = {"type": "reasoning", "id": "rs_2", "summary": []}
    first = response(thinking, named_only, item("pack_bag", call_id="a1"))
    log, bodies = await run(
        item_script(
            first,
            response(item("book_train", '{"minute": 30}', "a2")),
            response(words("All done.")),
        ),
        max_tokens=50,
    )
    assert isinstance(log, AgentLog)
    assert (log.ending, log.output, log.turns) == ("finished", "All done.", 2)
    assert log.model == "test-model-7"
    assert (log.usage.requests, log.usage.prompt_tokens, log.usage.completion_tokens) == (3, 33, 9)
    assert statuses(log.events) == [(0, "pack_bag", "ok"), (1, "book_train", "ok")]
    assert log.events[1].arguments == {"minute": 30}
    assert bodies[0] == {
        "model": "test-model",
        "input": [
            {"role": "system", "content": INSTRUCTIONS},
            {"role": "user", "content": "Go on a trip."},
        ],
        "store": False,
        "include": ["reasoning.encrypted_content"],
        "temperature": 0.0,
        "max_output_tokens": 50,
        "tools": [
            {
                "type": "function",
                "name": t.name,
                "description": t.description,
                "parameters": t.parameters,
                "strict": False,
            }
            for t in TOOLS
        ],
    }
    assert bodies[2]["input"][2:] == [
        kept,
        item("pack_bag", call_id="a1"),
        {"type": "function_call_output", "call_id": "a1", "output": "pack_bag done {}"},
        item("book_train", '{"minute": 30}', "a2"),
        {
            "type": "function_call_output",
            "call_id": "a2",
            "output": 'book_train done {"minute": 30}',
        },
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
    assert log.messages[5].tool_call_id == log.messages[4].tool_calls[0].id == "a2"


@pytest.mark.parametrize(
    ("wrong", "event", "told"),
    [
        (item("book_train", '{"minute": 3'), (0, "book_train", "bad_arguments"), "not valid JSON"),
        (item("book_train", {"minute": 3}), (0, "book_train", "ok"), "done"),
        (item("fly home"), (0, "fly home", "unknown_tool"), "no tool 'fly home'"),
        (
            {"type": "function_call", "id": "fc_1", "call_id": "c1", "arguments": "{}"},
            (0, "", "malformed"),
            "could not be read",
        ),
        (item("pack_bag", call_id=None), (0, "pack_bag", "ok"), "done"),
    ],
)
async def test_what_the_model_does_wrong_is_logged_and_told(
    wrong: dict[str, Any], event: Any, told: str
) -> None:
    log, bodies = await run(item_script(response(wrong), response(words("sorry"))))
    assert isinstance(log, AgentLog)
    assert statuses(log.events) == [event]
    assert log.output == "sorry"
    asked, answered = bodies[1]["input"][2:]
    assert told in answered["output"]
    assert asked["call_id"] == answered["call_id"] != ""
    assert re.fullmatch("[a-zA-Z0-9_-]{1,64}", asked["name"])
    assert isinstance(json.loads(asked["arguments"]), dict)


async def test_a_refusal_is_the_last_word() -> None:
    said = {
        "type": "message",
        "id": "msg_1",
        "role": "assistant",
        "content": [{"type": "refusal", "refusal": "No."}],
    }
    log, _ = await run(item_script(response(said)))
    assert (log.ending, log.output, log.events) == ("finished", "No.", ())


async def test_an_incomplete_response() -> None:
    cut = response(
        words("I will now"), status="incomplete", incomplete_details={"reason": "max_output_tokens"}
    )
    log, _ = await run(item_script(cut))
    assert (log.ending, log.output) == ("finished", "I will now")
    filtered = response(status="incomplete", incomplete_details={"reason": "content_filter"})
    log, _ = await run(item_script(filtered))
    assert isinstance(log, AgentFailure)
    assert "content filter" in log.message
    assert log.usage.prompt_tokens == 11


def failed(code: str) -> dict[str, Any]:
    return response(status="failed", error={"code": code, "message": "it did not work"})


@pytest.mark.parametrize(
    ("status", "body", "requests"),
    [
        (200, failed("server_error"), 3),
        (200, failed("rate_limit_exceeded"), 3),
        (200, failed("invalid_prompt"), 1),
        (200, response(status="in_progress"), 3),
        (200, response(), 3),
        (200, {"error": {"message": "busy"}}, 3),
        (500, {"error": {"message": "it did not work"}}, 3),
        (400, {"error": {"message": "no", "code": "strange"}}, 1),
        (404, {"error": {"message": "unknown path"}}, 1),
    ],
)
async def test_a_failing_endpoint_is_no_verdict(
    status: int, body: dict[str, Any], requests: int
) -> None:
    log, bodies = await run(lambda asked: (status, body), max_retries=2)
    assert isinstance(log, AgentFailure)
    assert log.status.startswith("error:")
    assert len(bodies) == requests == log.usage.requests


async def test_what_the_endpoint_does_not_take_is_left_out() -> None:
    def picky(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "include" in body:
            return 400, {"error": {"message": "Encrypted content is not supported here."}}
        if "temperature" in body:
            return 400, {"error": {"message": "Unsupported parameter: 'temperature'"}}
        return 200, response(words("done"))

    log, bodies = await run(picky)
    assert log.output == "done"
    assert [("include" in b, "temperature" in b) for b in bodies] == [
        (True, True),
        (False, True),
        (False, False),
    ]


@pytest.mark.parametrize("payload", [b"", b"[]", b"{}", b'{"output": 3}', b"[" * 100_000])
def test_what_is_no_response(payload: bytes) -> None:
    with pytest.raises(Transient, match="the-endpoint"):
        read_response(payload, 0.0, "the-endpoint")
