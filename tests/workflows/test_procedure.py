"""The automaton and the table that is derived from charts."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.errors import InputError
from agenteval.workflows.folder import read_role
from agenteval.workflows.mermaid import parse_chart
from agenteval.workflows.procedure import (
    Procedure,
    compiled,
    procedure,
)
from agenteval.workflows.scenario import WorkflowTool

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


def due(walk: Procedure) -> dict[str, tuple[str, ...]]:
    """What may come behind each tool, and at the start."""
    begin = {"": tuple(t for at in walk.entries for t in walk.due(at))}
    return begin | {
        p.tool: walk.due(at + 1) for at, p in enumerate(walk.positions) if p.tool is not None
    }


def test_the_walks_of_the_library() -> None:
    walk = procedure(read_role(DESK), ["lend_book"])
    assert due(walk) == {
        "": ("find_book",), "find_book": ("lend_book", "find_book"), "lend_book": (),
    }  # fmt: skip
    assert walk.required == {"find_book": ("title",), "lend_book": ("title", "reader_id")}
    assert walk.shortest == 1
    assert walk.steps == {"find_book", "lend_book"}


def test_several_scenarios_begin_at_one_start() -> None:
    walk = procedure(read_role(DESK), ["return_book", "lend_book"])
    assert walk.cross
    assert due(walk)[""] == ("return_book", "find_book")
    assert set(due(walk)) == {"", "return_book", "find_book", "lend_book"}


def test_a_loop_of_replies_ends() -> None:
    talk = "\n".join(
        f"AA{i:03}[Talk]--from {i} to {j}-->AA{j:03}[Talk]"
        for i in range(1, 8)
        for j in range(1, 8)
        if i != j
    )
    walk = made(
        f"flowchart TD\nAA000(Start)-->AA001[Talk]\n{talk}\nAA007-->AA008>call act]", tool("act")
    )
    assert due(walk) == {"": ("act",), "act": ()}


def test_each_tool_of_a_node_is_called_once_and_one_drawn_as_a_call_only_there() -> None:
    text = """flowchart TD
AA000(Start)-->AA001>call one; by what one returned call two]
AA001-->AA002[Tell what two did, call three]"""
    walk = made(text, tool("one"), tool("two"), tool("three"))
    assert [p.tool for p in walk.positions if p.node == "AA001"] == ["one", "two", None]
    assert walk.steps == {"one", "two", "three"}
    assert [p.tool for p in walk.positions if p.node == "AA002"] == ["three", None]
    assert due(walk)["one"] == ("two",)


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
