"""What the tables of workflows say: counts by hand, bounds of what is open, names from outside."""

from __future__ import annotations

from typing import Any

from agenteval.report.flows_tables import session_sheets, turn_sheets

from agenteval.agents import AgentFailure
from agenteval.evaluators.workflows.response_judge import ResponseVerdict
from agenteval.evaluators.workflows.results import (
    CaseInfo,
    SessionResult,
    SessionVerdict,
    TurnResult,
)
from agenteval.evaluators.workflows.session import (
    Prediction,
    SessionCall,
    SessionFailure,
    SessionLog,
    SimulatorMistake,
)
from agenteval.evaluators.workflows.session_judge import GoalsFailure
from agenteval.evaluators.workflows.turn_score import TurnVerdict
from agenteval.records import Usage
from agenteval.report.sheet import PlainTable, plain_table


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


def tables(results: Any, *, brief: bool = False) -> dict[str, PlainTable]:
    own = list(results)
    make: Any = turn_sheets if isinstance(own[0], TurnResult) else session_sheets
    return {s.grid.id: plain_table(s) for s in make(own, brief=brief)}


def row(table: PlainTable, at: int = 0) -> dict[str, str]:
    return dict(zip(table.columns, table.rows[at], strict=True))


def test_nothing_makes_no_table() -> None:
    assert session_sheets([]) == []
    assert turn_sheets([]) == []


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
    assert whole["sessions / tasks"] == "2 / 2"
    assert whole["no verdict"] == "3"
    assert whole["success [95 %]"].startswith("0.50 [")
    lost = {what: int(times) for _, what, times, _ in found["lost"].rows}
    assert lost == {
        "no session: error:timeout": 1, "no verdict: undecided": 1, "not judged yet": 1,
        "simulator's mistake, user: off_goal": 2, "a judge failed: error:infrastructure": 1,
    }  # fmt: skip
    assert "None of it is charged to the agent." in found["lost"].note
    assert row(found["causes"])["tool use"] == "1: 100 %"


def test_undecided_calls_have_their_bounds_beside_the_figure() -> None:
    found = tables([
        session("t1", True, right=3, generated=4, gold=5, unjudged=1),
        session("t2", True, about={"domain": "Zoo"}),
    ])  # fmt: skip
    calls = row(found["session-calls"])
    # With the open call wrong 2 · 4 / (5 + 6), with it right 2 · 5 / 11; without it 8 / 9.
    assert calls["F1 low / high"] == "0.73 / 0.91"
    assert calls["F1 [95 %]"].startswith("0.89")
    assert calls["F1 [95 %]"].endswith("*")
    assert calls["undecided"] == "1"
    assert "the F1 of decided calls is optimistic" in found["session-calls"].note
    grouped = found["sessions-by-domain"]
    assert [r[4].endswith("*") for r in grouped.rows] == [True, False]
    assert "optimistic" in grouped.note


def test_without_open_calls_nothing_is_said_of_them() -> None:
    found = tables([session("t1", True), session("t2", False, about={"domain": "Zoo"})])
    assert "F1 low / high" not in found["session-calls"].columns
    assert "*" not in found["session-calls"].rows[0][3]
    assert not any("optimistic" in table.note for table in found.values())


def test_brief_leaves_out_the_groups_and_one_group_is_no_table() -> None:
    results = [session("t1", True), session("t2", True, about={"domain": "Zoo"})]
    assert "sessions-by-domain" in tables(results)
    assert "sessions-by-role" not in tables(results)
    assert not [id for id in tables(results, brief=True) if "-by-" in id]


def test_what_it_took_by_whom() -> None:
    used = SessionLog(
        ended="user",
        usage=Usage(requests=3, prompt_tokens=1000, completion_tokens=20, cost=0.5),
        simulator_usage=Usage(requests=2),
    )
    found = tables([session("t1", True, log=used, usage=Usage(requests=4))])
    assert found["effort"].rows[0][1:] == ("3", "1,020", "0.5000", "2", "–", "4", "–")


def test_formats_and_their_corrected_p() -> None:
    results = [
        session(f"t{i}", success, format=format)
        for format, row_ in (("text", (1, 1, 1, 1, 1)), ("none", (0, 0, 0, 0, 0)))
        for i, success in enumerate(map(bool, row_))
    ]
    pair = row(tables(results)["formats-sessions"])
    assert (pair["agent"], pair["first"], pair["second"], pair["tasks"]) == (
        "a",
        "text",
        "none",
        "5",
    )
    assert pair["first less second [95 %]"].startswith("+1.00")
    assert pair["p"] == pair["p corrected"] == "0.062"  # 2 of 32 signs are as far from 0
    assert len(tables(results)["formats-sessions"].rows) == 1


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
    assert whole["F1 low / high"] == "0.40 / 0.80"  # 2 · 1 / (2 + 3) and 2 · 2 / 5
    assert "optimistic" in found["turns"].note
    spoken = row(found["turns-words"])
    assert spoken["response 0–10 [95 %]"].startswith("8.00")
    assert (spoken["graded"], spoken["not graded"]) == ("1", "1")
    assert spoken["named"] == "1 of 1"
    lost = {what: times for _, what, times, _ in found["turns-lost"].rows}
    assert lost == {
        "no prediction: error:timeout": "1", "no grade: unscored:parse": "1", "not judged yet": "1",
    }  # fmt: skip


def test_names_from_outside_are_cleared_of_control_characters() -> None:
    agent, domain = "a\x1b[31m<b>\u202e", "Zoo\x00"
    results = [session("t1", True, agent=agent), session("t2", False, about={"domain": domain})]
    for table in tables(results).values():
        for cells in table.rows:
            assert not set("".join(cells)) & set("\x1b\x00"), table.title


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
    assert [r[0] for r in found.rows] == ["a · text"]
    assert "left out" in found.note
    assert row(found) == {
        "system": "a · text", "sessions": "4", "user said goodbye": "1: 25 %",
        "limit of turns": "2: 50 %", "limit of calls": "0", "agent stopped": "1: 25 %",
        "calls": "5", "malformed": "1: 20 %", "bad arguments": "1: 20 %", "unknown tool": "1: 20 %",
    }  # fmt: skip


def test_following_the_chart_is_of_the_sessions_with_a_call() -> None:
    found = tables([session("t1", True), session("t2", False, conforms=None),
                    session("t3", True)])["sessions"]  # fmt: skip
    assert row(found)["follows the chart [95 %]"].endswith(" of 2")
    assert "a beginning of a walk follows the chart too" in found.note.lower()
    silent = tables([session("t1", False, conforms=None)])["sessions"]
    assert row(silent)["follows the chart [95 %]"] == "–"


def test_systems_with_other_tasks_are_not_to_be_compared() -> None:
    same = [session(t, True, agent=a) for a in "ab" for t in ("t1", "t2")]
    assert "not tried on the same" not in tables(same)["sessions"].note
    note = tables([*same, session("t3", True, agent="b")])["sessions"].note
    assert "not tried on the same tasks (2 to 3 each, 2 of them common to all)" in note
    assert "paired" not in note  # there is one format only
    mixed = [*same, session("t3", True, format="code")]
    assert "formats of one agent are paired below" in tables(mixed)["sessions"].note
    turns = [turn("s:1", called("right")), turn("s:3", called("right"))]
    assert "not tried" not in tables(turns)["turns"].note


def test_a_suffix_of_a_name_is_explained() -> None:
    assert "suffix" not in tables([session("t1", True, agent="a [b]")])["sessions"].note
    note = tables([session("t1", True, agent="a [7de636]")])["sessions"].note
    assert "same name, other settings, source or procedure" in note


def test_what_brought_no_verdict_has_a_message_for_example() -> None:
    long = "KeyError: 'patron'\n  in serve " + "x" * 100
    lost = [session(t, "lost", log=SessionFailure(status="error:infrastructure", message=m))
            for t, m in (("t1", ""), ("t2", long), ("t3", "later"))]  # fmt: skip
    judge = GoalsFailure(status="unscored:parse", message="no JSON")
    open_ = session("t4", None, judge=judge, failures=("unscored:parse",))
    found = {r[1]: r[3] for r in tables([*lost, open_])["lost"].rows}
    said = found["no session: error:infrastructure"]
    assert said.startswith("KeyError: 'patron' in serve xxx")
    assert len(said) == 80
    assert found["a judge failed: unscored:parse"] == "no JSON"
    assert found["no verdict: undecided"] == "–"


def test_a_rate_without_an_interval_says_why() -> None:
    alone = tables([session("t1", True)])
    assert "No interval: a single task." in alone["session-calls"].note
    two = tables([session("t1", True), session("t2", True)])
    assert "No interval: too few tasks." in two["session-calls"].note
    six = [session(f"t{i}", True) for i in range(6)]
    assert "No interval: no variation between tasks." in tables(six)["session-calls"].note
    other = tables([*six, session("t6", True, right=0)])
    assert "No interval" not in other["session-calls"].note


def test_no_table_of_effort_where_nothing_was_asked() -> None:
    assert "effort" not in tables([session("t1", True)])
