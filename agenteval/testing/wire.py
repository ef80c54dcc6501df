"""Raw responses: replies as timed pieces of bytes, errors in the format of the API."""

from __future__ import annotations

import json
import math
import re
import time
from collections.abc import Mapping
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, Literal, NamedTuple

MAX_BODY = 64 * 1024 * 1024  # bytes
End = Literal["keep", "close", "reset"]
Body = dict[str, Any]


class Refused(Exception):
    """Raised for a request that this server does not understand; sent as an HTTP error."""

    def __init__(self, status: int, message: str) -> None:
        super().__init__(message)
        self.status = status


class Wire(NamedTuple):
    """A reply as it is played: wait, write, wait, write …, then the end of the connection.
    `accepted` means that a client may accept the reply (counted in `/stats`).
    """

    steps: tuple[tuple[float, bytes], ...]
    end: End = "keep"
    accepted: bool = False
    fault: str | None = None

    def statuses(self) -> tuple[int, ...]:
        """The HTTP status it sends; nothing when the connection ends before it."""
        first = next((data for _, data in self.steps if data), b"")
        return (int(first[9:12]),) if first else ()


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


# Every form in use (RFC 9110 sections 5.6.7 and 10.2.3, and violations of it).
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
    "reset headers": {"x-ratelimit-reset-requests": "1s", "x-ratelimit-reset-tokens": "250ms"},
}
_DATE = re.compile(r"@(date|rfc850|asctime)([+-]\d{1,9})")
_DAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def _moving_date(value: str) -> str:
    """`@date+2` becomes the date two seconds from now, rounded up; other text stays."""
    match = _DATE.fullmatch(value)
    if not match:
        return value
    moment = math.ceil(time.time() + int(match[2]))
    if match[1] == "asctime":
        return time.asctime(time.gmtime(moment))
    date = formatdate(moment, usegmt=True)  # Sun, 06 Nov 1994 08:49:37 GMT
    if match[1] == "date":
        return date
    _, day, month, year, clock, zone = date.split()
    return f"{_DAYS[time.gmtime(moment).tm_wday]}, {day}-{month}-{year[2:]} {clock} {zone}"
