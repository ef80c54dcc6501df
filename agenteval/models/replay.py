"""Recorded replies in the place of a model, and the recorder that writes them.

A recording is a JSON-lines file. Each line holds the reply (`text`, or the whole `reply` object a
recorder writes) and how to find it: `key`, the hash of the logical request, or `run`, `repeat`
and `role` for replies recorded elsewhere. A line with a key and no reply says that this run, too,
made the request of the key: its reply stands in an earlier line.
"""

from __future__ import annotations

import hashlib
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from agenteval.errors import BadRequest, InputError
from agenteval.models.recorded import Cell, cell_of, entry_of, numbered, read, text_of
from agenteval.models.recording import open_recording
from agenteval.models.wire import Reply, Request, one_line


class ReplayTransport:
    """Answers from a recording. A request that was not recorded is a BadRequest, never a guess.

    `endpoint` holds a hash of the file, so that another recording of the same name, or the same
    one edited, is not answered from the cache of this one. Raises InputError for a file that
    cannot be read; a last line that broke off is dropped with a warning.
    """

    recorded = True  # a client asks it for requests as they are recorded, without a nonce

    def __init__(self, path: Path) -> None:
        self.path = path
        self.model = f"replay:{path.name}"
        self._by_key: dict[str, Reply] = {}
        self._by_cell: dict[Cell, Reply | None] = {}  # None: recorded with more than one request
        data = read(path)
        self.endpoint = f"replay:{hashlib.sha256(data).hexdigest()[:16]}"
        for number, line in numbered(data, path):
            self._add(line, f"{path}:{number}")
        if not self._by_key and not self._by_cell:
            raise InputError("the recording holds no reply", str(path))

    def _add(self, line: str, where: str) -> None:
        entry = entry_of(line, where)
        key, cell = text_of(entry, "key", where), cell_of(entry, where)
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
    file; while one is open, another process cannot record into it. One that was closed joins again
    when it records. Raises InputError for a file that cannot be appended to or is being recorded
    into elsewhere, StoreError when the disk is full or fails.

    What is promised: a line has left the process when `record` returns, so the death of the process
    takes none. It survives a power cut, as far as the disk keeps what it was told to (fsync; a new
    file's name only in a folder that may be read), after `sync` and `close`, and while an event
    loop runs SYNC_SECONDS after it was written, all lines of that time together. The store may
    commit a score sooner. When a sync fails, nobody knows which lines are on the disk: this call,
    or the next one, raises, and so does every later one. A file that was removed, renamed or
    replaced while it is open takes nothing more: each call raises StoreError until it has its name
    back, or until `close` has said so.
    """

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()  # one thread may close what another records into
        self._recording = open_recording(path, self)
        self._left = False

    def record(self, request: Request, reply: Reply) -> None:
        """Append one reply with everything that finds it again; joins again after `close`.

        Raises StoreError when the disk is full, when an earlier line could not be synced or the
        file has lost its name; InputError when it is closed and cannot be joined again.
        """
        with self._lock:
            if self._left:
                self._recording.refuse_failed()
                self._recording = open_recording(self._recording.place, self)
                self._left = False
            self._recording.record(request, reply)

    def sync(self) -> None:
        """Put every line on the disk. Raises StoreError when that fails, now or before, and when
        the file has lost its name."""
        self._recording.sync()

    def close(self) -> None:
        """Sync, and close the file if no other recorder of this process writes to it.

        Raises StoreError as `sync`; it is closed all the same.
        """
        with self._lock:
            self._left = True
            self._recording.leave(self)
