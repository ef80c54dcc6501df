"""The assistant of FlowBench's own text contract, against a real server with a scripted model."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from agenteval.agents import AgentFailure, AgentLog, Dialogue, Toolbox, drive
from agenteval.agents.endpoint import Endpoint, connect
from agenteval.records import Message, ToolCall
from agenteval.testing import Fault, serve
from agenteval.workflows.cases import instructions, tools_given
from agenteval.workflows.folder import read_role
from agenteval.workflows.scenario import Format
from agenteval.workflows.variants import template_agent
from tests.agents.conftest import instant, script

ROLE = read_role(Path(__file__).parent / "library_desk")
IDS = ("lend_book",)
ASK = "Thought: intent=Ask for a book. Next, I need to ask.\nResponse: Which title?"
FIND = 'Thought: intent=UNK.\nAction: find_book\nAction Input: {"title": "Dune"}'


async def answer_later(name: str, arguments: Mapping[str, Any]) -> str:
    await asyncio.sleep(0)
    return json.dumps({"is_in": True})


async def turn(
    reply: Any,
    messages: tuple[Message, ...] = (Message(role="user", content="Dune?"),),
    format: Format = "flowchart",
    stop_after: int | None = None,
) -> tuple[Any, list[dict[str, Any]]]:
    with serve(reply) as server:
        endpoint = Endpoint("test-model", server.base_url)
        client = connect(endpoint, sleep=instant)
        tools = Toolbox(tools_given(ROLE, IDS, format), answer_later, stop_after=stop_after)
        dialogue = Dialogue(instructions=instructions(ROLE, IDS, format), messages=messages)
        log = await drive(template_agent(endpoint, client).make(), dialogue, tools)
        await client.close()
        return log, [r.body for r in server.requests if r.body]


def seen(log: Any) -> list[tuple[int, str, str]]:
    return [(e.turn, e.name, e.status) for e in log.events]


async def test_a_call_then_a_reply() -> None:
    log, bodies = await turn(script(FIND, ASK))
    assert isinstance(log, AgentLog)
    assert log.output == "Which title?"
    assert seen(log) == [(0, "find_book", "ok")]
    assert log.events[0].arguments == {"title": "Dune"}
    assert bodies[1]["messages"][2:] == [
        {"role": "assistant", "content": FIND},
        {"role": "user", "content": 'find_book returned: {"is_in": true}'},
    ]
    first, result, last = log.messages
    assert (first.content, first.tool_calls[0].arguments) == (FIND, {"title": "Dune"})
    assert result.tool_call_id == first.tool_calls[0].id
    assert last.content == ASK


@pytest.mark.parametrize(
    ("wrong", "event", "told"),
    [
        ("Action: find_book\nAction Input: {}", ("find_book", "bad_arguments"), "'title' is a"),
        (
            'Action: find_book\nAction Input: {"title": Dune}',
            ("find_book", "bad_arguments"),
            "not valid JSON",
        ),
        ("Action: fly\nAction Input: {}", ("fly", "unknown_tool"), "There is no tool 'fly'"),
        ("Hello there.", ("", "malformed"), "in neither form"),
        ("", ("", "malformed"), "in neither form"),
    ],
)
async def test_what_is_wrong_is_logged_and_told(
    wrong: str, event: tuple[str, str], told: str
) -> None:
    log, bodies = await turn(script(wrong, ASK))
    assert isinstance(log, AgentLog)
    assert seen(log) == [(0, *event)]
    assert told in bodies[1]["messages"][-1]["content"]
    assert log.output == "Which title?"
    if event[1] == "malformed":
        assert [m.content for m in log.messages] == [ASK]  # no part of the conversation


HISTORY = (
    Message(role="user", content="Dune?"),
    Message(
        role="assistant",
        tool_calls=(ToolCall(name="find_book", arguments={"title": "Dune"}, id="c1"),),
    ),
    Message(role="tool", content='{"is_in": true}', tool_call_id="c1"),
    Message(role="assistant", content="It is in."),
    Message(role="user", content="Good."),
)


async def test_history_is_told_in_the_templates() -> None:
    _, bodies = await turn(script(ASK), HISTORY)
    assert bodies[0]["messages"][1:] == [
        {"role": "user", "content": "Dune?"},
        {"role": "assistant", "content": 'Action: find_book\nAction Input: {"title": "Dune"}'},
        {"role": "user", "content": 'find_book returned: {"is_in": true}'},
        {"role": "assistant", "content": "Response: It is in."},
        {"role": "user", "content": "Good."},
    ]


async def test_refusal_and_failures() -> None:
    log, _ = await turn(lambda body, n: Fault("refusal", body="No."))
    assert (log.output, log.events) == ("No.", ())
    failure, _ = await turn(lambda body, n: Fault("status", 400, code="context_length_exceeded"))
    assert isinstance(failure, AgentFailure)
    assert failure.status == "unscored:too_long"


@pytest.mark.parametrize(
    "text",
    [
        "Thought: I look it up",
        "Let us see.\n**Action:**",
        '{"title": "Dune"}',
        "action_input: {}",
        "- Response:",
    ],
)
async def test_parts_of_a_form_are_not_said_to_a_user(text: str) -> None:
    log, _ = await turn(script("Hello.", text))
    assert isinstance(log, AgentLog)
    assert log.output == ""
    assert [e.status for e in log.events] == ["malformed"] * 2
