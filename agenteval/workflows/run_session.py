"""One session of an agent with a simulated user and simulated tools."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from typing import Literal

from pydantic import JsonValue

from agenteval.agents import Agent, Dialogue, System, drive
from agenteval.agents.conversation import turn_messages
from agenteval.agents.protocol import AgentFailure, AgentLimits, AgentLog, Tool
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
from agenteval.workflows.instructions import instructions, tools_given
from agenteval.workflows.scenario import Format, Profile, Role
from agenteval.workflows.session import (
    SessionCall,
    SessionEnd,
    SessionFailure,
    SessionLog,
    SimulatorMistake,
)
from agenteval.workflows.simulated_tools import ToolSession, ToolSimulator
from agenteval.workflows.simulated_user import DONE, UserContext, UserSimulator

SINGLE_TURNS, CROSS_TURNS = 15, 20  # replies of the agent; arXiv 2406.14884, appendix
_FATAL = (Unauthorized, BudgetExceeded, InputError, ModelUnavailable)


@dataclass(frozen=True, slots=True)
class SessionSettings:
    """How a session is run. `turns` counts the agent's replies to the user, None: 15, or 20 for a
    profile of several scenarios; over it the session ends after the user's last word.

    `calls` bounds those of the session, `calls_per_turn` those of one turn, refused ones among
    them, `seconds` one turn of the agent, `messages` the conversation (calls and results count).
    Repeats of a session with one seed differ in `repeat`. Raises InputError for bounds below 1.

    `published`: calls are bounded as in the published loop. After `calls_per_turn` calls without a
    reply the user speaks again, and the session ends with the turn in which `calls` are reached.
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
            raise InputError("the limits of a session are at least 1, its seconds more than 0")

    @classmethod
    def flowbench(cls, format: Format = "flowchart", *, seed: int = 0) -> SessionSettings:
        """The loop of the published code: 40 messages, 10 calls, 5 calls in one turn."""
        limits = {"turns": 40, "calls": 10, "calls_per_turn": 5, "messages": 40}
        return cls(format, **limits, seed=seed, published=True)

    def turn_limit(self, profile: Profile) -> int:
        """Replies that the agent may give this user."""
        if self.turns is not None:
            return self.turns
        return CROSS_TURNS if len(profile.scenarios) > 1 else SINGLE_TURNS

    @property
    def parameters(self) -> dict[str, JsonValue]:
        """Everything that can change a session, but for the repeat."""
        return {key: value for key, value in asdict(self).items() if key != "repeat"}


async def run_session(
    role: Role,
    profile: Profile,
    system: System,
    user: UserSimulator,
    tools: ToolSimulator,
    settings: SessionSettings,
) -> SessionLog | SessionFailure:
    """The log of one session, or why there is none to judge.

    Passing a limit is an ending. A simulator that cannot go on, a failing endpoint and a crashing
    adapter are failures. Raises Unauthorized, BudgetExceeded, InputError and ModelUnavailable,
    `spent` set to what the session took: they would fail every further session alike.
    """
    given = role.given(profile.scenarios)
    opened = tools.open(role, profile, seed=settings.seed, repeat=settings.repeat)
    runner = AgentRunner(
        system.make(),
        instructions(role, given, settings.format),
        tools_given(role, given, settings.format),
        opened,
        settings,
    )
    state = _SessionState(
        user, UserContext(profile, role.now, seed=settings.seed, repeat=settings.repeat), runner
    )
    try:
        ended = await state.run(settings.turn_limit(profile))
        state.who = "tools"
        return state.log(ended, opened.state())
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # an adapter that exits must not end the other sessions
        task = asyncio.current_task()
        if isinstance(error, asyncio.CancelledError) and task is not None and task.cancelling():
            raise
        if not isinstance(error, Exception):
            return state.failure(AgentevalError(f"{state.who} left with {type(error).__name__}"))
        if isinstance(error, _FATAL):
            error.spent = runner.usage + state.simulator_usage
            raise
        return state.failure(error)


class _SessionState:
    """A session under way; `who` is at it."""

    def __init__(self, user: UserSimulator, heard: UserContext, runner: AgentRunner) -> None:
        self.user, self.heard, self.runner = user, heard, runner
        self.who: Literal["agent", "user", "tools"] = "user"
        self.mistakes: list[SimulatorMistake] = []
        self.user_usage = Usage()
        self.begun = time.monotonic()

    @property
    def simulator_usage(self) -> Usage:
        return self.user_usage + self.runner.tools.usage

    async def run(self, turns: int) -> SessionEnd:
        """User and agent in turn, until one of them stops, or the agent was asked `turns` times
        and the user had its last word."""
        for turn in range(turns + 1):
            self.who = "user"
            said, done = await self._speak()
            if done:
                return "user"
            if turn == turns:
                break
            self.who = "agent"
            reply = await self.runner.turn(said)
            if self.runner.ended is not None:
                return self.runner.ended
            if reply:  # none where the user is to speak again
                self._hear(Message(role="assistant", content=reply))
        return "turns"

    async def _speak(self) -> tuple[str, bool]:
        try:
            turn = await self.user.speak(self.heard)
        except AgentevalError as error:
            self.user_usage += error.spent or Usage()
            self.mistakes += getattr(error, "mistakes", ())
            raise
        self.user_usage += turn.usage
        self.mistakes += turn.mistakes
        if turn.text != DONE:
            self._hear(Message(role="user", content=turn.text))
        return turn.text, turn.done

    def _hear(self, message: Message) -> None:
        self.heard = replace(self.heard, messages=(*self.heard.messages, message))

    def failure(self, error: Exception) -> SessionFailure:
        status, message = classify(error)
        who = self.who
        if isinstance(error, TurnFailed):
            status, who = error.status, "tools" if error.tools else "agent"
        if isinstance(error, AgentevalError):
            message = str(error)
        return SessionFailure(
            status=status,
            message=message[:500],
            who=who,
            log=self.log("agent", None),
            usage=self.runner.usage,
            simulator_usage=self.simulator_usage,
        )

    def log(self, ended: SessionEnd, state: JsonValue) -> SessionLog:
        runner = self.runner
        heard = sum(m.role == "user" for m in runner.messages)
        own = [m for m in self.heard.messages if m.role == "user"]
        return SessionLog(
            messages=(*runner.messages, *own[heard:]),  # with the user's last words
            calls=tuple(runner.calls),
            ended=ended,
            turns=runner.turns,
            mistakes=tuple(sorted([*self.mistakes, *runner.tools.mistakes], key=lambda m: m.turn)),
            state=state,
            seconds=round(time.monotonic() - self.begun, 6),
            usage=runner.usage,
            simulator_usage=self.simulator_usage,
            model=runner.model,
        )


class TurnFailed(AgentevalError):
    """The agent's endpoint or adapter failed, or its tools: no verdict on the agent."""

    def __init__(self, failure: AgentFailure, *, tools: bool) -> None:
        super().__init__(failure.message)
        self.status: FailureStatus = failure.status
        self.tools = tools


class AgentRunner:
    """One agent that serves one user. `messages` is the conversation without the instructions,
    `turns` counts the replies to the user.

    `ended` says why the agent speaks no more: "calls" (it asked for one too many), "turn_calls" (in
    one turn), "agent" (its time was over, or it said nothing), "turns" (too many messages). Where
    it is None after an empty reply, the user is to speak again.
    """

    def __init__(
        self,
        assistant: Agent,
        instructions: str,
        given: Sequence[Tool],
        tools: ToolSession,
        settings: SessionSettings | None = None,
    ) -> None:
        self.tools = tools
        self._assistant, self._instructions, self._given = assistant, instructions, tuple(given)
        self._settings = settings or SessionSettings()
        self.messages: list[Message] = []
        self.calls: list[SessionCall] = []
        self.turns = 0
        self.usage = Usage()
        self.model: str | None = None
        self.ended: SessionEnd | None = None

    async def turn(self, heard: str) -> str:
        """The agent's reply to what the user said, "" when it was stopped.

        Raises TurnFailed, and Unauthorized, BudgetExceeded, InputError and ModelUnavailable.
        """
        settings = self._settings
        self.messages.append(Message(role="user", content=heard))
        self.tools.turn = self.turns
        left = max(0, settings.calls - len(self.calls))
        allowed = settings.calls_per_turn
        if not settings.published:
            allowed = min(left, allowed)
        # One more turn of the model than calls: a turn without any is its reply.
        bounds = AgentLimits(seconds=settings.seconds, turns=allowed + 1)
        box = (
            Toolbox(self._given, self.tools.backend, bounds, stop_after=allowed)
            if settings.published
            else _Bounded(self._given, self.tools.backend, bounds)
        )
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
        spoke = bool(done.output.strip())
        self.turns += spoke
        stopped = done.ending == "iterations"
        full = stopped and allowed == left
        silent = not spoke and not full
        if settings.published:
            full = len(self.calls) >= settings.calls
            silent = not spoke and not stopped
        if silent:
            self.ended = "turn_calls" if stopped else "agent"
        elif full:
            self.ended = "calls"
        elif settings.messages is not None and len(self.messages) >= settings.messages:
            self.ended = "turns"
        return done.output

    def _keep(self, log: AgentLog, dialogue: Dialogue) -> None:
        self.usage += log.usage
        self.model = log.model or self.model
        self.messages += turn_messages(log, dialogue)
        # A turn goes on where the user spoke again without a reply.
        before = 1 + max((c.step for c in self.calls if c.turn == self.turns), default=-1)
        self.calls += [
            SessionCall(
                tool=event.name,
                arguments=event.arguments,
                status=event.status,
                result=event.result,
                answered=self.tools.answered(event.name, event.arguments),
                turn=self.turns,
                step=before + event.turn,
            )
            for event in log.events
        ]


class _Bounded(Toolbox):
    """A toolbox that stops the agent at the first call beyond the allowed ones."""

    def _over(self) -> bool:
        if len(self.events) >= self.limits.turns - 1 and not self.closed:
            self._halt()
        return super()._over()
