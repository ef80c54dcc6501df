"""Recordings: stored replies used instead of a model.

A recording is a JSON-lines file. Each line holds the reply (`text`, or the whole `reply` object
that `agenteval export --replies` writes) and how to find it: `key`, the hash of the logical
request; or, for replies recorded elsewhere or with other prompts, `run`, `repeat` and `role`. With
`about`, the hashes of what was judged and by which criteria, a reply is used for nothing else, and
`variant` identifies perturbed copies. A line with a key but no reply means that this run made the
same request: the reply is in an earlier line. The first of two replies to a key is used.
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


class _Address(NamedTuple):
    run: str
    variant: str
    repeat: int
    role: str


class ReplayTransport:
    """Answers from a recording. A request that was not recorded is a BadRequest, never a guess.

    `endpoint` holds a hash of the file, so that another recording of the same name, or an edited
    version, does not get cached replies of this one. Raises InputError, naming the line, for a file
    that cannot be read or a truncated last line.
    """

    recorded = True  # a client asks it for requests as they are recorded, without a nonce

    def __init__(self, path: Path, model: str | None = None) -> None:
        self.path = path
        self._name = model or path.name
        self.model = model or f"replay:{path.name}"
        self._by_key: dict[str, Reply] = {}
        self._by_subject: dict[_Address, dict[str, _Line]] = {}
        self._by_address: dict[_Address, Reply | None] = {}  # None: several different replies
        data = read_bytes(path, LINES)
        self.endpoint = f"replay:{hashlib.sha256(data).hexdigest()[:16]}"
        for line in _lines(data, path):
            if line.key is not None:
                self._by_key[line.key] = line.reply
            if not line.is_first:
                continue
            if line.about:
                subjects = self._by_subject.setdefault(line.address, {})
                subjects.setdefault(canonical_json(line.about), line)
            elif line.has_run:
                address = line.address._replace(variant="")
                first = self._by_address.setdefault(address, line.reply)
                if first is None or _content(first) == _content(line.reply):
                    continue
                if line.key is None:
                    cell = (address.run, address.repeat, address.role)
                    raise InputError(f"a second, different reply for {cell!r}", line.where)
                self._by_address[address] = None  # only the hash distinguishes them
        if not self._by_key and not self._by_address and not self._by_subject:
            raise InputError("the recording holds no reply", str(path))

    async def send(self, request: Request) -> Reply:
        """The recorded reply, see `find`."""
        return self.find(request)

    @property
    def copied(self) -> frozenset[tuple[str, str]]:
        """(run, variant) of the perturbed copies that are recorded."""
        return frozenset((a.run, a.variant) for a in self._by_subject if a.variant)

    def find(self, request: Request) -> Reply:
        """Return the recorded reply: by hash, otherwise by run, variant, repeat and role if its
        subject is the same, or, for lines without a subject, by (run, repeat, role) or (run,
        repeat).

        Raises BadRequest when there is no recorded reply.
        """
        reply = self._by_key.get(request.logical_hash())
        address = _Address(request.run_id or "", request.variant, request.repeat, request.role)
        if reply is None and request.attempt == 0:
            if request.about and (subjects := self._by_subject.get(address)):
                return self._about(request, subjects)
            if request.run_id is not None and not request.variant:
                reply = self._by_address.get(address)
                # a repair is never the first reply
                if address not in self._by_address and ":" not in request.role:
                    reply = self._by_address.get(address._replace(role=""))
        if reply is None:
            copy = f" ({request.variant})" if request.variant else ""
            raise BadRequest(
                f"{self._name} holds no reply for run {address.run!r}{copy}, "
                f"repeat {request.repeat}, role {request.role!r}"
            )
        return reply

    def _about(self, request: Request, subjects: dict[str, _Line]) -> Reply:
        about = dict(request.about)
        if line := subjects.get(canonical_json(about)):
            return line.reply
        recorded = next(iter(subjects.values())).about
        other = " and ".join(name for name, value in about.items() if recorded.get(name) != value)
        subject = request.run_id or request.role
        what = f"other {other}" if other else "something else"
        raise BadRequest(f"{self._name}: the reply on {subject!r} is about {what}")

    async def close(self) -> None:
        """Nothing to free."""


def _content(reply: Reply) -> Reply:
    """Return the content of a reply, without its latency."""
    return replace(reply, latency=0.0, attempts=1, usage=Reply("").usage, key="", cached=False)


class _Line(NamedTuple):
    """One line of a recording; `is_first` is False for the reply to a repeated attempt."""

    where: str
    key: str | None
    has_run: bool
    is_first: bool
    reply: Reply
    address: _Address
    about: dict[str, str]


def _lines(data: bytes, path: Path) -> Iterator[_Line]:
    """Return the lines of a recording. Raises InputError, naming the line, if one is invalid."""
    replies: dict[str, Reply] = {}
    # not splitlines: JSON may hold U+2028 and other separators inside a string
    for number, text in enumerate(decoded(data, str(path)).split("\n"), 1):
        if not text.strip():
            continue
        where = f"{path}:{number}"
        entry = _entry(text, where)
        key, run, about = entry.get("key") or None, entry.get("run"), entry.get("about") or {}
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
        address = _Address(
            "" if run is None else str(run),
            entry.get("variant") or "",
            entry.get("repeat", 0),
            entry.get("role") or "",
        )
        yield _Line(where, key, run is not None, not entry.get("attempt"), reply, address, about)


def _entry(text: str, where: str) -> dict[str, Any]:
    """The object of one line, with members of the right types."""
    try:
        entry = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not a recorded reply ({error})", where) from error
    if not isinstance(entry, dict):
        raise InputError("not a recorded reply (not a JSON object)", where)
    for name in ("key", "role", "variant"):
        if not isinstance(entry.get(name), str | None):
            raise InputError(f"`{name}` must be a text", where)
    repeat = entry.get("repeat", 0)
    if isinstance(repeat, bool) or not isinstance(repeat, int):
        raise InputError("`repeat` must be a whole number", where)
    if not isinstance(entry.get("about") or {}, dict):
        raise InputError("`about` must be an object", where)
    if not (entry.get("key") or entry.get("about")) and entry.get("run") is None:
        raise InputError("a recorded reply needs `key`, or `run` with `repeat`", where)
    return entry
