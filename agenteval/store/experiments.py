"""Experiments that were begun, and what of them is not all there yet.

An experiment stands in the store from before its first result; it is finished when everything
planned is stored. Who finds an open one that nobody works on knows that it was broken off, and says
so beside every result: half is not taken for whole.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from concurrent.futures import Future
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, bindparam, delete, select, text, update
from sqlalchemy.dialects.sqlite import insert

from agenteval.errors import StoreError
from agenteval.records import content_hash
from agenteval.records.score import INFRASTRUCTURE
from agenteval.store.connect import reading
from agenteval.store.lock import holder
from agenteval.store.rows import decode, encode
from agenteval.store.schema import experiments
from agenteval.store.writer import Writes
from agenteval.text import plural

if TYPE_CHECKING:
    from agenteval.store.store import Store

_ORIGINAL = "original"
_SHORT = 16  # characters that a plan keeps of a hash: 64 bits tell a million rows apart

_ADD = insert(experiments)
_ADD = _ADD.on_conflict_do_update(
    index_elements=["experiment_key"],
    set_={"begun": _ADD.excluded.begun, "finished": None},
)
_IS = experiments.c.experiment_key == bindparam("its_key")
_DROP = delete(experiments).where(_IS)
_FINISH = update(experiments).where(_IS).values(finished=bindparam("now"))

# By the start of a key, in the index of the primary key. Keys are hashes in hexadecimal, so "g"
# comes after all that start the same. What failed for the infrastructure is still to be done.
_RESULTS = text(
    """SELECT count(*) FROM json_each(:rows) AS i CROSS JOIN results AS r
    WHERE r.source_key = :source AND r.item_key >= i.value AND r.item_key < i.value || 'g'
    AND r.variant = :variant AND r.repeat < :repeats
    AND r.criterion_key IN (SELECT value FROM json_each(:criteria))
    AND r.status NOT IN (SELECT value FROM json_each(:undone))"""
)
_TRIALS = text(
    """SELECT count(*) FROM json_each(:rows) AS i CROSS JOIN calls AS c
    WHERE c.source_key = :source AND c.item_key >= i.value AND c.item_key < i.value || 'g'
    AND c.repeat < :repeats AND c.status IS NOT NULL
    AND c.status NOT IN (SELECT value FROM json_each(:undone))"""
)


@dataclass(frozen=True)
class Grid:
    """What is planned of one kind: every row, so often, on every criterion.

    Rows are runs of a variant, or cases, which have no criteria; see `short`.
    """

    rows: tuple[str, ...]
    repeats: int
    variant: str = ""
    criteria: tuple[str, ...] = ()

    @property
    def planned(self) -> int:
        """Number of cells or trials."""
        return len(self.rows) * self.repeats * (len(self.criteria) or 1)

    def covers(self, other: Grid) -> bool:
        """Whether all of the other is planned here as well."""
        return (
            self.variant == other.variant
            and self.repeats >= other.repeats
            and set(self.criteria) >= set(other.criteria)
            and set(self.rows) >= set(other.rows)
        )


def short(keys: Iterable[str]) -> tuple[str, ...]:
    """The rows of a grid by their keys: each once, as much of it as a plan keeps, in order."""
    return tuple(sorted({key[:_SHORT] for key in keys}))


@dataclass(frozen=True, slots=True)
class StoredExperiment:
    """One experiment: a source (its key, evaluator and name) and what it is to judge or do.

    `lock` is what its worker holds (`Store.lock`). `system` is the key of the agent under test or
    finder whose trials are planned; "" where cells are, by a judge.
    """

    source: str
    evaluator: str
    name: str
    lock: str
    grids: tuple[Grid, ...]
    system: str = ""

    @property
    def key(self) -> str:
        """Its key in the table `experiments`."""
        return content_hash([self.source, self._plan()])

    @property
    def what(self) -> str:
        """What is counted: cells or trials."""
        return "trials" if self.system else "cells"

    @property
    def planned(self) -> int:
        """Number of cells or trials."""
        return sum(grid.planned for grid in self.grids)

    def covers(self, other: StoredExperiment) -> bool:
        """Whether all of the other is planned here as well."""
        return all(any(mine.covers(grid) for mine in self.grids) for grid in other.grids)

    def stored(self, connection: Connection) -> int:
        """How much of it need not be done again: results, and failures of the content."""
        total = 0
        for grid in self.grids:
            values: dict[str, Any] = {
                "rows": encode(grid.rows), "source": self.source, "repeats": grid.repeats,
                "undone": encode(sorted(INFRASTRUCTURE)),
            }  # fmt: skip
            if not self.system:
                values |= {"variant": grid.variant, "criteria": encode(grid.criteria)}
            query = _TRIALS if self.system else _RESULTS
            total += int(connection.execute(query, values).scalar_one())
        return total

    def _plan(self) -> dict[str, Any]:
        return {"grids": [vars(grid) for grid in self.grids], "system": self.system}

    def row(self, now: float) -> dict[str, Any]:
        """Its row of the table `experiments`, begun `now`."""
        return {
            "experiment_key": self.key,
            "source_key": self.source,
            "evaluator": self.evaluator,
            "name": self.name,
            "lock": self.lock,
            "plan": encode(self._plan()),
            "begun": now,
            "finished": None,
        }


@dataclass(frozen=True, slots=True)
class Begun:
    """What `finish` takes: the source of an experiment, and what is being written of it."""

    source: str
    written: Future[None] | None

    def wait(self) -> None:
        """Until the experiment is durable. Raises StoreError when it cannot be kept."""
        if self.written is not None:
            self.written.result()


def begin(store: Store, experiment: StoredExperiment, *, idle: bool = False) -> Begun:
    """Store that the experiment is open; it is queued before whatever is written later.

    One that is open already, alone or within a larger one, is not stored again; an open smaller
    one that it holds gives way to it. Nothing is stored of one that is `idle`: it has nothing left
    to do.
    """
    known = open_experiments(store, [experiment.source])
    if idle or any(other.covers(experiment) for other in known):
        return Begun(experiment.source, None)
    writes: Writes = [
        (_ADD, [experiment.row(time.time())]),
        (_DROP, [{"its_key": other.key} for other in known if experiment.covers(other)]),
    ]
    return Begun(experiment.source, store.submit(writes))


def finish(store: Store, begun: Begun) -> None:
    """Store that it is finished if everything planned is there; waits until that is durable.

    So is every other open experiment of the same source of which nothing is missing any more.
    """
    known = open_experiments(store, [begun.source])
    with reading(store.engine) as connection:
        done = [other.key for other in known if other.stored(connection) >= other.planned]
    if done:
        now = time.time()
        store.submit([(_FINISH, [{"its_key": key, "now": now} for key in done])]).result()


def open_experiments(store: Store, sources: Iterable[str] | None = None) -> list[StoredExperiment]:
    """Those that are not finished, of these sources (all unless told), ordered by key. Raises
    StoreError for a damaged one."""
    c = experiments.c
    query = select(experiments).where(c.finished.is_(None)).order_by(c.experiment_key)
    if sources is not None:
        query = query.where(c.source_key.in_(list(sources)))
    with reading(store.engine) as connection:
        return [_experiment(row) for row in connection.execute(query)]


def _experiment(row: Any) -> StoredExperiment:
    about = f"the open experiment {row.experiment_key[:12]}"
    try:
        plan = decode(row.plan, about)
        grids = tuple(
            Grid(tuple(g["rows"]), int(g["repeats"]), g["variant"], tuple(g["criteria"]))
            for g in plan["grids"]
        )
        return StoredExperiment(
            row.source_key, row.evaluator, row.name, row.lock, grids, plan["system"]
        )
    except (ValueError, TypeError, KeyError, StoreError) as error:
        raise StoreError(
            f"{about} is damaged in the store; delete its row of the table experiments"
        ) from error


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An experiment of which `stored` of `planned` cells or trials need not be done again.

    `at_work` names the process that works on it now, None where nobody does.
    """

    experiment: StoredExperiment
    planned: int
    stored: int
    at_work: str | None

    @property
    def line(self) -> str:
        """One sentence, with what is to be done."""
        what = f"planned {self.experiment.what}"
        if self.experiment.system:
            what += f" ({self.experiment.evaluator}) of {self.experiment.name}"
        far = f"{self.stored:,} of {self.planned:,} {what} are done ({self._extent()})"
        if self.at_work is not None:
            return f"in progress: {far}; {self.at_work} works on it"
        return f"not finished: {far}; run the same command again to finish"

    def json(self) -> dict[str, Any]:
        """The same as a JSON value: the keys of experiment and source or system, and numbers."""
        one = self.experiment
        whose = (
            {"system": one.system, "name": one.name, "evaluator": one.evaluator}
            if one.system
            else {"source": one.source}
        )
        return {
            **whose,
            "what": one.what,
            "planned": self.planned,
            "done": self.stored,
            "in_progress": self.at_work is not None,
            "experiment": one.key,
        }

    def _extent(self) -> str:
        """What is planned, as a product."""
        grids = self.experiment.grids
        repeats = max(grid.repeats for grid in grids)
        if self.experiment.system:
            rows = plural(sum(len(grid.rows) for grid in grids), "case")
            return f"{rows} × {plural(repeats, 'trial')}"
        originals = sum(len(grid.rows) for grid in grids if grid.variant == _ORIGINAL)
        copies = sum(len(grid.rows) for grid in grids) - originals
        rows = " and ".join(
            plural(n, word) for n, word in ((originals, "run"), (copies, "copy")) if n
        )
        criteria = plural(max(len(grid.criteria) for grid in grids), "criterion")
        return f"{rows} × {criteria} × {plural(repeats, 'repeat')}"


def unfinished_of(
    store: Store, sources: Iterable[str], runs: Iterable[str] | None = None
) -> list[Unfinished]:
    """Experiments of these sources (keys) that are begun and not all stored; with `runs` (keys of
    items) only what plans one of them.

    Where none is open this is one look into an index; else what is stored is counted there.
    Raises StoreError for a damaged plan.
    """
    return _unfinished(store, open_experiments(store, sources), runs)


def unfinished_trials(
    store: Store, evaluators: Iterable[str], cases: Iterable[str] | None = None
) -> list[Unfinished]:
    """The same of trials under evaluators of these names, or whose names go on from one of these
    with a dot; with `cases` (keys) only what plans one of them."""
    names = tuple(evaluators)
    known = [
        one
        for one in open_experiments(store)
        if one.system
        and any(one.evaluator == n or one.evaluator.startswith(f"{n}.") for n in names)
    ]
    return _unfinished(store, known, cases)


def _unfinished(
    store: Store, known: Iterable[StoredExperiment], rows: Iterable[str] | None
) -> list[Unfinished]:
    wanted = None if rows is None else set(short(rows))
    found = []
    for one in known:
        if wanted is not None and not any(wanted.intersection(grid.rows) for grid in one.grids):
            continue
        with reading(store.engine) as connection:
            stored = one.stored(connection)
        # Killed between the last result and the end: nothing is missing.
        if stored < one.planned:
            found.append(Unfinished(one, one.planned, stored, holder(store.path, one.lock)))
    return found
