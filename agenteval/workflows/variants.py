"""The agent under test, as `--agent` names it, in each format of the procedure.

`recorded:NAME` replays recorded replies in place of an agent: the file `sessions/NAME.yaml` of a
role's folder holds a list of turns for each user. A turn has the user's words, the calls that the
agent makes then, and its reply.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

from pydantic import JsonValue

from agenteval.agents import Dialogue, System, spec
from agenteval.agents.spec import AgentSettings
from agenteval.agents.toolbox import Toolbox
from agenteval.errors import AgentevalError, InputError
from agenteval.models.limits import Budget
from agenteval.records import Message, ToolCall, content_hash
from agenteval.text import plural
from agenteval.workflows.cases import OpenRole, SessionCase, TurnCase
from agenteval.workflows.folder import read_recorded_turns
from agenteval.workflows.instructions import instructions_prompt
from agenteval.workflows.scenario import Format, RecordedTurn
from agenteval.workflows.templated import template_agent

PREFIX = "recorded:"


def recorded_name(agent: object) -> str | None:
    """Return NAME of `recorded:NAME`, None for any other agent.

    Raises InputError for the scripted agents of earlier versions.
    """
    if isinstance(agent, str) and agent.startswith("scripted:"):
        raise InputError(
            f"removed: use {PREFIX}perfect or {PREFIX}skips_step, which replay recorded sessions",
            "--agent",
        )
    is_recorded = isinstance(agent, str) and agent.startswith(PREFIX)
    return str(agent).removeprefix(PREFIX) if is_recorded else None


@dataclass(frozen=True)
class RecordedAgents:
    """The recorded sessions of one name: `turns` by role and profile."""

    name: str
    turns: Mapping[str, Mapping[str, tuple[RecordedTurn, ...]]]

    @classmethod
    def read(cls, name: str, roles: Sequence[OpenRole]) -> RecordedAgents:
        """Read `sessions/NAME.yaml` of each role. Raises InputError for a role without one."""
        turns = {of.role.id: read_recorded_turns(of.folder, of.role, name) for of in roles}
        return cls(f"{PREFIX}{name}", turns)

    @cached_property
    def system(self) -> System:
        """The agent's name in reports and the store; it serves no user itself, see `at`."""
        sessions: dict[str, JsonValue] = {
            role: content_hash({u: [t.model_dump() for t in turns] for u, turns in users.items()})
            for role, users in self.turns.items()
        }
        parameters: dict[str, JsonValue] = {
            "adapter": "recorded",
            "version": 1,
            "sessions": sessions,
        }
        return System(self.name, lambda: ReplayAgent(self.name, (), ()), parameters)

    def has(self, case: SessionCase) -> bool:
        """Return whether a session was recorded with the user."""
        return case.profile.id in self.turns[case.of.role.id]

    def at(self, case: SessionCase) -> System:
        """Return the agent for one user. Raises KeyError if there is no session with that user."""
        turns = self.turns[case.of.role.id][case.profile.id]
        agent = ReplayAgent(f"{self.name}, {case.info.id}", turns, case.profile.asides)
        return replace(self.system, make=lambda: agent)


class ReplayAgent:
    """Makes the calls and gives the reply of the turn that was recorded.

    It fails where the user does not say what the recording has. The user's asides come at random
    and are not compared.
    """

    def __init__(self, where: str, turns: Sequence[RecordedTurn], asides: Sequence[str]) -> None:
        self._where, self._turns = where, turns
        self._asides = {_line(aside) for aside in asides}

    async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
        """Return the recorded reply. Raises AgentevalError where the recording does not fit."""
        heard = [m.content for m in dialogue.messages if m.role == "user"]
        number, recorded = len(heard), len(self._turns)
        if number > recorded:
            raise AgentevalError(
                f"{self._where}: the recorded session has only {plural(recorded, 'turn')}, and the "
                f"user goes on with {heard[-1]!r}"
            )
        turn = self._turns[number - 1]
        if self._compared(heard[-1]) != self._compared(turn.user):
            raise AgentevalError(
                f"{self._where}: the recorded session does not fit at turn {number}: the user says "
                f"{heard[-1]!r}, the recording has {turn.user!r}"
            )
        for index, call in enumerate(turn.calls):
            id = f"recorded_{number}_{index}"
            status, answer = await tools.attempt_async(call.tool, call.arguments)
            if status is not None:
                request = ToolCall(name=call.tool, arguments=call.arguments, id=id)
                tools.say(Message(role="assistant", tool_calls=(request,)))
                tools.say(Message(role="tool", content=answer, tool_call_id=id))
            if tools.exhausted.is_set():
                return ""
        return turn.reply

    def _compared(self, text: str) -> list[str]:
        lines = [_line(line) for line in text.splitlines()]
        return [line for line in lines if line and line not in self._asides]


def _line(text: str) -> str:
    return " ".join(text.split())


Agent = str | Callable[..., Any] | System
Case = SessionCase | TurnCase
_ON_MODEL: spec.OnModel = {"template": template_agent}


@dataclass(frozen=True, slots=True)
class AgentVariant:
    """The agent with the procedure in one format, under conditions that are part of its key.

    `conditions` is everything else that can change what happens: limits, simulators, seed. Recorded
    agents have `recorded`, which returns the agent for a case.
    """

    system: System
    format: Format
    conditions: Mapping[str, JsonValue]
    recorded: Callable[[SessionCase], System] | None = None

    def agent_for(self, case: SessionCase) -> System:
        """Return the agent for one user."""
        return self.system if self.recorded is None else self.recorded(case)

    @property
    def name(self) -> str:
        """Agent and format."""
        return f"{self.system.name} · {self.format}"

    @property
    def parameters(self) -> dict[str, JsonValue]:
        """Parameters as kept in the store."""
        return {
            "agent": {"name": self.system.name, **self.system.parameters},
            "format": self.format,
            "conditions": {"instructions": instructions_prompt().sha256, **self.conditions},
        }

    @property
    def sha256(self) -> str:
        """Content hash (hex): the key under which trials are stored."""
        return content_hash({"name": self.name, "parameters": self.parameters})


@dataclass(frozen=True)
class AgentUnderTest:
    """One agent in each format.

    `agent` is a specification (see `agents.spec`), a function of (messages, tools), a system, or
    recorded sessions; `settings` are for those that run on a model.
    """

    agent: Agent | RecordedAgents
    formats: Sequence[Format]
    settings: AgentSettings

    @property
    def system(self) -> System:
        """The agent with its name and parameters; nothing is opened. Raises InputError for an
        unknown agent."""
        if isinstance(self.agent, RecordedAgents):
            return self.agent.system
        if isinstance(self.agent, System):
            return self.agent
        return spec.system(self.agent, self.settings, more=_ON_MODEL, dialogue=True)

    def variants(
        self, conditions: dict[str, JsonValue], system: System | None = None
    ) -> list[AgentVariant]:
        """Return the agent in each format; `system` is the opened one."""
        recorded = self.agent.at if isinstance(self.agent, RecordedAgents) else None
        system = system or self.system
        return [AgentVariant(system, format, conditions, recorded) for format in self.formats]

    @asynccontextmanager
    async def opened(self, budget: Budget) -> AsyncIterator[System]:
        """Yield the agent, whose connections are closed at the end; `budget` counts its
        requests."""
        if not isinstance(self.agent, str):
            yield self.system
            return
        settings = replace(self.settings, budget=budget)
        async with spec.opened(self.agent, settings, more=_ON_MODEL, dialogue=True) as system:
            yield system
