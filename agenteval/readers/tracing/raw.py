"""RawSpan: one span as a file holds it, whatever its keys are called."""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal

from agenteval.readers.tracing.flat import attributes_of, bounded, json_or_none, text_of

Status = Literal["ok", "error", "unset"]

ID = ("spanid", "id")
PARENT = ("parentspanid", "parentid", "parent")
TRACE = ("traceid",)
NAME = ("name", "spanname", "operationname")
ATTRIBUTES = ("attributes", "spanattributes")
RESOURCE = ("resource", "resourceattributes")
CHILDREN = ("childspans", "children")
_START = ("starttime", "timestamp", "start")
_END = ("endtime", "end")
_STATUS = ("statuscode", "status")
_KNOWN = frozenset(
    {
        *ID, *PARENT, *TRACE, *NAME, *ATTRIBUTES, *RESOURCE, *CHILDREN, *_START, *_END, *_STATUS,
        "statusmessage", "events", "context", "starttimeunixnano", "endtimeunixnano", "duration",
        "durationms", "durationns", "durationnano", "durationnanos", "spankind", "kind",
    }
)  # fmt: skip
_HEX = re.compile(r"(?:0x)?([0-9a-fA-F]{16}|[0-9a-fA-F]{32})")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{11}=|[A-Za-z0-9+/_-]{22}==")
_DURATION = re.compile(
    r"P(?:(\d+)D)?T?(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?"
)
_DIGITS = re.compile(r"\d{1,25}(\.\d{1,25})?", re.A)
_SECONDS = (86400.0, 3600.0, 60.0, 1.0)


@dataclass(slots=True)
class RawEvent:
    """Something that happened within a span; `at` is seconds since 1970."""

    name: str
    at: float | None
    attributes: dict[str, Any]


@dataclass(slots=True)
class RawSpan:
    """The parts of a span; ids in hexadecimal where they can be, times in seconds since 1970.

    `attributes` and `resource` are flat. What has no part of its own stands in the attributes
    under the name the file gives it.
    """

    id: str | None
    parent: str | None
    trace: str | None
    name: str
    kind: str
    start: float | None
    end: float | None
    status: Status
    message: str
    events: list[RawEvent] = field(default_factory=list)
    attributes: dict[str, Any] = field(default_factory=dict)
    resource: dict[str, Any] = field(default_factory=dict)


@lru_cache(maxsize=4096)
def plain(key: str) -> str:
    """A key without case, underscores and hyphens: span_id, spanId and SpanID are one."""
    return key.replace("_", "").replace("-", "").lower().removeprefix("context.")


def plain_keys(value: Mapping[str, Any]) -> dict[str, Any]:
    """The values by plain key, those of an inner `context` (the SDK's own JSON) among them."""
    names = {plain(key): item for key, item in value.items() if len(key) <= 40}
    context = names.get("context")
    if isinstance(context, dict):
        names |= {plain(key): item for key, item in context.items() if len(key) <= 40}
    return names


def pick(names: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    """The first of the keys that has a value."""
    for key in keys:
        value = names.get(key)
        if value is not None:
            return value
    return None


def raw_span(value: Mapping[str, Any], names: Mapping[str, Any]) -> RawSpan:
    """The span of an object; what is missing stays None, "" or empty. `names`: its plain keys."""
    start = _time(names, "starttimeunixnano", _START)
    status, message = _status(names)
    return RawSpan(
        id=id_of(pick(names, ID)),
        parent=_parent(pick(names, PARENT)),
        trace=id_of(pick(names, TRACE)),
        name=_name(pick(names, NAME)),
        kind=_word(pick(names, ("spankind", "kind"))),
        start=start,
        end=_end(names, start),
        status=status,
        message=message,
        events=_events(names.get("events")),
        attributes=_attributes(value, names),
        resource=resource_of(names),
    )


def resource_of(names: Mapping[str, Any]) -> dict[str, Any]:
    """Flat resource attributes of a span or of a group of spans."""
    value = pick(names, RESOURCE)
    if isinstance(value, dict) and isinstance(value.get("attributes"), (dict, list)):
        value = value["attributes"]
    return attributes_of(value)


def _attributes(value: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key in ATTRIBUTES:
        flat |= attributes_of(names.get(key))
    for key, item in value.items():
        if key.startswith("attributes."):  # a table of spans: one column for each attribute
            if item is not None:
                flat |= attributes_of({key[11:]: item})
        elif plain(key) not in _KNOWN and item not in (None, "", [], {}):
            flat.setdefault(key, bounded(item))
    return flat


def id_of(value: Any) -> str | None:
    """An id: 8 or 16 bytes in hexadecimal or base64 as lower hexadecimal, other texts as they are.

    None for no id, and for the zeros that stand for none.
    """
    if isinstance(value, int) and not isinstance(value, bool):
        return str(value)
    if not isinstance(value, str) or not value.strip():
        return None
    text = value.strip()
    if match := _HEX.fullmatch(text):
        text = match[1].lower()
    elif _BASE64.fullmatch(text):
        text = base64.urlsafe_b64decode(text.replace("+", "-").replace("/", "_")).hex()
    elif not text.isprintable():
        text = ascii(text)[1:-1]
    return text if text.strip("0") else None


def _parent(value: Any) -> str | None:
    return id_of(pick(plain_keys(value), ID)) if isinstance(value, dict) else id_of(value)


def _name(value: Any) -> str:
    return value if isinstance(value, str) else ""


def _time(names: Mapping[str, Any], nano: str, keys: tuple[str, ...]) -> float | None:
    exact = names.get(nano)
    if exact is not None:
        number = _number(exact)
        return None if number is None or number <= 0 else number / 10**9
    return seconds(pick(names, keys))


def _end(names: Mapping[str, Any], start: float | None) -> float | None:
    end = _time(names, "endtimeunixnano", _END)
    if end is not None or start is None:
        return end
    for keys, unit in ((("durationms",), 1e3), (("durationns", "durationnano",
                                                 "durationnanos"), 1e9)):  # fmt: skip
        number = _number(pick(names, keys))
        if number is not None:
            return start + number / unit
    lasted = names.get("duration")  # a bare number has no unit
    match = _DURATION.fullmatch(lasted) if isinstance(lasted, str) and len(lasted) < 60 else None
    if match is None or not any(match.groups()):
        return None
    return start + sum(float(n or 0) * s for n, s in zip(match.groups(), _SECONDS, strict=True))


def seconds(value: Any) -> float | None:
    """Seconds since 1970 of an ISO time (UTC if it names no zone) or of a number.

    The unit of a number is told by its size: 1e11 seconds are the year 5138, and as milliseconds
    the year 1973; likewise for micro- and nanoseconds. None for anything else.
    """
    number = _number(value)
    if number is None:
        return _iso(value.strip()) if isinstance(value, str) else None
    if number <= 0 or number >= 1e20:
        return None
    for bound, unit in ((1e11, 1), (1e14, 10**3), (1e17, 10**6)):
        if number < bound:
            return number / unit
    return number / 10**9


def _iso(text: str) -> float | None:
    try:
        moment = datetime.fromisoformat(text.removesuffix(" UTC"))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (ValueError, OverflowError):
        return None


def _number(value: Any) -> int | float | None:
    """A finite number from a number or the text of one; integers stay exact (nanoseconds)."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
        value = float(value) if "." in value else int(value)
    return value if isinstance(value, (int, float)) and -1e30 < value < 1e30 else None


def _status(names: Mapping[str, Any]) -> tuple[Status, str]:
    code, message = pick(names, _STATUS), names.get("statusmessage")
    if isinstance(code, dict):
        inner = plain_keys(code)
        message = pick(inner, ("message", "description", "statusmessage")) or message
        code = pick(inner, ("code", "statuscode"))
    word = _word(code)
    status: Status = "unset"
    if word in ("ERROR", "2"):
        status = "error"
    elif word in ("OK", "1"):
        status = "ok"
    return status, text_of(message)


def _word(value: Any) -> str:
    """The word of an enumeration: SpanKind.CLIENT, SPAN_KIND_CLIENT and Client are CLIENT."""
    word = text_of(value).rpartition(".")[2].upper()
    return word.removeprefix("STATUS_CODE_").removeprefix("SPAN_KIND_")


def _events(value: Any) -> list[RawEvent]:
    if isinstance(value, str):
        value = json_or_none(value)
    events = []
    for item in value if isinstance(value, list) else []:
        if isinstance(item, dict):
            names = plain_keys(item)
            at = _time(names, "timeunixnano", ("timestamp", "time"))
            attributes = attributes_of(names.get("attributes"))
            events.append(RawEvent(_name(names.get("name")), at, attributes))
    return events
