"""Turn level: what an agent is shown of a recorded session, and what it does first."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from agenteval.agents import AgentFailure, AgentLimits, Dialogue, System
from agenteval.agents.autogen import autogen
from agenteval.agents.callable import CallableAgent
from agenteval.agents.endpoint import Endpoint, connect
from agenteval.agents.openai_chat import openai_chat
from agenteval.agents.react import react
from agenteval.errors import Transient
from agenteval.testing import serve
from agenteval.workflows.cases import open_role, turn_cases
from agenteval.workflows.instructions import instructions
from agenteval.workflows.reply_text import predict_next
from agenteval.workflows.session import Prediction
from agenteval.workflows.templated import template_agent
from tests.agents.conftest import call, calls, instant

DESK = open_role(Path(__file__).parent / "library_desk", backend=False)
ROLE, CASES = DESK.role, {case.gold.turn: case for case in turn_cases([DESK])}
(SESSION,) = ROLE.scenario("lend_book").sessions
MODELS = {"openai": openai_chat, "autogen": autogen, "react": react, "template": template_agent}
FIRST_CALL = 3  # the turn of find_book


async def predict(index: int, system: System, format: Any, seconds: float | None = None) -> Any:
    limits = None if seconds is None else AgentLimits(seconds)
    return await predict_next(system, *CASES[index].asked(format), limits)


async def ask(model: str, reply: Any, index: int = FIRST_CALL) -> tuple[Any, list[dict[str, Any]]]:
    with serve(lambda body, n: reply) as server:
        endpoint = Endpoint("test-model", server.base_url)
        client = connect(endpoint, sleep=instant)
        system = MODELS[model](endpoint, client)
        found = await predict(index, system, "flowchart", 20)
        await client.close()
        return found, [r.body for r in server.requests if r.body]


def system_of(function: Any) -> System:
    return System("f", lambda: CallableAgent(function), {})


ACTION = 'Action: find_book\nAction Input: {"title": "Dune"}'
THOUGHT = "Thought: [Step] last_node=LB000, intent=Ask for a book, current_node=LB001."
SAID = {
    "openai": calls(call("find_book", '{"title": "Dune"}'), text=THOUGHT),
    "autogen": calls(call("find_book", '{"title": "Dune"}'), text=THOUGHT),
    "react": f"{THOUGHT}\n{ACTION}",
    "template": f"{THOUGHT}\n{ACTION}",
}


@pytest.mark.parametrize("model", sorted(MODELS))
async def test_a_call(model: str) -> None:
    found, bodies = await ask(model, SAID[model])
    assert isinstance(found, Prediction)
    assert (found.form, found.tool, found.arguments) == ("call", "find_book", {"title": "Dune"})
    assert (found.node, found.intent, found.further) == ("LB001", "Ask for a book", ())
    assert found.thought == THOUGHT.removeprefix("Thought: ")
    assert found.raw.startswith(THOUGHT)
    assert found.usage.requests == len(bodies) == 1  # it is not asked again
    assert found.model == "test-model"


@pytest.mark.parametrize("model", ["openai", "autogen"])
async def test_calls_made_at_once(model: str) -> None:
    reply = calls(
        call("find_book", '{"title": "Dune"}', "a"),
        call("lend_book", "{}", "b"),
        call("fly", "{}", "c"),
    )
    found, _ = await ask(model, reply)
    assert (found.tool, found.further) == ("find_book", ("lend_book", "fly"))


@pytest.mark.parametrize(
    ("name", "arguments", "kept"),
    [
        ("fly", "{}", {}),
        ("find_book", '{"title": 5}', {"title": 5}),
        ("find_book", '{"title"', '{"title"'),
    ],
)
async def test_a_call_that_cannot_be_carried_out_is_a_call(
    name: str, arguments: str, kept: Any
) -> None:
    found, bodies = await ask("openai", calls(call(name, arguments)))
    assert (found.form, found.tool, found.arguments) == ("call", name, kept)
    assert len(bodies) == 1


REPLIES = {
    "openai": ("Dune is in.", None),
    "autogen": ("Dune is in.", None),
    "react": ("Thought: current_node=LB002\nFinal Answer: Dune is in.", "LB002"),
    "template": ("Thought: current_node=LB002\nResponse: Dune is in.", "LB002"),
}


@pytest.mark.parametrize("model", sorted(MODELS))
async def test_a_reply(model: str) -> None:
    text, node = REPLIES[model]
    found, _ = await ask(model, text)
    assert isinstance(found, Prediction)
    assert (found.form, found.response, found.tool, found.node, found.raw) == (
        "reply",
        "Dune is in.",
        "",
        node,
        text,
    )


@pytest.mark.parametrize(
    ("model", "text"),
    [
        ("openai", '<tool_call>{"name": "find_book"}</tool_call>'),
        ("openai", " "),
        ("react", "I look it up."),
        ("template", "I look it up."),
    ],
)
async def test_what_is_neither(model: str, text: str) -> None:
    found, bodies = await ask(model, text)
    assert (found.form, found.tool, found.response) == ("unreadable", "", "")
    assert found.raw == text
    assert len(bodies) == 1


async def test_what_it_is_shown() -> None:
    shown: list[Any] = []

    def reply(dialogue: Dialogue, tools: Any) -> str:
        shown.append((dialogue, list(tools)))
        return "Yes?"

    await predict(4, system_of(reply), "text")
    ((dialogue, tools),) = shown
    assert dialogue.instructions == instructions(ROLE, ("lend_book",), "text")
    assert [(m.role, m.content) for m in dialogue.messages] == [
        ("user", "Hi, I would like to borrow a book."),
        ("assistant", "Gladly. Which title are you looking for?"),
        ("user", "Dune, please."),
        ("assistant", ""),
        ("tool", '{"is_in": true, "shelf": "S4"}'),
    ]
    (asked,) = dialogue.messages[3].tool_calls
    assert (asked.name, asked.arguments) == ("find_book", {"title": "Dune"})
    assert asked.id == dialogue.messages[4].tool_call_id
    assert tools == ["find_book", "lend_book"]


async def test_a_function_that_calls_a_tool() -> None:
    async def reply(messages: Any, tools: Any) -> str:
        turn = tools.turn()
        await asyncio.gather(turn.call_async("find_book"), turn.call_async("lend_book"))
        return "never said"

    found = await predict(FIRST_CALL, system_of(reply), "no_tools")
    assert isinstance(found, Prediction)
    assert (found.form, found.tool, found.arguments) == ("call", "find_book", {})
    assert found.further == ("lend_book",)


async def test_out_of_time_is_silence() -> None:
    async def reply(messages: Any, tools: Any) -> str:
        await asyncio.Event().wait()
        return ""

    found = await predict(1, system_of(reply), "text", 0.1)
    assert isinstance(found, Prediction)
    assert (found.form, found.raw) == ("unreadable", "")
    assert found.seconds >= 0.1


async def test_an_endpoint_that_fails_is_no_prediction() -> None:
    def reply(messages: Any, tools: Any) -> str:
        raise Transient("503")

    found = await predict(1, system_of(reply), "text")
    assert isinstance(found, AgentFailure)
