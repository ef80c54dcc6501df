"""Plan what is missing, run it, keep what comes: runs × criteria × repeats − what the store has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field

from agenteval.evaluators.base import Evaluator, Outcome, Unit, judge
from agenteval.outage import Breaker, run_workers
from agenteval.records import Criterion, Failure, Run, Usage, View, content_hash
from agenteval.store import CellState, Store

Item = tuple[Run, View]


@dataclass(frozen=True, slots=True)
class Plan:
    """What a command will do. Cells are results, calls are requests before any repair."""

    items: tuple[Item, ...]
    criteria: tuple[Criterion, ...]
    repeats: int
    variant: str
    units: tuple[Unit, ...]
    cells: int
    done: int  # cells with a Score
    failed: int  # cells with a Failure that is not tried again now

    @property
    def open(self) -> int:
        """Cells that the units will judge."""
        return sum(len(u.criteria) for u in self.units)


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
    """How a run of a plan ended. `stopped` says why when calls were left out."""

    progress: Progress
    stopped: str | None = None
    left_out: int = 0


def make_plan(  # noqa: PLR0913  each is one dimension of the plan
    evaluator: Evaluator,
    items: Sequence[Item],
    criteria: Sequence[Criterion],
    store: Store,
    *,
    repeats: int,
    variant: str = "original",
    retry_failed: bool = False,
) -> Plan:
    """Units for every cell the store lacks, repeats outermost.

    A stored Score is never planned again; an infrastructure failure always is; a content failure
    only with `retry_failed`, as a fresh attempt.
    """
    states = store.states(evaluator.source)
    units: list[Unit] = []
    done = failed = 0
    keyed_items = [(run, view, view.sha256) for run, view in items]
    keyed_criteria = [(criterion, criterion.sha256) for criterion in criteria]
    for repeat in range(repeats):
        for run, view, run_key in keyed_items:
            missing: list[tuple[Criterion, int]] = []
            for criterion, criterion_key in keyed_criteria:
                state = states.get((run_key, variant, criterion_key, repeat))
                attempt = _attempt(state, retry_failed)
                if attempt is not None:
                    missing.append((criterion, attempt))
                elif state is not None and state.failed:
                    failed += 1
                else:
                    done += 1
            units.extend(_units(evaluator, run, view, missing, repeat, variant))
    return Plan(
        items=tuple(items),
        criteria=tuple(criteria),
        repeats=repeats,
        variant=variant,
        units=tuple(units),
        cells=len(items) * len(criteria) * repeats,
        done=done,
        failed=failed,
    )


def joined(plans: Sequence[Plan]) -> Plan:
    """Several plans of one judge on the same criteria as one, in their order.

    Raises ValueError without plans or for other criteria.
    """
    first = plans[0] if plans else None
    if first is None or any(p.criteria != first.criteria for p in plans):
        raise ValueError("only plans on the same criteria can be joined")
    return Plan(
        items=tuple(item for p in plans for item in p.items),
        criteria=first.criteria,
        repeats=first.repeats,
        variant=", ".join(p.variant for p in plans),
        units=tuple(unit for p in plans for unit in p.units),
        cells=sum(p.cells for p in plans),
        done=sum(p.done for p in plans),
        failed=sum(p.failed for p in plans),
    )


def _attempt(state: CellState | None, retry_failed: bool) -> int | None:
    """Attempt number for a cell to be judged now, or None when it stays as it is.

    A failed request repeats its attempt, so that replies it had paid for are found again; a reply
    that was not in form needs a new one.
    """
    if state is None:
        return 0
    if state.open_on_resume:
        return state.attempt
    if state.failed and retry_failed:
        return state.attempt + 1
    return None


def _units(
    evaluator: Evaluator,
    run: Run,
    view: View,
    missing: Sequence[tuple[Criterion, int]],
    repeat: int,
    variant: str,
) -> Iterator[Unit]:
    """Calls for the missing criteria of one run and repeat; attempts are not mixed in a call."""
    for attempt in sorted({a for _, a in missing}):
        wanted = [c for c, a in missing if a == attempt]
        for batch in evaluator.batches(wanted):
            yield Unit(run, view, batch, repeat, variant, attempt)


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
) -> Ended:
    """Run the plan's units with `workers` in parallel; each result is durable before it counts.

    Stops early, with a reason, when the budget is used up, when the first 8 calls fail for the
    infrastructure, or 32 in a row later. What is under way then is finished and stored. A short
    plan of which nothing has ever worked ends with the reason as well.
    Raises Unauthorized when the key is refused, StoreError when results cannot be kept; what was
    stored before stays.
    """
    store.register(plan.items, plan.criteria, evaluator.source)
    engine = _Engine(evaluator, store, Progress(len(plan.units)), on_progress)
    pending = iter(plan.units)
    await run_workers(lambda: engine.work(pending), min(workers, len(plan.units)))
    left = len(plan.units) - engine.progress.calls_done
    breaker = engine.breaker
    stopped = breaker.stopped or (None if plan.done else breaker.nothing_worked())
    return Ended(engine.progress, stopped, left)


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
    "Plan",
    "Progress",
    "execute",
    "experiment_of",
    "joined",
    "make_plan",
]
