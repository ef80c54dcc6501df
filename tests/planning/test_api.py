"""Planning tests from Python: what comes back, what is recorded, who can be tested."""

from __future__ import annotations

import time
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from agenteval.app.stored import export_replies
from agenteval.models.limits import Limits
from agenteval.planning.api import plan_test
from agenteval.planning.case import Case
from agenteval.planning.suite_api import plan_suite
from agenteval.testing import serve


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


@pytest.mark.slow
def test_every_attempt_is_recorded_and_replayed_as_itself(
    cases: tuple[Case, ...], tmp_path: Path
) -> None:
    recording = tmp_path / "replies.jsonl"
    with serve(answer=lambda _, n: f"reply {n}") as server:
        first = plan_test(
            cases[:2],
            "openai",
            trials=2,
            model="m",
            base_url=server.base_url,
            store=tmp_path / "a.db",
        )
    export_replies(recording, tmp_path / "a.db")
    again = plan_test(
        cases[:2], "openai", trials=2, model=f"replay:{recording}", store=tmp_path / "b.db"
    )
    outputs = [sorted(a.log.output for a in r.attempts) for r in (first, again)]  # type: ignore[union-attr]
    assert outputs[0] == outputs[1] == ["reply 0", "reply 0", "reply 1", "reply 1"]


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
