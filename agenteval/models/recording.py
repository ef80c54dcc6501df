"""A file that replies are recorded into: one process at a time, one state for its recorders."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import io
import json
import os
import threading
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

from agenteval.errors import AgentevalError, InputError, StoreError
from agenteval.files import is_database, refused
from agenteval.models.recorded import cell_of, entry_of, is_json, numbered, read, text_of
from agenteval.models.recording_lock import hold
from agenteval.models.wire import Reply, Request

SYNC_SECONDS = 1.0  # a recorded line is on the disk so long after it was written, or sooner
_START = b'{"key": "'  # of a line that is written here
_NO_DISK = (errno.EINVAL, errno.ENOTSUP)  # a pipe or a device: nothing to sync

_Mark = tuple[int, int, int]  # process, device, inode: a fork inherits recordings it does not own

_Known = tuple[str | None, str | None, str]  # key, run, role

_gate = threading.Lock()  # one is opened or closed at a time
_recordings: weakref.WeakValueDictionary[_Mark, Recording] = weakref.WeakValueDictionary()


def open_recording(path: Path, user: object) -> Recording:
    """The recording of this file, open in this process already or opened now, for one more user.

    Raises InputError for a file that cannot be appended to or that another process records into,
    StoreError when the disk is full or fails.
    """
    with _gate:
        try:
            if is_database(path):
                raise InputError("this is a database; name another file to record into", str(path))
            if path.exists() and not path.is_file():
                read(path)  # raises: it is a folder, a pipe or a device
            path.parent.mkdir(parents=True, exist_ok=True)
            file = path.open("ab", buffering=0)
        except OSError as error:
            raise refused(error, path, "cannot write the recording") from error
        about = os.fstat(file.fileno())
        mark = (os.getpid(), about.st_dev, about.st_ino)
        shared = _recordings.get(mark)
        if shared is not None and not shared.file.closed:
            file.close()
            shared.load()
            shared.join(user)
            return shared
        with contextlib.ExitStack() as undo:
            undo.callback(file.close)
            # before it is read: half a line of another process must not be taken for a torn one
            give_back = hold(file, path)
            undo.callback(give_back)
            shared = Recording(path, file, give_back)
            shared.load()
            undo.pop_all()
        _recordings[mark] = shared
        shared.join(user)
        return shared


class Recording:
    """One file that is recorded into, for all recorders of this process that write to it."""

    def __init__(self, path: Path, file: io.FileIO, give_back: Callable[[], None]) -> None:
        self._path = path  # as it was named, for messages
        self.place = Path(os.path.abspath(path))  # the process may change its folder
        self.file = file
        self._give_back = give_back
        self._users: weakref.WeakSet[object] = weakref.WeakSet()
        self._lock = threading.Lock()
        self._torn: int | None = None  # where a line begins that may be half written
        self._keys: set[str | None] = set()
        self._known: set[_Known] = set()
        self._failed: AgentevalError | None = None
        self._unsynced = False
        self._new: bool | None = None  # whether its name has to reach the disk as well
        self._turning: asyncio.AbstractEventLoop | None = None  # where a sync is due

    def load(self) -> None:
        """Read what the file says now, and end or take out a last line that broke off.

        Raises InputError for what is no recording; what was known before is known still, then.
        """
        with self._lock:
            data = read(self.place)
            keys: set[str | None] = set()
            known: set[_Known] = set()
            for number, line in numbered(data, self._path):
                where = f"{self._path}:{number}"
                mark = _mark_of(entry_of(line, where), keys, where)
                keys.add(mark[0])
                known.add(mark)
            if self._new is None:
                self._new = not data
            try:
                self._mend(data)
            except OSError as error:
                raise refused(error, self._path, "cannot write the recording") from error
            self._keys, self._known, self._torn = keys, known, None

    def join(self, user: object) -> None:
        """Note one more user; the file is closed when the last has left."""
        self._users.add(user)

    def leave(self, user: object) -> None:
        """Sync, and close the file when nobody else writes to it. Raises StoreError as `sync`."""
        try:
            self.sync()
        finally:
            with _gate, self._lock:
                self._users.discard(user)
                if not self._users:
                    self.file.close()
                    self._give_back()

    def _mend(self, data: bytes) -> None:
        """End the last line, or take it out when it is one of ours that broke off."""
        tail = data[data.rfind(b"\n") + 1 :]
        if not tail:
            return
        if is_json(tail.decode("utf-8", "replace")):
            self.file.write(b"\n")
        elif tail.startswith(_START) or _START.startswith(tail):
            self.file.truncate(len(data) - len(tail))
        else:
            raise InputError("its last line is no recorded reply", str(self._path))

    def record(self, request: Request, reply: Reply) -> None:
        """Append one reply with everything that finds it again.

        Raises StoreError when the disk is full, when an earlier line could not be synced, and when
        the file has lost its name.
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
            self._refuse_nameless()
            if mark in self._known or (run is None and key in self._keys):
                return
            self.refuse_failed()
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
            self._torn = self.file.seek(0, 2)
            while line:
                line = line[self.file.write(line) :]
            self._torn = None
        except OSError as error:
            with contextlib.suppress(OSError):  # the next line, or the next session, tries again
                self._untear()
            raise refused(error, self._path, "cannot write the recording") from error

    def _untear(self) -> None:
        """Take out what was half written, so that nothing is appended behind it."""
        if self._torn is not None:
            self.file.truncate(self._torn)
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
        """Put every line on the disk. Raises StoreError when that fails, now or before, and when
        the file has lost its name."""
        with self._lock:
            self.refuse_failed()
            if self.file.closed:
                return
            self._refuse_nameless()
            if not self._unsynced:
                return
            try:
                os.fsync(self.file.fileno())
                if self._new:
                    _sync_folder(self.place)
            except OSError as error:
                if error.errno not in _NO_DISK:
                    self._failed = refused(error, self._path, "cannot write the recording")
                    raise self._failed from error
            self._new = self._unsynced = False

    def refuse_failed(self) -> None:
        """Raises what kept lines from the disk once: nobody knows which of them are there."""
        if self._failed is not None:
            raise self._failed

    def _refuse_nameless(self) -> None:
        """Raises StoreError where nobody would find the lines; a file without any has none."""
        if not self._keys:
            return
        ours = os.fstat(self.file.fileno())
        try:
            named = os.stat(self.place)  # links followed, as when it was opened
        except OSError:
            named = None
        if named is None or (named.st_dev, named.st_ino) != (ours.st_dev, ours.st_ino):
            raise StoreError(
                f"{self._path}: was removed, renamed or replaced while it was recorded into; "
                "nothing more is recorded (what was recorded before went with that file)"
            )


def _mark_of(entry: dict[str, Any], before: set[str | None], where: str) -> _Known:
    key, cell = text_of(entry, "key", where), cell_of(entry, where)
    if not entry.keys() & {"reply", "text"} and key not in before:
        # what refers to it later could not be replayed either, and would have been paid for
        raise InputError(f"no reply, and none before it for the request {key!r}", where)
    return key, cell[0] if cell else None, cell[2] if cell else ""


def is_recorded(line: bytes) -> bool:
    """Whether a recorder may have written this first line of a file, whole or broken off."""
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
