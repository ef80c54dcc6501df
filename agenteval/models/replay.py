"""Recorded replies in the place of a model, and the recorder that writes them.

A recording is a JSON-lines file. Each line holds the reply (`text`, or the whole `reply` object a
recorder writes) and how to find it: `key`, the hash of the logical request, or `run`, `repeat`
and `role` for replies recorded elsewhere.
"""

from __future__ import annotations

import json
import threading
from pathlib import Path
from typing import Any

from agenteval.errors import BadRequest, InputError
from agenteval.models.wire import Reply, Request


class ReplayTransport:
    """Answers from a recording. A request that was not recorded is a BadRequest, never a guess."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.model = f"replay:{path.name}"
        self.endpoint = "replay"
        self._by_key: dict[str, Reply] = {}
        self._by_cell: dict[tuple[str, int, str], Reply] = {}
        self._load()

    def _load(self) -> None:
        try:
            lines = self.path.read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise InputError(f"cannot read the recording ({error})", str(self.path)) from error
        for number, line in enumerate(lines, 1):
            if line.strip():
                self._add(line, f"{self.path}:{number}")
        if not self._by_key and not self._by_cell:
            raise InputError("the recording holds no reply", str(self.path))

    def _add(self, line: str, where: str) -> None:
        try:
            entry = json.loads(line)
            reply = Reply.from_json(entry.get("reply") or entry, key="", cached=False)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise InputError(f"not a recorded reply ({error})", where) from error
        found = False
        if key := entry.get("key"):
            found = _put(self._by_key, str(key), reply, where)
        if entry.get("run") is not None:
            try:
                cell = (str(entry["run"]), int(entry.get("repeat", 0)), str(entry.get("role", "")))
            except (TypeError, ValueError) as error:
                raise InputError(f"`repeat` must be a whole number ({error})", where) from error
            found = _put(self._by_cell, cell, reply, where)
        if not found:
            raise InputError("a recorded reply needs `key`, or `run` with `repeat`", where)

    async def send(self, request: Request) -> Reply:
        """The recorded reply: by hash, else by (run, repeat, role), else by (run, repeat)."""
        run = request.run_id or ""
        reply = self._by_key.get(request.logical_hash())
        if reply is None and request.attempt == 0:
            reply = self._by_cell.get((run, request.repeat, request.role))
            if reply is None and ":" not in request.role:  # a repair is never the first reply
                reply = self._by_cell.get((run, request.repeat, ""))
        if reply is None:
            raise BadRequest(
                f"{self.path.name} holds no reply for run {run!r}, repeat {request.repeat}, "
                f"role {request.role!r}"
            )
        return reply

    async def close(self) -> None:
        """Nothing to free."""


def _put(table: dict[Any, Reply], key: Any, reply: Reply, where: str) -> bool:
    if key in table and table[key] != reply:
        raise InputError(f"a second, different reply for {key!r}", where)
    table[key] = reply
    return True


class FileRecorder:
    """Appends each fresh reply to a recording; one complete line per reply."""

    def __init__(self, path: Path) -> None:
        self._lock = threading.Lock()
        try:
            self._file = path.open("a", encoding="utf-8")
        except OSError as error:
            raise InputError(f"cannot write the recording ({error})", str(path)) from error

    def record(self, request: Request, reply: Reply) -> None:
        """Append one reply with everything that finds it again."""
        entry = {
            "key": request.logical_hash(),
            "run": request.run_id,
            "repeat": request.repeat,
            "role": request.role,
            "reply": reply.to_json(),
        }
        line = json.dumps(entry, ensure_ascii=True, allow_nan=False)
        with self._lock:
            self._file.write(line + "\n")
            self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._file.close()
