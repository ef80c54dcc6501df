"""The ways a session can end, their descriptions, and how success is decided."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

SessionEnd = Literal["user", "turns", "calls", "turn_calls", "time", "agent"]
DecidedBy = Literal["limit", "time", "agent", "state", "judge", "simulator"]

DECIDED_BY: dict[DecidedBy | None, str] = {
    "limit": "an exceeded limit",
    "time": "the time limit of a turn",
    "agent": "the agent's silence",
    "state": "the final state",
    "judge": "the judge",
    "simulator": "undecided: a simulator made a mistake, which does not count against the agent",
    None: "nobody could",
}


@dataclass(frozen=True, slots=True)
class EndWords:
    """Description of one end.

    `column` and `head` are key and head of its table column, `hint` explains it. `sentence` is for
    the page of a session. The session has failed because of `decided_by`; with None the final state
    or a judge decides.
    """

    column: str
    head: str
    sentence: str
    decided_by: DecidedBy | None
    hint: str = ""


ENDS: dict[SessionEnd, EndWords] = {
    "user": EndWords("user", "user said\ngoodbye", "the user ended it", None),
    "turns": EndWords("turns", "limit of\nturns", "stopped at the limit of turns", "limit"),
    "calls": EndWords("limit", "limit of\ncalls", "stopped at the limit of calls", "limit"),
    "turn_calls": EndWords(
        "turn_limit",
        "limit of calls\nin a turn",
        "stopped at the limit of calls in one turn",
        "limit",
        "see --calls-per-turn",
    ),
    "time": EndWords(
        column="out_of_time",
        head="agent out\nof time",
        hint="within a turn, see --timeout",
        sentence="the agent exceeded the time of a turn",
        decided_by="time",
    ),
    "agent": EndWords(
        "agent_stopped",
        "agent\nsilent",
        "the agent said nothing (stored before version 0.3: or its time was over)",
        "agent",
        "sessions stored before version 0.3: or out of time",
    ),
}
