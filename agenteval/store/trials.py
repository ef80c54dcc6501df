"""Trials in the store: what agents under test did, and what a checker said of it."""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import AbstractContextManager
from itertools import islice
from typing import TYPE_CHECKING, Any

from sqlalchemy import ColumnElement, Select, bindparam, delete, func, select, update
from sqlalchemy.dialects.sqlite import insert

from agenteval.errors import StoreError
from agenteval.records import Source, Usage, content_hash
from agenteval.records.score import INFRASTRUCTURE
from agenteval.store import rows, schema
from agenteval.store.connect import reading
from agenteval.store.experiments import Begun, Grid, StoredExperiment, begin, short
from agenteval.store.trial import (
    Trial,
    TrialCase,
    TrialSystem,
    result_rows,
    source_key,
    to_trial,
    trial_row,
    valid,
)
from agenteval.store.writer import Writes
from agenteval.text import encodable

if TYPE_CHECKING:
    from agenteval.store.store import Store

_CHUNK = 1000  # rows in one transaction or fetched at a time, so that memory stays bounded

_calls, _results = schema.calls.c, schema.results.c
_ADD_TRIAL = insert(schema.calls)
_NEW = _ADD_TRIAL.excluded


def _sum(name: str) -> ColumnElement[Any]:
    """Old plus new, where one that is not known counts as the other (as in Usage)."""
    old, new = _calls[name], _NEW[name]
    return func.coalesce(old + new, old, new)


_ADD_TRIAL = _ADD_TRIAL.on_conflict_do_update(
    index_elements=["call_id"],
    set_={
        **{
            c: _NEW[c]
            for c in ("status", "outcome", "check_key", "started", "ended", "verdict", "record")
        },
        **{c: _sum(c)
           for c in ("tries", "requests", "prompt_tokens", "completion_tokens", "cost")},
    },
    where=_calls.status.contains(":"),  # a failure may be replaced, work done never
)  # fmt: skip
_ITS_RESULTS = (
    _results.source_key == bindparam("its_source"),
    _results.item_key == bindparam("its_item"),
    _results.variant == "original",
    _results.repeat == bindparam("its_repeat"),
)
_DROP_RESULTS = delete(schema.results).where(*_ITS_RESULTS)
_DROP_FAILED = _DROP_RESULTS.where(
    select(_calls.status)
    .where(_calls.call_id == bindparam("its_call_id"))
    .scalar_subquery()
    .contains(":")
)
_ADD_RESULT = insert(schema.results).values(
    tries=select(_calls.tries).where(_calls.call_id == bindparam("its_call_id")).scalar_subquery()
)
_ADD_RESULT = _ADD_RESULT.on_conflict_do_update(
    index_elements=["source_key", "item_key", "variant", "criterion_key", "repeat"],
    set_={c: _ADD_RESULT.excluded[c] for c in ("status", "label", "value", "tries", "detail")},
    where=_results.status.contains(":"),
)

_IS = _calls.call_id == bindparam("its_call_id")
_STATUS = select(_calls.status).where(_IS)
_SET_VERDICT = (
    update(schema.calls)
    .where(_IS)
    .values({name: bindparam(f"new_{name}") for name in ("outcome", "check_key", "verdict")})
)


class Trials:
    """The trials of an open store. Cases and systems are made known before their trials."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def lock(self, evaluator: str, system_key: str) -> AbstractContextManager[None]:
        """Hold one system under one evaluator for this process.

        Raises StoreLocked, naming process and host, when another holds it.
        """
        return self._store.lock(source_key(evaluator, system_key))

    def begin(
        self,
        evaluator: str,
        system: TrialSystem,
        work: Iterable[tuple[str, int]],
        *,
        lock: str | None = None,
    ) -> Begun:
        """Note that trials, as (case key, number), are to be run; waits until it is durable.

        `work` is what `missing` gave, or a part of it. `lock` is the evaluator whose lock is held
        meanwhile, where it is another. Raises StoreError.
        """
        pairs = list(work)
        most = max((number for _, number in pairs), default=-1) + 1
        plan = StoredExperiment(
            source_key(evaluator, system.key), evaluator, system.name,
            source_key(lock or evaluator, system.key),
            (Grid(short(key for key, _ in pairs), most),), system.key,
        )  # fmt: skip
        begun = begin(self._store, plan, idle=not pairs)
        begun.wait()
        return begun

    # -- writing ---------------------------------------------------------------------------------

    def add_cases(self, evaluator: str, cases: Iterable[TrialCase]) -> None:
        """Make cases of an evaluator known; waits until that is durable. Raises StoreError."""
        left, now = iter(cases), time.time()
        while chunk := list(islice(left, _CHUNK)):
            known = [
                {
                    "item_key": case.key,
                    "kind": "case",
                    "id": encodable(case.id),
                    "task": "",
                    "case_key": case.key if case.unit is None else content_hash(case.unit),
                    "used": now,
                    "body": rows.encode(case.body),
                }
                for case in chunk
            ]
            self._store.submit([(rows.ADD_ITEM, known)]).result()

    def add_system(self, evaluator: str, system: TrialSystem) -> None:
        """Make a system known under an evaluator; waits until it is durable. Raises StoreError."""
        source = Source(
            evaluator=evaluator, version=1, model=system.name, parameters=system.parameters
        )
        row = {
            **rows.source_row(source, time.time()),
            "source_key": source_key(evaluator, system.key),
            "system_key": system.key,
        }
        self._store.submit([(rows.ADD_SOURCE, [row])]).result()

    async def write_trial(self, trial: Trial) -> None:
        """Store a trial; returns when it is durable.

        A failure stored before is replaced; what is done stays, whatever is written later. Whoever
        is cancelled while waiting here loses nothing. Raises StoreError, also for a case or system
        that is not known; ValueError for NaN or infinity in the log or verdict.
        """
        await asyncio.wrap_future(self.write_trial_soon(trial))

    def write_trial_soon(self, trial: Trial) -> Future[None]:
        """Queue a trial, as `write_trial`; the future resolves when it is durable."""
        return self._store.submit(
            [(_DROP_FAILED, [_its(trial)]), (_ADD_TRIAL, [trial_row(trial)]), *_measured([trial])]
        )

    def write_verdicts(self, trials: Iterable[Trial]) -> int:
        """Replace outcome, verdict, check_key and results of trials that are done; returns their
        number.

        The log and all else stay as stored. Each thousand is durable together, so that what the
        iterable computes holds up no other writer. Raises StoreError for a trial that is not
        stored as done, ValueError for one without an outcome; thousands before it are kept.
        """
        count = 0
        left = iter(trials)
        while chunk := list(islice(left, _CHUNK)):
            self._check_done(chunk)
            verdicts = [
                {
                    "its_call_id": t.call_id,
                    "new_outcome": t.outcome,
                    "new_check_key": t.check_key,
                    "new_verdict": None if t.verdict is None else rows.encode(t.verdict),
                }
                for t in chunk
            ]
            writes: Writes = [
                (_SET_VERDICT, verdicts),
                (_DROP_RESULTS, [_its(t, call=False) for t in chunk]),
                *_measured(chunk),
            ]
            self._store.submit(writes).result()
            count += len(chunk)
        return count

    def _check_done(self, trials: Sequence[Trial]) -> None:
        """What is done stays so: asked before the update, the answer holds during it."""
        with reading(self._store.engine) as connection:
            for trial in trials:
                if trial.outcome is None:
                    raise ValueError("a trial without an outcome has no verdict to store")
                if connection.execute(_STATUS, {"its_call_id": trial.call_id}).scalar() != "done":
                    raise StoreError(
                        f"trial {trial.trial} of case {trial.case_id} by system "
                        f"{trial.system_key[:12]} is not stored as done: it cannot be judged"
                    )

    # -- reading ---------------------------------------------------------------------------------

    def trials(
        self,
        evaluator: str,
        case_keys: Iterable[str] | None = None,
        system_keys: Iterable[str] | None = None,
    ) -> Iterator[Trial]:
        """Stored trials, of all cases and systems unless told, ordered by system key, case key and
        number. Raises StoreError for a damaged row."""
        c, sources, items = _calls, schema.sources.c, schema.items.c
        query = (
            _chosen(select(schema.calls, sources.system_key, items.id), evaluator, case_keys,
                    system_keys)
            .join(schema.items, items.item_key == c.item_key)
            .order_by(sources.system_key, c.item_key, c.repeat)
        )  # fmt: skip
        with reading(self._store.engine) as connection:
            for row in connection.execution_options(yield_per=_CHUNK).execute(query):
                yield to_trial(row, evaluator)

    def missing(
        self,
        evaluator: str,
        case_keys: Sequence[str],
        system_key: str,
        trials: int,
        *,
        retry_failed: bool = False,
    ) -> list[tuple[str, int]]:
        """(case key, number) of what is to be done still, of the numbers 0 to trials - 1.

        That is what was never stored and what the infrastructure has failed, with `retry_failed`
        every failure. Every case comes once, in the order given, before any comes twice: what is
        stopped early has treated all alike.
        """
        c = _calls
        query = select(c.item_key, c.repeat, c.status).where(
            c.source_key == source_key(evaluator, system_key), c.status.is_not(None)
        )
        with reading(self._store.engine) as connection:
            settled = {
                (case, number)
                for case, number, status in connection.execute(query)
                if not (":" in status if retry_failed else status in INFRASTRUCTURE)
            }
        wanted = dict.fromkeys(case_keys)
        return [(k, n) for n in range(trials) for k in wanted if (k, n) not in settled]

    def usage(self, evaluator: str, system_key: str) -> Usage:
        """Requests, tokens and money of all trials of a system, failed attempts included."""
        return self._store.usage(source_key(evaluator, system_key))

    def evaluators(self) -> list[str]:
        """Names under which trials are stored, sorted."""
        tried = select(_calls.source_key).where(_calls.status.is_not(None))
        c = schema.sources.c
        query = select(c.evaluator).where(c.source_key.in_(tried)).distinct().order_by(c.evaluator)
        with reading(self._store.engine) as connection:
            return list(connection.execute(query).scalars())

    def cases(self, evaluator: str) -> Iterator[TrialCase]:
        """Cases on which there is a trial of an evaluator, ordered by key. Raises StoreError for a
        damaged row."""
        tried = _chosen(select(_calls.item_key), evaluator, None, None)
        c = schema.items.c
        query = select(schema.items).where(c.item_key.in_(tried)).order_by(c.item_key)
        with reading(self._store.engine) as connection:
            for row in connection.execution_options(yield_per=_CHUNK).execute(query):
                what = f"the case {row.item_key[:12]}"
                fields = {"key": row.item_key, "id": row.id, "body": rows.decode(row.body, what)}
                yield valid(TrialCase, fields, what)

    def systems(self, evaluator: str) -> list[TrialSystem]:
        """Systems that have a trial under an evaluator, ordered by name and key."""
        c = schema.sources.c
        tried = select(_calls.source_key).where(_calls.status.is_not(None))
        query = (
            select(schema.sources)
            .where(c.evaluator == evaluator, c.system_key.is_not(None), c.source_key.in_(tried))
            .order_by(c.name, c.system_key)
        )
        with reading(self._store.engine) as connection:
            systems = []
            for row in connection.execute(query):
                what = f"the system {row.system_key[:12]}"
                parameters = rows.decode(row.record, what).get("parameters")
                fields = {"key": row.system_key, "name": row.name, "parameters": parameters}
                systems.append(valid(TrialSystem, fields, what))
            return systems


def distinct(names: Mapping[str, str]) -> dict[str, str]:
    """Names by key; one that belongs to several keys gets a piece of the key behind it."""
    often = Counter(names.values())
    return {k: n if often[n] == 1 else f"{n} [{k[:6]}]" for k, n in names.items()}


def _its(trial: Trial, *, call: bool = True) -> dict[str, Any]:
    """What names a trial's results, and its call, as parameters of a statement."""
    named = {"its_source": trial.source_key, "its_item": trial.case_key, "its_repeat": trial.trial}
    return {**named, "its_call_id": trial.call_id} if call else named


def _measured(trials: Sequence[Trial]) -> Writes:
    """The results of trials, and the measures they are on."""
    now = time.time()
    measures = {m.criterion.sha256: m.criterion for t in trials for m in t.results}
    own = [{**row, "its_call_id": t.call_id} for t in trials for row in result_rows(t)]
    for row in own:
        del row["tries"]
    return [
        (rows.ADD_ITEM, [rows.criterion_row(one, now) for one in measures.values()]),
        (_ADD_RESULT, own),
    ]


def _chosen(
    query: Select[Any],
    evaluator: str,
    case_keys: Iterable[str] | None,
    system_keys: Iterable[str] | None,
) -> Select[Any]:
    """Of the calls that are trials of an evaluator, with their sources."""
    sources = schema.sources
    query = query.join_from(schema.calls, sources, sources.c.source_key == _calls.source_key)
    query = query.where(
        sources.c.evaluator == evaluator, sources.c.system_key.is_not(None),
        _calls.status.is_not(None),
    )  # fmt: skip
    for column, keys in ((_calls.item_key, case_keys), (sources.c.system_key, system_keys)):
        if keys is not None:
            # One parameter however many keys there are; SQLite bounds the number of parameters.
            each = func.json_each(rows.encode(list(keys))).table_valued("value")
            query = query.where(column.in_(select(each.c.value)))
    return query
