"""Recordings: replies in the place of a model, and the recorder that writes them.

A recording is a JSON-lines file. Each line holds the reply (`text`, or the whole `reply` object a
recorder writes) and how to find it: `key`, the hash of the logical request, or `run`, `repeat`
and `role` for replies recorded elsewhere. A line with a key and no reply says that this run, too,
made the request of the key: its reply stands in an earlier line.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import threading
import weakref
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, NoReturn

from agenteval.errors import AgentevalError, BadRequest, InputError
from agenteval.files import LINES, decoded, is_database, read_bytes, refused
from agenteval.models.wire import Reply, Request, one_line

_NO_DISK = (errno.EINVAL, errno.ENOTSUP)  # of a file system that syncs nothing

Cell = tuple[str, int, str]  # run, repeat, role
Mark = tuple[str | None, str | None, str]  # key, run, role


class ReplayTransport:
    """Answers from a recording. A request that was not recorded is a BadRequest, never a guess.

    `endpoint` holds a hash of the file, so that another recording of the same name, or the same
    one edited, is not answered from the cache of this one. Raises InputError for a file that
    cannot be read, naming the line; so for a last line that broke off.
    """

    recorded = True  # a client asks it for requests as they are recorded, without a nonce

    def __init__(self, path: Path) -> None:
        self.path = path
        self.model = f"replay:{path.name}"
        self._by_key: dict[str, Reply] = {}
        self._by_cell: dict[Cell, Reply | None] = {}  # None: recorded with more than one request
        data = read_bytes(path, LINES)
        self.endpoint = f"replay:{hashlib.sha256(data).hexdigest()[:16]}"
        for number, line in _numbered(data, path):
            self._add(line, f"{path}:{number}")
        if not self._by_key and not self._by_cell:
            raise InputError("the recording holds no reply", str(path))

    def _add(self, line: str, where: str) -> None:
        entry = _entry_of(line, where)
        key, cell = _text_of(entry, "key", where), _cell_of(entry, where)
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


def _content(reply: Reply) -> Reply:
    """What the model said; how long it took is no difference."""
    return replace(reply, latency=0.0, attempts=1, usage=Reply("").usage, key="", cached=False)


class FileRecorder:
    """Appends replies to a recording, one complete line per request and run.

    The first reply to a request stands; a request with the same text of another run (or role) gets
    a line that names the run and refers to it, so that both are found, by text and by run. What
    the file already says is not written again. Recorders of one process share what they know of a
    file; other processes should not record into it meanwhile. Raises InputError for a file that
    cannot be appended to or is no recording, StoreError when the disk is full or fails.

    What is promised: a line has left the process when `record` returns, so the death of the process
    takes none. After `close` it survives a power cut, as far as the disk keeps what it was told to;
    the store may commit a score sooner. When a line cannot be written or synced, nobody knows what
    is on the disk: every later call raises as well.
    """

    def __init__(self, path: Path) -> None:
        self._path = path  # as it was named, for messages
        self._place = Path(os.path.realpath(path))  # the process may change its folder
        with _gate:
            self._file = _files.setdefault(self._place, _File())
        with self._file.lock:
            try:
                if is_database(path):
                    told = "this is a database; name another file to record into"
                    raise InputError(told, str(path))
                path.parent.mkdir(parents=True, exist_ok=True)
                marks = recorded(path) if path.exists() else set()
                path.open("ab").close()
            except OSError as error:
                raise refused(error, path, "cannot write the recording") from error
            self._file.marks = marks
            self._file.keys = {key for key, _, _ in marks}

    def record(self, request: Request, reply: Reply) -> None:
        """Append one reply with everything that finds it again; also after `close`.

        Raises StoreError when the disk is full or an earlier line could not be written or synced.
        """
        key, run, file = request.logical_hash(), request.run_id, self._file
        entry: dict[str, Any] = {
            "key": key,
            "run": run,
            "repeat": request.repeat,
            "attempt": request.attempt,
            "role": request.role,
        }
        mark = (key, run, request.role if run is not None else "")
        with file.lock:
            if mark in file.marks or (run is None and key in file.keys):
                return
            if file.failed is not None:
                raise file.failed
            if key not in file.keys:
                entry["reply"] = reply.to_json()
            line = json.dumps(entry, ensure_ascii=True, allow_nan=False).encode() + b"\n"
            whole: int | None = None
            try:
                with self._place.open("ab", buffering=0) as stream:
                    whole = stream.tell()
                    while line:
                        line = line[stream.write(line) :]
            except OSError as error:
                if whole is not None:
                    with contextlib.suppress(OSError):  # then whoever reads it names the line
                        os.truncate(self._place, whole)
                self._fail(error)
            file.keys.add(key)
            file.marks.add(mark)
            file.unsynced = True

    def close(self) -> None:
        """Put every line on the disk. Raises StoreError when that fails, now or before."""
        with self._file.lock:
            if self._file.failed is not None:
                raise self._file.failed
            if not self._file.unsynced:
                return
            try:
                with self._place.open("rb") as stream:
                    os.fsync(stream.fileno())
            except OSError as error:
                if error.errno not in _NO_DISK:
                    self._fail(error)
            self._file.unsynced = False

    def _fail(self, error: OSError) -> NoReturn:
        self._file.failed = refused(error, self._path, "cannot write the recording")
        raise self._file.failed from error


@dataclass(eq=False)
class _File:
    """What the recorders of this process know of one file."""

    marks: set[Mark] = field(default_factory=set)
    keys: set[str | None] = field(default_factory=set)
    failed: AgentevalError | None = None
    unsynced: bool = False
    lock: threading.Lock = field(default_factory=threading.Lock)


_gate = threading.Lock()
_files: weakref.WeakValueDictionary[Path, _File] = weakref.WeakValueDictionary()  # by real path


# ---- lines of a recording ------------------------------------------------------------------------


def recorded(path: Path) -> set[Mark]:
    """Which requests of which runs a recorder has written to the file; none where it is empty.

    Raises InputError, naming the line, for what no recorder wrote and for a line that broke off.
    """
    data = read_bytes(path, LINES)
    if data and not _begins_a_recording(data):
        raise InputError("it is no recording; name a new file, or one of --record", str(path))
    if data and not data.endswith(b"\n"):
        where = f"{path}:{data.count(10) + 1}"
        raise InputError("the last line broke off; delete it to record on", where)
    keys: set[str | None] = set()
    marks: set[Mark] = set()
    for number, line in _numbered(data, path):
        where = f"{path}:{number}"
        entry = _entry_of(line, where)
        key, cell = _text_of(entry, "key", where), _cell_of(entry, where)
        if not entry.keys() & {"reply", "text"} and key not in keys:
            # what refers to it later could not be replayed either, and would have been paid for
            raise InputError(f"no reply, and none before it for the request {key!r}", where)
        keys.add(key)
        marks.add((key, cell[0] if cell else None, cell[2] if cell else ""))
    return marks


def _begins_a_recording(data: bytes) -> bool:
    try:
        entry = json.loads(data.partition(b"\n")[0])
    except (ValueError, RecursionError):
        return False
    return isinstance(entry, dict) and {"key", "role", "reply"} <= entry.keys()


def _numbered(data: bytes, path: Path) -> list[tuple[int, str]]:
    """Numbered lines that are not empty."""
    # not splitlines: JSON may hold U+2028 and other separators inside a string
    lines = decoded(data, str(path)).split("\n")
    return [(n, line) for n, line in enumerate(lines, 1) if line.strip()]


def _entry_of(line: str, where: str) -> dict[str, Any]:
    try:
        entry = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not a recorded reply ({error})", where) from error
    if not isinstance(entry, dict):
        raise InputError("not a recorded reply (no JSON object)", where)
    return entry


def _text_of(entry: dict[str, Any], name: str, where: str) -> str | None:
    value = entry.get(name)
    if value is not None and not isinstance(value, str):
        raise InputError(f"`{name}` must be a text", where)
    return value or None


def _cell_of(entry: dict[str, Any], where: str) -> Cell | None:
    run, repeat, role = entry.get("run"), entry.get("repeat", 0), _text_of(entry, "role", where)
    if run is None:
        return None
    if isinstance(repeat, bool) or not isinstance(repeat, int):
        raise InputError("`repeat` must be a whole number", where)
    return str(run), repeat, role or ""
