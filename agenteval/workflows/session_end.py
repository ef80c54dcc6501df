"""How a session can end: everything that is said of each end, and who decides success."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SessionEnd = Literal["user", "turns", "calls", "turn_calls", "time", "agent"]
DecidedBy = Literal["limit", "time", "agent", "state", "judge", "simulator"]

DECIDED_BY: dict[DecidedBy | None, str] = {
    "limit": "a limit that was passed",
    "time": "the time limit of a turn",
    "agent": "the agent, which said nothing",
    "state": "the final state",
    "judge": "the judge",
    "simulator": "nobody: a simulator made a mistake, which is not charged to the agent",
    None: "nobody could",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class EndWords:
    """What is said of one end.

    `column` and `head` are the key and the head of its column in tables, `hint` explains it.
    `sentence` is for the page of a session. The session has failed by `decided_by`; None: the final
    state or a judge decides.
    """

    column: str
    head: str
    hint: str = ""
    sentence: str
    decided_by: DecidedBy | None


ENDS: dict[SessionEnd, EndWords] = {
    "user": EndWords(
        column="user",
        head="user said\ngoodbye",
        sentence="the user ended it",
        decided_by=None,
    ),
    "turns": EndWords(
        column="turns",
        head="limit of\nturns",
        sentence="stopped at the limit of turns",
        decided_by="limit",
    ),
    "calls": EndWords(
        column="limit",
        head="limit of\ncalls",
        sentence="stopped at the limit of calls",
        decided_by="limit",
    ),
    "turn_calls": EndWords(
        column="turn_limit",
        head="limit of calls\nin a turn",
        hint="see --calls-per-turn",
        sentence="stopped at the limit of calls in one turn",
        decided_by="limit",
    ),
    "time": EndWords(
        column="out_of_time",
        head="agent out\nof time",
        hint="within a turn, see --timeout",
        sentence="the agent's time for a turn was over",
        decided_by="time",
    ),
    "agent": EndWords(
        column="agent_stopped",
        head="agent\nsilent",
        hint="sessions stored before version 0.3: or out of time",
        sentence="the agent said nothing (stored before version 0.3: or its time was over)",
        decided_by="agent",
    ),
}
