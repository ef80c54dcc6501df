"""The agent's side of a session: its turns, their limits, and all that was said and called."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agenteval.agents import Agent, Dialogue, drive
from agenteval.agents.conversation import turn_messages
from agenteval.agents.protocol import AgentFailure, AgentLimits, AgentLog, Tool
from agenteval.agents.toolbox import AsyncBackend, Backend, Toolbox
from agenteval.errors import AgentevalError
from agenteval.evaluators.workflows.session import SessionCall, SessionEnd
from agenteval.evaluators.workflows.simulators.tools import ToolSession
from agenteval.records import FailureStatus, Message, Usage


class TurnFailed(AgentevalError):
    """The agent's endpoint or adapter failed, or its tools: no verdict on the agent."""

    def __init__(self, failure: AgentFailure, *, tools: bool) -> None:
        super().__init__(failure.message)
        self.status: FailureStatus = failure.status
        self.tools = tools


@dataclass(frozen=True, slots=True)
class ServingLimits:
    """Bounds: calls in all and in one turn, seconds of one turn, messages in all (None: any).

    With `published` the agent is not asked again after the last call allowed in a turn: the user
    speaks. `calls` then is looked at between turns only.
    """

    calls: int = 60
    calls_per_turn: int = 20
    seconds: float = 180.0
    messages: int | None = None
    published: bool = False


class Serving:
    """One agent serving one user. `messages` is the conversation without the instructions.

    `ended` says why the agent speaks no more: "calls" (it asked for one too many), "agent" (it was
    stopped within its turn, or said nothing), "turns" (too many messages). Where it is None after
    an empty reply, the user is to speak again.
    """

    def __init__(
        self,
        assistant: Agent,
        instructions: str,
        given: Sequence[Tool],
        tools: ToolSession,
        limits: ServingLimits | None = None,
    ) -> None:
        self._assistant = assistant
        self._instructions = instructions
        self._given = tuple(given)
        self._tools = tools
        self._limits = limits or ServingLimits()
        self.reset()

    def reset(self) -> None:
        """Forget everything that was said."""
        self.messages: list[Message] = []
        self.calls: list[SessionCall] = []
        self.turns = 0  # replies to the user
        self.usage = Usage()
        self.model: str | None = None
        self.ended: SessionEnd | None = None

    async def turn(self, heard: str) -> str:
        """The agent's reply to what the user said, "" when it was stopped.

        Raises TurnFailed, and Unauthorized, BudgetExceeded, InputError and ModelUnavailable.
        """
        self.messages.append(Message(role="user", content=heard))
        self._tools.turn = self.turns
        left = max(0, self._limits.calls - len(self.calls))
        allowed = self._limits.calls_per_turn
        if self._limits.published:
            box: Toolbox = _published(self._given, self._tools.backend, self._limits)
        else:
            allowed = min(left, allowed)
            box = _Box(self._given, self._tools.backend, self._limits.seconds, allowed)
        dialogue = Dialogue(instructions=self._instructions, messages=tuple(self.messages))
        try:
            done = await drive(self._assistant, dialogue, box)
        except AgentevalError:
            self._keep(AgentLog(events=tuple(box.events), usage=box.usage), dialogue)
            raise
        if isinstance(done, AgentFailure):
            self._keep(AgentLog(events=done.events, usage=done.usage), dialogue)
            raise TurnFailed(done, tools=box.defect is not None)
        self._keep(done, dialogue)
        said = bool(done.output.strip())
        self.turns += said
        if self._limits.published:
            self.ended = self._after_published(done)
        elif done.ending == "iterations" and allowed == left:
            self.ended = "calls"
        else:
            self.ended = self._too_long() if said else "agent"
        return done.output

    def _after_published(self, done: AgentLog) -> SessionEnd | None:
        if done.ending != "iterations" and not done.output.strip():
            return "agent"
        return "calls" if len(self.calls) >= self._limits.calls else self._too_long()

    def _too_long(self) -> SessionEnd | None:
        limit = self._limits.messages
        return "turns" if limit is not None and len(self.messages) >= limit else None

    def _keep(self, log: AgentLog, dialogue: Dialogue) -> None:
        self.usage += log.usage
        self.model = log.model or self.model
        self.messages += turn_messages(log, dialogue)
        # A turn goes on where the user spoke again without a reply.
        before = 1 + max((c.step for c in self.calls if c.turn == self.turns), default=-1)
        for event in log.events:
            self.calls.append(
                SessionCall(
                    tool=event.name,
                    arguments=event.arguments,
                    status=event.status,
                    result=event.result,
                    answered=self._tools.answered(event.name, event.arguments),
                    turn=self.turns,
                    step=before + event.turn,
                )
            )


def _published(
    tools: Sequence[Tool], backend: Backend | AsyncBackend, limits: ServingLimits
) -> Toolbox:
    """A toolbox that stops the agent at the last call allowed in a turn."""
    most = limits.calls_per_turn
    bounds = AgentLimits(seconds=limits.seconds, turns=most + 1)
    return Toolbox(tools, backend, bounds, stop_after=most)


class _Box(Toolbox):
    """A toolbox that stops the agent at the first call beyond the allowed ones."""

    def __init__(
        self,
        tools: Sequence[Tool],
        backend: Backend | AsyncBackend,
        seconds: float,
        allowed: int,
    ) -> None:
        # One more turn of the model than calls: a turn without any is its reply.
        super().__init__(tools, backend, AgentLimits(seconds=seconds, turns=allowed + 1))
        self._allowed = allowed

    def _over(self) -> bool:
        if len(self.events) >= self._allowed and not self.closed:
            self._halt()
        return super()._over()
