"""One session of an agent with a simulated user and simulated tools."""

from __future__ import annotations

import asyncio
import time
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Literal

from pydantic import JsonValue

from agenteval.agents import System
from agenteval.errors import (
    AgentevalError,
    BudgetExceeded,
    InputError,
    ModelUnavailable,
    Unauthorized,
)
from agenteval.evaluators.base import classify
from agenteval.evaluators.workflows.instructions import instructions, tools_given
from agenteval.evaluators.workflows.scenario import Format, Profile, Role
from agenteval.evaluators.workflows.serving import Serving, ServingLimits, TurnFailed
from agenteval.evaluators.workflows.session import SessionEnd, SessionFailure, SessionLog
from agenteval.evaluators.workflows.simulators.nouns import Heard, UserSimulator
from agenteval.evaluators.workflows.simulators.tools import ToolSession, ToolSimulator
from agenteval.records import Message, Usage

if TYPE_CHECKING:
    from agenteval.evaluators.workflows.team import AssistantAgent, UserAgent

SINGLE_TURNS, CROSS_TURNS = 15, 20  # replies of the agent; arXiv 2406.14884, appendix
_FATAL = (Unauthorized, BudgetExceeded, InputError, ModelUnavailable)
_GRACE = 5.0  # seconds for a cancelled team to end
Who = Literal["agent", "user", "tools"]


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


@dataclass(slots=True)
class _Course:
    """A session under way, and what went wrong in it first."""

    user: UserAgent
    agent: AssistantAgent
    tools: ToolSession
    begun: float
    trouble: list[tuple[Who, Exception]] = field(default_factory=list)

    @property
    def simulator_usage(self) -> Usage:
        return self.user.usage + self.tools.usage


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
    from agenteval.evaluators.workflows.team import session_team

    course = _course(role, profile, system, (user, tools), settings)
    team = session_team(course.user, course.agent, settings.turn_limit(profile))
    await _run(team, course)
    return _result(course)


def _course(
    role: Role,
    profile: Profile,
    system: System,
    simulators: tuple[UserSimulator, ToolSimulator],
    settings: SessionSettings,
) -> _Course:
    from agenteval.evaluators.workflows.team import AssistantAgent, UserAgent

    user, tools = simulators
    begun = time.monotonic()
    trouble: list[tuple[Who, Exception]] = []
    given = role.given(profile.scenarios)
    opened = tools.open(role, profile, seed=settings.seed, repeat=settings.repeat)
    serving = Serving(
        system.make(),
        instructions(role, given, settings.format),
        tools_given(role, given, settings.format),
        opened,
        ServingLimits(
            settings.calls,
            settings.calls_per_turn,
            settings.seconds,
            settings.messages,
            settings.published,
        ),
    )
    heard = Heard(profile, role.now, seed=settings.seed, repeat=settings.repeat)

    def from_agent(error: Exception) -> None:
        behind = isinstance(error, TurnFailed) and error.tools
        trouble.append(("tools" if behind else "agent", error))

    return _Course(
        user=UserAgent("user", user, heard, trouble=lambda error: trouble.append(("user", error))),
        agent=AssistantAgent("agent", serving, trouble=from_agent),
        tools=opened,
        begun=begun,
        trouble=trouble,
    )


async def _run(team: object, course: _Course) -> None:
    """Run the team to its end; cancelling this cancels the agent's turn as well."""
    from autogen_agentchat.teams import RoundRobinGroupChat
    from autogen_core import CancellationToken

    assert isinstance(team, RoundRobinGroupChat)
    token = CancellationToken()
    work = asyncio.create_task(team.run(cancellation_token=token))
    try:
        await asyncio.shield(work)
    finally:
        if not work.done():
            token.cancel()
            await asyncio.wait({work}, timeout=_GRACE)
            if work.done() and not work.cancelled():
                work.exception()  # asked for: it is that of the cancellation


def _result(course: _Course) -> SessionLog | SessionFailure:
    if not course.trouble:
        try:
            return _log(course, _ended(course), course.tools.state())
        except AgentevalError as no_json:
            course.trouble.append(("tools", no_json))
    who, error = course.trouble[0]
    serving = course.agent.serving
    if isinstance(error, _FATAL):
        error.spent = serving.usage + course.simulator_usage
        raise error
    status, message = classify(error)
    if isinstance(error, TurnFailed):
        status = error.status
    if isinstance(error, AgentevalError):
        message = str(error)
    return SessionFailure(
        status=status,
        message=message[:500],
        who=who,
        log=_log(course, "agent", None),
        usage=serving.usage,
        simulator_usage=course.simulator_usage,
    )


def _ended(course: _Course) -> SessionEnd:
    if course.user.done:
        return "user"
    return course.agent.serving.ended or "turns"


def _log(course: _Course, ended: SessionEnd, state: JsonValue) -> SessionLog:
    serving, user = course.agent.serving, course.user
    messages = list(serving.messages)
    own = [m for m in user.messages if m.role == "user"]
    heard = sum(m.role == "user" for m in messages)
    messages += [Message(role="user", content=m.content) for m in own[heard:]]  # its last words
    mistakes = [*user.mistakes, *course.tools.mistakes]
    return SessionLog(
        messages=tuple(messages),
        calls=tuple(serving.calls),
        ended=ended,
        turns=serving.turns,
        mistakes=tuple(sorted(mistakes, key=lambda m: m.turn)),
        state=state,
        seconds=round(time.monotonic() - course.begun, 6),
        usage=serving.usage,
        simulator_usage=course.simulator_usage,
        model=serving.model,
    )
