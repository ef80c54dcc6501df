"""Run an experiment: evaluate what the store lacks, and store each outcome."""

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

FIRST_FAILURES = 8  # stop after this many failures in a row without any success
LATER_FAILURES = 32  # after a success; more than a short outage with many calls running

R = TypeVar("R")
OnProgress = Callable[[Progress], None]


class Experiment(Generic[T]):
    """An evaluator whose results go to a store: `await Experiment(evaluator, store).run()`.

    At most `concurrency` units run at once, in the `executor`. `client` is the judge's client; on
    an interrupt it drops requests that have not been sent (`Client.wind_down`). `notify` gets a
    line at the start and on an interrupt, `warn` gets everything that affects the results.

    Guarantees:

    - Resume: only units that the store lacks are evaluated (see `pending`). A unit counts as done
      when its outcome is durable.
    - Partial results are never reported as complete: the store marks the experiment as unfinished
      until all of it is stored.
    - Budget: when a cap is reached, no more units are started. A unit that the cap interrupted is
      stored with its usage and evaluated again later.
    - Outage: the experiment stops when the first 8 units fail because of the infrastructure, when
      32 in a row fail after a success, or when all units of a short experiment fail.
    - Time: after `minutes`, no more units are started; running ones finish and are stored.
    - Interrupt: after a cancellation, no more units are started; running ones get `Evaluator.grace`
      seconds to finish and are stored. A second cancellation stops them without storing them.

    `run` holds the lock of the experiment. It raises StoreLocked if another process holds it, and
    Unauthorized, StoreError and anything else that `Evaluator.evaluate` raises. Stored results are
    kept.
    """

    def __init__(  # noqa: PLR0913  options of a run
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
        """Return the units that the store lacks."""
        return pending(self.evaluator, self.store, retry_failed=self.retry_failed)

    def begin(self, work: Pending[T] | None = None) -> None:
        """Store the evaluated items, and mark the experiment as unfinished.

        `run` also does this. If a command has several experiments, call `begin` for all of them
        first, so that readers of the store see all planned experiments.
        """
        for line in self.evaluator.register(self.store):
            self.warn(line)
        self._begin(work or self.pending())

    async def run(self, on_progress: OnProgress = lambda _: None) -> ExperimentResult:
        """Evaluate the missing units; see the class. Calls `on_progress` at the start and after
        each unit."""
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

        `seen` is shared by consecutive experiments, because they may send the same request.
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
                time_is_up = f"the time limit of {self.minutes:g} minutes was reached"
                self._breaker.stopped = self._breaker.stopped or time_is_up
            if self._breaker.stopped:
                return
            self._running += 1
            try:
                outcome = await self._evaluate(unit)
                failure = outcome.broken
                over_budget = failure is not None and failure[0] == "error:budget"
                if not over_budget or outcome.usage.requests:
                    await self.store.save(  # returns when the outcome is durable
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
        """Stop starting units and wait for running ones, at most `grace` seconds."""
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
    """Return one line about stored and pending units."""
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
    """Counts consecutive failures; `stopped` is the reason to stop, or None."""

    noun: str = "call"
    stopped: str | None = None
    in_a_row: int = 0
    succeeded: bool = False
    last: str = ""

    def note(self, failure: str | None) -> None:
        """Count a unit and its infrastructure failure, if any."""
        self.in_a_row = 0 if failure is None else self.in_a_row + 1
        self.succeeded = self.succeeded or failure is None
        self.last = failure or ""
        limit = LATER_FAILURES if self.succeeded else FIRST_FAILURES
        if self.in_a_row >= limit and self.stopped is None:
            self.stopped = f"{limit} {self.noun}s in a row failed: {self.last}"

    def nothing_worked(self) -> str | None:
        """Return the reason if the infrastructure failed every unit, else None."""
        if self.succeeded or not self.in_a_row:
            return None
        return f"every {self.noun} failed: {self.last}"


async def run_workers(work: Callable[[], Coroutine[Any, Any, None]], count: int) -> None:
    """Run `count` workers concurrently until all have ended.

    If one raises, the others are cancelled and one exception is raised: Unauthorized or StoreError
    if there is one, else the first.
    """
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(work())
    except BaseExceptionGroup as group_error:
        errors = list(_leaves(group_error))
        fatal = (e for kind in (Unauthorized, StoreError) for e in errors if isinstance(e, kind))
        raise next(fatal, errors[0]) from None


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error


async def answered(
    work: Coroutine[Any, Any, R], client: Client, on_cancel: Callable[[], None]
) -> R:
    """Return what `work` returns; only the replies received by `client` are stored.

    If this task is cancelled, no more requests are started. If some are running, `on_cancel` is
    called, and their replies are stored before `work` is cancelled and CancelledError is raised.
    """

    async def wind_down() -> None:
        if client.under_way:
            on_cancel()
        client.wind_down(repairs=False)
        while client.under_way:  # the tasks that await them may already be cancelled
            await asyncio.sleep(0.02)

    return await shielded(asyncio.ensure_future(work), wind_down)


async def shielded(
    task: asyncio.Future[R], wind_down: Callable[[], Coroutine[Any, Any, None]]
) -> R:
    """Return what the task returns.

    If the waiting task is cancelled (`asyncio.run` does this on Ctrl-C), `wind_down` is awaited
    until it ends or a second cancellation. Then the task is cancelled, and CancelledError or the
    task's own error is raised.
    """
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        try:
            if not task.done():  # else the task itself was cancelled
                await wind_down()
        finally:
            if not task.done():
                task.cancel()
                await asyncio.wait({task})
        if not task.cancelled():
            task.result()  # raises, for example when the store could not save a result
        raise
