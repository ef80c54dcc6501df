"""Logs of sessions and of single predicted turns, and the ways a session can end."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from pydantic import Field, JsonValue

from agenteval.agents.protocol import CallStatus
from agenteval.records import FailureStatus, Message, Record, Usage

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
    the page of a session. The session has failed because of `decided_by`; if None, the final state
    or a judge decides.
    """

    column: str
    head: str
    sentence: str
    decided_by: DecidedBy | None
    hint: str = ""
    cut_short: bool = True  # not ended by the user


ENDS: dict[SessionEnd, EndWords] = {
    "user": EndWords("user", "user said\ngoodbye", "the user ended it", None, cut_short=False),
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
        "the agent exceeded the time of a turn",
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


Answered = Literal["backend", "recorded", "model", "generated", "refused"]


class SimulatorMistake(Record):
    """A mistake of a simulator. It never counts against the agent.

    `turn` counts the agent's turns before it. `kind` is a short name, `text` the output, or the
    request without an answer. `repaired`: it was corrected before the agent saw it.
    """

    who: Literal["user", "tools"]
    kind: str
    turn: int = Field(ge=0)
    text: str = ""
    repaired: bool = False


class SessionCall(Record):
    """A call of the agent under test, and the source of its answer.

    `turn` is the agent's turn in the session, from 0; `step` the model turn within it: calls of one
    step were requested together. `arguments` is the raw text if it is not a JSON object.
    """

    tool: str
    arguments: JsonValue = None
    status: CallStatus = "ok"
    result: str = ""
    answered: Answered = "refused"
    turn: int = Field(ge=0)
    step: int = Field(default=0, ge=0)


class Change(Record):
    """A place in a state, by keys and indices, with its new value, or removed."""

    path: tuple[str | int, ...]
    value: JsonValue = None
    there: bool = False


class SessionLog(Record):
    """A session of an agent with a user and tools, however it ended.

    `messages` are the whole conversation (user, assistant with its calls, tool), without the
    instructions. `turns` counts the agent's replies to the user. `state` is the final state of the
    backend, or None.

    For a recorded session, whose calls were replayed, `changes` are the changes of the initial
    state, `differing` has the indices of calls with answers different from the recorded ones, and
    `reward` is the recorded reward.
    """

    messages: tuple[Message, ...] = ()
    calls: tuple[SessionCall, ...] = ()
    ended: SessionEnd
    turns: int = Field(default=0, ge=0)
    mistakes: tuple[SimulatorMistake, ...] = ()
    state: JsonValue = None
    changes: tuple[Change, ...] | None = None
    differing: tuple[int, ...] = ()
    reward: float | None = None
    seconds: float = Field(default=0.0, ge=0)
    usage: Usage = Usage()  # of the agent under test
    simulator_usage: Usage = Usage()
    model: str | None = None

    @property
    def invalidated_by(self) -> tuple[str, ...]:
        """Simulators whose mistakes the agent saw: "tools", "user", both, or none."""
        return tuple(sorted({m.who for m in self.mistakes if not m.repaired}))


class SessionFailure(Record):
    """The endpoint, the adapter or a simulator failed: no session to judge, no score."""

    status: FailureStatus
    message: str = ""
    who: Literal["agent", "user", "tools"] = "agent"
    log: SessionLog | None = None  # as far as it went
    usage: Usage = Usage()
    simulator_usage: Usage = Usage()


class Prediction(Record):
    """The action of an agent at one turn of a recorded session.

    `form`: a tool call, a reply, or neither (`unreadable`, reported and counted). A call that
    cannot be executed is still a call. `arguments` is the raw text if it is not a JSON object.
    `further` are additional calls. `raw` is the text of the agent's message, in full.
    """

    form: Literal["call", "reply", "unreadable"]
    tool: str = ""
    arguments: JsonValue = None
    further: tuple[str, ...] = ()
    response: str = ""
    thought: str = ""
    node: str | None = None  # the current node as named by the agent, else None
    intent: str | None = None
    raw: str = ""
    usage: Usage = Usage()
    seconds: float = Field(default=0.0, ge=0)
    model: str | None = None
