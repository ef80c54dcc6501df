"""Several processes at one command: a leader that plans and watches, and workers that do the units.

All of them carry out the same command on the same input. At each plan that it comes to
(`Experiment.run`) the leader makes the units known and waits until they are done; a worker leases
units of it, and goes on to the next plan when the leader does. So what a plan depends on is stored
before it is made, wherever it is made. The leases are in `store.leases`.
"""

from __future__ import annotations

import asyncio
import os
import socket
import threading
import time
import uuid
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields, replace
from typing import Any, Generic, Literal, TypeVar

from agenteval.caps import SharedBudget, SharedLimits
from agenteval.engine.unit import Progress
from agenteval.errors import InputError, JobOver, StoreError
from agenteval.models.limits import Budget, Limits
from agenteval.records import Usage
from agenteval.store import Store
from agenteval.store.leases import Job, JobState, Leased
from agenteval.store.writer import Writes

INTERRUPTION = "interrupted"  # why a worker stopped on whom Ctrl-C was pressed
_BEAT = 1.0  # seconds between two signs of life
_LOOK = 0.2  # seconds between two looks of who waits
_RESTARTS = 20  # of workers that were killed; more are no accident
_PATIENCE = 30.0  # seconds that workers get to end when the command has

_U = TypeVar("_U")


class Team:
    """What leader and workers have in common: the job, its caps, the plans so far, signs of life.

    Plans and caps are told apart by their order, which is the same for all.
    """

    def __init__(self) -> None:
        self._budgets: list[SharedBudget] = []
        self._seen: Counter[str] = Counter()
        self._closing = threading.Event()
        self._heart: threading.Thread | None = None
        self.job: Job | None = None
        self.bound = False  # whether a store was opened: what is made before, is made to be checked

    @property
    def known(self) -> Job:
        """The job; it is known as soon as a store is open."""
        if self.job is None:
            raise RuntimeError("no store has been opened yet")
        return self.job

    def bind(self, store: Store) -> None:
        """A store was opened for the command."""
        self.bound = True

    def limits(self, limits: Limits) -> Limits:
        """The same, with caps that are shared."""
        own: dict[str, Any] = {one.name: getattr(limits, one.name) for one in fields(Limits)}
        return SharedLimits(**own, team=self)

    def budget(self, limits: Limits, spent: Usage) -> Budget:
        """The next cap of the command."""
        number = len(self._budgets)
        self.known.cap(number, spent.requests, spent.cost or 0.0)
        self._budgets.append(SharedBudget(self.known, number, limits))
        return self._budgets[-1]

    def _stage(self, plan: str) -> str:
        """The name of a plan, which may come more than once."""
        self._seen[plan] += 1
        return f"{plan[:16]}.{self._seen[plan]}"

    def _begin_to_beat(self, beat: Callable[[], None]) -> None:
        """Call it each second from now on, in a thread: also while this process computes."""

        def run() -> None:
            while not self._closing.wait(_BEAT):
                try:
                    beat()
                except StoreError:  # told by whoever writes next; leases hold for a while
                    continue

        self._heart = threading.Thread(target=run, name="agenteval-alive", daemon=True)
        self._heart.start()

    def _give_back(self) -> None:
        for budget in self._budgets:
            budget.give_back()

    def close(self) -> None:
        """No further signs of life."""
        self._closing.set()
        if self._heart is not None:
            self._heart.join()


# ---- the leader ----------------------------------------------------------------------------------


class Places:
    """Where so many workers run, which share `concurrency`; who is killed is followed by another.
    With a count of 0 others start them."""

    def __init__(self, count: int, concurrency: int) -> None:
        self.count = count
        self._share = max(1, concurrency // max(count, 1))
        self._job = self._store = ""
        self._running: dict[str, Any] = {}
        self._started = 0

    def start(self, job: str, store: str) -> None:
        """Start them all, for a job in a store."""
        self._job, self._store = job, store
        for _ in range(self.count):
            self._start_one()

    def _start_one(self) -> None:
        self._started += 1
        name = f"{self._job[:8]}-{self._started}"
        words = ["work", f"--job={self._job}", f"--name={name}", f"--concurrency={self._share}"]
        self._running[name] = self.spawn([*words, "--quiet"], self._store)

    def tend(self) -> tuple[int | None, list[str]]:
        """How many run, None where others start them; and who is gone, by name."""
        if not self.count:
            return None, []
        ended = {name: how for name, one in self._running.items() if (how := self.ended(one))}
        for name, how in ended.items():
            del self._running[name]
            if how == "killed" and self._started < self.count + _RESTARTS:
                self._start_one()
        return len(self._running), list(ended)

    def stop(self, *, kill: bool) -> None:
        """Wait until all have ended, as the job tells them; who does not in time, or with `kill`,
        is killed."""
        until = time.monotonic() + (0 if kill else _PATIENCE)
        while time.monotonic() < until and not all(map(self.ended, self._running.values())):
            time.sleep(0.05)
        for one in self._running.values():
            if not self.ended(one):
                self.kill(one)
        self._running.clear()

    def spawn(self, words: Sequence[str], store: str) -> Any:
        """Start `agenteval` with these words, and AGENTEVAL_STORE set; returns what tells of it."""
        raise NotImplementedError

    def ended(self, one: Any) -> Literal["", "ended", "killed"]:
        """Whether a worker has ended, and how."""
        raise NotImplementedError

    def kill(self, one: Any) -> None:
        """End it at once."""
        raise NotImplementedError


class Leader(Team):
    """Who was given the command: makes the plans, waits for the workers, shows what comes of it."""

    def __init__(self, command: Sequence[str], package: str, places: Places) -> None:
        super().__init__()
        self._command, self._package = tuple(command), package
        self._places = places
        self._stages: list[str] = []
        self._started = self._draining = False
        self._own: Store | None = None

    def bind(self, store: Store) -> None:
        """Make the job known in this store, unless it is."""
        super().bind(store)
        if self.job is None:
            self._own = Store(store.address)
            self.job = Job(self._own.engine, uuid.uuid4().hex)
            self.job.begin(self._command, self._package)
            self._begin_to_beat(self.job.live)

    def begin(self, plan: str, units: Iterable[str]) -> tuple[str, int]:
        """Make the units of a plan known, and start the workers with the first. Returns the name
        of the plan and how many units are to be done."""
        stage = self._stage(plan)
        self._stages.append(stage)
        self.known.open_stage(self._stages, units)
        left = self.known.undone(stage)
        if left and not self._started:
            self._started = True
            self._places.start(self.known.key, str(self._own.address if self._own else ""))
        return stage, left

    async def watch(
        self, stage: str, progress: Progress, on_progress: Callable[[Progress], None],
        tell: Callable[[str], None],
    ) -> str | None:  # fmt: skip
        """Until all units are done, or nobody is left to do them: returns why they stopped."""
        waiting, patience = False, time.monotonic() + 2 * _BEAT
        while True:
            running, gone = self._places.tend() if self._started else (0, [])
            for worker in gone:
                self.known.release(worker)
            if self.known.state().state == "ended":  # then no unit is known, done or not
                return "another command took this one for dead"
            left = self.known.undone(stage)
            workers = self.known.workers()
            progress.done = progress.total - left
            _count(progress, [w.counts for w in workers if w.counts.get("stage") == stage])
            on_progress(progress)
            counted = sum(progress.outcomes.values())
            if not left and (counted >= progress.total or time.monotonic() > patience):
                return None
            if left:  # workers tell the last of what they counted when all is done
                patience = time.monotonic() + 2 * _BEAT
            at_work = [w for w in workers if w.alive and w.stopped is None]
            mine = (w for w in workers if w.counts.get("stage") == stage)
            reasons = sorted({w.stopped for w in mine if w.stopped})
            if left and not at_work:
                if self._draining and not running:
                    return "interrupted"
                if running == 0 or (running is None and reasons):
                    return "; ".join(reasons) or "no worker is left"
            if left and running is None and not at_work and not waiting:
                tell(f"waiting for workers: agenteval work --store {self._shown()}")
            waiting = not at_work
            await asyncio.sleep(_LOOK if left < 100 else 5 * _LOOK)  # counting many takes its time

    def drain(self) -> None:
        """Workers begin nothing more."""
        self._draining = True
        self.known.drain()

    def end(self) -> None:
        """The command is carried out, or broken off: no worker stays."""
        self.close()
        if self.job is None or self._own is None:
            return
        try:
            self.job.end()
        finally:
            self._places.stop(kill=False)
            self._own.close()

    def kill(self) -> None:
        """End the workers at once."""
        self._places.stop(kill=True)

    def _shown(self) -> str:
        return self._own.shown if self._own is not None else ""


def _count(progress: Progress, counts: Sequence[dict[str, Any]]) -> None:
    """Sum up what workers counted; what one that was killed did not tell in its last second is
    missing here, in nothing else."""
    progress.outcomes = sum((Counter(c["outcomes"]) for c in counts), Counter())
    progress.usage = sum((Usage.model_validate(c["usage"]) for c in counts), Usage())


# ---- a worker ------------------------------------------------------------------------------------


class Worker(Team):
    """One process at a job. `concurrency` is that of its requests; None: as the command says. One
    with a name was started by the leader's own process or by Ray, and ends with whoever did."""

    def __init__(self, job: Job, name: str | None = None, concurrency: int | None = None) -> None:
        super().__init__()
        self.job = job
        self.name = name or uuid.uuid4().hex
        self.about = f"process {os.getpid()} on {socket.gethostname()}"
        self._concurrency = concurrency
        self._parent = None if name is None else os.getppid()
        self._state = job.state()
        self._stopped: str | None = None
        self._counting: tuple[str, Progress] | None = None
        self._passed: set[str] = set()
        self._renewed = 0.0
        self._over = False
        self._beat()
        self._begin_to_beat(self._beat)

    def bind(self, store: Store) -> None:
        """Nothing is locked here: the leader does."""
        super().bind(store)
        store.led = True

    def limits(self, limits: Limits) -> Limits:
        """The same, shared; with the number of requests in flight of this worker."""
        shared = super().limits(limits)
        return shared if self._concurrency is None else replace(
            shared, concurrency=self._concurrency
        )  # fmt: skip

    @property
    def over(self) -> bool:
        """Whether nothing more is to be begun: the job has ended, or its leader is gone. Then it
        stays so, also if the leader was only asleep."""
        gone = not self._state.leader if self._parent is None else os.getppid() != self._parent
        self._over = self._over or gone or self._state.state != "open"
        return self._over

    async def until_over(self) -> None:
        """Wait until nothing more is to be begun."""
        while not self.over:
            await asyncio.sleep(_LOOK)

    async def enter(self, plan: str, progress: Progress) -> str | None:
        """Wait until the leader has come to this plan; returns its name, None when it is done
        already. Raises JobOver, and InputError where the leader comes to another one."""
        stage = self._stage(plan)
        while True:
            state = self._look()
            if stage in state.stages:
                self._passed.add(stage)
                if stage != state.stages[-1]:
                    return None
                self._counting = (stage, progress)
                return stage
            ahead = state.stages[-1] if state.stages else None
            if ahead is not None and ahead not in self._passed and self.known.undone(ahead):
                raise InputError(
                    "other runs, criteria, options or files than those of the command lie here: "
                    "what is planned is not the same"
                )
            await asyncio.sleep(_LOOK)

    async def leave(self, stage: str) -> None:
        """Wait until the leader goes on to another plan. Raises JobOver."""
        self._give_back()
        self._beat()
        while self._look().stages[-1:] == (stage,):
            await asyncio.sleep(_LOOK)

    def stop(self, reason: str | None) -> None:
        """Take no further unit, and give back what is held. A `reason` is what would stop any other
        worker as well."""
        self._stopped = reason
        self._give_back()
        self._beat()
        self.known.release(self.name)

    def _look(self) -> JobState:
        self._state = self.known.state()
        if self.over:
            raise JobOver("the job is over")
        return self._state

    def _beat(self) -> None:
        counts: dict[str, Any] = {}
        if self._counting is not None:
            stage, progress = self._counting
            counts = {
                "stage": stage, "outcomes": dict(progress.outcomes),
                "usage": progress.usage.model_dump(),
            }  # fmt: skip
        now = time.monotonic()
        renew = now - self._renewed > self.known.seconds / 4
        self.known.beat(self.name, self.about, counts, self._stopped, renew=renew)
        self._renewed = now if renew else self._renewed
        self._state = self.known.state()


class LeasedUnits(Generic[_U]):
    """Units of a plan as a worker gets them: leased a few at a time."""

    def __init__(
        self, worker: Worker, stage: str, units: dict[str, _U], at_once: int,
        ended: Callable[[], bool],
    ) -> None:  # fmt: skip
        self._worker, self._stage, self._units, self._at_once = worker, stage, units, at_once
        self._ended = ended
        self._held: list[Leased] = []
        self._turn = asyncio.Lock()

    async def take(self) -> tuple[_U, Writes] | None:
        """A unit, and what is to be written with its result. None when all are done, or nothing
        more is to be begun: what is still held is for `Worker.stop` to give back. Raises InputError
        for a unit that this worker does not plan."""
        async with self._turn:
            job = self._worker.known
            while not self._held and not self._ended():
                # in a thread: other writers may hold it up, and replies come in meanwhile
                name = self._worker.name
                taken = await asyncio.to_thread(job.lease, name, self._stage, self._at_once)
                self._held = taken[::-1]
                if not self._held:
                    if not await asyncio.to_thread(job.undone, self._stage):
                        return None
                    await asyncio.sleep(_LOOK)  # others hold them, and may be killed
            if self._ended():
                return None
            leased = self._held.pop()
        unit = self._units.get(leased.unit)
        if unit is None:
            raise InputError("the command has other units than this worker: other files or options")
        return unit, job.finishing(self._worker.name, self._stage, leased)


TEAM: ContextVar[Team | None] = ContextVar("team", default=None)


@contextmanager
def within(team: Team) -> Iterator[None]:
    """What is opened and run inside is the team's."""
    before = TEAM.set(team)
    try:
        yield
    finally:
        TEAM.reset(before)
