"""Agents that fail in known ways, on the real backend of the library: each gets its cause."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from agenteval.workflows.backend import load_backend
from agenteval.workflows.causes import calls_of, causes, primary
from agenteval.workflows.conformance import Deviation
from agenteval.workflows.final_state import gold_state, judged
from agenteval.workflows.folder import read_role
from agenteval.workflows.mermaid import parse_chart
from agenteval.workflows.procedure import Procedure, compiled, procedure
from agenteval.workflows.scenario import Action, Goal, Profile, WorkflowTool
from agenteval.workflows.session import SessionCall, SessionLog, SimulatorMistake

DESK = Path(__file__).parent / "library_desk"
ROLE = read_role(DESK)
BACKEND: Any = load_backend(DESK)
HANA, OTTO = ROLE.scenario("lend_book").profiles
(JAN,) = ROLE.cross_profiles

Asked = tuple[str, dict[str, Any]]


@cache
def desk(scenarios: tuple[str, ...]) -> Procedure:
    return procedure(ROLE, scenarios)


def session(*calls: Asked, one_turn: bool = False) -> SessionLog:
    backend, made = BACKEND(), []
    for turn, (tool, arguments) in enumerate(calls):
        try:
            if not hasattr(backend, tool):
                result, status = "no such tool", "unknown_tool"
            else:
                result, status = json.dumps(getattr(backend, tool)(**arguments)), "ok"
        except (ValueError, TypeError) as refused:
            result, status = str(refused), "bad_arguments"
        made.append(
            SessionCall(
                tool=tool, arguments=arguments, status=status,
                result=result, turn=0 if one_turn else turn,
            )
        )  # fmt: skip
    return SessionLog(calls=tuple(made), ended="user", state=backend.state)


def find(title: str) -> Asked:
    return "find_book", {"title": title}


def lend(title: str, reader: str = "R-20") -> Asked:
    return "lend_book", {"title": title, "reader_id": reader}


def bring(title: str) -> Asked:
    return "return_book", {"title": title}


def told(profile: Profile, *calls: Asked, **how: Any) -> list[tuple[str, int, str]]:
    """Deviations; and conformance and the final state must agree about success."""
    log = session(*calls, **how)
    found = causes(desk(profile.scenarios), profile, log)
    verdict = judged(gold_state(ROLE, profile, BACKEND), log, ROLE.success)
    assert verdict is not None
    assert verdict.success == (not found)
    return [(d.cause, d.at, d.tool) for d in found]


@pytest.mark.parametrize(
    ("profile", "calls"),
    [
        (HANA, [find("Dune"), lend("Dune")]),
        (HANA, [find(" dune"), find("Dune"), lend("Dune")]),  # out by its answer, so an edge back
        (OTTO, [find("Emma"), find("Ulysses"), lend("Ulysses", "R-17")]),
        (JAN, [bring("Emma"), find("Dune"), lend("Dune", "R-17")]),
        (JAN, [find("Dune"), bring("Emma"), lend("Dune", "R-17")]),
    ],
)
def test_a_perfect_agent(profile: Profile, calls: list[Asked]) -> None:
    assert told(profile, *calls) == []


@pytest.mark.parametrize(
    ("profile", "calls", "expected"),
    [
        # a step left out, at the beginning and at the end, and everything
        (HANA, [lend("Dune")], [("missing_step", 0, "find_book")]),
        (HANA, [find("Dune")], [("missing_step", 1, "lend_book")]),
        (HANA, [], [("missing_step", 0, "find_book"), ("missing_step", 0, "lend_book")]),
        (JAN, [find("Dune"), lend("Dune", "R-17")], [("missing_step", 0, "return_book")]),
        (
            JAN,
            [bring("Emma")],
            [("missing_step", 1, "find_book"), ("missing_step", 1, "lend_book")],
        ),
        # two steps swapped: Dune is no longer in when it is looked up
        (HANA, [lend("Dune"), find("Dune")], [("wrong_order", 0, "lend_book")]),
        # the branch of a book that is in
        (
            OTTO,
            [find("Emma"), lend("Emma", "R-17")],
            [("wrong_transition", 1, "lend_book"), ("missing_step", 1, "find_book")],
        ),
        # wrong values
        (
            HANA,
            [find("Emma"), find("Dune"), lend("Dune", "R-17")],
            [("tool_use", 2, "lend_book")],
        ),
        (
            HANA,
            [find("Ulysses"), lend("Ulysses")],
            [("tool_use", 0, "find_book"), ("tool_use", 1, "lend_book")],
        ),
        # tools that are not there, or refuse
        (
            HANA,
            [find("Dune"), ("sing", {})],
            [("tool_use", 1, "sing"), ("missing_step", 2, "lend_book")],
        ),
        (HANA, [find("Dune"), lend("Dune", "R-99")], [("tool_use", 1, "lend_book")]),
        (HANA, [find("Dune"), ("lend_book", {"title": "Dune"})], [("tool_use", 1, "lend_book")]),
    ],
)  # fmt: skip
def test_an_agent_that_fails(
    profile: Profile, calls: list[Asked], expected: list[tuple[str, int, str]]
) -> None:
    found = told(profile, *calls)
    assert found == expected


def test_a_wrong_value_is_told_with_gold() -> None:
    found = causes(desk(("lend_book",)), HANA, session(find("Dune"), lend("Dune", "R-17")))
    (deviation,) = found
    assert deviation.detail == 'reader_id: "R-17", gold "R-20"'


def test_a_repaired_call_is_charged_once_and_succeeds() -> None:
    log = session(find("Dune"), lend("Dune", "R-99"), lend("Dune"))
    found = causes(desk(("lend_book",)), HANA, log)
    assert [(d.cause, d.at) for d in found] == [("tool_use", 1)]
    assert "there is no reader R-99" in found[0].detail


def test_a_loop() -> None:
    calls = [find("Emma")] * 4  # out each time, so the chart leads back each time
    log = session(*calls, one_turn=True)
    found = causes(desk(("lend_book",)), OTTO, log)
    assert [(d.cause, d.at) for d in found if d.at < 4][-3:] == [
        ("wrong_order", 1), ("wrong_order", 2), ("wrong_order", 3),
    ]  # fmt: skip
    assert found[-1].cause == "missing_step"
    # Asked for by the user turn by turn, the same calls are no loop.
    by_turn = causes(desk(("lend_book",)), OTTO, session(*calls))
    assert "wrong_order" not in {d.cause for d in by_turn}
    endless = causes(desk(("lend_book",)), HANA, session(*[find("Dune")] * 500, one_turn=True))
    assert [d.at for d in endless if d.cause == "wrong_order"] == list(range(1, 500))
    assert endless[-1].cause == "missing_step"


def test_a_branch_that_is_not_the_users_will() -> None:
    text = """flowchart TD
AA000(Start)-->AA001>call look]
AA001--The user cancels-->AA002>call cancel]
AA001--The user moves it-->AA003>call move]"""
    tools = [
        WorkflowTool(name=n, description="", parameters={}, returns={}, effect="write")
        for n in ("look", "cancel", "move")
    ]
    walk = compiled({"s": parse_chart(text, "s")}, tools)
    gold = (Action(tool="look"), Action(tool="move"))
    goals = (Goal(text="Move it.", actions=gold),)
    profile = Profile(id="p", scenarios=("s",), persona="x", opening="x", goals=goals)

    def made(*names: str) -> tuple[Deviation, ...]:
        calls = tuple(
            SessionCall(tool=n, arguments={}, result="{}", turn=i) for i, n in enumerate(names)
        )
        return causes(walk, profile, SessionLog(calls=calls, ended="user"))

    (deviation,) = made("look", "cancel")
    assert (deviation.cause, deviation.at, deviation.tool) == ("wrong_transition", 1, "cancel")
    assert deviation.edge == ("AA001", "AA002")
    assert "move" in deviation.detail
    assert made("look", "move") == ()
    assert [d.cause for d in made("look")] == ["missing_step"]


def test_what_a_simulator_spoiled_is_not_charged() -> None:
    mistakes = tuple(SimulatorMistake(who=who, kind="wrong", turn=0) for who in ("tools", "user"))
    for mistake in mistakes:
        spoiled = session(find("Dune")).model_copy(update={"mistakes": (mistake,)})
        assert causes(desk(("lend_book",)), HANA, spoiled) == ()
    repaired = tuple(m.model_copy(update={"repaired": True}) for m in mistakes)
    log = session(find("Dune")).model_copy(update={"mistakes": repaired})
    assert [d.cause for d in causes(desk(("lend_book",)), HANA, log)] == ["missing_step"]


def test_calls_of_a_log() -> None:
    log = SessionLog(
        ended="user",
        calls=(
            SessionCall(tool="a", arguments={"x": 1}, result='{"y": 2}', turn=0),
            SessionCall(tool="b", arguments="{", status="malformed", result="no JSON", turn=1),
            SessionCall(tool="c", arguments={}, result="in words", turn=2),
        ),
    )
    first, second, third = calls_of(log)
    assert (first.returned, first.carried_out) == ({"y": 2}, True)
    assert (second.carried_out, second.returned) == (False, None)
    assert second.problem == "malformed: no JSON"
    assert (third.carried_out, third.returned) == (True, None)


def test_the_primary_cause() -> None:
    late = Deviation(cause="missing_step", at=3)
    early = Deviation(cause="tool_use", at=1)
    assert primary([late, early]) == "tool_use"
    assert primary([]) == "other"


def test_a_step_left_out_comes_before_the_refusal_that_it_led_to() -> None:
    text = """flowchart TD
AA000(Start)-->AA001>call hold]
AA001-->AA002>call pay]"""
    tools = [
        WorkflowTool(name=n, description="", parameters={}, returns={}, effect="write")
        for n in ("hold", "pay")
    ]
    walk = compiled({"s": parse_chart(text, "s")}, tools)
    goals = (Goal(text="Buy it.", actions=(Action(tool="hold"), Action(tool="pay"))),)
    profile = Profile(id="p", scenarios=("s",), persona="x", opening="x", goals=goals)

    def made(*calls: tuple[str, bool]) -> list[tuple[str, int, str]]:
        log = SessionLog(
            calls=tuple(
                SessionCall(
                    tool=tool, arguments={}, result="{}" if ok else "nothing is held",
                    status="ok" if ok else "bad_arguments", turn=i,
                )
                for i, (tool, ok) in enumerate(calls)
            ),
            ended="user",
        )  # fmt: skip
        return [(d.cause, d.at, d.tool) for d in causes(walk, profile, log)]

    assert made(("pay", False)) == [("missing_step", 0, "hold"), ("tool_use", 0, "pay")]
    # held, and refused for another reason
    assert made(("hold", True), ("pay", False)) == [("tool_use", 1, "pay")]
    # made good afterwards: the early call is all that is wrong
    assert made(("pay", False), ("hold", True), ("pay", True)) == [("wrong_order", 0, "pay")]
    # swapped, and never made good: the arguments were right
    assert made(("pay", False), ("hold", True)) == [("wrong_order", 0, "pay")]
    # a refused step is no step left out
    assert made(("hold", False), ("pay", False)) == [
        ("tool_use", 0, "hold"),
        ("tool_use", 1, "pay"),
    ]


def test_an_empty_value_of_gold_says_nothing() -> None:
    text = "flowchart TD\nAA000(Start)-->AA001>call book]"
    tool = WorkflowTool(name="book", description="", parameters={}, returns={}, effect="write")
    walk = compiled({"s": parse_chart(text, "s")}, [tool])
    action = Action(tool="book", arguments={"room": "R1", "menu": "", "guests": []})
    goals = (Goal(text="Book it.", actions=(action,)),)
    profile = Profile(id="p", scenarios=("s",), persona="x", opening="x", goals=goals)

    def made(arguments: dict[str, Any]) -> list[str]:
        call = SessionCall(tool="book", arguments=arguments, result="{}", turn=0)
        return [d.detail for d in causes(walk, profile, SessionLog(calls=(call,), ended="user"))]

    assert made({"room": "R1"}) == []
    assert made({"room": "R1", "menu": "", "guests": None}) == []
    assert made({"room": "", "menu": ""}) == ['room: not given, gold "R1"']
