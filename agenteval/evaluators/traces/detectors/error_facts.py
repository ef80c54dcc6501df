"""What a span says of its own failure: type, message and HTTP status, from its form alone."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass

from pydantic import JsonValue

from agenteval.evaluators.traces.detectors.registry import TraceView
from agenteval.records import Span, SpanEvent

_CODES = (
    "http.response.status_code", "http.status_code", "status_code", "exception.status_code",
    "http.response.status", "error.code",
)  # fmt: skip
_MARKS = ("isError", "is_error")  # MCP's and Anthropic's word for a result that is an error
_GENERIC = {"tool_error", "_OTHER", "error"}  # values of `error.type` that say no type
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
    r"|\[Errno \d+\] .*|No module named '[\w.]+'|'[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+'"
    r"|[\w.]+\(\) (?:got an unexpected keyword|missing \d+ required) .*"
    r"|[^\n]*\(<\w+>, line \d+\)",
    re.DOTALL,
)
_BARE_MOST = 4000  # characters of such a text
_MOST = 200_000  # characters of an output that are read as JSON


@dataclass(frozen=True, slots=True)
class Fact:
    """One failure as its span tells it; `type` is "" where only a text is known.

    `sure` is below 1 where the span does not say that it failed."""

    type: str
    message: str
    code: int | None = None
    sure: float = 1.0


def failed(span: Span) -> bool:
    """Whether the span itself failed: status error, or an exception that left it.

    An exception that is only noted, in a span whose status is ok, was caught by design."""
    if span.status == "unset":
        return any(_left(event) for event in span.events)
    return span.status == "error"


def _left(event: SpanEvent) -> bool:
    escaped = event.attributes.get("exception.escaped")
    return event.name == "exception" and (escaped is True or str(escaped).lower() == "true")


def facts(span: Span) -> list[Fact]:
    """The failures of a span; empty when it did not fail."""
    marked = span.kind == "tool" and _marked(span.output)
    if not (failed(span) or marked):
        return [Fact("", span.output, sure=0.8)] if _bare(span) else []
    found = list(_exceptions(span))
    if found:
        return found
    kind = span.attributes.get("error.type")
    dotted = kind if isinstance(kind, str) and kind not in _GENERIC else ""
    code = status_code(span.attributes)
    if dotted.isdigit():
        code, dotted = code or _as_code(dotted), ""
    found.append(Fact(dotted, span.status_message, code))
    if span.kind == "tool":
        found.append(_from_output(span.output))
    return found


def _bare(span: Span) -> bool:
    """Whether the whole output of a tool is an exception's text, where the status says nothing."""
    if span.kind != "tool" or span.status != "ok" or len(span.output) > _BARE_MOST:
        return False
    scoped = span.attributes.get("scope_name") == _ALWAYS_OK
    return scoped and _BARE.fullmatch(span.output.strip()) is not None


def all_facts(view: TraceView) -> list[list[Fact]]:
    """The failures of every span of a view, by position."""
    return [facts(span) for span in view.spans]


def _exceptions(span: Span) -> Iterator[Fact]:
    for event in span.events:
        given = event.attributes
        kind, message = given.get("exception.type"), given.get("exception.message")
        if event.name != "exception" and kind is None:
            continue
        code = status_code(given) or status_code(span.attributes)
        text = message if isinstance(message, str) else ""
        if not text:
            trace = given.get("exception.stacktrace")
            text = trace.strip().rpartition("\n")[2] if isinstance(trace, str) else ""
        yield Fact(kind if isinstance(kind, str) else "", text or span.status_message, code)


def status_code(attributes: dict[str, JsonValue]) -> int | None:
    """An HTTP status of 400 to 599 among the attributes; None without one."""
    if not attributes:
        return None
    return next((code for name in _CODES if (code := _as_code(attributes.get(name)))), None)


def _as_code(value: JsonValue) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == 3:
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599:
        return value
    return None


def _object(text: str) -> dict[str, JsonValue] | None:
    if text.lstrip()[:1] != "{" or len(text) > _MOST:
        return None
    try:
        value = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _marked(text: str) -> bool:
    if not any(mark in text for mark in _MARKS):
        return False
    value = _object(text)
    return value is not None and any(value.get(mark) is True for mark in _MARKS)


def _from_output(text: str) -> Fact:
    """The output of a failed tool: its error field, MCP content, or the text itself."""
    value = _object(text)
    if value is None:
        return Fact("", text)
    code, inner = status_code(value), value.get("error")
    if isinstance(inner, dict):
        code = code or status_code(inner) or _as_code(inner.get("code") or inner.get("status"))
        value = inner
    code = code or _as_code(value.get("code") or value.get("status"))
    content = value.get("content")
    first = content[0] if isinstance(content, list) and content else None
    words = (
        inner, value.get("message"), value.get("detail"), content,
        first.get("text") if isinstance(first, dict) else None,
    )  # fmt: skip
    return Fact("", next((w for w in words if isinstance(w, str) and w), text), code)
