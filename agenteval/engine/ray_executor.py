"""Evaluates units in Ray actors, while this process (the leader) sends every request to a model.

The leader owns the store, budget, limits, reply cache and API keys, so what they promise holds as
without Ray. A reply is durable before an actor gets it. When an actor dies, its units are evaluated
again with the replies that they had; Ray ends the actors of a leader that dies.
"""

from __future__ import annotations

import asyncio
import io
import os
import time
from contextlib import suppress
from dataclasses import dataclass, field, fields
from functools import partial
from importlib.util import find_spec
from itertools import count
from types import SimpleNamespace
from typing import Any, TypeAlias

from agenteval.agents.endpoint import Endpoint, count_attempts
from agenteval.engine.executor import Evaluate
from agenteval.engine.ray_actor import (
    Answer,
    Call,
    Cancel,
    Ended,
    Forwarded,
    Message,
    RayActor,
    Start,
    Stop,
    versions,
)
from agenteval.engine.unit import Evaluator, Outcome, Unit
from agenteval.errors import AgentevalError, InputError
from agenteval.models.client import Client
from agenteval.models.limits import Budget
from agenteval.models.wire import Reply
from agenteval.records import Usage
from agenteval.store import Store, Trials

MOST_DEATHS = 3  # actors that may die at one unit
_START_SECONDS = 300  # until all actors must run; a cluster may have to add machines
_OBJECT_STORE = 100 * 2**20  # bytes; messages of a few kilobytes need next to none

Ray: TypeAlias = Any


class _ActorDied(Exception):
    """The actor of a unit died; the message is Ray's reason."""


@dataclass
class _Attempted:
    """What a unit has taken: deaths of actors, and the replies with their calls."""

    deaths: int = 0
    replies: list[tuple[int, tuple[Any, ...], Reply]] = field(default_factory=list)

    @property
    def usage(self) -> Usage:
        """What the replies took."""
        return sum((r.usage for _, _, r in self.replies if not r.cached), start=Usage())


class RayExecutor:
    """Actors for all experiments of a command; see the module.

    `address` is that of a cluster, or "local" (or None) for one on this machine, which ends with
    the block. `workers` is the number of actors; None: one for each CPU. Raises InputError when Ray
    is not installed.
    """

    distributed = True

    def __init__(self, workers: int | None, address: str | None = None) -> None:
        if find_spec("ray") is None:
            where = "--workers" if address is None else "--ray"
            raise InputError("Ray is not installed; pip install 'agenteval[ray]'", where)
        if address is not None and address.startswith("ray://"):
            raise InputError("run the command on a node of the cluster, with --ray auto", "--ray")
        self.workers = workers
        self.address = None if address == "local" else address
        self.objects: list[Any] = []  # which actors may call
        self._ray: Ray = None
        self._connected = False  # by this executor
        self._links: list[_Link] = []
        self._spare: _Link | None = None  # for one unit alone
        self._alone = asyncio.Lock()
        self._numbers = count()

    def __enter__(self) -> RayExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        for link in (*self._links, self._spare):
            if link is not None:
                link.close()
        if self._connected:
            self._ray.shutdown()

    async def prepare(self, evaluator: Evaluator[Any], store: Store) -> Evaluate:
        """Start the actors if that has not been done, and pickle the evaluator.

        Raises InputError without a cluster at the address, for one of other versions, and for an
        evaluator that cannot be pickled.
        """
        pickled = self._dumps(evaluator, f"the evaluator {evaluator.source.model}")
        if not self._links:
            actors = await asyncio.to_thread(self._start)
            self._links = [_Link(self, actor) for actor in actors]
        experiment = _DistributedExperiment(evaluator, store, next(self._numbers), pickled)
        return partial(self._evaluate, experiment)

    async def _evaluate(self, experiment: _DistributedExperiment, unit: Unit[Any]) -> Outcome:
        content = self._dumps(unit, "a unit")
        attempted, reason = _Attempted(), ""
        while attempted.deaths < MOST_DEATHS:
            start = Start(next(self._numbers), content, experiment.key, experiment.pickled)
            try:
                if attempted.deaths < MOST_DEATHS - 1:
                    return await self._link().evaluate(start, experiment.store, attempted)
                async with self._alone:  # whether this unit kills it, and no other
                    if self._spare is None or self._spare.dead:
                        self._spare = _Link(self, self._actor(cpus=0))
                    return await self._spare.evaluate(start, experiment.store, attempted)
            except _ActorDied as died:
                attempted.deaths, reason = attempted.deaths + 1, str(died)
        message = f"{MOST_DEATHS} actors died while they evaluated it: {reason}"
        return experiment.evaluator.failure(unit, message, attempted.usage)

    def _link(self) -> _Link:
        """Return the link with the fewest units, to a new actor if its actor died."""
        place = min(range(len(self._links)), key=lambda at: len(self._links[at].inboxes))
        if self._links[place].dead:
            self._links[place] = _Link(self, self._actor())
        return self._links[place]

    def _start(self) -> list[Any]:
        """Connect, and return the actors once all run. Raises InputError."""
        where = "--workers" if self.address is None else "--ray"
        workers = self.workers or os.cpu_count() or 1
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        if self.address is None:
            # Ray replaces 127.0.0.1 by the machine's address unless clusters are switched off.
            os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        import ray
        from ray._private import ray_constants

        self._ray = ray
        try:
            if not ray.is_initialized():
                options: dict[str, Any] = {"address": self.address}
                if self.address is None:
                    ray_constants.ENABLE_RAY_CLUSTER = False  # where Ray was imported before
                    options = {
                        "address": "local",
                        "num_cpus": workers,
                        "include_dashboard": False,
                        "object_store_memory": _OBJECT_STORE,
                        "_node_ip_address": "127.0.0.1",
                    }
                ray.init(**options, log_to_driver=False, logging_level="error")
                self._connected = True
            if self.address is not None and self.workers is None:
                workers = int(ray.cluster_resources().get("CPU", 1))
            actors = [self._actor() for _ in range(workers)]
            found = ray.get([actor.versions.remote() for actor in actors], timeout=_START_SECONDS)
        except Exception as error:
            place = self.address or "this machine"
            raise InputError(
                f"no actors can be started on {place}: {_line(error)}", where
            ) from error
        if other := next((one for one in found if one != versions()), None):
            raise InputError(f"the cluster has {other}, this is {versions()}", where)
        return actors

    def _actor(self, cpus: int = 1) -> Any:
        options = {"num_cpus": cpus, "scheduling_strategy": "SPREAD"}
        return self._ray.remote(**options)(RayActor).remote()

    def _dumps(self, value: object, name: str) -> bytes:
        """Return the value pickled, with clients and the like replaced. Raises InputError."""
        from ray.cloudpickle import CloudPickler

        executor = self

        class Pickler(CloudPickler):  # type: ignore[misc]
            def reducer_override(self, obj: Any) -> Any:
                replaced = executor.reduced(obj)
                return super().reducer_override(obj) if replaced is None else replaced

        buffer = io.BytesIO()
        try:
            Pickler(buffer).dump(value)
        except AgentevalError:
            raise
        except Exception as error:
            raise InputError(f"{name} cannot be pickled for Ray: {_line(error)}") from error
        return buffer.getvalue()

    def reduced(self, obj: Any) -> tuple[Any, ...] | None:
        """Return how an object that stays here is pickled, None for all others. Raises InputError
        for a store."""
        if isinstance(obj, Client):
            keep = {name: getattr(obj, name) for name in ("model", "address", "parameters")}
            transport = SimpleNamespace(endpoint=obj.transport.endpoint)
            more = {"transport": transport, "clock": time.monotonic, "usage": Usage()}
            return Forwarded, (self._number(obj), ("complete",), keep | more)
        if isinstance(obj, Budget):
            if obj.max_calls is None and obj.max_cost is None:
                return Budget, ()
            return Forwarded, (self._number(obj), ("charge",), {})
        if isinstance(obj, Trials):
            return Forwarded, (self._number(obj), ("save", "finished"), {})
        if isinstance(obj, Endpoint):  # its key stays here
            values = {f.name: getattr(obj, f.name) for f in fields(obj)}
            return partial(Endpoint, **{**values, "api_key": None}), ()
        if isinstance(obj, Store):
            raise InputError("a judge that runs in Ray cannot hold an open store")
        return None

    def _number(self, obj: object) -> int:
        for number, kept in enumerate(self.objects):
            if kept is obj:
                return number
        self.objects.append(obj)
        return len(self.objects) - 1


@dataclass(frozen=True)
class _DistributedExperiment:
    """An evaluator as actors get it, under a number, and the store of its results."""

    evaluator: Evaluator[Any]
    store: Store
    key: int
    pickled: bytes


class _Link:
    """The connection to one actor until it dies; `inboxes` are those of its units."""

    def __init__(self, executor: RayExecutor, actor: Any) -> None:
        self.inboxes: dict[int, asyncio.Queue[Message | _ActorDied]] = {}
        self.dead = False
        self._executor = executor
        self._actor = actor
        self._key = -1  # of the evaluator that the actor has
        self._outbox: list[Start | Stop | Answer] = []
        self._ready = asyncio.Event()
        self._limits: dict[int, asyncio.Timeout] = {}  # by call
        self._task = asyncio.create_task(self._run())

    def close(self) -> None:
        """End the actor."""
        self._task.cancel()
        with suppress(Exception):  # it may have died
            self._executor._ray.kill(self._actor)

    async def evaluate(self, start: Start, store: Store, attempted: _Attempted) -> Outcome:
        """Have the actor evaluate a unit. Raises what the evaluator raises, and _ActorDied."""
        inbox = self.inboxes[start.unit] = asyncio.Queue()
        known, self._key = self._key == start.key, start.key
        self._send(start._replace(evaluator=None) if known else start)
        stored = list(attempted.replies)
        ended: Ended | None = None
        try:
            while ended is None:
                messages = [await inbox.get()]
                while not inbox.empty():
                    messages.append(inbox.get_nowait())
                for message in messages:
                    if isinstance(message, _ActorDied):
                        raise message
                    ended = message if isinstance(message, Ended) else ended
                calls = [m for m in messages if isinstance(m, Call)] if ended is None else []
                answers = [self._answer(call, store, stored, attempted) for call in calls]
                # A single request is sent by this task: Client.wind_down goes by tasks.
                for answer in [await answers[0]] if len(answers) == 1 else await _all(answers):
                    self._send(answer)
        finally:
            del self.inboxes[start.unit]
            if ended is None and not self.dead:
                self._send(Stop(start.unit))
        if ended.error is not None:
            raise ended.error
        assert ended.outcome is not None
        return ended.outcome

    async def _answer(
        self,
        call: Call,
        store: Store,
        stored: list[tuple[int, tuple[Any, ...], Reply]],
        attempted: _Attempted,
    ) -> Answer:
        for place, (target, arguments, reply) in enumerate(stored):
            if (target, arguments) == (call.target, call.arguments):
                del stored[place]
                return Answer(call.call, reply)
        method = getattr(self._executor.objects[call.target], call.method)
        with count_attempts() as attempts:
            try:
                async with asyncio.timeout(None) as self._limits[call.call]:
                    value = await method(*call.arguments)
                    if isinstance(value, Reply):
                        attempted.replies.append((call.target, call.arguments, value))
                        if not value.cached:
                            await store.flush()
            except Exception as error:  # noqa: BLE001  raised again in the actor
                limit = self._limits[call.call]
                if not (isinstance(error, TimeoutError) and limit.expired()):
                    return Answer(call.call, error=error)
                since = attempts.since
                age = None if since is None else time.monotonic() - since
                return Answer(call.call, sent=attempts.sent, age=age)
            finally:
                del self._limits[call.call]
        return Answer(call.call, value)

    def _send(self, message: Start | Stop | Answer) -> None:
        self._outbox.append(message)
        self._ready.set()

    async def _run(self) -> None:
        """Pass messages until the actor dies, and tell its units then."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._give())
                group.create_task(self._take())
        except BaseExceptionGroup as errors:
            self.dead = True
            reason = _ActorDied(_line(errors.exceptions[0]))
            for inbox in self.inboxes.values():
                inbox.put_nowait(reason)

    async def _give(self) -> None:
        while True:
            await self._ready.wait()
            self._ready.clear()
            messages, self._outbox = self._outbox, []
            await self._actor.give.remote(messages)

    async def _take(self) -> None:
        while True:
            for message in await self._actor.take.remote():
                if isinstance(message, Cancel):
                    if (limit := self._limits.get(message.call)) is not None:
                        limit.reschedule(asyncio.get_running_loop().time())
                elif (inbox := self.inboxes.get(message.unit)) is not None:
                    inbox.put_nowait(message)


async def _all(answers: list[Any]) -> list[Answer]:
    return list(await asyncio.gather(*answers))


def _line(error: BaseException) -> str:
    """Return the last line of an error's message that says something."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__)[:300]
