"""Tell failures of a service (rate limit, refused key, timeout, 5xx) from failures of the agent.

They are recognized by the names and forms that libraries give their errors. Names of types are
those of openai, anthropic, google-api-core, google-genai, botocore, httpx, requests, urllib3,
aiohttp, grpc, litellm and the standard library; forms of messages are those of their `__str__`.
Free words count only in the first line of a message.
"""

from __future__ import annotations

import re
from functools import lru_cache
from http import HTTPStatus

from agenteval.traces.span_failures import Fact

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
# These types are about data that could not be processed; numbers and words in their messages are
# data.
_DATA = re.compile(
    r"(?:Value|Type|Key|Index|Assertion|Attribute|Name|Lookup|Syntax|JSONDecode|UnicodeDecode"
    r"|UnicodeEncode|ZeroDivision|Validation|Arithmetic)Error|StopIteration"
)
# The name of a type within a message: "litellm.RateLimitError: ...", "... due to: HTTPError: ..."
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
    """Return whether the form of a failure says that a service or resource failed."""
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
    return _has_status_words(head) or _has_service_words(head)


def _is_service_code(code: int | None) -> bool:
    """Return whether an HTTP status is about the service; 400 and 422 are about the request."""
    return code is not None and (code in _SERVICE_CODES or 500 <= code <= 599)


def _has_service_form(head: str) -> bool:
    """Return whether the message has the fixed form that a library gives to service failures."""
    if match := _SDK_STATUS.search(head):
        return _is_service_code(int(next(filter(None, match.groups()))))
    if match := _BOTO.search(head):
        code = match[1]
        is_type = _TYPE.search(code) is not None
        return is_type or _is_service_code(int(code) if code.isdigit() else None)
    if (match := _GRPC.search(head)) and _GRPC_CODE.fullmatch(match[1]):
        return True
    if _ERRNO.search(head):
        return True
    return any(
        _TYPE.search(error_name[1].rpartition(".")[2]) for error_name in _NAMED.finditer(head)
    )


def _has_status_words(head: str) -> bool:
    unquoted = _QUOTED.sub(" ", head)
    if match := _PHRASE.search(unquoted):
        return _is_service_code(_PHRASES[match[0].lower()])
    match = _ANY_STATUS.search(unquoted)
    return match is not None and _is_service_code(int(match[1] or match[2]))


def _has_service_words(head: str) -> bool:
    first_line = _QUOTED.sub(" ", head.partition("\n")[0])
    return _WORDS.search(first_line) is not None
