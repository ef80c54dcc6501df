"""The assistant under test, as `--agent` names it, in each format of the procedure."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from typing import Any

from pydantic import JsonValue

from agenteval.agents import System, spec
from agenteval.agents.spec import AgentSettings
from agenteval.models.limits import Budget
from agenteval.workflows.evaluator import Candidate
from agenteval.workflows.recorded_agent import RecordedAgents
from agenteval.workflows.scenario import Format
from agenteval.workflows.templated import template_assistant

Agent = str | Callable[..., Any] | System
_ON_MODEL: spec.OnModel = {"template": template_assistant}


@dataclass(frozen=True)
class Assistants:
    """One assistant as a candidate in each format.

    `agent` is a specification (see `agents.spec`), a function of (messages, tools), a system, or
    recorded sessions; `settings` are for those that run on a model.
    """

    agent: Agent | RecordedAgents
    formats: Sequence[Format]
    settings: AgentSettings

    def candidates(self, conditions: dict[str, JsonValue]) -> list[Candidate]:
        """Return the candidates to know names and keys: nothing is opened.

        Raises InputError for an agent that does not exist.
        """
        if isinstance(self.agent, RecordedAgents):
            recorded = self.agent
            return [Candidate(recorded.system, f, conditions, recorded.at) for f in self.formats]
        if isinstance(self.agent, System):
            system = self.agent
        else:
            system = spec.system(self.agent, self.settings, more=_ON_MODEL, dialogue=True)
        return [Candidate(system, f, conditions) for f in self.formats]

    @asynccontextmanager
    async def opened(
        self, conditions: dict[str, JsonValue], budget: Budget
    ) -> AsyncIterator[list[Candidate]]:
        """The candidates, whose connections end with the block; `budget` counts their requests."""
        candidates = self.candidates(conditions)
        if not isinstance(self.agent, str):
            yield candidates
            return
        settings = replace(self.settings, budget=budget)
        async with spec.opened(self.agent, settings, more=_ON_MODEL, dialogue=True) as system:
            yield [replace(candidate, assistant=system) for candidate in candidates]
