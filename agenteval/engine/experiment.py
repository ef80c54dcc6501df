"""Run an experiment: evaluate what the store lacks, store each outcome, stop for good reasons."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from agenteval.engine.dry_run import CostEstimate, estimate
from agenteval.engine.executor import Executor, LocalExecutor
from agenteval.engine.resume import Pending, pending
from agenteval.engine.unit import Evaluate, Evaluator, ExperimentResult, Progress, T, Unit
from agenteval.errors import StoreError, Unauthorized
from agenteval.store import Store
from agenteval.store.experiments import StoredExperiment, begin, finish
from agenteval.text import plural

if TYPE_CHECKING:
    from agenteval.models.client import Client

FIRST_FAILURES = 8  # this many failures in a row before anything succeeded: it never will
LATER_FAILURES = 32  # the same after a success: more than a short outage with many calls running

R = TypeVar("R")
OnProgress = Callable[[Progress], None]


class Experiment(Generic[T]):
    """An evaluator whose results go to a store: `await Experiment(evaluator, store).run()`.

    At most `concurrency` units run at once; `executor` says where. `client` is that of a judge; at
    an interrupt it drops requests that are not sent yet (`Client.wind_down`). `notify` gets one
    line for what is about to run and for an interrupt, `warn` what readers of the results must
    know.

    The promises:

    - Resume: only units that the store lacks are evaluated (see `pending`). A unit counts as done
      when its outcome is durable.
    - Partial results are never reported as complete: the store marks the experiment as unfinished
      until all of it is stored.
    - Budget: when a cap is reached, no further unit is started. A unit that the cap broke off is
      stored with what it spent, and is evaluated again later.
    - Outage: the experiment stops when the first 8 units fail because of the infrastructure, or 32
      in a row after a success, or all of a short one.
    - Time: after `minutes` no unit is started; running ones finish and are stored.
    - Interrupt: after a cancellation no unit is started; running ones get `Evaluator.grace` seconds
      to finish and are stored. A second cancellation stops them, and they are not stored.

    `run` holds the lock of the experiment. It raises StoreLocked when another process holds it, and
    Unauthorized, StoreError and whatever else `Evaluator.evaluate` raises; what was stored stays.
    """

    def __init__(  # noqa: PLR0913  each is one option of a run
        self,
        evaluator: Evaluator[T],
        store: Store,
        *,
        concurrency: int = 8,
        retry_failed: bool = False,
        client: Client | None = None,
        notify: Callable[[str], None] = lambda _: None,
        warn: Callable[[str], None] | None = None,
        announce: bool = True,
        executor: Executor | None = None,
        minutes: float | None = None,
    ) -> None:
        self.evaluator = evaluator
        self.store = store
        self.concurrency = concurrency
        self.retry_failed = retry_failed
        self.client = client
        self.notify = notify
        self.warn = warn or notify
        self.announce = announce
        self.executor = executor or LocalExecutor()
        self.minutes = minutes
        self._ends = math.inf
        self.progress = Progress(0)
        self._breaker = Breaker(evaluator.noun)
        self._running = 0
        self._evaluate: Evaluate = evaluator.evaluate

    def pending(self) -> Pending[T]:
        """Return what the store lacks."""
        return pending(self.evaluator, self.store, retry_failed=self.retry_failed)

    def begin(self, work: Pending[T] | None = None) -> None:
        """Store what is evaluated, and that the experiment is unfinished.

        `run` does this too. Call it first for several experiments of one command, so that readers
        of the store know that all of them are planned.
        """
        for line in self.evaluator.register(self.store):
            self.warn(line)
        self._begin(work or self.pending())

    async def run(self, on_progress: OnProgress = lambda _: None) -> ExperimentResult:
        """Evaluate what is missing; see the class. Calls `on_progress` at the start and after each
        unit."""
        with self.store.lock(self.evaluator.lock):
            for line in self.evaluator.register(self.store):
                self.warn(line)
            work = self.pending()
            if work.units:
                self._evaluate = await self.executor.prepare(self.evaluator, self.store)
            self._begin(work)
            if self.announce:
                self.notify(announcement(self.evaluator, work))
            return await self._run(work, on_progress)

    async def dry_run(self, seen: set[str] | None = None) -> CostEstimate:
        """Return the requests that `run` would send. Nothing is sent or stored.

        `seen` is shared by consecutive experiments, because the reply to a request of one can also
        answer a request of another.
        """
        return await estimate(self.evaluator, self.pending(), seen)

    def _begin(self, work: Pending[T]) -> None:
        source = self.evaluator.source
        stored = StoredExperiment(
            self.evaluator.source_key,
            source.evaluator,
            source.model,
            self.evaluator.lock,
            work.grids,
            self.evaluator.system_key,
        )
        begin(self.store, stored, idle=not work.units)

    async def _run(self, work: Pending[T], on_progress: OnProgress) -> ExperimentResult:
        self.progress = Progress(len(work.units))
        if self.minutes is not None:
            self._ends = time.monotonic() + 60 * self.minutes
        on_progress(self.progress)
        units = iter(work.units)
        count = min(self.concurrency, len(work.units))
        running = asyncio.ensure_future(run_workers(lambda: self._work(units, on_progress), count))
        await shielded(running, lambda: self._wind_down(running))
        unfinished = self.progress.total - self.progress.done
        if work.units and not unfinished:
            finish(self.store, self.evaluator.source_key)
        stopped = self._breaker.stopped
        if stopped is None and not work.done:
            stopped = self._breaker.nothing_worked()
        return ExperimentResult(self.progress, stopped, unfinished)

    async def _work(self, units: Iterator[Unit[T]], on_progress: OnProgress) -> None:
        for unit in units:
            if time.monotonic() >= self._ends:
                over = f"the time of {self.minutes:g} minutes is used up"
                self._breaker.stopped = self._breaker.stopped or over
            if self._breaker.stopped:
                return
            self._running += 1
            try:
                outcome = await self._evaluate(unit)
                failure = outcome.broken
                over_budget = failure is not None and failure[0] == "error:budget"
                if not over_budget or outcome.usage.requests:
                    await self.store.save(  # returns when it is durable
                        outcome.results,
                        outcome.call,
                        attempt=outcome.attempt,
                        verdict_only=outcome.verdict_only,
                    )
            finally:
                self._running -= 1
            self.progress.usage = self.progress.usage + outcome.usage
            if failure is not None and over_budget:
                self._breaker.stopped = self._breaker.stopped or failure[1]
                return
            self.progress.done += 1
            self.progress.outcomes.update(outcome.statuses)
            self._breaker.note(None if failure is None else failure[1])
            on_progress(self.progress)

    async def _wind_down(self, running: asyncio.Future[None]) -> None:
        """Start no further unit, and wait for running ones, at most `grace` seconds."""
        self._breaker.stopped = self._breaker.stopped or "interrupted"
        grace, noun = self.evaluator.grace, self.evaluator.noun
        count = self._running if self.client is None else self.client.under_way
        if count:
            limit = "" if grace is None else f", for at most {grace:g} s"
            self.notify(
                f"interrupted: finishing {plural(count, noun)} in progress{limit}; "
                "interrupt again to stop at once"
            )
        if self.client is not None:
            self.client.wind_down()
        await asyncio.wait({running}, timeout=grace)
        if not running.done():
            self.notify(f"{plural(self._running, noun)} stopped: not stored, to be run again")


def announcement(evaluator: Evaluator[T], work: Pending[T]) -> str:
    """Return one line about what is stored and what is left to run."""
    name, noun = evaluator.source.model, evaluator.noun
    if not evaluator.criteria:
        stored, new = work.done + work.unjudged, len(work.units) - work.unjudged
        done = f", {stored} done before" if stored else ""
        rejudged = f", {work.unjudged} of them to be judged again" if work.unjudged else ""
        return f"{name}: {plural(new, noun)} to run{done}{rejudged}"
    done = f", {work.done} already scored" if work.done else ""
    failed = f", {work.failed} without a score (--retry-failed asks again)" if work.failed else ""
    calls = plural(len(work.units), noun)
    return f"{plural(work.cells, 'cell')}{done}{failed}; {work.open} to judge in {calls}"


@dataclass(slots=True)
class Breaker:
    """Counts failures in a row; `stopped` is the reason to stop, None as long as there is none."""

    noun: str = "call"
    stopped: str | None = None
    in_a_row: int = 0
    succeeded: bool = False
    last: str = ""

    def note(self, failure: str | None) -> None:
        """Count one more unit: with this failure of the infrastructure, or with none."""
        self.in_a_row = 0 if failure is None else self.in_a_row + 1
        self.succeeded = self.succeeded or failure is None
        self.last = failure or ""
        limit = LATER_FAILURES if self.succeeded else FIRST_FAILURES
        if self.in_a_row >= limit and self.stopped is None:
            self.stopped = f"{limit} {self.noun}s in a row failed: {self.last}"

    def nothing_worked(self) -> str | None:
        """Return the reason when the infrastructure failed every unit, else None."""
        if self.succeeded or not self.in_a_row:
            return None
        return f"every {self.noun} failed: {self.last}"


async def run_workers(work: Callable[[], Coroutine[Any, Any, None]], count: int) -> None:
    """Run `count` workers at once until all have ended.

    When one raises, the others are cancelled and one exception is raised: Unauthorized or
    StoreError where there is one, else the first.
    """
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(work())
    except BaseExceptionGroup as group_error:
        errors = list(_leaves(group_error))
        telling = (e for kind in (Unauthorized, StoreError) for e in errors if isinstance(e, kind))
        raise next(telling, errors[0]) from None


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


async def answered(
    work: Coroutine[Any, Any, R], client: Client, on_cancel: Callable[[], None]
) -> R:
    """Return what `work` returns, of which only the replies that `client` gets are stored.

    When this task is cancelled, no request is started. If some are running, `on_cancel` is called
    and their replies are stored before `work` is cancelled and CancelledError raised.
    """

    async def rest() -> None:
        if client.under_way:
            on_cancel()
        client.wind_down(repairs=False)
        while client.under_way:  # the tasks that await them may have been cancelled already
            await asyncio.sleep(0.02)

    return await shielded(asyncio.ensure_future(work), rest)


async def shielded(task: asyncio.Future[R], rest: Callable[[], Coroutine[Any, Any, None]]) -> R:
    """Return what the task returns.

    When the waiting task is cancelled (`asyncio.run` turns Ctrl-C into that), `rest` is awaited, or
    until a second cancellation. Then the task is cancelled, and CancelledError raised, or what the
    task raises.
    """
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        try:
            if not task.done():  # else the task itself was cancelled
                await rest()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
        if not task.cancelled():
            task.result()  # raises, for example when the store could not save a result
        raise
