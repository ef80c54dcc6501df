"""Patterns of types and messages by which libraries name the kinds of failures."""

from __future__ import annotations

import re
from http import HTTPStatus
from typing import Literal

Kind = Literal["rate", "auth", "missing", "service", "timeout", "exhausted", "setup", "context"]


def _any(*parts: str) -> re.Pattern[str]:
    return re.compile("|".join(parts), re.IGNORECASE)


CONTEXT_TYPE = _any(r"ContextWindowExceeded", r"ContextLengthExceeded", r"ContextOverflow")
# OpenAI, vLLM, llama.cpp, llama-cpp-python, Anthropic, Google, Bedrock, Mistral
CONTEXT = _any(
    r"context_length_exceeded",
    r"exceed_context_size",
    r"context_window_exceeded",
    r"maximum context length (?:is|of) \d+",
    r"exceeds? (?:the |your )?(?:available )?context (?:size|window|length|limit)",
    r"prompt is too long",
    r"longer than the maximum model length",
    r"too long to fit into the model",
    r"input token count.{0,30}exceeds the maximum",
    r"input is too long for requested model",
    r"exceeds (?:the )?model'?s? (?:maximum )?context",
    r"too large for model with \d+ maximum context",
)
TYPES: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (
        _any(
            r"rate_?limit", r"too_?many_?requests", r"throttl", r"^SlowDown$",
            r"^RequestLimitExceeded$",
        ),
        "rate",
    ),
    (_any(r"time_?d?_?out", r"deadline_?exceeded"), "timeout"),
    (
        _any(
            r"authentication", r"unauthori[sz]ed", r"unauthenticated", r"^(?:HTTP)?Forbidden",
            r"PermissionDenied", r"AccessDenied", r"invalid_?api_?key", r"^OAuthError$",
            r"ExpiredToken", r"InvalidClientTokenId", r"UnrecognizedClient",
            r"SignatureDoesNotMatch", r"^AuthError$",
        ),
        "auth",
    ),
    (
        _any(
            r"^(?:HTTP|Resource|Page)?NotFound(?:Error|Exception)?$",
            r"^NoSuch(?:Key|Bucket|Entity)$", r"^(?:HTTP)?Gone$",
        ),
        "missing",
    ),
    (
        _any(
            r"^(?:HTTP)?InternalServer(?:Error|Exception)$", r"ServiceUnavailable", r"BadGateway",
            r"^(?:Model)?Overloaded(?:Error)?$", r"^InternalFailure$",
            r"^InternalServiceError(?:Exception)?$", r"^ServerError$",
        ),
        "service",
    ),
    (
        _any(r"MemoryError$", r"OutOfMemory", r"^ResourceExhaustedError$", r"^DiskFull$"),
        "exhausted",
    ),
    (
        _any(
            r"^ModuleNotFoundError$", r"^(?:No|Partial|Default)Credentials(?:Error)?$",
            r"^NoRegionError$", r"^ProfileNotFound$", r"^MissingEnvironment",
        ),
        "setup",
    ),
)  # fmt: skip
UNREACHABLE = _any(
    r"^(?:API)?ConnectionError$", r"^ConnectError$", r"^Connection(?:Refused|Reset)Error$",
    r"^ClientConnector(?:DNS)?Error$", r"^NewConnectionError$", r"^NameResolutionError$",
    r"^ServerDisconnectedError$", r"^RemoteProtocolError$", r"^RemoteDisconnected$",
    r"^EndpointConnectionError$",
)  # fmt: skip
# These tell of data that could not be worked with; numbers and words in their messages are data.
DATA = {
    "ValueError", "TypeError", "KeyError", "IndexError", "AssertionError", "AttributeError",
    "NameError", "LookupError", "SyntaxError", "JSONDecodeError", "UnicodeDecodeError",
    "UnicodeEncodeError", "ZeroDivisionError", "ValidationError", "StopIteration",
    "ArithmeticError",
}  # fmt: skip
# The name of a type within a message: "litellm.RateLimitError: ...", "... due to: HTTPError: ..."
NAMED = re.compile(
    r"(?:^|[:\n] ?|\()((?:[A-Za-z_]\w*\.)*[A-Z]\w*(?:Error|Exception|Timeout|Exhausted|NotFound"
    r"|Forbidden|Unauthorized|TooManyRequests|Expired|Exceeded|Unavailable))(?=:|\(|\s*$)"
)
# openai and anthropic, httpx, requests, urllib, aiohttp, google-genai, and a common wording
SDK_STATUS = re.compile(
    r"\bError code: (\d{3})\b"
    r"|\b(?:Client|Server) error '(\d{3}) "
    r"|\b(\d{3}) (?:Client|Server) Error: "
    r"|\bHTTP Error (\d{3}): "
    r"|(?:^|: )(\d{3}), message='"
    r"|(?:^|: )(\d{3}) [A-Z_]{6,}\. \{"
    r"|\bwith status code (\d{3})\b"
)
ANY_STATUS = re.compile(
    r"\bHTTP(?:/\d(?:\.\d)?)?[ :]+(?:status |error |response |code )*(\d{3})\b"
    r"|\bstatus(?:[ _]?code)?\s?[:=]?\s?(\d{3})\b",
    re.IGNORECASE,
)
PHRASES: dict[str, int] = {
    f"{s.value} {s.phrase}".lower(): s.value for s in HTTPStatus if s.value >= 400
} | {f"{s.phrase} ({s.value})".lower(): s.value for s in HTTPStatus if s.value >= 400}
PHRASE = _any(*map(re.escape, PHRASES))
BOTO = re.compile(r"An error occurred \(([\w.]+)\) when calling the \w+ operation")
GRPC = re.compile(r"StatusCode\.([A-Z_]+)")
GRPC_KINDS: dict[str, Kind] = {
    "RESOURCE_EXHAUSTED": "rate",
    "UNAUTHENTICATED": "auth",
    "PERMISSION_DENIED": "auth",
    "NOT_FOUND": "missing",
    "UNAVAILABLE": "service",
    "INTERNAL": "service",
    "DEADLINE_EXCEEDED": "timeout",
}
ERRNO = re.compile(r"\[Errno (\d+)\]")  # numbers of Linux
ERRNO_KINDS: dict[str, tuple[Kind, float]] = {
    "28": ("exhausted", 1.0),  # no space left on device
    "122": ("exhausted", 1.0),  # disk quota exceeded
    "12": ("exhausted", 1.0),  # cannot allocate memory
    "24": ("exhausted", 1.0),  # too many open files
    "23": ("exhausted", 1.0),
    "13": ("setup", 1.0),  # permission denied
    "1": ("setup", 1.0),  # operation not permitted
    "30": ("setup", 1.0),  # read-only file system
    "110": ("timeout", 1.0),
    "111": ("service", 0.7),  # connection refused
    "104": ("service", 0.7),  # connection reset by peer
}
_VARIABLE = r"(?-i:\b[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)+\b)"
SETUP = _any(
    rf"{_VARIABLE}['\"`]?\s+(?:environment variable\s+)?(?:(?:is|was|has)\s+)?"
    r"(?:not\s+(?:been\s+)?(?:set|found|defined|configured)|missing|unset|undefined|must be set)",
    r"\b(?:missing|set(?:ting)?|add) (?:the |an? )?(?:required )?environment variable",
    rf"environment variable\W{{1,3}}{_VARIABLE}",
    rf"{_VARIABLE}['\"`]? environment variable",
    r"\bNo module named\b",
    r"cannot open shared object file",
    r"\bcommand not found\b",
    r"\bapi[ _-]?key (?:is |was )?(?:missing|not (?:set|found|configured))",
    r"\bExecutable doesn't exist at\b",
    r"\bUnable to locate credentials\b",
)
ENV_KEY = re.compile(rf"['\"]?({_VARIABLE})['\"]?")
ENV_SECRET = re.compile(r"KEY|TOKEN|SECRET|PASSWORD|ENDPOINT|URL$|CREDENTIALS")
WORDS: tuple[tuple[re.Pattern[str], Kind], ...] = (
    (
        _any(
            r"\brate[- ]?limit(?:s|ed|ing)?\b[^.]{0,40}\b(?:exceed|reach|hit)",
            r"\b(?:exceed|reach|hit)(?:ed|ing)?\b[^.]{0,40}\brate[- ]?limit",
            r"\brate[- ]?limited\b", r"\btoo many requests\b", r"\bquota exceeded\b",
        ),
        "rate",
    ),
    (
        _any(
            r"\btimed out\b", r"\btime-?out (?:after|of|exceeded|reached)\b",
            r"\btimeout expired\b",
        ),
        "timeout",
    ),
    (
        _any(
            r"\bauthentication (?:failed|required)\b", r"^unauthori[sz]ed\b",
            r"\b(?:invalid|incorrect|expired) (?:api[ _-]?key|access token|bearer token"
            r"|credentials)\b",
        ),
        "auth",
    ),
    (
        _any(
            r"\binternal server error\b", r"\bservice (?:is )?(?:temporarily )?unavailable\b",
            r"\bbad gateway\b",
        ),
        "service",
    ),
    (
        _any(
            r"\bout of memory\b", r"\bno space left on device\b", r"\bcannot allocate memory\b",
            r"\bdatabase or disk is full\b",
        ),
        "exhausted",
    ),
)  # fmt: skip
