"""The tools an agent is handed: it checks every call, answers it, and keeps the log."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import threading
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from concurrent.futures import CancelledError
from typing import Any, Protocol

from pydantic import JsonValue

from agenteval.agents.protocol import AgentLimits, CallStatus, Tool, ToolEvent
from agenteval.errors import InputError
from agenteval.models.jsonish import is_deeper
from agenteval.records import Message, Usage

STOPPED = "The limit of this session is reached. No further call is carried out."
MAX_CALLS = 1000  # of one case: a turn may hold many calls, memory may not
MAX_RAW = 2000  # characters kept of what could not be read
_MAX_ARGUMENTS = 100_000  # characters of JSON
_MAX_DEPTH = 64
_MAX_TOLD = 500  # characters of a complaint
_MAX_SAID, _MAX_MESSAGES = 100_000, 10_000


class Backend(Protocol):
    """The state and answers behind the tools. Arguments are validated against the schema.

    Calls are serialized, possibly from several threads, and must be fast: the event loop waits for
    them.
    """

    def __call__(self, name: str, arguments: Mapping[str, Any]) -> str:
        """The tool's answer; ValueError with a sentence for the agent refuses the arguments.

        Anything else, subclasses of ValueError among it (of JSON, Unicode, validation), is a
        defect of the backend: the case becomes an AgentFailure.
        """
        ...


class AsyncBackend(Protocol):
    """A slow backend: `async def`, so the event loop keeps running while it answers.

    Its calls come one at a time, all on the event loop that the toolbox belongs to.
    """

    def __call__(self, name: str, arguments: Mapping[str, Any]) -> Awaitable[str]:
        """Like the method of a Backend."""
        ...


_Answer = tuple[CallStatus, str]
Outcome = tuple[CallStatus | None, str]  # None: not counted; and what the agent is told


class Toolbox:
    """Tools, their backend, and the log of one case.

    An adapter calls `turn()` before it carries out the calls of one model turn; a call made without
    a turn is a turn of its own. It reports messages and usage as they come. Past the limit of turns
    (or of 1,000 calls) nothing is carried out or logged, and `exhausted` is set: the driver then
    stops the agent. The logged call number `stop_after` sets it too, so an agent's first calls can
    be seen without another request; `beyond` has the names of later calls of the same turn. Every
    method may be called from other threads.

    With an AsyncBackend the toolbox belongs to the event loop that was the first to use it (in
    `begin` or a call), and `call` and `attempt` are only for threads other than the loop's.
    """

    def __init__(
        self,
        tools: Sequence[Tool],
        backend: Backend | AsyncBackend,
        limits: AgentLimits | None = None,
        *,
        stop_after: int | None = None,
        trial: int = 0,
    ) -> None:
        if stop_after is not None and stop_after < 1:
            raise InputError("a toolbox can stop after 1 call at the earliest")
        self.tools = tuple(tools)
        self.trial = trial  # the number of the attempt: a recording keeps attempts apart
        self.limits = limits or AgentLimits()
        self.events: list[ToolEvent] = []
        self.messages: list[Message] = []
        self.usage = Usage()
        self.model: str | None = None
        self.turns = 0
        self.exhausted = threading.Event()
        self.defect: Exception | None = None  # of the backend or a schema: ours, not the agent's
        self.closed = False
        self.beyond: list[str] = []
        self._stop_after = stop_after
        self._backend: Callable[[str, Mapping[str, Any]], Any] = backend
        self._waits = is_async(backend)
        self._loop: asyncio.AbstractEventLoop | None = None
        self._queue = asyncio.Lock()  # of the calls of an AsyncBackend
        self._asked: float | None = None  # when the call under way was begun
        self._waited = 0.0
        self._parameters = {tool.name: tool.parameters for tool in self.tools}
        self._validators: dict[str, Any] = {}
        self._begun = time.monotonic()
        self._lock = threading.Lock()  # for counters and logs; never held for long
        self._serial = threading.Lock()  # of the calls; a backend that hangs must not stop close()

    @property
    def seen_enough(self) -> bool:
        """Whether `stop_after` is reached: the agent needs no further requests."""
        return self._stop_after is not None and len(self.events) >= self._stop_after

    @property
    def waited(self) -> float:
        """Seconds that an AsyncBackend took so far, the call under way included."""
        under_way = 0.0 if self._asked is None else time.monotonic() - self._asked
        return self._waited + under_way

    def begin(self) -> None:
        """Start the clock: the toolbox may have been created long before its agent started."""
        self._begun = time.monotonic()
        with contextlib.suppress(RuntimeError):  # no loop is running here
            self._loop = self._loop or asyncio.get_running_loop()

    def turn(self) -> int:
        """Begin a turn; returns its number, to be given to `call`. Over the limit: `exhausted`."""
        with self._lock:
            over = self.turns >= self.limits.turns
            if not (over or self.closed):
                self.turns += 1
            number = max(0, self.turns - 1)
        if over and not self.closed:
            self.exhausted.set()
        return number

    def call(self, name: str, arguments: object = None, *, turn: int | None = None) -> str:
        """Execute one call and return the answer to the agent; see `attempt`."""
        return self.attempt(name, arguments, turn=turn)[1]

    async def call_async(
        self, name: str, arguments: object = None, *, turn: int | None = None
    ) -> str:
        """Like `call`, for a backend of either kind."""
        return (await self.attempt_async(name, arguments, turn=turn))[1]

    def attempt(
        self, name: object, arguments: object = None, *, turn: int | None = None
    ) -> Outcome:
        """Execute one call; return its status (None: not counted) and the answer to the agent.

        `arguments` is a mapping or JSON text of an object ("" and None mean none). A call that
        cannot be executed is logged with its status and answered with the reason. Anything that the
        backend raises other than a refusal is re-raised and kept as `defect`; so is the InputError
        for a call of an AsyncBackend on the thread of its own event loop.
        """
        turn = self.turn() if turn is None else turn
        if self._waits:
            return self._from_thread(name, arguments, turn)
        return self._at_once(name, arguments, turn)

    async def attempt_async(
        self, name: object, arguments: object = None, *, turn: int | None = None
    ) -> Outcome:
        """Like `attempt`, for a backend of either kind, from any event loop."""
        turn = self.turn() if turn is None else turn
        if not self._waits:
            return self._at_once(name, arguments, turn)
        here = asyncio.get_running_loop()
        self._loop = self._loop or here
        answer = self._in_order(name, arguments, turn)
        if here is self._loop:
            return await answer
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(answer, self._loop))

    def malformed(self, text: str, *, turn: int | None = None) -> None:
        """Log text that was meant as a call and could not be read as one."""
        turn = self.turn() if turn is None else turn
        with self._serial:
            if not self._over():
                self._log("", clean(text)[:MAX_RAW], ("malformed", ""), turn)

    def say(self, message: Message) -> None:
        """Keep a message of the conversation, cut to 100,000 characters; none after the end, and
        no more than 10,000: an adapter that goes in circles must not fill the memory."""
        if len(message.content) > _MAX_SAID:
            message = message.model_copy(update={"content": message.content[:_MAX_SAID]})
        with self._lock:
            if not self.closed and len(self.messages) < _MAX_MESSAGES:
                self.messages.append(message)

    def spend(self, usage: Usage) -> None:
        """Add the usage of a request."""
        with self._lock:
            self.usage = self.usage + usage

    def close(self) -> None:
        """Stop counting calls: later calls of a stopped agent are not part of the case."""
        with self._lock:
            self.closed = True

    def elapsed(self) -> float:
        """Seconds since `begin`, or since the toolbox was made."""
        return time.monotonic() - self._begun

    def _over(self) -> bool:
        if len(self.events) >= MAX_CALLS and not self.closed:
            self.exhausted.set()
        return self.closed or self.exhausted.is_set() or self.defect is not None

    def _at_once(self, name: object, arguments: object, turn: int) -> Outcome:
        parsed, problem = as_object(arguments)
        with self._serial, self._defects():
            if self._over():
                return self._unmade(name, turn)
            if refusal := self._refused(name, parsed, problem):
                return self._log(name, parsed, refusal, turn)
            outcome: _Answer
            try:
                outcome = "ok", _text(self._backend(str(name), _copy(parsed)))
            except ValueError as refused:
                outcome = _refusal(refused)
            return self._log(name, parsed, outcome, turn)

    async def _in_order(self, name: object, arguments: object, turn: int) -> Outcome:
        parsed, problem = as_object(arguments)
        async with self._queue:
            with self._defects():
                if self._over():
                    return self._unmade(name, turn)
                if refusal := self._refused(name, parsed, problem):
                    return self._log(name, parsed, refusal, turn)
                self._asked = began = time.monotonic()
                outcome: _Answer
                try:
                    outcome = "ok", await self._backend(str(name), _copy(parsed))
                except ValueError as refused:
                    outcome = _refusal(refused)
                finally:
                    self._waited, self._asked = self._waited + time.monotonic() - began, None
                return self._log(name, parsed, outcome, turn)

    @contextlib.contextmanager
    def _defects(self) -> Iterator[None]:
        """Keep what the block raises as the defect of the tools, and stop the agent."""
        try:
            yield
        except Exception as defect:
            self.defect = self.defect or defect
            raise

    def _from_thread(self, name: object, arguments: object, turn: int) -> Outcome:
        """Have the loop carry out a call while this thread waits."""
        if self._loop is None or self._loop is asyncio._get_running_loop():
            with self._defects():
                raise InputError(
                    "these tools are slow: inside a running event loop, call them"
                    " with `await tools.call_async(name, arguments)`"
                )
        answer = self._in_order(name, arguments, turn)
        try:
            return asyncio.run_coroutine_threadsafe(answer, self._loop).result()
        except CancelledError:
            return None, STOPPED  # the loop ended meanwhile, and the case with it
        except RuntimeError:
            if not self._loop.is_closed():
                raise
            answer.close()
            return None, STOPPED

    def _unmade(self, name: object, turn: int) -> Outcome:
        with self._lock:
            same = self.seen_enough and turn == self.events[-1].turn
            if same and len(self.beyond) < MAX_CALLS:
                self.beyond.append(_name(name))
        return None, STOPPED

    def _refused(self, name: object, given: JsonValue, problem: str | None) -> _Answer | None:
        """Return the outcome of a call that cannot be executed, or None if it can."""
        if not isinstance(name, str) or name not in self._parameters:
            names = ", ".join(self._parameters)
            return "unknown_tool", f"There is no tool {_name(name)!r}. The tools are: {names}."
        problem = problem or self._complaint(name, given)
        if problem:
            return "bad_arguments", f"Not carried out: {clean(problem)[:_MAX_TOLD]}."
        return None

    def _complaint(self, name: str, arguments: JsonValue) -> str | None:
        """Return the problem that the schema of a tool finds with arguments, or None."""
        if name not in self._validators:
            from jsonschema import Draft202012Validator
            from referencing.jsonschema import EMPTY_REGISTRY

            # never fetches a remote `$ref`: a suite of cases is data, not a reason to
            check = Draft202012Validator(self._parameters[name], registry=EMPTY_REGISTRY)
            self._validators[name] = check
        try:
            for error in self._validators[name].iter_errors(arguments):
                where = ".".join(map(str, error.absolute_path))
                return f"{where}: {error.message}" if where else str(error.message)
        except OverflowError:  # an integer of hundreds of digits against `multipleOf`
            return "a number in the arguments is too large"
        return None

    def _log(self, name: object, arguments: JsonValue, outcome: _Answer, turn: int) -> Outcome:
        status, result = outcome
        event = ToolEvent(
            name=_name(name),
            arguments=arguments,
            status=status,
            result=result,
            turn=turn,
            at=round(max(0.0, self.elapsed()), 6),
        )
        with self._lock:
            if self.closed:  # the agent was stopped while this call was carried out
                return None, STOPPED
            self.events.append(event)
            last = len(self.events) == self._stop_after
        if last:
            self.exhausted.set()
        return outcome


def is_async(function: object) -> bool:
    """Whether calling it gives an awaitable: an `async def`, or an object whose `__call__` is."""
    return inspect.iscoroutinefunction(function) or inspect.iscoroutinefunction(
        getattr(function, "__call__", None)  # noqa: B004 needs its type
    )


def _copy(given: JsonValue) -> Any:
    return json.loads(json.dumps(given))  # ours is logged


def _refusal(refused: ValueError) -> _Answer:
    if type(refused) is not ValueError:
        raise refused
    return "bad_arguments", f"Not carried out: {refused}"


def _text(answer: object) -> str:
    """The answer of a Backend; raises TypeError for what only an AsyncBackend gives."""
    if not isinstance(answer, str) and inspect.isawaitable(answer):
        if inspect.iscoroutine(answer):
            answer.close()
        raise TypeError("a backend whose answers have to be awaited must be an `async def`")
    return answer  # type: ignore[return-value]  # the log checks that it is text


def _name(name: object) -> str:
    return clean(name[:200]) if isinstance(name, str) else raw(name)[:200]


def clean(text: str) -> str:
    """The text without lone surrogates, which no UTF-8 file can hold; they become "?"."""
    return text.encode("utf-8", "replace").decode("utf-8")


def raw(arguments: object) -> str:
    """Return the logged form of arguments that are not a JSON object."""
    return clean((arguments if isinstance(arguments, str) else repr(arguments))[:MAX_RAW])


def as_object(arguments: object) -> tuple[JsonValue, str | None]:
    """A copy of the arguments as a JSON object, and what is wrong with them (None: nothing)."""
    if isinstance(arguments, bytes):
        arguments = arguments.decode("utf-8", "replace")
    if arguments is None or (isinstance(arguments, str) and not arguments):
        return {}, None
    value: object = dict(arguments) if isinstance(arguments, Mapping) else arguments
    if isinstance(value, str):
        if len(value) > _MAX_ARGUMENTS:
            return raw(value), "the arguments are too long"
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return raw(value), "the arguments are not valid JSON"
    try:
        text = json.dumps(value, allow_nan=False, ensure_ascii=False)
        parsed: JsonValue = json.loads(clean(text))
    except (TypeError, ValueError, RecursionError):
        return raw(arguments), "the arguments are not JSON values"
    if len(text) > _MAX_ARGUMENTS:
        return raw(text), "the arguments are too long"
    if is_deeper(parsed, _MAX_DEPTH):
        return raw(text), "the arguments are nested too deeply"
    return parsed, None if isinstance(parsed, dict) else "the arguments must be a JSON object"
