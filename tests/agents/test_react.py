"""ReAct by text: how replies are read, and the loop against a real server."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.agents import AgentLog, drive
from agenteval.agents.endpoint import Endpoint, connect
from agenteval.agents.react import CORRECTION, CUT, react, read_step
from agenteval.testing import serve
from tests.agents.conftest import box, instant, made, script, statuses

STEP = "Thought: The bag first.\nAction: pack_bag\nAction Input: {}"


# ---- Reading a reply -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("reply", "name", "arguments"),
    [
        (STEP, "pack_bag", "{}"),
        ("Action: pack_bag", "pack_bag", ""),
        ("Action: pack_bag\nAction Input:", "pack_bag", ""),
        ("Action: pack_bag\nAction Input: None", "pack_bag", ""),
        ("Action: `pack_bag`\nAction Input: `{}`", "pack_bag", "{}"),
        ('**Action:** "pack_bag"\n**Action Input:** {"a": 1}', "pack_bag", '{"a": 1}'),
        ("### Action: [pack_bag]\n### Action Input: {}", "pack_bag", "{}"),
        ("Action 2: pack_bag\nAction Input 2: {}", "pack_bag", "{}"),
        ("action: pack_bag.\naction_input: {}", "pack_bag", "{}"),
        ("Action: pack_bag()", "pack_bag", ""),
        ('Action: book_train({"minute": 3})', "book_train", '{"minute": 3}'),
        ("Action: Search[old town]", "Search", "old town"),
        (
            'Action: book_train\nAction Input: ```json\n{"minute": 3}\n```',
            "book_train",
            '{"minute": 3}',
        ),
        (
            'Action:\nbook_train\nAction Input:\n{\n "minute": 3\n}',
            "book_train",
            '{\n "minute": 3\n}',
        ),
        (
            'Action: book_train\nAction Input: {"minute": 3} which is early',
            "book_train",
            '{"minute": 3}',
        ),
        (
            'Action:\n```json\n{"action": "book_train", "action_input": {"minute": 3}}\n```',
            "book_train",
            '{"minute": 3}',
        ),
        ('Action: {"name": "pack_bag", "arguments": {}}', "pack_bag", ""),
        ('Action: book_train\nAction Input: {"minute": 3', "book_train", '{"minute": 3'),
        ("Action: book_train\nAction Input: minute 3", "book_train", "minute 3"),
        ("<think>\nAction: call_taxi\n</think>\nAction: pack_bag", "pack_bag", ""),
        ("Action: call_taxi\n</think>\nAction: pack_bag", "pack_bag", ""),
    ],
)
def test_an_action_is_found(reply: str, name: str, arguments: str) -> None:
    step = read_step(reply)
    assert (step.kind, step.name, step.arguments) == ("action", name, arguments)


@pytest.mark.parametrize(
    ("reply", "words"),
    [
        ("Thought: done.\nFinal Answer: All is packed.", "All is packed."),
        ("**Final Answer:** one\ntwo", "one\ntwo"),
        ("Final Answer:", ""),
        ("Final Answer: bye\nObservation: x\nFinal Answer: y", "bye"),
        ("Final Answer: bye\nAction: pack_bag", "bye\nAction: pack_bag"),
        ("Action: Final Answer\nAction Input: bye", "bye"),
    ],
)
def test_a_final_answer_is_found(reply: str, words: str) -> None:
    step = read_step(reply)
    assert (step.kind, step.answer) == ("final", words)


@pytest.mark.parametrize(
    "reply",
    [
        "",
        "  \n",
        "I would pack the bag now.",
        "Thought: what next?",
        "Action:",
        "Action: ``",
        "Action:\nAction Input: {}",
        "Action Input: {}",
        "Action: {broken",
        "Observation: it rains",
        "<think>Action: pack_bag",
        "My Action: pack_bag is next",
    ],
)
def test_what_is_no_step(reply: str) -> None:
    assert read_step(reply).kind == "malformed"


# ---- The loop ------------------------------------------------------------------------------------


async def run(replies: Any, turns: int = 5) -> tuple[Any, list[dict[str, Any]]]:
    with serve(replies) as server:
        endpoint = Endpoint("test-model", server.base_url)
        client = connect(endpoint, sleep=instant)
        log = await drive(made(react(endpoint, client)), "Go on a trip.", box(turns=turns))
        await client.close()
        return log, [r.body for r in server.requests if r.body]


async def test_invented_observations_are_cut_off() -> None:
    invented = f"{STEP}\nObservation: packed\nThought: taxi\nAction: call_taxi\nAction Input: {{}}"
    log, bodies = await run(script(invented, "Final Answer: done"))
    assert statuses(log.events) == [(0, "pack_bag", "ok")]
    assert bodies[1]["messages"][2] == {"role": "assistant", "content": STEP}


@pytest.mark.parametrize(
    ("wrong", "event", "told"),
    [
        ("I will pack the bag.", (0, "", "malformed"), CORRECTION),
        ("", (0, "", "malformed"), CORRECTION),
        (
            "Action: fly_home\nAction Input: {}",
            (0, "fly_home", "unknown_tool"),
            "There is no tool 'fly_home'",
        ),
        (
            'Action: book_train\nAction Input: {"minute": 3',
            (0, "book_train", "bad_arguments"),
            "not valid JSON",
        ),
        ("Action: book_train", (0, "book_train", "bad_arguments"), "'minute' is a required"),
    ],
)
async def test_what_the_model_does_wrong_is_logged_and_told(
    wrong: str, event: Any, told: str
) -> None:
    log, bodies = await run(script(wrong, "Final Answer: sorry"))
    assert isinstance(log, AgentLog)
    assert statuses(log.events) == [event]
    assert (log.output, log.turns) == ("sorry", 1)
    assert all(m["content"] for m in bodies[1]["messages"])
    assert told in bodies[1]["messages"][-1]["content"]
    if event[2] == "malformed":
        assert log.events[0].arguments == wrong


async def test_a_name_cut_by_length_is_not_called() -> None:
    def cut(body: dict[str, Any], n: int) -> Any:
        if len(body["messages"]) > 2:
            return "Final Answer: sorry"
        message = {"role": "assistant", "content": "Thought: now\nAction: pack_b"}
        return {"model": "m", "choices": [{"finish_reason": "length", "message": message}]}

    log, bodies = await run(cut)
    assert statuses(log.events) == [(0, "", "malformed")]
    assert CUT in bodies[1]["messages"][-1]["content"]
