"""The verdicts of the golden cases, which were worked out without this package."""

from typing import Any

import pytest

from agenteval.agents import AgentLog, ToolEvent
from agenteval.planning.case import Activity, Before, Case, OrderRule, TimeRule
from agenteval.planning.oracle import check
from agenteval.planning.solver import count_plans, graph_of, schedule
from tests.golden.files import published

GOLDEN: dict[str, Any] = published("planning_cases")


def cases(key: str) -> list[Any]:
    return [pytest.param(case, id=case["name"]) for case in GOLDEN[key]]


def made(golden: dict[str, Any]) -> Case:
    orders = [OrderRule(first=f"a{a}", second=f"a{b}") for a, b in golden["constraints_before"]]
    times = [
        TimeRule(tool=f"a{a}", side=side, hour=hour)
        for a, side, hour in golden.get("time_constraints", [])
    ]
    hours = golden.get("durations")
    return Case(
        id=golden["name"],
        actions=tuple(Activity(phrase=f"a{i}", tool=f"a{i}") for i in range(1, golden["n"] + 1)),
        constraints=(*orders, *times),
        durations=hours and {f"a{i}": d for i, d in hours.items()},
    )


def test_all_are_here() -> None:
    assert (len(GOLDEN["base"]), len(GOLDEN["extended"])) == (14, 8)


@pytest.mark.parametrize("golden", cases("base"))
def test_base(golden: dict[str, Any]) -> None:
    case = made(golden)
    orders = [Before(a - 1, b - 1) for a, b in golden["constraints_before"]]
    assert count_plans(golden["n"], orders) == golden["valid_plans"]
    assert (graph_of(golden["n"], orders) is not None) == golden["satisfiable"]
    if golden["log"] is None:
        return
    events = [ToolEvent(name=f"a{a}", turn=i) for i, a in enumerate(golden["log"])]
    if golden["flags"].get("act_error"):
        events.append(ToolEvent(name="a9", status="unknown_tool", turn=len(events)))
    ending = "timeout" if golden["flags"].get("timeout") else "finished"
    verdict = check(case, AgentLog(events=tuple(events), ending=ending))
    assert verdict.outcome == golden["verdict"]
    assert [v.constraint for v in verdict.violated] == golden["violated"]


@pytest.mark.parametrize("golden", cases("extended"))
def test_extended(golden: dict[str, Any]) -> None:
    case = made(golden)
    assert case.hours is not None
    constraints = [s.constraint for s in case.stated]
    assert (schedule(case.n, constraints, case.hours) is not None) == golden["feasible"]
    events = tuple(
        ToolEvent(name=f"a{a}", arguments={"start_time": start}, turn=i)
        for i, (a, start) in enumerate(golden["log_action_start"])
    )
    verdict = check(case, AgentLog(events=events))
    first_time = len(golden["constraints_before"])
    violated = [
        v.constraint if v.constraint < first_time else f"t{v.constraint - first_time}"
        for v in verdict.violated
    ]
    assert verdict.outcome == golden["verdict"]
    assert violated == golden["violated"]
    assert [[int(e.tool[1:]), e.given, e.earliest] for e in verdict.parameter_errors] == golden[
        "parameter_violations"
    ]
