import pytest

from agenteval.agents import Toolbox
from agenteval.planning.case import Activity, Case, MockBackend, OrderRule, mock_tools

ACTIONS = (
    Activity(phrase="coffee machine cleaning", tool="coffee_machine_cleaning"),
    Activity(phrase="menu board lettering", tool="menu_board_lettering"),
)
BASE = Case(id="base", actions=ACTIONS)
TIMED = Case(
    id="timed",
    actions=ACTIONS,
    durations={"coffee_machine_cleaning": 2, "menu_board_lettering": 1},
)


def toolbox(case: Case) -> Toolbox:
    return Toolbox(mock_tools(case), MockBackend(case))


def test_a_call_claims_success() -> None:
    box = toolbox(BASE)
    assert box.call("menu_board_lettering") == 'Done: "menu board lettering" has been completed.'
    box.call("menu_board_lettering", {"start_time": 3})
    box.call("restart_plan")
    assert [e.status for e in box.events] == ["ok", "bad_arguments", "unknown_tool"]


def test_an_extended_call_tells_the_duration() -> None:
    box = toolbox(TIMED)
    clean, letter = "coffee_machine_cleaning", "menu_board_lettering"
    assert box.call(clean, {"start_time": 10}) == (
        'Done: "coffee machine cleaning" started at 10:00, took 2 hours and ended at 12:00.'
    )
    assert box.call(letter, '{"start_time": 8.0}').endswith(
        "started at 8:00, took 1 hour and ended at 9:00."
    )
    assert box.call(clean, {"start_time": 22}).endswith("ended at 24:00.")
    assert box.call(clean, {"start_time": 23}).endswith("ended at 1:00 on the next day.")
    assert "afresh" in box.call("restart_plan", {})
    assert [e.status for e in box.events] == ["ok"] * 5


@pytest.mark.parametrize("start", ["10", 24, -1, 9.5, True, None, [9]])
def test_other_starts_are_refused(start: object) -> None:
    box = toolbox(TIMED)
    box.call("coffee_machine_cleaning", {"start_time": start})
    box.call("coffee_machine_cleaning")
    assert [e.status for e in box.events] == ["bad_arguments"] * 2


def test_refusals() -> None:
    with pytest.raises(ValueError, match="restart_plan"):
        Case(
            id="x",
            actions=(Activity(phrase="plan restart", tool="restart_plan"),),
            durations={"restart_plan": 1},
        )
    with pytest.raises(ValueError, match="cannot come before itself"):
        Case(
            id="x",
            actions=(Activity(phrase="nap", tool="nap"),),
            constraints=(OrderRule(first="nap", second="nap"),),
        )
    with pytest.raises(ValueError, match="no tool 'elsewhere'"):
        MockBackend(BASE)("elsewhere", {})
