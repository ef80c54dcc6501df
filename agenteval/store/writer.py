"""Group commit: units that finish close together share one durable transaction."""

from __future__ import annotations

import asyncio
import queue
import threading
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cache
from typing import Any

from sqlalchemy import Dialect, Engine
from sqlalchemy.exc import OperationalError
from sqlalchemy.sql.dml import UpdateBase

from agenteval.errors import StoreError
from agenteval.store.connect import store_error, writing
from agenteval.store.schema import metadata

Rows = Sequence[Mapping[str, Any]]
Writes = Sequence[tuple[UpdateBase, Rows]]
Waiter = asyncio.Future[None]


@dataclass(frozen=True, slots=True)
class Transaction:
    """Rows that are committed together or not at all, one statement per entry."""

    writes: Writes
    done: Future[None] = field(default_factory=Future)
    waiter: Waiter | None = None


class GroupWriter:
    """Owns the writing connection in one thread; `submit` adds a unit.

    The unit's future resolves when its transaction is durable. When a shared transaction fails
    because of one unit, each is retried alone, so that a bad unit does not affect others. A
    submitted unit is always written: cancelling its future has no effect.
    """

    def __init__(self, engine: Engine, *, window: float = 0.02, largest: int = 512) -> None:
        self._engine = engine
        self._window = window
        self._largest = largest
        self._queue: queue.SimpleQueue[Transaction | None] = queue.SimpleQueue()
        self._closed = False
        self._gate = threading.Lock()  # nothing is queued behind the end mark
        self._thread = threading.Thread(target=self._run, name="agenteval-store", daemon=True)
        self._thread.start()

    def submit(self, writes: Writes, waiter: Waiter | None = None) -> Future[None]:
        """Queue a unit. Its future raises StoreError when the database refuses it.

        A `waiter` of an event loop gets the same outcome in its loop's thread; those of one
        transaction are woken together, which is cheaper than one by one.
        """
        unit = Transaction(writes, waiter=waiter)
        unit.done.set_running_or_notify_cancel()  # the waiter may go away, the unit may not
        with self._gate:
            if self._closed:
                raise StoreError("the store is closed")
            self._queue.put(unit)
        return unit.done

    def close(self) -> None:
        """Commit what is queued and stop; safe to call twice."""
        with self._gate:
            if not self._closed:
                self._closed = True
                self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        ended = False
        while not ended and (unit := self._queue.get()) is not None:
            time.sleep(self._window)  # units that finish meanwhile share the transaction
            batch: list[Transaction] = []
            with suppress(queue.Empty):
                while unit is not None:
                    batch.append(unit)
                    if len(batch) == self._largest:
                        break
                    unit = self._queue.get_nowait()
            ended = unit is None
            self._commit(batch)
            _wake(batch)

    def _commit(self, batch: list[Transaction]) -> None:
        try:
            self._write(batch)
        except Exception as error:  # noqa: BLE001  every unit gets its answer, whatever happens
            # Disk and lock errors would also occur when retried alone.
            if len(batch) > 1 and not isinstance(error, OperationalError):
                for unit in batch:
                    self._commit([unit])
                return
            for unit in batch:
                failure = store_error(error, self._engine)
                failure.__cause__ = error
                unit.done.set_exception(failure)
        else:
            for unit in batch:
                unit.done.set_result(None)

    def _write(self, batch: list[Transaction]) -> None:
        """One transaction; a statement that several units share runs once over all their rows.

        Rows are deleted first, then written table by table, each after those it refers to: in this
        order no unit undoes the writes of another in the same transaction.
        """
        grouped: dict[tuple[UpdateBase, tuple[str, ...]], list[Mapping[str, Any]]] = {}
        for unit in batch:
            for statement, rows in unit.writes:
                if rows:
                    grouped.setdefault((statement, tuple(rows[0])), []).extend(rows)
        if not grouped:  # only waiters for earlier writes
            return
        with writing(self._engine) as connection:
            for (statement, columns), rows in sorted(
                grouped.items(), key=lambda group: _rank(group[0][0])
            ):
                sql, order, constants = _compiled(statement, columns, self._engine.dialect)
                if order:
                    values: Any = [
                        tuple([row[name] if name in row else constants[name] for name in order])
                        for row in rows
                    ]
                else:  # a driver with named parameters
                    values = [{**constants, **row} for row in rows]
                connection.exec_driver_sql(sql, values)


_TABLES = [table.name for table in metadata.sorted_tables]


def _rank(statement: Any) -> list[int]:
    """Return the sort key of statements: deletes first, then tables in order of creation, updates
    of a table after its inserts."""
    place = _TABLES.index(statement.table.name)
    return [not statement.is_delete, place, bool(statement.is_update)]


@cache
def _compiled(
    statement: UpdateBase, columns: tuple[str, ...], dialect: Dialect
) -> tuple[str, tuple[str, ...], dict[str, Any]]:
    """A statement as the driver takes it: SQL, the names of its places, and the constants in it.

    SQLAlchemy would process every value of every row at each execution, which took a third of the
    writer's time and blocked the event loop.
    """
    compiled: Any = statement.compile(dialect=dialect, column_keys=columns)
    constants = {name: value for name, value in compiled.params.items() if name not in columns}
    return str(compiled), tuple(compiled.positiontup or ()), constants


def _wake(batch: Sequence[Transaction]) -> None:
    """Pass the outcome of units to the waiters of every loop, one call per loop."""
    by_loop: dict[asyncio.AbstractEventLoop, list[Transaction]] = defaultdict(list)
    for unit in batch:
        if unit.waiter is not None:
            by_loop[unit.waiter.get_loop()].append(unit)
    for loop, units in by_loop.items():
        with suppress(RuntimeError):  # a closed loop: nothing waits any more
            loop.call_soon_threadsafe(_pass_on, units)


def _pass_on(units: Sequence[Transaction]) -> None:
    for unit in units:
        if unit.waiter is not None and not unit.waiter.done():  # else cancelled
            if error := unit.done.exception():
                unit.waiter.set_exception(error)
            else:
                unit.waiter.set_result(None)
