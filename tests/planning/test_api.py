"""Planning tests from Python: what comes back, what is recorded, who can be tested."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agenteval.models.limits import Limits
from agenteval.planning.api import plan_test
from agenteval.planning.case import Case
from agenteval.planning.suite_api import plan_suite


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
    assert row["system"] == "python:tests.planning.test_api:in_given_order"
    assert (row["trials"], row["right"], row["failures"]) == (6, outcomes["pass"], 0)
    assert row["success"] == outcomes["pass"] / 6
    assert report.exit_code == (0 if outcomes["pass"] / 6 >= 0.9 else 1)
    assert report.failures == ()
    assert len(report.runs()) == 6


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
