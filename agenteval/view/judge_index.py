"""In-memory figures of every run of a judge, so that the viewer can sort and filter pages.

A store of a million cells takes seconds to read, so it is read once for each judge, in its own
thread, and again when calls were added. About 200 bytes are kept per run; texts and results are
read from the store one page at a time.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from agenteval.analysis.rubrics import pooled
from agenteval.errors import StoreError
from agenteval.records import RUBRIC, Criterion
from agenteval.store import Store
from agenteval.store.browse import (
    OriginalRun,
    calls_of,
    criteria_by_key,
    every_cell,
    original_runs,
)

_FRESH = 2.0  # minimum seconds between checks for new calls
Floats = NDArray[np.float32]


@dataclass(frozen=True)
class JudgeIndex:
    """The original runs that a judge has judged, and (runs, criteria) arrays of their results.

    Criteria are the versions used last, runs the versions used last. `means` are over repeats, NaN
    without a value; `spreads` are the largest differences between two repeats; `levels` has bit i
    set where a repeat gave the i-th accepted value. `failed` counts failures of a run, by status
    in `failures` (runs, statuses). `read_at` is in seconds since 1970, `calls` the number of calls
    at that time.
    """

    runs: tuple[OriginalRun, ...]
    criteria: tuple[Criterion, ...]
    keys: tuple[str, ...]  # of the criteria
    means: Floats
    spreads: Floats
    levels: NDArray[np.uint32]
    statuses: tuple[str, ...]
    failures: NDArray[np.int32]
    cells: int
    calls: int
    read_at: float

    @property
    def failed(self) -> NDArray[np.int32]:
        """Failures of every run."""
        total: NDArray[np.int32] = self.failures.sum(axis=1, dtype=np.int32)
        return total

    def column(self, criterion: str) -> int:
        """Position of a criterion by id, -1 where the judge has not rated it."""
        return next((i for i, c in enumerate(self.criteria) if c.id == criterion), -1)

    @property
    def systems(self) -> list[str]:
        """Systems that made the runs, sorted."""
        return sorted({run.system for run in self.runs})

    @property
    def by_key(self) -> dict[str, int]:
        """Position of every run by its key."""
        return {run.key: i for i, run in enumerate(self.runs)}


class _Reading:
    """Collects the cells of a judge; rows of the arrays grow with the runs."""

    def __init__(self) -> None:
        self.rows: dict[str, int] = {}
        self.columns: dict[str, int] = {}
        self.statuses: dict[str, int] = {}
        self.labels: dict[tuple[int, str], int] = {}
        self.cells: list[tuple[int, int, float, int]] = []
        self.parts: list[NDArray[np.float32]] = []

    def add(self, item: str, criterion: str, status: str, label: str | None, value: float) -> None:
        row = self.rows.setdefault(item, len(self.rows))
        column = self.columns.setdefault(criterion, len(self.columns))
        code = -1
        if ":" in status:
            code = -2 - self.statuses.setdefault(status, len(self.statuses))
        elif label is not None:
            code = self.labels.setdefault((column, label), len(self.labels))
        self.cells.append((row, column, value, code))
        if len(self.cells) >= 5_000:
            self.flush()

    def flush(self) -> None:
        """Pack the cells into an array: a tenth of their memory."""
        self.parts.append(np.array(self.cells, dtype=np.float32).reshape(-1, 4))
        self.cells = []


def read_index(store: Store, source_key: str) -> JudgeIndex:
    """Read the results of a judge on original runs, in one pass over its results.

    Raises StoreError where the store cannot be read.
    """
    calls, reading = calls_of(store, source_key), _Reading()
    rated = store.criteria_of(source_key)
    rubrics = store.rubrics_of(source_key, rated)  # all of them are one column
    pooled_key = next(iter(rubrics.values()), "")
    for item, key, status, label, value in every_cell(store, source_key):
        if rated[key].id == RUBRIC and rubrics.get(item) != key:
            continue  # judged by an earlier rubric
        criterion = pooled_key if rated[key].id == RUBRIC else key
        reading.add(item, criterion, status, label, np.nan if value is None else value)
    reading.flush()
    every, reading.parts = np.concatenate(reading.parts), []
    criteria = criteria_by_key(store, reading.columns)
    newest = {criterion.id: key for key, criterion in criteria.items()}
    keys = tuple(key for key in criteria if newest[criteria[key].id] == key)
    originals = {
        (run.task, run.system, run.id): run
        for run in original_runs(store)
        if run.key in reading.rows
    }
    runs = tuple(originals.values())
    place = np.full(len(reading.rows), -1, dtype=np.int32)
    place[[reading.rows[run.key] for run in runs]] = np.arange(len(runs))
    width = np.full(len(reading.columns), -1, dtype=np.int32)
    width[[reading.columns[key] for key in keys]] = np.arange(len(keys))
    row, column = every[:, 0].astype(np.int32), every[:, 1].astype(np.int32)
    if len(every):
        row, column = place[row], width[column]
        newest_only = (row >= 0) & (column >= 0)
        every, row, column = every[newest_only], row[newest_only], column[newest_only]
    arrays = _arrays(every, row, column, (len(runs), len(keys)))
    code = every[:, 3].astype(np.int32)
    levels = np.zeros((len(runs), len(keys)), dtype=np.uint32)
    bits = _level_bits(reading, [criteria[key] for key in keys], width)
    labelled = code >= 0
    np.bitwise_or.at(levels, (row[labelled], column[labelled]), bits[code[labelled]])
    failures = np.zeros((len(runs), len(reading.statuses)), dtype=np.int32)
    np.add.at(failures, (row[code <= -2], -2 - code[code <= -2]), 1)
    return JudgeIndex(
        runs,
        tuple(pooled([criteria[key]], items=False)[0] for key in keys),
        keys,
        *arrays,
        levels,
        tuple(reading.statuses),
        failures,
        len(every),
        calls,
        time.time(),
    )


def _level_bits(
    reading: _Reading, criteria: Sequence[Criterion], width: NDArray[np.int32]
) -> NDArray[np.uint32]:
    """Return the bit of every label seen; 0 for one that is not an accepted value."""
    bits = np.zeros(max(len(reading.labels), 1), dtype=np.uint32)
    for (column, label), code in reading.labels.items():
        accepted = criteria[width[column]].accepted_values if width[column] >= 0 else ()
        if label in accepted[:32]:
            bits[code] = 1 << accepted.index(label)
    return bits


def _arrays(
    every: Floats, row: NDArray[np.int32], column: NDArray[np.int32], shape: tuple[int, int]
) -> tuple[Floats, Floats]:
    """Return means and spreads over repeats."""
    values = every[:, 2]
    rated = ~np.isnan(values)
    at = row[rated], column[rated]
    total, count = np.zeros(shape, np.float32), np.zeros(shape, np.int32)
    np.add.at(total, at, values[rated])
    np.add.at(count, at, 1)
    low, high = np.full(shape, np.inf, np.float32), np.full(shape, -np.inf, np.float32)
    np.minimum.at(low, at, values[rated])
    np.maximum.at(high, at, values[rated])
    means = np.full(shape, np.nan, np.float32)
    np.divide(total, count, out=means, where=count > 0)
    return means, np.where(count > 1, high - low, np.nan).astype(np.float32)


class JudgeIndexes:
    """The indexes of a store's judges; each is read in a thread of its own when it is asked for.

    `patience` is for how many seconds a page waits for an index.
    """

    def __init__(self, store: Store, patience: float = 0.4) -> None:
        self._store, self._patience = store, patience
        self._lock = threading.Lock()
        self._read: dict[str, JudgeIndex] = {}
        self._errors: dict[str, StoreError] = {}
        self._running: dict[str, threading.Thread] = {}
        self._asked: dict[str, float] = {}

    def get(self, source_key: str, patience: float | None = None) -> JudgeIndex | None:
        """Return the index, or None while it is being read. An outdated index is returned as it is
        and reread in the background. Raises the StoreError that reading ended with."""
        with self._lock:
            index = self._read.get(source_key)
            stale = index is None or time.time() - self._asked.get(source_key, 0) > _FRESH
        if stale and (index is None or index.calls != calls_of(self._store, source_key)):
            thread = self._start(source_key)
            if index is None:
                thread.join(self._patience if patience is None else patience)
        self._asked[source_key] = time.time()
        with self._lock:
            if (error := self._errors.pop(source_key, None)) is not None:
                raise error
            return self._read.get(source_key)

    def _start(self, source_key: str) -> threading.Thread:
        with self._lock:
            thread = self._running.get(source_key)
            if thread is None or not thread.is_alive():
                thread = threading.Thread(target=self._run, args=(source_key,), daemon=True)
                self._running[source_key] = thread
                thread.start()
            return thread

    def _run(self, source_key: str) -> None:
        try:
            with self._store.snapshot():
                index = read_index(self._store, source_key)
        except StoreError as error:
            with self._lock:
                self._errors[source_key] = error
        else:
            with self._lock:
                self._read[source_key] = index
