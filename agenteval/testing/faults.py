"""Faults of an endpoint, their conditions, and the latency of replies.

A Fault is one way to fail (a row of KINDS); a Rule selects the requests. Nothing here uses a clock
or a global generator: a draw is a hash of (seed, identity of the request, n-th time it is sent), so
rules hit the same requests in every run, in any order of arrival.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any, NamedTuple

from agenteval.errors import InputError
from agenteval.testing.wire import (
    RETRY_AFTER_FORMS,
    Body,
    End,
    Wire,
    error_body,
    http_bytes,
    json_bytes,
)

MAX_SECONDS = 600.0  # no latency, drip or silence lasts longer


@dataclass(frozen=True, slots=True)
class Fault:
    """One way to fail. `kind` is a key of KINDS, which lists the other fields that apply.

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


def _json(value: object) -> Steps:
    return _once(http_bytes(200, json_bytes(value)))


def _status(fault: Fault, _good: Body) -> Steps:
    words = f"scripted fault: status {fault.status}"
    plain = error_body(fault.status, words, fault.code)
    body = plain if fault.body is None else fault.body.encode()
    return _once(http_bytes(fault.status, body, fault.headers))


def _half(good: Body) -> bytes:
    body = json_bytes(good)
    return http_bytes(200, body)[: -((len(body) + 1) // 2)]


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
    return _once(http_bytes(200, body if fault.body is None else fault.body.encode()))


def _usage(fault: Fault, good: Body) -> Steps:
    wrong = {"prompt_tokens": -5, "completion_tokens": 10**9, "total_tokens": 3}
    return _json({**good, "usage": wrong if fault.usage is None else dict(fault.usage)})


def _choice(good: Body, finish: str, **message: object) -> Steps:
    good["choices"][0]["finish_reason"] = finish
    good["choices"][0]["message"].update(message)
    return _json(good)


def _length(_fault: Fault, good: Body) -> Steps:
    text = good["choices"][0]["message"]["content"] or ""
    return _choice(good, "length", content=text[: len(text) // 2])


def _refusal(fault: Fault, good: Body) -> Steps:
    words = fault.body if fault.body is not None else "I'm sorry, I can't help with that."
    return _choice(good, "stop", content=None, refusal=words)


class Kind(NamedTuple):
    """A row of KINDS."""

    about: str
    make: Callable[[Fault, Body], Steps]
    chat_only: bool = False
    accepted: bool = False


KINDS: Mapping[str, Kind] = {
    "status": Kind("an HTTP status, by default 500; body (raw text), headers, code", _status),
    "reset": Kind("TCP reset before a byte of the reply", lambda _, __: (((0.0, b""),), "reset")),
    "half_reset": Kind(
        "TCP reset in the middle of the body",
        lambda _, good: (((0.0, _half(good)), (0.01, b"")), "reset"),
    ),
    "half_body": Kind(
        "the connection is closed in the middle of the body",
        lambda _, good: (((0.0, _half(good)),), "close"),
    ),
    "hang": Kind(
        "silence for `seconds`, then the connection is closed",
        lambda fault, _: (((fault.seconds, b""),), "close"),
    ),
    "slow_drip": Kind("the whole reply in 20 pieces over `seconds`", _slow_drip, accepted=True),
    "content_type": Kind(
        "a valid reply with the content type text/plain", _content_type, accepted=True
    ),
    "html": Kind("status 200 with an HTML page, like that of a captive portal; body", _html),
    "truncated_json": Kind("a complete body whose JSON ends halfway", _truncated_json),
    "error_200": Kind("an error in the body under status 200; body, code", _error_200),
    "empty_choices": Kind(
        "choices (embeddings: data) is an empty list",
        lambda _, good: _json({**good, "data" if "data" in good else "choices": []}),
    ),
    "usage": Kind("a valid reply with absurd token counts; usage", _usage, accepted=True),
    "content_filter": Kind(
        "finish_reason content_filter and no text",
        lambda _, good: _choice(good, "content_filter", content=None),
        True,
    ),
    "length": Kind("finish_reason length, the text cut in half", _length, True),
    "refusal": Kind("message.refusal instead of text; body", _refusal, True),
    "content": Kind(
        "another text instead of the answer; body",
        lambda fault, good: _choice(good, "stop", content=fault.body or ""),
        True,
    ),
}

# Transient faults: the usual mixture for `--fault-rate` and the soak test.
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


def draw(*parts: object) -> float:
    """Return a number in [0, 1) that depends only on `parts`."""
    text = "\x1f".join(map(str, parts)).encode("utf-8", "surrogatepass")
    return (int.from_bytes(hashlib.blake2b(text, digest_size=8).digest(), "big") >> 11) / 2**53


class Asked(NamedTuple):
    """Input of a rule: the n-th time (from 0) that the request `key` is sent."""

    seed: int
    key: str
    n: int
    ordinal: int
    chat: bool
    text: Callable[[], str]


@dataclass(frozen=True, slots=True)
class Rule:
    """When `fault` (one of several, drawn evenly) applies; all given conditions must hold.

    probability: drawn each time a request is sent. first: only the first N times that each
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
    """The regular expression. Raises InputError if it is invalid."""
    try:
        return re.compile(pattern)
    except re.error as error:
        raise InputError(f"regular expression {pattern!r}: {error}") from None


def as_rules(faults: Sequence[Fault | Rule]) -> tuple[Rule, ...]:
    """Return the rules in order; the first match wins, and a bare Fault always matches."""
    return tuple(Rule(f) if isinstance(f, Fault) else f for f in faults)


def rule_from_json(value: object, where: str) -> Rule:
    """A rule as a script writes it: {"fault": {"kind": …}, "probability": …, "first": …}.

    `fault` may be a list. Raises InputError naming `where` for anything else.
    """
    if not isinstance(value, dict) or not value.get("fault"):
        raise InputError("a rule must be an object with a fault", where)
    keys = {f.name for f in fields(Rule)}
    if unknown := set(value) - keys:
        raise InputError(f"unknown key {min(unknown)!r}; allowed: {sorted(keys)}", where)
    options = {k: v for k, v in value.items() if k != "fault"}
    raw = value["fault"] if isinstance(value["fault"], list) else [value["fault"]]
    try:
        if options.get("at") is not None:
            options["at"] = tuple(options["at"])
        return Rule(tuple(Fault(**fault) for fault in raw), **options)
    except (TypeError, InputError) as error:
        raise InputError(str(error), where) from None


def parse_fault(text: str) -> Rule:
    """A rule from KIND[=VALUE][:SHARE]: `reset`, `503:0.1`, `slow_drip=20:0.02`, `429=date`.

    Raises InputError for anything else.
    """
    fault_text, share = text, 1.0
    head, colon, tail = text.rpartition(":")
    if colon and re.fullmatch(r"\d*\.?\d+", tail):  # else a colon of the value
        fault_text, share = head, float(tail)
    name, separator, value = fault_text.partition("=")
    try:
        return Rule(_fault(name, value if separator else None), share)
    except ValueError:
        raise InputError(f"--fault {text}: {value!r} is not a number") from None
    except InputError as error:
        raise InputError(f"--fault {text}: {error}") from None


def _fault(name: str, value: str | None) -> Fault:
    is_status = name.isascii() and name.isdigit()
    if value is None:
        return Fault("status", int(name)) if is_status else Fault(name)
    if is_status:
        forms = {form.replace(" ", "-"): headers for form, headers in RETRY_AFTER_FORMS.items()}
        if value not in forms:
            raise InputError(f"want a form of Retry-After: {', '.join(forms)}")
        return Fault("status", int(name), headers=forms[value])
    if name == "status":
        return Fault(name, int(value))
    if name in ("hang", "slow_drip"):
        return Fault(name, seconds=float(value))
    if name in ("content", "refusal", "html"):
        return Fault(name, body=value)
    raise InputError(f"{name} takes no value")


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
