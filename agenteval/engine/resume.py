"""Find the units of an experiment that the store lacks."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Generic

from agenteval.engine.unit import Evaluator, T, Unit
from agenteval.records import Criterion
from agenteval.store import Store
from agenteval.store.experiments import Grid, short

_PendingCall = tuple[tuple[Criterion, ...], int]  # criteria, attempt


@dataclass(frozen=True)
class Pending(Generic[T]):
    """Units to evaluate, with the number of cells (or attempts) in total, `done`, and permanently
    `failed`. `grids` describe the whole plan, stored or not. `unjudged` counts the units that are
    stored attempts and only lack a verdict by the current judges."""

    units: list[Unit[T]]
    cells: int
    done: int
    failed: int
    grids: tuple[Grid, ...]
    unjudged: int = 0

    @property
    def open(self) -> int:
        """Number of cells or attempts still to be evaluated."""
        return self.cells - self.done - self.failed


def pending(evaluator: Evaluator[T], store: Store, *, retry_failed: bool = False) -> Pending[T]:
    """Return the units of an experiment that the store lacks.

    A Score is never evaluated again. An infrastructure failure always is, with the same attempt
    number, so that paid replies are reused; a content failure only with `retry_failed`, as a new
    attempt.
    """
    columns = _columns(evaluator)
    done: defaultdict[tuple[str, str, int], int] = defaultdict(int)  # bits of columns
    failed: defaultdict[tuple[str, str, int], int] = defaultdict(int)
    attempts: defaultdict[tuple[str, str, int], dict[str, int]] = defaultdict(dict)
    checks: dict[tuple[str, str, int], str | None] = {}
    for cell, state in store.states(evaluator.source_key, attempts=not evaluator.criteria):
        key, variant, column, repeat = cell
        place = key, variant, repeat
        bit = columns.get(key, {}).get(column)
        if bit is None:
            continue
        if state.open_on_resume:
            attempts[place][column] = state.attempt
        elif state.failed and retry_failed:
            attempts[place][column] = state.attempt + 1
        else:
            (failed if state.failed else done)[place] |= bit
            if not (state.failed or evaluator.criteria):
                checks[place] = state.check_key  # None: interrupted before the verdict

    common: dict[tuple[int, int, tuple[tuple[str, int], ...]], list[_PendingCall]] = {}
    units: list[Unit[T]] = []
    cells = complete = lost = unjudged = 0
    for unit in evaluator.units():
        place = unit.key, unit.variant, unit.repeat
        finished, unusable = done.get(place, 0), failed.get(place, 0)
        stale = place in checks and not evaluator.is_current(unit, checks[place])
        if stale:
            finished, unjudged = 0, unjudged + 1
        cells += len(columns[unit.key])
        complete += finished.bit_count()
        lost += unusable.bit_count()
        tried = tuple(attempts[place].items()) if place in attempts else ()
        bits, settled = columns[unit.key], finished | unusable
        lack = id(bits), settled, tried  # the same for most items
        if lack not in common:
            common[lack] = list(_calls(evaluator, unit, bits, settled, dict(tried)))
        units += [
            replace(unit, criteria=criteria, attempt=attempt, stored=stale)
            for criteria, attempt in common[lack]
        ]
    return Pending(units, cells, complete, lost, _grids(evaluator), unjudged)


def _columns(evaluator: Evaluator[T]) -> dict[str, dict[str, int]]:
    """Assign a bit to each criterion of an item: item key → criterion hash → bit.

    Items with the same criteria share one table.
    """
    shared: dict[tuple[str, ...], dict[str, int]] = {}
    columns: dict[str, dict[str, int]] = {}
    for unit in evaluator.units():
        if unit.key not in columns:
            hashes = tuple(c.sha256 for c in unit.criteria) or ("",)
            bits = {name: 1 << i for i, name in enumerate(hashes)}
            columns[unit.key] = shared.setdefault(hashes, bits)
    return columns


def _calls(
    evaluator: Evaluator[T],
    unit: Unit[T],
    columns: dict[str, int],
    settled: int,
    attempts: dict[str, int],
) -> Iterator[_PendingCall]:
    """Yield the calls for the missing criteria of an item; a call has one attempt number."""
    if not unit.criteria:
        if not settled:
            yield (), attempts.get("", 0)
        return
    missing: defaultdict[int, list[Criterion]] = defaultdict(list)
    for criterion in unit.criteria:
        if not settled & columns[criterion.sha256]:
            missing[attempts.get(criterion.sha256, 0)].append(criterion)
    for attempt in sorted(missing):
        for batch in evaluator.batches(missing[attempt]):
            yield batch, attempt


def _grids(evaluator: Evaluator[T]) -> tuple[Grid, ...]:
    """Return the plan as products of items, repeats and criteria. For an item with gaps in its
    repeats, as in recorded attempts, only the repeats before the first gap are included."""
    repeats: defaultdict[tuple[str, str], set[int]] = defaultdict(set)
    for unit in evaluator.units():
        repeats[unit.variant, unit.key].add(unit.repeat)
    columns = _columns(evaluator)
    keys: defaultdict[tuple[str, tuple[str, ...]], defaultdict[int, list[str]]]
    keys = defaultdict(lambda: defaultdict(list))
    for (variant, key), numbers in repeats.items():
        criteria = tuple(sorted(filter(None, columns[key])))
        keys[variant, criteria][next(n for n in count() if n not in numbers)].append(key)
    return tuple(
        Grid(short(items[number]), number, variant if criteria else "", criteria)
        for (variant, criteria), items in keys.items()
        for number in sorted(items)
        if number
    )
