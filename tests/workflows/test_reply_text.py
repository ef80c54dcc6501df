"""Reading agents' texts: the two templates, what is let pass, what is not, and anything at all."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.agents import AgentFailure, AgentLimits, System
from agenteval.agents.autogen import autogen
from agenteval.agents.callable import CallableAgent
from agenteval.agents.endpoint import Endpoint, connect
from agenteval.agents.openai_chat import openai_chat
from agenteval.agents.react import react
from agenteval.errors import Transient
from agenteval.testing import serve
from agenteval.workflows.cases import open_role, turn_cases
from agenteval.workflows.reply_text import predict_next, read_object, read_reply, thought_items
from agenteval.workflows.session import Prediction
from agenteval.workflows.variants import template_agent
from tests.agents.conftest import call, calls, instant

THOUGHT = (
    "Thought: [Step: Recall]: 'last_node=SK000'. [Step: Analyze the current intent]: 'The current "
    "intent intent=Book a flight'. [Step: Locate]: 'current_node=SK001'. Next, I need to ask."
)


def called(text: str) -> tuple[str, Any]:
    found = read_reply(text)
    assert found.form == "call"
    assert found.raw == text
    return found.tool, found.arguments


def test_a_reply_with_its_thought() -> None:
    found = read_reply(f"{THOUGHT}\nResponse: Which flight?\n\nI can also look one up.")
    assert (found.form, found.tool, found.arguments) == ("reply", "", None)
    assert found.response == "Which flight?\n\nI can also look one up."
    assert (found.node, found.intent) == ("SK001", "Book a flight")
    assert found.thought.startswith("[Step: Recall]")
    assert found.thought.endswith("I need to ask.")


@pytest.mark.parametrize(
    "text",
    [
        'Thought: t\nAction: book\nAction Input: {"n": 2}',
        'Thought: t\nAction: functions.book\nAction Input: {"n": 2}',
        'Thought: t\nAction: book Action Input: {"n": 2}',
        'Thought: t\nAction: book\nAction Input: {\n  "n": 2\n}',
        'Thought: t\nAction: book\nAction Input:\n```json\n{"n": 2}\n```',
        '```\nThought: t\nAction: book\nAction Input: {"n": 2}\n```',
        '**Thought:** t\n**Action:** `book`\n**Action Input:** `{"n": 2}`',
        'thought: t\naction: "book"\naction input: {"n": 2}',
        'Action: book\nAction Input: {"n": 2}',
        'Thought: t\nResponse: One moment.\nAction: book\nAction Input: {"n": 2}',
    ],
)
def test_ways_to_write_one_call(text: str) -> None:
    assert called(text) == ("book", {"n": 2})


@pytest.mark.parametrize(
    ("given", "read"),
    [
        ('{"o": {"a": [1, {"b": "}"}]}}', {"o": {"a": [1, {"b": "}"}]}}),
        ("{}", {}),
        ('{"a": "\\ud800", "\\udfff": ["\\ud83d\\ude00"]}', {"a": "\ufffd", "\ufffd": ["😀"]}),
        ("{'n': 2}", "{'n': 2}"),
        ('{"n": 2', '{"n": 2'),
        ("two rooms", "two rooms"),
        ('{"n": NaN}', '{"n": NaN}'),
        ('{"n": 1e999}', '{"n": 1e999}'),
        ('{"n": 1, "n": 2}', '{"n": 1, "n": 2}'),
        ('{"a":' * 70 + "1" + "}" * 70, '{"a":' * 70 + "1" + "}" * 70),
    ],
)
def test_what_is_no_strict_object_stays_raw(given: str, read: Any) -> None:
    assert called(f"Thought: t\nAction: book\nAction Input: {given}") == ("book", read)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "Hello, how can I help?",
        "Thought: I should ask.",
        "Thought: t\nResponse:",
        "Thought: t\nAction: I will book a room\nAction Input: {}",
        "Thought: t\nAction: None",
        "Thought: t\nAction Input: {}",
        'The line "Action: book" stands within a sentence',
    ],
)
def test_neither_form_is_unreadable(text: str) -> None:
    found = read_reply(text)
    assert (found.form, found.tool, found.response, found.raw) == ("unreadable", "", "", text)


@pytest.mark.parametrize(
    ("thought", "expected"),
    [
        ("current_node=SK001", ("SK001", None)),
        ("last_node = SK000, intent = UNK, current_node = 'SK002'", ("SK002", "UNK")),
        ("intent='User doesn't rebook'. Next", (None, "User doesn't rebook")),
        (
            "intent=Book a flight OR Change a seat; current_node=[AB012]",
            ("AB012", "Book a flight OR Change a seat"),
        ),
        ("current_node=None intent=", (None, None)),
        ("intent=A\nthen intent=B", (None, "B")),
        (
            "Current node=SK003. The intent intent=Flight is available.",
            ("SK003", "Flight is available"),
        ),
        ("nothing of the kind, but an intent and a node", (None, None)),
    ],
)
def test_items_of_a_thought(thought: str, expected: tuple[str | None, str | None]) -> None:
    assert thought_items(thought) == expected


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**60), 2**60)
    | st.text(max_size=8)
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.text(max_size=6), VALUES, max_size=4), st.sampled_from([None, 2]))
def test_every_object_that_json_can_write_is_read_back(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    assert called(f"Thought: t\nAction: book\nAction Input: {text}\n")[1] == value
    assert read_object(f"```json\n{json.dumps(value)}\n```") == value or "```" in text


PIECES = st.sampled_from(
    [
        "Thought:",
        "Action:",
        "Action Input:",
        "Response:",
        "\n",
        " ",
        "{",
        "}",
        '"',
        "'",
        "book",
        "functions.",
        "```",
        "**",
        "intent=",
        "current_node=",
        "\ud800",
        '{"a": "\\ud800"}',
        "：",
        "\x00",
        "\u2028",
        "[",
        "1e999",
        ",",
        "\\",
    ]
)


@given(st.lists(PIECES | st.text(max_size=4), max_size=40).map("".join))
def test_any_text_is_read_without_an_error(text: str) -> None:
    found = read_reply(text)
    assert found.form in ("call", "reply", "unreadable")
    assert (found.form == "call") == bool(found.tool)
    assert json.loads(found.model_dump_json())["form"] == found.form


DESK = open_role(Path(__file__).parent / "library_desk", backend=False)
ROLE, CASES = DESK.role, {case.gold.turn: case for case in turn_cases([DESK])}
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
STEP = "Thought: [Step] last_node=LB000, intent=Ask for a book, current_node=LB001."
SAID = {
    "openai": calls(call("find_book", '{"title": "Dune"}'), text=STEP),
    "autogen": calls(call("find_book", '{"title": "Dune"}'), text=STEP),
    "react": f"{STEP}\n{ACTION}",
    "template": f"{STEP}\n{ACTION}",
}


@pytest.mark.parametrize("model", sorted(MODELS))
async def test_a_call(model: str) -> None:
    found, bodies = await ask(model, SAID[model])
    assert isinstance(found, Prediction)
    assert (found.form, found.tool, found.arguments) == ("call", "find_book", {"title": "Dune"})
    assert (found.node, found.intent, found.further) == ("LB001", "Ask for a book", ())
    assert found.thought == STEP.removeprefix("Thought: ")
    assert found.raw.startswith(STEP)
    assert found.usage.requests == len(bodies) == 1  # it is not asked again
    assert found.model == "test-model"


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


async def test_an_endpoint_that_fails_is_no_prediction() -> None:
    def reply(messages: Any, tools: Any) -> str:
        raise Transient("503")

    found = await predict(1, system_of(reply), "text")
    assert isinstance(found, AgentFailure)
