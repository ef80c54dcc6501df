"""What a judge has left: runs × criteria × repeats − what the store has, as calls to make."""

from __future__ import annotations

from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

from agenteval.evaluators.base import Evaluator, Outcome, Unit, judge
from agenteval.records import Criterion, Run, View, content_hash
from agenteval.store import CellState, Store
from agenteval.store.experiments import Begun, Grid, StoredExperiment, begin, short
from agenteval.store.relabel import Relabelled

Item = tuple[Run, View]
_Calls = tuple[tuple[tuple[Criterion, ...], int], ...]  # criteria of a call, and its attempt


def experiment_of(evaluator: Evaluator, task: str) -> str:
    """Name (hash) of the experiment that a second process must not work on meanwhile."""
    return content_hash([evaluator.source.sha256, task])


@dataclass(frozen=True, slots=True)
class CellPlan:
    """What a judge will do; see `experiment.Plan`. Cells are results, a unit is one call of the
    judge before any repair."""

    evaluator: Evaluator
    items: tuple[Item, ...]
    criteria: tuple[Criterion, ...]
    repeats: int
    variant: str
    units: Units
    cells: int
    done: int  # cells with a Score
    failed: int  # cells with a Failure that is not tried again now

    noun: ClassVar[str] = "call"
    grace: ClassVar[float | None] = None  # what is under way is paid for

    @property
    def open(self) -> int:
        """Cells that the units will judge."""
        return self.cells - self.done - self.failed

    @property
    def worked(self) -> bool:
        """Whether a cell has a Score already."""
        return self.done > 0

    def begin(self, store: Store) -> tuple[Begun | None, list[Relabelled]]:
        """Make runs, criteria and source known, and note the plan. Stored ratings get the values
        that follow from the order that the criteria have now; see `Store.relabel`."""
        source, begun = self.evaluator.source, None
        if self.cells:
            lock = experiment_of(self.evaluator, self.items[0][0].task)
            known = StoredExperiment(
                source.sha256, source.evaluator, source.model, lock, self.units.planned()
            )
            begun = begin(store, known, idle=not len(self.units))
        relabelled = store.register(self.items, self.criteria, source)
        if begun is not None:
            begun.wait()
        return begun, relabelled

    async def evaluate(self, unit: Unit) -> Outcome:
        """The judge's results for one call; what goes wrong comes back as Failures. Raises
        Unauthorized and StoreError."""
        outcome = await judge(self.evaluator, unit)
        return replace(outcome, attempt=unit.attempt) if unit.attempt else outcome


class Units:
    """The calls of a plan in their order: `len` of them, made anew whenever they are gone through.

    A million cells take 4 bytes each here; as objects they would take hundreds.
    """

    __slots__ = ("_length", "_parts")

    def __init__(self, parts: Iterable[_Grid]) -> None:
        self._parts = tuple(parts)
        self._length = sum(part.calls() for part in self._parts)

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Unit]:
        for part in self._parts:
            yield from part.units()

    def planned(self) -> tuple[Grid, ...]:
        """All cells that are planned, stored ones as well."""
        return tuple(grid for part in self._parts if (grid := part.planned()).planned)

    @classmethod
    def chained(cls, many: Iterable[Units]) -> Units:
        """The calls of several plans, one after the other."""
        return cls(part for one in many for part in one._parts)


def make_plan(  # noqa: PLR0913  each is one dimension of the plan
    evaluator: Evaluator,
    items: Sequence[Item],
    criteria: Sequence[Criterion],
    store: Store,
    *,
    repeats: int,
    variant: str = "original",
    retry_failed: bool = False,
) -> CellPlan:
    """Units for every cell the store lacks, repeats outermost.

    A stored Score is never planned again; an infrastructure failure always is; a content failure
    only with `retry_failed`, as a fresh attempt.
    """
    grid = _Grid(evaluator, tuple(items), tuple(criteria), repeats, variant)
    done = failed = 0
    stored = store.states(evaluator.source, variant=variant)
    for (run_key, _, criterion_key, repeat), state in stored:
        cells = grid.cells(run_key, criterion_key, repeat)
        if not cells:
            continue
        attempt = _attempt(state, retry_failed)
        grid.note(run_key, criterion_key, repeat, attempt)
        if attempt is None:
            failed += cells if state.failed else 0
            done += 0 if state.failed else cells
    return CellPlan(
        evaluator=evaluator,
        items=grid.items,
        criteria=grid.criteria,
        repeats=repeats,
        variant=variant,
        units=Units([grid]),
        cells=len(items) * len(criteria) * repeats,
        done=done,
        failed=failed,
    )


def joined(plans: Sequence[CellPlan]) -> CellPlan:
    """Several plans of one judge on the same criteria as one, in their order.

    Raises ValueError without plans or for other criteria.
    """
    first = plans[0] if plans else None
    if first is None or any(p.criteria != first.criteria for p in plans):
        raise ValueError("only plans on the same criteria can be joined")
    return CellPlan(
        evaluator=first.evaluator,
        items=tuple(item for p in plans for item in p.items),
        criteria=first.criteria,
        repeats=first.repeats,
        variant=", ".join(p.variant for p in plans),
        units=Units.chained(p.units for p in plans),
        cells=sum(p.cells for p in plans),
        done=sum(p.done for p in plans),
        failed=sum(p.failed for p in plans),
    )


def _attempt(state: CellState, retry_failed: bool) -> int | None:
    """Attempt number for a stored cell to be judged now, or None when it stays as it is.

    A failed request repeats its attempt, so that replies it had paid for are found again; a reply
    that was not in form needs a new one.
    """
    if state.open_on_resume:
        return state.attempt
    if state.failed and retry_failed:
        return state.attempt + 1
    return None


class _Grid:
    """Repeats × runs × criteria, one number per cell: 0 stays as it is, n + 1 is asked as
    attempt n. A run or criterion that is named twice has one place here and counts twice."""

    def __init__(
        self,
        evaluator: Evaluator,
        items: tuple[Item, ...],
        criteria: tuple[Criterion, ...],
        repeats: int,
        variant: str,
    ) -> None:
        self.items = items
        self.criteria = criteria
        self._evaluator = evaluator
        self._repeats = repeats
        self._variant = variant
        self._runs = Counter(view.sha256 for _, view in items)
        self._columns = Counter(criterion.sha256 for criterion in criteria)
        self._row_of = {key: i for i, key in enumerate(self._runs)}
        self._column_of = {key: i for i, key in enumerate(self._columns)}
        self._width = len(self._columns)
        self._asked = array("I", [1]) * (repeats * len(self._runs) * self._width)

    def cells(self, run_key: str, criterion_key: str, repeat: int) -> int:
        """How many cells of the plan this is: 0 when nobody asks for it."""
        if repeat >= self._repeats:
            return 0
        return self._runs[run_key] * self._columns[criterion_key]

    def note(self, run_key: str, criterion_key: str, repeat: int, attempt: int | None) -> None:
        """Ask for the cell as this attempt, or leave it as it is."""
        place = self._start(run_key, repeat) + self._column_of[criterion_key]
        self._asked[place] = 0 if attempt is None else attempt + 1

    def _start(self, run_key: str, repeat: int) -> int:
        return (repeat * len(self._runs) + self._row_of[run_key]) * self._width

    def planned(self) -> Grid:
        """All its cells, for a note."""
        return Grid(short(self._runs), self._repeats, self._variant, tuple(sorted(self._columns)))

    def calls(self) -> int:
        """Number of the units."""
        calls_of = self._batching()
        return sum(
            len(calls_of(self._missing(view.sha256, repeat)))
            for repeat in range(self._repeats)
            for _, view in self.items
        )

    def units(self) -> Iterator[Unit]:
        """Calls for what is missing; attempts are not mixed in a call."""
        calls_of = self._batching()
        for repeat in range(self._repeats):
            for run, view in self.items:
                for criteria, attempt in calls_of(self._missing(view.sha256, repeat)):
                    yield Unit(run, view, criteria, repeat, self._variant, attempt)

    def _missing(self, run_key: str, repeat: int) -> tuple[int, ...]:
        start = self._start(run_key, repeat)
        return tuple(self._asked[start : start + self._width])

    def _batching(self) -> Callable[[tuple[int, ...]], _Calls]:
        """Calls for the numbers of one run and repeat. Most runs lack the same: worked out once."""
        columns = [(c, self._column_of[c.sha256]) for c in self.criteria]

        @lru_cache(maxsize=1024)
        def calls_of(asked: tuple[int, ...]) -> _Calls:
            calls = []
            for number in sorted({n for n in asked if n}):
                wanted = [criterion for criterion, i in columns if asked[i] == number]
                calls += [(batch, number - 1) for batch in self._evaluator.batches(wanted)]
            return tuple(calls)

        return calls_of


__all__ = ["CellPlan", "Item", "Units", "experiment_of", "joined", "make_plan"]
