"""Mock tools of a case, and cases that are refused."""

from __future__ import annotations

import pytest

from agenteval.agents import Toolbox
from agenteval.planning.case import Activity, Case, MockBackend, OrderRule, mock_tools

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
