"""The store: results by key, calls and paid replies, in an SQLite file or PostgreSQL."""

from __future__ import annotations

import asyncio
import os
import sqlite3
import threading
import time
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path
from typing import Any

from sqlalchemy import Executable, Select, func, inspect, literal, literal_column, null, select
from sqlalchemy.exc import SQLAlchemyError

from agenteval.errors import NoStoreYet, StoreError
from agenteval.records import RUBRIC, CallRecord, Criterion, Result, Run, Source, Usage, View
from agenteval.records.score import INFRASTRUCTURE
from agenteval.records.trial import Trial
from agenteval.records.verification import VerifiedSet
from agenteval.store import rows, schema
from agenteval.store.connect import (
    close_engine,
    dialect_of,
    make_engine,
    prepare,
    reading,
    snapshot,
    store_error,
    store_place,
    writing,
)
from agenteval.store.postgres import shown
from agenteval.store.relabel import Relabelled, corrected, relabel
from agenteval.store.replies import Replies
from agenteval.store.writer import GroupWriter, Waiter, Writes
from agenteval.text import encodable

_TEXTS = 400  # long texts read at a time


@dataclass(frozen=True, slots=True)
class CellState:
    """Status of a cell and the number of attempts. `attempt` counts the content failures that were
    retried before this result."""

    status: str
    tries: int
    attempt: int = 0
    check_key: str | None = None  # of the checker that gave the verdict of an attempt

    @property
    def open_on_resume(self) -> bool:
        """True when a resumed run should retry it automatically."""
        return self.status in INFRASTRUCTURE

    @property
    def failed(self) -> bool:
        """True for every Failure."""
        return ":" in self.status


@dataclass(frozen=True, slots=True)
class StoredVerdict:
    """The latest verdict of `verify` on a judge for a task, and its time (seconds since 1970)."""

    task: str
    made: float
    result: VerifiedSet


class Store:
    """The database of all results.

    Open it with a path, or with postgresql://USER:PASSWORD@HOST/DATABASE (tables are created if
    missing; the database itself must exist). Close it, or use it as a context manager. `shown` is
    its name for messages, and `address` opens it again.

    Raises StoreRefused for a file that is not a store, is corrupt, has another version or (unless
    `create=False`) is not writable; StoreError when it cannot be opened; InputError for another
    URL; and NoStoreYet with `create=False` when there is no store or it is empty.
    """

    def __init__(self, path: str | Path, *, create: bool = True) -> None:
        self.place = store_place(path)
        self.shown = str(self.place) if isinstance(self.place, Path) else shown(self.place)
        self.address: str | Path = self.place if isinstance(self.place, Path) else str(path)
        if isinstance(self.place, Path) and not create and not self.place.is_file():
            raise NoStoreYet(str(path))
        self.engine = make_engine(self.place, create=create)
        try:
            if isinstance(self.place, Path):
                self.place.parent.mkdir(parents=True, exist_ok=True)
            self.secret = prepare(self.engine, create=create)
            self._replies = Replies(self.engine, self.submit)
        except (SQLAlchemyError, sqlite3.Error, OSError) as error:
            self.engine.dispose()
            raise store_error(error, self.engine, opening=True) from error
        except BaseException:  # Ctrl-C too: no connection is left behind
            self.engine.dispose()
            raise
        self._gate = threading.Lock()
        self._writer: GroupWriter | None = None
        self._closed = False

    def __enter__(self) -> Store:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Commit queued rows and close. Can be called twice."""
        self._replies.flush()
        with self._gate:
            if self._closed:
                return
            self._closed = True
        if self._writer is not None:
            self._writer.close()
        self._replies.close()
        close_engine(self.engine)

    def lock(self, experiment: str) -> AbstractContextManager[None]:
        """Hold an experiment for this process. Raises StoreLocked when another holds it."""
        return dialect_of(self.engine).lock(self.engine, experiment)

    def holder(self, experiment: str) -> str | None:
        """Return a description of the process that holds an experiment, or None."""
        return dialect_of(self.engine).holder(self.engine, experiment)

    @property
    def path(self) -> Path:
        """Path of the file. Raises StoreError for a store that is not a file."""
        if isinstance(self.place, Path):
            return self.place
        raise StoreError(f"{self.shown}: this store is a database, not a file")

    def snapshot(self) -> AbstractContextManager[None]:
        """Until the context ends, read the store in this thread as it is now. Not for long work
        (the database log cannot be truncated meanwhile), nor to read rows written inside."""
        return snapshot(self.engine)

    def submit(self, writes: Writes, waiter: Waiter | None = None) -> Future[None]:
        """Queue rows that belong together. The future (and `waiter`, in its own event loop)
        resolves when they are durable, or raises."""
        with self._gate:
            self._check_usable()
            if self._writer is None:
                self._writer = GroupWriter(self.engine)
            return self._writer.submit(writes, waiter)

    def _check_usable(self) -> None:
        if self._closed:
            raise StoreError(f"{self.shown}: the store is closed")

    def fetch(self, query: Executable) -> Sequence[Any]:
        """Return all rows of a query. Raises StoreError."""
        with reading(self.engine) as connection:
            return connection.execute(query).all()

    # -- runs, criteria and sources -------------------------------------------------------------

    def with_stored_keys(self, items: Iterable[tuple[Run, View]]) -> list[tuple[Run, View]]:
        """Return the runs with the keys of this store: one of an earlier version identifies a run
        by id and text only, and such a row of the same task and system keeps its key."""
        c, keyed = schema.items.c, []
        query = select(c.item_key, c.task, c.system).where(c.kind == "run")
        for chunk in rows.batched(items):
            keys = [view.text_sha256 for _, view in chunk]
            stored = self.fetch(query.where(c.item_key.in_(keys)))
            owners = {key: (task, system) for key, task, system in stored}
            for key, (run, view) in zip(keys, chunk, strict=True):
                if owners.get(key) == (encodable(run.task), encodable(run.system)):
                    view = view.model_copy(update={"owner": None})
                keyed.append((run, view))
        return keyed

    def register(
        self, runs: Iterable[tuple[Run, View]], criteria: Iterable[Criterion], source: Source
    ) -> None:
        """Store runs, criteria and source; durable on return. Call `relabel` first if the order of
        levels may have changed."""
        criteria = list(criteria)
        now = time.time()
        writes: Writes = [
            (rows.ADD_ITEM, [rows.criterion_row(c, now) for c in criteria]),
            (rows.ADD_SOURCE, [rows.source_row(source, now)]),
        ]
        self.submit(writes).result()
        for chunk in rows.batched(runs):
            self.submit([(rows.ADD_RUN, [rows.run_row(*run, now) for run in chunk])]).result()

    def relabel(self, criteria: Iterable[Criterion]) -> list[Relabelled]:
        """Update stored ratings to the current order of the criteria's levels, in one transaction.
        Returns one entry for each criterion that is stored with another order."""
        self._check_usable()
        criteria = list(criteria)
        with reading(self.engine) as connection:
            if not corrected(connection, criteria):
                return []
        try:
            with writing(self.engine) as connection:
                changed = []
                for old, new in corrected(connection, criteria):
                    changed.append(relabel(connection, old, new, new.sha256))
                    connection.execute(rows.ADD_ITEM, rows.criterion_row(new, time.time()))
                return changed
        except SQLAlchemyError as error:
            raise store_error(error, self.engine) from error

    def states(
        self, source_key: str, *, attempts: bool = False
    ) -> Iterator[tuple[tuple[str, str, str, int], CellState]]:
        """Yield the key (item, variant, criterion, repeat) and state of every result of a source,
        or with `attempts` of every attempt of an agent (criterion ""), in no order."""
        r, c = schema.results.c, schema.calls.c
        columns: tuple[Any, ...]
        if attempts:
            columns = (c.item_key, c.variant, literal(""), c.repeat)
            columns += (c.status, c.tries, literal(0), c.check_key)
            query = select(*columns).where(c.source_key == source_key, c.status.is_not(None))
        else:
            columns = (r.item_key, r.variant, r.criterion_key, r.repeat)
            columns += (r.status, r.tries, r.attempt, null())
            query = select(*columns).where(r.source_key == source_key)
        state = lru_cache(maxsize=1024)(CellState)  # the cells share a few states
        with reading(self.engine) as connection:
            rows = connection.execution_options(yield_per=10_000).execute(query)
            for item, variant, criterion, repeat, *fields in rows:
                yield (item, variant, criterion, repeat), state(*fields)

    # -- results ---------------------------------------------------------------------------------

    async def save(
        self,
        results: Sequence[Result],
        call: CallRecord | Trial,
        *,
        attempt: int = 0,
        verdict_only: bool = False,
    ) -> None:
        """Store the results of one unit, with its call; durable on return.

        A call is either that of a judge, whose `attempt` is that of the unit, or the trial of an
        agent. An earlier failure is replaced with all its results; a Score and a completed trial
        are never replaced. With `verdict_only` the trial must be stored already: its outcome,
        verdict and results are replaced, its log and the rest are kept. If the caller is cancelled,
        queued rows are still written.

        Raises StoreError, also for an unregistered source, item or criterion, for a verdict on a
        trial that is not stored as done, and when a reply queued earlier was rejected; ValueError
        for results that do not belong to this call, and for NaN or infinity in a log or verdict.
        """
        waiter: Waiter = asyncio.get_running_loop().create_future()
        self.save_soon(results, call, attempt=attempt, verdict_only=verdict_only, waiter=waiter)
        await waiter

    def save_soon(
        self,
        results: Sequence[Result],
        call: CallRecord | Trial,
        *,
        attempt: int = 0,
        verdict_only: bool = False,
        waiter: Waiter | None = None,
    ) -> Future[None]:
        """Queue the results of one unit as `save` does. The future (and `waiter`, in its own event
        loop) resolves when they are durable."""
        if self._replies.lost is not None:
            raise self._replies.lost
        replies: tuple[str, ...]
        places = {(r.key.source, r.key.run, r.key.variant, r.key.repeat) for r in results}
        if isinstance(call, Trial):
            if places - {(call.source_key, call.case_key, "original", call.trial)}:
                raise ValueError("results of another trial")
            call_id, replies = call.call_id, ()
            writes = (
                self._verdict_writes(call)
                if verdict_only
                else [
                    (rows.DROP_FAILED, [rows.place_of(call)]),
                    (rows.ADD_TRIAL, [rows.trial_row(call)]),
                ]
            )
        elif len(places) != 1:
            raise ValueError("results of no call or of several; save each with its own record")
        else:
            call_id, replies = uuid.uuid4().hex, call.replies
            writes = [(rows.ADD_CALL, [rows.call_row(call_id, results[0].key, call)])]
        saved = (rows.ADD_RESULT, [rows.result_row(call_id, r, attempt) for r in results])
        fresh = self._replies.take(replies)
        unit = self.submit([(rows.ADD_REPLY, fresh), *writes, saved], waiter)
        if fresh:
            unit.add_done_callback(lambda done: self._replies.rescue(done, fresh))
        return unit

    def _verdict_writes(self, trial: Trial) -> Writes:
        if trial.outcome is None:
            raise ValueError("a trial without an outcome has no verdict to store")
        with reading(self.engine) as connection:  # a completed trial stays completed
            status = connection.execute(rows.STATUS, {"its_call_id": trial.call_id}).scalar()
        if status != "done":
            raise StoreError(
                f"trial {trial.trial} of case {trial.case_id} by system {trial.system_key[:12]} "
                "is not stored as done: it cannot be judged"
            )
        return [
            (rows.DROP_RESULTS, [rows.place_of(trial)]),
            (rows.SET_VERDICT, [rows.verdict_row(trial)]),
        ]

    def results(
        self, source_key: str, *, variant: str | None = None, item: str | None = None
    ) -> Iterator[Result]:
        """Yield the stored results of a source, optionally of one variant or item, ordered by item,
        variant, criterion and repeat."""
        criteria = schema.items
        same_key = criteria.c.item_key == schema.results.c.criterion_key
        query = select(schema.results, criteria.c.id.label("criterion_id")).join(criteria, same_key)
        if item is not None:
            query = query.where(schema.results.c.item_key == item)
        with reading(self.engine) as connection:
            for row in connection.execute(_of_source(query, source_key, variant)):
                yield rows.to_result(row)

    def cells(
        self, source_key: str, *, variant: str | None = None, items: Collection[str] | None = None
    ) -> Iterator[tuple[Any, ...]]:
        """Yield plain columns of every result of a source (of one variant, on these items): item
        key, variant, criterion key, repeat, status, label, value, detail (JSON text), ordered by
        the first four. Use it for large tables; `rows.cell_detail` validates and reads the detail.
        """
        c = schema.results.c
        query = select(
            c.item_key, c.variant, c.criterion_key, c.repeat, c.status, c.label, c.value, c.detail
        )
        if items is not None:
            query = query.where(dialect_of(self.engine).among(c.item_key, items))
        with reading(self.engine) as connection:
            large = connection.execution_options(yield_per=10_000)
            for row in large.execute(_of_source(query, source_key, variant)):
                yield tuple(row)

    def sources(self, *, trials: bool = False) -> list[tuple[str, Source]]:
        """Return (key, Source) of every judge, the most recently used last. With `trials`, also
        every agent under test and finder, each under its evaluator."""
        c = schema.sources.c
        query = select(c.source_key, c.record).order_by(c.used, c.source_key)
        if not trials:
            query = query.where(c.system_key.is_(None))
        return [(k, rows.valid(Source, r, f"the source {k[:12]}")) for k, r in self.fetch(query)]

    def name_of(self, source_key: str) -> str:
        """Return the name of a source (the judge's model, the agent or the finder), or ""."""
        c = schema.sources.c
        query = select(c.name).where(c.source_key == source_key)
        return next((name for (name,) in self.fetch(query)), "")

    def criteria_of(self, source_key: str) -> dict[str, Criterion]:
        """Return the criteria (of trials: the measures) that a source has results on, by content
        hash, the most recently used last."""
        r, c = schema.results.c, schema.items.c
        used = select(r.criterion_key).where(r.source_key == source_key)
        query = (
            select(c.item_key, c.body)
            .where(c.item_key.in_(used))
            .order_by(c.used, literal_column("items.rowid"))
        )
        return {
            k: rows.valid(Criterion, body, f"the criterion {k[:12]}")
            for k, body in self.fetch(query)
        }

    def runs(self) -> dict[str, dict[str, Any]]:
        """Return runs by key, the most recently used last: run_id, task, system, case_key, success,
        origin."""
        return self.items(("run",))

    def newest_criteria(self, source_key: str) -> dict[str, Criterion]:
        """Return the last used version of each criterion that a source has results on, by hash."""
        criteria = self.criteria_of(source_key)
        newest = {criterion.id: key for key, criterion in criteria.items()}
        rubrics = set(self.rubrics_of(source_key, criteria).values())
        return {k: c for k, c in criteria.items() if newest[c.id] == k or k in rubrics}

    def rubrics_of(
        self, source_key: str, criteria: Mapping[str, Criterion] | None = None
    ) -> dict[str, str]:
        """Return, by item key, the content hash of the last used rubric with which a source judged
        it; `criteria` are the source's."""
        criteria = self.criteria_of(source_key) if criteria is None else criteria
        rank = {key: n for n, (key, c) in enumerate(criteria.items()) if c.id == RUBRIC}
        if not rank:
            return {}
        c = schema.results.c
        newest: dict[str, str] = {}
        query = select(c.item_key, c.criterion_key).where(c.source_key == source_key).distinct()
        for item, key in self.fetch(query):
            if key in rank and rank[key] >= rank.get(newest.get(item, ""), -1):
                newest[item] = key
        return newest

    def items(
        self, kinds: Sequence[str] = ("run", "case"), *, keys: Collection[str] | None = None
    ) -> dict[str, dict[str, Any]]:
        """Return the items that results are about (or those with these keys), like `runs`. For a
        case, run_id is its id, task is "" and system is None, because the source did the work."""
        c = schema.items.c
        query = (
            select(
                c.item_key, c.id.label("run_id"), c.task, c.system, c.case_key, c.success, c.origin
            )
            .where(c.kind.in_(kinds))
            .order_by(c.used, literal_column("items.rowid"))
        )
        if keys is not None:
            query = query.where(dialect_of(self.engine).among(c.item_key, keys))
        return {row.item_key: dict(row._mapping) for row in self.fetch(query)}

    def judged(self, source_key: str, *, variant: str | None = None) -> set[str]:
        """Return the keys of the items that a source has results on."""
        c = schema.results.c
        query = select(c.item_key).where(c.source_key == source_key).distinct()
        if variant is not None:
            query = query.where(c.variant == variant)
        return {key for (key,) in self.fetch(query)}

    def bodies(self, keys: Iterable[str]) -> Iterator[tuple[str, dict[str, Any]]]:
        """Yield key and body of items in the order of the keys, in batches. The body of a run has
        its problem, trajectory and reference_shown. Raises StoreError for a corrupt body."""
        c = schema.items.c
        for part in rows.batched(keys, _TEXTS):
            query = select(c.item_key, c.body).where(c.item_key.in_(part))
            bodies = {row.item_key: row.body for row in self.fetch(query)}
            for key in part:
                yield key, rows.decode(bodies[key], f"the item {key[:12]}")

    def models(self, source_key: str) -> dict[str, int]:
        """Return how many calls of a source each model answered, by the name that it reported."""
        model = dialect_of(self.engine).json_text(schema.calls.c.record, "model")
        query = (
            select(model, func.count())
            .where(schema.calls.c.source_key == source_key, model.is_not(None))
            .group_by(model)
            .order_by(model)
        )
        return {str(name): int(n) for name, n in self.fetch(query)}

    def usage(self, source_key: str) -> Usage:
        """Return requests, tokens and cost of all calls of a source and, of several judges that
        judge together, of its members."""
        c, s = schema.calls.c, schema.sources.c
        sums = (func.sum(c[name]).label(name) for name in rows.USAGE)
        records = self.fetch(select(s.record).where(s.source_key == source_key))
        sources = [rows.valid(Source, r, f"the source {source_key[:12]}") for (r,) in records]
        members = (m for source in sources for m in rows.members_of(source))
        (row,) = self.fetch(select(*sums).where(c.source_key.in_([source_key, *members])))
        return Usage.model_validate({**row._mapping, "requests": row.requests or 0})

    # -- verdicts on judges ----------------------------------------------------------------------

    def save_verdict(self, source_key: str, task: str, result: VerifiedSet) -> None:
        """Store the verdict on a judge for a task, replacing an earlier one; durable on return."""
        row = {
            "source_key": source_key,
            "task": encodable(task),
            "made": time.time(),
            "verdict": result.judge.verdict,
            "record": rows.encode(result.model_dump(mode="json")),
        }
        try:
            with writing(self.engine) as connection:
                schema.verdicts.create(connection, checkfirst=True)
                connection.execute(rows.ADD_VERDICT, row)
        except SQLAlchemyError as error:
            raise store_error(error, self.engine) from error

    def verdict_on(self, source_key: str, task: str | None = None) -> StoredVerdict | None:
        """Return the latest verdict on a judge, optionally for one task, or None."""
        v = schema.verdicts.c
        query = select(v.task, v.made, v.record).where(v.source_key == source_key)
        if task is not None:
            query = query.where(v.task == encodable(task))
        with reading(self.engine) as connection:
            if not inspect(connection).has_table(schema.verdicts.name):
                return None
            row = connection.execute(query.order_by(v.made.desc()).limit(1)).first()
        if row is None:
            return None
        verdict = rows.valid(VerifiedSet, row.record, f"the verdict on {source_key[:12]}")
        return StoredVerdict(row.task, row.made, verdict)

    # -- paid replies (the Client's cache) -------------------------------------------------------

    def get_reply(self, key: str) -> dict[str, Any] | None:
        """Return a stored reply by the hash of its request, or None, also for a corrupt entry."""
        self._check_usable()
        return self._replies.get(key)

    def put_reply(self, key: str, reply: dict[str, Any]) -> None:
        """Keep a reply; if that fails, the next `save` raises.

        It is written in one unit with the results of its call if these follow before the event loop
        continues: a killed process leaves both or neither, and nothing paid is uncounted. A reply
        that JSON cannot represent (NaN or infinity) is not kept.
        """
        self._replies.put(key, reply)

    async def flush(self) -> None:
        """Return when all replies put so far are durable. Raises StoreError when one is not."""
        self._replies.flush()
        waiter: Waiter = asyncio.get_running_loop().create_future()
        self.submit((), waiter)
        await waiter
        if self._replies.lost is not None:
            raise self._replies.lost


def _of_source(query: Select[Any], source_key: str, variant: str | None) -> Select[Any]:
    """Return the ordered results of one source, optionally of one variant."""
    c = schema.results.c
    query = query.where(c.source_key == source_key)
    if variant is not None:
        query = query.where(c.variant == variant)
    return query.order_by(c.item_key, c.variant, c.criterion_key, c.repeat)


def is_there(address: str | Path) -> bool:
    """Return whether a store exists: a file, or tables in the database. Raises StoreError for a
    database that cannot be opened."""
    place = store_place(address)
    if isinstance(place, Path):
        return place.is_file()
    try:
        Store(address, create=False).close()
    except NoStoreYet:
        return False
    return True


def default_path() -> str:
    """`AGENTEVAL_STORE`, else `agenteval.db` in the working folder."""
    return os.environ.get("AGENTEVAL_STORE", "agenteval.db")
