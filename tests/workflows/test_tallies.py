"""Tallies against numbers worked out by hand, by enumeration, or by another formula."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import product
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import brentq

from agenteval.agents import AgentFailure
from agenteval.records import Usage
from agenteval.workflows.equality import Judgement
from agenteval.workflows.response_judge import ResponseVerdict
from agenteval.workflows.results import (
    CaseInfo,
    SessionResult,
    SessionVerdict,
    TurnResult,
)
from agenteval.workflows.session import (
    Prediction,
    SessionCall,
    SessionFailure,
    SessionLog,
    SimulatorMistake,
)
from agenteval.workflows.session_judge import GoalsVerdict
from agenteval.workflows.tallies import (
    GROUPS,
    Tallies,
    causes,
    format_pairs,
    share,
)
from agenteval.workflows.turn_score import TurnVerdict

Z = 1.959963984540054


def info(task: str, level: Any = "session", **more: Any) -> CaseInfo:
    kept = {"role": "desk", "domain": "Books", "scenarios": ("lend",), **more}
    return CaseInfo(level=level, id=kept.pop("id", task), task=task, **kept)


def verdict(success: bool | None = True, **more: Any) -> SessionVerdict:
    base = {"decided_by": "state", "progress": 1.0, "right": 1, "gold": 1, "generated": 1,
            "sequence": 1.0, "conforms": True, "fitness": 1.0}  # fmt: skip
    return SessionVerdict.model_validate({**base, "success": success, **more})


def log(turns: int = 2, calls: int = 1, **more: Any) -> SessionLog:
    made = tuple(SessionCall(tool="t", turn=0) for _ in range(calls))
    return SessionLog(ended="user", turns=turns, calls=made, **more)


def session(
    task: str,
    found: SessionVerdict | SessionFailure | None,
    trial: int = 0,
    *,
    agent: str = "a",
    format: Any = "text",
    did: SessionLog | None = None,
    **about: Any,
) -> SessionResult:
    failed = found if isinstance(found, SessionFailure) else None
    return SessionResult(
        info(task, **about), f"{agent} · {format}", agent, format, {}, trial,
        failed or did or log(), None if isinstance(found, SessionFailure) else found,
    )  # fmt: skip


LOST = SessionFailure(status="error:infrastructure", message="no answer", usage=Usage(requests=1))
REPEATED = [
    session("t1", verdict(True), 0), session("t1", verdict(True), 1),
    session("t2", verdict(True), 0), session("t2", verdict(False), 1),
    session("t3", verdict(False), 0), session("t3", LOST, 1),
]  # fmt: skip


def test_success_of_single_trials_has_wilsons_interval() -> None:
    own = [session(f"t{i}", verdict(i != 0)) for i in range(4)]
    (tally,) = Tallies(own).sessions_by()
    n, p = 4, 0.75
    middle = (p + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z * math.sqrt(p * (1 - p) / n + Z**2 / (4 * n**2)) / (1 + Z**2 / n)
    assert tally.success.mean == 0.75
    assert tally.success.low == pytest.approx(middle - half)
    assert tally.success.high == pytest.approx(middle + half)
    assert (tally.tasks, tally.success.n, tally.undecided) == (4, 4, 0)


def test_repeated_trials_add_no_tasks_and_failures_are_in_no_rate() -> None:
    (tally,) = Tallies(REPEATED).sessions_by()
    assert tally.success.mean == 0.5  # of 1, 1/2 and 0 of the one that is known
    assert (tally.success.n, tally.success.n_clusters, tally.tasks) == (5, 3, 3)
    # One value of three lies below the middle one, one above: how many may it be in truth?
    most = brentq(lambda p: (1 - p) ** 3 + 3 * p * (1 - p) ** 2 - 0.025, 0.01, 0.999)
    assert tally.success.low == pytest.approx(0.5 - 0.5 * most)
    assert tally.success.high == pytest.approx(0.5 + 0.5 * most)
    assert tally.failures == {"error:infrastructure": 1}
    assert (tally.simulators, tally.pending, tally.undecided) == (0, 0, 0)
    assert tally.usage.requests == 1


def test_pass_power_is_over_tasks_that_have_as_many_trials() -> None:
    (tally,) = Tallies(REPEATED).sessions_by()
    first, second = tally.powers
    assert (first.k, first.rate.mean, first.left_out) == (1, 0.5, 0)
    assert (second.k, second.rate.mean, second.left_out) == (2, 0.5, 1)  # t1: 1 of 1 pairs, t2: 0


def test_what_has_no_verdict_is_counted_by_what_it_lacks() -> None:
    own = [
        session("t1", verdict(None, progress=None, decided_by=None)),
        session("t2", None),
        session("t3", SessionFailure(status="error:timeout", who="user")),
        session("t4", SessionFailure(status="error:timeout", who="agent")),
        session("t5", verdict(failures=("error:budget", "unscored:parse"))),
    ]  # fmt: skip
    (tally,) = Tallies(own).sessions_by()
    assert (tally.undecided, tally.pending, tally.simulators) == (1, 1, 1)
    assert tally.failures == {"error:timeout": 2}
    assert (tally.success.n, tally.success.mean, tally.tasks) == (1, 1.0, 5)
    assert tally.progress.n == 1


def test_means_per_session_and_what_it_took() -> None:
    spoiled = SimulatorMistake(who="user", kind="reveals_goals", turn=0)
    own = [
        session("t1", verdict(progress=0.5), did=log(2, 1, mistakes=(spoiled,))),
        session("t1", verdict(progress=1.0, usage=Usage(requests=3)), 1,
                did=log(4, 3, usage=Usage(requests=2, prompt_tokens=10))),
        session("t2", SessionFailure(status="error:timeout", log=log(mistakes=(spoiled,)),
                                     simulator_usage=Usage(requests=7))),
    ]  # fmt: skip
    (tally,) = Tallies(own).sessions_by()
    assert (tally.turns.mean, tally.calls.mean, tally.progress.mean) == (3.0, 2.0, 0.75)
    assert (tally.usage.requests, tally.usage.prompt_tokens) == (2, 10)
    assert (tally.simulated.requests, tally.judging.requests) == (7, 3)


def test_groups_by_name() -> None:
    own = [
        session("t1", verdict(True), domain="Zoo"),
        session("t2", verdict(False), domain="Air", scenarios=("lend", "take")),
        session("t3", verdict(True), domain="Air", role="gate"),
    ]  # fmt: skip
    found = {
        name: {t.group: t.success.mean for t in Tallies(own).sessions_by(name)} for name in GROUPS
    }
    assert found == {
        "domain": {"Air": 0.5, "Zoo": 1.0},
        "role": {"desk": 0.5, "gate": 1.0},
        "scenario": {"desk/lend": 1.0, "desk/lend+take": 0.0, "gate/lend": 1.0},
        "task": {"single": 1.0, "cross": 0.0},
    }


def test_causes_are_shares_of_failed_sessions() -> None:
    own = [
        session("t1", verdict(True)),
        session("t2", verdict(None)),
        session("t3", LOST),
        *(session(f"f{i}", verdict(False, cause=c)) for i, c in enumerate(
            ("missing_step", "missing_step", "tool_use", "other"))),
        session("t1", verdict(True), agent="b"),
    ]  # fmt: skip
    (found,) = causes(own)
    assert (found.system, found.failed) == ("a · text", 4)
    assert found.counts == {
        "missing_step": 2, "wrong_order": 0, "wrong_transition": 0, "tool_use": 1, "other": 1,
    }  # fmt: skip


def test_agreement_of_judge_and_state_by_hand() -> None:
    said = [(True, True)] * 4 + [(False, False)] * 2 + [(True, False)] * 2 + [(False, None)]
    own = [
        session(f"t{i}", verdict(
            state, state_success=state,
            judge=GoalsVerdict(achieved=int(judge), total=1, said=judge),
        ))
        for i, (judge, state) in enumerate(said)
    ]  # fmt: skip
    (tally,) = Tallies([*own, session("u", verdict(True, state_success=True))]).sessions_by()
    assert tally.agreement is not None
    assert tally.agreement.agreement.mean == pytest.approx(6 / 8)
    chance = (6 / 8) * (4 / 8) + (2 / 8) * (4 / 8)
    assert tally.agreement.coefficient.mean == pytest.approx((6 / 8 - chance) / (1 - chance))


def by_enumeration(apart: Sequence[float]) -> float:
    """Share of all signs under which the mean is as far from 0 as it is."""
    seen = abs(sum(apart))
    means = [abs(sum(s * x for s, x in zip(signs, apart, strict=True)))
             for signs in product((1, -1), repeat=len(apart))]  # fmt: skip
    return sum(m >= seen - 1e-12 for m in means) / len(means)


def test_formats_are_paired_by_task() -> None:
    text = {"t1": [1, 1], "t2": [1, 0], "t3": [1], "t4": [1], "t5": [0], "only": [1]}
    flow = {"t1": [0, 0], "t2": [0, 0], "t3": [0], "t4": [0], "t5": [0]}
    none: dict[str, list[Any]] = {
        "t1": [1],
        "t2": [0],
        "t3": [0],
        "t4": [0],
        "t5": [1],
        "unknown": [None],
    }
    tables: dict[str, dict[str, list[Any]]] = {"text": text, "flowchart": flow, "none": none}
    own = [
        session(task, verdict(None if v is None else bool(v)), i, format=format)
        for format, table in tables.items()
        for task, values in table.items()
        for i, v in enumerate(values)
    ]
    pairs = {(p.first, p.second): p for p in format_pairs(own)}
    assert list(pairs) == [("text", "flowchart"), ("text", "none"), ("flowchart", "none")]
    one = pairs["text", "flowchart"]
    assert one.difference.mean == pytest.approx((1 + 0.5 + 1 + 1 + 0) / 5)
    assert (one.tasks, one.left_out) == (5, 1)  # the unknown one has no verdict on either
    apart: dict[tuple[str, str], list[float]] = {
        ("text", "flowchart"): [1, 0.5, 1, 1, 0],
        ("text", "none"): [0, 0.5, 1, 1, -1],
        ("flowchart", "none"): [-1, 0, 0, 0, -1],
    }
    for names, values in apart.items():
        assert pairs[names].p == pytest.approx(by_enumeration(values)), names
    ordered = sorted(pairs.values(), key=lambda p: p.p or 0)
    running = 0.0
    for i, pair in enumerate(ordered):  # Holm: the smallest times 3, the next times 2, the last
        running = max(running, min(1.0, (3 - i) * (pair.p or 0)))
        assert pair.corrected == pytest.approx(running)


@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=7))
def test_the_p_value_of_a_pair_is_that_of_all_sign_flips(both: list[tuple[bool, bool]]) -> None:
    own = [
        session(f"t{i}", verdict(row[j]), format=format)
        for j, format in enumerate(("text", "code"))
        for i, row in enumerate(both)
    ]
    (pair,) = format_pairs(own)
    apart = [float(a) - float(b) for a, b in both]
    assert pair.difference.mean == pytest.approx(sum(apart) / len(apart))
    if pair.p is not None:
        assert pair.p == pytest.approx(by_enumeration(apart))
    else:
        assert pair.reason


def test_formats_of_different_agents_or_without_common_tasks_are_no_pair() -> None:
    assert format_pairs([session("t", verdict(), agent="a", format="text"),
                         session("t", verdict(), agent="b", format="code"),
                         session("u", verdict(), agent="a", format="none")]) == []  # fmt: skip


@given(st.lists(st.tuples(st.sampled_from("abc"), st.booleans()), min_size=1, max_size=12))
def test_a_share_is_the_mean_of_tasks_and_lies_in_its_interval(
    values: list[tuple[str, bool]],
) -> None:
    found = share([(task, float(v)) for task, v in values])
    tasks: dict[str, list[bool]] = {}
    for task, v in values:
        tasks.setdefault(task, []).append(v)
    mean = sum(sum(v) / len(v) for v in tasks.values()) / len(tasks)
    assert found.mean == pytest.approx(mean)
    assert (found.n, found.n_clusters) == (len(values), len(tasks))
    if found.low is not None and found.high is not None:
        assert -1e-9 <= found.low <= mean + 1e-9
        assert mean - 1e-9 <= found.high <= 1 + 1e-9


def turn(
    id: str, made: TurnVerdict | AgentFailure | None, format: Any = "text", grade: Any = None
) -> TurnResult:
    task = id.rpartition(":")[0]
    return TurnResult(
        info(task, "turn", id=id), f"a · {format}", "a", format, {}, 0,
        made if isinstance(made, AgentFailure) else Prediction(form="reply", response="x"),
        made if isinstance(made, TurnVerdict) else None, grade,
    )  # fmt: skip


def called(call: Any, session: str = "s", gold: bool = True, **more: Any) -> TurnVerdict:
    form = "call" if call else "reply"
    return TurnVerdict(session=session, turn=0, form=form, gold_call=gold, call=call, **more)


def test_turns_by_hand() -> None:
    equal = Judgement(tool="t", parameter="p", gold="x", given="x", verdict="equal", by="exact")
    own = [
        turn("s:1", called("right", name_right=True, gold_parameters=2, given_parameters=1,
                           parameters=(equal,))),
        turn("s:3", called("undecided", name_right=True)),
        turn("s:5", called(None)),
        turn("s:7", called("wrong", gold=False)),
        turn("s:9", AgentFailure(status="error:timeout", message="slow")),
        turn("s:11", None),
    ]  # fmt: skip
    ((system, group, table),) = Tallies(turns=own).turns_by()
    assert (system, group, table.turns, table.sessions) == ("a · text", "all", 4, 1)
    tool = table.tool
    assert (tool.right, tool.undecided, tool.predicted, tool.gold) == (1, 1, 3, 3)
    assert tool.f1.known.mean == pytest.approx(2 / 4)  # 2 right / (2 decided calls + 2 gold)
    assert [tool.f1.low, tool.f1.high] == pytest.approx([2 / 6, 4 / 6])
    assert table.parameters.recall.known.mean == 0.5
    assert table.failures == {"error:timeout": 1}
    assert table.response is None


def test_grades_belong_to_their_turns() -> None:
    def grade(score: float) -> ResponseVerdict:
        return ResponseVerdict(score=score)

    failed = ResponseVerdict(status="unscored:parse", message="?")
    own = [
        turn("s:1", called(None, gold=False), grade=grade(8)),
        turn("s:2", AgentFailure(status="error:timeout")),
        turn("s:3", called(None, gold=False), grade=grade(5)),
        turn("s:5", called(None, gold=False), grade=failed),
        turn("s:7", called("wrong", gold=False)),
    ]
    ((_, _, table),) = Tallies(turns=own).turns_by()
    assert table.response is not None
    assert table.response.mean.mean == 6.5
    assert (table.response.due, table.response.no_reply) == (4, 1)
    assert table.response.failures == {"unscored:parse": 1}


def test_pairs_of_turns_are_over_due_calls_that_are_decided() -> None:
    own = [
        turn("s:1", called("right", "s")), turn("s:3", called(None, "s")),
        turn("s:5", called("undecided", "s")), turn("s:7", called("wrong", "s", gold=False)),
        turn("u:1", called("wrong", "u")),
        turn("s:1", called("wrong", "s"), "code"), turn("s:3", called("wrong", "s"), "code"),
    ]  # fmt: skip
    (pair,) = format_pairs(own)
    assert (pair.tasks, pair.left_out) == (1, 1)
    assert pair.difference.mean == 0.5
