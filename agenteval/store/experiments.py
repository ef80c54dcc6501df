"""Experiments that were started, and their missing parts.

An experiment is stored before its first result, and is finished when everything planned is stored.
An open experiment without a running process was interrupted, which is shown with every result:
partial results are never reported as complete.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

from sqlalchemy import Connection, bindparam, delete, func, select, update
from sqlalchemy.dialects.postgresql import insert

from agenteval.errors import StoreError
from agenteval.records import content_hash
from agenteval.records.score import INFRASTRUCTURE
from agenteval.store.connect import dialect_of, reading
from agenteval.store.rows import decode, encode
from agenteval.store.schema import calls, experiments, results
from agenteval.text import plural

if TYPE_CHECKING:
    from agenteval.store.store import Store

_SHORT = 16  # characters of a hash in a plan: 64 bits distinguish a million rows

_ADD = insert(experiments)
_ADD = _ADD.on_conflict_do_update(
    index_elements=["experiment_key"], set_={"begun": _ADD.excluded.begun, "finished": None}
)
_IS = experiments.c.experiment_key == bindparam("its_key")
_DROP = delete(experiments).where(_IS)
_REMARK = update(experiments).where(_IS).values(plan=bindparam("said"))
_FINISH = update(experiments).where(_IS).values(finished=bindparam("now"))


@dataclass(frozen=True)
class Grid:
    """A part of the plan: every row with this number of repeats on every criterion. Rows are runs
    of a variant, or cases, which have no criteria; see `short`."""

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
    """Return the distinct row keys of a grid, shortened as in a plan, in order."""
    return tuple(sorted({key[:_SHORT] for key in keys}))


@dataclass(frozen=True, slots=True)
class StoredExperiment:
    """One experiment: a source (its key, evaluator and name) and its plan.

    `lock` is held by its worker (`Store.lock`). `system` is the key of the agent under test or
    finder whose trials are planned, or "" for cells of a judge.
    """

    source: str
    evaluator: str
    name: str
    lock: str
    grids: tuple[Grid, ...]
    system: str = ""

    @property
    def plan(self) -> dict[str, Any]:
        """The plan as a JSON value."""
        return {"grids": [vars(grid) for grid in self.grids], "system": self.system}

    @property
    def key(self) -> str:
        """Its key in the table `experiments`."""
        return content_hash([self.source, self.plan])

    @property
    def planned(self) -> int:
        """Number of cells or trials."""
        return sum(grid.planned for grid in self.grids)

    def covers(self, other: StoredExperiment) -> bool:
        """Whether all of the other is planned here as well."""
        return all(any(mine.covers(grid) for mine in self.grids) for grid in other.grids)

    def stored(self, connection: Connection) -> int:
        """Number of finished results, including content failures."""
        among = dialect_of(connection.engine).among
        r: Any = (calls if self.system else results).c
        total = 0
        for grid in self.grids:
            query = select(func.count()).where(
                r.source_key == self.source,
                among(func.substr(r.item_key, 1, _SHORT), grid.rows),
                r.repeat < grid.repeats,
                r.status.not_in(sorted(INFRASTRUCTURE)),  # NULL, as in plain calls, equals neither
            )
            if not self.system:
                query = query.where(
                    r.variant == grid.variant, among(r.criterion_key, grid.criteria)
                )
            total += int(connection.execute(query).scalar_one())
        return total


def begin(store: Store, experiment: StoredExperiment, *, idle: bool = False) -> None:
    """Store that the experiment is unfinished; durable on return.

    An experiment that is already open, alone or within a larger one, is not stored again; a smaller
    open one that it covers is replaced. An `idle` one, with nothing left to do, is not stored.
    Raises StoreError.
    """
    opened = open_experiments(store, [experiment.source])
    if idle or any(other.covers(experiment) for other in opened):
        return
    row = {
        "experiment_key": experiment.key,
        "source_key": experiment.source,
        "evaluator": experiment.evaluator,
        "name": experiment.name,
        "lock": experiment.lock,
        "plan": encode(experiment.plan),
        "begun": time.time(),
        "finished": None,
    }
    smaller = [{"its_key": other.key} for other in opened if experiment.covers(other)]
    store.submit([(_ADD, [row]), (_DROP, smaller)]).result()


def finish(store: Store, source: str) -> None:
    """Mark every open experiment of a source (key) as finished if nothing is missing; durable on
    return."""
    opened = open_experiments(store, [source])
    with reading(store.engine) as connection:
        done = [other.key for other in opened if other.stored(connection) >= other.planned]
    if done:
        now = time.time()
        store.submit([(_FINISH, [{"its_key": key, "now": now} for key in done])]).result()


def remark(store: Store, source: str, line: str) -> None:
    """Keep a sentence about the latest experiment of a source (key), such as why it was ended
    before the last case; waits until it is durable."""
    for key, plan in islice(_plans(store, source), 1):
        values = {"its_key": key, "said": encode({**plan, "remark": line})}
        store.submit([(_REMARK, [values])]).result()


def remark_of(store: Store, source: str) -> str | None:
    """Return the stored remark of the latest experiment of a source (key), or None."""
    return next((plan.get("remark") for _, plan in _plans(store, source)), None)


def verified_runs(store: Store, source: str) -> set[str]:
    """The originals of the latest verification by a source (key): what a plan keeps of their keys
    (see `short`). Empty if no known experiment planned copies."""
    for _, plan in _plans(store, source):
        grids = plan.get("grids", [])
        if any(grid["variant"] not in ("", "original") for grid in grids):
            originals = (grid["rows"] for grid in grids if grid["variant"] == "original")
            return {row for rows in originals for row in rows}
    return set()


def _plans(store: Store, source: str) -> Iterator[tuple[str, dict[str, Any]]]:
    """Key and plan of the experiments of a source, the latest first."""
    c = experiments.c
    query = select(c.experiment_key, c.plan).where(c.source_key == source)
    for key, plan in store.fetch(query.order_by(c.begun.desc())):
        yield key, decode(plan, f"the experiment {key[:12]}")


def open_experiments(store: Store, sources: Iterable[str] | None = None) -> list[StoredExperiment]:
    """Return the unfinished experiments of these sources (default: all), ordered by key. Raises
    StoreError for a corrupt one."""
    c = experiments.c
    query = select(experiments).where(c.finished.is_(None)).order_by(c.experiment_key)
    if sources is not None:
        query = query.where(c.source_key.in_(list(sources)))
    opened = []
    for row in store.fetch(query):
        about = f"the open experiment {row.experiment_key[:12]}"
        try:
            plan = decode(row.plan, about)
            grids = tuple(
                Grid(tuple(g["rows"]), int(g["repeats"]), g["variant"], tuple(g["criteria"]))
                for g in plan["grids"]
            )
            system = plan["system"]
        except (ValueError, TypeError, KeyError, StoreError) as error:
            advice = "delete its row of the table experiments"
            raise StoreError(f"{about} is damaged in the store; {advice}") from error
        opened.append(
            StoredExperiment(row.source_key, row.evaluator, row.name, row.lock, grids, system)
        )
    return opened


@dataclass(frozen=True, slots=True)
class Unfinished:
    """An experiment with `stored` finished cells or trials. `at_work` describes the process that
    works on it, or is None."""

    experiment: StoredExperiment
    stored: int
    at_work: str | None

    @property
    def planned(self) -> int:
        """Number of cells or trials in all."""
        return self.experiment.planned

    @property
    def line(self) -> str:
        """A sentence with the next step."""
        experiment, grids = self.experiment, self.experiment.grids
        repeats = max(grid.repeats for grid in grids)
        rows = sum(len(grid.rows) for grid in grids)
        if experiment.system:
            what = f"planned trials ({experiment.evaluator}) of {experiment.name}"
            extent = f"{plural(rows, 'case')} × {plural(repeats, 'trial')}"
        else:
            what = "planned cells"
            originals = sum(len(grid.rows) for grid in grids if grid.variant == "original")
            counts = ((originals, "run"), (rows - originals, "copy"))
            shown = " and ".join(plural(n, word) for n, word in counts if n)
            criteria = plural(max(len(grid.criteria) for grid in grids), "criterion")
            extent = f"{shown} × {criteria} × {plural(repeats, 'repeat')}"
        far = f"{self.stored:,} of {self.planned:,} {what} are done ({extent})"
        if self.at_work is not None:
            return f"in progress: {far}; {self.at_work} works on it"
        return f"not finished: {far}; run the same command again to finish"

    def json(self) -> dict[str, Any]:
        """The same as a JSON value: the keys of experiment and source or system, and numbers."""
        experiment = self.experiment
        whose = {"source": experiment.source, "what": "cells"}
        if experiment.system:
            whose = {name: getattr(experiment, name) for name in ("system", "name", "evaluator")}
            whose["what"] = "trials"
        return {
            **whose,
            "planned": self.planned,
            "done": self.stored,
            "in_progress": self.at_work is not None,
            "experiment": experiment.key,
        }


def unfinished_of(
    store: Store, sources: Iterable[str], runs: Iterable[str] | None = None
) -> list[Unfinished]:
    """Experiments of these sources (keys) that are begun and not all stored; with `runs` (keys of
    items) only those that plan one of them. If none is open, this is one index lookup; else stored
    results are counted. Raises StoreError for a damaged plan.
    """
    return _unfinished(store, open_experiments(store, sources), runs)


def unfinished_trials(
    store: Store, evaluators: Iterable[str], cases: Iterable[str] | None = None
) -> list[Unfinished]:
    """The same for trials of evaluators with these names, or a name that continues one of them
    after a dot; with `cases` (keys) only those that plan one of them."""
    starts = tuple(f"{name}." for name in evaluators)
    opened = (e for e in open_experiments(store) if e.system)
    return _unfinished(store, (e for e in opened if f"{e.evaluator}.".startswith(starts)), cases)


def _unfinished(
    store: Store, opened: Iterable[StoredExperiment], rows: Iterable[str] | None
) -> list[Unfinished]:
    row_keys = None if rows is None else set(short(rows))
    unfinished = []
    for experiment in opened:
        if row_keys is None or any(row_keys.intersection(grid.rows) for grid in experiment.grids):
            with reading(store.engine) as connection:
                stored = experiment.stored(connection)
            # Killed after the last result: nothing is missing.
            if stored < experiment.planned:
                holder = store.holder(experiment.lock)
                unfinished.append(Unfinished(experiment, stored, holder))
    return unfinished
