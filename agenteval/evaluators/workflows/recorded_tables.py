"""Recorded sessions: what the recording says of them beside what is said here."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from agenteval.evaluators.systems import by_system
from agenteval.evaluators.workflows.results import SessionResult
from agenteval.evaluators.workflows.session import SessionLog
from agenteval.records.table import Cell, Column, Table

_WHOLE = 1e-6  # as far from 1 as tau-bench takes a reward for a success
_MOST = 100


def recorded_tables(sessions: Sequence[SessionResult]) -> Iterator[Table]:
    """How often rewards and verdicts agree, and each session in which they contradict each other;
    without rows where no reward is recorded and each call was answered as it had been."""
    rows: list[dict[str, Cell]] = []
    contradictions: list[dict[str, Cell]] = []
    for system, own in by_system(sessions).items():
        logs = [(r, r.log) for r in own if isinstance(r.log, SessionLog)]
        replays = [log for _, log in logs if log.changes is not None]
        if not any(log.reward is not None or log.differing for log in replays):
            continue
        rewarded = [(r, log) for r, log in logs if log.reward is not None]
        pairs = [(_said(log), r.verdict and r.verdict.success) for r, log in rewarded]
        rows.append({
            "system": system,
            "rewards": len(pairs),
            "agree": sum(reward is not None and reward is done for reward, done in pairs),
            "reward_only": sum(reward is True and done is False for reward, done in pairs),
            "state_only": sum(reward is False and done is True for reward, done in pairs),
            "neither": sum(None in pair for pair in pairs),
            "calls": sum(len(log.calls) for log in replays),
            "differing": sum(len(log.differing) for log in replays),
        })  # fmt: skip
        contradictions += [
            {"system": system, "case": r.case.id, "trial": r.trial, "reward": log.reward,
             "success": "yes" if done else "no", "why": _why(r, log)}
            for (r, log), (reward, done) in zip(rewarded, pairs, strict=True)
            if None not in (reward, done) and reward is not done
        ]  # fmt: skip
    yield Table(
        "rewards", "Recorded rewards against success",
        (Column("system", "system"),
         Column("rewards", "rewards", "count", "sessions that were recorded with a reward"),
         Column("agree", "agree", "count", "reward 1 and success, or 0 and none"),
         Column("reward_only", "reward\nalone", "count", "reward 1 and no success"),
         Column("state_only", "success\nalone", "count", "success and reward 0"),
         Column("neither", "can not be\ncompared", "count", "another reward, or no verdict"),
         Column("calls", "calls", "count", "replayed"),
         Column("differing", "other\nanswers", "count", "that the backend answers otherwise")),
        tuple(rows),
        ("A reward is no verdict: it is in no rate.",), "system",
    )  # fmt: skip
    more = len(contradictions) - _MOST
    yield Table(
        "contradictions", "Sessions whose reward contradicts the verdict",
        (Column("system", "system"), Column("case", "task"), Column("trial", "trial", "count"),
         Column("reward", "reward", "number"), Column("success", "success"), Column("why", "why")),
        tuple(contradictions[:_MOST]),
        (f"{more:,} more are not listed; --json and `export` have all.",) if more > 0 else (),
        "system",
    )  # fmt: skip


def _said(log: SessionLog) -> bool | None:
    """What a reward says of success; None where it is neither 0 nor 1."""
    if log.reward is not None and abs(log.reward - 1) <= _WHOLE:
        return True
    return False if log.reward == 0 else None


def _why(r: SessionResult, log: SessionLog) -> str:
    reasons = list(r.verdict.differences[:1]) if r.verdict else []
    if r.verdict and r.verdict.decided_by == "limit":
        reasons = ["the session was cut off"]
    if log.differing:
        first = log.calls[log.differing[0]]
        reasons.append(f"{first.tool} answers otherwise in the replay")
    return "; ".join(reasons) or "the state is as wanted"
