"""The part of the Ray executor that runs in an actor: it evaluates units but sends no requests.

Calls of a model, a budget or the store are sent as `ForwardedCall` to the process that runs the
command (the leader), which executes them.
"""

from __future__ import annotations

import asyncio
import pickle
import platform
import threading
from collections.abc import Mapping, Sequence
from contextvars import ContextVar
from functools import partial
from importlib.metadata import version
from itertools import count
from queue import SimpleQueue
from types import SimpleNamespace
from typing import Any, NamedTuple

from agenteval.engine.unit import Outcome
from agenteval.errors import InputError


class Start(NamedTuple):
    """Leader to actor: evaluate this pickled unit; `evaluator` is None if the actor has it."""

    unit: int
    content: bytes
    evaluator: bytes | None


class ForwardedCall(NamedTuple):
    """Actor to leader: call a method of an object that stays there."""

    unit: int
    number: int
    target: int
    method: str
    arguments: tuple[Any, ...]
    keywords: Mapping[str, Any]


class CallAnswer(NamedTuple):
    """Leader to actor: the result or error of a call."""

    call: int
    value: Any = None
    error: Exception | None = None


class Ended(NamedTuple):
    """Actor to leader: the outcome or error of a unit."""

    unit: int
    outcome: Outcome | None = None
    error: BaseException | None = None


def forwarded(target: int, methods: Sequence[str], attributes: Mapping[str, Any]) -> Any:
    """Return a stand-in for an object of the leader; its `methods` are called there."""
    calls = {name: partial(_call, target, name) for name in methods}
    return SimpleNamespace(**attributes, **calls)


class RayActor:
    """Evaluates units in a separate thread, so that messages are exchanged meanwhile."""

    def __init__(self) -> None:
        self.calls: dict[int, asyncio.Future[CallAnswer]] = {}
        self.numbers = count()
        self._evaluator: Any = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._messages: SimpleQueue[ForwardedCall | Ended] = SimpleQueue()
        self.send = self._messages.put  # queue a message for the leader
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    async def versions(self) -> str:
        """Return the versions of the package and Python in the actor."""
        return versions()

    async def give(self, messages: Sequence[Start | CallAnswer]) -> None:
        """Receive messages from the leader."""
        self._loop.call_soon_threadsafe(self._receive, messages)

    async def take(self) -> list[ForwardedCall | Ended]:
        """Wait for messages to the leader and return them."""
        first = await asyncio.to_thread(self._messages.get)
        return [first, *(self._messages.get() for _ in range(self._messages.qsize()))]

    def _receive(self, messages: Sequence[Start | CallAnswer]) -> None:
        for message in messages:
            if isinstance(message, Start):
                task = self._loop.create_task(self._evaluate(message))
                self._tasks.add(task)
                task.add_done_callback(self._tasks.discard)
            elif (future := self.calls.pop(message.call, None)) is not None and not future.done():
                future.set_result(message)

    async def _evaluate(self, start: Start) -> None:
        _unit.set((self, start.unit))
        try:
            try:
                if start.evaluator is not None:
                    self._evaluator = pickle.loads(start.evaluator)  # noqa: S301
                unit = pickle.loads(start.content)  # noqa: S301
            except Exception as error:
                problem = f"cannot be loaded in an actor ({type(error).__name__}: {error})"
                hint = "its modules and files must exist where actors run"
                raise InputError(f"the evaluator {problem}; {hint}") from error
            self.send(Ended(start.unit, await self._evaluator.evaluate(unit)))
        except BaseException as error:  # noqa: BLE001  re-raised by the leader
            try:
                pickle.loads(pickle.dumps(error))  # noqa: S301
            except Exception:  # noqa: BLE001  pickling may raise anything
                error = RuntimeError(f"{type(error).__name__}: {error}")
            self.send(Ended(start.unit, error=error))


_unit: ContextVar[tuple[RayActor, int]] = ContextVar("unit")  # the actor and its current unit


async def _call(target: int, method: str, *arguments: Any, **keywords: Any) -> Any:
    """Have the leader call a method; return its result or raise its error."""
    actor, unit = _unit.get()
    number = next(actor.numbers)
    future = actor.calls[number] = asyncio.get_running_loop().create_future()
    actor.send(ForwardedCall(unit, number, target, method, arguments, keywords))
    answer = await future
    if answer.error is not None:
        raise answer.error
    return answer.value


def versions() -> str:
    """Return the versions that must be the same for leader and actors."""
    return f"agenteval {version('agenteval')} on Python {platform.python_version()}"
