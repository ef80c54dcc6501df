"""Who plays the user and the tools of sessions, and what of it can change a session."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import get_args

from pydantic import JsonValue

from agenteval.errors import InputError
from agenteval.models.client import Client
from agenteval.workflows.cases import OpenRole
from agenteval.workflows.evaluator import Act, sessions
from agenteval.workflows.run_session import SessionSettings
from agenteval.workflows.simulated_tools import ToolMode, ToolModel, ToolSimulator
from agenteval.workflows.simulated_user import ScriptedUser, UserSimulator
from agenteval.workflows.user_model import UserOnModel

USERS = ("model", "scripted")


def check_players(user: str, tools: str, *, on_model: bool) -> ToolMode:
    """How tools are answered. Raises InputError for a name that is none, and where a model is
    needed and not there (`on_model`)."""
    if user not in USERS:
        raise InputError(f"{user!r} is not one of {', '.join(USERS)}", "--user")
    modes: dict[str, ToolMode] = {mode: mode for mode in get_args(ToolMode)}
    if tools not in modes:
        raise InputError(f"{tools!r} is not one of {', '.join(modes)}", "--tools")
    if not on_model and (user == "model" or tools == "model"):
        raise InputError(
            "a simulated user or tool on a model needs --simulator PROVIDER:MODEL or "
            "--simulator-url; --user scripted needs none",
            "--simulator",
        )
    return modes[tools]


@dataclass(frozen=True)
class Cast:
    """The simulators of the sessions of these roles: `user` is model or scripted, `tools` how calls
    are answered. `on_model` tells whether there is a model to play anybody.

    Raises InputError for a role without the backend that `tools` asks for.
    """

    user: str
    tools: ToolMode
    roles: Sequence[OpenRole]
    settings: SessionSettings
    on_model: bool

    def __post_init__(self) -> None:
        bare = [of for of in self.roles if of.backend is None]
        if self.tools == "backend" and bare:
            raise InputError("a role needs a backend.py for --tools backend", str(bare[0].folder))

    @property
    def asks_tools(self) -> bool:
        """Whether the model may answer calls."""
        bare = any(of.backend is None for of in self.roles)
        return self.on_model and self.tools != "backend" and bare

    @property
    def asks(self) -> bool:
        """Whether a model is asked at all."""
        return self.user == "model" or self.asks_tools

    def conditions(self, client: Client | None) -> dict[str, JsonValue]:
        """What of it can change a session; `client` is one of the model's names."""
        limits = {k: v for k, v in self.settings.parameters.items() if k != "format"}
        conditions: dict[str, JsonValue] = {
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

    @asynccontextmanager
    async def opened(self, client: Client | None) -> AsyncIterator[Act]:
        """How sessions are held; the client is closed at the end."""
        try:
            yield self.act(client)
        finally:
            if client is not None:
                await client.close()

    def act(self, client: Client | None) -> Act:
        """How sessions are held."""
        return sessions(self._user(client), self._tools(client), self.settings)

    @property
    def calls(self) -> int:
        """Of a session at most. As published, the limit is looked at between turns only."""
        settings = self.settings
        return settings.calls + (settings.calls_per_turn - 1 if settings.published else 0)

    def _user(self, client: Client | None) -> UserSimulator:
        if self.user == "scripted":
            return ScriptedUser()
        assert client is not None
        return UserOnModel(client)

    def _tools(self, client: Client | None) -> Callable[[OpenRole], ToolSimulator]:
        """Simulators by role, each made once."""
        made: dict[str, ToolSimulator] = {}

        def tools(of: OpenRole) -> ToolSimulator:
            key = str(of.folder)
            if key not in made:
                made[key] = ToolSimulator(
                    self.tools, backend=of.backend, client=client if self.asks_tools else None
                )
            return made[key]

        return tools
