"""Read the failures that a span records, and decide whether a service caused them.

Service failures (rate limit, refused key, timeout, 5xx) are recognized by the type names and
message formats of libraries. Type names come from openai, anthropic, google-api-core, google-genai,
botocore, httpx, requests, urllib3, aiohttp, grpc, litellm and the standard library; message formats
come from their `__str__`. Free text counts only in the first line of a message.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import lru_cache
from http import HTTPStatus

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
_MARKS = ("isError", "is_error")  # how MCP and Anthropic mark a result as an error
_GENERIC = {"tool_error", "_OTHER", "error"}  # values of `error.type` that name no specific type
# This instrumentation sets the status to ok too early, and OpenTelemetry's SDK keeps the first ok.
# There the status says nothing, and the output of a tool that raised is its exception's text.
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
_MAX_BARE = 4000  # characters of such an exception text


@dataclass(frozen=True, slots=True)
class Fact:
    """One failure as described by its span; `type` is "" if only a message is available."""

    type: str
    message: str
    code: int | None = None


def failed(span: Span) -> bool:
    """Return whether the span itself failed: status error, or an exception that escaped it.

    An exception recorded in a span with status ok was handled, so it does not count.
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
    """Return whether a tool's output is just an exception's text and the status is unreliable."""
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
    """Return an HTTP status of 400 to 599 from the attributes, or None."""
    return next((code for name in _CODES if (code := _as_code(attributes.get(name)))), None)


def _as_code(value: JsonValue) -> int | None:
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) == 3:
        value = int(value)
    if isinstance(value, int) and not isinstance(value, bool) and 400 <= value <= 599:
        return value
    return None


def _object(text: str) -> dict[str, JsonValue] | None:
    try:
        value = json.loads(text) if text.lstrip()[:1] == "{" else None
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def _from_output(text: str) -> Fact:
    """Read the output of a failed tool: its error field, MCP content, or the text itself."""
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


# -- failures of a service -------------------------------------------------------------------------

_MAX_CHARACTERS = 800  # of a message


def _re(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern, re.IGNORECASE | re.VERBOSE)


_CONTEXT_TYPE = _re(r"ContextWindowExceeded|ContextLengthExceeded|ContextOverflow")
# OpenAI, vLLM, llama.cpp, llama-cpp-python, Anthropic, Google, Bedrock, Mistral
_CONTEXT = _re(r"""
    context_length_exceeded | exceed_context_size | context_window_exceeded
    | maximum\ context\ length\ (?:is|of)\ \d+
    | exceeds?\ (?:the\ |your\ )?(?:available\ )?context\ (?:size|window|length|limit)
    | prompt\ is\ too\ long | longer\ than\ the\ maximum\ model\ length
    | too\ long\ to\ fit\ into\ the\ model | input\ token\ count.{0,30}exceeds\ the\ maximum
    | input\ is\ too\ long\ for\ requested\ model
    | exceeds\ (?:the\ )?model'?s?\ (?:maximum\ )?context
    | too\ large\ for\ model\ with\ \d+\ maximum\ context""")
_TYPE = _re(r"""
    rate_?limit | too_?many_?requests | throttl | ^SlowDown$ | ^RequestLimitExceeded$
    | time_?d?_?out | deadline_?exceeded
    | authentication | unauthori[sz]ed | unauthenticated | ^(?:HTTP)?Forbidden
    | PermissionDenied | AccessDenied | invalid_?api_?key | ^OAuthError$ | ExpiredToken
    | InvalidClientTokenId | UnrecognizedClient | SignatureDoesNotMatch | ^AuthError$
    | ^(?:HTTP|Resource|Page)?NotFound(?:Error|Exception)?$
    | ^NoSuch(?:Key|Bucket|Entity)$ | ^(?:HTTP)?Gone$
    | ^(?:HTTP)?InternalServer(?:Error|Exception)$ | ServiceUnavailable
    | BadGateway | ^(?:Model)?Overloaded(?:Error)?$ | ^InternalFailure$
    | ^InternalServiceError(?:Exception)?$ | ^ServerError$
    | MemoryError$ | OutOfMemory | ^ResourceExhausted(?:Error)?$ | ^DiskFull$""")
_UNREACHABLE = _re(r"""^(?:API)?ConnectionError$ | ^ConnectError$
    | ^Connection(?:Refused|Reset)Error$ | ^ClientConnector(?:DNS)?Error$ | ^NewConnectionError$
    | ^NameResolutionError$ | ^ServerDisconnectedError$ | ^RemoteProtocolError$
    | ^RemoteDisconnected$ | ^EndpointConnectionError$""")
# These types are about data that could not be processed; their messages may quote any data.
_DATA = re.compile(
    r"(?:Value|Type|Key|Index|Assertion|Attribute|Name|Lookup|Syntax|JSONDecode|UnicodeDecode"
    r"|UnicodeEncode|ZeroDivision|Validation|Arithmetic)Error|StopIteration"
)
# A type name within a message: "litellm.RateLimitError: ...", "... due to: HTTPError: ..."
_NAMED = re.compile(
    r"(?:^|[:\n] ?|\()((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Timeout|Exhausted|NotFound"
    r"|Forbidden|Unauthorized|TooManyRequests|Expired|Exceeded|Unavailable))(?=:|\(|\s*$)"
)
# openai and anthropic, httpx, requests, urllib, aiohttp, google-genai, and a common wording
_SDK_STATUS = re.compile(
    r"\bError code: (\d{3})\b|\b(?:Client|Server) error '(\d{3}) "
    r"|\b(\d{3}) (?:Client|Server) Error: |\bHTTP Error (\d{3}): "
    r"|(?:^|: )(\d{3}), message='|(?:^|: )(\d{3}) [A-Z_]{6,}\. \{"
    r"|\bwith status code (\d{3})\b"
)
_ANY_STATUS = re.compile(
    r"\bHTTP(?:/\d(?:\.\d)?)?[ :]+(?:status |error |response |code )*(\d{3})\b"
    r"|\bstatus(?:[ _]?code)?\s?[:=]?\s?(\d{3})\b",
    re.IGNORECASE,
)
_PHRASES = {
    phrase.lower(): s.value
    for s in HTTPStatus
    if s.value >= 400
    for phrase in (f"{s.value} {s.phrase}", f"{s.phrase} ({s.value})")
}
_PHRASE = re.compile("|".join(map(re.escape, _PHRASES)), re.IGNORECASE)
_BOTO = re.compile(r"An error occurred \(([\w.]+)\) when calling the \w+ operation")
_GRPC = re.compile(r"StatusCode\.([A-Z_]+)")
_GRPC_CODE = re.compile(
    r"RESOURCE_EXHAUSTED|UNAUTHENTICATED|PERMISSION_DENIED|NOT_FOUND|UNAVAILABLE|INTERNAL"
    r"|DEADLINE_EXCEEDED"
)
# Linux: no space, disk quota, no memory, too many open files (process, system), timed out,
# connection refused, connection reset
_ERRNO = re.compile(r"\[Errno (?:28|122|12|24|23|110|111|104)\]")
_QUOTED = re.compile(  # text within quotation marks or backticks on one line
    r"\"[^\"\n]{1,400}\"|“[^”\n]{1,400}”|(?<!\w)'[^'\n]{1,400}'(?!\w)|`[^`\n]{1,400}`"
)
_WORDS = _re(r"""
    \brate[-\ ]?limit(?:s|ed|ing)?\b[^.]{0,40}\b(?:exceed|reach|hit)
    | \b(?:exceed|reach|hit)(?:ed|ing)?\b[^.]{0,40}\brate[-\ ]?limit | \brate[-\ ]?limited\b
    | \btoo\ many\ requests\b | \bquota\ exceeded\b
    | \btimed\ out\b | \btime-?out\ (?:after|of|exceeded|reached)\b | \btimeout\ expired\b
    | \bauthentication\ (?:failed|required)\b | ^unauthori[sz]ed\b
    | \b(?:invalid|incorrect|expired)\ (?:api[\ _-]?key|access\ token|bearer\ token|credentials)\b
    | \binternal\ server\ error\b | \bbad\ gateway\b
    | \bservice\ (?:is\ )?(?:temporarily\ )?unavailable\b
    | \bout\ of\ memory\b | \bno\ space\ left\ on\ device\b | \bcannot\ allocate\ memory\b
    | \bdatabase\ or\ disk\ is\ full\b""")
_SERVICE_CODES = {401, 403, 404, 407, 408, 410, 429}


@lru_cache(maxsize=1024)
def is_service_failure(fact: Fact) -> bool:
    """Return whether a failure looks like the failure of a service or resource."""
    head = fact.message.strip()
    if "Traceback (most recent call last)" in head[: 4 * _MAX_CHARACTERS]:
        head = head.rpartition("\n")[2]  # the line with the exception
    head = head[:_MAX_CHARACTERS]
    type_name = fact.type.rpartition(".")[2]
    patterns = ((_CONTEXT_TYPE, type_name), (_CONTEXT, head), (_TYPE, type_name))
    if any(pattern.search(text) for pattern, text in (*patterns, (_UNREACHABLE, type_name))):
        return True
    if _is_service_code(fact.code) or _has_service_form(head):
        return True
    if _DATA.fullmatch(type_name):
        return False
    unquoted = _QUOTED.sub(" ", head)
    if match := _PHRASE.search(unquoted):
        is_status = _is_service_code(_PHRASES[match[0].lower()])
    else:
        match = _ANY_STATUS.search(unquoted)
        is_status = match is not None and _is_service_code(int(match[1] or match[2]))
    first_line = _QUOTED.sub(" ", head.partition("\n")[0])
    return is_status or _WORDS.search(first_line) is not None


def _is_service_code(code: int | None) -> bool:
    """Return whether an HTTP status blames the service; 400 and 422 blame the request."""
    return code is not None and (code in _SERVICE_CODES or 500 <= code <= 599)


def _has_service_form(head: str) -> bool:
    """Return whether the message has a library's fixed format for service failures."""
    if match := _SDK_STATUS.search(head):
        return _is_service_code(int(next(filter(None, match.groups()))))
    if match := _BOTO.search(head):
        code = match[1]
        is_type = _TYPE.search(code) is not None
        return is_type or _is_service_code(int(code) if code.isdigit() else None)
    match = _GRPC.search(head)
    if _ERRNO.search(head) or (match and _GRPC_CODE.fullmatch(match[1])):
        return True
    return any(_TYPE.search(name[1].rpartition(".")[2]) for name in _NAMED.finditer(head))
