"""What the tables of workflows say: counts by hand, bounds of what is open, names from outside."""

from __future__ import annotations

from typing import Any

from agenteval.agents import AgentFailure
from agenteval.records import Usage
from agenteval.records.table import Table, shown
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
from agenteval.workflows.session_judge import GoalsFailure
from agenteval.workflows.tables import result_tables
from agenteval.workflows.turn_score import TurnVerdict


def info(task: str, level: Any = "session", **more: Any) -> CaseInfo:
    kept = {"role": "desk", "domain": "Books", "scenarios": ("lend",), "id": task, **more}
    return CaseInfo(level=level, task=task, **kept)


def session(
    task: str, success: bool | str | None, *, agent: str = "a", format: Any = "text",
    about: dict[str, Any] | None = None, log: SessionLog | SessionFailure | None = None,
    **more: Any,
) -> SessionResult:  # fmt: skip
    base = {"decided_by": "state", "progress": 1.0, "right": 1, "gold": 1, "generated": 1,
            "conforms": True, "fitness": 1.0}  # fmt: skip
    verdict = None
    if not isinstance(success, str):
        verdict = SessionVerdict.model_validate({**base, "success": success, **more})
    return SessionResult(
        info(task, **(about or {})), f"{agent} · {format}", agent, format, {}, 0,
        log or SessionLog(ended="user", turns=2), verdict,
    )  # fmt: skip


def turn(id: str, verdict: TurnVerdict | None, **more: Any) -> TurnResult:
    did = more.pop("did", None) or Prediction(form="reply", response="x")
    task = id.rpartition(":")[0]
    return TurnResult(
        info(task, "turn", id=id), "a · text", "a", "text", {}, 0, did, verdict, **more
    )


def called(call: Any, **more: Any) -> TurnVerdict:
    kept = {"form": "call", "gold_call": True, **more}
    return TurnVerdict(session="s", turn=1, call=call, **kept)


def tables(results: Any) -> dict[str, Table]:
    own = list(results)
    turns = isinstance(own[0], TurnResult)
    made = result_tables([], own) if turns else result_tables(own, [])
    return {table.key: table for table in made}


def row(table: Table, at: int = 0) -> dict[str, str]:
    """The cells as they are shown, by their keys."""
    return {c.key: shown(table.rows[at].get(c.key), c.form) for c in table.columns}


def note(table: Table) -> str:
    return " ".join(table.notes)


def test_nothing_makes_no_table() -> None:
    assert result_tables([], []) == ()


def test_what_has_no_verdict_is_counted_and_named() -> None:
    mistake = SimulatorMistake(who="user", kind="off_goal", turn=0)
    found = tables([
        session("t1", True, log=SessionLog(ended="user", mistakes=(mistake, mistake))),
        session("t2", None),
        session("t3", "failed", log=SessionFailure(status="error:timeout", who="user")),
        session("t4", "pending"),
        session("t5", False, failures=("error:infrastructure",), cause="tool_use"),
    ])  # fmt: skip
    whole = row(found["sessions"])
    assert (whole["sessions"], whole["tasks"], whole["without_verdict"]) == ("2", "2", "3")
    assert whole["success"].startswith("0.50 [")
    lost = {one["what"]: one["times"] for one in found["lost"].rows}
    assert lost == {
        "no session: error:timeout": 1, "no verdict: undecided": 1, "not judged yet": 1,
        "simulator's mistake, user: off_goal": 2, "a judge failed: error:infrastructure": 1,
    }  # fmt: skip
    assert "None of it is charged to the agent." in note(found["lost"])
    assert (row(found["causes"])["failed"], row(found["causes"])["tool_use"]) == ("1", "1")


def test_undecided_calls_have_their_bounds_beside_the_figure() -> None:
    found = tables([
        session("t1", True, right=3, generated=4, gold=5, unjudged=1),
        session("t2", True, about={"domain": "Zoo"}),
    ])  # fmt: skip
    calls = row(found["session_calls"])
    # With the open call wrong 2 · 4 / (5 + 6), with it right 2 · 5 / 11; without it 8 / 9.
    assert (calls["f1_low"], calls["f1_high"]) == ("0.73", "0.91")
    assert calls["f1"].startswith("0.89")
    assert calls["undecided"] == "1"
    assert "the F1 of decided calls is optimistic" in note(found["session_calls"])
    grouped = found["sessions_by_domain"]
    assert [row["f1_low"] is not None for row in grouped.rows] == [True, False]
    assert "optimistic" in note(grouped)


def test_groups_are_details_and_one_group_is_no_table() -> None:
    found = tables([session("t1", True), session("t2", True, about={"domain": "Zoo"})])
    assert found["sessions_by_domain"].detail
    assert "sessions_by_role" not in found
    assert [table.key for table in found.values() if not table.detail] == ["sessions"]


def test_what_it_took_by_whom() -> None:
    used = SessionLog(
        ended="user",
        usage=Usage(requests=3, prompt_tokens=1000, completion_tokens=20, cost=0.5),
        simulator_usage=Usage(requests=2),
    )
    found = tables([session("t1", True, log=used, usage=Usage(requests=4))])
    took = row(found["effort"])
    assert (took["requests_agent"], took["tokens_agent"], took["cost"]) == ("3", "1,020", "0.5000")
    assert (took["requests_simulators"], took["tokens_simulators"]) == ("2", "–")
    assert (took["requests_judges"], took["tokens_judges"]) == ("4", "–")


def test_formats_and_their_corrected_p() -> None:
    results = [
        session(f"t{i}", success, format=format)
        for format, row_ in (("text", (1, 1, 1, 1, 1)), ("none", (0, 0, 0, 0, 0)))
        for i, success in enumerate(map(bool, row_))
    ]
    pair = row(tables(results)["formats_sessions"])
    assert (pair["agent"], pair["first"], pair["second"], pair["tasks"]) == (
        "a",
        "text",
        "none",
        "5",
    )
    assert pair["difference"].startswith("+1.00")
    assert pair["p"] == pair["corrected"] == "0.062"  # 2 of 32 signs are as far from 0
    assert len(tables(results)["formats_sessions"].rows) == 1


def test_turns_with_what_is_open_and_what_was_lost() -> None:
    failed = ResponseVerdict(status="unscored:parse", message="?")
    reply = {"form": "reply", "gold_call": False}
    found = tables([
        turn("s:1", called("right")),
        turn("s:3", called("undecided")),
        turn("s:5", called(None, form="reply")),
        turn("s:7", called(None, **reply, gold_node=True, node_right=True),
             grade=ResponseVerdict(score=8)),
        turn("s:9", called(None, **reply), grade=failed),
        turn("s:11", None, did=AgentFailure(status="error:timeout")),
        turn("s:13", None),
    ])  # fmt: skip
    whole = row(found["turns"])
    assert (whole["turns"], whole["undecided"], whole["lost"]) == ("5", "1", "1")
    assert (whole["f1_low"], whole["f1_high"]) == ("0.40", "0.80")  # 2 · 1 / (2 + 3), 2 · 2 / 5
    assert "optimistic" in note(found["turns"])
    spoken = row(found["turn_replies"])
    assert spoken["response"].startswith("8.00")
    assert (spoken["graded"], spoken["not_graded"]) == ("1", "1")
    assert (spoken["named"], spoken["due"]) == ("1", "1")
    lost = {one["what"]: str(one["times"]) for one in found["turns_lost"].rows}
    assert lost == {
        "no prediction: error:timeout": "1", "no grade: unscored:parse": "1", "not judged yet": "1",
    }  # fmt: skip


def made(how: Any, *statuses: Any) -> SessionLog:
    return SessionLog(ended=how, calls=tuple(SessionCall(tool="t", turn=0, status=s)
                                             for s in statuses))  # fmt: skip


def test_how_sessions_ended_is_counted_where_not_all_said_goodbye() -> None:
    fine = [session("t1", True, agent="b", log=made("user", "ok", "ok"))]
    assert "ended" not in tables(fine)
    found = tables([
        *fine,
        session("t1", True, log=made("user", "ok", "malformed", "bad_arguments", "ok")),
        session("t2", False, log=made("turns")),
        session("t3", False, log=made("turns")),
        session("t4", False, log=made("agent", "unknown_tool")),
        session("t5", "lost", log=SessionFailure(status="error:timeout", log=made("calls"))),
    ])["ended"]  # fmt: skip
    assert "left out" in note(found)
    assert [dict(one) for one in found.rows] == [{
        "agent": "a", "format": "text", "sessions": 4, "user": 1, "turns": 2, "limit": 0,
        "turn_limit": 0, "agent_stopped": 1, "calls": 5, "malformed": 1, "bad_arguments": 1,
        "unknown_tool": 1,
    }]  # fmt: skip


def test_following_the_chart_is_of_the_sessions_with_a_call() -> None:
    found = tables([session("t1", True), session("t2", False, conforms=None),
                    session("t3", True)])["procedure"]  # fmt: skip
    assert row(found)["with_calls"] == "2"
    assert "a beginning of a walk follows the chart too" in note(found).lower()
    silent = tables([session("t1", False, conforms=None)])["procedure"]
    assert row(silent)["conforms"] == "–"


def test_systems_with_other_tasks_are_not_to_be_compared() -> None:
    same = [session(t, True, agent=a) for a in "ab" for t in ("t1", "t2")]
    assert "not tried on the same" not in note(tables(same)["sessions"])
    said = note(tables([*same, session("t3", True, agent="b")])["sessions"])
    assert "not tried on the same tasks (2 to 3 each, 2 of them common to all)" in said
    assert "paired" not in said  # there is one format only
    mixed = [*same, session("t3", True, format="code")]
    assert "formats of one agent are paired below" in note(tables(mixed)["sessions"])
    turns = [turn("s:1", called("right")), turn("s:3", called("right"))]
    assert "not tried" not in note(tables(turns)["turns"])


def test_a_suffix_of_a_name_is_explained() -> None:
    assert "suffix" not in note(tables([session("t1", True, agent="a [b]")])["sessions"])
    said = note(tables([session("t1", True, agent="a [7de636] · text")])["sessions"])
    assert "same name, other settings, source or procedure" in said


def test_what_brought_no_verdict_has_a_message_for_example() -> None:
    long = "KeyError: 'patron'\n  in serve " + "x" * 100
    lost = [session(t, "lost", log=SessionFailure(status="error:infrastructure", message=m))
            for t, m in (("t1", ""), ("t2", long), ("t3", "later"))]  # fmt: skip
    judge = GoalsFailure(status="unscored:parse", message="no JSON")
    open_ = session("t4", None, judge=judge, failures=("unscored:parse",))
    found: dict[Any, Any] = {
        one["what"]: one["example"] for one in tables([*lost, open_])["lost"].rows
    }
    said = found["no session: error:infrastructure"]
    assert said.startswith("KeyError: 'patron' in serve xxx")
    assert len(said) == 80
    assert found["a judge failed: unscored:parse"] == "no JSON"
    assert found["no verdict: undecided"] is None


def test_a_rate_without_an_interval_says_why() -> None:
    alone = tables([session("t1", True)])
    assert "No interval: a single task." in note(alone["session_calls"])
    two = tables([session("t1", True), session("t2", True)])
    assert "No interval: too few tasks." in note(two["session_calls"])
    six = [session(f"t{i}", True) for i in range(6)]
    assert "No interval: no variation between tasks." in note(tables(six)["session_calls"])
    other = tables([*six, session("t6", True, right=0)])
    assert "No interval" not in note(other["session_calls"])
