"""Tallies that are kept are those worked out anew; endings are counted by hand."""

from __future__ import annotations

from typing import Any

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
)
from agenteval.evaluators.workflows.tallies import (
    GROUPS,
    Tallies,
    causes,
    format_pairs,
)
from agenteval.evaluators.workflows.turn_score import TurnVerdict


def info(level: Any, task: str, domain: str) -> CaseInfo:
    id = task if level == "session" else f"{task}:1"
    return CaseInfo(level=level, id=id, task=task, role=f"r{domain}", domain=domain,
                    scenarios=("s", "t")[: 1 + (domain == "B")])  # fmt: skip


def session(
    task: str, success: bool | None, log: SessionLog | SessionFailure | None = None,
    *, format: Any = "text", domain: str = "A",
) -> SessionResult:  # fmt: skip
    verdict = SessionVerdict(success=success, decided_by="state", right=int(success or 0), gold=1,
                             generated=1, conforms=True)  # fmt: skip
    failed = isinstance(log, SessionFailure)
    return SessionResult(info("session", task, domain), f"a · {format}", "a", format, {}, 0,
                         log or SessionLog(ended="user"), None if failed else verdict)  # fmt: skip


def turn(task: str, call: Any, domain: str = "A") -> TurnResult:
    verdict = TurnVerdict(session=task, turn=1, form="call", gold_call=True, call=call)
    return TurnResult(info("turn", task, domain), "a · text", "a", "text", {}, 0,
                      Prediction(form="call"), verdict)  # fmt: skip


SESSIONS = [session(f"{d}{i}", i < n, format=f, domain=d)
            for d, n in (("B", 2), ("A", 1)) for f in ("text", "code")
            for i in range(4)]  # fmt: skip
TURNS = [turn(f"{d}{i}", "right" if i else "wrong", d) for d in "BA" for i in range(3)]


def test_what_is_kept_is_what_would_be_worked_out_anew() -> None:
    known = Tallies(SESSIONS, TURNS)
    for _ in range(2):  # the second time from what is kept
        for name in ("", *GROUPS):
            assert known.sessions_by(name) == Tallies(SESSIONS).sessions_by(name)
            assert known.turns_by(name) == Tallies(turns=TURNS).turns_by(name)
    assert known.causes == causes(SESSIONS)
    assert known.session_pairs == format_pairs(SESSIONS)
    assert known.turn_pairs == []


def test_groups_of_the_same_members_are_worked_out_once() -> None:
    known = Tallies(SESSIONS, TURNS)  # each domain has one role
    by_domain, by_role = known.turns_by("domain"), known.turns_by("role")
    assert [group for _, group, _ in by_domain] == ["A", "B"]
    assert [group for _, group, _ in by_role] == ["rA", "rB"]
    assert all(a[2] is b[2] for a, b in zip(by_domain, by_role, strict=True))
    assert known.turns_by()[0][2] is known.turns_by()[0][2]


def test_endings_are_of_sessions_and_their_calls() -> None:
    def log(ended: Any, *statuses: Any) -> SessionLog:
        calls = tuple(SessionCall(tool="t", turn=0, status=s) for s in statuses)
        return SessionLog(ended=ended, calls=calls)

    own = [
        session("1", True, log("user", "ok", "malformed")),
        session("2", False, log("turns", "unknown_tool")),
        session("3", None, SessionFailure(status="error:timeout", log=log("calls", "malformed"))),
        session("4", None, SessionFailure(status="error:timeout"), format="code"),
    ]
    found = Tallies(own).sessions_by()[0]
    assert found.system == "a · text"
    assert found.ended == {"user": 1, "turns": 1}
    assert found.statuses == {"ok": 1, "malformed": 1, "unknown_tool": 1}
    assert (found.cut_short, found.refused) == (1, 2)
