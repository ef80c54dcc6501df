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
from dataclasses import dataclass, fields, replace
from typing import Any, Generic, Protocol, TypeVar

from agenteval.errors import BudgetExceeded, InputError, JobOver, StoreError
from agenteval.evaluators.base import Progress
from agenteval.models.limits import Budget, Limits
from agenteval.records import Usage
from agenteval.store import Store
from agenteval.store.leases import Job, JobState, Leased
from agenteval.store.writer import Writes

INTERRUPTION = "interrupted"  # why a worker stopped on whom Ctrl-C was pressed
_BEAT = 1.0  # seconds between two signs of life
_LOOK = 0.2  # seconds between two looks of who waits

_U = TypeVar("_U")


class SharedBudget(Budget):
    """Caps that all who work on a job keep together. Each is granted a part of what is left, and
    spends it; towards the end parts are small."""

    def __init__(self, job: Job, number: int, limits: Limits) -> None:
        calls, cost = limits.max_calls, limits.max_cost
        super().__init__(
            max_calls=None if calls is None else 0, max_cost=None if cost is None else 0.0,
            price=limits.price,
        )  # fmt: skip
        self._job, self._number, self._caps = job, number, (calls, cost)

    def reserve(self, prompt_tokens: int, completion_tokens: int) -> float:
        """As of any budget. Raises BudgetExceeded when all workers together would pass a cap."""
        try:
            return super().reserve(prompt_tokens, completion_tokens)
        except BudgetExceeded:
            worst = self._worst(prompt_tokens, completion_tokens)
            calls, cost = self._job.grant(self._number, worst, *self._caps)
        self.max_calls = None if self.max_calls is None else self.max_calls + calls
        self.max_cost = None if self.max_cost is None else self.max_cost + cost
        return super().reserve(prompt_tokens, completion_tokens)

    def give_back(self) -> None:
        """What was granted and neither spent nor is held by a call under way."""
        calls = 0 if self.max_calls is None else (
            self.max_calls - self.spent.requests - self._held_calls
        )  # fmt: skip
        spent = (self.spent.cost or 0.0) + self._held_cost
        cost = 0.0 if self.max_cost is None else self.max_cost - spent
        if calls or cost:
            self._job.give_back(self._number, calls, cost)
            self.max_calls = None if self.max_calls is None else self.max_calls - calls
            self.max_cost = None if self.max_cost is None else self.max_cost - cost


@dataclass(frozen=True, slots=True)
class SharedLimits(Limits):
    """Limits of a leader or worker: a budget with a cap is shared with the others."""

    team: Team | None = None

    def budget(self, spent: Usage | None = None) -> Budget:
        """A budget with these caps, of which so much was spent before the job began."""
        own = Limits.budget(self, spent)
        if self.team is None or (self.max_calls is None and self.max_cost is None):
            return own
        return self.team.budget(self, own.spent)


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

    @property
    def known(self) -> Job:
        """The job; it is known as soon as a store is open."""
        if self.job is None:
            raise RuntimeError("no store has been opened yet")
        return self.job

    def bind(self, store: Store) -> None:
        """A store was opened for the command."""
        raise NotImplementedError

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


class Places(Protocol):
    """Where workers run."""

    def start(self, job: str, store: str) -> None:
        """Start them all, for a job in a store."""
        ...

    def tend(self) -> tuple[int | None, list[str]]:
        """How many run, None where others start them; and who is gone for good, by name."""
        ...

    def stop(self, *, kill: bool) -> None:
        """Wait until all have ended, who were told by the job; or end them at once."""
        ...


class Leader(Team):
    """Who was given the command: makes the plans, waits for the workers, shows what comes of it."""

    def __init__(self, command: Sequence[str], package: str, places: Places) -> None:
        super().__init__()
        self._command, self._package = tuple(command), package
        self._places = places
        self._stages: list[str] = []
        self._started = False
        self._own: Store | None = None

    def bind(self, store: Store) -> None:
        """Make the job known in this store, unless it is."""
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
            reasons = sorted({w.stopped for w in workers if w.stopped})
            if left and not at_work and (running == 0 or (running is None and reasons)):
                return "; ".join(reasons) or "no worker is left"
            if left and running is None and not at_work and not waiting:
                tell(f"waiting for workers: agenteval work --store {self._shown()}")
            waiting = not at_work
            await asyncio.sleep(_LOOK)

    def drain(self) -> None:
        """Workers begin nothing more."""
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
        self._beaten = time.monotonic()
        self.gaps = 0  # how often this process was still for longer than a lease holds
        self._beat()
        self._begin_to_beat(self._beat)

    def bind(self, store: Store) -> None:
        """Nothing is locked here: the leader does."""
        store.led = True

    def limits(self, limits: Limits) -> Limits:
        """The same, shared; with the number of requests in flight of this worker."""
        shared = super().limits(limits)
        return shared if self._concurrency is None else replace(
            shared, concurrency=self._concurrency
        )  # fmt: skip

    @property
    def over(self) -> bool:
        """Whether nothing more is to be begun: the job has ended, or its leader is gone."""
        alone = self._parent is not None and os.getppid() != self._parent
        return alone or self._state.state != "open" or not self._state.leader

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

    def stop(self, reason: str) -> None:
        """Say why this worker takes no further unit, and give back what it holds. What the store
        cannot be told runs out by itself."""
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
        self.known.beat(self.name, self.about, counts, self._stopped)
        now = time.monotonic()
        self.gaps += now - self._beaten > self.known.seconds
        self._beaten = now
        self._state = self.known.state()


class LeasedUnits(Generic[_U]):
    """Units of a plan as a worker gets them: leased a few at a time."""

    def __init__(self, worker: Worker, stage: str, units: dict[str, _U], at_once: int) -> None:
        self._worker, self._stage, self._units, self._at_once = worker, stage, units, at_once
        self._held: list[Leased] = []
        self._gaps = worker.gaps
        self._turn = asyncio.Lock()

    async def take(self) -> tuple[_U, Writes] | None:
        """A unit, and what is to be written with its result. None when all are done, or nothing
        more is to be begun. Raises InputError for a unit that this worker does not plan."""
        async with self._turn:
            if self._gaps != self._worker.gaps:  # it was stopped, or its machine slept
                self._gaps = self._worker.gaps
                self._held.clear()
            while not self._held and not self._worker.over:
                job = self._worker.known
                self._held = job.lease(self._worker.name, self._stage, self._at_once)[::-1]
                if not self._held:
                    if not job.undone(self._stage):
                        return None
                    await asyncio.sleep(_LOOK)  # others hold them, and may be killed
            if self._worker.over:
                return None
            leased = self._held.pop()
        unit = self._units.get(leased.unit)
        if unit is None:
            raise InputError("the command has other units than this worker: other files or options")
        return unit, self._worker.known.finishing(self._worker.name, self._stage, leased)


TEAM: ContextVar[Team | None] = ContextVar("team", default=None)


@contextmanager
def within(team: Team) -> Iterator[None]:
    """What is opened and run inside is the team's."""
    before = TEAM.set(team)
    try:
        yield
    finally:
        TEAM.reset(before)
