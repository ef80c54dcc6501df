"""The part of the Ray executor that runs in an actor: it evaluates units and sends no request.

What an evaluator asks of a model, a budget or the store is a `Call`, which the process that runs
the command (the leader) carries out.
"""

from __future__ import annotations

import asyncio
import pickle
import platform
import threading
import time
from collections import deque
from collections.abc import Sequence
from contextvars import ContextVar
from functools import partial
from importlib.metadata import version
from itertools import count
from typing import Any, NamedTuple

from agenteval.agents.endpoint import current_attempts
from agenteval.engine.unit import Outcome
from agenteval.errors import InputError


class Start(NamedTuple):
    """Leader to actor: evaluate this pickled unit. `evaluator` is None where the actor has it."""

    unit: int
    content: bytes
    key: int
    evaluator: bytes | None


class Stop(NamedTuple):
    """Leader to actor: stop evaluating a unit."""

    unit: int


class Answer(NamedTuple):
    """Leader to actor: what a call returned or raised. `sent` and `age` are of a cancelled one: how
    often its request was sent, and since when (in seconds) the last attempt was under way."""

    call: int
    value: Any = None
    error: Exception | None = None
    sent: int = 0
    age: float | None = None


class Call(NamedTuple):
    """Actor to leader: call a method of an object that stays there."""

    unit: int
    call: int
    target: int
    method: str
    arguments: tuple[Any, ...]


class Cancel(NamedTuple):
    """Actor to leader: nobody waits for this call any more."""

    unit: int
    call: int


class Ended(NamedTuple):
    """Actor to leader: what came of a unit."""

    unit: int
    outcome: Outcome | None = None
    error: BaseException | None = None


Message = Call | Cancel | Ended


def versions() -> str:
    """Return the versions that leader and actors must share."""
    return f"agenteval {version('agenteval')} on Python {platform.python_version()}"


class Forwarded:
    """Replaces an object that stays with the leader: its `methods` are called there."""

    def __init__(self, target: int, methods: Sequence[str], attributes: dict[str, Any]) -> None:
        self.__dict__.update(attributes)
        for name in methods:
            self.__dict__[name] = partial(_call, target, name)


class RayActor:
    """Evaluates units in a thread of its own, so that messages pass while a judge computes."""

    def __init__(self) -> None:
        self.calls: dict[int, asyncio.Future[Answer]] = {}
        self.numbers = count()
        self._evaluator: Any = None
        self._units: dict[int, asyncio.Task[None]] = {}
        self._messages: deque[Message] = deque()
        self._ready = asyncio.Event()
        self._home: asyncio.AbstractEventLoop | None = None
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, daemon=True).start()

    async def versions(self) -> str:
        """Return the versions of the package and of Python here."""
        return versions()

    async def give(self, messages: Sequence[Start | Stop | Answer]) -> None:
        """Take messages of the leader."""
        self._loop.call_soon_threadsafe(self._receive, messages)

    async def take(self) -> list[Message]:
        """Return the messages for the leader, as soon as there are any."""
        self._home = asyncio.get_running_loop()
        if not self._messages:
            await self._ready.wait()
        self._ready.clear()
        return [self._messages.popleft() for _ in range(len(self._messages))]

    def send(self, message: Message) -> None:
        """Queue a message for the leader."""
        self._messages.append(message)
        if self._home is not None:
            self._home.call_soon_threadsafe(self._ready.set)

    def _receive(self, messages: Sequence[Start | Stop | Answer]) -> None:
        for message in messages:
            if isinstance(message, Start):
                self._units[message.unit] = self._loop.create_task(self._evaluate(message))
            elif isinstance(message, Stop):
                if (task := self._units.get(message.unit)) is not None:
                    task.cancel()
            elif (future := self.calls.get(message.call)) is not None and not future.done():
                future.set_result(message)

    async def _evaluate(self, start: Start) -> None:
        _unit.set((self, start.unit))
        try:
            unit = self._loaded(start)
            self.send(Ended(start.unit, await self._evaluator.evaluate(unit)))
        except BaseException as error:  # noqa: BLE001  raised again at the leader
            self.send(Ended(start.unit, error=_portable(error)))
        finally:
            del self._units[start.unit]

    def _loaded(self, start: Start) -> Any:
        """Return the unit, and keep the evaluator. Raises InputError for what is not here."""
        try:
            if start.evaluator is not None:
                self._evaluator = pickle.loads(start.evaluator)  # noqa: S301
            return pickle.loads(start.content)  # noqa: S301
        except Exception as error:
            raise InputError(
                f"the evaluator cannot be loaded in an actor ({type(error).__name__}: {error}); "
                "its modules and files must exist where actors run"
            ) from error


_unit: ContextVar[tuple[RayActor, int]] = ContextVar("unit")  # which this code evaluates, and where


async def _call(target: int, method: str, *arguments: Any) -> Any:
    """Have the leader call a method; when this is cancelled, so is the call."""
    actor, unit = _unit.get()
    number = next(actor.numbers)
    future = actor.calls[number] = asyncio.get_running_loop().create_future()
    actor.send(Call(unit, number, target, method, arguments))
    try:
        answer = await asyncio.shield(future)
    except asyncio.CancelledError:
        actor.send(Cancel(unit, number))
        await asyncio.wait({future}, timeout=1)
        attempts = current_attempts()
        if future.done() and attempts is not None:
            answer = future.result()
            attempts.sent = answer.sent
            attempts.since = None if answer.age is None else time.monotonic() - answer.age
        raise
    finally:
        del actor.calls[number]
    if answer.error is not None:
        raise answer.error
    return answer.value


def _portable(error: BaseException) -> BaseException:
    """Return the error, or its text if it cannot be pickled."""
    try:
        pickle.loads(pickle.dumps(error))  # noqa: S301
    except Exception:  # noqa: BLE001  whatever its class does
        return RuntimeError(f"{type(error).__name__}: {error}")
    return error
