"""One session of an agent with a simulated user and simulated tools."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict, dataclass, replace
from typing import Literal

from pydantic import JsonValue

from agenteval.agents import Dialogue, System, drive
from agenteval.agents.conversation import turn_messages
from agenteval.agents.protocol import AgentFailure, AgentLimits, AgentLog, Ending
from agenteval.agents.toolbox import Toolbox
from agenteval.engine.judging import classify
from agenteval.errors import (
    AgentevalError,
    BudgetExceeded,
    InputError,
    ModelUnavailable,
    Unauthorized,
)
from agenteval.records import FailureStatus, Message, Usage
from agenteval.workflows.cases import instructions, tools_given
from agenteval.workflows.scenario import Format, Profile, Role
from agenteval.workflows.session import (
    SessionCall,
    SessionEnd,
    SessionFailure,
    SessionLog,
    SimulatorMistake,
)
from agenteval.workflows.simulated_tools import ToolSimulator
from agenteval.workflows.simulated_user import DONE, UserContext, UserSimulator

SINGLE_TURNS, CROSS_TURNS = 15, 20  # replies of the agent; arXiv 2406.14884, appendix
VERSION = 1  # of the loop; part of the key of a session
_SILENT: dict[Ending, SessionEnd] = {  # ends of a session in which the agent did not reply
    "iterations": "turn_calls",
    "timeout": "time",
    "finished": "agent",
}
_FATAL = (Unauthorized, BudgetExceeded, InputError, ModelUnavailable)


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """How a session is run. Raises InputError for bounds below 1.

    `turns` counts the agent's replies to the user (None: 15, or 20 for a profile of several
    scenarios); at the limit, the session ends after the user's last message. `calls` limits the
    calls of the session and `calls_per_turn` those of one turn, including refused ones; `seconds`
    limits one turn of the agent, `messages` the conversation with calls and results. Repeats with
    one seed differ in `repeat`.

    `published`: calls are limited as in the published loop. After `calls_per_turn` calls without a
    reply, the user speaks again, and the session ends with the turn that reaches `calls`.
    """

    format: Format = "flowchart"
    turns: int | None = None
    calls: int = 60
    calls_per_turn: int = 20
    seconds: float = 180.0
    messages: int | None = None
    seed: int = 0
    repeat: int = 0
    published: bool = False

    def __post_init__(self) -> None:
        bounds = (self.turns, self.calls, self.calls_per_turn, self.messages)
        if any(b is not None and b < 1 for b in bounds) or not self.seconds > 0:
            raise InputError(
                "the limits of a session must be at least 1 and its seconds more than 0"
            )

    @classmethod
    def flowbench(cls) -> SessionSettings:
        """Return the limits of the published code: 40 messages, 10 calls, 5 calls in one turn."""
        return cls(turns=40, calls=10, calls_per_turn=5, messages=40, published=True)

    def turn_limit(self, profile: Profile) -> int:
        """Return the maximum number of replies to this user."""
        if self.turns is not None:
            return self.turns
        return CROSS_TURNS if len(profile.scenarios) > 1 else SINGLE_TURNS

    @property
    def parameters(self) -> dict[str, JsonValue]:
        """Everything that can affect a session, except the repeat."""
        return {key: value for key, value in asdict(self).items() if key != "repeat"}


async def run_session(
    role: Role,
    profile: Profile,
    system: System,
    user: UserSimulator,
    tools: ToolSimulator,
    settings: SessionSettings,
) -> SessionLog | SessionFailure:
    """Run one session and return its log, or a failure.

    A session that reaches a limit has ended. A simulator that cannot continue, a failing endpoint
    and a crashing adapter are failures. Raises Unauthorized, BudgetExceeded, InputError and
    ModelUnavailable, which would fail all further sessions too; `spent` has this session's usage.
    """
    session = _SessionRun(role, profile, system, user, tools, settings)
    try:
        return await session.run()
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # an adapter that exits must not stop other sessions
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        if not isinstance(error, Exception):
            error = AgentevalError(f"{session.who} left with {type(error).__name__}")
        if isinstance(error, _FATAL):
            error.spent = session.usage + session.simulator_usage
            raise
        status, message = classify(error)
        return session.failure(status, str(error) if isinstance(error, AgentevalError) else message)


class _SessionRun:
    """A running session.

    `who` acts now. `context` is the conversation as the user knows it, `messages` includes calls
    and results; `turns` counts the agent's replies.
    """

    def __init__(
        self,
        role: Role,
        profile: Profile,
        system: System,
        user: UserSimulator,
        tools: ToolSimulator,
        settings: SessionSettings,
    ) -> None:
        scenarios = role.given(profile.scenarios)
        seed, repeat = settings.seed, settings.repeat
        self.tools = tools.open(role, profile, seed=seed, repeat=repeat)
        self.agent = system.make()
        self.instructions = instructions(role, scenarios, settings.format)
        self.offered = tools_given(role, scenarios, settings.format)
        self.user, self.settings = user, settings
        self.context = UserContext(profile, role.now, seed=seed, repeat=repeat)
        self.who: Literal["agent", "user", "tools"] = "user"
        self.messages: list[Message] = []
        self.calls: list[SessionCall] = []
        self.mistakes: list[SimulatorMistake] = []
        self.turns = 0
        self.usage = Usage()
        self.user_usage = Usage()
        self.model: str | None = None
        self.started = time.monotonic()

    @property
    def simulator_usage(self) -> Usage:
        return self.user_usage + self.tools.usage

    async def run(self) -> SessionLog | SessionFailure:
        """Alternate between user and agent until one of them stops or the agent has reached its
        limit of replies; the user then has the last word."""
        limit = self.settings.turn_limit(self.context.profile)
        ended: SessionEnd = "turns"
        for turn in range(limit + 1):
            self.who = "user"
            text, done = await self._user_turn()
            if done:
                ended = "user"
                break
            if turn == limit:
                break
            self.who = "agent"
            reply = await self._agent_turn(text)
            if isinstance(reply, AgentFailure):
                return self.failure(reply.status, reply.message)
            if isinstance(reply, _Stopped):
                ended = reply.ended
                break
            if reply:  # none if the user speaks again
                self._add(Message(role="assistant", content=reply))
        self.who = "tools"
        return self.log(ended, self.tools.state())

    async def _user_turn(self) -> tuple[str, bool]:
        try:
            turn = await self.user.speak(self.context)
        except AgentevalError as error:
            self.user_usage += error.spent or Usage()
            self.mistakes += getattr(error, "mistakes", ())
            raise
        self.user_usage += turn.usage
        self.mistakes += turn.mistakes
        if turn.text != DONE:
            self._add(Message(role="user", content=turn.text))
        return turn.text, turn.done

    def _add(self, message: Message) -> None:
        self.context = replace(self.context, messages=(*self.context.messages, message))

    async def _agent_turn(self, text: str) -> str | _Stopped | AgentFailure:
        """Return the agent's reply, "" if the user must speak again, or a failure."""
        settings, published = self.settings, self.settings.published
        self.messages.append(Message(role="user", content=text))
        self.tools.turn = self.turns
        calls_left = max(0, settings.calls - len(self.calls))
        allowed = settings.calls_per_turn if published else min(calls_left, settings.calls_per_turn)
        # One more turn of the model than calls: the turn without a call is its reply.
        limits = AgentLimits(seconds=settings.seconds, turns=allowed + 1)
        if published:
            box = Toolbox(self.offered, self.tools.backend, limits, stop_after=allowed)
        else:
            box = _BoundedToolbox(self.offered, self.tools.backend, limits)
        dialogue = Dialogue(instructions=self.instructions, messages=tuple(self.messages))
        try:
            log = await drive(self.agent, dialogue, box)
        except AgentevalError:
            self._keep(AgentLog(events=tuple(box.events), usage=box.usage), dialogue)
            raise
        if isinstance(log, AgentFailure):
            self._keep(AgentLog(events=log.events, usage=log.usage), dialogue)
            self.who = "agent" if box.defect is None else "tools"
            return log
        self._keep(log, dialogue)
        spoke = bool(log.output.strip())
        self.turns += spoke
        stopped = log.ending == "iterations"
        if published:
            full, silent = len(self.calls) >= settings.calls, not spoke and not stopped
        else:
            full = stopped and allowed == calls_left
            silent = not spoke and not full
        if silent:
            return _Stopped(_SILENT[log.ending])
        if full:
            return _Stopped("calls")
        if settings.messages is not None and len(self.messages) >= settings.messages:
            return _Stopped("turns")
        return log.output

    def _keep(self, log: AgentLog, dialogue: Dialogue) -> None:
        self.usage += log.usage
        self.model = log.model or self.model
        self.messages += turn_messages(log, dialogue)
        # A turn continues if the user spoke again without a reply.
        first_step = 1 + max((c.step for c in self.calls if c.turn == self.turns), default=-1)
        self.calls += [
            SessionCall(
                tool=event.name,
                arguments=event.arguments,
                status=event.status,
                result=event.result,
                answered=self.tools.answered(event.name, event.arguments),
                turn=self.turns,
                step=first_step + event.turn,
            )
            for event in log.events
        ]

    def failure(self, status: FailureStatus, message: str) -> SessionFailure:
        return SessionFailure(
            status=status,
            message=message[:500],
            who=self.who,
            log=self.log("agent", None),
            usage=self.usage,
            simulator_usage=self.simulator_usage,
        )

    def log(self, ended: SessionEnd, state: JsonValue) -> SessionLog:
        answered = sum(m.role == "user" for m in self.messages)
        by_user = [m for m in self.context.messages if m.role == "user"]
        mistakes = [*self.mistakes, *self.tools.mistakes]
        return SessionLog(
            messages=(*self.messages, *by_user[answered:]),  # with the user's last words
            calls=tuple(self.calls),
            ended=ended,
            turns=self.turns,
            mistakes=tuple(sorted(mistakes, key=lambda m: m.turn)),
            state=state,
            seconds=round(time.monotonic() - self.started, 6),
            usage=self.usage,
            simulator_usage=self.simulator_usage,
            model=self.model,
        )


@dataclass(frozen=True, slots=True)
class _Stopped:
    """The agent was stopped before the user said goodbye."""

    ended: SessionEnd


class _BoundedToolbox(Toolbox):
    """Stops the agent at the first call over the limit."""

    def _over(self) -> bool:
        if len(self.events) >= self.limits.turns - 1 and not self.closed:
            self.exhausted.set()
        return super()._over()
