"""Trials in the store: the calls of agents under test, with their cases and systems."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from sqlalchemy import Select, select

from agenteval.records import Criterion, Source, Usage, content_hash
from agenteval.records.trial import Trial, TrialCase, TrialSystem, source_key
from agenteval.store import rows, schema
from agenteval.store.connect import dialect_of, reading
from agenteval.text import encodable

if TYPE_CHECKING:
    from agenteval.store.store import Store

_CHUNK = 1000  # rows fetched at a time, so that memory stays bounded
_calls, _sources, _items = (table.c for table in (schema.calls, schema.sources, schema.items))


class Trials:
    """The trials of an open store. Register cases and systems before `Store.save` gets their
    trials."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def add_cases(self, evaluator: str, cases: Iterable[TrialCase]) -> None:
        """Register cases of an evaluator; durable on return. Raises StoreError."""
        now = time.time()
        for chunk in rows.batched(cases):
            item_rows = [
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
            self.store.submit([(rows.ADD_ITEM, item_rows)]).result()

    def add_system(
        self, evaluator: str, system: TrialSystem, measures: Iterable[Criterion] = ()
    ) -> None:
        """Register a system under an evaluator, with the measures of its trials; durable on return.
        Raises StoreError."""
        now = time.time()
        source = Source(
            evaluator=evaluator, version=1, model=system.name, parameters=system.parameters
        )
        row = {
            **rows.source_row(source, now),
            "source_key": source_key(evaluator, system.key),
            "system_key": system.key,
        }
        measure_rows = [rows.criterion_row(measure, now) for measure in measures]
        self.store.submit([(rows.ADD_SOURCE, [row]), (rows.ADD_ITEM, measure_rows)]).result()

    # -- reading ---------------------------------------------------------------------------------

    def trials(
        self,
        evaluator: str,
        case_keys: Iterable[str] | None = None,
        system_keys: Iterable[str] | None = None,
    ) -> Iterator[Trial]:
        """Yield stored trials, of all cases and systems by default, ordered by system key, case key
        and number. Raises StoreError for a corrupt row."""
        query = _tried(select(schema.calls, _sources.system_key, _items.id), evaluator)
        query = query.join(schema.items, _items.item_key == _calls.item_key)
        among = dialect_of(self.store.engine).among
        for column, keys in ((_calls.item_key, case_keys), (_sources.system_key, system_keys)):
            if keys is not None:
                query = query.where(among(column, keys))
        query = query.order_by(_sources.system_key, _calls.item_key, _calls.repeat)
        with reading(self.store.engine) as connection:
            for row in connection.execution_options(yield_per=_CHUNK).execute(query):
                what = f"trial {row.repeat} of case {row.item_key[:12]}"
                usage = {name: getattr(row, name) for name in rows.USAGE}
                fields = {
                    "evaluator": evaluator,
                    "system_key": row.system_key,
                    "case_key": row.item_key,
                    "trial": row.repeat,
                    "case_id": row.id,
                    "status": row.status,
                    "log": rows.decode(row.record, what),
                    "outcome": row.outcome,
                    "check_key": row.check_key,
                    "verdict": None if row.verdict is None else rows.decode(row.verdict, what),
                    "started": row.started,
                    "ended": row.ended,
                    "usage": None if row.requests is None else usage,
                    "tries": row.tries,
                }
                yield rows.valid(Trial, fields, what)

    def find_done(
        self, evaluator: str, system_key: str, case_key: str, number: int
    ) -> Trial | None:
        """Return the stored trial of this number if it is done, else None."""
        trials = self.trials(evaluator, [case_key], [system_key])
        return next((t for t in trials if t.trial == number and t.status == "done"), None)

    async def finished(
        self, evaluator: str, system_key: str, case_key: str, number: int
    ) -> Trial | None:
        """Return what `find_done` returns."""
        return self.find_done(evaluator, system_key, case_key, number)

    async def save(self, trial: Trial) -> None:
        """Store a trial before it is judged; returns when it is durable."""
        await self.store.save((), trial)

    def usage(self, evaluator: str, system_key: str) -> Usage:
        """Requests, tokens and money of all trials of a system, failed attempts included."""
        return self.store.usage(source_key(evaluator, system_key))

    def evaluators(self) -> list[str]:
        """Names under which trials are stored, sorted."""
        tried = _sources.source_key.in_(_tried(select(_calls.source_key)))
        query = select(_sources.evaluator).where(tried).distinct().order_by(_sources.evaluator)
        return [name for (name,) in self.store.fetch(query)]

    def cases(self, evaluator: str) -> Iterator[TrialCase]:
        """Cases on which there is a trial of an evaluator, ordered by key. Raises StoreError for a
        damaged row."""
        tried = _tried(select(_calls.item_key), evaluator)
        query = select(schema.items).where(_items.item_key.in_(tried)).order_by(_items.item_key)
        with reading(self.store.engine) as connection:
            for row in connection.execution_options(yield_per=_CHUNK).execute(query):
                what = f"the case {row.item_key[:12]}"
                fields = {"key": row.item_key, "id": row.id, "body": rows.decode(row.body, what)}
                yield rows.valid(TrialCase, fields, what)

    def systems(self, evaluator: str) -> list[TrialSystem]:
        """Systems that have a trial under an evaluator, ordered by name and key."""
        tried = _sources.source_key.in_(_tried(select(_calls.source_key), evaluator))
        query = select(schema.sources).where(tried).order_by(_sources.name, _sources.system_key)
        systems = []
        for row in self.store.fetch(query):
            what = f"the system {row.system_key[:12]}"
            parameters = rows.decode(row.record, what).get("parameters")
            fields = {"key": row.system_key, "name": row.name, "parameters": parameters}
            systems.append(rows.valid(TrialSystem, fields, what))
        return systems


def _tried(query: Select[Any], evaluator: str | None = None) -> Select[Any]:
    """Return the query of calls that are trials, optionally of one evaluator, with their
    sources."""
    query = query.join_from(
        schema.calls, schema.sources, _sources.source_key == _calls.source_key
    ).where(_sources.system_key.is_not(None), _calls.status.is_not(None))
    return query if evaluator is None else query.where(_sources.evaluator == evaluator)
