"""Recorded replies in the place of a model, and the recorder that writes them.

A recording is a JSON-lines file. Each line holds the reply (`text`, or the whole `reply` object a
recorder writes) and how to find it: `key`, the hash of the logical request, or `run`, `repeat`
and `role` for replies recorded elsewhere. A line with a key and no reply says that this run, too,
made the request of the key: its reply stands in an earlier line.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hashlib
import json
import logging
import os
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from agenteval.errors import AgentevalError, BadRequest, InputError
from agenteval.files import refused
from agenteval.intake import LINES, decoded, read_bytes
from agenteval.models.wire import Reply, Request, one_line

Cell = tuple[str, int, str]  # run, repeat, role

SYNC_SECONDS = 1.0  # a recorded line is on the disk so long after it was written, or sooner
_START = b'{"key": "'  # of a line that FileRecorder writes
_NO_DISK = (errno.EINVAL, errno.ENOTSUP)  # a pipe or a device: nothing to sync

_log = logging.getLogger(__name__)


class ReplayTransport:
    """Answers from a recording. A request that was not recorded is a BadRequest, never a guess.

    `endpoint` holds a hash of the file, so that another recording of the same name, or the same
    one edited, is not answered from the cache of this one. Raises InputError for a file that
    cannot be read; a last line that broke off is dropped with a warning.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.model = f"replay:{path.name}"
        self._by_key: dict[str, Reply] = {}
        self._by_cell: dict[Cell, Reply | None] = {}  # None: recorded with more than one request
        data = _read(path)
        self.endpoint = f"replay:{hashlib.sha256(data).hexdigest()[:16]}"
        for number, line in _lines(data, path):
            self._add(line, f"{path}:{number}")
        if not self._by_key and not self._by_cell:
            raise InputError("the recording holds no reply", str(path))

    def _add(self, line: str, where: str) -> None:
        entry = _entry(line, where)
        key, cell = _text(entry, "key", where), _cell(entry, where)
        if key is None and cell is None:
            raise InputError("a recorded reply needs `key`, or `run` with `repeat`", where)
        reply = self._reply(entry, key, where)
        if key is not None and _content(self._by_key.setdefault(key, reply)) != _content(reply):
            raise InputError(f"a second, different reply for the request {key!r}", where)
        if cell is not None and not entry.get("attempt"):
            self._add_cell(cell, reply, key is not None, where)

    def _reply(self, entry: dict[str, Any], key: str | None, where: str) -> Reply:
        if not entry.keys() & {"reply", "text"} and key is not None:
            if key not in self._by_key:
                raise InputError(f"no reply, and none before it for the request {key!r}", where)
            return self._by_key[key]
        try:
            return Reply.from_json(entry.get("reply") or entry, key="", cached=False)
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"not a recorded reply ({one_line(error)})", where) from error

    def _add_cell(self, cell: Cell, reply: Reply, has_key: bool, where: str) -> None:
        known = self._by_cell.setdefault(cell, reply)
        if known is None or _content(known) == _content(reply):
            return
        if not has_key:
            raise InputError(f"a second, different reply for {cell!r}", where)
        self._by_cell[cell] = None  # several requests of one cell: the hash alone tells them apart

    async def send(self, request: Request) -> Reply:
        """The recorded reply: by hash, else by (run, repeat, role), else by (run, repeat)."""
        reply = self._by_key.get(request.logical_hash())
        if reply is None and request.attempt == 0 and request.run_id is not None:
            cell = (request.run_id, request.repeat, request.role)
            reply = self._by_cell.get(cell)
            # a repair is never the first reply
            if reply is None and cell not in self._by_cell and ":" not in request.role:
                reply = self._by_cell.get((request.run_id, request.repeat, ""))
        if reply is None:
            raise BadRequest(
                f"{self.path.name} holds no reply for run {request.run_id or ''!r}, "
                f"repeat {request.repeat}, role {request.role!r}"
            )
        return reply

    async def close(self) -> None:
        """Nothing to free."""


def _read(path: Path) -> bytes:
    return read_bytes(path, LINES)


def _lines(data: bytes, path: Path) -> list[tuple[int, str]]:
    """Numbered lines that are not empty, without a last one that broke off."""
    tail = data[data.rfind(b"\n") + 1 :]
    if tail.strip() and not _is_json(tail.decode("utf-8-sig", "replace")):
        # as bytes: a line that broke off may end within a character
        number = data.count(b"\n") + 1
        _log.warning("%s:%d: the last line broke off and is left out", path, number)
        if len(tail) == len(data):
            decoded(data, str(path))  # another encoding is named as that
        data = data[: len(data) - len(tail)]
    text = decoded(data, str(path))
    # not splitlines: JSON may hold U+2028 and other separators inside a string
    return [(n, line) for n, line in enumerate(text.split("\n"), 1) if line.strip()]


def _is_json(line: str) -> bool:
    try:
        json.loads(line)
    except (ValueError, RecursionError):
        return False
    return True


def _entry(line: str, where: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not a recorded reply ({error})", where) from error
    if not isinstance(entry, dict):
        raise InputError("not a recorded reply (no JSON object)", where)
    return entry


def _text(entry: dict[str, Any], name: str, where: str) -> str | None:
    value = entry.get(name)
    if value is not None and not isinstance(value, str):
        raise InputError(f"`{name}` must be a text", where)
    return value or None


def _cell(entry: dict[str, Any], where: str) -> Cell | None:
    run, repeat, role = entry.get("run"), entry.get("repeat", 0), _text(entry, "role", where)
    if run is None:
        return None
    if isinstance(repeat, bool) or not isinstance(repeat, int):
        raise InputError("`repeat` must be a whole number", where)
    return str(run), repeat, role or ""


def _content(reply: Reply) -> Reply:
    """What the model said; how long it took is no difference."""
    return replace(reply, latency=0.0, attempts=1, usage=Reply("").usage, key="", cached=False)


class FileRecorder:
    """Appends replies to a recording, one complete line per request and run.

    The first reply to a request stands; a request with the same text of another run (or role) gets
    a line that names the run and refers to it, so that both are found, by text and by run. What
    the file already says is not written again. Raises InputError for a file that cannot be
    appended to, StoreError when the disk is full or fails.

    What is promised: a line has left the process when `record` returns, so the death of the process
    takes none. It survives a power cut, as far as the disk keeps what it was told to (fsync; a new
    file's name only in a folder that may be read), after `sync` and `close`, and while an event
    loop runs SYNC_SECONDS after it was written, all lines of that time together. The store may
    commit a score sooner. When a sync fails, nobody knows which lines are on the disk: this call,
    or the next one, raises, and so does every later one.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._torn: int | None = None  # where a line begins that may be half written
        data = _read(path) if path.exists() else b""
        self._keys: set[str | None] = set()
        self._known: set[tuple[str | None, str | None, str]] = set()  # key, run, role
        for number, line in _lines(data, path):
            self._know(_entry(line, where := f"{path}:{number}"), where)
        self._failed: AgentevalError | None = None
        self._unsynced = False
        self._new = not path.exists()  # its name has to reach the disk as well
        self._turning: asyncio.AbstractEventLoop | None = None  # where a sync is due
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            self._file = path.open("ab", buffering=0)
            self._mend(data)
        except OSError as error:
            raise refused(error, path, "cannot write the recording") from error

    def _know(self, entry: dict[str, Any], where: str) -> None:
        key, cell = _text(entry, "key", where), _cell(entry, where)
        if not entry.keys() & {"reply", "text"} and key not in self._keys:
            # what refers to it later could not be replayed either, and would have been paid for
            raise InputError(f"no reply, and none before it for the request {key!r}", where)
        self._keys.add(key)
        self._known.add((key, cell[0] if cell else None, cell[2] if cell else ""))

    def _mend(self, data: bytes) -> None:
        """End the last line, or take it out when it is one of ours that broke off."""
        tail = data[data.rfind(b"\n") + 1 :]
        if not tail:
            return
        if _is_json(tail.decode("utf-8", "replace")):
            self._file.write(b"\n")
        elif tail.startswith(_START) or _START.startswith(tail):
            self._file.truncate(len(data) - len(tail))
        else:
            self._file.close()
            raise InputError("its last line is no recorded reply", str(self._path))

    def record(self, request: Request, reply: Reply) -> None:
        """Append one reply with everything that finds it again.

        Raises StoreError when the disk is full, or when an earlier line could not be synced.
        """
        key, run = request.logical_hash(), request.run_id
        entry: dict[str, Any] = {
            "key": key,
            "run": run,
            "repeat": request.repeat,
            "attempt": request.attempt,
            "role": request.role,
        }
        mark = (key, run, request.role if run is not None else "")
        with self._lock:
            if mark in self._known or (run is None and key in self._keys):
                return
            if self._failed is not None:
                raise self._failed
            if key not in self._keys:
                entry["reply"] = reply.to_json()
            self._append(json.dumps(entry, ensure_ascii=True, allow_nan=False).encode() + b"\n")
            self._keys.add(key)
            self._known.add(mark)
            self._unsynced = True
        self._sync_soon()

    def _append(self, line: bytes) -> None:
        try:
            self._untear()
            self._torn = self._file.seek(0, 2)
            while line:
                line = line[self._file.write(line) :]
            self._torn = None
        except OSError as error:
            with contextlib.suppress(OSError):  # the next line, or the next session, tries again
                self._untear()
            raise refused(error, self._path, "cannot write the recording") from error

    def _untear(self) -> None:
        """Take out what was half written, so that nothing is appended behind it."""
        if self._torn is not None:
            self._file.truncate(self._torn)
            self._torn = None

    def _sync_soon(self) -> None:
        """One sync for all lines of a while, also when no further line comes."""
        try:
            loop = asyncio.get_running_loop()
        except RuntimeError:
            return  # left to `sync` and `close`
        if self._turning is not loop:  # of a loop that has ended nothing is due any more
            self._turning = loop
            loop.call_later(SYNC_SECONDS, self._sync_now)

    def _sync_now(self) -> None:
        self._turning = None
        with contextlib.suppress(AgentevalError):  # kept: the next line, or `close`, raises it
            self.sync()

    def sync(self) -> None:
        """Put every line on the disk. Raises StoreError when that fails, now or before."""
        with self._lock:
            if self._failed is not None:
                raise self._failed
            if not self._unsynced or self._file.closed:
                return
            try:
                os.fsync(self._file.fileno())
                if self._new:
                    _sync_folder(self._path)
            except OSError as error:
                if error.errno not in _NO_DISK:
                    self._failed = refused(error, self._path, "cannot write the recording")
                    raise self._failed from error
            self._new = self._unsynced = False

    def close(self) -> None:
        """Sync and close the file. Raises StoreError when the sync fails, now or before."""
        try:
            self.sync()
        finally:
            self._file.close()


def is_recorded(line: bytes) -> bool:
    """Whether FileRecorder may have written this first line of a file, whole or broken off."""
    if not line.endswith(b"\n") and (line.startswith(_START) or _START.startswith(line)):
        return True
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(entry, dict) and {"key", "role", "reply"} <= entry.keys()


def _sync_folder(path: Path) -> None:
    try:
        descriptor = os.open(path.resolve().parent, os.O_RDONLY)
    except PermissionError:  # it may be written to and not read: its name is left to the system
        return
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
