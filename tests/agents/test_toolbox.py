"""The toolbox: every status, copies, schemas, threads, limits, and what is our own defect."""

import json
import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.agents import AgentLimits, Tool, Toolbox
from agenteval.agents.toolbox import MAX_CALLS, STOPPED
from agenteval.records import Message, Usage

START = {
    "type": "object",
    "properties": {"start": {"type": "integer", "minimum": 0, "maximum": 24}},
    "required": ["start"],
    "additionalProperties": False,
}
TOOLS = [
    Tool(name="rinse", description="Rinse."),
    Tool(name="dry", description="Dry.", parameters=START),
]


def answer(name, arguments):
    return f"{name} done with {json.dumps(dict(arguments))}"


def box(backend=answer, tools=TOOLS, **limits):
    return Toolbox(tools, backend, AgentLimits(**limits))


def seen(tools):
    return [(e.name, e.arguments, e.status, e.turn) for e in tools.events]


@pytest.mark.parametrize("nothing", [None, "", {}, "{}", b"{}", b""])
def test_no_arguments(nothing):
    tools = box()
    tools.call("rinse", nothing)
    assert seen(tools) == [("rinse", {}, "ok", 0)]


def test_unknown_tool_is_told_the_names():
    tools = box()
    said = tools.call("polish", {"a": 1})
    assert "'polish'" in said
    assert "rinse, dry" in said
    assert seen(tools) == [("polish", {"a": 1}, "unknown_tool", 0)]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        ({}, "'start' is a required property"),
        ({"start": "9"}, "start: '9' is not of type 'integer'"),
        ({"start": 25}, "start: 25 is greater than the maximum of 24"),
        ({"start": True}, "start: True is not of type 'integer'"),
        ({"start": 9, "end": 10}, "Additional properties are not allowed ('end' was unexpected)"),
    ],
)
def test_against_the_schema(arguments, said):
    called = []
    tools = box(lambda name, arguments: called.append(name) or "done")
    assert tools.call("dry", arguments) == f"Not carried out: {said}."
    assert seen(tools) == [("dry", arguments, "bad_arguments", 0)]
    assert called == []


def test_values_that_json_does_not_have():
    tools = box()
    for odd in ({"start": float("nan")}, '{"start": Infinity}', {"start": {9}}, object()):
        assert "not JSON values" in tools.call("dry", odd)
    assert {e.status for e in tools.events} == {"bad_arguments"}
    json.dumps([e.model_dump() for e in tools.events], allow_nan=False)


def test_long_and_deep_arguments_are_cut():
    tools = box()
    deep = current = {}
    for _ in range(300):
        current["a"] = current = {}
    assert "too long" in tools.call("dry", {"start": "x" * 200_000})
    assert "too long" in tools.call("dry", "x" * 200_000)
    assert "too deeply" in tools.call("dry", deep)
    assert all(e.status == "bad_arguments" for e in tools.events)
    assert all(len(str(e.arguments)) <= 2000 for e in tools.events)
    assert len(tools.call("dry", {"start": "x" * 50_000})) < 600


def test_a_huge_number_against_multiple_of():
    schema = {"type": "object", "properties": {"n": {"multipleOf": 0.5}}}
    tools = box(tools=[Tool(name="count", parameters=schema)])
    tools.call("count", '{"n": 1' + "0" * 400 + "}")
    assert tools.events[0].status == "bad_arguments"
    assert tools.defect is None


def test_the_log_is_a_copy():
    kept = []

    def backend(name, arguments):
        kept.append(arguments)
        arguments["start"] = 23
        return "done"

    tools = box(backend)
    mine = {"start": 9}
    tools.call("dry", mine)
    mine["start"] = 1
    kept[0]["start"] = 2
    assert tools.events[0].arguments == {"start": 9}


def test_the_last_turn_counts_and_the_next_does_not():
    tools = box(turns=2)
    assert [tools.call("rinse") for _ in range(2)] == ["rinse done with {}"] * 2
    assert not tools.exhausted.is_set()
    assert tools.call("rinse") == STOPPED
    tools.malformed("more")
    assert tools.exhausted.is_set()
    assert (len(tools.events), tools.turns) == (2, 2)


def test_many_calls_in_one_turn_are_bounded():
    tools = box()
    turn = tools.turn()
    said = [tools.call("rinse", turn=turn) for _ in range(MAX_CALLS + 1)]
    assert said[MAX_CALLS - 1 :] == ["rinse done with {}", STOPPED]
    assert tools.exhausted.is_set()
    assert len(tools.events) == MAX_CALLS


def test_nothing_counts_after_the_end():
    tools = box(turns=1)
    tools.close()
    assert tools.attempt("rinse") == (None, STOPPED)
    tools.malformed("x")
    tools.say(Message(role="assistant", content="late"))
    assert (tools.events, tools.messages, tools.turns) == ([], [], 0)
    assert not tools.exhausted.is_set()  # it was not the agent that went over its limit


def test_a_refusal_of_the_backend():
    def backend(name, arguments):
        raise ValueError("the salon opens at 8")

    tools = box(backend)
    assert tools.call("dry", {"start": 3}) == "Not carried out: the salon opens at 8"
    assert seen(tools) == [("dry", {"start": 3}, "bad_arguments", 0)]
    assert tools.defect is None


def broken(error):
    def backend(name, arguments):
        raise error

    return backend


@pytest.mark.parametrize(
    "backend",
    [
        broken(KeyError("start")),
        broken(json.JSONDecodeError("x", "y", 0)),  # a ValueError, but none that was meant
        broken(UnicodeDecodeError("utf-8", b"", 0, 1, "x")),
        lambda name, arguments: None,
        lambda name, arguments: 5,
    ],
)
def test_a_defect_of_the_backend(backend):
    tools = box(backend)
    with pytest.raises(Exception) as caught:
        tools.call("rinse")
    assert tools.defect is caught.value
    assert tools.events == []
    assert tools.call("dry", {"start": 1}) == STOPPED
    assert not tools.exhausted.is_set()


def test_threads():
    """Without a lock the backend's read-and-write would lose counts."""
    state = {"count": 0}

    def backend(name, arguments):
        now = state["count"]
        time.sleep(0.0005)
        state["count"] = now + 1
        return str(now)

    tools = box(backend, turns=100)

    def work():
        for _ in range(10):
            tools.call("rinse")
            tools.spend(Usage(requests=1, prompt_tokens=2))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [e.result for e in tools.events] == [str(n) for n in range(80)]
    assert sorted(e.turn for e in tools.events) == list(range(80))
    assert [e.at for e in tools.events] == sorted(e.at for e in tools.events)
    assert tools.usage == Usage(requests=80, prompt_tokens=160)


values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=20,
)


@given(values)
def test_any_arguments_end_as_an_event_that_can_be_stored(value):
    tools = box(lambda name, arguments: "done", turns=1)
    status, _ = tools.attempt("dry", value)
    (event,) = tools.events
    assert status == event.status
    assert type(event).model_validate_json(event.model_dump_json()) == event
