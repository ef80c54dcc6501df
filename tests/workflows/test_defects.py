"""Planted defects of charts, users and recorded calls; sound ones have none."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.workflows.chart import Chart, Edge, Node
from agenteval.workflows.check import check_role
from agenteval.workflows.defects import (
    Defect,
    chart_defects,
    profile_defects,
    session_defects,
)
from agenteval.workflows.folder import role_folders
from agenteval.workflows.mermaid import parse_chart
from agenteval.workflows.scenario import (
    Action,
    Goal,
    Profile,
    RecordedSession,
    Turn,
    WorkflowTool,
)
from tests.workflows.boats import BOOK, CHART, CHECK, TOOLS, replaced, tool

HEAD = "flowchart TD\n"
CHARTS: dict[str, Chart | None] = {"hire": parse_chart(CHART), "prose": None}


def defects(text: str, tools: Sequence[WorkflowTool] = TOOLS) -> list[Defect]:
    return [d for d in chart_defects(parse_chart(text), tools) if d.severity != "note"]


def found(text: str, tools: Sequence[WorkflowTool] = TOOLS) -> list[tuple[str, str]]:
    return [(d.kind, d.severity) for d in defects(text, tools)]


DESK = Path(__file__).parent / "library_desk"


@pytest.mark.parametrize("folder", [DESK, *role_folders().values()], ids=lambda path: path.name)
def test_the_roles_that_are_supplied_are_sound(folder: Path) -> None:
    checked = check_role(str(folder))
    assert checked
    assert [d for c in checked for d in c.defects if d.severity != "note"] == []


def test_a_sound_chart_has_no_defects() -> None:
    assert found(CHART) == []


def test_a_chart_without_tools_is_checked_as_a_graph() -> None:
    text = replaced(CHART, "BH000(Start)", "BH000[Start]").replace("check_boat", "nothing")
    assert found(text, ()) == [("no_start", "warning")]


@pytest.mark.parametrize(
    ("old", "new", "kind", "line", "part"),
    [
        ("BH004 & BH003--Tries", "BH007(Start) & BH003--Tries", "several_starts", 8, "BH007"),
        ("another boat-->BH001\n", "another boat-->BH001\nBH008[Lost]-->BH006\n", "unreachable",
         12, "BH008"),
        ("BH005--Names another boat-->BH001", "BH005-->BH005", "no_exit", 10, "follows BH005"),
        ("call check_boat", "call chek_boat", "no_tool", 2, "did you mean check_boat?"),
        ("call check_boat", "look", "no_tool", 2, "the tools are check_boat, book_boat"),
        ("call book_boat", "call book_boat, pay_fee", "unknown_tool", 4, "pay_fee"),
        ("(is_free = true)", "(is_fre = true)", "unknown_field", 4, "did you mean is_free?"),
        ("(is_free = true)", "(book_boat.is_free = true)", "unknown_field", 4, "book_boat"),
        ("(is_free = true)", "(look.is_free = true)", "unknown_field", 4, "look"),
        ("(is_free = true)", "(is_free = maybe)", "bad_value", 4, "boolean"),
        ("(is_free = true)", "(is_free > true)", "bad_value", 4, "boolean"),
        ('(state = "hired")', "(state = lost)", "bad_value", 6, "one of hired, refused"),
        ("(state != hired)", "(state < hired)", "bad_value", 7, "ISO dates"),
    ],
)  # fmt: skip
def test_planted_defects(old: str, new: str, kind: str, line: int, part: str) -> None:
    # A tool that is not called returns no fields, so a condition may be wrong as well.
    (defect,) = [d for d in defects(replaced(CHART, old, new)) if d.kind == kind]
    assert (defect.severity, defect.line) == ("error", line)
    assert part in defect.message


def test_tools_named_in_camel_case_have_words_of_that_form() -> None:
    tools = [
        WorkflowTool(**(t.model_dump() | {"name": name}))
        for t, name in ((CHECK, "checkBoat"), (BOOK, "bookBoat"))
    ]
    text = CHART.replace("check_boat", "checkBoat").replace("book_boat", "bookBoat")
    assert found(text, tools) == []
    paying = text.replace("call bookBoat", "call bookBoat, payNow")
    assert found(paying, tools) == [("unknown_tool", "error")]


@pytest.mark.parametrize(
    ("condition", "schema", "sound"),
    [
        ("f = true", {"type": "boolean"}, True),
        ("f = 1", {"type": "boolean"}, False),
        ("f >= 2.5", {"type": "integer"}, True),
        ("f = 2.5", {"type": "integer"}, False),
        ("f = 2.5", {"type": "number"}, True),
        ("f = many", {"type": "number"}, False),
        ("f = 5", {"type": "string"}, True),
        ("f < 2031-01-01", {"type": "string"}, True),
        ("f < 10:30", {"type": "string"}, True),
        ("f > 5", {"type": "string"}, False),
        ("f > 5", {"type": ["string", "integer"]}, True),
        ("f = true", {"type": ["boolean", "null"]}, True),
        ("f = a", {"type": "array"}, False),
        ("f = A", {"enum": ["a", "b"]}, True),
        ("f = c", {"enum": ["a", "b"]}, False),
        ("f = b", {"const": "a"}, False),
        ("f = anything", {}, True),
    ],
)
def test_values_that_a_schema_does_not_have(
    condition: str, schema: dict[str, Any], sound: bool
) -> None:
    text = f"{HEAD}A(s)--go-->B>call look_up]\nB--yes ({condition})-->C[end]\nB--no-->C"
    assert found(text, [tool("look_up", {"f": schema})]) == (
        [] if sound else [("bad_value", "error")]
    )


NAMES = [f"N{i}" for i in range(6)]
PAIRS = st.lists(st.tuples(st.sampled_from(NAMES), st.sampled_from(NAMES)), max_size=12)


@given(PAIRS)
def test_reachability_and_exits_as_networkx_sees_them(pairs: list[tuple[str, str]]) -> None:
    nodes = [Node(id=n, shape="reply" if i else "start", text=n) for i, n in enumerate(NAMES)]
    edges = tuple(Edge(source=s, target=t, label=str(i)) for i, (s, t) in enumerate(pairs))
    oracle: networkx.DiGraph[str] = networkx.DiGraph(pairs)
    oracle.add_nodes_from(NAMES)
    reachable = networkx.descendants(oracle, "N0") | {"N0"}
    ends = {n for n in NAMES if oracle.out_degree(n) == 0}
    stuck = {n for n in reachable if not (networkx.descendants(oracle, n) | {n}) & ends}
    told = chart_defects(Chart(nodes=tuple(nodes), edges=edges), ())
    assert {d.node for d in told if d.kind == "unreachable"} == set(NAMES) - reachable
    named = [d.message.split("follows ")[1].split(", ") for d in told if d.kind == "no_exit"]
    assert named == ([sorted(stuck)] if stuck else [])


def user(*calls: tuple[str, dict[str, Any]], scenario: str = "hire", choice: str = "") -> Profile:
    actions = tuple(Action(tool=name, arguments=arguments) for name, arguments in calls)
    return Profile(
        id="u", scenarios=(scenario,), persona="x", opening="Hello.",
        goals=(Goal(text="Have a boat.", actions=actions),), choices=(choice,) if choice else (),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("profile", "kind", "part"),
    [
        (user(("chek_boat", {})), "profile", "did you mean check_boat?"),
        (user(("check_boat", {})), "profile", "'boat' is a required property"),
        (user(("check_boat", {"boat": 3})), "profile", "boat: 3 is not of type 'string'"),
        (user(choice="Tries agan"), "annotation", "did you mean Tries again?"),
    ],
)
def test_users_whose_gold_or_choices_no_session_can_have(
    profile: Profile, kind: str, part: str
) -> None:
    (defect,) = profile_defects([profile, profile], TOOLS, CHARTS)
    assert (defect.kind, defect.severity) == (kind, "error")
    assert "profile u" in defect.message
    assert part in defect.message


def test_sound_users() -> None:
    calls = ("check_boat", {"boat": "Tern"}), ("book_boat", {"boat": "Tern", "skipper": "Ann"})
    users = [user(), user(*calls, choice="Tries again"), user(scenario="prose", choice="Anything")]
    assert profile_defects(users, TOOLS, CHARTS) == ()


def call(name: str, arguments: dict[str, Any], result: Any, **place: str) -> Turn:
    where = {"scenario": "hire", "node": "BH001"} | place
    return Turn(kind="call", tool=name, arguments=arguments, result=result, **where)


BOAT, FREE = {"boat": "Tern"}, {"is_free": True}


@pytest.mark.parametrize(
    ("turn", "expected", "part"),
    [
        (call("check_boat", BOAT, FREE), None, ""),
        (call("check_boat", BOAT, FREE, intent="Hire a boat"), None, ""),
        (call("check_boat", BOAT, FREE, intent="out of scope"), None, ""),
        (call("check_boat", BOAT, FREE, scenario="prose", node="any"), None, ""),
        (call("chek_boat", {}, {}), ("profile", "error"), "did you mean check_boat?"),
        (call("check_boat", {"boat": 7}, FREE), ("profile", "error"), "boat: 7 is not of type"),
        (call("check_boat", BOAT, {"is_free": "yes"}), ("profile", "error"), "'yes' is not of"),
        (call("check_boat", BOAT, "Closed."), ("profile", "warning"), "not of type 'object'"),
        (call("check_boat", BOAT, FREE, scenario="hira"), ("annotation", "error"), "mean hire?"),
        (call("check_boat", BOAT, FREE, node="BH01"), ("annotation", "error"), "mean BH001?"),
        (call("check_boat", BOAT, FREE, intent="Hired"), ("annotation", "error"), "into BH001"),
    ],
)
def test_recorded_turns(turn: Turn, expected: tuple[str, str] | None, part: str) -> None:
    turns = (Turn(kind="user", text="Hello."), turn)
    defects = session_defects([RecordedSession(id="r", profile="u", turns=turns)], TOOLS, CHARTS)
    assert [(d.kind, d.severity) for d in defects] == ([expected] if expected else [])
    assert all("session r, turn 1" in d.message and part in d.message for d in defects)
