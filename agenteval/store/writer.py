"""Group commit: units that finish close together share one durable transaction."""

from __future__ import annotations

import queue
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import Connection, Engine, Executable
from sqlalchemy.exc import SQLAlchemyError

from agenteval.errors import StoreError

Rows = Sequence[Mapping[str, Any]]


@dataclass(frozen=True, slots=True)
class Unit:
    """Rows that are committed together or not at all, one statement per entry."""

    writes: tuple[tuple[Executable, Rows], ...]
    done: Future[None] = field(default_factory=Future)


class GroupWriter:
    """One thread owns the writing connection; `submit` hands it a unit.

    The unit's future resolves when its transaction is durable. When a shared transaction fails,
    each unit is tried alone, so that one bad unit cannot take others with it.
    """

    def __init__(self, engine: Engine, *, window: float = 0.02, largest: int = 512) -> None:
        self._engine = engine
        self._window = window
        self._largest = largest
        self._queue: queue.SimpleQueue[Unit | None] = queue.SimpleQueue()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="agenteval-store", daemon=True)
        self._thread.start()

    def submit(self, writes: Sequence[tuple[Executable, Rows]]) -> Future[None]:
        """Queue a unit. Its future raises StoreError when the database refuses it."""
        if self._closed:
            raise StoreError("the store is closed")
        unit = Unit(tuple(writes))
        self._queue.put(unit)
        return unit.done

    def close(self) -> None:
        """Commit what is queued and stop; safe to call twice."""
        if not self._closed:
            self._closed = True
            self._queue.put(None)
        self._thread.join()

    def _run(self) -> None:
        open_for_more = True
        while open_for_more:
            batch: list[Unit] = []
            first = self._queue.get()
            if first is None:
                return
            batch.append(first)
            open_for_more = self._gather(batch)
            self._commit(batch)

    def _gather(self, batch: list[Unit]) -> bool:
        deadline = time.monotonic() + self._window
        while len(batch) < self._largest:
            try:
                unit = self._queue.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                return True
            if unit is None:
                return False
            batch.append(unit)
        return True

    def _commit(self, batch: list[Unit]) -> None:
        try:
            self._write(batch)
        except SQLAlchemyError as error:
            if len(batch) > 1:
                for unit in batch:
                    self._commit([unit])
            else:
                batch[0].done.set_exception(StoreError(explain(error, self._engine)))
        except BaseException as error:  # noqa: BLE001
            # A defect must not leave anybody waiting for ever; the waiter gets it as it is.
            for unit in batch:
                if not unit.done.done():
                    unit.done.set_exception(error)
        else:
            for unit in batch:
                unit.done.set_result(None)

    def _write(self, batch: list[Unit]) -> None:
        """One transaction; statements that several units share run once over all their rows."""
        grouped: dict[int, tuple[Executable, list[Mapping[str, Any]]]] = {}
        for unit in batch:
            for statement, rows in unit.writes:
                grouped.setdefault(id(statement), (statement, []))[1].extend(rows)
        with self._engine.begin() as connection:
            for statement, rows in grouped.values():
                _execute(connection, statement, rows)


def _execute(connection: Connection, statement: Executable, rows: Rows) -> None:
    if rows:
        connection.execute(statement, list(rows))


def explain(error: SQLAlchemyError, engine: Engine) -> str:
    """One line for a person from a database error."""
    cause = getattr(error, "orig", None) or error
    text = " ".join(str(cause).split())
    place = engine.url.database or str(engine.url)
    if "disk is full" in text or "disk I/O error" in text:
        return f"{place}: cannot write ({text}); free some space and run the command again"
    return f"{place}: {text}"


Submit = Callable[[Sequence[tuple[Executable, Rows]]], Future[None]]
