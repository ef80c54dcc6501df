"""Find spans in files and read them as RawSpan, whatever the spelling of their keys.

Reads nested trees, OTLP/JSON, lists and lines of single spans; attributes nested, with dotted keys,
as OTLP's typed values, or as JSON text.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import lru_cache
from typing import Any, Literal

from agenteval.readers.attributes import attributes_of, bounded, text_of
from agenteval.readers.fields import MESSAGES, OUTPUT, Context, snake, words
from agenteval.readers.observations import is_observed, translated
from agenteval.readers.strict_json import json_or_none
from agenteval.records import SpanEvent

WANTED = (
    "a trace is a JSON object with `spans` or `resourceSpans`, lists of spans under names, or JSON "
    "lines of spans with `trace_id` and `span_id`"
)

# Keys in the form of `plain`; the first with a value counts.
_ID = ("spanid", "id")
_PARENT = ("parentspanid", "parentid", "parent")
_NAME = ("name", "spanname", "operationname")
_ATTRIBUTES = ("attributes", "spanattributes")
_CHILDREN = ("childspans", "children")
_START = ("starttime", "timestamp", "start", "starttimestamp")
_END = ("endtime", "end", "endtimestamp")
_STATUS = ("statuscode", "status", "otelstatuscode")
_MESSAGE = ("statusmessage", "otelstatusmessage")
_EVENTS = ("events", "otelevents")
_RESOURCE = ("resource", "resourceattributes", "otelresourceattributes")
_DURATIONS = {"durationms": 1e3, "durationns": 1e9, "durationnano": 1e9, "durationnanos": 1e9}
_KNOWN = frozenset(
    (*_ID, *_PARENT, *_NAME, *_ATTRIBUTES, *_CHILDREN, *_START, *_END, *_STATUS, *_DURATIONS)
) | {
    *(*_MESSAGE, *_EVENTS, *_RESOURCE),
    *words("traceid context starttimeunixnano endtimeunixnano duration spankind kind"),
}
_GROUPS = ("resourcespans", "scopespans", "instrumentationlibraryspans", "batches")
_LISTS = (*_GROUPS, "traces", "data", "runs", "rows")
_SPAN = frozenset({"spanid", "parentspanid", "childspans", "starttimeunixnano"})
# Some logs use a trace id as the name of a run, so one of these is required as well.
_BESIDE_TRACE = frozenset({"attributes", "spanattributes", "parentid", "spanname", "spankind"})
_BESIDE_ATTRIBUTES = frozenset({"parentid", "starttime"})
_EVIDENCE = frozenset({*OUTPUT, *MESSAGES})
_LONGEST_KEY = 40

_HEX = re.compile(r"(?:0x)?([0-9a-fA-F]{16}|[0-9a-fA-F]{32})")
_BASE64 = re.compile(r"[A-Za-z0-9+/_-]{11}=|[A-Za-z0-9+/_-]{22}==")
_DURATION = re.compile(
    r"P(?:(\d+)D)?T?(?:(\d+(?:\.\d+)?)H)?(?:(\d+(?:\.\d+)?)M)?(?:(\d+(?:\.\d+)?)S)?"
)
_DIGITS = re.compile(r"\d{1,25}(\.\d{1,25})?", re.A)


# ---- one span ------------------------------------------------------------------------------------


@dataclass(slots=True)
class RawSpan:
    """The parts of a span; ids in hexadecimal where possible, times in seconds since 1970.

    `attributes` and `resource` are flat. Other keys of the span are in the attributes under their
    original names. Missing parts are None, "" or empty.
    """

    id: str | None
    parent: str | None
    trace: str | None
    name: str
    kind: str
    start: float | None
    end: float | None
    status: Literal["ok", "error", "unset"]
    message: str
    events: list[SpanEvent]
    attributes: dict[str, Any]
    resource: dict[str, Any]


@lru_cache(maxsize=4096)
def plain(key: str) -> str:
    """Normalize case, underscores and hyphens of a key: span_id, spanId and SpanID are equal."""
    return key.replace("_", "").replace("-", "").lower().removeprefix("context.")


def _plain_keys(value: Mapping[str, Any]) -> dict[str, Any]:
    """Return the values by plain key, including those of a nested `context` (the SDK's JSON)."""
    names = {plain(key): item for key, item in value.items() if len(key) <= _LONGEST_KEY}
    context = names.get("context")
    if isinstance(context, dict):
        names |= {plain(key): item for key, item in context.items() if len(key) <= _LONGEST_KEY}
    return names


def _pick(names: Mapping[str, Any], keys: tuple[str, ...]) -> Any:
    return next((names[key] for key in keys if names.get(key) is not None), None)


def _raw_span(value: Mapping[str, Any], names: Mapping[str, Any]) -> RawSpan:
    start = _time(names, "starttimeunixnano", _START)
    code, message = _pick(names, _STATUS), _pick(names, _MESSAGE)
    if isinstance(code, dict):
        inner = _plain_keys(code)
        message = _pick(inner, ("message", "description", "statusmessage")) or message
        code = _pick(inner, ("code", "statuscode"))
    status = _word(code)
    parent, name = _pick(names, _PARENT), _pick(names, _NAME)
    return RawSpan(
        id=id_of(_pick(names, _ID)),
        parent=id_of(_pick(_plain_keys(parent), _ID) if isinstance(parent, dict) else parent),
        trace=id_of(names.get("traceid")),
        name=name if isinstance(name, str) else "",
        kind=_word(_pick(names, ("spankind", "kind"))),
        start=start,
        end=_end(names, start),
        status="error" if status in ("ERROR", "2") else "ok" if status in ("OK", "1") else "unset",
        message=text_of(message),
        events=list(_events(_pick(names, _EVENTS))),
        attributes=_span_attributes(value, names),
        resource=_resource(names),
    )


def _resource(names: Mapping[str, Any]) -> dict[str, Any]:
    value = _pick(names, _RESOURCE)
    if isinstance(value, dict) and isinstance(value.get("attributes"), (dict, list)):
        value = value["attributes"]
    return attributes_of(value)


def _span_attributes(value: Mapping[str, Any], names: Mapping[str, Any]) -> dict[str, Any]:
    flat: dict[str, Any] = {}
    for key in _ATTRIBUTES:
        flat |= attributes_of(names.get(key))
    for key, item in value.items():
        if key.startswith("attributes."):  # a table of spans with a column per attribute
            if item is not None:
                flat |= attributes_of({key[11:]: item})
        elif plain(key) not in _KNOWN and item not in (None, "", [], {}):
            flat.setdefault(key, bounded(item))
    return flat


def id_of(value: Any) -> str | None:
    """Return an id: 8 or 16 bytes in hexadecimal or base64 as lower hexadecimal, others unchanged.

    Returns None for a missing or all-zero id.
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


def _time(names: Mapping[str, Any], nano: str, keys: tuple[str, ...]) -> float | None:
    if names.get(nano) is None:
        return seconds(_pick(names, keys))
    number = _number(names[nano])
    return None if number is None or number <= 0 else number / 10**9


def _end(names: Mapping[str, Any], start: float | None) -> float | None:
    end = _time(names, "endtimeunixnano", _END)
    if end is not None or start is None:
        return end
    for keys in (("durationms",), ("durationns", "durationnano", "durationnanos")):
        number = _number(_pick(names, keys))
        if number is not None:
            return start + number / _DURATIONS[keys[0]]
    duration = names.get("duration")  # a bare number has no unit
    text = duration if isinstance(duration, str) and len(duration) < 60 else ""
    match = _DURATION.fullmatch(text)
    if match is None or not any(match.groups()):
        return None
    units = zip(match.groups(), (86400.0, 3600.0, 60.0, 1.0), strict=True)
    return start + sum(float(n or 0) * unit for n, unit in units)


def seconds(value: Any) -> float | None:
    """Return seconds since 1970 from an ISO time (UTC if it names no zone) or a number.

    The magnitude of a number decides its unit: 1e11 is the year 5138 in seconds, but 1973 in
    milliseconds; likewise for micro- and nanoseconds. Returns None for anything else.
    """
    number = _number(value)
    if number is not None:
        if number <= 0 or number >= 1e20:
            return None
        units = ((1e11, 1), (1e14, 10**3), (1e17, 10**6), (1e20, 10**9))
        return number / next(unit for bound, unit in units if number < bound)
    try:
        moment = datetime.fromisoformat(value.strip().removesuffix(" UTC"))
        return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()
    except (AttributeError, ValueError, OverflowError):
        return None


def _number(value: Any) -> int | float | None:
    """Return a finite number from a number or string; integers (nanoseconds) stay exact."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and _DIGITS.fullmatch(value.strip()):
        value = float(value) if "." in value else int(value)
    return value if isinstance(value, (int, float)) and -1e30 < value < 1e30 else None


def _word(value: Any) -> str:
    """Normalize enumeration names: CLIENT for SpanKind.CLIENT, SPAN_KIND_CLIENT and Client."""
    word = text_of(value).rpartition(".")[2].upper()
    return word.removeprefix("STATUS_CODE_").removeprefix("SPAN_KIND_")


def _events(value: Any) -> Iterator[SpanEvent]:
    if isinstance(value, str):
        value = json_or_none(value)
    for item in value if isinstance(value, list) else []:
        if isinstance(item, dict):
            names = _plain_keys(item)
            name = _pick(names, ("name", "eventname"))
            at = _time(names, "timeunixnano", ("timestamp", "time", "eventtimestamp"))
            attributes = attributes_of(names.get("attributes"))
            name = name if isinstance(name, str) else ""
            yield SpanEvent(name=name, at=at, attributes=attributes)


# ---- finding spans in files ----------------------------------------------------------------------


def is_trace(value: Any) -> bool:
    """Return whether a JSON value is a trace or a span, and not a run in another format."""
    if isinstance(value, list):
        return bool(value) and is_trace(value[0])
    if not isinstance(value, dict):
        return False
    names = _plain_keys(value)
    if any(isinstance(names.get(key), list) for key in _GROUPS) or _is_span(names):
        return True
    if is_observed(value):
        return True
    spans = names.get("spans")
    if isinstance(spans, list):
        has_answer = any(snake(key) in _EVIDENCE for key in value if len(key) <= _LONGEST_KEY)
        keys = [_plain_keys(span) for span in spans[:20] if isinstance(span, dict)]
        return any("spanid" in names or (not has_answer and _is_span(names)) for names in keys)
    first = next(
        (names[key][0] for key in _LISTS if isinstance(names.get(key), list) and names[key]), None
    )
    if isinstance(first, dict) and (_is_span(_plain_keys(first)) or is_observed(first)):
        return True
    inner = next((names[k] for k in ("trace", "data") if isinstance(names.get(k), dict)), None)
    if inner is not None:
        return is_trace(inner)
    return _is_named(value)


def _is_named(value: Mapping[str, Any]) -> bool:
    """Return whether an object has only lists of spans, named by project or trace."""
    lists = [rows for rows in value.values() if rows != []]
    return bool(lists) and all(
        isinstance(rows, list) and isinstance(rows[0], dict) and _is_span(_plain_keys(rows[0]))
        for rows in lists
    )


def _is_span(names: Mapping[str, Any]) -> bool:
    return (
        not _SPAN.isdisjoint(names)
        or ("traceid" in names and not _BESIDE_TRACE.isdisjoint(names))
        or (any(a in names for a in _ATTRIBUTES) and not _BESIDE_ATTRIBUTES.isdisjoint(names))
    )


def keeps_spans(key: str) -> bool:
    """Return whether a list under this key contains spans or groups of spans."""
    return plain(key) in (*_LISTS, *_CHILDREN, "spans")


@dataclass(frozen=True, slots=True)
class _Around:
    """Facts about a span from its enclosing objects."""

    trace: str | None = None
    parent: str | None = None
    resource: dict[str, Any] = field(default_factory=dict)
    scope: str | None = None
    spans: bool = False  # in a list of spans, every object is a span


@dataclass
class Walker:
    """Finds spans in values; spans without an id are numbered across the file."""

    unnamed: int = 0

    def spans(self, value: Any, context: Context) -> Iterator[RawSpan]:
        """Yield spans in file order, parents first, at any depth of nesting."""
        stack: list[tuple[Any, _Around]] = [(value, _Around())]
        while stack:
            item, enclosing = stack.pop()
            if isinstance(item, list):
                stack.extend((inner, enclosing) for inner in reversed(item))
                continue
            item = translated(item, context.place) if isinstance(item, dict) else item
            names = _plain_keys(item) if isinstance(item, dict) else {}
            inside = _inside(names, enclosing)
            if not inside and names and not _is_span(names) and _is_named(item):
                inside = [(rows, _Around(id_of(name), spans=True)) for name, rows in item.items()]
            if inside:
                stack.extend(reversed(inside))
            elif names and (enclosing.spans or _is_span(names)):
                span = self._span(item, names, enclosing, context)
                yield span
                inner = _Around(span.trace, span.id, span.resource, enclosing.scope, True)
                stack.extend((names[k], inner) for k in reversed(_CHILDREN) if names.get(k))
            else:
                kind = "an object" if names else "a value"
                context.notes.add(f"{kind} that is not a span was skipped", context.place)

    def _span(
        self, item: dict[str, Any], names: dict[str, Any], enclosing: _Around, context: Context
    ) -> RawSpan:
        span = _raw_span(item, names)
        if span.id is None:
            self.unnamed += 1
            span.id = f"unnamed-{self.unnamed}"
            context.notes.add("a span without id got a number as its name", context.place)
        span.trace = span.trace or enclosing.trace
        span.parent = enclosing.parent or span.parent
        span.resource = span.resource or enclosing.resource
        if enclosing.scope:
            span.attributes.setdefault("scope_name", enclosing.scope)
        return span


def _inside(names: dict[str, Any], enclosing: _Around) -> list[tuple[Any, _Around]]:
    if _is_span(names) and not any(isinstance(names.get(key), list) for key in _GROUPS):
        return []
    scope = _pick(names, ("scope", "instrumentationlibrary"))
    scope = scope.get("name") if isinstance(scope, dict) else None
    scope = scope if isinstance(scope, str) and scope else enclosing.scope
    trace = id_of(names.get("traceid")) or enclosing.trace
    resource = _resource(names) or enclosing.resource
    group = _Around(trace, None, resource, scope)
    parts = [(names[key], group) for key in _LISTS if isinstance(names.get(key), list)]
    parts += [(names[key], group) for key in ("trace", "data") if isinstance(names.get(key), dict)]
    if isinstance(names.get("spans"), list):
        parts.append((names["spans"], _Around(trace, enclosing.parent, resource, scope, True)))
    return parts
