"""The assistants that `--agent` can name for workflows: those of all agents, and `template`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

from agenteval.agents import spec as agents
from agenteval.agents.dialogue import AssistantSystem
from agenteval.agents.spec import AgentSettings, ScriptedAssistants

if TYPE_CHECKING:
    from agenteval.agents.endpoint import Endpoint
    from agenteval.models.client import Client


def _template(endpoint: Endpoint, client: Client) -> AssistantSystem:
    from agenteval.evaluators.workflows.templated import template_assistant

    return template_assistant(endpoint, client)


ON_MODEL: agents.OnModel = {"template": _template}


def assistant(
    spec: str, settings: AgentSettings | None = None, scripted: ScriptedAssistants | None = None
) -> AssistantSystem:
    """The assistant meant by `spec`, nothing started; see `agents.spec.assistant`."""
    return agents.assistant(spec, settings, scripted, ON_MODEL)


@asynccontextmanager
async def opened_assistant(
    spec: str, settings: AgentSettings | None = None, scripted: ScriptedAssistants | None = None
) -> AsyncIterator[AssistantSystem]:
    """As `assistant`; the connections of its model are closed at the end of the block."""
    async with agents.opened_assistant(spec, settings, scripted, ON_MODEL) as chosen:
        yield chosen
