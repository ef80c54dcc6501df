"""The simulated user and tools of sessions, and everything about them that can change a session."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import get_args

from pydantic import JsonValue

from agenteval.errors import InputError
from agenteval.models.client import Client
from agenteval.workflows.cases import OpenRole, SessionCase
from agenteval.workflows.options import one_of
from agenteval.workflows.run_session import VERSION, SessionSettings, run_session
from agenteval.workflows.session import SessionFailure, SessionLog
from agenteval.workflows.simulated_tools import ToolMode, ToolModel, ToolSimulator
from agenteval.workflows.simulated_user import ScriptedUser, UserSimulator
from agenteval.workflows.user_model import UserOnModel
from agenteval.workflows.variants import AgentVariant


def check_simulators(user: str, tools: str, *, on_model: bool) -> ToolMode:
    """Return how tools are answered.

    Raises InputError for an unknown name, and where a model is needed but none is given
    (`on_model`).
    """
    one_of(user, ("model", "scripted"), "--user")
    mode: ToolMode = one_of(tools, get_args(ToolMode), "--tools")
    if not on_model and (user == "model" or tools == "model"):
        raise InputError(
            "model-based users and tools need --simulator PROVIDER:MODEL or --simulator-url; "
            "--user scripted does not",
            "--simulator",
        )
    return mode


@dataclass(frozen=True)
class Simulators:
    """The simulators of sessions of these roles.

    `user` is model or scripted, `tools` is how calls are answered, and `on_model` is whether a
    model is used. Raises InputError for a role without the backend required by `tools`.
    """

    user: str
    tools: ToolMode
    roles: Sequence[OpenRole]
    settings: SessionSettings
    on_model: bool

    def __post_init__(self) -> None:
        without = [of for of in self.roles if of.backend is None]
        if self.tools == "backend" and without:
            folder = str(without[0].folder)
            raise InputError("a role needs a backend.py for --tools backend", folder)

    @property
    def asks_tools(self) -> bool:
        """Whether the model may answer calls."""
        without = any(of.backend is None for of in self.roles)
        return self.on_model and self.tools != "backend" and without

    @property
    def asks(self) -> bool:
        """Whether a model is asked at all."""
        return self.user == "model" or self.asks_tools

    @property
    def most_calls(self) -> int:
        """Calls of a session at most. As published, the limit is checked only between turns."""
        settings = self.settings
        return settings.calls + (settings.calls_per_turn - 1 if settings.published else 0)

    def conditions(self, client: Client | None) -> dict[str, JsonValue]:
        """Return what of them can change a session; `client` is one to the model."""
        limits = {k: v for k, v in self.settings.parameters.items() if k != "format"}
        conditions: dict[str, JsonValue] = {
            "loop": VERSION,
            "limits": limits,
            "tools": self.tools,
            "user": self._user(client).parameters,
        }
        if self.asks_tools:
            assert client is not None
            conditions["tool_model"] = {
                "model": client.model,
                "endpoint": client.address,
                "prompts": ToolModel.prompts_sha256(),
            }
        return conditions

    async def session(
        self, case: SessionCase, variant: AgentVariant, number: int, *, client: Client | None
    ) -> SessionLog | SessionFailure:
        """Run one session; repeats differ by the number of their trial."""
        tools = ToolSimulator(
            self.tools, backend=case.of.backend, client=client if self.asks_tools else None
        )
        settings = replace(self.settings, format=variant.format, repeat=number)
        agent, user = variant.agent_for(case), self._user(client)
        return await run_session(case.of.role, case.profile, agent, user, tools, settings)

    def _user(self, client: Client | None) -> UserSimulator:
        if self.user == "scripted":
            return ScriptedUser()
        assert client is not None
        return UserOnModel(client)
