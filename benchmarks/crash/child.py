"""A command that says where it stands, and sends SIGKILL to itself at the moment it was given.

    python -m benchmarks.crash.child '{"argv": [...], "state": FILE, "units": FILE, "kill": {...}}'

Nothing of agenteval is changed for it. Commits are seen by a subclass of sqlite3's connection,
writes of the database by the system calls of SQLite's own layer for files (`xSetSystemCall`, made
for such tests), whole files by `os.fsync` and `os.replace`, units by the writer's queue.
"""

from __future__ import annotations

import _sqlite3
import ctypes
import functools
import json
import mmap
import os
import random
import re
import signal
import sqlite3
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

STATE_BYTES = 12  # one byte: in a commit; then the counters below, four bytes each
COUNTERS = ("commits", "file_steps")


@dataclass(frozen=True)
class Kill:
    """When a child ends. `time`: the parent sends it after `seconds`. `before`, `after`: around
    the `at`-th commit. `write`: within that commit, at its `write`-th write, of which the share
    `share` of the bytes is still written. `file`: the `at`-th point before or after an fsync or a
    replace."""

    moment: str
    at: int = 0
    write: int = 0
    share: float = 0.0
    seconds: float = 0.0


class Watch:
    """The state that outlives the child (a mapped file), and the kill."""

    def __init__(self, state: Path, kill: Kill | None) -> None:
        state.write_bytes(bytes(STATE_BYTES))
        with state.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), STATE_BYTES)
        self.kill = kill
        self.in_commit = False
        self.commit_writes = 0

    def count(self, name: str) -> int:
        """Add one to a counter; its new value."""
        place = 4 + 4 * COUNTERS.index(name)
        value = int.from_bytes(self._map[place : place + 4], "little") + 1
        self._map[place : place + 4] = value.to_bytes(4, "little")
        return value

    def mark(self, *, in_commit: bool) -> None:
        self.in_commit = in_commit
        self._map[0] = int(in_commit)

    def die(self) -> NoReturn:
        os.kill(os.getpid(), signal.SIGKILL)
        while True:  # the signal is on its way
            signal.pause()

    def due(self, moment: str, at: int) -> bool:
        return self.kill is not None and self.kill.moment == moment and self.kill.at == at

    def wrote(self) -> float | None:
        """Called at each write of the database; the share to write before the end, if now."""
        if not self.in_commit:
            return None
        self.commit_writes += 1
        commit = int.from_bytes(self._map[4:8], "little")
        if self.kill is None or not self.due("write", commit):
            return None
        return self.kill.share if self.kill.write == self.commit_writes else None


def read_state(state: Path) -> dict[str, int]:
    """What the child left: `in_commit` 0 or 1, and its counters."""
    raw = state.read_bytes() if state.exists() else bytes(STATE_BYTES)
    places = enumerate(COUNTERS)
    counts = {n: int.from_bytes(raw[4 + 4 * i : 8 + 4 * i], "little") for i, n in places}
    return {"in_commit": raw[0], **counts}


def install(watch: Watch, log: Path) -> None:
    """Set every hook of this process. `log` takes the units."""
    _watch_commits(watch)
    _watch_writes(watch)
    _watch_files(watch)
    _watch_units(log)
    random.seed()


def _watch_commits(watch: Watch) -> None:
    class Watched(sqlite3.Connection):
        """Marks the time from the call of COMMIT to its return."""

        def commit(self) -> None:
            if not self.in_transaction:
                return super().commit()
            number = watch.count("commits")
            watch.commit_writes = 0
            if watch.due("before", number):
                watch.die()
            watch.mark(in_commit=True)
            try:
                super().commit()
            finally:
                watch.mark(in_commit=False)
            if watch.due("after", number):
                watch.die()
            return None

    driver: Any = sqlite3.dbapi2
    driver.connect = functools.partial(sqlite3.connect, factory=Watched)


_POINTER = ctypes.c_void_p
_VFS_CALLS = """
    Open Delete Access FullPathname DlOpen DlError DlSym DlClose Randomness Sleep CurrentTime
    GetLastError CurrentTimeInt64 SetSystemCall GetSystemCall NextSystemCall
"""


class _Vfs(ctypes.Structure):
    """sqlite3_vfs, version 3 (sqlite.org/c3ref/vfs.html)."""

    _fields_ = [
        ("iVersion", ctypes.c_int),
        ("szOsFile", ctypes.c_int),
        ("mxPathname", ctypes.c_int),
        ("pNext", _POINTER),
        ("zName", ctypes.c_char_p),
        ("pAppData", _POINTER),
        *((f"x{name}", _POINTER) for name in _VFS_CALLS.split()),
    ]


_KEPT: list[Any] = []  # callbacks that C holds; never to be collected


def _watch_writes(watch: Watch) -> None:
    """Stand between SQLite and pwrite(2)."""
    library = ctypes.CDLL(_sqlite3.__file__)
    library.sqlite3_vfs_find.restype = ctypes.POINTER(_Vfs)
    vfs = library.sqlite3_vfs_find(None)
    setter = ctypes.CFUNCTYPE(ctypes.c_int, _POINTER, ctypes.c_char_p, _POINTER)
    getter = ctypes.CFUNCTYPE(_POINTER, _POINTER, ctypes.c_char_p)
    size, end = ctypes.c_ssize_t, [ctypes.c_int, _POINTER, ctypes.c_size_t]
    for name, kind in (
        (b"pwrite64", ctypes.CFUNCTYPE(size, *end, ctypes.c_int64)),
        (b"pwrite", ctypes.CFUNCTYPE(size, *end, ctypes.c_int64)),
        (b"write", ctypes.CFUNCTYPE(size, *end)),
    ):
        address = getter(vfs.contents.xGetSystemCall)(ctypes.addressof(vfs.contents), name)
        if not address:
            continue  # SQLite was built without it
        callback = kind(_writer(watch, kind(address)))
        _KEPT.append(callback)
        pointer = ctypes.cast(callback, _POINTER)
        setter(vfs.contents.xSetSystemCall)(ctypes.addressof(vfs.contents), name, pointer)


def _writer(watch: Watch, original: Callable[..., int]) -> Callable[..., int]:
    def write(descriptor: int, data: int, count: int, *offset: int) -> int:
        share = watch.wrote()
        if share is not None:
            if part := round(count * share):
                original(descriptor, data, part, *offset)
            watch.die()
        return original(descriptor, data, count, *offset)

    return write


def _watch_files(watch: Watch) -> None:
    """Points around what makes a whole file: its fsync, its new name, the fsync of the folder."""

    def around(function: Callable[..., Any]) -> Callable[..., Any]:
        @functools.wraps(function)
        def called(*arguments: Any, **named: Any) -> Any:
            if watch.due("file", watch.count("file_steps")):
                watch.die()
            result = function(*arguments, **named)
            if watch.due("file", watch.count("file_steps")):
                watch.die()
            return result

        return called

    os.fsync = around(os.fsync)
    os.replace = around(os.replace)


_TABLE = re.compile(r"\b(?:INTO|UPDATE)\s+(\w+)", re.I)


def _watch_units(log: Path) -> None:
    """Write down each unit when it is queued ("S") and when it is acknowledged ("A").

    The line is one write(2), so it is there whenever the process ends.
    """
    from agenteval.store import schema, writer

    descriptor = os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o644)
    keys = {
        name: [c.name for c in table.primary_key.columns]
        for name, table in schema.metadata.tables.items()
    }
    group_writer: Any = writer.GroupWriter
    plain = group_writer.submit

    def say(kind: str, unit: str, rows: Any = None) -> None:
        os.write(descriptor, (json.dumps([kind, unit, rows]) + "\n").encode())

    def submit(self: Any, writes: Any, *more: Any) -> Any:
        unit = f"{os.getpid()}-{watch_number()}"
        rows = [
            [table, told]
            for statement, many in writes
            for table in [_table_of(statement)]
            if table != "experiments"  # one that is open gives way to a larger one
            for row in many
            if (told := _told(row, keys[table]))
        ]
        say("S", unit, rows)
        future = plain(self, writes, *more)
        future.add_done_callback(lambda done: None if done.exception() else say("A", unit))
        return future

    watch_number = functools.partial(next, iter(range(1, 1 << 60)))
    group_writer.submit = submit


def _told(row: Mapping[str, Any], keys: Sequence[str]) -> dict[str, Any]:
    """What tells that a row was written: its primary key, of a verdict on a trial its judge too."""
    if "new_check_key" in row:
        return {**{k: row[f"its_{k}"] for k in keys}, "check_key": row["new_check_key"]}
    return {k: row[k] for k in keys} if all(k in row for k in keys) else {}


def _table_of(statement: Any) -> str:
    table = getattr(statement, "table", None)
    if table is not None:
        return str(table.name)
    found = _TABLE.search(str(statement))
    if found is None:
        raise ValueError(f"no table in {str(statement)[:80]}")
    return found.group(1)


def main() -> None:
    """Set the hooks and run the command."""
    job = json.loads(sys.argv[1])
    kill = None if job["kill"] is None else Kill(**job["kill"])
    install(Watch(Path(job["state"]), kill), Path(job["units"]))
    from agenteval.app.main import main as command

    command(job["argv"])


if __name__ == "__main__":
    main()
