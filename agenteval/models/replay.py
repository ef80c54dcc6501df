"""Recorded replies in the place of a model, and the recorder that writes them.

A recording is a JSON-lines file. Each line holds the reply (`text`, or the whole `reply` object a
recorder writes) and how to find it: `key`, the hash of the logical request, or `run`, `repeat`
and `role` for replies recorded elsewhere.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import logging
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

from agenteval.errors import BadRequest, InputError
from agenteval.files import refused
from agenteval.intake import LINES, decoded, read_bytes
from agenteval.models.wire import Reply, Request, one_line

Cell = tuple[str, int, str]  # run, repeat, role

_START = b'{"key": "'  # of a line that FileRecorder writes

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
        try:
            reply = Reply.from_json(entry.get("reply") or entry, key="", cached=False)
        except (ValueError, KeyError, TypeError) as error:
            raise InputError(f"not a recorded reply ({one_line(error)})", where) from error
        key, cell = _text(entry, "key", where), _cell(entry, where)
        if key is None and cell is None:
            raise InputError("a recorded reply needs `key`, or `run` with `repeat`", where)
        if key is not None and _content(self._by_key.setdefault(key, reply)) != _content(reply):
            raise InputError(f"a second, different reply for the request {key!r}", where)
        if cell is not None and not entry.get("attempt"):
            self._add_cell(cell, reply, key is not None, where)

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
    """Appends each fresh reply to a recording; one complete line per reply.

    A request that the file already answers is not recorded again. Raises InputError for a file
    that cannot be appended to, StoreError when the disk is full or fails.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._lock = threading.Lock()
        self._torn: int | None = None  # where a line begins that may be half written
        data = _read(path) if path.exists() else b""
        entries = (_entry(line, f"{path}:{number}") for number, line in _lines(data, path))
        self._known = {entry.get("key") for entry in entries}
        try:
            self._file = path.open("ab", buffering=0)
            self._mend(data)
        except OSError as error:
            raise refused(error, path, "cannot write the recording") from error

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
        """Append one reply with everything that finds it again. Raises StoreError when full."""
        key = request.logical_hash()
        entry = {
            "key": key,
            "run": request.run_id,
            "repeat": request.repeat,
            "attempt": request.attempt,
            "role": request.role,
            "reply": reply.to_json(),
        }
        line = json.dumps(entry, ensure_ascii=True, allow_nan=False).encode() + b"\n"
        with self._lock:
            if key in self._known:
                return
            self._append(line)
            self._known.add(key)

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

    def close(self) -> None:
        """Close the file."""
        self._file.close()
