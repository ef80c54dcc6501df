"""The tools an agent is handed: it checks every call, answers it, and keeps the log."""

from __future__ import annotations

import asyncio
import contextlib
import json
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Protocol

from pydantic import JsonValue

from agenteval.agents.protocol import AgentLimits, CallStatus, Tool, ToolEvent
from agenteval.records import Message, Usage

STOPPED = "The limit of this session is reached. No further call is carried out."
MAX_CALLS = 1000  # of one case: a turn may hold many calls, memory may not
_MAX_ARGUMENTS = 100_000  # characters of JSON
_MAX_DEPTH = 64
_MAX_RAW = 2000  # characters kept of what could not be read
_MAX_TOLD = 500  # characters of a complaint


class Backend(Protocol):
    """What stands behind the tools: state and answers. Arguments have passed the schema.

    Its calls come one at a time, maybe from several threads, and must be quick: the event loop
    waits for them.
    """

    def __call__(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The tool's answer; ValueError with a sentence for the agent refuses the arguments.

        Anything else, subclasses of ValueError among it (of JSON, Unicode, validation), is a
        defect of the backend: the case becomes an AgentFailure.
        """
        ...


class Toolbox:
    """Tools, their backend, and the log of one case.

    An adapter calls `turn()` before it carries out the calls of one model turn; a call made
    without a turn is a turn of its own. It reports messages and usage as they come. Past the limit
    of turns (or of 1,000 calls) nothing is carried out or logged, and `exhausted` is set: the
    driver then stops the agent. Every method may be called from other threads.
    """

    def __init__(
        self, tools: Sequence[Tool], backend: Backend, limits: AgentLimits | None = None
    ) -> None:
        self.tools = tuple(tools)
        self.limits = limits or AgentLimits()
        self.events: list[ToolEvent] = []
        self.messages: list[Message] = []
        self.usage = Usage()
        self.model: str | None = None
        self.turns = 0
        self.exhausted = threading.Event()
        self.defect: Exception | None = None  # of the backend or a schema: ours, not the agent's
        self.closed = False
        self._backend = backend
        self._checks: dict[str, Any] = {}
        self._parameters = {tool.name: tool.parameters for tool in self.tools}
        self._begun = time.monotonic()
        self._lock = threading.Lock()  # of what is counted and kept; never held for long
        self._serial = threading.Lock()  # of the calls; a backend that hangs must not stop close()
        self._listeners: list[Callable[[], None]] = []

    def begin(self) -> None:
        """The clock starts now: a toolbox may have been made long before its agent's turn came."""
        self._begun = time.monotonic()

    def turn(self) -> int:
        """Begin a turn; returns its number, to be given to `call`. Over the limit: `exhausted`."""
        with self._lock:
            over = self.turns >= self.limits.turns
            if not (over or self.closed):
                self.turns += 1
            number = max(0, self.turns - 1)
        if over and not self.closed:
            self._halt()
        return number

    def call(self, name: str, arguments: object = None, *, turn: int | None = None) -> str:
        """Carry out one call; returns what the agent is told. See `attempt`."""
        return self.attempt(name, arguments, turn=turn)[1]

    def attempt(
        self, name: object, arguments: object = None, *, turn: int | None = None
    ) -> tuple[CallStatus | None, str]:
        """Carry out one call; returns its status (None: not counted) and what the agent is told.

        `arguments` is a mapping, or JSON text of an object ("" and None mean none). A call that
        cannot be carried out is logged with its status and answered with a sentence that says why.
        Whatever the backend raises beside a refusal is raised, and kept as `defect`.
        """
        turn = self.turn() if turn is None else turn
        given, problem = as_object(arguments)
        with self._serial:
            if self._over():
                return None, STOPPED
            try:
                status, result = self._carry_out(name, given, problem)
                return self._log(name, given, status, result, turn)
            except Exception as defect:
                self.defect = self.defect or defect
                self._halt()
                raise

    def malformed(self, text: str, *, turn: int | None = None) -> None:
        """Log text that was meant as a call and could not be read as one."""
        turn = self.turn() if turn is None else turn
        with self._serial:
            if not self._over():
                self._log("", clean(text)[:_MAX_RAW], "malformed", "", turn)

    def say(self, message: Message) -> None:
        """Keep a message of the conversation; none after the end."""
        with self._lock:
            if not self.closed:
                self.messages.append(message)

    def spend(self, usage: Usage) -> None:
        """Add what a request took."""
        with self._lock:
            self.usage = self.usage + usage

    def close(self) -> None:
        """No call counts from now on: what a stopped agent still does is not part of the case."""
        with self._lock:
            self.closed = True

    def elapsed(self) -> float:
        """Seconds since `begin`, or since the toolbox was made."""
        return time.monotonic() - self._begun

    def on_halt(self, listener: Callable[[], None]) -> None:
        """Have `listener` called, from any thread, when the agent must be stopped."""
        with self._lock:
            self._listeners.append(listener)
            late = self.exhausted.is_set() or self.defect is not None
        if late:
            listener()

    def _halt(self) -> None:
        if self.defect is None:
            self.exhausted.set()
        with self._lock:
            listeners = tuple(self._listeners)
        for listener in listeners:
            listener()

    def _over(self) -> bool:
        if len(self.events) >= MAX_CALLS and not self.closed:
            self._halt()
        return self.closed or self.exhausted.is_set() or self.defect is not None

    def _carry_out(
        self, name: object, given: JsonValue, problem: str | None
    ) -> tuple[CallStatus, str]:
        if not isinstance(name, str) or name not in self._parameters:
            return "unknown_tool", _unknown(name, self.tools)
        problem = problem or self._complaint(name, given)
        if problem:
            return "bad_arguments", f"Not carried out: {clean(problem)[:_MAX_TOLD]}."
        assert isinstance(given, dict)  # anything else has a problem
        try:
            return "ok", self._backend(
                name, json.loads(json.dumps(given))
            )  # a copy: ours is logged
        except ValueError as refused:
            if type(refused) is not ValueError:
                raise
            return "bad_arguments", f"Not carried out: {refused}"

    def _complaint(self, name: str, arguments: JsonValue) -> str | None:
        check = self._checks.get(name)
        if check is None:
            check = self._checks[name] = _validator(self._parameters[name])
        try:
            for error in check.iter_errors(arguments):
                where = ".".join(map(str, error.absolute_path))
                return f"{where}: {error.message}" if where else str(error.message)
        except OverflowError:  # an integer of hundreds of digits against `multipleOf`
            return "a number in the arguments is too large"
        return None

    def _log(
        self, name: object, arguments: JsonValue, status: CallStatus, result: str, turn: int
    ) -> tuple[CallStatus | None, str]:
        event = ToolEvent(
            name=_name(name), arguments=arguments, status=status, result=result, turn=turn,
            at=round(max(0.0, self.elapsed()), 6),
        )  # fmt: skip
        with self._lock:
            if self.closed:  # the agent was stopped while this call was carried out
                return None, STOPPED
            self.events.append(event)
        return status, result


def clean(text: str) -> str:
    """The text without lone surrogates, which no UTF-8 file can hold; they become "?"."""
    return text.encode("utf-8", "replace").decode("utf-8")


def as_object(arguments: object) -> tuple[JsonValue, str | None]:
    """A copy of the arguments as a JSON object, and what is wrong with them (None: nothing)."""
    if isinstance(arguments, bytes):
        arguments = arguments.decode("utf-8", "replace")
    if arguments is None or (isinstance(arguments, str) and not arguments):
        return {}, None
    value: object = dict(arguments) if isinstance(arguments, Mapping) else arguments
    try:
        if isinstance(arguments, str):
            if len(arguments) > _MAX_ARGUMENTS:
                return _raw(arguments), "the arguments are too long"
            value = json.loads(arguments)
    except (ValueError, RecursionError):
        return _raw(arguments), "the arguments are not valid JSON"
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        if len(text) > _MAX_ARGUMENTS:
            return _raw(text), "the arguments are too long"
        given: JsonValue = json.loads(clean(text))
    except (TypeError, ValueError, RecursionError):
        return _raw(arguments), "the arguments are not JSON values"
    if _depth(given) > _MAX_DEPTH:
        return _raw(text), "the arguments are nested too deeply"
    return given, None if isinstance(given, dict) else "the arguments must be a JSON object"


def _raw(arguments: object) -> str:
    """What is kept of arguments that are no JSON object."""
    if isinstance(arguments, str):
        return clean(arguments[:_MAX_RAW])
    try:
        return clean(repr(arguments)[:_MAX_RAW])
    except Exception:  # noqa: BLE001  an object of the agent's own may raise anything
        return f"<{type(arguments).__name__}>"


def _depth(value: JsonValue) -> int:
    level, depth = [value], 0
    while level and depth <= _MAX_DEPTH:
        inner: list[JsonValue] = []
        for item in level:
            if isinstance(item, dict):
                inner.extend(item.values())
            elif isinstance(item, list):
                inner.extend(item)
        level, depth = inner, depth + 1
    return depth


def _validator(parameters: dict[str, JsonValue]) -> Any:
    """A check that never fetches a remote `$ref`: a suite of cases is data, not a reason to."""
    from jsonschema import Draft202012Validator
    from referencing.jsonschema import EMPTY_REGISTRY

    return Draft202012Validator(parameters, registry=EMPTY_REGISTRY)


def _name(name: object) -> str:
    return clean(name[:200]) if isinstance(name, str) else _raw(name)[:200]


def _unknown(name: object, tools: Sequence[Tool]) -> str:
    known = ", ".join(tool.name for tool in tools)
    return f"There is no tool {_name(name)!r}. The tools are: {known}."


async def wait_exhausted(toolbox: Toolbox, poll: float = 0.25) -> None:
    """Return once the agent must be stopped: too many turns or calls, or a defect of the tools.

    Woken at once, from whatever thread; `poll` (seconds) only bounds the wait for somebody who
    set `exhausted` directly.
    """
    loop, halted = asyncio.get_running_loop(), asyncio.Event()

    def wake() -> None:
        with contextlib.suppress(RuntimeError):  # the loop ended: nobody waits any more
            loop.call_soon_threadsafe(halted.set)

    toolbox.on_halt(wake)
    while not (halted.is_set() or toolbox.exhausted.is_set()):
        try:
            await asyncio.wait_for(halted.wait(), poll)
        except TimeoutError:
            continue
