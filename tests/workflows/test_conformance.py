"""Alignment against a brute force, and what conformance and causes call the deviations."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from agenteval.errors import InputError
from agenteval.workflows.backend import load_backend
from agenteval.workflows.chart import Chart, Condition, Edge, FieldComparison, Node
from agenteval.workflows.conformance import Deviation, SessionReading, conform, conformance
from agenteval.workflows.final_state import gold_state, judged
from agenteval.workflows.folder import read_role
from agenteval.workflows.mermaid import parse_chart
from agenteval.workflows.procedure import Call, Procedure, align, compiled, procedure
from agenteval.workflows.scenario import Action, Profile, WorkflowTool
from agenteval.workflows.session import SessionCall, SessionLog, SimulatorMistake

DESK = Path(__file__).parent / "library_desk"
ROLE = read_role(DESK)


# -- the cost of an alignment, found a second time by relaxing all states ------------------------

RETURNS = {"f": "ok", "g": "fine", "h": "good"}  # the field that each tool returns
Place = tuple[str, str, int]  # scenario, node, how many of its tools were called
State = tuple[int, Place | None, Place | None]  # calls so far, the place, the place that waits


def random_chart(rng: random.Random, letter: str) -> Chart:
    nodes = [Node(id=f"{letter}0", shape="start", text="Start")]
    edges = []
    for i in range(1, rng.randrange(3, 6)):
        tools = rng.sample(sorted(RETURNS), rng.choice([0, 1, 1, 2]))
        shape = "call" if tools else "reply"
        nodes.append(Node(id=f"{letter}{i}", shape=shape, text=" ".join(tools)))
        edges.append((rng.randrange(i), i))
    n = len(nodes)
    edges += [(rng.randrange(n), rng.randrange(1, n)) for _ in range(rng.randrange(3))]
    return Chart(
        nodes=tuple(nodes),
        edges=tuple(
            Edge(
                source=f"{letter}{a}",
                target=f"{letter}{b}",
                label="l",
                condition=random_condition(rng) if rng.random() < 0.5 else None,
            )
            for a, b in dict.fromkeys(edges)
        ),
    )


def random_condition(rng: random.Random) -> Condition:
    name = rng.choice(sorted(RETURNS))
    compared = FieldComparison(tool=name, field=RETURNS[name], op="=", value=rng.random() < 0.5)
    return Condition(alternatives=((compared,),))


def random_call(rng: random.Random) -> Call:
    name = rng.choice([*RETURNS, "unknown"])
    return Call(
        tool=name,
        returned=rng.choice([None, {}, {RETURNS.get(name, "x"): rng.random() < 0.5}]),
        arguments=rng.choice([{"p": 1}, {}, None, "text"]),
        carried_out=rng.random() < 0.8,
    )


class Brute:
    """All states and their moves, as the docstring of `align` describes them."""

    def __init__(self, charts: dict[str, Chart], calls: list[Call], complete: bool) -> None:
        self.charts, self.calls, self.complete = charts, calls, complete
        self.start = {s: c.starts[0].id for s, c in charts.items()}

    def lowest(self) -> int:
        cost: dict[State, int] = {(0, None, None): 0}
        todo: list[State] = [(0, None, None)]
        while todo:
            state = todo.pop()
            for more, target in self.moves(state):
                if cost[state] + more < cost.get(target, 10**6):
                    cost[target] = cost[state] + more
                    todo.append(target)
        return min(c for state, c in cost.items() if self.may_stop(*state[:2]))

    def may_stop(self, at: int, place: Place | None) -> bool:
        if at < len(self.calls):
            return False
        return not self.complete or (place is not None and self.is_end(place))

    def tools(self, place: Place) -> list[str]:
        node = self.charts[place[0]].node(place[1])
        return node.text.split() if node.shape == "call" else []

    def is_end(self, place: Place) -> bool:
        done = place[2] == len(self.tools(place))
        return done and not self.charts[place[0]].leaving(place[1])

    def moves(self, state: State) -> Iterator[tuple[int, State]]:  # noqa: C901
        at, place, waits = state
        call = self.calls[at] if at < len(self.calls) else None
        if call:
            yield 1, (at + 1, place, waits)  # extra
        if place is None:
            for scenario, node in self.start.items():
                if waits is None or waits[0] != scenario:
                    yield 0, (at, (scenario, node, 0), waits)
            if waits is not None:
                yield 0, (at, waits, None)
            return
        scenario, node, done = place
        if done < len(self.tools(place)):
            following = (scenario, node, done + 1)
            yield 1, (at, following, waits)  # left out
            if call and call.carried_out and call.tool == self.tools(place)[done]:
                lacks = call.tool == "f" and isinstance(call.arguments, dict)
                yield int(lacks and call.arguments != {"p": 1}), (at + 1, following, waits)
            return
        for edge in self.charts[scenario].leaving(node):
            yield int(self.is_false(edge, at)), (at, (scenario, edge.target, 0), waits)
        if len(self.charts) == 1 or node == self.start[scenario]:
            return
        if self.is_end(place):
            yield 0, (at, None, waits)
        elif waits is None:
            yield 0, (at, None, place)
        elif not self.complete:
            yield 0, (at, waits, place)

    def is_false(self, edge: Edge, at: int) -> bool:
        if edge.condition is None:
            return False
        wanted = edge.condition.alternatives[0][0]
        values = [
            call.returned[wanted.field]
            for call in self.calls[:at]
            if call.carried_out and call.tool == wanted.tool
            if isinstance(call.returned, dict) and wanted.field in call.returned
        ]
        return bool(values) and values[-1] != wanted.value


@pytest.mark.slow
@pytest.mark.parametrize("scenarios", [1, 2, 3])
def test_the_cost_is_the_lowest(scenarios: int) -> None:
    rng = random.Random(scenarios)
    tools = [
        WorkflowTool(
            name=name,
            parameters={"type": "object", "required": ["p"] if name == "f" else []},
            returns={"type": "object", "properties": {field: {"type": "boolean"}}},
        )
        for name, field in RETURNS.items()
    ]
    compared = 0
    for _ in range(120):
        charts = {f"s{i}": random_chart(rng, "ABC"[i]) for i in range(scenarios)}
        calls = [random_call(rng) for _ in range(rng.randrange(7))]
        complete = rng.random() < 0.5
        walk = compiled(charts, tools)
        if complete and walk.shortest is None:
            continue
        reading = align(walk, calls, complete=complete)
        assert reading.cost == Brute(charts, calls, complete).lowest()
        assert conformance(walk, calls, reading).conforms == (reading.cost == 0)
        assert reading.cost <= reading.worst
        compared += 1
    assert compared > 100


# -- procedures ----------------------------------------------------------------------------------


def plain_tools(*names: str, fields: Sequence[str] = ()) -> list[WorkflowTool]:
    returns = {"type": "object", "properties": {field: {} for field in fields}}
    return [WorkflowTool(name=name, parameters={}, returns=returns) for name in names]


def walk_of(text: str, *tools: str, fields: Sequence[str] = ()) -> Procedure:
    return compiled({"s": parse_chart(f"flowchart TD\n{text}")}, plain_tools(*tools, fields=fields))


def test_charts_that_cannot_be_compiled() -> None:
    chart = parse_chart("flowchart TD\nA(s)-->B[x]")
    with pytest.raises(InputError, match="A is also a node of s"):
        compiled({"s": chart, "t": chart}, [])
    with pytest.raises(InputError, match="no start"):
        compiled({"s": chart.model_copy(update={"nodes": chart.nodes[1:], "edges": ()})}, [])
    with pytest.raises(InputError, match="B is not declared"):
        compiled({"s": chart.model_copy(update={"nodes": chart.nodes[:1]})}, [])


# -- conformance ---------------------------------------------------------------------------------


def find(is_in: bool = True) -> Call:
    return Call(tool="find_book", arguments={"title": "Dune"}, returned={"is_in": is_in})


LEND = Call(
    tool="lend_book", arguments={"title": "Dune", "reader_id": "R-20"}, returned={"lent": True}
)
NO_READER = LEND.model_copy(update={"arguments": {"title": "Dune"}})
BRING = Call(tool="return_book", arguments={"title": "Emma"}, returned={"days_late": 0})
REFUSED = Call(tool="lend_book", arguments={}, carried_out=False, problem="no such reader")
SING = Call(tool="sing")
FIND, OUT = find(), find(False)
ONE, BOTH = ("lend_book",), ("return_book", "lend_book")


@pytest.mark.parametrize(
    ("scenarios", "calls", "anywhere", "at_an_end"),  # deviations of walks that may stop
    [
        (ONE, [OUT, FIND, LEND], "", ""),
        (ONE, [OUT, OUT, OUT], "", ""),  # an edge leads back
        (ONE, [LEND], "missing_step 0 find_book", "missing_step 0 find_book"),
        (ONE, [FIND], "", "missing_step 1 lend_book"),
        (ONE, [LEND, FIND], "wrong_order 0 lend_book", "wrong_order 0 lend_book"),
        (ONE, [OUT, LEND], "wrong_transition 1 lend_book", "wrong_transition 1 lend_book"),
        (
            ONE,
            [FIND, FIND, FIND, LEND],
            "wrong_order 1 find_book, wrong_order 2 find_book",
            "wrong_order 1 find_book, wrong_order 2 find_book",
        ),
        (ONE, [SING, FIND, LEND], "tool_use 0 sing", "tool_use 0 sing"),
        (ONE, [FIND, REFUSED, LEND], "tool_use 1 lend_book", "tool_use 1 lend_book"),
        (ONE, [FIND, REFUSED], "tool_use 1 lend_book", "tool_use 1 lend_book"),
        (ONE, [FIND, NO_READER], "tool_use 1 lend_book", "tool_use 1 lend_book"),
        (ONE, [FIND, BRING, LEND], "tool_use 1 return_book", "tool_use 1 return_book"),
        (BOTH, [BRING, FIND, LEND], "", ""),
        (BOTH, [FIND, LEND, BRING], "", ""),
        (BOTH, [FIND, BRING, LEND], "", ""),  # put aside, and resumed
        (BOTH, [FIND, BRING], "", ""),  # put aside for good
        (BOTH, [BRING, FIND, LEND, BRING], "", ""),  # again after an end
        (BOTH, [BRING, LEND], "missing_step 1 find_book", "missing_step 1 find_book"),
        (BOTH, [BRING, OUT, LEND], "wrong_transition 2 lend_book", "wrong_transition 2 lend_book"),
        # What is put aside cannot begin anew: asking again is a repetition.
        (BOTH, [FIND, FIND, LEND], "wrong_order 1 find_book", "wrong_order 1 find_book"),
        (BOTH, [LEND, FIND, BRING], "wrong_order 0 lend_book", "wrong_order 0 lend_book"),
        (BOTH, [LEND, OUT, BRING], "wrong_order 0 lend_book", "wrong_order 0 lend_book"),
        (BOTH, [BRING, LEND, FIND], "wrong_order 1 lend_book", "wrong_order 1 lend_book"),
        # A second whole run is one; its first lacks a step.
        (BOTH, [LEND, FIND, LEND], "missing_step 0 find_book", "missing_step 0 find_book"),
    ],
)
def test_deviations(
    scenarios: tuple[str, ...], calls: list[Call], anywhere: str, at_an_end: str
) -> None:
    walk = procedure(ROLE, scenarios)
    for complete, expected in ((False, anywhere), (True, at_an_end)):
        found = conform(walk, calls, complete=complete).deviations
        assert ", ".join(f"{d.cause} {d.at} {d.tool}" for d in found) == expected


def test_the_walk_with_its_fitness_nodes_and_unchecked_edges() -> None:
    walk = procedure(ROLE, ONE)
    right = conform(walk, [OUT, FIND, LEND])
    assert (right.fitness, right.cause) == (1, None)
    assert right.nodes == ("LB000", "LB001", "LB003", "LB001", "LB002", "LB004", "LB006")
    assert right.edges == tuple(zip(right.nodes, right.nodes[1:], strict=False))
    # "Ask for a book" and "Another book will do" are the user's will; LB004 to LB006 has no label.
    assert right.unchecked == 2
    no_value = Call(tool="find_book", arguments={"title": "Dune"}, returned={"shelf": "S4"})
    assert conform(walk, [no_value, LEND]).unchecked == 2  # "Ask for a book", and is_in
    skipped = conform(walk, [LEND])
    assert skipped.deviations[0].node == "LB001"
    assert skipped.fitness == pytest.approx(0.5)  # cost 1; worst: 1 call extra, 1 step missing
    lacking = conform(walk, [FIND, NO_READER])
    assert lacking.deviations[0].detail == "without required reader_id"
    assert lacking.fitness == pytest.approx(2 / 3)  # cost 1; worst: 2 calls extra, 1 step missing
    (false,) = conform(walk, [OUT, LEND]).deviations
    assert (false.edge, false.detail) == (("LB001", "LB002"), "not so: is_in = true")
    assert conform(walk, [FIND, REFUSED]).deviations[0].detail == "refused: no such reader"


def test_a_walk_that_must_end_needs_an_end() -> None:
    walk = walk_of("A(s)-->B>call one]\nB-->B", "one")
    with pytest.raises(InputError, match="no end"):
        conform(walk, [Call(tool="one")])
    assert conform(walk, [Call(tool="one")] * 3, complete=False).conforms


LOOP = """A(s)-->B>call seek]
B--Found (f = true)-->C>call take]-->E>call stamp]
B--Not found (f = false)-->D[ask for another]-->B"""


@pytest.mark.parametrize(
    ("text", "made", "complete", "expected"),
    [
        # After a search in vain the only way on is another search.
        (LOOP, "seek", True, "missing_step 1 seek, missing_step 1 take, missing_step 1 stamp"),
        (LOOP, "seek", False, ""),
        (LOOP, "seek stamp", False, "wrong_order 1 stamp"),
        (LOOP, "seek take stamp", True, "wrong_transition 1 take"),
        (
            "A(s)--x-->B>call seek]\nA--y-->C>call take]",
            "seek take",
            True,
            "wrong_transition 1 take",
        ),
        ("A(s)-->B>seek, then take]", "take seek", True, "wrong_order 0 take"),
        ("A(s)-->B>seek, then take]", "seek", True, "missing_step 1 take"),
        ("A[seek]-->B{?}\nB-->C[take]\nB-->D[stamp]", "seek take", True, ""),
    ],
)
def test_deviations_from_small_charts(text: str, made: str, complete: bool, expected: str) -> None:
    walk = walk_of(text, "seek", "take", "stamp", fields=["f"])
    calls = [Call(tool=t, returned={"f": False} if t == "seek" else None) for t in made.split()]
    found = conform(walk, calls, complete=complete)
    assert ", ".join(f"{d.cause} {d.at} {d.tool}" for d in found.deviations) == expected
    if text.startswith("A[seek]"):
        assert found.unchecked == 1  # a branch without a condition


def test_a_field_that_tools_of_two_scenarios_return() -> None:
    """`status` of `seek` in one chart says nothing about the `status` of `look` in the other."""
    charts = {
        "one": parse_chart("flowchart TD\nA(Start)-->A1>call seek]"),
        "two": parse_chart("graph TD\nB(s)-->B1>call look]\nB1--Free (status = free)-->B2>take]"),
    }
    walk = compiled(charts, plain_tools("seek", "look", "take", fields=["status"]))
    seek, look, full = (
        Call(tool=name, returned={"status": status})
        for name, status in (("seek", "open"), ("look", "free"), ("look", "full"))
    )
    take = Call(tool="take", returned={})

    def deviations(*calls: Call) -> list[tuple[str, int, str]]:
        found = conform(walk, calls, complete=False)
        return [(d.cause, d.at, d.tool) for d in found.deviations]

    assert deviations(look, seek, take) == []
    assert deviations(seek, take) == [("missing_step", 1, "look")]
    assert deviations(full, seek, take) == [("wrong_transition", 2, "take")]


# -- causes: agents that fail in known ways, on the real backend of the library -------------------

BACKEND: Any = load_backend(DESK)
HANA, OTTO = ROLE.scenario("lend_book").profiles
(JAN,) = ROLE.cross_profiles


def session(calls: str, *, one_turn: bool = False) -> SessionLog:
    """The log of calls such as `find Dune, lend Dune R-20`, carried out on the backend."""
    backend, made = BACKEND(), []
    for turn, text in enumerate(filter(None, calls.split(", "))):
        name, *values = text.split()
        full = {"find": "find_book", "lend": "lend_book", "bring": "return_book"}.get(name, name)
        arguments = dict(zip(("title", "reader_id"), values, strict=False))
        if not hasattr(backend, full):
            result, status = "no such tool", "unknown_tool"
        else:
            try:
                result, status = json.dumps(getattr(backend, full)(**arguments)), "ok"
            except (ValueError, TypeError) as refused:
                result, status = str(refused), "bad_arguments"
        made.append(
            SessionCall(
                tool=full,
                arguments=arguments,
                status=status,
                result=result,
                turn=0 if one_turn else turn,
            )
        )
    return SessionLog(calls=tuple(made), ended="user", state=backend.state)


def causes_of(profile: Profile, log: SessionLog) -> tuple[Deviation, ...]:
    return SessionReading(procedure(ROLE, profile.scenarios), profile.actions, log).deviations()


@pytest.mark.parametrize(
    ("profile", "calls", "expected"),
    [
        (HANA, "find Dune, lend Dune R-20", ""),
        (HANA, "find dune, find Dune, lend Dune R-20", ""),  # out by its answer: an edge back
        (OTTO, "find Emma, find Ulysses, lend Ulysses R-17", ""),
        (JAN, "bring Emma, find Dune, lend Dune R-17", ""),
        (JAN, "find Dune, bring Emma, lend Dune R-17", ""),
        # a step left out, at the beginning and at the end, and everything
        (HANA, "lend Dune R-20", "missing_step 0 find_book"),
        (HANA, "find Dune", "missing_step 1 lend_book"),
        (HANA, "", "missing_step 0 find_book, missing_step 0 lend_book"),
        (JAN, "find Dune, lend Dune R-17", "missing_step 0 return_book"),
        (JAN, "bring Emma", "missing_step 1 find_book, missing_step 1 lend_book"),
        # two steps swapped: Dune is no longer in when it is looked up
        (HANA, "lend Dune R-20, find Dune", "wrong_order 0 lend_book"),
        # the branch of a book that is in
        (
            OTTO,
            "find Emma, lend Emma R-17",
            "wrong_transition 1 lend_book, missing_step 1 find_book",
        ),
        # wrong values
        (HANA, "find Emma, find Dune, lend Dune R-17", "tool_use 2 lend_book"),
        (HANA, "find Ulysses, lend Ulysses R-20", "tool_use 0 find_book, tool_use 1 lend_book"),
        # tools that are not there, or refuse
        (HANA, "find Dune, sing", "tool_use 1 sing, missing_step 2 lend_book"),
        (HANA, "find Dune, lend Dune R-99", "tool_use 1 lend_book"),
        (HANA, "find Dune, lend Dune", "tool_use 1 lend_book"),
    ],
)
def test_causes_and_the_final_state_agree(profile: Profile, calls: str, expected: str) -> None:
    log = session(calls)
    found = causes_of(profile, log)
    assert ", ".join(f"{d.cause} {d.at} {d.tool}" for d in found) == expected
    verdict = judged(gold_state(ROLE, profile, BACKEND), log, ROLE.success)
    assert verdict is not None
    assert verdict.success == (not found)


def test_a_loop() -> None:
    calls = ", ".join(["find Emma"] * 4)  # out each time, so the chart leads back each time
    loop = causes_of(OTTO, session(calls, one_turn=True))
    assert [d.at for d in loop if d.cause == "wrong_order"] == [1, 2, 3]
    assert loop[-1].cause == "missing_step"
    by_turn = causes_of(OTTO, session(calls))  # the user asked for them
    assert "wrong_order" not in {d.cause for d in by_turn}
    endless = causes_of(HANA, session(", ".join(["find Dune"] * 500), one_turn=True))
    assert [d.at for d in endless if d.cause == "wrong_order"] == list(range(1, 500))


def test_what_a_simulator_got_wrong_is_not_charged() -> None:
    log = session("find Dune")
    for who in ("tools", "user"):
        mistake = SimulatorMistake(who=who, kind="wrong", turn=0)
        assert causes_of(HANA, log.model_copy(update={"mistakes": (mistake,)})) == ()
        repaired = (mistake.model_copy(update={"repaired": True}),)
        found = causes_of(HANA, log.model_copy(update={"mistakes": repaired}))
        assert [d.cause for d in found] == ["missing_step"]


def causes_in(text: str, gold: Sequence[Action], *calls: SessionCall) -> tuple[Deviation, ...]:
    walk = walk_of(text, *{action.tool for action in gold}, *{call.tool for call in calls})
    return SessionReading(walk, gold, SessionLog(calls=calls, ended="user")).deviations()


def test_a_branch_that_is_not_the_users_will() -> None:
    text = "A(s)-->B>look]\nB--The user cancels-->C>cancel]\nB--The user moves it-->D>move]"
    gold = [Action(tool="look"), Action(tool="move")]
    look, cancel, move = (
        SessionCall(tool=name, arguments={}, result="{}", turn=0)
        for name in ("look", "cancel", "move")
    )
    (deviation,) = causes_in(text, gold, look, cancel)
    assert (deviation.cause, deviation.at, deviation.edge) == ("wrong_transition", 1, ("B", "C"))
    assert "move" in deviation.detail
    assert causes_in(text, gold, look, move) == ()
    assert [d.cause for d in causes_in(text, gold, look)] == ["missing_step"]


@pytest.mark.parametrize(
    ("calls", "expected"),
    [
        ("-pay", "missing_step 0 hold, tool_use 0 pay"),
        ("hold -pay", "tool_use 1 pay"),  # refused for another reason
        ("-pay hold pay", "wrong_order 0 pay"),  # repaired: the early call is all that is wrong
        ("-pay hold", "wrong_order 0 pay"),  # never repaired: the arguments were right
        ("-hold -pay", "tool_use 0 hold, tool_use 1 pay"),  # a refused step is not left out
    ],
)
def test_a_step_left_out_comes_before_the_refusal_that_it_led_to(calls: str, expected: str) -> None:
    made = [
        SessionCall(
            tool=text.removeprefix("-"),
            arguments={},
            result="{}" if text[0] != "-" else "nothing is held",
            status="ok" if text[0] != "-" else "bad_arguments",
            turn=turn,
        )
        for turn, text in enumerate(calls.split())
    ]
    gold = [Action(tool="hold"), Action(tool="pay")]
    found = causes_in("A(s)-->B>call hold]\nB-->C>call pay]", gold, *made)
    assert ", ".join(f"{d.cause} {d.at} {d.tool}" for d in found) == expected
