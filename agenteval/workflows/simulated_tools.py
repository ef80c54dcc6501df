"""Simulated tools: the role's backend, recorded results, or a model with answers that fit the
tool's schema."""

from __future__ import annotations

import copy
import json
from collections import defaultdict, deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

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
from agenteval.workflows.equality import normalised
from agenteval.workflows.scenario import Profile, Role, WorkflowTool, complaint
from agenteval.workflows.session import Answered, SimulatorMistake

ToolMode = Literal["auto", "backend", "recorded", "model"]
_PACKAGE = "agenteval.workflows"
_MOST_MISTAKE = 500  # characters
_MOST_PROBLEM = 300  # characters
_MOST_SHOWN = 2000  # characters of an earlier request, and of its answer
_EARLIER = 20  # earlier requests in the prompt
_MAX_TOKENS = 1000


@dataclass(frozen=True)
class ToolSimulator:
    """Answers the calls in all sessions of a role.

    `auto` is the backend if there is one, else `recorded`. `recorded` uses the result of the same
    call in a recorded session, or else a model if a client is given. `backend` and `model` use only
    that source. A call without an answer ends the session without a verdict: results are never
    invented.
    """

    mode: ToolMode = "auto"
    backend: Callable[[], StatefulBackend] | None = field(default=None, kw_only=True)
    client: Client | None = field(default=None, kw_only=True)

    def open(self, role: Role, profile: Profile, *, seed: int = 0, repeat: int = 0) -> ToolSession:
        """Return the tools of one session, in their initial state.

        Raises InputError if the backend cannot be created or lacks the method of a tool.
        """
        tools = {tool.name: tool for tool in role.tools_of(role.given(profile.scenarios))}
        session = ToolSession(tools)
        if self.backend is not None and self.mode in ("auto", "backend"):
            session.machine = fresh_backend(self.backend)
            for name in tools:
                method = getattr(session.machine, name, None)
                if not callable(method):
                    raise InputError(f"the backend of the role has no method {name}")
                if is_async(method):
                    problem = f"the backend's {name} must not be an `async def`"
                    raise InputError(problem)
            return session
        if self.mode in ("auto", "recorded"):
            session.recorded = RecordedResults(role, profile, tools)
        if self.client is not None:
            session.model = ToolModel(self.client, role, seed, repeat)
        return session


class ToolSession:
    """The tools of one session; `backend` is that of a Toolbox.

    Arguments are checked against the tool's own schema, even if the agent got a different one, and
    results against the schema of returned values: an invalid result is a defect of the backend,
    never the agent's mistake. The caller sets `turn`, which is recorded with mistakes.
    """

    def __init__(self, tools: Mapping[str, WorkflowTool]) -> None:
        self.tools = dict(tools)
        self.machine: StatefulBackend | None = None
        self.recorded: RecordedResults | None = None
        self.model: ToolModel | None = None
        self.mistakes: list[SimulatorMistake] = []
        self.usage = Usage()
        self.turn = 0
        self._answered: defaultdict[str, deque[Answered]] = defaultdict(deque)

    @property
    def backend(self) -> Backend | AsyncBackend:
        """A function, or a coroutine function if a model answers."""
        return self._answer if self.model is None else self._answer_async

    def answered(self, tool: str, arguments: JsonValue) -> Answered:
        """Return the source of the answer to the oldest matching call not yet queried, or
        "refused"."""
        queue = self._answered[canonical_json([tool, arguments])]
        return queue.popleft() if queue else "refused"

    def state(self) -> JsonValue:
        """Return a copy of the state, or None. Raises AgentevalError if it is not JSON."""
        if self.machine is None:
            return None
        try:
            return json.loads(json.dumps(self.machine.state, allow_nan=False))  # type: ignore[no-any-return]
        except Exception as error:  # a property of the backend may raise anything
            problem = f"{type(error).__name__}: {error}"
            raise AgentevalError(f"the state of the backend is no JSON value: {problem}") from error

    def _answer(self, name: str, arguments: Mapping[str, Any]) -> str:
        tool, recorded = self._looked_up(name, arguments)
        if self.machine is not None:
            try:
                value = call_tool(self.machine, name, arguments)
            except ValueError:  # a refusal is the backend's answer
                self._note(name, arguments, "backend")
                raise
            return self._result(tool, arguments, value, "backend")
        if recorded is None:
            raise AgentevalError(
                f"{name} cannot be answered: no recorded session holds this call, and there is "
                "neither a backend.py nor a model for tools (--simulator)"
            )
        return self._result(tool, arguments, recorded, "recorded")

    async def _answer_async(self, name: str, arguments: Mapping[str, Any]) -> str:
        tool, recorded = self._looked_up(name, arguments)
        if recorded is not None:
            return self._result(tool, arguments, recorded, "recorded")
        assert self.model is not None
        repaired = False
        try:
            value, usage = await self.model.answer(tool, arguments)
            self.usage += usage
            repaired = True
        except AgentevalError as error:
            self.usage += error.spent or Usage()
            if not isinstance(error, ReplyError):
                raise
            problem = "twice the model's answer was none that it may return"
            raise AgentevalError(f"{name} cannot be answered: {problem}") from error
        finally:
            for text in self.model.wrong:
                mistake = SimulatorMistake(
                    who="tools", kind="off_schema", turn=self.turn, text=text[:_MOST_MISTAKE]
                )
                self.mistakes.append(mistake.model_copy(update={"repaired": repaired}))
            self.model.wrong.clear()
        return self._result(tool, arguments, value, "model")

    def _looked_up(self, name: str, arguments: Mapping[str, Any]) -> tuple[WorkflowTool, JsonValue]:
        """Return the tool and the recorded result of this call. Raises ValueError to refuse it."""
        tool = self.tools[name]
        if problem := complaint(tool.parameters, dict(arguments)):
            raise ValueError(f"{problem[:_MOST_MISTAKE]}.")
        return tool, self.recorded.answer(name, arguments) if self.recorded else None

    def _result(
        self, tool: WorkflowTool, arguments: Mapping[str, Any], value: JsonValue, answered: Answered
    ) -> str:
        """Return the result as text. Raises AgentevalError if the schema does not allow it."""
        try:
            text = json.dumps(value, ensure_ascii=False, allow_nan=False)
            problem = complaint(tool.returns, json.loads(text))
        except (TypeError, ValueError, RecursionError) as error:
            problem = f"no JSON value ({error})"
        if problem:
            returned = f"{tool.name} returned what its schema forbids: {problem[:_MOST_MISTAKE]}"
            raise AgentevalError(f"defect of the {answered} tools: {returned}")
        self._note(tool.name, arguments, answered)
        return text

    def _note(self, name: str, arguments: Mapping[str, Any], answered: Answered) -> None:
        self._answered[canonical_json([name, dict(arguments)])].append(answered)


class RecordedResults:
    """Replays recorded results of calls with the same tool and arguments that are equal by rule
    (`equality.normalised`).

    Sessions of the user's own profile come first. The n-th call gets the n-th result of the first
    session that has the call; additional calls get the last result. Invalid results are not
    replayed.
    """

    def __init__(self, role: Role, profile: Profile, tools: Mapping[str, WorkflowTool]) -> None:
        self._results: dict[str, list[JsonValue]] = {}
        self._asked: defaultdict[str, int] = defaultdict(int)
        sessions = [s for name in profile.scenarios for s in role.scenario(name).sessions]
        sessions += role.cross_sessions
        for session in sorted(sessions, key=lambda session: session.profile != profile.id):
            results: defaultdict[str, list[JsonValue]] = defaultdict(list)
            for turn in session.turns:
                tool = tools.get(turn.tool) if turn.kind == "call" else None
                if tool is not None and complaint(tool.returns, turn.result) is None:
                    results[_call_key(turn.tool, turn.arguments)].append(turn.result)
            self._results = {**results, **self._results}

    def answer(self, tool: str, arguments: Mapping[str, Any]) -> JsonValue:
        """Return a copy of the recorded result, or None."""
        key = _call_key(tool, arguments)
        results = self._results.get(key)
        if results is None:
            return None
        self._asked[key] += 1
        return copy.deepcopy(results[min(self._asked[key], len(results)) - 1])


def _call_key(tool: str, arguments: Mapping[str, Any]) -> str:
    return canonical_json([tool, normalised(dict(arguments))])


class ToolModel:
    """Answers the calls of one session with a model, with one repair.

    Equal requests get equal answers until a tool has changed something. `wrong` are the invalid
    answers.
    """

    def __init__(self, client: Client, role: Role, seed: int = 0, repeat: int = 0) -> None:
        self._client, self._role = client, role
        self._seed, self._repeat = seed, repeat
        self.wrong: list[str] = []
        self._earlier: list[str] = []
        self._answers: dict[str, JsonValue] = {}

    @staticmethod
    def prompts_sha256() -> str:
        """Return one hash over the prompts."""
        names = ("tool_system", "tool_turn", "tool_repair")
        return content_hash([load_prompt(_PACKAGE, name).sha256 for name in names])

    async def answer(
        self, tool: WorkflowTool, arguments: Mapping[str, Any]
    ) -> tuple[JsonValue, Usage]:
        """Return the result of the tool, and the usage.

        Raises ReplyError if the repaired answer is also invalid, and as the client, with `spent`
        set.
        """
        call = f"{tool.name}({json.dumps(dict(arguments), ensure_ascii=False, sort_keys=True)})"
        if call in self._answers:
            return self._answers[call], Usage()

        def read(text: str) -> JsonValue:
            try:
                value: JsonValue = parse_reply(text, lambda v: isinstance(v, dict)).value
                if problem := complaint(tool.returns, value):
                    raise ReplyError(one_line(problem)[:_MOST_PROBLEM])
            except ReplyError:
                self.wrong.append(text)
                raise
            return value

        repair = load_prompt(_PACKAGE, "tool_repair")
        reply = await ask(
            self._client,
            self._request(tool, call),
            read,
            lambda problem: repair.render(problem=problem),
        )
        if tool.effect == "read":
            self._answers[call] = reply.value
        else:
            self._answers.clear()
        texts = (call, json.dumps(reply.value, ensure_ascii=False))
        short = [t if len(t) <= _MOST_SHOWN else f"{t[:_MOST_SHOWN]} …" for t in texts]
        self._earlier.append(" -> ".join(short))
        return reply.value, reply.usage

    def _request(self, tool: WorkflowTool, call: str) -> Request:
        parameters = json.dumps(tool.parameters, ensure_ascii=False)
        system = load_prompt(_PACKAGE, "tool_system").render(
            tool=f"{tool.name}: {tool.description}\n{parameters}",
            returns=json.dumps(tool.returns, ensure_ascii=False),
            background=self._role.background,
            now=self._role.now,
            nonce=NONCE,
        )
        turn = load_prompt(_PACKAGE, "tool_turn").render(
            before=self._earlier[-_EARLIER:], request=call
        )
        seed = int(content_hash([self._seed, self._repeat, len(self._earlier)])[:7], 16)
        return Request(
            messages=({"role": "system", "content": system}, {"role": "user", "content": turn}),
            schema=tool.returns,
            parameters={"seed": seed, "max_tokens": _MAX_TOKENS, "temperature": 0},
            repeat=self._repeat,
            role="tool",
            run_id=tool.name,
        )
