"""Run what a plan says is missing, and keep what comes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

from agenteval.draining import drained
from agenteval.evaluators.base import Evaluator, Outcome, Unit, judge
from agenteval.outage import Breaker, run_workers
from agenteval.plan import Item, Plan, joined, make_plan
from agenteval.records import Failure, Usage, content_hash
from agenteval.store import Store
from agenteval.store.experiments import Begun, Experiment, begin, finish
from agenteval.store.relabel import Relabelled


@dataclass(slots=True)
class Progress:
    """Counts while a plan runs. `failures` counts cells by status."""

    calls_total: int
    calls_done: int = 0
    cells_scored: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Ended:
    """How a run of a plan ended. `stopped` says why when calls were left out.

    `relabelled` tells of stored ratings that a corrected order gave other values.
    """

    progress: Progress
    stopped: str | None = None
    left_out: int = 0
    relabelled: tuple[Relabelled, ...] = ()


def experiment_of(evaluator: Evaluator, task: str) -> str:
    """Name (hash) of the experiment that a second process must not work on meanwhile."""
    return content_hash([evaluator.source.sha256, task])


async def execute(
    plan: Plan,
    evaluator: Evaluator,
    store: Store,
    *,
    workers: int,
    on_progress: Callable[[Progress], None] = lambda _: None,
    on_cancel: Callable[[], None] = lambda: None,
) -> Ended:
    """Run the plan's units with `workers` in parallel; each result is durable before it counts.

    When it is cancelled (Ctrl-C), no further unit is begun and `on_cancel` is called; the units
    under way, which may be paid for, are finished and stored before CancelledError is raised. A
    second cancellation ends them as they are.

    Stops early, with a reason, when the budget is used up, when the first 8 calls fail for the
    infrastructure, or 32 in a row later. What is under way then is finished and stored. A short
    plan of which nothing has ever worked ends with the reason as well.
    Raises Unauthorized when the key is refused, StoreError when results cannot be kept; what was
    stored before stays.

    Until everything planned is stored, the store holds a note of it (`store.unfinished`).
    """
    begun = _begun(plan, evaluator, store)
    relabelled = store.register(plan.items, plan.criteria, evaluator.source)
    if begun is not None:
        begun.wait()
    engine = _Engine(evaluator, store, Progress(len(plan.units)), on_progress)
    pending = iter(plan.units)
    work = run_workers(lambda: engine.work(pending), min(workers, len(plan.units)))

    def wind_down() -> None:
        engine.breaker.stopped = engine.breaker.stopped or "interrupted"
        on_cancel()

    await drained(work, wind_down)
    left = len(plan.units) - engine.progress.calls_done
    if begun is not None and not left:
        finish(store, begun)
    breaker = engine.breaker
    stopped = breaker.stopped or (None if plan.done else breaker.nothing_worked())
    return Ended(engine.progress, stopped, left, tuple(relabelled))


def _begun(plan: Plan, evaluator: Evaluator, store: Store) -> Begun | None:
    """The experiment; None for a plan without cells."""
    if not plan.cells:
        return None
    source, task = evaluator.source, plan.items[0][0].task
    lock, grids = experiment_of(evaluator, task), plan.units.planned()
    known = Experiment(source.sha256, source.evaluator, source.model, lock, grids)
    return begin(store, known, idle=not len(plan.units))


@dataclass
class _Engine:
    evaluator: Evaluator
    store: Store
    progress: Progress
    on_progress: Callable[[Progress], None]
    breaker: Breaker = field(default_factory=Breaker)

    async def work(self, pending: Iterator[Unit]) -> None:
        for unit in pending:
            if self.breaker.stopped:
                return
            outcome = await judge(self.evaluator, unit)
            if self._out_of_budget(outcome) and not outcome.call.usage.requests:
                return
            await self.store.commit(outcome.results, outcome.call, attempt=unit.attempt)
            self._count(outcome)

    def _out_of_budget(self, outcome: Outcome) -> bool:
        """Whether the budget forbade it: nothing more to ask, and to store only what was paid."""
        first = outcome.results[0]
        if isinstance(first, Failure) and first.status == "error:budget":
            self.breaker.stopped = self.breaker.stopped or first.message
            return True
        return False

    def _count(self, outcome: Outcome) -> None:
        self.progress.calls_done += 1
        self.progress.usage = self.progress.usage + outcome.call.usage
        failures = [r for r in outcome.results if isinstance(r, Failure)]
        self.progress.cells_scored += len(outcome.results) - len(failures)
        self.progress.failures.update(f.status for f in failures)
        broken = bool(failures) and failures[0].retry_on_resume
        self.breaker.note(failures[0].message if broken else None)
        self.on_progress(self.progress)


__all__ = [
    "Ended",
    "Item",
    "Plan",
    "Progress",
    "execute",
    "experiment_of",
    "joined",
    "make_plan",
]
