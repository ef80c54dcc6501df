"""What can go wrong at an endpoint, as data: faults, the plan that says when, and latency.

::

    Fault   one way to fail (a row of KINDS)
    Rule    when: by probability, for the first N of each request, by ordinal, by text
    Wire    what goes over the socket in the end: timed pieces of bytes, then keep | close | reset

Nothing here does I/O and nothing draws from a clock or a global generator: a draw is a hash of
(seed, identity of the request, n-th time it is asked), so a plan hits the same requests in every
run, in whatever order they arrive.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Literal, NamedTuple

from agenteval.errors import InputError

MAX_SECONDS = 600.0  # no latency, drip or silence lasts longer
End = Literal["keep", "close", "reset"]
Body = dict[str, Any]


class Wire(NamedTuple):
    """A reply as it is played: wait, write, wait, write …, then what becomes of the connection.

    `accepted` says that a client may take the reply for a good one (counted in `/stats`).
    """

    steps: tuple[tuple[float, bytes], ...]
    end: End = "keep"
    accepted: bool = False
    fault: str | None = None


def draw(*parts: object) -> float:
    """A number in [0, 1) that depends on `parts` alone."""
    text = "\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return (int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 11) / 2**53


def http_bytes(
    status: int,
    body: bytes,
    headers: Mapping[str, str] | None = None,
    content_type: str = "application/json",
) -> bytes:
    """One complete HTTP/1.1 response. Header values may hold a moving date, see `Fault`."""
    try:
        reason = HTTPStatus(status).phrase
    except ValueError:
        reason = "Unknown"
    head = f"HTTP/1.1 {status} {reason}\r\n"
    for name, value in ({"content-type": content_type} | dict(headers or {})).items():
        head += f"{name}: {_moving_date(value)}\r\n"
    return f"{head}content-length: {len(body)}\r\n\r\n".encode("latin-1") + body


def json_bytes(value: object) -> bytes:
    """`value` as JSON; NaN is refused, lone surrogates survive as escapes."""
    return json.dumps(value, separators=(",", ":"), allow_nan=False).encode()


def error_body(status: int, message: str, code: str | None = None) -> bytes:
    """An error in the form of the OpenAI API: {"error": {message, type, param, code}}."""
    kinds = {401: "authentication_error", 403: "permission_error", 429: "rate_limit_error"}
    kind = kinds.get(status, "server_error" if status >= 500 else "invalid_request_error")
    return json_bytes({"error": {"message": message, "type": kind, "param": None, "code": code}})


# ---- Retry-After ---------------------------------------------------------------------------------

# Every form met in the wild (RFC 9110 sections 5.6.7 and 10.2.3, and what breaks it).
RETRY_AFTER_FORMS: Mapping[str, Mapping[str, str]] = {
    "seconds": {"retry-after": "1"},
    "fraction": {"retry-after": "0.25"},
    "milliseconds": {"retry-after-ms": "250"},
    "milliseconds and seconds": {"retry-after-ms": "250", "retry-after": "1"},
    "zero": {"retry-after": "0"},
    "negative": {"retry-after": "-1"},
    "empty": {"retry-after": ""},
    "garbage": {"retry-after": "soon"},
    "not a number": {"retry-after": "nan"},
    "infinite": {"retry-after": "inf"},
    "overflow": {"retry-after": "1e999"},
    "huge": {"retry-after": "1000000000"},
    "date": {"retry-after": "@date+1"},
    "past date": {"retry-after": "@date-60"},
    "rfc850 date": {"retry-after": "@rfc850+1"},
    "asctime date": {"retry-after": "@asctime+1"},
}
_DATE = re.compile(r"@(date|rfc850|asctime)([+-]\d{1,9})")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _moving_date(value: str) -> str:
    """`@date+2` becomes the date two seconds from now, rounded up; other text stays."""
    found = _DATE.fullmatch(value)
    if not found:
        return value
    moment = math.ceil(time.time() + int(found[2]))
    if found[1] == "asctime":
        return time.asctime(time.gmtime(moment))
    date = formatdate(moment, usegmt=True)  # Sun, 06 Nov 1994 08:49:37 GMT
    if found[1] == "date":
        return date
    _, day, month, year, clock, zone = date.split()
    return f"{_DAYS[time.gmtime(moment).tm_wday]}, {day}-{month}-{year[2:]} {clock} {zone}"


# ---- Faults --------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to fail. `kind` is a key of KINDS; which further fields count is said there.

    A header value `@date+2` (also `@rfc850+2`, `@asctime-5`) becomes a date that many seconds from
    the moment of sending. Raises InputError for an unknown kind or a value out of bounds.
    """

    kind: str
    status: int = 500
    body: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    code: str | None = None
    seconds: float = 1.0
    usage: Mapping[str, Any] | None = None

    def __post_init__(self) -> None:
        if self.kind not in KINDS:
            raise InputError(f"unknown fault {self.kind!r}; known: {', '.join(sorted(KINDS))}")
        if not (isinstance(self.headers, Mapping) and isinstance(self.body, str | None)):
            raise InputError(f"fault {self.kind}: headers must be an object and body a text")
        if not 200 <= self.status <= 599:
            raise InputError(f"fault {self.kind}: status {self.status} is not within 200 to 599")
        if not 0 <= self.seconds <= MAX_SECONDS:
            raise InputError(f"fault {self.kind}: seconds must be 0 to {MAX_SECONDS:g}")
        for name, value in self.headers.items():
            if any(c in "\r\n\0" or ord(c) > 255 for c in f"{name}{value}"):
                raise InputError(f"fault {self.kind}: header {name!r} holds a forbidden character")

    def wire(self, good: Body) -> Wire:
        """The reply to send in place of `good` (a good response body; it may be changed)."""
        kind = KINDS[self.kind]
        steps, end = kind.make(self, good)
        return Wire(steps, end, kind.accepted, self.kind)


Steps = tuple[tuple[tuple[float, bytes], ...], End]


def _once(data: bytes) -> Steps:
    return ((0.0, data),), "keep"


def _status(fault: Fault, _good: Body) -> Steps:
    if fault.body is None:
        body = error_body(fault.status, f"scripted fault: status {fault.status}", fault.code)
    else:
        body = fault.body.encode()
    return _once(http_bytes(fault.status, body, fault.headers))


def _reset(_fault: Fault, _good: Body) -> Steps:
    return ((0.0, b""),), "reset"


def _half(good: Body) -> bytes:
    body = json_bytes(good)
    return http_bytes(200, body)[: -((len(body) + 1) // 2)]


def _half_body(_fault: Fault, good: Body) -> Steps:
    return ((0.0, _half(good)),), "close"


def _half_reset(_fault: Fault, good: Body) -> Steps:
    return ((0.0, _half(good)), (0.01, b"")), "reset"


def _hang(fault: Fault, _good: Body) -> Steps:
    return ((fault.seconds, b""),), "close"


def _slow_drip(fault: Fault, good: Body) -> Steps:
    data = http_bytes(200, json_bytes(good))
    size = math.ceil(len(data) / 20)
    pieces = [data[i : i + size] for i in range(0, len(data), size)]
    return tuple((fault.seconds / len(pieces), piece) for piece in pieces), "keep"


def _content_type(_fault: Fault, good: Body) -> Steps:
    return _once(http_bytes(200, json_bytes(good), content_type="text/plain; charset=utf-8"))


def _html(fault: Fault, _good: Body) -> Steps:
    page = fault.body or "<!doctype html><title>Sign in</title><p>Please sign in to the gateway."
    return _once(http_bytes(200, page.encode(), fault.headers, "text/html; charset=utf-8"))


def _truncated_json(_fault: Fault, good: Body) -> Steps:
    body = json_bytes(good)
    return _once(http_bytes(200, body[: len(body) // 2]))


def _error_200(fault: Fault, _good: Body) -> Steps:
    body = error_body(500, "scripted fault: error under status 200", fault.code or "server_error")
    return _once(http_bytes(200, fault.body.encode() if fault.body is not None else body))


def _empty_choices(_fault: Fault, good: Body) -> Steps:
    good["data" if "data" in good else "choices"] = []
    return _once(http_bytes(200, json_bytes(good)))


def _usage(fault: Fault, good: Body) -> Steps:
    wrong = {"prompt_tokens": -5, "completion_tokens": 10**9, "total_tokens": 3}
    good["usage"] = wrong if fault.usage is None else dict(fault.usage)
    return _once(http_bytes(200, json_bytes(good)))


def _choice(good: Body, finish: str, **message: object) -> Steps:
    good["choices"][0]["finish_reason"] = finish
    good["choices"][0]["message"].update(message)
    return _once(http_bytes(200, json_bytes(good)))


def _content_filter(_fault: Fault, good: Body) -> Steps:
    return _choice(good, "content_filter", content=None)


def _length(_fault: Fault, good: Body) -> Steps:
    text = good["choices"][0]["message"]["content"] or ""
    return _choice(good, "length", content=text[: len(text) // 2])


def _refusal(fault: Fault, good: Body) -> Steps:
    words = fault.body if fault.body is not None else "I'm sorry, I can't help with that."
    return _choice(good, "stop", content=None, refusal=words)


def _content(fault: Fault, good: Body) -> Steps:
    return _choice(good, "stop", content=fault.body or "")


class Kind(NamedTuple):
    """A row of KINDS."""

    make: Callable[[Fault, Body], Steps]
    chat_only: bool = False
    accepted: bool = False


KINDS: Mapping[str, Kind] = {
    "status": Kind(_status),  # any status; body (raw), headers, code
    "reset": Kind(_reset),  # TCP reset before a byte of the reply
    "half_reset": Kind(_half_reset),  # TCP reset in the middle of the body
    "half_body": Kind(_half_body),  # the connection is closed in the middle of the body
    "hang": Kind(_hang),  # silence for `seconds`, then close
    "slow_drip": Kind(_slow_drip, accepted=True),  # the whole reply in 20 pieces over `seconds`
    "content_type": Kind(_content_type, accepted=True),  # good JSON called text/plain
    "html": Kind(_html),  # status 200, text/html: a captive portal; body
    "truncated_json": Kind(_truncated_json),  # a well-framed reply whose JSON stops half-way
    "error_200": Kind(_error_200),  # {"error": …} under status 200; body, code
    "empty_choices": Kind(_empty_choices),  # choices (embeddings: data) is []
    "usage": Kind(_usage, accepted=True),  # good reply, absurd usage; usage
    "content_filter": Kind(_content_filter, chat_only=True),
    "length": Kind(_length, chat_only=True),  # finish_reason length, text cut in half
    "refusal": Kind(_refusal, chat_only=True),  # message.refusal; body
    "content": Kind(_content, chat_only=True),  # another text as the content; body
}

# What may heal when asked again: the usual mixture for `--fault-rate` and the soak test.
HEALING: tuple[Fault, ...] = (
    Fault("status", 429, headers={"retry-after-ms": "50"}),
    Fault("status", 500),
    Fault("status", 502, body="<h1>Bad Gateway</h1>", headers={"content-type": "text/html"}),
    Fault("status", 503, headers={"retry-after": "0"}),
    Fault("reset"),
    Fault("half_body"),
    Fault("truncated_json"),
    Fault("html"),
    Fault("error_200"),
    Fault("empty_choices"),
)


# ---- The plan ------------------------------------------------------------------------------------


class Asked(NamedTuple):
    """What a rule may look at: the n-th time (from 0) that the request `key` is asked."""

    seed: int
    key: str
    n: int
    ordinal: int
    chat: bool
    text: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Rule:
    """When `fault` (of several one, drawn evenly) strikes; every condition given must hold.

    probability: drawn anew each time a request is asked. first: only the first N times that each
    request is asked. at: only the server's requests with these ordinals (from 0, in order of
    arrival, so it depends on timing when requests are concurrent). match: a regular expression
    found in the text of the request. Raises InputError for a value out of bounds.
    """

    fault: Fault | tuple[Fault, ...]
    probability: float = 1.0
    first: int | None = None
    at: tuple[int, ...] | None = None
    match: str | None = None

    def __post_init__(self) -> None:
        if not self._faults():
            raise InputError("a rule needs at least one fault")
        if not all(isinstance(k, int) for k in (self.first or 0, *(self.at or ()))):
            raise InputError("rule: first and at count requests, so they must be integers")
        if not 0 <= self.probability <= 1:
            raise InputError(f"rule: probability {self.probability} is not within 0 to 1")
        if self.match is not None:
            compiled(self.match)

    def _faults(self) -> tuple[Fault, ...]:
        return self.fault if isinstance(self.fault, tuple) else (self.fault,)

    def strikes(self, asked: Asked, index: int) -> Fault | None:
        """The fault for this request, or None. `index` keeps the draws of rules apart."""
        faults = [f for f in self._faults() if asked.chat or not KINDS[f.kind].chat_only]
        if not faults or (self.first is not None and asked.n >= self.first):
            return None
        if self.at is not None and asked.ordinal not in self.at:
            return None
        if self.match is not None and not re.search(self.match, asked.text()):
            return None
        chance = draw("fault", asked.seed, index, asked.key, asked.n)
        if chance >= self.probability:
            return None
        return faults[int(draw("which", asked.seed, index, asked.key, asked.n) * len(faults))]


def compiled(pattern: str) -> re.Pattern[str]:
    """The regular expression. Raises InputError when it is none."""
    try:
        return re.compile(pattern)
    except re.error as error:
        raise InputError(f"regular expression {pattern!r}: {error}") from None


def as_rules(faults: Sequence[Fault | Rule]) -> tuple[Rule, ...]:
    """Rules in order, the first that strikes wins; a bare Fault strikes always."""
    return tuple(Rule(f) if isinstance(f, Fault) else f for f in faults)


def rule_from_json(value: object, where: str) -> Rule:
    """A rule as a script writes it: {"fault": {"kind": …}, "probability": …, "first": …}.

    `fault` may be a list. Raises InputError naming `where` for anything else.
    """
    if not isinstance(value, dict) or not value.get("fault"):
        raise InputError("a rule must be an object with a fault", where)
    known = {f.name for f in fields(Rule)}
    if unknown := set(value) - known:
        raise InputError(f"unknown key {min(unknown)!r}; allowed: {sorted(known)}", where)
    rest = {k: v for k, v in value.items() if k != "fault"}
    raw = value["fault"] if isinstance(value["fault"], list) else [value["fault"]]
    try:
        if rest.get("at") is not None:
            rest["at"] = tuple(rest["at"])
        return Rule(tuple(Fault(**one) for one in raw), **rest)
    except (TypeError, InputError) as error:
        raise InputError(str(error), where) from None


# ---- Latency -------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Latency:
    """Seconds before the first byte: fixed(a), uniform(a, b), exponential(mean a),
    lognormal(median a, sigma b of the logarithm). Raises InputError for values out of bounds.
    """

    shape: str = "fixed"
    a: float = 0.0
    b: float = 0.0

    def __post_init__(self) -> None:
        if self.shape not in ("fixed", "uniform", "exponential", "lognormal"):
            raise InputError(f"unknown latency {self.shape!r}")
        if not (0 <= self.a <= MAX_SECONDS and 0 <= self.b <= MAX_SECONDS):
            raise InputError(f"latency must be 0 to {MAX_SECONDS:g} seconds")
        if self.shape == "uniform" and self.b < self.a:
            raise InputError("latency uniform:LOW:HIGH needs LOW <= HIGH")

    def at(self, u: float) -> float:
        """The quantile for u in [0, 1), in seconds, at most MAX_SECONDS."""
        if self.shape == "fixed":
            return self.a
        if self.shape == "uniform":
            return self.a + (self.b - self.a) * u
        if self.shape == "exponential":
            return min(-self.a * math.log1p(-u), MAX_SECONDS)
        from statistics import NormalDist

        return min(self.a * math.exp(self.b * NormalDist().inv_cdf(u or 2**-54)), MAX_SECONDS)


def parse_latency(text: str) -> Latency:
    """`0.1`, `uniform:0.05:0.2`, `exponential:0.1` or `lognormal:0.1:0.5`. Raises InputError."""
    shape, *numbers = text.split(":") if text[:1].isalpha() else ("fixed", text)
    try:
        return Latency(shape, *map(float, numbers))
    except (TypeError, ValueError):
        raise InputError(f"latency {text!r}: want SECONDS or SHAPE:NUMBER[:NUMBER]") from None
