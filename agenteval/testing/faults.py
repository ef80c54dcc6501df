"""What can go wrong at an endpoint, as data: a Fault is one way to fail (a row of KINDS)."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from agenteval.errors import InputError
from agenteval.testing.wire import Body, End, Wire, error_body, http_bytes, json_bytes

MAX_SECONDS = 600.0  # no latency, drip or silence lasts longer


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

    about: str
    make: Callable[[Fault, Body], Steps]
    chat_only: bool = False
    accepted: bool = False


KINDS: Mapping[str, Kind] = {
    "status": Kind("an HTTP status, 500 unless told; body (raw text), headers, code", _status),
    "reset": Kind("TCP reset before a byte of the reply", _reset),
    "half_reset": Kind("TCP reset in the middle of the body", _half_reset),
    "half_body": Kind("the connection is closed in the middle of the body", _half_body),
    "hang": Kind("silence for `seconds`, then the connection is closed", _hang),
    "slow_drip": Kind("the whole reply in 20 pieces over `seconds`", _slow_drip, accepted=True),
    "content_type": Kind("a good reply called text/plain", _content_type, accepted=True),
    "html": Kind("status 200 with a page in HTML, as of a captive portal; body", _html),
    "truncated_json": Kind("a complete body whose JSON stops half-way", _truncated_json),
    "error_200": Kind("an error in the body under status 200; body, code", _error_200),
    "empty_choices": Kind("choices (embeddings: data) is an empty list", _empty_choices),
    "usage": Kind("a good reply with absurd token counts; usage", _usage, accepted=True),
    "content_filter": Kind("finish_reason content_filter and no text", _content_filter, True),
    "length": Kind("finish_reason length, the text cut in half", _length, True),
    "refusal": Kind("message.refusal in place of the text; body", _refusal, True),
    "content": Kind("another text in place of the answer; body", _content, True),
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
