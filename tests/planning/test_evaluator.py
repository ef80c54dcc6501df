"""Campaigns: trials are kept, resumed, and never run twice; failures are no verdicts."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agenteval.agents import AgentFailure, Dialogue, System, Toolbox
from agenteval.engine import Experiment, ExperimentResult, Progress
from agenteval.errors import BudgetExceeded, ModelError
from agenteval.models.limits import Limits
from agenteval.planning.api import plan_test
from agenteval.planning.case import Case
from agenteval.planning.evaluator import PlanningEvaluator, Rules, as_run, load_attempts
from agenteval.planning.oracle import CheckRules
from agenteval.planning.solver import plans
from agenteval.planning.suite_api import plan_suite
from agenteval.planning.synthesis import Generator, Shape
from agenteval.records import Usage
from agenteval.store import Store, Trials

CASES = list(Generator(Shape((3, 4)), seed=4).cases(12))
BY_REQUEST = {case.request: case for case in CASES}


class Knowing:
    """Calls the tools in the order that `choose` makes of a case; `calls` counts its cases."""

    def __init__(self, calls: list[str], fail: set[str] = frozenset(), wrong: bool = False) -> None:  # type: ignore[assignment]
        self.calls, self.fail, self.wrong = calls, fail, wrong

    async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
        case = BY_REQUEST[dialogue.messages[-1].content]
        self.calls.append(case.id)
        if case.id in self.fail:
            raise ModelError("no answer came")
        order = next(iter(plans(case.n, [e.constraint for e in case.stated])))
        for i in reversed(order) if self.wrong else order:
            tools.call(case.actions[i].tool)
        return "done"


def system(calls: list[str], name: str = "knowing", **more: object) -> System:
    return System(name, lambda: Knowing(calls, **more), {"name": name})  # type: ignore[arg-type]


def run(store: Store, agent: System, cases: list[Case] = CASES, trials: int = 1) -> Progress:
    return ended(store, agent, cases, trials).progress


def ended(
    store: Store, agent: System, cases: list[Case] = CASES, trials: int = 1, workers: int = 3
) -> ExperimentResult:
    work = Experiment(
        PlanningEvaluator.of(agent, cases, trials, Rules()), store, concurrency=workers
    )
    return asyncio.run(work.run())


def left(store: Store, agent: System, trials: int = 1) -> int:
    work = Experiment(PlanningEvaluator.of(agent, CASES, trials, Rules()), store)
    return len(work.pending().units)


def test_everything_is_run_once_and_read_back(tmp_path: Path) -> None:
    calls: list[str] = []
    with Store(tmp_path / "s.db") as store:
        progress = run(store, system(calls), trials=2)
        assert progress.outcomes == {"pass": 24}
        assert sorted(calls) == sorted([c.id for c in CASES] * 2)
        assert left(store, system(calls), 2) == 0
        attempts = load_attempts(store)
    assert len(attempts) == 24
    assert {a.outcome for a in attempts} == {"pass"}
    assert {a.case.sha256 for a in attempts} == {c.sha256 for c in CASES}
    got = as_run(attempts[0])
    assert got.success is True
    assert got.input == attempts[0].case.request


def test_resume_runs_what_is_missing_and_what_the_infrastructure_failed(tmp_path: Path) -> None:
    first: list[str] = []
    broken = {CASES[2].id, CASES[5].id}
    with Store(tmp_path / "s.db") as store:
        progress = run(store, system(first, fail=broken), CASES[:8])
        assert progress.outcomes == {"pass": 6, "error:infrastructure": 2}
        failed = [a for a in load_attempts(store) if isinstance(a.log, AgentFailure)]
        assert {a.case.id for a in failed} == broken
        assert all(a.verdict is None for a in failed)
        with pytest.raises(ValueError, match="endpoint of the agent failed"):
            as_run(failed[0])
        second: list[str] = []
        run(store, system(second))
        assert set(second) == broken | {c.id for c in CASES[8:]}
        assert len(second) == 6
        assert {a.outcome for a in load_attempts(store)} == {"pass"}


def test_other_rules_judge_the_stored_log_anew(tmp_path: Path) -> None:
    class Slips:
        async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
            tools.call("no_such_tool")
            return await Knowing([]).run(dialogue, tools)

    with Store(tmp_path / "s.db") as store:
        run(store, System("slips", Slips, {}))
        assert {a.outcome for a in load_attempts(store)} == {"pass"}
        strict = CheckRules(strict=True)
        assert {a.outcome for a in load_attempts(store, strict)} == {"act_error"}
        assert {a.outcome for a in load_attempts(store)} == {"pass"}


def test_systems_of_one_name_stay_apart(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        run(store, System("same", lambda: Knowing([]), {"temperature": 0}), CASES[:2])
        run(store, System("same", lambda: Knowing([], wrong=True), {"temperature": 1}), CASES[:2])
        attempts = load_attempts(store)
    names = {a.system for a in attempts}
    assert len(names) == 2
    assert all(name.startswith("same [") for name in names)
    outcomes = {name: {a.outcome for a in attempts if a.system == name} for name in names}
    assert sorted(map(sorted, outcomes.values())) == [["order_error"], ["pass"]]


def test_what_the_cap_broke_off_is_counted_and_run_again(tmp_path: Path) -> None:
    class Spending:
        """Two requests, then the cap."""

        async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
            tools.spend(Usage(requests=2))
            raise BudgetExceeded("the cap is reached")

    agent = System("spending", Spending, {})
    with Store(tmp_path / "s.db") as store:
        end = ended(store, agent)
        assert (end.stopped, end.left_out) == ("the cap is reached", 12)
        spent = Trials(store).usage("planning", agent.sha256).requests
        assert spent in (2, 4, 6)  # of as many of the three at work as had begun
        assert {a.outcome for a in load_attempts(store)} == {"error:budget"}
        assert left(store, agent) == 12


def test_changed_cases_of_one_id_stay_apart(tmp_path: Path) -> None:
    old = CASES[0]
    new = CASES[2].model_copy(update={"id": old.id})
    with Store(tmp_path / "s.db") as store:
        run(store, system([]), [old])
        run(store, system([]), [new])
        ids = {a.case.id for a in load_attempts(store)}
    assert ids == {f"{old.id} [{old.sha256[:6]}]", f"{old.id} [{new.sha256[:6]}]"}


# From Python


@pytest.fixture
def cases() -> tuple[Case, ...]:
    return plan_suite(6, seed=1).cases


def in_given_order(request: str, tools: Any) -> str:
    for name in tools:
        tools[name]()
    return "done"


def test_a_function_is_an_agent(cases: tuple[Case, ...], tmp_path: Path) -> None:
    report = plan_test(cases, in_given_order, store=tmp_path / "a.db", gate=0.9)
    outcomes = Counter(row["outcome"] for row in report.records())
    (row,) = report["systems"].records()
    assert row["system"] == "python:tests.planning.test_evaluator:in_given_order"
    assert (row["trials"], row["right"], row["failures"]) == (6, outcomes["pass"], 0)
    assert row["success"] == outcomes["pass"] / 6
    assert report.exit_code == (0 if outcomes["pass"] / 6 >= 0.9 else 1)
    assert report.failures == ()
    assert len(report.runs()) == 6
    assert sum(row["success"] for row in report.records()) == outcomes["pass"]


def test_an_agent_that_crashes_has_no_success(cases: tuple[Case, ...], tmp_path: Path) -> None:
    report = plan_test(cases, "scripted:crash", store=tmp_path / "a.db")
    assert [row["success"] for row in report.records()] == [None] * 6
    assert len(report.failures) == 6


def test_no_trial_is_begun_when_the_time_is_used_up(
    cases: tuple[Case, ...], tmp_path: Path
) -> None:
    """The first trial takes longer than there is; it is finished and stored."""

    def slow(request: str, tools: Any) -> str:
        time.sleep(0.3)
        return in_given_order(request, tools)

    limits = Limits(concurrency=1)
    run = {"store": tmp_path / "a.db", "limits": limits}
    report = plan_test(cases, slow, minutes=0.2 / 60, **run)
    assert (len(report.attempts), report.exit_code) == (1, 3)
    (line,) = report.unfinished
    assert "5 trials not run" in line
    assert len(plan_test(cases, slow, minutes=60, **run).attempts) == 6
