"""The one engine: runs what a plan has left, stores each outcome, stops for good reasons only."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from agenteval.errors import JobOver, LeaseLost, StoreError, Unauthorized
from agenteval.evaluators import base
from agenteval.evaluators.base import Progress
from agenteval.evaluators.trials import TrialOutcome
from agenteval.store import Store
from agenteval.store.experiments import Begun, finish
from agenteval.store.writer import Writes
from agenteval.text import plural
from agenteval.workers import INTERRUPTION, TEAM, Leader, LeasedUnits, Worker

if TYPE_CHECKING:
    from agenteval.models.client import Client

AT_FIRST = 8  # units that fail in a row before anything has worked: it never will
LATER = 32  # the same after successes: more than a short outage with many calls in flight

_T = TypeVar("_T")
_U = TypeVar("_U")
_U_co = TypeVar("_U_co", covariant=True)

Outcome = base.Outcome | TrialOutcome


# The next unit, with what is to be written beside its result; None when there is none.
Take = Callable[[], Awaitable[tuple[_U, Writes] | None]]


class Units(Protocol[_U_co]):
    """The units of a plan: so many, in their order. Going through them twice gives the same."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[_U_co]: ...


class Plan(Protocol[_U]):
    """What an evaluator has left to do, as `Experiment` needs it.

    `make_plan` in `evaluators.utility.plan` makes that of a judge, and `plan_trials`,
    `plan_dissections`, `plan_findings` and `plan_workflows` in the other evaluators' packages
    those of trials, each from what the store lacks.
    """

    @property
    def units(self) -> Units[_U]:
        """Plain data, one for each call of `evaluate`."""
        ...

    @property
    def noun(self) -> str:
        """What one unit is called in a sentence: call, trial, trace."""
        ...

    @property
    def name(self) -> str:
        """What tells it from other plans of a command: the same wherever and whenever it is made,
        whatever is stored by then."""
        ...

    def keyed(self) -> Iterator[tuple[str, _U]]:
        """The units with a key for each, by the same rule."""
        ...

    @property
    def grace(self) -> float | None:
        """Seconds that units under way get to end after an interrupt; None: as long as it takes."""
        ...

    @property
    def worked(self) -> bool:
        """Whether some of the plan is stored already: then it is no dead endpoint."""
        ...

    def begin(self, store: Store) -> Begun | None:
        """Make known what is evaluated, and note that it is begun; both are durable then. No note
        is made of a plan of nothing."""
        ...

    async def evaluate(self, unit: _U) -> Outcome:
        """What comes of one unit. Failures are outcomes; what is raised ends the experiment."""
        ...


@dataclass(frozen=True, slots=True)
class Ended:
    """How an experiment ended. `stopped` says why when units were left out, or all failed."""

    progress: Progress
    stopped: str | None = None
    left_out: int = 0


class Experiment(Generic[_U]):
    """A plan that is run into a store: `Experiment(plan, store, workers=8).run(on_progress)`.

    `workers` units are under way at once. A unit counts when its outcome is durable; until all of
    the plan is stored, the store says so (`store.experiments`). A plan is made
    from what the store lacks, so the same plan made again goes on where this one ended. Whoever
    makes and runs a plan holds the experiment's lock meanwhile (`Store.lock`).

    It stops early, with a reason:

    - at the budget. A unit that it broke off is stored with what it took, if it took anything, and
      is not done;
    - when the first 8 units fail for the infrastructure, or 32 in a row later, or all of a short
      plan of which nothing has ever worked.

    Units under way are then finished and stored. Unauthorized, StoreError and whatever else
    `Plan.evaluate` raises ends it at once; what was stored stays.

    When it is cancelled (Ctrl-C), no further unit is begun; `on_interrupt` gets a sentence for
    the user, and those under way have `Plan.grace` seconds to end and be stored before
    CancelledError is raised. With the `client` of a judge, units whose request is not sent yet end
    at once (see `Client.wind_down`). What does not end in time, and what is under way at a second
    cancellation, is not stored, as if it had never been begun, and `on_interrupt` is told.
    """

    def __init__(
        self,
        plan: Plan[_U],
        store: Store,
        *,
        workers: int = 8,
        client: Client | None = None,
        on_interrupt: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.plan = plan
        self.store = store
        self.client = client
        self.workers = workers
        self.on_interrupt = on_interrupt
        self.progress = Progress(len(plan.units))
        self._breaker = Breaker(plan.noun)
        self._under_way = 0

    async def run(self, on_progress: Callable[[Progress], None] = lambda _: None) -> Ended:
        """Run it to its end; see the class. `on_progress` is called after every unit.

        Within a team (see `workers`) the leader waits until others have done it, and a worker does
        what it can lease of it.
        """
        team = TEAM.get()
        if isinstance(team, Worker):
            return await self._join(team)
        begun = self.plan.begin(self.store)
        if isinstance(team, Leader):
            stopped = await self._lead(team, on_progress)
        else:
            listed = iter(self.plan.units)

            async def take() -> tuple[_U, Writes] | None:
                return next(((unit, ()) for unit in listed), None)

            work = self._begin(take, min(self.workers, self._left), on_progress)
            await _shielded(work, lambda: self._wind_down(work))
            stopped = self._breaker.stopped
        if begun is not None and not self._left:
            finish(self.store, begun)
        if stopped is None and not self.plan.worked:
            stopped = self._breaker.nothing_worked()
        return Ended(self.progress, stopped, self._left)

    async def _lead(self, leader: Leader, on_progress: Callable[[Progress], None]) -> str | None:
        """Have it done; returns why it was stopped. At the first interrupt workers are told to end
        in order, at the second they are ended."""
        stage, self.progress.total = leader.begin(
            self.plan.name, (key for key, _ in self.plan.keyed())
        )
        watched = asyncio.ensure_future(
            leader.watch(stage, self.progress, on_progress, self.on_interrupt)
        )

        async def drain() -> None:
            leader.drain()
            self.on_interrupt("interrupted: workers finish what is under way; once more ends them")
            await asyncio.wait({watched})

        try:
            await _shielded(watched, drain)
        except asyncio.CancelledError:
            if not watched.done() or watched.cancelled():
                leader.kill()
            raise
        stopped = watched.result()
        failures = self.progress.failures
        if stopped is None and failures and not self.progress.scored and not self.plan.worked:
            return f"every {self.plan.noun} failed: {', '.join(sorted(failures))}"
        return stopped

    async def _join(self, worker: Worker) -> Ended:
        """Do what can be leased of it, until the leader goes on to another plan. Raises JobOver
        where none follows, or where this worker has to stop."""
        try:
            return await self._joined(worker)
        except asyncio.CancelledError:
            raise JobOver(INTERRUPTION) from None

    async def _joined(self, worker: Worker) -> Ended:
        units = dict(self.plan.keyed())
        stage = await worker.enter(self.plan.name, self.progress)
        if stage is None:
            return Ended(self.progress)
        self.plan.begin(self.store)
        leased = LeasedUnits(
            worker, stage, units, self.workers,
            lambda: worker.over or self._breaker.stopped is not None,
        )  # fmt: skip
        work = self._begin(leased.take, self.workers, lambda _: None)
        over = asyncio.ensure_future(worker.until_over())

        async def done() -> None:
            await asyncio.wait({work, over}, return_when=asyncio.FIRST_COMPLETED)
            if not work.done():
                await self._wind_down(work)

        try:
            await _shielded(asyncio.ensure_future(done()), lambda: self._wind_down(work))
        finally:
            over.cancel()
            if not work.done():
                work.cancel()
                await asyncio.wait({work})
        if not work.cancelled():
            work.result()
        if self._breaker.stopped and not worker.over:
            raise JobOver(self._breaker.stopped, stops_all=True)
        await worker.leave(stage)
        return Ended(self.progress)

    def _begin(
        self, take: Take[_U], count: int, on_progress: Callable[[Progress], None]
    ) -> asyncio.Future[None]:
        return asyncio.ensure_future(run_workers(lambda: self._work(take, on_progress), count))

    @property
    def _left(self) -> int:
        return self.progress.total - self.progress.done

    async def _wind_down(self, work: asyncio.Future[None]) -> None:
        """Begin no further unit, and wait for those under way as long as they may take."""
        self._breaker.stopped = self._breaker.stopped or "interrupted"
        under_way = self._under_way if self.client is None else self.client.under_way
        if under_way:
            bound = "" if self.plan.grace is None else f", for at most {self.plan.grace:g} s"
            self.on_interrupt(
                f"interrupted: finishing {plural(under_way, self.plan.noun)} under way"
                f"{bound}; once more ends it at once"
            )
        if self.client is not None:
            self.client.wind_down()
        await asyncio.wait({work}, timeout=self.plan.grace)
        if not work.done():
            self.on_interrupt(
                f"{plural(self._under_way, self.plan.noun)} broken off: not stored, to be run again"
            )

    async def _work(self, take: Take[_U], on_progress: Callable[[Progress], None]) -> None:
        while not self._breaker.stopped and (taken := await take()) is not None:
            unit, beside = taken
            if self._breaker.stopped:  # while it waited
                return
            self._under_way += 1
            try:
                outcome = await self.plan.evaluate(unit)
                broken = outcome.broken
                over_budget = broken is not None and broken[0] == "error:budget"
                if not over_budget or outcome.usage.requests:
                    await outcome.keep(self.store, () if over_budget else beside)
            except LeaseLost:  # done by another worker, or about to be
                continue
            finally:
                self._under_way -= 1
            self.progress.usage = self.progress.usage + outcome.usage
            if broken is not None and over_budget:
                self._breaker.stopped = self._breaker.stopped or broken[1]
                return
            self.progress.done += 1
            self.progress.outcomes.update(outcome.statuses)
            self._breaker.note(None if broken is None else broken[1])
            on_progress(self.progress)


@dataclass(slots=True)
class Breaker:
    """Counts failures in a row; `stopped` is the reason to stop, None as long as there is none."""

    noun: str = "call"
    stopped: str | None = None
    in_a_row: int = 0
    answered: bool = False
    last: str = ""

    def note(self, failure: str | None) -> None:
        """One more unit ended: with this failure of the infrastructure, or with none."""
        self.in_a_row = 0 if failure is None else self.in_a_row + 1
        self.answered = self.answered or failure is None
        self.last = failure or ""
        limit = LATER if self.answered else AT_FIRST
        if self.in_a_row >= limit and self.stopped is None:
            self.stopped = f"{limit} {self.noun}s in a row failed: {self.last}"

    def nothing_worked(self) -> str | None:
        """The reason when every unit failed for the infrastructure; None when one did not."""
        if self.answered or not self.in_a_row:
            return None
        return f"every {self.noun} failed: {self.last}"


async def run_workers(work: Callable[[], Coroutine[Any, Any, None]], count: int) -> None:
    """Run `count` workers at once until all have ended.

    When one raises, the others are cancelled and one exception is raised: a refused key or a full
    disk says it all, else the first.
    """
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(work())
    except BaseExceptionGroup as many:
        errors = list(_leaves(many))
        telling = (e for kind in (Unauthorized, StoreError) for e in errors if isinstance(e, kind))
        raise next(telling, errors[0]) from None


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


async def answered(
    work: Coroutine[Any, Any, _T], client: Client, on_cancel: Callable[[], None]
) -> _T:
    """What `work` returns, of which nothing is kept but the replies that it has `client` ask for.

    When this task is cancelled, nothing more is asked; if requests are under way, `on_cancel` is
    called, and their replies go into the client's cache before `work` is cancelled where it stands
    and CancelledError raised.
    """

    async def rest() -> None:
        if client.under_way:
            on_cancel()
        client.wind_down(repairs=False)
        while client.under_way:  # whoever awaited these may have been cancelled already
            await asyncio.sleep(0.02)

    return await _shielded(asyncio.ensure_future(work), rest)


async def _shielded(task: asyncio.Future[_T], rest: Callable[[], Coroutine[Any, Any, None]]) -> _T:
    """What the task returns.

    When the task that waits here is cancelled (`asyncio.run` makes Ctrl-C one), `rest` is done
    first, or until a second cancellation; then the other is cancelled where it stands, and
    CancelledError raised, or what it raises.
    """
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        try:
            if not task.done():  # else it was not this task that was cancelled, or both at once
                await rest()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
        if not task.cancelled():
            task.result()  # such as a store that has not kept what came
        raise
