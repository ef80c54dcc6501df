"""The library desk, and small pieces to run sessions with."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from agenteval.agents import Dialogue, System
from agenteval.agents.toolbox import Toolbox
from agenteval.models.client import Client, RetryPolicy
from agenteval.models.wire import Reply, Request
from agenteval.records import Message
from agenteval.testing.scripted import ScriptedTransport
from agenteval.workflows.backend import load_backend
from agenteval.workflows.cases import OpenRole
from agenteval.workflows.folder import read_role
from agenteval.workflows.scenario import Profile, Role, WorkflowTool
from agenteval.workflows.simulated_user import UserContext
from agenteval.workflows.variants import RecordedAgents

FOLDER = Path(__file__).parent / "library_desk"
ROLE: Role = read_role(FOLDER)
BACKEND = load_backend(FOLDER)
PROFILES: dict[str, Profile] = {
    p.id: p for p in [*(p for s in ROLE.scenarios for p in s.profiles), *ROLE.cross_profiles]
}
RECORDED = {  # the recorded agents, by kind; `at` makes the one for a case
    kind: RecordedAgents.read(kind, [OpenRole(ROLE, FOLDER, BACKEND, None)])
    for kind in ("perfect", "skips_step")
}
TOOLS: dict[str, WorkflowTool] = {t.name: t for s in ROLE.scenarios for t in s.tools}


def conversation(*texts: str) -> tuple[Message, ...]:
    """What user and agent said in turn, the user first."""
    roles = ("user", "assistant")
    return tuple(Message(role=roles[i % 2], content=text) for i, text in enumerate(texts))


def heard(profile: str | Profile, *texts: str, seed: int = 0) -> UserContext:
    known = PROFILES[profile] if isinstance(profile, str) else profile
    return UserContext(known, ROLE.now, conversation(*texts), seed)


def client(answer: Callable[[Request], str | Reply | Exception]) -> tuple[Client, list[Request]]:
    """A client over a scripted model, and what it was asked."""
    transport = ScriptedTransport(answer)
    return Client(transport, retry=RetryPolicy(attempts=1)), transport.requests


def replies(*texts: str | Exception) -> Callable[[Request], str | Exception]:
    """One after the other, the last for ever."""
    left = list(texts)
    return lambda _: left.pop(0) if len(left) > 1 else left[0]


Turn = Callable[[Dialogue, Toolbox], Any]


class Talker:
    """An assistant from a function; it may return an awaitable."""

    def __init__(self, turn: Turn) -> None:
        self.turn = turn

    async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
        said = self.turn(dialogue, tools)
        text: str = await said if hasattr(said, "__await__") else said
        return text


def system(turn: Turn) -> System:
    return System("test", lambda: Talker(turn), {})


def spoken(messages: Sequence[Message]) -> list[tuple[str, str]]:
    """Role and text, without calls and results."""
    return [(m.role, m.content) for m in messages if m.role != "tool" and not m.tool_calls]
