"""Conformance of calls, decided by hand."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from pathlib import Path

import pytest

from agenteval.errors import InputError
from agenteval.workflows.align import Call
from agenteval.workflows.conformance import conform
from agenteval.workflows.folder import read_role
from agenteval.workflows.mermaid import parse_chart
from agenteval.workflows.procedure import Procedure, compiled, procedure
from agenteval.workflows.scenario import WorkflowTool
from tests.workflows.boats import tool

DESK = Path(__file__).parent / "library_desk"
PAPER = Path(__file__).resolve().parents[3] / "shared/reference/workflows/paper_listings_en.txt"


@cache
def desk(*scenarios: str) -> Procedure:
    return procedure(read_role(DESK), scenarios)


def find(is_in: bool, title: str = "Dune") -> Call:
    return Call(tool="find_book", arguments={"title": title}, returned={"is_in": is_in})


def lend(lent: bool = True, title: str = "Dune") -> Call:
    arguments = {"title": title, "reader_id": "R-20"}
    return Call(tool="lend_book", arguments=arguments, returned={"lent": lent})


def bring() -> Call:
    return Call(tool="return_book", arguments={"title": "Emma"}, returned={"days_late": 0})


def refused(tool: str) -> Call:
    return Call(tool=tool, arguments={}, carried_out=False, problem="no such reader")


def told(
    calls: Sequence[Call], *scenarios: str, complete: bool = True
) -> list[tuple[str, int, str]]:
    found = conform(desk(*(scenarios or ("lend_book",))), calls, complete=complete)
    return [(d.cause, d.at, d.tool) for d in found.deviations]


def bare(*names: str) -> list[WorkflowTool]:
    return [
        WorkflowTool(name=n, description="", parameters={}, returns={}, effect="read")
        for n in names
    ]


def chain(text: str, *tools: str) -> Procedure:
    return compiled({"s": parse_chart(text, "s")}, bare(*tools))


def test_a_right_session_conforms_and_its_walk_is_told() -> None:
    found = conform(desk("lend_book"), [find(False, "Emma"), find(True), lend()])
    assert found.conforms
    assert found.fitness == 1
    assert found.nodes == (
        "LB000", "LB001", "LB003", "LB001", "LB002", "LB004", "LB006"
    )  # fmt: skip
    assert found.edges == tuple(zip(found.nodes, found.nodes[1:], strict=False))
    # "Ask for a book" and "Another book will do" are the user's will; LB004 to LB006 has no label.
    assert found.unchecked == 2


def test_a_step_left_out() -> None:
    found = conform(desk("lend_book"), [lend()])
    (deviation,) = found.deviations
    assert (deviation.cause, deviation.at, deviation.tool) == ("missing_step", 0, "find_book")
    assert deviation.node == "LB001"
    assert found.fitness == pytest.approx(0.5)  # cost 1; worst: 1 call extra, 1 step missing


def test_the_end_left_out_is_missing_only_when_the_walk_must_end() -> None:
    assert told([find(True)]) == [("missing_step", 1, "lend_book")]
    assert told([find(True)], complete=False) == []


@pytest.mark.parametrize("complete", [True, False])
def test_two_calls_swapped_are_one_wrong_order(complete: bool) -> None:
    assert told([lend(), find(True)], complete=complete) == [("wrong_order", 0, "lend_book")]


@pytest.mark.parametrize("complete", [True, False])
def test_a_branch_whose_condition_is_false(complete: bool) -> None:
    found = conform(desk("lend_book"), [find(False), lend(False)], complete=complete)
    (deviation,) = found.deviations
    assert deviation.cause == "wrong_transition"
    assert (deviation.at, deviation.tool) == (1, "lend_book")
    assert deviation.edge == ("LB001", "LB002")
    assert "is_in = true" in deviation.detail


LOOP = """flowchart TD
A(s)-->B>call seek]
B--Found (f = true)-->C>call take]-->E>call stamp]
B--Not found (f = false)-->D[ask for another]-->B"""


@pytest.mark.parametrize(
    ("made", "complete", "told"),
    [  # after a search in vain the only way on is another search
        (["seek"], True, [("missing_step", 1, "seek"), ("missing_step", 1, "take"),
                          ("missing_step", 1, "stamp")]),
        (["seek"], False, []),
        (["seek", "stamp"], False, [("wrong_order", 1, "stamp")]),
        (["seek", "take", "stamp"], True, [("wrong_transition", 1, "take")]),
    ],
)  # fmt: skip
def test_where_the_only_way_on_leads_back_that_step_is_due(
    made: list[str], complete: bool, told: list[tuple[str, int, str]]
) -> None:
    calls = [Call(tool=t, returned={"f": False} if t == "seek" else None) for t in made]
    tools = [tool("seek", {"f": {"type": "boolean"}}), tool("take", {}), tool("stamp", {})]
    found = conform(compiled({"s": parse_chart(LOOP)}, tools), calls, complete=complete)
    assert [(d.cause, d.at, d.tool) for d in found.deviations] == told
    if told and told[0][0] == "wrong_order":
        assert found.deviations[0].detail == "too early; due: seek"


def test_branches_without_a_condition_are_counted_as_unchecked() -> None:
    walk = chain("graph TD\nA[a_one]-->B{?}\nB-->C[a_two]\nB-->D[a_three]", "a_one", "a_two")
    found = conform(walk, [Call(tool="a_one"), Call(tool="a_two")])
    assert found.conforms
    assert (found.edges, found.unchecked) == ((("A", "B"), ("B", "C")), 1)


def test_a_value_that_was_not_returned_leaves_the_transition_unchecked() -> None:
    call = Call(tool="find_book", arguments={"title": "Dune"}, returned={"shelf": "S4"})
    found = conform(desk("lend_book"), [call, lend()])
    assert found.conforms
    assert found.unchecked == 2  # the user's "Ask for a book", and is_in


def test_a_call_repeated_without_an_edge_back() -> None:
    calls = [find(True), find(True), find(True), lend()]
    assert told(calls) == [("wrong_order", 1, "find_book"), ("wrong_order", 2, "find_book")]
    assert "repeated" in conform(desk("lend_book"), calls).deviations[0].detail


def test_a_call_repeated_along_an_edge_back_conforms() -> None:
    assert told([find(False), find(False), find(False)]) == []


def test_a_tool_that_no_node_calls() -> None:
    assert told([Call(tool="sing"), find(True), lend()]) == [("tool_use", 0, "sing")]


@pytest.mark.parametrize("complete", [True, False])
def test_a_refused_call_is_no_step_and_the_repaired_one_is(complete: bool) -> None:
    calls = [find(True), refused("lend_book"), lend()]
    assert told(calls, complete=complete) == [("tool_use", 1, "lend_book")]
    detail = conform(desk("lend_book"), calls).deviations[0].detail
    assert "no such reader" in detail


def test_a_refused_call_that_is_never_repaired_is_one_deviation() -> None:
    assert told([find(True), refused("lend_book")]) == [("tool_use", 1, "lend_book")]


def test_a_required_parameter_that_is_not_given() -> None:
    calls = [
        find(True),
        Call(tool="lend_book", arguments={"title": "Dune"}, returned={"lent": True}),
    ]
    found = conform(desk("lend_book"), calls)
    assert [(d.cause, d.at) for d in found.deviations] == [("tool_use", 1)]
    assert "reader_id" in found.deviations[0].detail
    assert found.fitness == pytest.approx(2 / 3)  # cost 1; worst: 2 calls extra, 1 step missing
    assert found.nodes[-1] == "LB006"


def test_a_call_of_another_branch() -> None:
    walk = chain(
        "flowchart TD\nAA000(Start)--x-->AA001>call left]\nAA000--y-->AA002>call right]",
        "left", "right",
    )  # fmt: skip
    found = conform(walk, [Call(tool="left"), Call(tool="right")])
    assert [(d.cause, d.at) for d in found.deviations] == [("wrong_transition", 1)]
    assert found.deviations[0].node == "AA002"


def test_a_node_with_two_tools_is_a_sequence() -> None:
    walk = chain("flowchart TD\nAA000(Start)-->AA001>call one, then two]", "one", "two")
    assert conform(walk, [Call(tool="one"), Call(tool="two")]).conforms
    assert [d.cause for d in conform(walk, [Call(tool="two"), Call(tool="one")]).deviations] == [
        "wrong_order"
    ]
    assert [d.tool for d in conform(walk, [Call(tool="one")]).deviations] == ["two"]


def test_nothing_done() -> None:
    empty = conform(desk("lend_book"), [], complete=False)
    assert empty.conforms
    assert empty.fitness is None
    assert conform(desk("lend_book"), []).fitness == 0
    talk = chain("flowchart TD\nAA000(Start)--hello-->AA001[Greet]")
    assert conform(talk, []).fitness is None
    assert conform(talk, []).nodes == ("AA000", "AA001")


def test_a_walk_that_must_end_needs_an_end() -> None:
    walk = chain("flowchart TD\nAA000(Start)-->AA001>call one]\nAA001-->AA001", "one")
    with pytest.raises(InputError, match="no end"):
        conform(walk, [Call(tool="one")])
    assert conform(walk, [Call(tool="one")] * 3, complete=False).conforms


BOTH = ("return_book", "lend_book")


@pytest.mark.parametrize(
    "calls",
    [
        [bring(), find(True), lend()],
        [find(True), lend(), bring()],
        [find(True), bring(), lend()],  # put aside, and taken up again
        [find(True), bring()],  # put aside for good
        [bring(), find(True), lend(), bring()],  # again after an end
    ],
)
def test_scenarios_one_after_the_other_or_put_aside(calls: list[Call]) -> None:
    assert told(calls, *BOTH) == []


def test_deviations_across_scenarios() -> None:
    assert told([bring(), lend()], *BOTH) == [("missing_step", 1, "find_book")]
    assert told([bring(), find(False), lend(False)], *BOTH) == [
        ("wrong_transition", 2, "lend_book")
    ]
    # What is put aside cannot begin anew: asking again is a repetition.
    assert told([find(True), find(True), lend()], *BOTH) == [("wrong_order", 1, "find_book")]
    # A scenario that is known alone puts nothing aside.
    assert told([find(True), bring(), lend()]) == [("tool_use", 1, "return_book")]


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("is_in", [True, False])
def test_swapped_calls_across_scenarios(complete: bool, is_in: bool) -> None:
    swapped = [lend(), find(is_in)]
    for calls, at in ([*swapped, bring()], 0), ([bring(), *swapped], 1), (swapped, 0):
        assert told(calls, *BOTH, complete=complete) == [("wrong_order", at, "lend_book")]
    # A second whole run is one; its first lacks a step.
    again = [lend(), find(True), lend()]
    assert told(again, *BOTH, complete=complete) == [("missing_step", 0, "find_book")]


@pytest.mark.skipif(not PAPER.is_file(), reason="the paper's listings are not at hand")
def test_the_flight_chart_of_the_paper() -> None:
    text = PAPER.read_text(encoding="utf-8").split("=== Listing 6")[1].split("\n", 1)[1]
    chart = parse_chart(text.split("=== Listing 7")[0].strip(), "listing 6")
    walk = compiled({"flight": chart}, bare("checkAvailability", "reserveFlight"))
    check = Call(tool="checkAvailability", returned={"is_air": "true"})
    reserve = Call(tool="reserveFlight", returned={"is_successful": "true"})
    found = conform(walk, [check, reserve])
    assert found.conforms
    assert found.nodes == ("SK000", "SK001", "SK002", "SK003", "SK006")
    for complete in (True, False):
        swapped = conform(walk, [reserve, check], complete=complete)
        assert [d.cause for d in swapped.deviations] == ["wrong_order"]
    assert conform(walk, [check, check, reserve, reserve]).conforms  # both loops of the chart


def test_a_thousand_calls_in_thirty_nodes() -> None:
    lines = [f"AA{i:03}>call t{i}]--next-->AA{i + 1:03}>call t{i + 1}]" for i in range(1, 30)]
    back = [f"AA{i:03}--back-->AA001" for i in range(5, 30, 5)]
    text = "\n".join(["flowchart TD", "AA000(Start)-->AA001>call t1]", *lines, *back])
    walk = chain(text, *(f"t{i}" for i in range(1, 31)))
    right = [Call(tool=f"t{i % 5 + 1}", arguments={"i": i}) for i in range(1000)]
    found = conform(walk, [*right, Call(tool="t1"), *right[1:]], complete=False)
    assert found.conforms
    assert len(found.edges) == 2000
    loop = conform(walk, [Call(tool="t1", arguments={})] * 500)
    assert [d.at for d in loop.deviations if d.cause == "wrong_order"] == list(range(1, 500))
    assert [d.tool for d in loop.deviations[499:]] == [f"t{i}" for i in range(2, 31)]


def test_a_field_that_tools_of_two_scenarios_return() -> None:
    """`status` of `seek` in one chart says nothing of the `status` of `look` in the other."""
    charts = {
        "one": parse_chart("flowchart TD\nAA000(Start)-->AA001>call seek]", "one"),
        "two": parse_chart(
            "flowchart TD\nBB000(Start)-->BB001>call look]\n"
            "BB001--Free (status = free)-->BB002>call take]",
            "two",
        ),
    }
    tools = [
        WorkflowTool(
            name=name, description="", parameters={}, effect="read",
            returns={"type": "object", "properties": {"status": {}}},
        )
        for name in ("seek", "look", "take")
    ]  # fmt: skip
    walk = compiled(charts, tools)
    seek = Call(tool="seek", returned={"status": "open"})
    look = Call(tool="look", returned={"status": "free"})
    full = Call(tool="look", returned={"status": "full"})
    take = Call(tool="take", returned={})

    def causes(*calls: Call) -> list[tuple[str, int, str]]:
        found = conform(walk, calls, complete=False)
        return [(d.cause, d.at, d.tool) for d in found.deviations]

    assert causes(look, seek, take) == []
    assert causes(seek, take) == [("missing_step", 1, "look")]
    assert causes(full, seek, take) == [("wrong_transition", 2, "take")]


def test_a_user_who_goes_to_and_fro_between_two_scenarios() -> None:
    charts = {
        one: parse_chart(
            f"flowchart TD\n{p}000(Start)-->{p}001>call {one}1]\n{p}001-->{p}002>call {one}2]\n"
            f"{p}002-->{p}003>call {one}3]",
            one,
        )
        for one, p in (("a", "AA"), ("b", "BB"))
    }
    walk = compiled(charts, bare(*(f"{one}{n}" for one in "ab" for n in (1, 2, 3))))

    def causes(*names: str) -> list[tuple[str, int, str]]:
        found = conform(walk, [Call(tool=name) for name in names], complete=False)
        return [(d.cause, d.at, d.tool) for d in found.deviations]

    assert causes("a1", "b1", "a2", "b2", "a3", "b3") == []
    assert causes("a1", "b1", "a2", "b2", "b3", "a3") == []
    # one step left out is one deviation, where it should have come
    assert [at for _, at, _ in causes("a1", "b1", "a3", "b2", "b3")] == [2]
    assert [at for _, at, _ in causes("a1", "b1", "b3", "a2", "a3")] == [2]
