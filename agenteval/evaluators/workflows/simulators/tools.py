"""Simulated tools: a backend with state, recorded results, or a model."""

from __future__ import annotations

import copy
import inspect
import json
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

from pydantic import JsonValue

from agenteval.agents.toolbox import AsyncBackend, Backend, is_async
from agenteval.errors import AgentevalError, InputError
from agenteval.evaluators.workflows.folder import StatefulBackend, fresh_backend
from agenteval.evaluators.workflows.scenario import Profile, RecordedSession, Role, WorkflowTool
from agenteval.evaluators.workflows.session import Answered, SimulatorMistake
from agenteval.evaluators.workflows.simulators.schema import complaint
from agenteval.evaluators.workflows.simulators.tool_model import ToolModel
from agenteval.models.client import Client
from agenteval.records import Usage, canonical_json

ToolMode = Literal["auto", "backend", "recorded", "model"]
_KEPT = 500  # characters of a mistake


class ToolSimulator:
    """What stands behind the tools of all sessions of a role.

    `auto` is the backend where one is given, else as `recorded`. `recorded` takes the result of
    the same call in a recorded session, where there is none a model's when a client is given.
    `backend` and `model` ask that one alone. A call that nobody can answer ends the session
    without a verdict: nothing is made up. Raises InputError for a mode that lacks its part.
    """

    def __init__(
        self,
        mode: ToolMode = "auto",
        *,
        backend: Callable[[], StatefulBackend] | None = None,
        backend_sha256: str | None = None,
        client: Client | None = None,
    ) -> None:
        if mode not in get_args(ToolMode):
            raise InputError(f"tools are one of {', '.join(get_args(ToolMode))}, not {mode!r}")
        if mode == "backend" and backend is None:
            raise InputError("tools by a backend need the backend.py of the role")
        if mode == "model" and client is None:
            raise InputError("tools by a model need a model")
        stateful = backend is not None and mode in ("auto", "backend")
        self._backend = backend if stateful else None
        self._client = client if not stateful else None
        self._recorded = not stateful and mode in ("auto", "recorded")
        self._backend_sha256 = backend_sha256 if stateful else None

    @property
    def parameters(self) -> dict[str, JsonValue]:
        """Everything that can change what the tools return."""
        found: dict[str, JsonValue] = {"version": 2}
        if self._backend is not None:
            return {**found, "tools": "backend", "backend_sha256": self._backend_sha256}
        if self._client is not None:
            found |= {
                "model": self._client.model,
                "endpoint": self._client.transport.endpoint,
                "prompts": ToolModel.prompts_sha256(),
            }
        both = ["recorded"] * self._recorded + ["model"] * (self._client is not None)
        return {**found, "tools": "+".join(both)}

    def open(self, role: Role, profile: Profile, *, seed: int = 0, repeat: int = 0) -> ToolSession:
        """The tools of one session, in their first state.

        Raises InputError for a backend that cannot be made or lacks the method of a tool.
        """
        tools = {tool.name: tool for tool in role.tools_of(role.given(profile.scenarios))}
        session = ToolSession(tools)
        if self._backend is not None:
            session.machine = _made(self._backend, tools)
        if self._recorded:
            session.recorded = Recorded(role, profile, session.fits)
        if self._client is not None:
            session.model = ToolModel(self._client, role, seed, repeat)
        return session


class ToolSession:
    """The tools of one session: `backend` is what a Toolbox is given.

    Arguments are checked by the tool's own schema, whatever the agent was told of it; results by
    that of what it returns: a backend that breaks it is a defect, never the agent's mistake.
    `turn` is set by whoever runs the session, to say when a mistake was made.
    """

    def __init__(self, tools: Mapping[str, WorkflowTool]) -> None:
        self.tools = dict(tools)
        self.machine: StatefulBackend | None = None
        self.recorded: Recorded | None = None
        self.model: ToolModel | None = None
        self.mistakes: list[SimulatorMistake] = []
        self.usage = Usage()
        self.turn = 0
        self._answered: dict[str, deque[Answered]] = {}

    @property
    def backend(self) -> Backend | AsyncBackend:
        """One that answers at once, or one that takes its time: a model's."""
        return self._at_once if self.model is None else self._in_time

    def answered(self, tool: str, arguments: JsonValue) -> Answered:
        """Who answered the oldest such call not asked for yet; "refused": it never came here."""
        line = self._answered.get(canonical_json([tool, arguments]))
        return line.popleft() if line else "refused"

    def state(self) -> JsonValue:
        """A copy of the backend's state, None without one. AgentevalError: it is no JSON."""
        if self.machine is None:
            return None
        try:
            return json.loads(json.dumps(self.machine.state, allow_nan=False))  # type: ignore[no-any-return]
        except Exception as error:  # also what a property of the backend's own raises
            told = f"{type(error).__name__}: {error}"
            raise AgentevalError(f"the state of the backend is no JSON value: {told}") from error

    def fits(self, tool: str, value: JsonValue) -> bool:
        """Whether the tool may return this value."""
        return tool in self.tools and complaint(self.tools[tool].returns, value) is None

    def _at_once(self, name: str, arguments: Mapping[str, Any]) -> str:
        tool = self._checked(name, arguments)
        if self.machine is not None:
            value = self._from_machine(self.machine, tool, arguments)
            return self._told(tool, arguments, value, "backend")
        value = self.recorded.answer(name, arguments) if self.recorded else None
        if value is None:
            raise AgentevalError(
                f"{name} cannot be answered: no recorded session holds this call, and there is "
                "neither a backend.py nor a model for tools (--simulator)"
            )
        return self._told(tool, arguments, value, "recorded")

    async def _in_time(self, name: str, arguments: Mapping[str, Any]) -> str:
        tool = self._checked(name, arguments)
        assert self.model is not None
        value = self.recorded.answer(name, arguments) if self.recorded else None
        answered: Answered = "recorded"
        if value is None:
            value, answered = await self._from_model(self.model, tool, arguments), "model"
        if value is None:
            raise AgentevalError(
                f"{name} cannot be answered: twice the model's answer was none that it may return"
            )
        return self._told(tool, arguments, value, answered)

    def _checked(self, name: str, arguments: Mapping[str, Any]) -> WorkflowTool:
        tool = self.tools[name]
        problem = complaint(tool.parameters, dict(arguments))
        if problem:
            raise ValueError(f"{problem[:_KEPT]}.")
        return tool

    def _from_machine(
        self, machine: StatefulBackend, tool: WorkflowTool, arguments: Mapping[str, Any]
    ) -> JsonValue:
        try:
            value: JsonValue = getattr(machine, tool.name)(**json.loads(json.dumps(arguments)))
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a backend that exits must not look like an agent that does
            if type(error) is ValueError:
                self._note(tool.name, arguments, "backend")  # its refusal is its answer
                raise
            told = f"{type(error).__name__}: {error}"
            raise AgentevalError(f"defect of the backend: {tool.name} raised {told}") from error
        if inspect.iscoroutine(value):
            value.close()
            raise AgentevalError(f"defect of the backend: {tool.name} has to be awaited")
        return value

    async def _from_model(
        self, model: ToolModel, tool: WorkflowTool, arguments: Mapping[str, Any]
    ) -> JsonValue:
        try:
            played = await model.answer(tool, arguments)
        except AgentevalError as error:
            self.usage += error.spent or Usage()
            raise
        self.usage += played.usage
        self.mistakes += [
            SimulatorMistake(who="tools", kind="off_schema", turn=self.turn, text=text[:_KEPT])
            for text in played.wrong
        ]
        return played.value

    def _told(
        self,
        tool: WorkflowTool,
        arguments: Mapping[str, Any],
        value: JsonValue,
        answered: Answered,
    ) -> str:
        """The result as text. Raises AgentevalError when the tool may not return it."""
        try:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False)
            problem = complaint(tool.returns, json.loads(text))
        except (TypeError, ValueError, RecursionError) as error:
            problem = f"no JSON value ({error})"
        if problem:
            told = f"{tool.name} returned what its schema forbids: {problem[:_KEPT]}"
            raise AgentevalError(f"defect of the {answered} tools: {told}")
        self._note(tool.name, arguments, answered)
        return text

    def _note(self, name: str, arguments: Mapping[str, Any], answered: Answered) -> None:
        key = canonical_json([name, dict(arguments)])
        self._answered.setdefault(key, deque()).append(answered)


def _made(
    backend: Callable[[], StatefulBackend], tools: Mapping[str, WorkflowTool]
) -> StatefulBackend:
    machine = fresh_backend(backend)
    for name in tools:
        method = getattr(machine, name, None)
        if not callable(method):
            raise InputError(f"the backend of the role has no method {name}")
        if is_async(method):
            raise InputError(f"the backend's {name} is an `async def`; it has to answer at once")
    return machine


class Recorded:
    """Replays results: same tool, same arguments up to case, blanks and empty values.

    The sessions of the user's own profile come first. A call made for the n-th time gets the n-th
    result of the first session that holds it, later ones its last. Results that are none
    (`fits` says so) are not replayed.
    """

    def __init__(
        self, role: Role, profile: Profile, fits: Callable[[str, JsonValue], bool]
    ) -> None:
        self._results: dict[str, list[JsonValue]] = {}
        self._asked: dict[str, int] = {}
        for session in _sessions(role, profile):
            mine: dict[str, list[JsonValue]] = {}
            for turn in session.turns:
                if turn.kind == "call" and fits(turn.tool, turn.result):
                    mine.setdefault(key_of(turn.tool, turn.arguments), []).append(turn.result)
            for key, results in mine.items():
                self._results.setdefault(key, results)

    def answer(self, tool: str, arguments: Mapping[str, Any]) -> JsonValue:
        """A copy of the recorded result, None where there is none."""
        key = key_of(tool, arguments)
        results = self._results.get(key)
        if results is None:
            return None
        before = self._asked.get(key, 0)
        self._asked[key] = before + 1
        return copy.deepcopy(results[min(before, len(results) - 1)])


def _sessions(role: Role, profile: Profile) -> list[RecordedSession]:
    """Those of the profile's scenarios and those that cross them, the profile's own first."""
    found = [s for name in profile.scenarios for s in role.scenario(name).sessions]
    found += role.cross_sessions
    return sorted(found, key=lambda session: session.profile != profile.id)


def key_of(tool: str, arguments: Mapping[str, Any]) -> str:
    """The same for calls that mean the same."""
    return canonical_json([tool, _plain(dict(arguments))])


def _plain(value: JsonValue) -> JsonValue:
    if isinstance(value, str):
        return " ".join(value.casefold().split())
    if isinstance(value, float) and value.is_integer():
        return int(value)
    if isinstance(value, dict):
        return {k: _plain(v) for k, v in value.items() if v not in (None, "", [], {})}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    return value
