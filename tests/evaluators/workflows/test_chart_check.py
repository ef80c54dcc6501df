"""Planted defects of charts, each found for what it is; a sound chart has none."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.evaluators.workflows.chart import Chart, Edge, Node
from agenteval.evaluators.workflows.chart_check import Defect, check_chart
from agenteval.evaluators.workflows.mermaid import parse_chart
from agenteval.evaluators.workflows.scenario import WorkflowTool
from tests.evaluators.workflows.boats import BOOK, CHART, CHECK, TOOLS, replaced, tool

HEAD = "flowchart TD\n"


def found(text: str, tools: Sequence[WorkflowTool] = TOOLS) -> list[tuple[str, str]]:
    return [(d.kind, d.severity) for d in defects(text, tools)]


def defects(text: str, tools: Sequence[WorkflowTool] = TOOLS) -> list[Defect]:
    return [d for d in check_chart(parse_chart(text), tools) if d.severity != "note"]


def branching(conditions: Sequence[str], schema: dict[str, Any]) -> str:
    """A chart that goes by the field `f` of look_up, and says which edges are wrong."""
    edges = "\n".join(f"B--{i} ({c})-->C{i}[end {i}]" for i, c in enumerate(conditions))
    look_up = tool("look_up", {"f": schema})
    told = defects(f"{HEAD}A(s)--go-->B>call look_up]\n{edges}", [look_up])
    return "; ".join(d.message for d in told)


def test_a_sound_chart_has_no_defects() -> None:
    assert found(CHART) == []


def test_a_chart_without_a_toolbox_is_checked_as_a_graph() -> None:
    text = replaced(CHART, "BH000(Start)", "BH000[Start]").replace("check_boat", "nothing")
    assert found(text, ()) == [("no_start", "warning")]


@pytest.mark.parametrize(
    ("old", "new", "kind", "severity", "told"),
    [
        ("BH000(Start)", "BH000[Start]", "no_start", "warning", "BH000 is taken for it"),
        ("BH004 & BH003--Tries", "BH007(Start) & BH003--Tries", "several_starts", "error", "BH007"),
        ("another boat-->BH001", "another boat-->BH000", "edge_into_start", "error", "BH000"),
        ("BH005[Say that it is out;", "BH005[So;] & BH008[Say;", "unreachable", "error", "XX"),
        ("BH005--Names another boat-->BH001", "BH005-->BH005", "no_exit", "error", "follows BH005"),
        ("BH005[Say that it is out; ask for another boat]", "BH002", "", "", ""),
        ("call check_boat", "call chek_boat", "no_tool", "error", "is check_boat meant?"),
        ("call check_boat", "look", "no_tool", "error", "known: check_boat, book_boat"),
        ("call book_boat", "call book_boat, pay_fee", "unknown_tool", "error", "pay_fee"),
        ("Tell the jetty.", "Tell what book_boat says.", "tool_in_reply", "warning", "only those"),
        ("(is_free = true)", "(is_fre = true)", "unknown_field", "error", "is is_free meant?"),
        ("(is_free = true)", "(book_boat.is_free = true)", "unknown_field", "error", "book_boat"),
        ("(is_free = true)", "(look.is_free = true)", "unknown_field", "error", "which is no tool"),
        ("(is_free = true)", "(is_free = maybe)", "bad_value", "error", "never \"maybe\""),
        ("(is_free = true)", "(is_free > true)", "bad_value", "error", "has no meaning"),
        ('(state = "hired")', "(state = lost)", "bad_value", "error", "one of hired, refused"),
        ("(state != hired)", "(state < hired)", "bad_value", "error", "only ISO dates"),
        ("(state != hired)", "(state = refused)", "gap", "warning", "when state is too_late"),
        ("(state != hired)", "(state != refused)", "overlap", "warning", "when state is hired"),
        ("--Not hired (state != hired)--", "--Hired (state = \"hired\")--", "same_label", "error",
         "to BH003 and to BH004"),
    ],
)  # fmt: skip
def test_planted_defects(old: str, new: str, kind: str, severity: str, told: str) -> None:
    if kind == "unreachable":
        new, told = "BH005[Say that it is out;", "BH008"
        text = replaced(CHART, old, new) + "BH008[Nobody comes here]-->BH006\n"
    elif not kind:
        text = replaced(replaced(CHART, old, new), "BH005--Names another boat-->BH001\n", "")
        # with both values leading to one place nothing is wrong
        assert found(text) == []
        return
    else:
        text = replaced(CHART, old, new)
    matching = [d for d in defects(text) if d.kind == kind]
    assert matching, defects(text)
    assert matching[0].severity == severity
    assert told in matching[0].message
    assert all(d.line > 0 for d in matching) or kind == "no_start"


def test_a_field_that_no_call_before_returns() -> None:
    text = replaced(CHART, "(is_free = true)", "(state = hired)")
    early = [d for d in defects(text) if d.kind == "field_not_yet"]
    assert [(d.edge, d.severity, d.line) for d in early] == [(("BH001", "BH002"), "error", 4)]
    assert "no call of book_boat comes before" in early[0].message
    # with a way back from BH002 it may have been returned before
    assert "field_not_yet" not in [k for k, _ in found(text + "BH003--Another day-->BH001\n")]


def test_a_call_at_the_end_and_a_tool_never_called() -> None:
    text = f"{HEAD}A(s)--go-->B>call check_boat, then check_boat]"
    assert sorted(found(text)) == [
        ("dead_end", "warning"), ("repeated_tool", "warning"), ("unused_tool", "warning"),
    ]  # fmt: skip


def test_the_same_edge_twice_is_a_warning() -> None:
    text = CHART + "BH005--Names another boat-->BH001\n"
    assert found(text) == [("same_label", "warning")]


def test_auxiliary_parameters() -> None:
    heading = "The auxiliary parameter information in the workflow is as follows:"
    text = f'{CHART}{heading}\n"boat": "its name"\n"colour": ""\n"length": "in metres"\n'
    told = [d.message for d in defects(text)]
    assert len(told) == 2
    assert "boat is one of check_boat" in told[0]
    assert "colour has no description" in told[1]


INTEGER, BOOLEAN = {"type": "integer"}, {"type": "boolean"}


@pytest.mark.parametrize(
    ("conditions", "schema", "told"),
    [
        (["f = true", "f = false"], BOOLEAN, ""),
        (["f = true", "f != true"], BOOLEAN, ""),
        (["f = true"], BOOLEAN, "no edge of B is right when f is false"),
        (["f > 0", "f <= 0"], INTEGER, ""),
        (["f > 0", "f < 0"], INTEGER, "no edge of B is right when f is 0"),
        (["f >= 0", "f <= 0"], INTEGER, "the edges of B to C0 and C1 are both right when f is 0"),
        (["f >= 3", "f < 2"], INTEGER, "no edge of B is right when f is 2"),
        (["f >= 2", "f < 2"], {"type": "number"}, ""),
        (["f >= 3", "f <= 2"], INTEGER, ""),
        (["f >= 3", "f <= 2"], {"type": "number"}, "no edge of B is right when f is 2.5"),
        (["f > 0", "f = 0"], INTEGER | {"minimum": 0}, ""),
        (["f > 0", "f = 0"], INTEGER | {"exclusiveMinimum": -1}, ""),
        (["f = a", "f = b"], {"enum": ["a", "b"]}, ""),
        (["f = a", "f = b"], {"enum": ["a", "b", "c"]}, "when f is c"),
        (["f = a", "f = b"], {"type": "string"}, "when f is something else"),
        (["f = a", "f != a"], {"type": "string"}, ""),
        (["f < 2031-01-01", "f >= 2031-01-01"], {"type": "string"}, ""),
        (["f < 2031-01-01", "f > 2031-01-01"], {"type": "string"}, "when f is 2031-01-01"),
        (["f < 10:30", "f >= 10:30"], {"type": "string"}, ""),
        (["f = true", "f = false"], {"type": ["boolean", "null"]}, "when f is null"),
        (["f = 1 or f = 2", "f != 1 and f != 2"], INTEGER, ""),
    ],
)  # fmt: skip
def test_gaps_and_overlaps(conditions: list[str], schema: dict[str, Any], told: str) -> None:
    message = branching(conditions, schema)
    assert told in message
    assert bool(told) == bool(message)


def test_what_an_earlier_edge_has_settled_is_no_gap() -> None:
    look_up = tool("look_up", {"f": {"enum": ["a", "b", "c"]}})
    text = (
        f"{HEAD}A(s)--go-->B>call look_up]\nB--a (f = a)-->C[one]\nB--no a (f != a)-->D[two]\n"
        "D--b (f = b)-->E[three]\nD--c (f = c)-->F[four]"
    )
    assert found(text, [look_up]) == []
    assert found(text.replace("B--a (f = a)-->", "B--a-->"), [look_up]) == []
    missing = text.replace("D--c (f = c)-->F[four]", "D--b2 (f = b)-->F[four]")
    assert sorted(found(missing, [look_up])) == [("gap", "warning"), ("overlap", "warning")]


def test_more_values_than_can_be_gone_through_are_said_to_be_so() -> None:
    fields = {f"f{i}": BOOLEAN for i in range(13)}
    edges = "\n".join(f"B--{n} ({n} = true)-->C" for n in fields)
    text = f"{HEAD}A(s)--go-->B>call look_up]\nC[end]\n{edges}"
    assert found(text, [tool("look_up", fields)]) == [("too_large", "warning")]


def test_a_node_with_very_many_conditions_is_said_to_be_so() -> None:
    edges = "\n".join(f"B--{i} (f = {i})-->C" for i in range(101))
    text = f"{HEAD}A(s)--go-->B>call look_up]\nC[end]\n{edges}\nB--else-->C"
    assert found(text, [tool("look_up", {"f": INTEGER})]) == [("too_large", "warning")]


NAMES = [f"N{i}" for i in range(6)]
edges = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=12)


@given(edges)
def test_reachability_and_exits_as_networkx_sees_them(pairs: list[tuple[str, str]]) -> None:
    nodes = [Node(id=n, shape="reply" if i else "start", text=n) for i, n in enumerate(NAMES)]
    chart = Chart(
        nodes=tuple(nodes),
        edges=tuple(Edge(source=s, target=t, label=str(i)) for i, (s, t) in enumerate(pairs)),
    )
    oracle: networkx.DiGraph[str] = networkx.DiGraph(pairs)
    oracle.add_nodes_from(NAMES)
    reachable = networkx.descendants(oracle, "N0") | {"N0"}
    ends = {n for n in NAMES if oracle.out_degree(n) == 0}
    stuck = {n for n in reachable if not (networkx.descendants(oracle, n) | {n}) & ends}
    told = check_chart(chart, ())
    assert {d.node for d in told if d.kind == "unreachable"} == set(NAMES) - reachable
    named = {
        n for d in told if d.kind == "no_exit" for n in d.message.split("follows ")[1].split(", ")
    }
    assert named == stuck
    assert sum(d.kind == "edge_into_start" for d in told) == sum(t == "N0" for _, t in pairs)


def test_tools_named_in_camel_case_have_words_of_that_form() -> None:
    tools = [
        WorkflowTool(**(t.model_dump() | {"name": name}))
        for t, name in ((CHECK, "checkBoat"), (BOOK, "bookBoat"))
    ]
    text = CHART.replace("check_boat", "checkBoat").replace("book_boat", "bookBoat")
    assert found(text, tools) == []
    assert ("unknown_tool", "error") in found(
        text.replace("call bookBoat", "call bookBoat, payNow"), tools
    )
    assert found(replaced(CHART, "Ask which boat", "Ask the iPhone"), TOOLS) == []
