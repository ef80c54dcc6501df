"""Simulated tools: the role's backend, recorded results, or a model, whose answers fit the tool's
schema or are none."""

from __future__ import annotations

import copy
import json
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Literal, get_args

from pydantic import JsonValue

from agenteval.agents.toolbox import AsyncBackend, Backend, is_async
from agenteval.errors import AgentevalError, InputError, ReplyError
from agenteval.models.asking import ask
from agenteval.models.client import Client
from agenteval.models.prompts import load_prompt
from agenteval.models.reply import parse_reply
from agenteval.models.wire import NONCE, Request, one_line
from agenteval.records import Usage, canonical_json, content_hash
from agenteval.workflows.backend import StatefulBackend, call_tool, fresh_backend
from agenteval.workflows.scenario import Profile, Role, WorkflowTool, complaint
from agenteval.workflows.session import Answered, SimulatorMistake
from agenteval.workflows.values import normalised

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

    def open(self, role: Role, profile: Profile, *, seed: int = 0, repeat: int = 0) -> ToolSession:
        """The tools of one session, in their first state.

        Raises InputError for a backend that cannot be made or lacks the method of a tool.
        """
        tools = {tool.name: tool for tool in role.tools_of(role.given(profile.scenarios))}
        session = ToolSession(tools)
        if self._backend is not None:
            session.machine = machine = fresh_backend(self._backend)
            for name in tools:
                method = getattr(machine, name, None)
                if not callable(method):
                    raise InputError(f"the backend of the role has no method {name}")
                if is_async(method):
                    problem = f"the backend's {name} is an `async def`; it has to answer at once"
                    raise InputError(problem)
        if self._recorded:
            session.recorded = RecordedResults(role, profile, tools)
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
        self.recorded: RecordedResults | None = None
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
            problem = f"{type(error).__name__}: {error}"
            raise AgentevalError(f"the state of the backend is no JSON value: {problem}") from error

    def _at_once(self, name: str, arguments: Mapping[str, Any]) -> str:
        tool, recorded = self._looked_up(name, arguments)
        if self.machine is not None:
            return self._told(tool, arguments, self._from_backend(tool, arguments), "backend")
        if recorded is None:
            raise AgentevalError(
                f"{name} cannot be answered: no recorded session holds this call, and there is "
                "neither a backend.py nor a model for tools (--simulator)"
            )
        return self._told(tool, arguments, recorded, "recorded")

    async def _in_time(self, name: str, arguments: Mapping[str, Any]) -> str:
        tool, recorded = self._looked_up(name, arguments)
        if recorded is not None:
            return self._told(tool, arguments, recorded, "recorded")
        assert self.model is not None
        repaired = False
        try:
            value, usage = await self.model.answer(tool, arguments)
            repaired = True
        except ReplyError as error:
            self.usage += error.spent or Usage()
            problem = "twice the model's answer was none that it may return"
            raise AgentevalError(f"{name} cannot be answered: {problem}") from error
        except AgentevalError as error:
            self.usage += error.spent or Usage()
            raise
        finally:
            self.mistakes += [
                SimulatorMistake(
                    who="tools",
                    kind="off_schema",
                    turn=self.turn,
                    text=text[:_KEPT],
                    repaired=repaired,
                )
                for text in self.model.wrong
            ]
            self.model.wrong.clear()
        self.usage += usage
        return self._told(tool, arguments, value, "model")

    def _looked_up(self, name: str, arguments: Mapping[str, Any]) -> tuple[WorkflowTool, JsonValue]:
        """The tool, and what is recorded of this call. Raises ValueError: the call is refused."""
        tool = self.tools[name]
        problem = complaint(tool.parameters, dict(arguments))
        if problem:
            raise ValueError(f"{problem[:_KEPT]}.")
        return tool, self.recorded.answer(name, arguments) if self.recorded else None

    def _from_backend(self, tool: WorkflowTool, arguments: Mapping[str, Any]) -> JsonValue:
        assert self.machine is not None
        try:
            return call_tool(self.machine, tool.name, arguments)
        except ValueError:  # a refusal is the backend's answer
            self._note(tool.name, arguments, "backend")
            raise

    def _told(
        self, tool: WorkflowTool, arguments: Mapping[str, Any], value: JsonValue, answered: Answered
    ) -> str:
        """The result as text. Raises AgentevalError when the tool may not return it."""
        try:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False)
            problem = complaint(tool.returns, json.loads(text))
        except (TypeError, ValueError, RecursionError) as error:
            problem = f"no JSON value ({error})"
        if problem:
            returned = f"{tool.name} returned what its schema forbids: {problem[:_KEPT]}"
            raise AgentevalError(f"defect of the {answered} tools: {returned}")
        self._note(tool.name, arguments, answered)
        return text

    def _note(self, name: str, arguments: Mapping[str, Any], answered: Answered) -> None:
        key = canonical_json([name, dict(arguments)])
        self._answered.setdefault(key, deque()).append(answered)


class RecordedResults:
    """Replays results: same tool, arguments that are the same by rule (`values.normalised`).

    The sessions of the user's own profile come first. A call made for the n-th time gets the n-th
    result of the first session that holds it, later ones its last. Results that the tool may not
    return are not replayed.
    """

    def __init__(self, role: Role, profile: Profile, tools: Mapping[str, WorkflowTool]) -> None:
        self._results: dict[str, list[JsonValue]] = {}
        self._asked: dict[str, int] = {}
        sessions = [s for name in profile.scenarios for s in role.scenario(name).sessions]
        sessions += role.cross_sessions
        for session in sorted(sessions, key=lambda session: session.profile != profile.id):
            mine: dict[str, list[JsonValue]] = {}
            for turn in session.turns:
                tool = tools.get(turn.tool) if turn.kind == "call" else None
                if tool is not None and complaint(tool.returns, turn.result) is None:
                    mine.setdefault(_key(turn.tool, turn.arguments), []).append(turn.result)
            for key, results in mine.items():
                self._results.setdefault(key, results)

    def answer(self, tool: str, arguments: Mapping[str, Any]) -> JsonValue:
        """A copy of the recorded result, None where there is none."""
        key = _key(tool, arguments)
        results = self._results.get(key)
        if results is None:
            return None
        before = self._asked.get(key, 0)
        self._asked[key] = before + 1
        return copy.deepcopy(results[min(before, len(results) - 1)])


def _key(tool: str, arguments: Mapping[str, Any]) -> str:
    return canonical_json([tool, normalised(dict(arguments))])


_PACKAGE = "agenteval.workflows"
_MAX_TOKENS = 1000
_SHOWN = 20  # requests before
_PROBLEM = 300  # characters
_LONGEST = 2000  # characters kept of a request before, and of its answer


class ToolModel:
    """Answers calls over a client, with one repair. One for each session: it keeps what it said,
    so that equal requests have equal answers until a tool changed something. `wrong` are the
    answers that did not fit."""

    def __init__(self, client: Client, role: Role, seed: int = 0, repeat: int = 0) -> None:
        self._client = client
        self._role = role
        self._seed = seed
        self._repeat = repeat
        self.wrong: list[str] = []
        self._before: list[str] = []
        self._known: dict[str, JsonValue] = {}

    @staticmethod
    def prompts_sha256() -> str:
        """One hash over the prompts."""
        names = ("tool_system", "tool_turn", "tool_repair")
        return content_hash([load_prompt(_PACKAGE, name).sha256 for name in names])

    async def answer(
        self, tool: WorkflowTool, arguments: Mapping[str, Any]
    ) -> tuple[JsonValue, Usage]:
        """What the tool returns, and what that took.

        Raises ReplyError where even the repaired answer does not fit, and what the client raises,
        `spent` set.
        """
        asked = f"{tool.name}({json.dumps(dict(arguments), ensure_ascii=False, sort_keys=True)})"
        if asked in self._known:
            return self._known[asked], Usage()

        def read(text: str) -> JsonValue:
            try:
                value: JsonValue = parse_reply(text, lambda v: isinstance(v, dict)).value
                if problem := complaint(tool.returns, value):
                    raise ReplyError(one_line(problem)[:_PROBLEM])
            except ReplyError:
                self.wrong.append(text)
                raise
            return value

        def repair(problem: str) -> str:
            return load_prompt(_PACKAGE, "tool_repair").render(problem=problem)

        reply = await ask(self._client, self._request(tool, asked), read, repair)
        if tool.effect != "read":
            self._known.clear()
        else:
            self._known[asked] = reply.value
        parts = (asked, json.dumps(reply.value, ensure_ascii=False))
        short = [text if len(text) <= _LONGEST else f"{text[:_LONGEST]} …" for text in parts]
        self._before.append(" -> ".join(short))
        return reply.value, reply.usage

    def longest(self, tool: WorkflowTool) -> Request:
        """A request with as long a past as one can show, to know what it may take."""
        full = ToolModel(self._client, self._role, self._seed, self._repeat)
        full._before = [f"{'x' * _LONGEST} -> {'x' * _LONGEST}"] * _SHOWN
        return full._request(tool, "x" * _LONGEST)

    def _request(self, tool: WorkflowTool, asked: str) -> Request:
        parameters = json.dumps(tool.parameters, ensure_ascii=False)
        system = load_prompt(_PACKAGE, "tool_system").render(
            tool=f"{tool.name}: {tool.description}\n{parameters}",
            returns=json.dumps(tool.returns, ensure_ascii=False),
            background=self._role.background,
            now=self._role.now,
            nonce=NONCE,
        )
        turn = load_prompt(_PACKAGE, "tool_turn").render(
            before=self._before[-_SHOWN:], request=asked
        )
        seed = int(content_hash([self._seed, self._repeat, len(self._before)])[:7], 16)
        return Request(
            messages=({"role": "system", "content": system}, {"role": "user", "content": turn}),
            schema=tool.returns,
            parameters={"seed": seed, "max_tokens": _MAX_TOKENS, "temperature": 0},
            repeat=self._repeat,
            role="tool",
            run_id=tool.name,
        )
