"""The failures that a span records about itself."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pydantic import JsonValue

from agenteval.records import Span

_CODES = (
    "http.response.status_code",
    "http.status_code",
    "status_code",
    "exception.status_code",
    "http.response.status",
    "error.code",
)
_MARKS = ("isError", "is_error")  # MCP's and Anthropic's word for a result that is an error
_GENERIC = {"tool_error", "_OTHER", "error"}  # values of `error.type` that are no type
# This instrumentation sets the status to ok before it knows better, and OpenTelemetry's SDK keeps
# the first ok: there it says nothing, and a tool that raised has the bare text of its exception.
_ALWAYS_OK = "openinference.instrumentation.autogen_agentchat"
_BARE = re.compile(
    r"Error code: \d{3}(?: - .*)?"  # openai, anthropic
    r"|(?:Client|Server) error '\d{3} [^']*' for url '[^']*'.*"  # httpx
    r"|\d{3} (?:Client|Server) Error: .* for url: \S+"  # requests
    r"|HTTP Error \d{3}: .*"  # urllib
    r"|\d{3}, message='.*', url='.*'"  # aiohttp
    r"|An error occurred \([\w.]+\) when calling the \w+ operation.*"  # botocore
    r"|Error executing tool \w+: .*"  # MCP
    r"|HTTPS?ConnectionPool\(.*\).*"  # urllib3
    r"|Request timed out\.|Timed out while waiting for response to .*"
    r"|Command .* timed out after [\d.]+ seconds"
    r"|\[Errno \d+\] .*|No module named '[\w.]+'"
    r"|[\w.]+\(\) (?:got an unexpected keyword|missing \d+ required) .*"
    r"|[^\n]*\(<\w+>, line \d+\)",
    re.DOTALL,
)
_MAX_BARE = 4000  # characters of such a text
_MAX_JSON = 200_000  # characters of an output that are read as JSON


@dataclass(frozen=True, slots=True)
class Fact:
    """One failure as described by its span; `type` is "" if only a text is available."""

    type: str
    message: str
    code: int | None = None


def failed(span: Span) -> bool:
    """Return whether the span itself failed: status error, or an exception that left it.

    An exception that is only recorded, in a span whose status is ok, was caught by design.
    """
    if span.status != "unset":
        return span.status == "error"
    escaped = (e.attributes.get("exception.escaped") for e in span.events if e.name == "exception")
    return any(str(value).lower() == "true" for value in escaped)


def facts(span: Span) -> list[Fact]:
    """Return the failures of a span; empty if it did not fail."""
    marked = span.kind == "tool" and any(mark in span.output for mark in _MARKS)
    value = _object(span.output) if marked else None
    if not failed(span) and not (value and any(value.get(mark) is True for mark in _MARKS)):
        return [Fact("", span.output)] if _is_bare(span) else []
    if raised := list(_exceptions(span)):
        return raised
    kind = span.attributes.get("error.type")
    dotted = kind if isinstance(kind, str) and kind not in _GENERIC else ""
    code = _status_code(span.attributes)
    if dotted.isdigit():
        code, dotted = code or _as_code(dotted), ""
    stated = [Fact(dotted, span.status_message, code)]
    return [*stated, _from_output(span.output)] if span.kind == "tool" else stated


def _is_bare(span: Span) -> bool:
    """Whether the output of a tool is only an exception's text and the status says nothing."""
    if span.kind != "tool" or span.status != "ok" or len(span.output) > _MAX_BARE:
        return False
    scoped = span.attributes.get("scope_name") == _ALWAYS_OK
    return scoped and _BARE.fullmatch(span.output.strip()) is not None


def _exceptions(span: Span) -> Iterator[Fact]:
    for event in span.events:
        attributes = event.attributes
        kind, message = attributes.get("exception.type"), attributes.get("exception.message")
        if event.name != "exception" and kind is None:
            continue
        code = _status_code(attributes) or _status_code(span.attributes)
        text = message if isinstance(message, str) else ""
        if not text:
            trace = attributes.get("exception.stacktrace")
            text = trace.strip().rpartition("\n")[2] if isinstance(trace, str) else ""
        yield Fact(kind if isinstance(kind, str) else "", text or span.status_message, code)


def _status_code(attributes: Mapping[str, JsonValue]) -> int | None:
    """An HTTP status of 400 to 599 among the attributes; None without one."""
    return next((code for name in _CODES if (code := _as_code(attributes.get(name)))), None)


def _as_code(value: JsonValue) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == 3:
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599:
        return value
    return None


def _object(text: str) -> dict[str, JsonValue] | None:
    if text.lstrip()[:1] != "{" or len(text) > _MAX_JSON:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _from_output(text: str) -> Fact:
    """The output of a failed tool: its error field, MCP content, or the text itself."""
    value = _object(text)
    if value is None:
        return Fact("", text)
    code, inner = _status_code(value), value.get("error")
    if isinstance(inner, dict):
        code = code or _status_code(inner) or _as_code(inner.get("code") or inner.get("status"))
        value = inner
    code = code or _as_code(value.get("code") or value.get("status"))
    content = value.get("content")
    first = content[0] if isinstance(content, list) and content else None
    nested = first.get("text") if isinstance(first, dict) else None
    texts = (inner, value.get("message"), value.get("detail"), content, nested)
    return Fact("", next((w for w in texts if isinstance(w, str) and w), text), code)
