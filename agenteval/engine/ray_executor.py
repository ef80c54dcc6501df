"""Evaluates units in Ray actors, while this process (the leader) sends all model requests.

The leader owns the store, budget, limits, reply cache and API keys, so their guarantees are the
same as without Ray. A reply is durable before an actor gets it. If an actor dies, its units are
evaluated again with the replies received so far; if the leader dies, Ray stops its actors.
"""

from __future__ import annotations

import asyncio
import io
import os
import signal
import socket
import threading
import time
from contextlib import suppress
from dataclasses import asdict
from functools import partial
from importlib.util import find_spec
from itertools import count
from types import SimpleNamespace
from typing import Any

from agenteval.agents.endpoint import Endpoint
from agenteval.engine.ray_actor import (
    CallAnswer,
    Ended,
    ForwardedCall,
    RayActor,
    Start,
    forwarded,
    versions,
)
from agenteval.engine.unit import Evaluate, Evaluator, Outcome, Unit
from agenteval.errors import AgentevalError, InputError
from agenteval.models.client import Client
from agenteval.models.limits import Budget
from agenteval.models.wire import Reply
from agenteval.records import Usage
from agenteval.store import Store, Trials

MOST_DEATHS = 3  # actors that may die while evaluating one unit
_START_SECONDS = 300  # time limit to start all actors; a cluster may have to add machines
_OBJECT_STORE = 100 * 2**20  # bytes; messages have only a few kilobytes


class _ActorDied(Exception):
    """The actor of a unit died; the message is Ray's reason."""


class RayExecutor:
    """Actors for all experiments of a command; see the module.

    `address` is the address of a cluster, or "local" (or None) for a local one, which is stopped at
    the end of the block. `workers` is the number of actors, by default one per CPU. Raises
    InputError if Ray is not installed.
    """

    distributed = True

    def __init__(self, workers: int | None, address: str | None = None) -> None:
        self.option = "--workers" if address is None else "--ray"
        if find_spec("ray") is None:
            raise InputError("Ray is not installed; pip install 'agenteval[ray]'", self.option)
        if address is not None and address.startswith("ray://"):
            raise InputError("run the command on a node of the cluster, with --ray auto", "--ray")
        self.workers = workers
        self.address = None if address == "local" else address
        self.objects: list[Any] = []  # objects whose methods actors may call
        self._ray: Any = None
        self._connected = False  # by this executor
        self._links: list[_ActorLink] = []
        self._spare: _ActorLink | None = None  # evaluates one unit at a time
        self._alone = asyncio.Lock()
        self._numbers = count()

    def __enter__(self) -> RayExecutor:
        return self

    def __exit__(self, *_: object) -> None:
        for link in (*self._links, self._spare):
            if link is not None:
                link.pump.cancel()
                with suppress(Exception):  # the actor may be dead
                    self._ray.kill(link.actor)
        if self._connected:
            self._ray.shutdown()

    async def prepare(self, evaluator: Evaluator[Any], store: Store) -> Evaluate:
        """Start the actors if necessary, and pickle the evaluator.

        Raises InputError if there is no cluster at the address, if it has different versions, or if
        the evaluator cannot be pickled.
        """
        pickled = self._dumps(evaluator, f"the evaluator {evaluator.source.model}")
        if not self._links:
            # Use a thread of the loop's pool: Ray's processes end with the thread that starts them.
            actors = await asyncio.to_thread(self._start)
            self._links = [_ActorLink(actor) for actor in actors]
            if threading.current_thread() is threading.main_thread():
                # Ray's own SIGTERM handler would end the process without waiting for requests.
                signal.signal(signal.SIGTERM, signal.getsignal(signal.SIGTERM))

        async def evaluate(unit: Unit[Any]) -> Outcome:
            task = _Task(self.objects, store, self._dumps(unit, "a unit"), pickled)
            for death in range(MOST_DEATHS):
                try:
                    if death < MOST_DEATHS - 1:
                        return await self._link().evaluate(next(self._numbers), task)
                    async with self._alone:  # to find out whether this unit kills the actor
                        if self._spare is None or self._spare.dead:
                            self._spare = _ActorLink(self._actor(cpus=0))
                        return await self._spare.evaluate(next(self._numbers), task)
                except _ActorDied as died:
                    reason = f"{MOST_DEATHS} actors died while they evaluated it: {died}"
            usage = sum((r.usage for _, _, r in task.replies if not r.cached), start=Usage())
            return evaluator.failure(unit, reason, usage)

        return evaluate

    def _link(self) -> _ActorLink:
        """Return the link with the fewest units; replace its actor if it died."""
        place = min(range(len(self._links)), key=lambda at: len(self._links[at].inboxes))
        if self._links[place].dead:
            self._links[place] = _ActorLink(self._actor())
        return self._links[place]

    def _start(self) -> list[Any]:
        """Connect to Ray and start the actors. Raises InputError."""
        os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
        if self.address is None:  # else Ray replaces 127.0.0.1 with the machine's address
            os.environ["RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"] = "0"
        import ray
        from ray._private import ray_constants

        self._ray, workers = ray, self.workers or os.cpu_count() or 1
        options: dict[str, Any] = {}
        if self.address is None:
            ray_constants.ENABLE_RAY_CLUSTER = False  # if Ray was already imported
            options = {"num_cpus": workers, "object_store_memory": _OBJECT_STORE}
            options |= {"include_dashboard": False, "_node_ip_address": "127.0.0.1"}
        try:
            if ray.is_initialized():
                connected = ray.get_runtime_context().gcs_address
                if self.address not in (None, "auto", connected):
                    raise ValueError(f"this process is connected to the Ray at {connected}")
            else:
                host, _, port = (self.address or "").rpartition(":")
                if host:  # fail early; Ray would try for minutes
                    socket.create_connection((host, int(port)), timeout=10).close()
                options |= {"log_to_driver": False, "logging_level": "error"}
                ray.init(self.address or "local", **options)
                self._connected = True
            if self.address is not None and self.workers is None:
                workers = int(ray.cluster_resources().get("CPU", 1))
            actors = [self._actor() for _ in range(workers)]
            actor_versions = ray.get(
                [actor.versions.remote() for actor in actors], timeout=_START_SECONDS
            )
        except Exception as error:
            place = self.address or "this machine"
            problem = f"no actors can be started on {place}: {_line(error)}"
            raise InputError(problem, self.option) from error
        if other := next(
            (candidate for candidate in actor_versions if candidate != versions()), None
        ):
            raise InputError(f"the cluster has {other}, this is {versions()}", self.option)
        return actors

    def _actor(self, cpus: int = 1) -> Any:
        options = {"num_cpus": cpus, "scheduling_strategy": "SPREAD"}
        return self._ray.remote(**options)(RayActor).remote()

    def _dumps(self, value: object, name: str) -> bytes:
        """Pickle a value without the objects that stay here. Raises InputError."""
        from ray.cloudpickle import CloudPickler

        reduced = self._reduced

        class Pickler(CloudPickler):  # type: ignore[misc]
            def reducer_override(self, obj: Any) -> Any:
                return reduced(obj) or super().reducer_override(obj)

        buffer = io.BytesIO()
        try:
            Pickler(buffer).dump(value)
        except AgentevalError:
            raise
        except Exception as error:
            raise InputError(f"{name} cannot be pickled for Ray: {_line(error)}") from error
        return buffer.getvalue()

    def _reduced(self, obj: Any) -> tuple[Any, ...] | None:
        """Return the pickle reduction of an object that stays here, None for other objects. Raises
        InputError for a store."""
        methods: tuple[str, ...]
        attributes: dict[str, Any] = {}
        if isinstance(obj, Client):
            methods = ("complete",)
            attributes = {name: getattr(obj, name) for name in ("model", "address", "parameters")}
            attributes["transport"] = SimpleNamespace(endpoint=obj.transport.endpoint)
            attributes |= {"clock": time.monotonic, "usage": Usage()}
        elif isinstance(obj, Budget):
            if obj.max_calls is None and obj.max_cost is None:
                return Budget, ()
            methods = ("charge",)
        elif isinstance(obj, Trials):
            methods = ("save", "finished")
        elif isinstance(obj, Endpoint):
            return partial(Endpoint, **{**asdict(obj), "api_key": None}), ()
        elif isinstance(obj, Store):
            raise InputError("a judge that runs in Ray cannot hold an open store")
        else:
            return None
        if not any(obj is shared for shared in self.objects):
            self.objects.append(obj)
        number = next(at for at, shared in enumerate(self.objects) if shared is obj)
        return forwarded, (number, methods, attributes)


class _Task:
    """One unit with its evaluator; answers its calls. `replies` are those received so far, which
    are reused if the unit is restarted after an actor died."""

    def __init__(self, objects: list[Any], store: Store, content: bytes, evaluator: bytes) -> None:
        self.content, self.evaluator = content, evaluator
        self.replies: list[tuple[int, tuple[Any, ...], Reply]] = []
        self._objects, self._store = objects, store

    async def answer(
        self, call: ForwardedCall, earlier: list[tuple[int, tuple[Any, ...], Reply]]
    ) -> CallAnswer:
        """Return the answer to a call; a model's reply is durable by then."""
        for place, (target, arguments, reply) in enumerate(earlier):
            if (target, arguments) == (call.target, call.arguments):
                del earlier[place]
                return CallAnswer(call.number, reply)
        try:
            method = getattr(self._objects[call.target], call.method)
            value = await method(*call.arguments, **call.keywords)
            if isinstance(value, Reply):
                self.replies.append((call.target, call.arguments, value))
                if not value.cached:
                    await self._store.flush()
        except Exception as error:  # noqa: BLE001  re-raised in the actor
            return CallAnswer(call.number, error=error)
        return CallAnswer(call.number, value)


class _ActorLink:
    """The connection to one actor; `inboxes` has one queue per running unit."""

    def __init__(self, actor: Any) -> None:
        self.actor = actor
        self.inboxes: dict[int, asyncio.Queue[ForwardedCall | Ended | _ActorDied]] = {}
        self.dead = False
        self.pump = asyncio.create_task(self._run())
        self._evaluator = b""  # as last sent to the actor
        self._outbox: list[Start | CallAnswer] = []
        self._ready = asyncio.Event()

    async def evaluate(self, number: int, task: _Task) -> Outcome:
        """Have the actor evaluate a unit. Raises what the evaluator raises, and _ActorDied."""
        inbox = self.inboxes[number] = asyncio.Queue()
        has_evaluator, self._evaluator = self._evaluator is task.evaluator, task.evaluator
        self._send(Start(number, task.content, None if has_evaluator else task.evaluator))
        earlier = list(task.replies)
        try:
            while True:
                messages = [await inbox.get()]
                while not inbox.empty():
                    messages.append(inbox.get_nowait())
                last = messages[-1]
                if isinstance(last, _ActorDied):
                    raise last
                if isinstance(last, Ended):
                    if last.error is not None:
                        raise last.error
                    assert last.outcome is not None
                    return last.outcome
                answers = [
                    task.answer(m, earlier) for m in messages if isinstance(m, ForwardedCall)
                ]
                # Send a single request in this task, because Client.wind_down works by task.
                single = len(answers) == 1
                for answer in [await answers[0]] if single else await asyncio.gather(*answers):
                    self._send(answer)
        finally:
            del self.inboxes[number]

    def _send(self, message: Start | CallAnswer) -> None:
        self._outbox.append(message)
        self._ready.set()

    async def _run(self) -> None:
        """Exchange messages until the actor dies, then notify its units."""
        try:
            async with asyncio.TaskGroup() as group:
                group.create_task(self._give())
                group.create_task(self._take())
        except BaseExceptionGroup as errors:
            self.dead = True
            for inbox in self.inboxes.values():
                inbox.put_nowait(_ActorDied(_line(errors.exceptions[0])))

    async def _give(self) -> None:
        while True:
            await self._ready.wait()
            self._ready.clear()
            messages, self._outbox = self._outbox, []
            await self.actor.give.remote(messages)

    async def _take(self) -> None:
        while True:
            for message in await self.actor.take.remote():
                if (inbox := self.inboxes.get(message.unit)) is not None:
                    inbox.put_nowait(message)


def _line(error: BaseException) -> str:
    """Return the last non-empty line of an error's message."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines[-1] if lines else type(error).__name__)[:300]
