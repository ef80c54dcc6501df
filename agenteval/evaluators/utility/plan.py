"""What a judge has left: runs × criteria × repeats − what the store has, as calls to make."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import ClassVar

import numpy as np

from agenteval.evaluators.base import Evaluator, Outcome, Unit, judge
from agenteval.records import Criterion, Run, Source, View, content_hash
from agenteval.store import Store
from agenteval.store.experiments import Begun, Grid, StoredExperiment, begin, short

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
    def calls(self) -> int:
        """Units that ask the judge; it is not asked about runs whose system failed."""
        if all(run.failure is None for run, _ in self.items):
            return len(self.units)
        return sum(unit.run.failure is None for unit in self.units)

    @property
    def worked(self) -> bool:
        """Whether a cell has a Score already."""
        return self.done > 0

    @property
    def name(self) -> str:
        """Of judge, task, and all that is planned, stored or not."""
        return self._known(self.evaluator.source).key

    def keyed(self) -> Iterator[tuple[str, Unit]]:
        """Each call under what it judges."""
        for unit in self.units:
            criteria = [criterion.sha256 for criterion in unit.criteria]
            yield content_hash([unit.view.sha256, unit.variant, unit.repeat, criteria]), unit

    def _known(self, source: Source) -> StoredExperiment:
        lock = experiment_of(self.evaluator, self.items[0][0].task if self.items else "")
        return StoredExperiment(
            source.sha256, source.evaluator, source.model, lock, self.units.planned()
        )

    def begin(self, store: Store) -> Begun | None:
        """Make runs, criteria and source known, and note the plan. Stored ratings get the values
        that follow from the order that the criteria have now; see `Store.relabel`."""
        source, begun = self.evaluator.source, None
        if self.cells:
            begun = begin(store, self._known(source), idle=not len(self.units))
        store.register(self.items, self.criteria, source)
        if begun is not None:
            begun.wait()
        return begun

    async def evaluate(self, unit: Unit) -> Outcome:
        """The judge's results for one call; what goes wrong comes back as Failures. Raises
        Unauthorized and StoreError."""
        outcome = await judge(self.evaluator, unit)
        return replace(outcome, attempt=unit.attempt) if unit.attempt else outcome


class Units:
    """The calls of a plan in their order: `len` of them, made anew whenever they are gone through.

    A million cells take 4 bytes each here; as objects they would take hundreds.
    """

    __slots__ = ("_grids", "_length")

    def __init__(self, grids: Iterable[_Grid]) -> None:
        self._grids = tuple(grids)
        self._length = sum(len(calls) for grid in self._grids for *_, calls in grid.rows())

    def __len__(self) -> int:
        return self._length

    def __iter__(self) -> Iterator[Unit]:
        for grid in self._grids:
            for repeat, (run, view), calls in grid.rows():
                for criteria, attempt in calls:
                    yield Unit(run, view, criteria, repeat, grid.variant, attempt)

    def planned(self) -> tuple[Grid, ...]:
        """All cells that are planned, stored ones as well."""
        planned = (
            Grid(short(g.row_of), len(g.asked), g.variant, tuple(sorted(g.column_of)))
            for g in self._grids
        )
        return tuple(grid for grid in planned if grid.planned)

    @classmethod
    def chained(cls, many: Iterable[Units]) -> Units:
        """The calls of several plans, one after the other."""
        return cls(grid for units in many for grid in units._grids)


class _Grid:
    """Repeats × runs × criteria, one number per cell: 0 stays as it is, n + 1 is asked as
    attempt n. A run or criterion that is named twice has one place here and counts twice."""

    def __init__(
        self,
        evaluator: Evaluator,
        items: Sequence[Item],
        criteria: Sequence[Criterion],
        repeats: int,
        variant: str,
    ) -> None:
        self.variant = variant
        self._items = tuple(items)
        self._evaluator = evaluator
        self._runs = Counter(view.sha256 for _, view in items)
        self._columns = Counter(criterion.sha256 for criterion in criteria)
        self.row_of = {key: i for i, key in enumerate(self._runs)}
        self.column_of = {key: i for i, key in enumerate(self._columns)}
        self._by_column = [(c, self.column_of[c.sha256]) for c in criteria]
        shape = repeats, len(self.row_of), len(self.column_of)
        self.asked = np.ones(shape, dtype=np.uint32)

    def note(self, run_key: str, criterion_key: str, repeat: int, attempt: int | None) -> int:
        """Ask for a cell as this attempt, or leave it as it is. How many cells of the plan it is:
        0 when nobody asks for it."""
        cells = self._runs[run_key] * self._columns[criterion_key]
        if not cells or repeat >= len(self.asked):
            return 0
        place = repeat, self.row_of[run_key], self.column_of[criterion_key]
        self.asked[place] = 0 if attempt is None else attempt + 1
        return cells

    def rows(self) -> Iterator[tuple[int, Item, _Calls]]:
        """Repeat by repeat each run with its calls for what is missing; attempts are not mixed in
        a call."""

        @lru_cache(maxsize=1024)  # most runs lack the same
        def calls_of(asked: tuple[int, ...]) -> _Calls:
            calls = []
            for number in sorted({n for n in asked if n}):
                wanted = [criterion for criterion, i in self._by_column if asked[i] == number]
                calls += [(batch, number - 1) for batch in self._evaluator.batches(wanted)]
            return tuple(calls)

        for repeat, asked in enumerate(self.asked):
            for item in self._items:
                yield repeat, item, calls_of(tuple(asked[self.row_of[item[1].sha256]].tolist()))


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
    grid = _Grid(evaluator, items, criteria, repeats, variant)
    done = failed = 0
    stored = store.states(evaluator.source, variant=variant)
    for (run_key, _, criterion_key, repeat), state in stored:
        attempt = None
        if state.open_on_resume:  # replies that a failed request had paid for are found again
            attempt = state.attempt
        elif state.failed and retry_failed:  # a reply that was not in form needs a new one
            attempt = state.attempt + 1
        cells = grid.note(run_key, criterion_key, repeat, attempt)
        if attempt is None:
            failed += cells if state.failed else 0
            done += 0 if state.failed else cells
    return CellPlan(
        evaluator=evaluator,
        items=tuple(items),
        criteria=tuple(criteria),
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
    if not plans or any(p.criteria != plans[0].criteria for p in plans):
        raise ValueError("only plans on the same criteria can be joined")
    return replace(
        plans[0],
        items=tuple(item for p in plans for item in p.items),
        variant=", ".join(p.variant for p in plans),
        units=Units.chained(p.units for p in plans),
        cells=sum(p.cells for p in plans),
        done=sum(p.done for p in plans),
        failed=sum(p.failed for p in plans),
    )
