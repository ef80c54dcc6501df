"""The automaton and the table that is derived from charts."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.errors import InputError
from agenteval.evaluators.workflows.chart.parse import parse_chart
from agenteval.evaluators.workflows.folder import read_role
from agenteval.evaluators.workflows.procedure import (
    END,
    START,
    Next,
    Procedure,
    Rule,
    compiled,
    procedure,
)
from agenteval.evaluators.workflows.scenario import WorkflowTool

DESK = Path(__file__).parent / "library_desk"


def tool(name: str, *fields: str, required: tuple[str, ...] = ()) -> WorkflowTool:
    return WorkflowTool(
        name=name,
        description="",
        parameters={"type": "object", "required": list(required)},
        returns={"type": "object", "properties": {field: {} for field in fields}},
        effect="read",
    )


def made(text: str, *tools: WorkflowTool) -> Procedure:
    return compiled({"s": parse_chart(text, "s")}, tools)


def rules(walk: Procedure) -> dict[str, Rule]:
    return {rule.tool: rule for rule in walk.follows}


def test_the_table_of_the_library() -> None:
    walk = procedure(read_role(DESK), ["lend_book"])
    assert walk.follows == (
        Rule(tool=START, next=(Next(tool="find_book", when=(("Ask for a book",),)),)),
        Rule(
            tool="find_book",
            required=("title",),
            next=(
                Next(tool="lend_book", when=(("is_in = true",),)),
                Next(tool="find_book", when=(("is_in = false", "Another book will do"),)),
                Next(tool=END, when=(("is_in = false", "No other book"),)),
            ),
        ),
        Rule(
            tool="lend_book",
            required=("title", "reader_id"),
            needs=("find_book.is_in = true",),
            next=(Next(tool=END, when=(("lent = true",), ("lent = false",))),),
        ),
    )
    assert walk.shortest == 1
    assert walk.steps == {"find_book", "lend_book"}


def test_several_scenarios_begin_at_one_start() -> None:
    walk = procedure(read_role(DESK), ["return_book", "lend_book"])
    assert walk.cross
    assert {n.tool for n in rules(walk)[START].next} == {"return_book", "find_book"}
    assert set(rules(walk)) == {START, "return_book", "find_book", "lend_book"}
    assert rules(walk)["lend_book"].needs == ("find_book.is_in = true",)


def test_needs_are_what_all_ways_share_since_the_last_call() -> None:
    text = """flowchart TD
AA000(Start)-->AA001>call look]
AA001--A (a = 1 and b = true)-->AA002[Talk]
AA001--B (a = 1 and b = false)-->AA003[Talk]
AA002 & AA003-->AA004>call act]
AA004-->AA005>call look]
AA005-->AA006>call close]"""
    found = rules(made(text, tool("look", "a", "b"), tool("act", "c"), tool("close")))
    assert found["act"].needs == ("look.a = 1",)
    assert found["close"].needs == ()  # look was called anew
    assert found["look"].needs == ()  # the first look needs nothing


def test_an_alternative_is_one_need() -> None:
    text = """flowchart TD
AA000(Start)-->AA001>call look]
AA001--A (a = 1 or b = 2)-->AA002>call act]"""
    found = rules(made(text, tool("look", "a", "b"), tool("act")))
    assert found["act"].needs == ("look.a = 1 or look.b = 2",)


def test_a_field_of_two_tools_belongs_to_the_node_that_asks() -> None:
    text = """flowchart TD
AA000(Start)-->AA001>call one]
AA001--A (ok = true)-->AA002>call two]
AA002--B (ok = true)-->AA003>call last]"""
    found = rules(made(text, tool("one", "ok"), tool("two", "ok"), tool("last")))
    assert found["two"].needs == ("one.ok = true",)
    assert found["last"].needs == ("one.ok = true", "two.ok = true")


def test_a_loop_of_replies_ends_and_is_bounded() -> None:
    talk = "\n".join(
        f"AA{i:03}[Talk]--from {i} to {j}-->AA{j:03}[Talk]"
        for i in range(1, 8)
        for j in range(1, 8)
        if i != j
    )
    walk = made(
        f"flowchart TD\nAA000(Start)-->AA001[Talk]\n{talk}\nAA007-->AA008>call act]", tool("act")
    )
    (begin, act) = walk.follows
    assert [n.tool for n in begin.next] == ["act"]
    assert len(begin.next[0].when) == 32
    assert act.next == (Next(tool=END, when=((),)),)


def test_only_call_nodes_call_and_each_tool_once() -> None:
    text = """flowchart TD
AA000(Start)-->AA001>call one; by what one returned call two]
AA001-->AA002[Tell what three would do]"""
    walk = made(text, tool("one"), tool("two"), tool("three"))
    assert [p.tool for p in walk.positions if p.node == "AA001"] == ["one", "two", None]
    assert walk.steps == {"one", "two"}
    assert [n.tool for n in rules(walk)["one"].next] == ["two"]


def test_no_end_to_reach() -> None:
    assert made("flowchart TD\nAA000(Start)-->AA001[x]\nAA001-->AA001").shortest is None


@pytest.mark.parametrize("scenarios", [[], ["lend_books"]])
def test_scenarios_that_are_not_there(scenarios: list[str]) -> None:
    with pytest.raises(InputError, match="scenario"):
        procedure(read_role(DESK), scenarios)


def test_charts_that_cannot_be_compiled() -> None:
    chart = parse_chart("flowchart TD\nAA000(Start)-->AA001[x]", "s")
    with pytest.raises(InputError, match="AA000 is a node of s too"):
        compiled({"s": chart, "t": chart}, [])
    no_start = chart.model_copy(update={"nodes": chart.nodes[1:], "edges": ()})
    with pytest.raises(InputError, match="no start"):
        compiled({"s": no_start}, [])
    loose = chart.model_copy(update={"nodes": chart.nodes[:1]})
    with pytest.raises(InputError, match="AA001 is not declared"):
        compiled({"s": loose}, [])
