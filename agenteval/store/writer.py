"""Group commit: units that finish close together share one durable transaction."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Engine, Executable
from sqlalchemy.exc import OperationalError

from agenteval.errors import StoreError
from agenteval.store.connect import explain, writing

Rows = Sequence[Mapping[str, Any]]
Writes = Sequence[tuple[Executable, Rows]]


@dataclass(frozen=True, slots=True)
class Unit:
    """Rows that are committed together or not at all, one statement per entry."""

    writes: Writes
    done: Future[None] = field(default_factory=Future)


class GroupWriter:
    """One thread owns the writing connection; `submit` hands it a unit.

    The unit's future resolves when its transaction is durable. When a shared transaction fails
    for what one unit holds, each is tried alone, so that a bad unit cannot take others with it.
    A unit once submitted is written: cancelling its future has no effect.
    """

    def __init__(self, engine: Engine, *, window: float = 0.02, largest: int = 512) -> None:
        self._engine = engine
        self._window = window
        self._largest = largest
        self._queue: queue.SimpleQueue[Unit | None] = queue.SimpleQueue()
        self._closed = False
        self._gate = threading.Lock()  # nothing is queued behind the end mark
        self._thread = threading.Thread(target=self._run, name="agenteval-store", daemon=True)
        self._thread.start()

    def submit(self, writes: Writes) -> Future[None]:
        """Queue a unit. Its future raises StoreError when the database refuses it."""
        unit = Unit(writes)
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
        while (first := self._queue.get()) is not None:
            time.sleep(self._window)  # who finishes meanwhile shares the transaction
            batch = [first]
            ended = self._gather(batch)
            self._commit(batch)
            if ended:
                return

    def _gather(self, batch: list[Unit]) -> bool:
        """Add what is queued by now; True at the end mark."""
        while len(batch) < self._largest:
            try:
                unit = self._queue.get_nowait()
            except queue.Empty:
                return False
            if unit is None:
                return True
            batch.append(unit)
        return False

    def _commit(self, batch: list[Unit]) -> None:
        try:
            self._write(batch)
        except OperationalError as error:  # the disk or a lock: no unit would fare better alone
            self._fail(batch, error)
        except Exception as error:  # noqa: BLE001  every unit gets its answer, whatever happens
            if len(batch) > 1:
                for unit in batch:
                    self._commit([unit])
            else:
                self._fail(batch, error)
        else:
            for unit in batch:
                unit.done.set_result(None)

    def _fail(self, batch: list[Unit], error: Exception) -> None:
        for unit in batch:
            failure = StoreError(explain(error, self._engine))
            failure.__cause__ = error
            unit.done.set_exception(failure)

    def _write(self, batch: list[Unit]) -> None:
        """One transaction; statements that several units share run once over all their rows."""
        grouped: dict[int, tuple[Executable, list[Mapping[str, Any]]]] = {}
        for unit in batch:
            for statement, rows in unit.writes:
                grouped.setdefault(id(statement), (statement, []))[1].extend(rows)
        with writing(self._engine) as connection:
            for statement, rows in grouped.values():
                if rows:
                    connection.execute(statement, rows)
