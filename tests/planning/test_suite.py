"""Suites written by hand: what cannot be a case is refused in one line, before any agent runs."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.agents import Toolbox
from agenteval.errors import InputError
from agenteval.planning.case import Activity, Case, MockBackend, OrderRule, mock_tools
from agenteval.planning.suite import read_suite

WALK: dict[str, Any] = {
    "id": "walk",
    "actions": ["walk", "swim"],
    "request": "Walk, then swim.",
    "constraints": [{"first": "walk", "second": "swim"}],
}
HOURS = {"durations": {"walk": 1, "swim": 2}}
TOOLS = [{"name": "walk"}, {"name": "swim"}]
TIMED = {
    "type": "object",
    "properties": {"start_time": {"type": "integer"}},
    "required": ["start_time"],
}


def one(path: Path, **changes: Any) -> Any:
    file = path / "suite.jsonl"
    file.write_text(json.dumps({**WALK, **changes}, ensure_ascii=False) + "\n", encoding="utf-8")
    (case,) = read_suite(file)
    return case


def test_a_case_is_completed(tmp_path: Path) -> None:
    case = one(tmp_path)
    assert [tool.name for tool in case.tools] == ["walk", "swim"]
    assert case.valid_plans == 1


def test_phrases_and_objects_may_be_mixed(tmp_path: Path) -> None:
    case = one(tmp_path, actions=["walk", {"phrase": "日本語", "tool": "swim"}])
    assert [a.phrase for a in case.actions] == ["walk", "日本語"]


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"actions": ["日本語", "swim"]}, "'日本語' cannot be turned into a tool name"),
        ({"actions": ["walk", " "]}, "actions.1"),
        ({"tools": [{"name": "walk"}]}, "tools: 'swim' is missing"),
        ({"tools": [*TOOLS, {"name": "walk"}]}, "tools: duplicate 'walk'"),
        (
            {"tools": [{"name": "walk", "parameters": {"type": "nonsense"}}, {"name": "swim"}]},
            "the parameters of 'walk' are not a JSON schema",
        ),
        (
            {**HOURS, "tools": [{"name": n, "parameters": TIMED} for n in ("walk", "swim")]},
            "tools: 'restart_plan' is missing",
        ),
        (
            {**HOURS, "tools": [*TOOLS, {"name": "restart_plan"}]},
            "tools: 'walk' must require 'start_time'",
        ),
    ],
)
def test_what_no_agent_could_pass_is_refused(
    tmp_path: Path, changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(InputError, match=r"suite\.jsonl:1: ") as refused:
        one(tmp_path, **changes)
    assert message in str(refused.value)


def test_tools_of_ones_own_may_be_more(tmp_path: Path) -> None:
    assert len(one(tmp_path, tools=[*TOOLS, {"name": "rest"}]).tools) == 3


# Mock tools, and cases that are refused


CLEAN, LETTER = "coffee_machine_cleaning", "menu_board_lettering"
ACTIONS = (
    Activity(phrase="coffee machine cleaning", tool=CLEAN),
    Activity(phrase="menu board lettering", tool=LETTER),
)
BASE = Case(id="base", actions=ACTIONS)
TIMED = Case(id="timed", actions=ACTIONS, durations={CLEAN: 2, LETTER: 1})


def toolbox(case: Case) -> Toolbox:
    return Toolbox(mock_tools(case), MockBackend(case))


def test_a_base_call_takes_no_arguments() -> None:
    box = toolbox(BASE)
    assert box.call(LETTER) == 'Done: "menu board lettering" has been completed.'
    box.call(LETTER, {"start_time": 3})
    box.call("restart_plan")
    assert [e.status for e in box.events] == ["ok", "bad_arguments", "unknown_tool"]


def test_an_extended_call_takes_a_start_and_returns_the_duration() -> None:
    box = toolbox(TIMED)
    assert "2" not in mock_tools(TIMED)[0].description
    assert box.call(CLEAN, {"start_time": 10}) == (
        'Done: "coffee machine cleaning" started at 10:00, took 2 hours and ended at 12:00.'
    )
    answer = box.call(LETTER, '{"start_time": 8.0}')
    assert answer.endswith("started at 8:00, took 1 hour and ended at 9:00.")
    assert box.call(CLEAN, {"start_time": 23}).endswith("ended at 1:00 on the next day.")
    assert "afresh" in box.call("restart_plan", {})
    assert [e.status for e in box.events] == ["ok"] * 4


@pytest.mark.parametrize("start", ["10", 24, -1, 9.5, True, None, [9]])
def test_other_starts_are_refused(start: object) -> None:
    box = toolbox(TIMED)
    box.call(CLEAN, {"start_time": start})
    box.call(CLEAN)
    assert [e.status for e in box.events] == ["bad_arguments"] * 2


def test_refusals() -> None:
    restart = Activity(phrase="plan restart", tool="restart_plan")
    with pytest.raises(ValueError, match="restart_plan"):
        Case(id="x", actions=(restart,), durations={"restart_plan": 1})
    itself = OrderRule(first=CLEAN, second=CLEAN)
    with pytest.raises(ValueError, match="cannot come before itself"):
        Case(id="x", actions=ACTIONS, constraints=(itself,))
    with pytest.raises(ValueError, match="no tool 'elsewhere'"):
        MockBackend(BASE)("elsewhere", {})
