"""A role with a chart as others draw them: calls, states and causes of its sessions agree."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

import agenteval
from agenteval.errors import InputError
from agenteval.workflows.procedure_api import flow_check

CHART = """graph TD;
  A[Greet] --> M{What next?};
  M -->|a chair| B["book_chair #40;any time#41;"]:::tool;
  M -->|a note| C[add_note];
  B --> M; C --> M;
  M -->|nothing| E([Say goodbye]);
  classDef tool fill:#dfd;
"""
BACKEND = """class Backend:
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
        {"name": name, "description": name, "effect": "write",
         "parameters": {"type": "object", "required": list(arguments),
                        "properties": {key: {"type": "string"} for key in arguments}},
         "returns": {"type": "object", "properties": {}}}
        for name, arguments in GOLD
    ]  # fmt: skip
    user = {
        "id": "anna", "scenarios": ["seat"], "persona": "In a hurry.", "opening": "A chair!",
        "goals": [{"text": "A chair and a note.",
                   "actions": [{"tool": t, "arguments": a} for t, a in GOLD]}],
        "facts": {"time": "7 pm", "name": "Anna Berg", "text": "No perfume"},
        "choices": ["a chair", "a note", "nothing"],
    }  # fmt: skip
    folder = tmp_path / "barber"
    (folder / "seat").mkdir(parents=True)
    for name, text in {
        "role.yaml": 'domain: Shop\ntitle: Barber\nbackground: x\nnow: "2031-03-12 10:00"\n',
        "backend.py": BACKEND,
        "seat/scenario.yaml": "title: A seat\nbackground: x\n",
        "seat/workflow.mmd": CHART,
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


def test_the_session_and_the_check_read_the_chart_alike(barber: Path) -> None:
    calls = [{"tool": tool, "arguments": arguments} for tool, arguments in GOLD]
    turn = {"user": "A chair!", "calls": calls, "reply": "Goodbye!"}
    (barber / "sessions").mkdir()
    (barber / "sessions" / "by_hand.yaml").write_text(json.dumps({"users": {"anna": [turn]}}))
    report = agenteval.flow_sessions(
        barber, agent="recorded:by_hand", user="scripted", store=barber.parent / "s.db"
    )
    (session,) = report.sessions
    assert [c.tool for c in session.log.calls] == ["book_chair", "add_note"]  # type: ignore[union-attr]
    assert session.verdict
    assert session.verdict.success
    note = report["procedure"].notes
    assert any("transitions walked could not be checked" in line for line in note)
    checked = flow_check(barber)
    assert checked.exit_code == 0, checked["defects"].rows
    assert [row["kind"] for row in checked["defects"].rows] == ["no_start"]
    assert {row["kind"] for row in checked["notes"].rows} == {"skipped"}
    assert [row["unchecked"] for row in checked["checked"].rows] == [3, None]


def test_calls_against_charts_in_a_markdown_file(barber: Path) -> None:
    made = [{"tool": tool, "returned": {}} for tool, _ in GOLD]
    tools = barber / "seat" / "tools.json"
    page = barber / "page.md"
    page.write_text(f"# Seats\n\n```mermaid\n{CHART}```\n")
    found = agenteval.conform(made, page, tools=tools)
    assert found.conforms
    assert found.notes == (
        "3 of 6 transitions walked could not be checked: no condition on the edge, or none of its "
        "values was returned",
    )
    page.write_text(page.read_text() + "\n~~~mermaid\ngraph TD\nA[x] --> B[y\n~~~\n")
    with pytest.raises(InputError, match=r"page\.md: 2 charts, at lines 4, 14, where"):
        agenteval.conform(made, page, tools=tools)
    checked = flow_check(page, tools=tools)
    assert checked.exit_code == 2
    assert [row["scenario"] for row in checked["checked"].rows] == ["line 4", "line 14"]
    (unread,) = [r for r in checked["defects"].rows if r["kind"] == "unreadable"]
    assert "page.md, line 15, column 11: the label of B is not closed" in str(unread["message"])
