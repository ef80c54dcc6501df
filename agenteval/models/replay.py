"""Recordings: replies in the place of a model.

A recording is a JSON-lines file. Each line holds the reply (`text`, or the whole `reply` object
that `agenteval export --replies` writes) and how to find it: `key`, the hash of the logical
request; or, for replies recorded elsewhere or to prompts worded otherwise, `run`, `repeat` and
`role`. With `about`, the
hashes of what was judged and by which criteria, such a reply answers for nothing else, and
`variant` tells perturbed copies apart. A line with a key and no reply says that this run, too,
made the request of the key: its reply stands in an earlier line. Of two replies to one key the
first stands.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from agenteval.errors import BadRequest, InputError
from agenteval.files import LINES, decoded, read_bytes
from agenteval.models.wire import Reply, Request, one_line
from agenteval.records import canonical_json

Cell = tuple[str, int, str]  # run, repeat, role
Address = tuple[str, str, int, str]  # run, variant, repeat, role


class ReplayTransport:
    """Answers from a recording. A request that was not recorded is a BadRequest, never a guess.

    `endpoint` holds a hash of the file, so that another recording of the same name, or the same
    one edited, is not answered from the cache of this one. Raises InputError for a file that
    cannot be read, naming the line; so for a last line that broke off.
    """

    recorded = True  # a client asks it for requests as they are recorded, without a nonce

    def __init__(self, path: Path, model: str | None = None) -> None:
        self.path = path
        self._name = model or path.name
        self.model = model or f"replay:{path.name}"
        self._by_key: dict[str, Reply] = {}
        self._by_address: dict[Address, dict[str, tuple[dict[str, str], Reply]]] = {}
        self._by_cell: dict[Cell, Reply | None] = {}  # None: recorded with more than one request
        data = read_bytes(path, LINES)
        self.endpoint = f"replay:{hashlib.sha256(data).hexdigest()[:16]}"
        for line in _lines(data, path):
            if line.key is not None:
                self._by_key[line.key] = line.reply
            if line.about:
                if line.first:
                    at = self._by_address.setdefault(line.address, {})
                    at.setdefault(canonical_json(line.about), (line.about, line.reply))
                continue
            if line.cell is not None and line.first:
                first = self._by_cell.setdefault(line.cell, line.reply)
                if first is None or _content(first) == _content(line.reply):
                    continue
                if line.key is None:
                    raise InputError(f"a second, different reply for {line.cell!r}", line.where)
                self._by_cell[line.cell] = None  # the hash alone tells them apart
        if not self._by_key and not self._by_cell and not self._by_address:
            raise InputError("the recording holds no reply", str(path))

    async def send(self, request: Request) -> Reply:
        """The recorded reply, see `find`."""
        return self.find(request)

    @property
    def copied(self) -> frozenset[tuple[str, str]]:
        """(run, variant) of the perturbed copies that are recorded."""
        return frozenset((run, variant) for run, variant, _, _ in self._by_address if variant)

    def find(self, request: Request) -> Reply:
        """Return the recorded reply: by hash, otherwise by run, variant, repeat and role if its
        subject is the same, or, for lines without a subject, by (run, repeat, role) or (run,
        repeat).

        Raises BadRequest when there is no recorded reply.
        """
        reply = self._by_key.get(request.logical_hash())
        if reply is None and request.attempt == 0 and request.about:
            address = request.run_id or "", request.variant, request.repeat, request.role
            recorded = self._by_address.get(address, {})
            if recorded:
                about = dict(request.about)
                _, reply = recorded.get(canonical_json(about), (None, None))
                if reply is None:
                    (recorded_about, _), *_ = recorded.values()
                    other = [n for n, value in about.items() if recorded_about.get(n) != value]
                    raise BadRequest(
                        f"{self._name}: the reply on {request.run_id or request.role!r} is about "
                        f"{'other ' + ' and '.join(other) if other else 'something else'}"
                    )
        legacy = request.attempt == 0 and not request.variant
        if reply is None and legacy and request.run_id is not None:
            cell = (request.run_id, request.repeat, request.role)
            reply = self._by_cell.get(cell)
            # a repair is never the first reply
            if reply is None and cell not in self._by_cell and ":" not in request.role:
                reply = self._by_cell.get((request.run_id, request.repeat, ""))
        if reply is None:
            copy = f" ({request.variant})" if request.variant else ""
            raise BadRequest(
                f"{self._name} holds no reply for run {request.run_id or ''!r}{copy}, "
                f"repeat {request.repeat}, role {request.role!r}"
            )
        return reply

    async def close(self) -> None:
        """Nothing to free."""


def _content(reply: Reply) -> Reply:
    """Return the content of a reply, without its latency."""
    return replace(reply, latency=0.0, attempts=1, usage=Reply("").usage, key="", cached=False)


class _Line(NamedTuple):
    """One line of a recording; `first` is False for the reply to a repeated attempt."""

    where: str
    key: str | None
    cell: Cell | None
    first: bool
    reply: Reply
    address: Address
    about: dict[str, str]


def _lines(data: bytes, path: Path) -> Iterator[_Line]:
    """The lines of a recording. Raises InputError, naming the line, for what is none."""
    replies: dict[str, Reply] = {}
    # not splitlines: JSON may hold U+2028 and other separators inside a string
    for number, text in enumerate(decoded(data, str(path)).split("\n"), 1):
        if not text.strip():
            continue
        where = f"{path}:{number}"
        try:
            entry = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(f"not a recorded reply ({error})", where) from error
        if not isinstance(entry, dict):
            raise InputError("not a recorded reply (no JSON object)", where)
        key, cell = _text(entry, "key", where), _cell(entry, where)
        if key is None and cell is None and not entry.get("about"):
            raise InputError("a recorded reply needs `key`, or `run` with `repeat`", where)
        if key is not None and not entry.keys() & {"reply", "text"}:
            if key not in replies:
                raise InputError(f"no reply, and none before it for the request {key!r}", where)
            reply = replies[key]
        else:
            try:
                reply = Reply.from_json(entry.get("reply") or entry, key="", cached=False)
            except (ValueError, KeyError, TypeError) as error:
                raise InputError(f"not a recorded reply ({one_line(error)})", where) from error
            reply = reply if key is None else replies.setdefault(key, reply)
        about = entry.get("about") or {}
        if not isinstance(about, dict):
            raise InputError("`about` must be an object", where)
        run, repeat, role = cell or ("", entry.get("repeat", 0), entry.get("role") or "")
        address = run, _text(entry, "variant", where) or "", repeat, role
        yield _Line(where, key, cell, not entry.get("attempt"), reply, address, about)


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
