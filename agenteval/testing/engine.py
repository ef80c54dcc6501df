"""Requests in, replies out, counted; no I/O.

A request's *identity* is a hash of its path and body (without `user` and `metadata`, and without
what `ignore` matches), or what `key` returns. The default answer depends on identity and seed
alone, so two runs can be compared byte by byte. A prompt with a nonce needs `key` or `ignore`:
`ignore=[r"[0-9a-f]{24}"]` removes the nonces of agenteval's data blocks.
"""

from __future__ import annotations

import copy
import hashlib
import json
import re
import time
from collections import Counter, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any, NamedTuple

from agenteval.errors import InputError
from agenteval.testing.answers import (
    Picks,
    completion,
    decision,
    default_message,
    embeddings,
    is_int,
    text_of,
)
from agenteval.testing.faults import Asked, Fault, Latency, Rule, compiled, draw
from agenteval.testing.wire import Body, Refused, Wire, error_body, http_bytes, json_bytes


class Default(Enum):
    """Returned by an answer callable to send the default answer."""

    DEFAULT = "default"


DEFAULT = Default.DEFAULT
Answer = Callable[[Body, int], "str | Body | Fault | Default"]
MAX_IDENTITIES = 1_000_000
VOLATILE = ("user", "metadata")
_NO_LATENCY = Latency()
_SORTED = json.JSONEncoder(sort_keys=True, separators=(",", ":"))


@dataclass(frozen=True)
class Settings:
    """Everything that decides a reply.

    answer: `(body, n) -> str | dict | Fault | DEFAULT`, n counts earlier requests of the same
    identity; a dict is the message, or with `choices` (of a decision `answers`) the whole response,
    and a message's `probabilities` are those of its first token (logprobs). It runs in the server's
    thread and must not block; if it raises, the client gets 400 and `serve` raises it at the end.
    faults: the first that strikes wins. latency: seconds or a Latency. ceiling: requests in flight
    above this number get 429 at once, with `ceiling_retry_after` as Retry-After.
    key: the identity of a chat request; ignore: patterns taken out of the body's JSON first.
    record: how many of the last requests are kept. Raises InputError for values out of bounds.
    """

    answer: Answer | None = None
    faults: tuple[Rule, ...] = ()
    latency: Latency = field(default_factory=Latency)
    seed: int = 0
    ceiling: int | None = None
    ceiling_retry_after: str | None = None
    key: Callable[[Body], str] | None = None
    ignore: Sequence[str] = ()
    record: int = 4096
    models: tuple[str, ...] = ("test-model", "test-embedding")
    dimensions: int = 384

    def __post_init__(self) -> None:
        if not (is_int(self.seed) and is_int(self.record) and self.record >= 0):
            raise InputError("seed and record must be integers, record not below 0")
        if self.ceiling is not None and not (is_int(self.ceiling) and self.ceiling > 0):
            raise InputError("ceiling must be an integer above 0")
        for pattern in self.ignore:
            compiled(pattern)


@dataclass(slots=True)
class Recorded:
    """One request as it came; times in seconds on the server's monotonic clock.

    `finished` is None while it is in flight; `outcome` is ok, the fault's kind, rejected (above
    the ceiling), refused (bad request) or aborted (the client left).
    """

    order: int
    path: str
    headers: dict[str, str]
    body: Body | None = None
    key: str = ""
    n: int = 0
    received: float = 0.0
    finished: float | None = None
    outcome: str | None = None


class ServerExchange(NamedTuple):
    """A request being answered."""

    wire: Wire
    request: Recorded | None = None
    served: bool = False  # counts as in flight


def identity(path: str, body: Body, ignore: Sequence[str] = ()) -> str:
    """Hash (32 hex digits) of path and body without VOLATILE; key order does not matter."""
    stable = {k: v for k, v in body.items() if k not in VOLATILE}
    text = _SORTED.encode(stable)
    for pattern in ignore:
        text = re.sub(pattern, "", text)
    return hashlib.blake2b(f"{path} {text}".encode(), digest_size=16).hexdigest()


class Engine:
    """Requests in, Exchanges out, counters; no I/O. Used by one event loop only."""

    def __init__(self, settings: Settings) -> None:
        self.settings = settings
        self.error: Exception | None = None  # raised by the answer callable
        self.in_flight = 0
        self.connections = 0  # open now
        self.reset()

    def reset(self) -> None:
        """Forget all counters and recordings."""
        self.count = 0
        self.max_in_flight = self.in_flight
        self.outcomes: Counter[str] = Counter()
        self.statuses: Counter[int] = Counter()
        self.per_request: dict[str, list[int]] = {}  # identity -> [asked, answered]
        self.log: deque[Recorded] = deque(maxlen=self.settings.record)
        self._area, self._started = 0.0, time.monotonic()
        self._moved, self._cpu = self._started, time.process_time()

    def handle(self, method: str, path: str, headers: dict[str, str], raw: bytes) -> ServerExchange:
        """The exchange for one HTTP request. Never raises."""
        path, _, query = path.partition("?")
        post_paths = "/v1/chat/completions", "/v1/decisions", "/v1/embeddings"
        if path in post_paths and method == "POST":
            return self._model_request(Recorded(self.count, path, headers), raw)
        routes = {"/v1/models": "GET", "/stats": "GET", "/reset": "POST"}
        routes |= dict.fromkeys(post_paths, "POST")
        if path not in routes:
            return refusal(404, f"unknown path: {path[:200]}")
        if method != routes[path]:
            return refusal(405, f"{path} wants {routes[path]}", {"allow": routes[path]})
        if path == "/reset":
            if self.in_flight:
                return refusal(409, f"{self.in_flight} requests are in flight")
            self.reset()
        value = self._models() if path == "/v1/models" else self.stats("keys=no" not in query)
        return ServerExchange(Wire(((0.0, http_bytes(200, json_bytes(value))),)))

    def _models(self) -> Body:
        about = {"object": "model", "created": 1_700_000_000, "owned_by": "agenteval"}
        return {"object": "list", "data": [{"id": m, **about} for m in self.settings.models]}

    def _model_request(self, request: Recorded, raw: bytes) -> ServerExchange:
        self.count += 1
        request.received = time.monotonic()
        self.log.append(request)
        ceiling = self.settings.ceiling
        if ceiling is not None and self.in_flight >= ceiling:
            return self._done_at_once(request, "rejected", 429, f"more than {ceiling} in flight")
        try:
            request.body = body = _parsed(raw, request.path)
            wire = self._reply(request, body)
        except Refused as error:
            return self._done_at_once(request, "refused", error.status, str(error))
        self._move(+1)
        return ServerExchange(wire, request, served=True)

    def _done_at_once(
        self, request: Recorded, outcome: str, status: int, why: str
    ) -> ServerExchange:
        request.outcome, request.finished = outcome, time.monotonic()
        self.outcomes[outcome] += 1
        self.statuses[status] += 1
        wait = self.settings.ceiling_retry_after
        return refusal(status, why, {"retry-after": wait} if wait and status == 429 else None)

    def _reply(self, request: Recorded, body: Body) -> Wire:
        settings, chat = self.settings, "messages" in body
        if chat and settings.key is not None:
            request.key = str(self._called(settings.key, body))
        else:
            request.key = identity(request.path, body, settings.ignore)
        tally = self.per_request.get(request.key)
        if tally is None:
            if len(self.per_request) >= MAX_IDENTITIES:
                raise Refused(507, f"{MAX_IDENTITIES} different requests counted; POST /reset")
            tally = self.per_request[request.key] = [0, 0]
        request.n = n = tally[0]
        tally[0] += 1
        question = Asked(settings.seed, request.key, n, request.order, chat, lambda: text_of(body))
        struck = (rule.strikes(question, i) for i, rule in enumerate(settings.faults))
        fault = next((f for f in struck if f is not None), None)
        if chat:
            wire = self._chat(body, request, fault)
        elif request.path == "/v1/decisions":
            wire = self._decided(body, request, fault)
        else:
            wire = _wire(embeddings(body, settings.dimensions), fault)
        if settings.latency == _NO_LATENCY:
            return wire
        wait = settings.latency.at(draw("latency", settings.seed, request.key, n))
        first, *later_steps = wire.steps
        return wire._replace(steps=((first[0] + wait, first[1]), *later_steps))

    def _chat(self, body: Body, request: Recorded, fault: Fault | None) -> Wire:
        picks = Picks(self.settings.seed, request.key)
        if self.settings.answer is None:
            return _wire(completion(body, request.key, _default(body, picks), picks), fault)
        answer = self._called(self.settings.answer, body, request.n)
        if isinstance(answer, Fault):
            fault = fault or answer
        if isinstance(answer, Fault | Default):
            return _wire(completion(body, request.key, _default(body, picks), picks), fault)

        def scripted() -> Wire:
            if not isinstance(answer, str | dict):
                raise TypeError(f"answer returned {type(answer).__name__}")
            if isinstance(answer, dict) and "choices" in answer:
                return _wire(answer, fault)
            message = {"content": answer} if isinstance(answer, str) else answer
            return _wire(completion(body, request.key, message, picks), fault)

        wire: Wire = self._called(scripted)  # raised here for malformed scripted replies
        return wire

    def _decided(self, body: Body, request: Recorded, fault: Fault | None) -> Wire:
        answer, scripted = self.settings.answer, None
        if answer is not None:
            scripted = self._called(answer, body, request.n)
        fault = fault or (scripted if isinstance(scripted, Fault) else None)
        good = _default(body, Picks(self.settings.seed, request.key), decision)
        if isinstance(scripted, dict) and "answers" in scripted:
            good = {**good, **scripted}
        return _wire(good, fault)

    def _called(self, function: Callable[..., Any], *arguments: Any) -> Any:
        try:
            return function(*arguments)
        except Exception as error:
            self.error = self.error or error
            raise Refused(400, f"the scripted function raised {error!r}") from error

    def _move(self, change: int) -> None:
        now = time.monotonic()
        self._area += self.in_flight * (now - self._moved)
        self._moved = now
        self.in_flight += change
        self.max_in_flight = max(self.max_in_flight, self.in_flight)

    def finish(self, exchange: ServerExchange, *, delivered: bool) -> None:
        """Count the end of an exchange: the reply is about to be complete, or the client left."""
        request = exchange.request
        if request is None:
            return
        if exchange.served:
            self._move(-1)
        request.outcome = (exchange.wire.fault or "ok") if delivered else "aborted"
        request.finished = time.monotonic()
        self.outcomes[request.outcome] += 1
        if delivered:
            self.statuses.update(exchange.wire.statuses())
            self.per_request[request.key][1] += exchange.wire.accepted

    def stats(self, keys: bool = True) -> Body:
        """The counters, for GET /stats. `per_request` maps identity to [asked, answered];
        `answered_again` counts identities with more than one acceptable reply, `statuses` the
        HTTP statuses sent (a reset connection has none)."""
        self._move(0)
        value: Body = {
            "requests": self.count,
            "outcomes": dict(self.outcomes),
            "statuses": {str(status): n for status, n in sorted(self.statuses.items())},
            "in_flight": self.in_flight,
            "max_in_flight": self.max_in_flight,
            "in_flight_seconds": self._area,
            "connections": self.connections,
            "elapsed_seconds": time.monotonic() - self._started,
            "cpu_seconds": time.process_time() - self._cpu,
            "identities": len(self.per_request),
            "answered": sum(t[1] > 0 for t in self.per_request.values()),
            "answered_again": sum(t[1] > 1 for t in self.per_request.values()),
        }
        return value | ({"per_request": self.per_request} if keys else {})


def _wire(good: Body, fault: Fault | None) -> Wire:
    if fault is not None:
        return fault.wire(copy.deepcopy(good))
    return Wire(((0.0, http_bytes(200, json_bytes(good))),), accepted=True)


def _default(body: Body, picks: Picks, made: Callable[..., Body] = default_message) -> Body:
    try:
        return made(body, picks)
    except (LookupError, TypeError, AttributeError, ArithmeticError, RecursionError) as error:
        raise Refused(400, f"the request is malformed: {error!r}") from error


def refusal(status: int, message: str, headers: dict[str, str] | None = None) -> ServerExchange:
    """An error reply that this server sends on purpose."""
    return ServerExchange(Wire(((0.0, http_bytes(status, error_body(status, message), headers)),)))


def _parsed(raw: bytes, path: str) -> Body:
    try:
        body = json.loads(raw)
        json.dumps(body, allow_nan=False)
    except (ValueError, RecursionError) as error:
        raise Refused(400, f"the body is not JSON: {error}") from error
    if not isinstance(body, dict) or not isinstance(body.get("model"), str):
        raise Refused(400, "the body must be an object with a model")
    if path != "/v1/chat/completions":
        body.pop("messages", None)
        return body
    messages = body.get("messages")
    listed = messages if isinstance(messages, list) else []
    if not listed or not all(
        isinstance(m, dict) and isinstance(m.get("role"), str) for m in listed
    ):
        raise Refused(400, "messages must be a non-empty list of objects with a role")
    if body.get("stream") or body.get("n") not in (None, 1):
        raise Refused(400, "this server supports neither streaming nor n > 1")
    return body
