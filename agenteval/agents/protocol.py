"""The interface of agents under test: input, obligations and log.

An agent is anything with `async run(dialogue, tools) -> str`: it reads the dialogue, calls tools
through the `Toolbox` it is handed, and returns its last words. A request is a dialogue with one
message. Everything that is judged later is kept by the toolbox while it happens, so that nothing is
lost when the agent crashes or is stopped. It keeps no state between the turns of a dialogue, so the
same adapter serves live, recorded and resumed sessions.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, Protocol

from pydantic import Field, JsonValue

from agenteval.errors import InputError
from agenteval.records import FailureStatus, Message, Record, Usage, content_hash

if TYPE_CHECKING:
    from agenteval.agents.toolbox import Toolbox

CallStatus = Literal["ok", "unknown_tool", "bad_arguments", "malformed"]
Ending = Literal["finished", "timeout", "iterations"]


_NO_PARAMETERS: dict[str, JsonValue] = {
    "type": "object",
    "properties": {},
    "additionalProperties": False,
}


class Tool(Record):
    """One tool in the format of function calling; `parameters` is a JSON schema of an object."""

    name: str = Field(pattern=r"^[a-zA-Z0-9_-]{1,64}$")
    description: str = ""
    parameters: dict[str, JsonValue] = Field(default_factory=_NO_PARAMETERS.copy)

    def function(self) -> dict[str, Any]:
        """The form of OpenAI's chat completions: `{"type": "function", "function": {...}}`."""
        return {"type": "function", "function": self.model_dump()}


class ToolEvent(Record):
    """One call, or attempt of a call, in the order in which it was made.

    `turn` counts the agent's turns from 0: calls asked for in one turn are simultaneous.
    `arguments` is the raw text if it was not a JSON object. `at` is seconds since the start.
    `malformed` is text that was meant as a call but could not be read as one; its name is "".
    """

    name: str
    arguments: JsonValue = None
    status: CallStatus = "ok"
    result: str = ""
    turn: int = Field(ge=0)
    at: float = Field(default=0.0, ge=0)


class AgentLog(Record):
    """Log of one agent on one request. `timeout` and `iterations` mean that it was stopped."""

    events: tuple[ToolEvent, ...] = ()
    output: str = ""
    messages: tuple[Message, ...] = ()
    ending: Ending = "finished"
    turns: int = 0
    seconds: float = Field(default=0.0, ge=0)
    usage: Usage = Usage()
    model: str | None = None  # as the endpoint names itself


class AgentFailure(Record):
    """The endpoint failed or the adapter crashed: there is no verdict on the agent, and never a
    score."""

    status: FailureStatus
    message: str = ""
    events: tuple[ToolEvent, ...] = ()
    seconds: float = Field(default=0.0, ge=0)
    usage: Usage = Usage()


class Dialogue(Record):
    """A request, or a conversation up to the agent's turn.

    `instructions` is the system prompt of a conversation; None for a request, for which an adapter
    may have instructions of its own. `messages` are those of the user, the agent (with `tool_calls`
    where it called tools) and the tools (`tool_call_id` set), in their order; the last one is the
    user's or a tool's.
    """

    instructions: str | None = None
    messages: tuple[Message, ...]

    @classmethod
    def of(cls, request: str) -> Dialogue:
        """The dialogue of a single request."""
        return cls(messages=(Message(role="user", content=request),))


class Agent(Protocol):
    """An agent under test, made afresh for every case, session or turn."""

    async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
        """Call tools as needed, then return the final words to the user.

        Pass text besides calls and final words (thoughts), and the messages of calls, to
        `tools.say`. Raises ModelError when the endpoint fails, which does not count against the
        agent.
        """
        ...


@dataclass(frozen=True, slots=True)
class AgentLimits:
    """Bounds of one case; the defaults are those of arXiv 2404.17833, section 5."""

    seconds: float = 180.0
    turns: int = 50

    def __post_init__(self) -> None:
        if not self.seconds > 0 or self.turns < 1:
            raise InputError("an agent needs more than 0 seconds and at least 1 turn")


@dataclass(frozen=True, slots=True)
class System:
    """An agent under test as a campaign names it: how to make one, and what identifies it.

    `parameters` is everything that can change its behaviour (adapter, model, endpoint, prompt,
    temperature); its hash with the name is the key under which trials are stored.
    """

    name: str
    make: Callable[[], Agent]
    parameters: dict[str, JsonValue]

    @property
    def sha256(self) -> str:
        """Content hash (hex) of name and parameters."""
        return content_hash({"name": self.name, "parameters": self.parameters})
