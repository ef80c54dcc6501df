"""The agent under test, as `--agent` names it, in each format of the procedure."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from pydantic import JsonValue

from agenteval.agents import System, spec
from agenteval.agents.spec import AgentSettings
from agenteval.errors import InputError
from agenteval.models.limits import Budget
from agenteval.records import content_hash
from agenteval.workflows.cases import SessionCase, TurnCase
from agenteval.workflows.instructions import instructions_prompt
from agenteval.workflows.recorded_agent import RecordedAgents
from agenteval.workflows.scenario import Format
from agenteval.workflows.templated import template_agent

Agent = str | Callable[..., Any] | System
Case = SessionCase | TurnCase
_ON_MODEL: spec.OnModel = {"template": template_agent}


@dataclass(frozen=True, slots=True)
class AgentVariant:
    """The agent with the procedure in one format, under conditions that are part of its key.

    `conditions` is everything else that can change what happens: limits, simulators, seed. Recorded
    agents have `recorded`, which gives the agent for a case, or None where there is none.
    """

    system: System
    format: Format
    conditions: Mapping[str, JsonValue]
    recorded: Callable[[Case], System | None] | None = None

    def agent_for(self, case: Case) -> System:
        """Return the agent for a case. Raises InputError if no session was recorded with it."""
        system = self.system if self.recorded is None else self.recorded(case)
        if system is None:
            raise InputError(f"{self.system.name} has no session for {case.info.id}")
        return system

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
