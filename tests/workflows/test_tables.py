"""Rates and tables of workflows against figures by hand, by enumeration, or by another formula."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from agenteval.agents import AgentFailure
from agenteval.records import Usage
from agenteval.records.table import Table, shown
from agenteval.workflows.equality import Judgement
from agenteval.workflows.judges import GoalsVerdict, JudgeFailure, ResponseVerdict
from agenteval.workflows.results import CaseInfo, SessionResult, SessionVerdict, TurnResult
from agenteval.workflows.scores import TurnVerdict
from agenteval.workflows.session import (
    Prediction,
    SessionCall,
    SessionFailure,
    SessionLog,
    SimulatorMistake,
)
from agenteval.workflows.tables import result_tables
from agenteval.workflows.tallies import Tallies, format_pairs, pass_powers, share

Z = 1.959963984540054
LOST = SessionFailure(status="error:infrastructure", message="no answer", usage=Usage(requests=1))


def session(
    task: str,
    success: bool | str | None = True,
    trial: int = 0,
    agent: str = "a",
    format: Any = "text",
    log: SessionLog | SessionFailure | None = None,
    about: dict[str, Any] | None = None,
    **more: Any,
) -> SessionResult:
    """A session; a text in place of its success is the reason why there is no verdict."""
    case = {"role": "desk", "domain": "Books", "scenarios": ("lend",), **(about or {})}
    info = CaseInfo(level="session", id=task, task=task, **case)
    rates = {"progress": 1.0, "conforms": True, "fitness": 1.0, "sequence": 1.0}
    counts = {"right": 1, "gold": 1, "generated": 1, "decided_by": "state"}
    verdict = None
    if not isinstance(success, str):
        verdict = SessionVerdict.model_validate({**rates, **counts, "success": success, **more})
    log = log or SessionLog(ended="user", turns=2)
    return SessionResult(info, f"{agent} · {format}", agent, format, {}, trial, log, verdict)


def turn(
    id: str, verdict: TurnVerdict | AgentFailure | None, format: Any = "text", grade: Any = None
) -> TurnResult:
    task = id.rpartition(":")[0]
    info = CaseInfo(
        level="turn", id=id, task=task, role="desk", domain="Books", scenarios=("lend",)
    )
    lost = verdict if isinstance(verdict, AgentFailure) else None
    judged = verdict if isinstance(verdict, TurnVerdict) else None
    did = lost or Prediction(form="reply", response="x")
    return TurnResult(info, f"a · {format}", "a", format, {}, 0, did, judged, grade)


def called(call: Any, session: str = "s", **more: Any) -> TurnVerdict:
    fields = {"form": "call" if call else "reply", "gold_call": True, **more}
    return TurnVerdict(session=session, turn=1, call=call, **fields)


def tables(results: Sequence[Any]) -> dict[str, Table]:
    turns = isinstance(results[0], TurnResult)
    found = result_tables([], results) if turns else result_tables(results, [])
    return {table.key: table for table in found}


def row(table: Table) -> dict[str, str]:
    """The cells of the first row as they are shown, by their keys."""
    return {c.key: shown(table.rows[0].get(c.key), c.form) for c in table.columns}


def notes(table: Table) -> str:
    return " ".join(table.notes)


def by_enumeration(differences: Sequence[float]) -> float:
    """Share of all signs under which the mean is as far from 0 as it is."""
    sums = [
        abs(sum(s * x for s, x in zip(signs, differences, strict=True)))
        for signs in product((1, -1), repeat=len(differences))
    ]
    return sum(x >= abs(sum(differences)) - 1e-12 for x in sums) / len(sums)


def test_single_trials_have_wilsons_interval() -> None:
    (tally,) = Tallies([session(f"t{i}", i != 0) for i in range(4)]).sessions_by()
    n, p = 4, 0.75
    middle = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z * math.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2)) / (1 + Z**2 / n)
    assert tally.success.mean == 0.75
    assert tally.success.low == pytest.approx(middle - half)
    assert tally.success.high == pytest.approx(middle + half)


def test_repeated_trials_add_no_tasks_and_failures_are_in_no_rate() -> None:
    trials = [("t1", True), ("t1", True), ("t2", True), ("t2", False), ("t3", False)]
    repeated = [session(task, success, i) for i, (task, success) in enumerate(trials)]
    (tally,) = Tallies([*repeated, session("t3", "lost", 5, log=LOST)]).sessions_by()
    assert tally.success.mean == 0.5  # of 1, 1/2 and 0 of the one that is known
    assert (tally.sessions, tally.tasks, tally.without_verdict) == (5, 3, 1)
    # One value of three is below the middle one, one above: how many may it be in truth?
    most = brentq(lambda p: (1 - p) ** 3 + 3 * p * (1 - p) ** 2 - 0.025, 0.01, 0.999)
    assert tally.success.low == pytest.approx(0.5 - 0.5 * most)
    assert tally.success.high == pytest.approx(0.5 + 0.5 * most)
    assert [tally.success_low, tally.success_high] == pytest.approx([1.5 / 3, 2 / 3])
    first, second = tally.powers
    assert (first.k, first.rate.mean, first.left_out) == (1, 0.5, 0)
    assert (second.k, second.rate.mean, second.left_out) == (2, 0.5, 1)  # t1: 1 of 1, t2: 0


@given(st.lists(st.lists(st.booleans(), min_size=1, max_size=6), min_size=1, max_size=6))
def test_pass_power_is_the_share_of_draws_that_all_succeed(tasks: list[list[bool]]) -> None:
    powers = pass_powers([(sum(task), len(task)) for task in tasks], 8)
    assert [p.k for p in powers] == list(range(1, max(map(len, tasks)) + 1))
    for power in powers:
        draws = [list(combinations(task, power.k)) for task in tasks if len(task) >= power.k]
        mean = np.mean([np.mean([all(draw) for draw in of_task]) for of_task in draws])
        assert power.rate.mean == pytest.approx(mean)
        assert power.left_out == len(tasks) - len(draws)


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), min_size=1, max_size=12))
def test_a_share_is_the_mean_of_tasks_and_is_in_its_interval(
    values: list[tuple[str, bool]],
) -> None:
    found = share(values)
    tasks = {task: [v for t, v in values if t == task] for task, _ in values}
    mean = sum(sum(v) / len(v) for v in tasks.values()) / len(tasks)
    assert found.mean == pytest.approx(mean)
    assert (found.n, found.n_clusters) == (len(values), len(tasks))
    if found.low is not None and found.high is not None:
        assert found.low <= mean + 1e-9 <= found.high + 2e-9 <= 1 + 3e-9


def test_agreement_of_judge_and_state_by_hand() -> None:
    ratings = [(True, True)] * 4 + [(False, False)] * 2 + [(True, False)] * 2 + [(False, None)]
    results = [
        session(
            f"t{i}",
            state,
            state_success=state,
            judge=GoalsVerdict(achieved=int(judge), total=1, said=judge),
        )
        for i, (judge, state) in enumerate(ratings)
    ]
    found = tables([*results, session("u", True, state_success=True)])["judge"].rows[0]
    chance = (6 / 8) * (4 / 8) + (2 / 8) * (4 / 8)
    assert found["agreement"].value == pytest.approx(6 / 8)  # type: ignore[union-attr]
    assert found["kappa"].value == pytest.approx((6 / 8 - chance) / (1 - chance))  # type: ignore[union-attr]
    assert found["sessions"] == 8


def test_formats_are_paired_by_task_and_corrected_by_holm() -> None:
    successes: dict[str, dict[str, list[Any]]] = {
        "text": {"t1": [1, 1], "t2": [1, 0], "t3": [1], "t4": [1], "t5": [0], "only": [1]},
        "flowchart": {"t1": [0, 0], "t2": [0, 0], "t3": [0], "t4": [0], "t5": [0]},
        "none": {"t1": [1], "t2": [0], "t3": [0], "t4": [0], "t5": [1], "unknown": [None]},
    }
    results = [
        session(task, None if v is None else bool(v), i, format=format)
        for format, of_tasks in successes.items()
        for task, values in of_tasks.items()
        for i, v in enumerate(values)
    ]
    pairs = {(p.first, p.second): p for p in format_pairs(results)}
    differences = {
        ("text", "flowchart"): [1, 0.5, 1, 1, 0],
        ("text", "none"): [0, 0.5, 1, 1, -1],
        ("flowchart", "none"): [-1, 0, 0, 0, -1],
    }
    assert list(pairs) == list(differences)
    for names, values in differences.items():
        assert pairs[names].difference.mean == pytest.approx(np.mean(values))
        assert pairs[names].p == pytest.approx(by_enumeration(values)), names
    assert (pairs["text", "none"].tasks, pairs["text", "none"].left_out) == (5, 1)
    least = 0.0
    for i, pair in enumerate(sorted(pairs.values(), key=lambda p: p.p or 0)):
        least = max(least, min(1.0, (3 - i) * (pair.p or 0)))
        assert pair.corrected == pytest.approx(least)
    listed = tables(results)["formats_sessions"].rows
    assert next((r["agent"], r["first"], r["tasks"]) for r in listed) == ("a", "text", 5)


def test_what_has_no_verdict_is_counted_and_named() -> None:
    mistake = SimulatorMistake(who="user", kind="off_goal", turn=0)
    judge = JudgeFailure(status="unscored:parse", message="no JSON")
    long = "KeyError: 'patron'\n  in serve " + "x" * 100
    found = tables(
        [
            session("t1", log=SessionLog(ended="user", mistakes=(mistake, mistake))),
            session("t2", None, judge=judge, failures=("unscored:parse",)),
            session("t3", "lost", log=SessionFailure(status="error:timeout", message=long)),
            session("t4", "pending"),
            session("t5", False, cause="tool_use"),
        ]
    )
    sessions = row(found["sessions"])
    assert (sessions["sessions"], sessions["tasks"], sessions["without_verdict"]) == ("2", "2", "3")
    assert sessions["success"].startswith("0.50 [")
    assert (sessions["success_low"], sessions["success_high"]) == ("0.20", "0.80")
    lost = {str(r["what"]): (r["times"], r["example"]) for r in found["lost"].rows}
    assert lost.pop("no session: error:timeout") == (
        1,
        "KeyError: 'patron' in serve " + 51 * "x" + "…",
    )
    assert lost == {
        "no verdict: undecided": (1, None),
        "not judged yet": (1, None),
        "simulator's mistake, user: off_goal": (2, None),
        "a judge failed: unscored:parse": (1, "no JSON"),
    }
    causes = found["causes"].rows[0]
    assert (causes["failed"], causes["tool_use"], causes["other"]) == (1, 1, 0)


def test_undecided_calls_have_bounds_and_groups_their_means() -> None:
    found = tables(
        [
            session("t1", right=3, generated=4, gold=5, unjudged=1, progress=0.5),
            session("t2", about={"domain": "Zoo"}),
        ]
    )
    calls = row(found["session_calls"])
    # With the undecided call wrong 2 · 4 / (5 + 6), with it right 2 · 5 / 11; without it 8 / 9.
    assert (calls["f1_low"], calls["f1_high"], calls["undecided"]) == ("0.73", "0.91", "1")
    assert calls["f1"].startswith("0.89")
    groups = found["sessions_by_domain"]
    assert groups.detail
    assert [(r["domain"], r["system"], r["progress"]) for r in groups.rows] == [
        ("Books", "a · text", 0.5),
        ("Zoo", "a · text", 1.0),
    ]
    assert [r["f1_low"] is not None for r in groups.rows] == [True, False]
    assert "sessions_by_role" not in found
    assert [table.key for table in found.values() if not table.detail] == ["sessions"]
    assert result_tables([], []) == ()


def test_effort_by_party() -> None:
    log = SessionLog(
        ended="user",
        usage=Usage(requests=3, prompt_tokens=1000, completion_tokens=20, cost=0.5),
        simulator_usage=Usage(requests=2),
    )
    effort = row(tables([session("t1", log=log, usage=Usage(requests=4))])["effort"])
    parties = ("agent", "simulators", "judges")
    assert [effort[f"requests_{p}"] for p in parties] == ["3", "2", "4"]
    assert [effort[f"tokens_{p}"] for p in parties] == ["1,020", "–", "–"]
    assert effort["cost"] == "0.5000"


def test_how_sessions_ended_is_counted_where_not_all_said_goodbye() -> None:
    def log(ended: Any, *statuses: Any) -> SessionLog:
        calls = tuple(SessionCall(tool="t", turn=0, status=status) for status in statuses)
        return SessionLog(ended=ended, calls=calls)

    good = session("t1", agent="b", log=log("user", "ok", "ok"))
    assert "ended" not in tables([good])
    found = tables(
        [
            good,
            session("t1", log=log("user", "ok", "malformed", "bad_arguments", "ok")),
            session("t2", False, log=log("turns")),
            session("t3", False, log=log("agent", "unknown_tool")),
            session("t5", "lost", log=SessionFailure(status="error:timeout", log=log("calls"))),
        ]
    )["ended"]
    (counts,) = found.rows
    assert {k: n for k, n in counts.items() if n} == {
        "agent": "a",
        "format": "text",
        "sessions": 3,
        "user": 1,
        "turns": 1,
        "agent_stopped": 1,
        "calls": 5,
        "malformed": 1,
        "bad_arguments": 1,
        "unknown_tool": 1,
    }


def test_what_readers_of_the_rates_must_know() -> None:
    procedure = tables([session("t1"), session("t2", False, conforms=None)])["procedure"]
    assert row(procedure)["with_calls"] == "1"
    same = [session(task, agent=agent) for agent in "ab" for task in ("t1", "t2")]
    assert "not run on the same" not in notes(tables(same)["sessions"])
    more = notes(tables([*same, session("t3", agent="b")])["sessions"])
    assert "not run on the same tasks (2 to 3 each, 2 of them common to all)" in more
    suffix = notes(tables([session("t1", agent="a [7de636] · text")])["sessions"])
    assert "same name but different settings" in suffix
    for reason, results in {
        "a single task": [session("t1")],
        "too few tasks": [session("t1"), session("t2")],
        "no variation between tasks": [session(f"t{i}") for i in range(6)],
    }.items():
        assert f"No interval: {reason}." in notes(tables(results)["session_calls"])
    partly = [session(f"t{i}", i > 2) for i in range(9)]  # success varies, progress does not
    assert "No interval for progress: no variation" in notes(tables(partly)["sessions"])


def test_turns_by_hand() -> None:
    equal = Judgement(tool="t", parameter="p", gold="x", given="x", verdict="equal", by="exact")
    stated = {"name_right": True, "gold_parameters": 2, "given_parameters": 1}
    reply = {"form": "reply", "gold_call": False}
    failed = ResponseVerdict(status="unscored:parse", message="?")
    found = tables(
        [
            turn("s:1", called("right", parameters=(equal,), **stated)),
            turn("s:3", called("undecided", name_right=True)),
            turn("s:5", called(None)),
            turn("s:7", called("wrong", gold_call=False)),
            turn("s:9", called(None, **reply, gold_node=True, node_right=True), grade=None),
            turn("s:11", called(None, **reply), grade=ResponseVerdict(score=8)),
            turn("s:13", called(None, **reply), grade=failed),
            turn("s:15", AgentFailure(status="error:timeout", message="slow")),
            turn("s:17", None),
        ]
    )
    turns = row(found["turns"])
    assert (turns["turns"], turns["undecided"], turns["lost"]) == ("7", "1", "1")
    assert turns["f1"].startswith("0.50")  # 2 right / (2 decided calls + 2 gold)
    assert (turns["f1_low"], turns["f1_high"]) == ("0.33", "0.67")  # 2 / 6 and 4 / 6
    assert turns["recall"].startswith("0.50")
    assert row(found["turn_calls"])["parameters"].startswith("0.67")  # 2 · 1 / (1 + 2)
    replies = row(found["turn_replies"])
    assert replies["response"].startswith("8.00")
    counts = ("graded", "not_graded", "no_reply", "named", "due")
    assert [replies[name] for name in counts] == ["1", "1", "1", "1", "1"]
    lost = {r["what"] for r in found["turns_lost"].rows}
    assert lost == {"no prediction: error:timeout", "no grade: unscored:parse", "not judged yet"}
