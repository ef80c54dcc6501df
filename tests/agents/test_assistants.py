"""Assistants on models: what a model is sent of a dialogue, and what its replies become."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import pytest

from agenteval.agents import AgentLimits, AgentLog, Dialogue, System, Toolbox, drive
from agenteval.agents.autogen import autogen
from agenteval.agents.endpoint import Endpoint, connect
from agenteval.agents.openai_chat import openai_chat
from agenteval.agents.openai_responses import ResponsesTransport, openai_responses
from agenteval.agents.react import react
from agenteval.errors import InputError
from agenteval.records import Message, ToolCall
from agenteval.testing import serve
from tests.agents.conftest import (
    CANARY,
    TOOLS,
    answer,
    call,
    calls,
    instant,
    item,
    response,
    serving_responses,
    statuses,
    words,
)

CHAT = {"openai": openai_chat, "autogen": autogen, "react": react}
FUNCTIONS = ["openai", "autogen"]


async def answer_later(name: str, arguments: Mapping[str, Any]) -> str:
    await asyncio.sleep(0)
    return answer(name, arguments)


def user(text: str) -> Message:
    return Message(role="user", content=text)


def called(*made: tuple[str, Any, str], text: str = "") -> Message:
    asked = tuple(ToolCall(name=name, arguments=given, id=id) for name, given, id in made)
    return Message(role="assistant", content=text, tool_calls=asked)


def told(text: str, id: str) -> Message:
    return Message(role="tool", content=text, tool_call_id=id)


def said(text: str) -> Message:
    return Message(role="assistant", content=text)


HISTORY = (
    user("Pack and call a taxi."),
    called(("pack_bag", {}, "a1"), ("call_taxi", {"to": "Köln"}, "a2"), text="Both at once."),
    told("packed", "a1"),
    told("no taxi", "a2"),
    said("Packed. There is no taxi."),
    user("Then the train at 30."),
)
AFTER_A_RESULT = (*HISTORY, called(("book_train", {"minute": 30}, "a3")), told("booked", "a3"))
RULES = "You serve travellers. {never} {{ interpreted }}"


def made(system: System) -> Any:
    assert CANARY not in json.dumps(system.parameters)
    return system.make()


async def turn(
    adapter: str,
    messages: tuple[Message, ...],
    reply: Any,
    limits: AgentLimits | None = None,
    stop_after: int | None = None,
) -> tuple[Any, list[dict[str, Any]]]:
    """One turn on chat completions with tools that are awaited, and the bodies of its requests."""
    with serve(reply) as server:
        client = connect(Endpoint("test-model", server.base_url, api_key=CANARY), sleep=instant)
        system = CHAT[adapter](Endpoint("test-model", server.base_url, api_key=CANARY), client)
        tools = Toolbox(TOOLS, answer_later, limits, stop_after=stop_after)
        dialogue = Dialogue(instructions=RULES, messages=messages)
        log = await drive(made(system), dialogue, tools)
        await client.close()
        return log, [r.body for r in server.requests if r.body]


def wire(number: str, name: str, arguments: str) -> dict[str, Any]:
    return {"id": number, "type": "function", "function": {"name": name, "arguments": arguments}}


SENT = [
    {"role": "system", "content": RULES},
    {"role": "user", "content": "Pack and call a taxi."},
    {
        "role": "assistant",
        "content": "Both at once.",
        "tool_calls": [wire("a1", "pack_bag", "{}"), wire("a2", "call_taxi", '{"to": "Köln"}')],
    },
    {"role": "tool", "tool_call_id": "a1", "content": "packed"},
    {"role": "tool", "tool_call_id": "a2", "content": "no taxi"},
    {"role": "assistant", "content": "Packed. There is no taxi."},
    {"role": "user", "content": "Then the train at 30."},
]
SENT_AFTER_A_RESULT = [
    *SENT,
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [wire("a3", "book_train", '{"minute": 30}')],
    },
    {"role": "tool", "tool_call_id": "a3", "content": "booked"},
]


def plain(body: dict[str, Any]) -> list[dict[str, Any]]:
    """The messages; whether missing content is null or empty is the adapter's affair."""
    return [{**m, "content": m["content"] or None} for m in body["messages"]]


@pytest.mark.parametrize("adapter", FUNCTIONS)
@pytest.mark.parametrize(
    ("messages", "sent"), [(HISTORY, SENT), (AFTER_A_RESULT, SENT_AFTER_A_RESULT)]
)
async def test_the_dialogue_is_sent_as_it_is(
    adapter: str, messages: tuple[Message, ...], sent: list[Any]
) -> None:
    log, bodies = await turn(adapter, messages, lambda body, n: {"content": "You are booked."})
    assert isinstance(log, AgentLog)
    assert (log.output, log.events, len(bodies)) == ("You are booked.", (), 1)
    assert plain(bodies[0]) == sent
    assert [t["function"] for t in bodies[0]["tools"]] == [t.model_dump() for t in TOOLS]
    assert [(m.role, m.content) for m in log.messages] == [("assistant", "You are booked.")]


def after(*replies: Any) -> Any:
    """The n-th reply of this turn, by the results that stand behind the user's last message."""

    def reply(body: dict[str, Any], n: int) -> Any:
        spoken = [
            m["role"] == "user" and not m["content"].startswith("Observation:")
            for m in body["messages"]
        ]
        last = max(i for i, by_user in enumerate(spoken) if by_user)
        done = sum(m["role"] == "assistant" for m in body["messages"][last:])
        return replies[min(done, len(replies) - 1)]

    return reply


@pytest.mark.parametrize("adapter", sorted(CHAT))
async def test_one_turn_can_be_seen_without_asking_again(adapter: str) -> None:
    reply: Any = calls(call("pack_bag", number="b1"), call("call_taxi", number="b2"))
    if adapter == "react":
        reply = "Thought: go\nAction: pack_bag\nAction Input: {}"
    log, bodies = await turn(adapter, HISTORY, after(reply), stop_after=1)
    assert isinstance(log, AgentLog)
    assert (log.ending, log.output, len(bodies)) == ("iterations", "", 1)
    assert statuses(log.events) == [(0, "pack_bag", "ok")]
    asked = log.messages[0].tool_calls
    assert [c.name for c in asked] == ["pack_bag", "call_taxi"][: len(asked)]


@pytest.mark.parametrize("adapter", sorted(CHAT))
@pytest.mark.parametrize(
    "messages",
    [(user("Hi"), told("x", "a9")), (user("Hi"), called(("pack_bag", {}, "a1")), told("x", "a2"))],
)
async def test_a_result_of_no_call_is_refused(adapter: str, messages: tuple[Message, ...]) -> None:
    with pytest.raises(InputError, match="result of no call"):
        await turn(adapter, messages, after("never asked"))


# ---- ReAct ---------------------------------------------------------------------------------------


async def test_react_reads_the_dialogue_in_words() -> None:
    step = 'Thought: go\nAction: book_train\nAction Input: {"minute": 30}'
    log, bodies = await turn("react", HISTORY, after(step, "Thought: done\nFinal Answer: Booked."))
    assert isinstance(log, AgentLog)
    system, *rest = bodies[0]["messages"]
    assert system["content"].startswith(f"{RULES}\n\nYou work step by step.")
    assert "- book_train: Books a train." in system["content"]
    assert "tools" not in bodies[0]
    assert rest == [
        {"role": "user", "content": "Pack and call a taxi."},
        {"role": "assistant", "content": "Both at once.\nAction: pack_bag\nAction Input: {}"},
        {"role": "user", "content": "Observation: packed"},
        {"role": "assistant", "content": 'Action: call_taxi\nAction Input: {"to": "Köln"}'},
        {"role": "user", "content": "Observation: no taxi"},
        {"role": "assistant", "content": "Final Answer: Packed. There is no taxi."},
        {"role": "user", "content": "Then the train at 30."},
    ]
    assert log.output == "Booked."
    assert statuses(log.events) == [(0, "book_train", "ok")]
    # its own messages are a history that it reads as it wrote them
    history = (*HISTORY, *log.messages, said("Booked."), user("Thanks."))
    _, bodies = await turn("react", history, after("Final Answer: Bye."))
    assert [m["content"] for m in bodies[0]["messages"][8:]] == [
        step,
        'Observation: book_train done {"minute": 30}',
        "Thought: done\nFinal Answer: Booked.",
        "Thanks.",
    ]


async def test_react_keeps_no_reply_that_is_no_step() -> None:
    def reply(body: dict[str, Any], n: int) -> str:
        asked = body["messages"][-1]["content"]
        return "Final Answer: Sorry." if asked.startswith("Observation: That was no") else "Hm."

    log, _ = await turn("react", HISTORY, reply)
    assert statuses(log.events) == [(0, "", "malformed")]
    assert [m.content for m in log.messages] == ["Final Answer: Sorry."]
    assert log.output == "Sorry."


# ---- The Responses API ---------------------------------------------------------------------------


async def test_responses_gets_the_dialogue_as_items() -> None:
    def respond(body: dict[str, Any]) -> tuple[int, dict[str, Any]]:
        if "c9" in json.dumps(body["input"]):
            return 200, response(words("Done."))
        return 200, response(item("pack_bag", "{}", "c8"), item("book_train", "{", "c9"))

    async with serving_responses(respond) as (url, bodies):
        endpoint = Endpoint("test-model", url, api_key=CANARY)
        client = connect(endpoint, transport=ResponsesTransport, sleep=instant)
        assistant = made(openai_responses(endpoint, client))
        tools = Toolbox(TOOLS, answer_later)
        log = await drive(assistant, Dialogue(instructions=RULES, messages=AFTER_A_RESULT), tools)
        once = await drive(
            assistant,
            Dialogue(instructions="", messages=(user(""),)),
            Toolbox(TOOLS, answer_later, stop_after=1),
        )
        await client.close()
    assert isinstance(log, AgentLog)
    assert bodies[0]["input"] == [
        {"role": "system", "content": RULES},
        {"role": "user", "content": "Pack and call a taxi."},
        {"role": "assistant", "content": "Both at once."},
        {"type": "function_call", "call_id": "a1", "name": "pack_bag", "arguments": "{}"},
        {
            "type": "function_call",
            "call_id": "a2",
            "name": "call_taxi",
            "arguments": '{"to": "Köln"}',
        },
        {"type": "function_call_output", "call_id": "a1", "output": "packed"},
        {"type": "function_call_output", "call_id": "a2", "output": "no taxi"},
        {"role": "assistant", "content": "Packed. There is no taxi."},
        {"role": "user", "content": "Then the train at 30."},
        {
            "type": "function_call",
            "call_id": "a3",
            "name": "book_train",
            "arguments": '{"minute": 30}',
        },
        {"type": "function_call_output", "call_id": "a3", "output": "booked"},
    ]
    assert log.output == "Done."
    assert statuses(log.events) == [(0, "pack_bag", "ok"), (0, "book_train", "bad_arguments")]
    assert isinstance(once, AgentLog)
    assert (once.ending, statuses(once.events)) == ("iterations", [(0, "pack_bag", "ok")])
    assert bodies[2]["input"] == [{"role": "user", "content": ""}]
    assert len(bodies) == 3
