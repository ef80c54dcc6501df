"""Simulated tools: a backend with state, recorded results, a model, or a generator."""

from __future__ import annotations

import inspect
import json
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

from pydantic import JsonValue

from agenteval.agents.toolbox import AsyncBackend, Backend, is_async
from agenteval.errors import AgentevalError, InputError
from agenteval.evaluators.workflows.folder import StatefulBackend, fresh_backend
from agenteval.evaluators.workflows.scenario import Profile, Role, WorkflowTool
from agenteval.evaluators.workflows.session import Answered, SimulatorMistake
from agenteval.evaluators.workflows.simulators.generator import generate
from agenteval.evaluators.workflows.simulators.recorded import Recorded
from agenteval.evaluators.workflows.simulators.schema import complaint
from agenteval.evaluators.workflows.simulators.tool_model import ToolModel
from agenteval.models.client import Client
from agenteval.records import Usage, canonical_json

ToolMode = Literal["auto", "backend", "recorded", "model", "generated"]
_KEPT = 500  # characters of a mistake


class ToolSimulator:
    """What stands behind the tools of all sessions of a role.

    `auto` is the backend where one is given, else as `recorded`. `recorded` takes the result of
    the same call in a recorded session, where there is none a model's when a client is given, else
    a generated one. `backend`, `model` and `generated` ask that one alone; but a generated answer
    takes the place of a model's that fits no schema, and the mistake is recorded.
    Raises InputError for a mode that lacks its part.
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
        self._client = client if not stateful and mode != "generated" else None
        self._recorded = not stateful and mode in ("auto", "recorded")
        self._backend_sha256 = backend_sha256 if stateful else None

    @property
    def parameters(self) -> dict[str, JsonValue]:
        """Everything that can change what the tools return."""
        found: dict[str, JsonValue] = {"version": 1}
        if self._backend is not None:
            return {**found, "tools": "backend", "backend_sha256": self._backend_sha256}
        if self._client is not None:
            found |= {
                "model": self._client.model,
                "endpoint": self._client.transport.endpoint,
                "prompts": ToolModel.prompts_sha256(),
            }
        last = "model" if self._client else "generated"
        return {**found, "tools": f"recorded+{last}" if self._recorded else last}

    def open(self, role: Role, profile: Profile, *, seed: int = 0, repeat: int = 0) -> ToolSession:
        """The tools of one session, in their first state.

        Raises InputError for a backend that cannot be made or lacks the method of a tool, and for
        a tool that nothing can answer for: results are made up, and its schema cannot be filled.
        """
        tools = {tool.name: tool for tool in role.tools_of(role.given(profile.scenarios))}
        session = ToolSession(tools, seed=seed, today=role.now)
        if self._backend is not None:
            session.machine = _made(self._backend, tools)
        if self._recorded:
            session.recorded = Recorded(role, profile, session.fits)
        if self._client is not None:
            session.model = ToolModel(self._client, role, seed, repeat)
        elif self._backend is None:
            for tool in tools.values():  # now, not when an agent has worked for an hour
                generate(tool, {}, seed=seed, today=role.now)
        return session


class ToolSession:
    """The tools of one session: `backend` is what a Toolbox is given.

    Arguments are checked by the tool's own schema, whatever the agent was told of it; results by
    that of what it returns: a backend that breaks it is a defect, never the agent's mistake.
    `turn` is set by whoever runs the session, to say when a mistake was made.
    """

    def __init__(
        self, tools: Mapping[str, WorkflowTool], *, seed: int = 0, today: str = ""
    ) -> None:
        self.tools = dict(tools)
        self.machine: StatefulBackend | None = None
        self.recorded: Recorded | None = None
        self.model: ToolModel | None = None
        self.mistakes: list[SimulatorMistake] = []
        self.usage = Usage()
        self.turn = 0
        self._seed = seed
        self._today = today
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
        value, answered = self._without_model(tool, arguments)
        return self._told(tool, arguments, value, answered)

    async def _in_time(self, name: str, arguments: Mapping[str, Any]) -> str:
        tool = self._checked(name, arguments)
        assert self.model is not None
        value = self.recorded.answer(name, arguments) if self.recorded else None
        answered: Answered = "recorded"
        if value is None:
            value, answered = await self._from_model(self.model, tool, arguments), "model"
        if value is None:
            value, answered = self._generated(tool, arguments), "generated"
        return self._told(tool, arguments, value, answered)

    def _checked(self, name: str, arguments: Mapping[str, Any]) -> WorkflowTool:
        tool = self.tools[name]
        problem = complaint(tool.parameters, dict(arguments))
        if problem:
            raise ValueError(f"{problem[:_KEPT]}.")
        return tool

    def _without_model(
        self, tool: WorkflowTool, arguments: Mapping[str, Any]
    ) -> tuple[JsonValue, Answered]:
        if self.machine is not None:
            return self._from_machine(self.machine, tool, arguments), "backend"
        value = self.recorded.answer(tool.name, arguments) if self.recorded else None
        if value is not None:
            return value, "recorded"
        return self._generated(tool, arguments), "generated"

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

    def _generated(self, tool: WorkflowTool, arguments: Mapping[str, Any]) -> JsonValue:
        try:
            return generate(tool, arguments, seed=self._seed, today=self._today)
        except InputError as error:  # of this session, since a model answers other calls
            raise AgentevalError(f"{tool.name} cannot be answered: {error}") from error

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
