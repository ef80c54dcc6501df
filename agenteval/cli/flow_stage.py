"""The simulated user and tools of `flow session`."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, get_args

from agenteval.cli.flow_job import chat_choice, chat_client
from agenteval.errors import InputError

if TYPE_CHECKING:
    from agenteval.evaluators.workflows.cases import OpenRole
    from agenteval.evaluators.workflows.run_session import SessionSettings
    from agenteval.evaluators.workflows.simulators.tools import ToolMode, ToolSimulator
    from agenteval.evaluators.workflows.trials import Sessions
    from agenteval.models.client import Client
    from agenteval.models.factory import ModelChoice
    from agenteval.models.limits import Budget, Limits
    from agenteval.store import Store


@dataclass(frozen=True, slots=True)
class Players:
    """Who plays user and tools, as the command line says it; checked when it is made."""

    user: str
    tools: ToolMode
    choice: ModelChoice | None

    @classmethod
    def of(
        cls, user: str, tools: str, model: str | None, url: str | None, *, need_key: bool = True
    ) -> Players:
        """Raises InputError for a name that is none, and a model that is needed and not there."""
        from agenteval.evaluators.workflows.simulators.tools import ToolMode

        if user not in ("model", "scripted"):
            raise InputError(f"{user!r} is not one of model, scripted", "--user")
        modes: dict[str, ToolMode] = {mode: mode for mode in get_args(ToolMode)}
        if tools not in modes:
            raise InputError(f"{tools!r} is not one of {', '.join(modes)}", "--tools")
        given = model is not None or url is not None
        if not given and (user == "model" or tools == "model"):
            raise InputError(
                "a simulated user or tool on a model needs --simulator PROVIDER:MODEL or "
                "--simulator-url; --user scripted needs none", "--simulator",
            )  # fmt: skip
        choice = chat_choice(model, url, "--simulator", need_key=need_key) if given else None
        return cls(user, modes[tools], choice)

    @property
    def backend(self) -> bool:
        """Whether a role's backend.py answers calls."""
        return self.tools in ("auto", "backend")

    def asks_tools(self, roles: Sequence[OpenRole]) -> bool:
        """Whether the model may answer calls. Raises InputError for a backend that is missing."""
        bare = [of for of in roles if of.backend is None]
        if self.tools == "backend" and bare:
            raise InputError("a role needs a backend.py for --tools backend", str(bare[0].folder))
        if self.choice is None or self.tools == "backend":
            return False
        return bool(bare)


class Stage:
    """The simulators of a campaign. Raises InputError for a backend that is missing."""

    def __init__(
        self, players: Players, roles: Sequence[OpenRole], limits: Limits, settings: SessionSettings
    ) -> None:
        self._players = players
        self._limits = limits
        self._settings = settings
        self.asks_tools = players.asks_tools(roles)
        self.asks = players.user == "model" or self.asks_tools

    def conditions(self) -> dict[str, Any]:
        """What of it can change a session."""
        from agenteval.evaluators.workflows.simulators.tool_model import ToolModel
        from agenteval.evaluators.workflows.simulators.user_scripted import ScriptedUser

        limits = {k: v for k, v in self._settings.parameters.items() if k != "format"}
        found: dict[str, Any] = {"limits": limits, "tools": self._players.tools}
        found["user"] = ScriptedUser().parameters
        if self.asks:
            client = self._unsent()
            if self._players.user == "model":
                found["user"] = _user(client).parameters
            if self.asks_tools:
                found["tool_model"] = {
                    "model": client.model,
                    "endpoint": client.transport.endpoint,
                    "prompts": ToolModel.prompts_sha256(),
                }
        return found

    def _unsent(self) -> Client:
        """A client to know the names of; it opens no connection before it is asked."""
        from agenteval.models.client import Client
        from agenteval.models.factory import make_transport

        assert self._players.choice is not None
        return Client(make_transport(self._players.choice))

    @asynccontextmanager
    async def opened(self, store: Store, budget: Budget) -> AsyncIterator[Sessions]:
        """The act of a session; the simulators' connections end with it."""
        sessions, client = self.sessions(store, budget)
        try:
            yield sessions
        finally:
            if client is not None:
                await client.close()

    def sessions(self, store: Store, budget: Budget | None) -> tuple[Sessions, Client | None]:
        """The act of a session, and the simulators' client, None where no model plays."""
        from agenteval.evaluators.workflows.simulators.user_scripted import ScriptedUser
        from agenteval.evaluators.workflows.trials import Sessions

        client = None
        if self.asks:
            assert self._players.choice is not None
            client = chat_client(self._players.choice, self._limits, store, budget)
        by_model = client is not None and self._players.user == "model"
        user: Any = _user(client) if client is not None and by_model else ScriptedUser()
        return Sessions(user, self._tools(client), self._settings), client

    def _tools(self, client: Client | None) -> Callable[[OpenRole], ToolSimulator]:
        """Simulators by role, each made once."""
        from agenteval.evaluators.workflows.simulators.tools import ToolSimulator

        made: dict[str, ToolSimulator] = {}

        def tools(of: OpenRole) -> ToolSimulator:
            key = str(of.folder)
            if key not in made:
                made[key] = ToolSimulator(
                    self._players.tools,
                    backend=of.backend,
                    backend_sha256=of.backend_sha256,
                    client=client if self.asks_tools else None,
                )
            return made[key]

        return tools

    @property
    def calls(self) -> int:
        """Of a session at most. As published, the limit is looked at between turns only."""
        settings = self._settings
        return settings.calls + (settings.calls_per_turn - 1 if settings.published else 0)

    def replies(self, case: Any) -> tuple[int, int]:
        """Requests to the agent in one session, estimated, and the most there can be: every one
        is answered with words or with a call."""
        most = self._settings.turn_limit(case.profile) + self.calls
        return min(_usual(case.profile), most), most


def _user(client: Client) -> Any:
    from agenteval.evaluators.workflows.simulators.user_model import UserOnModel

    return UserOnModel(client)


def _usual(profile: Any) -> int:
    """Requests to an agent that does what the profile wants, each action with a word before."""
    return 2 * len(profile.actions) + 3
