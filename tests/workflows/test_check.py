"""Defects of charts, users, recorded calls and backends, and a role as others draw its chart."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import networkx
import pytest
from hypothesis import given
from hypothesis import strategies as st

import agenteval
from agenteval.errors import InputError
from agenteval.workflows.chart import Chart, Edge, Node
from agenteval.workflows.check import (
    Defect,
    backend_defects,
    chart_defects,
    check_role,
    flow_check,
    profile_defects,
    session_defects,
)
from agenteval.workflows.folder import role_folders
from agenteval.workflows.mermaid import parse_chart
from agenteval.workflows.scenario import Action, Goal, Profile, RecordedSession, Turn, WorkflowTool
from tests.workflows.boats import CHART, TOOLS, replaced, tool

HEAD = "flowchart TD\n"
CHARTS: dict[str, Chart | None] = {"hire": parse_chart(CHART), "prose": None}


def defects(text: str, tools: Sequence[WorkflowTool] = TOOLS) -> list[Defect]:
    return list(chart_defects(parse_chart(text), tools))


def found(text: str, tools: Sequence[WorkflowTool] = TOOLS) -> list[tuple[str, str]]:
    return [(d.kind, d.severity) for d in defects(text, tools)]


DESK = Path(__file__).parent / "library_desk"


@pytest.mark.parametrize("folder", [DESK, *role_folders().values()], ids=lambda path: path.name)
def test_the_roles_that_are_supplied_are_sound(folder: Path) -> None:
    checked = check_role(str(folder))
    assert checked
    assert [d for c in checked for d in c.defects] == []


@pytest.mark.parametrize(
    ("old", "new", "kind", "line", "part"),
    [
        ("BH004 & BH003--Tries", "BH007(Start) & BH003--Tries", "several_starts", 8, "BH007"),
        (
            "another boat-->BH001\n",
            "another boat-->BH001\nBH008[Lost]-->BH006\n",
            "unreachable",
            12,
            "BH008",
        ),
        ("BH005--Names another boat-->BH001", "BH005-->BH005", "no_exit", 10, "BH005"),
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
)
def test_planted_defects(old: str, new: str, kind: str, line: int, part: str) -> None:
    # A tool that is not called returns no fields, so a condition may be wrong as well.
    (defect,) = [d for d in defects(replaced(CHART, old, new)) if d.kind == kind]
    assert (defect.severity, defect.line) == ("error", line)
    assert part in defect.message


@pytest.mark.parametrize(
    ("condition", "schema", "sound"),
    [
        ("f = true", {"type": "boolean"}, True),
        ("f = 1", {"type": "boolean"}, False),
        ("f >= 2.5", {"type": "integer"}, True),
        ("f = 2.5", {"type": "integer"}, False),
        ("f = many", {"type": "number"}, False),
        ("f = 5", {"type": "string"}, True),
        ("f < 2031-01-01", {"type": "string"}, True),
        ("f > 5", {"type": "string"}, False),
        ("f > 5", {"type": ["string", "integer"]}, True),
        ("f = a", {"type": "array"}, False),
        ("f = A", {"enum": ["a", "b"]}, True),
        ("f = c", {"enum": ["a", "b"]}, False),
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
    assert {d.place for d in told if d.kind == "unreachable"} == set(NAMES) - reachable
    named = [d.message.split("from ")[1].split(", ") for d in told if d.kind == "no_exit"]
    assert named == ([sorted(stuck)] if stuck else [])


def user(*calls: tuple[str, dict[str, Any]], scenario: str = "hire", choice: str = "") -> Profile:
    actions = tuple(Action(tool=name, arguments=arguments) for name, arguments in calls)
    return Profile(
        id="u",
        scenarios=(scenario,),
        persona="x",
        opening="Hello.",
        goals=(Goal(text="Have a boat.", actions=actions),),
        choices=(choice,) if choice else (),
    )


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


# -- backends ------------------------------------------------------------------------------------

BACKEND_TOOLS = (tool("find", {}, ("title", "year"), ("title",)), tool("lend", {}, ("title",)))
STATE = "def __init__(self): self.state = {}"
FIND, LEND = "def find(self, title, year=None): ...", "def lend(self, *, title): ..."


def told(folder: Path, source: str) -> list[str]:
    (folder / "backend.py").write_text(source, encoding="utf-8")
    return [f"{d.severity}: {d.message}" for d in backend_defects(folder, BACKEND_TOOLS)]


def backend(*methods: str, bases: str = "") -> str:
    return f"class Backend{bases}:\n" + "".join(f"    {m}\n" for m in (STATE, *methods))


@pytest.mark.parametrize(
    ("find", "lend", "expected"),
    [
        (FIND, "", "the backend has no method lend"),
        ("def find(self, title): ...", LEND, "find(title, year): got an unexpected keyword"),
        ("def find(self, title, year): ...", LEND, "find(title): missing a required argument"),
        (FIND, "def lend(self, title, *, reader): ...", "lend(title): missing a required"),
        (FIND, "async def lend(self, title): ...", "lend must not be an `async def`"),
    ],
)
def test_what_is_missing(tmp_path: Path, find: str, lend: str, expected: str) -> None:
    (line,) = told(tmp_path, backend(find, lend))
    assert line.startswith("error: ")
    assert expected in line


DATACLASS = "from dataclasses import dataclass, field\n@dataclass\n"


def stateless(*members: str, before: str = "", bases: str = "") -> str:
    body = "".join(f"    {m}\n" for m in (*members, FIND, LEND))
    return f"{before}class Backend{bases}:\n{body}"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (stateless("def __init__(self, at=0): self.set()", "def set(self): self.state = {}"), ""),
        (stateless("@property", "def state(self): return {}"), ""),
        (stateless("state: dict = field(default_factory=dict)", before=DATACLASS), ""),
        (stateless("state = {}"), "warning: two sessions share one state"),
        (stateless("def __init__(self): self.books = {}"), "the backend has no `state`"),
        (stateless("def state(self): return {}"), "error: the state is not a JSON value"),
        (
            stateless("def __init__(self): self.state = {1, 2}"),
            "error: the state is not a JSON value",
        ),
        (stateless("def __init__(self): raise SystemExit(2)"), "cannot be made: SystemExit: 2"),
        (stateless("state = property(lambda self: 1 / 0)"), "the backend cannot be read: ZeroDiv"),
        ("import sys\nsys.exit(3)", "cannot be imported (SystemExit: 3)"),
        ("class Backend(:", "cannot be imported (SyntaxError"),
    ],
)
def test_the_state_and_whether_a_backend_can_be_made(
    tmp_path: Path, source: str, expected: str
) -> None:
    lines = told(tmp_path, source)
    assert len(lines) == bool(expected)
    assert expected in "".join(lines)


# -- a role with a chart as others draw them: calls, states and causes of its sessions agree -------

BARBER_CHART = """graph TD;
  A[Greet] --> M{What next?};
  M -->|a chair| B["book_chair #40;any time#41;"]:::tool;
  M -->|a note| C[add_note];
  B --> M; C --> M;
  M -->|nothing| E([Say goodbye]);
  classDef tool fill:#dfd;
"""
BARBER_BACKEND = """class Backend:
    def __init__(self):
        self.state = {"chairs": {}, "notes": []}
    def _book_chair(self, time, name):
        self.state["chairs"]["only"] = {"time": time, "name": name}
        return {}
    def _add_note(self, text):
        self.state["notes"].append(text)
        return {}
    def __getattr__(self, name):
        return object.__getattribute__(self, f"_{name}")
"""
GOLD = [("book_chair", {"time": "7 pm", "name": "Anna Berg"}), ("add_note", {"text": "No perfume"})]


@pytest.fixture
def barber(tmp_path: Path) -> Path:
    tools = [
        {
            "name": name,
            "description": name,
            "effect": "write",
            "parameters": {
                "type": "object",
                "required": list(arguments),
                "properties": {key: {"type": "string"} for key in arguments},
            },
            "returns": {"type": "object", "properties": {}},
        }
        for name, arguments in GOLD
    ]
    user = {
        "id": "anna",
        "scenarios": ["seat"],
        "persona": "In a hurry.",
        "opening": "A chair!",
        "goals": [
            {
                "text": "A chair and a note.",
                "actions": [{"tool": t, "arguments": a} for t, a in GOLD],
            }
        ],
        "facts": {"time": "7 pm", "name": "Anna Berg", "text": "No perfume"},
        "choices": ["a chair", "a note", "nothing"],
    }
    folder = tmp_path / "barber"
    (folder / "seat").mkdir(parents=True)
    for name, text in {
        "role.yaml": 'domain: Shop\ntitle: Barber\nbackground: x\nnow: "2031-03-12 10:00"\n',
        "backend.py": BARBER_BACKEND,
        "seat/scenario.yaml": "title: A seat\nbackground: x\n",
        "seat/workflow.mmd": BARBER_CHART,
        "seat/workflow.txt": "Greet, then book_chair and add_note as the user wants.",
        "seat/tools.json": json.dumps(tools),
        "seat/profiles.yaml": json.dumps([user]),
    }.items():
        (folder / name).write_text(text)
    return folder


def judged(barber: Path, calls: Sequence[tuple[str, dict[str, Any]]]) -> Any:
    def agent(messages: Any, tools: Any) -> str:
        if sum(m["role"] == "user" for m in messages) == 1:
            for tool, arguments in calls:
                tools[tool](**arguments)
        return "Goodbye!"

    report = agenteval.flow_sessions(
        barber, agent=agent, user="scripted", store=barber.parent / "s.db"
    )
    (session,) = report.sessions
    return session.verdict


LOUD = ("book_chair", {"time": "7pm", "name": "anna  berg"})
LATE = ("book_chair", {"time": "8 pm", "name": "Anna Berg"})


@pytest.mark.parametrize(
    ("calls", "success", "right", "cause"),
    [
        (GOLD, True, 2, None),
        ([LOUD, GOLD[1]], True, 2, None),
        ([GOLD[1], LOUD], True, 2, None),
        ([GOLD[1], LATE], False, 1, "tool_use"),
        ([LOUD], False, 1, "missing_step"),
    ],
)
def test_state_calls_and_cause_agree(
    barber: Path, calls: Any, success: bool, right: int, cause: str | None
) -> None:
    found = judged(barber, calls)
    assert (found.success, found.state_success) == (success, success), found.differences
    assert (found.right, found.gold, found.cause) == (right, 2, cause)
    assert found.conforms
    branches = [edge for edge in found.edges if edge[0] == "M"]
    assert found.unchecked == len(branches) > 1  # no edge has a condition
    assert (found.deviations == ()) is (cause is None)


def test_calls_against_charts_in_a_markdown_file(barber: Path) -> None:
    made = [{"tool": tool, "returned": {}} for tool, _ in GOLD]
    tools = barber / "seat" / "tools.json"
    page = barber / "page.md"
    page.write_text(f"# Seats\n\n```mermaid\n{BARBER_CHART}```\n")
    found = agenteval.conform(made, page, tools=tools)
    assert found.conforms
    assert len(found.notes) == 1
    assert found.notes[0].startswith("3 of 6 transitions")
    page.write_text(page.read_text() + "\n~~~mermaid\ngraph TD\nA[x] --> B[y\n~~~\n")
    with pytest.raises(InputError, match=r"page\.md: 2 charts, at lines 4, 14, where"):
        agenteval.conform(made, page, tools=tools)
    checked = flow_check(page, tools=tools)
    assert checked.exit_code == 2
    assert [row["scenario"] for row in checked["checked"].rows] == ["line 4", "line 14"]
    (unread,) = [r for r in checked["defects"].rows if r["kind"] == "unreadable"]
    assert "page.md, line 15, column 11: the label of B is not closed" in str(unread["message"])
