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


@dataclass(frozen=True, slots=True)
class EndWords:
    """What is said of one end.

    `column` and `head` are the key and the head of its column in tables, `hint` explains it.
    `sentence` is for the page of a session. The session has failed by `decided_by`; None: the final
    state or a judge decides.
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
        "out_of_time",
        "agent out\nof time",
        "the agent's time for a turn was over",
        "time",
        "within a turn, see --timeout",
    ),
    "agent": EndWords(
        "agent_stopped",
        "agent\nsilent",
        "the agent said nothing (stored before version 0.3: or its time was over)",
        "agent",
        "sessions stored before version 0.3: or out of time",
    ),
}
