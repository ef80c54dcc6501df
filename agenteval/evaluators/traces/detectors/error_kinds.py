"""Kinds of failures, from the names and forms that libraries give their errors.

Names of types are those of openai, anthropic, google-api-core, google-genai, botocore, httpx,
requests, urllib3, aiohttp, grpc, litellm and the standard library; forms of messages are those of
their `__str__`. Free words count only in the message of a failed span.
"""

from __future__ import annotations

import re
from functools import lru_cache
from http import HTTPStatus
from typing import Literal, NamedTuple

from agenteval.evaluators.traces.detectors.error_facts import Fact
from agenteval.evaluators.traces.detectors.prose import without_quotes

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


_HEAD = 800  # characters of a message that are read


class Verdict(NamedTuple):
    """A kind, how sure its form makes it, and the words that show it ("" if the type does)."""

    kind: Kind
    confidence: float
    words: str = ""


@lru_cache(maxsize=1024)
def classify(fact: Fact) -> Verdict | None:
    """The kind of a failure; None when nothing in its form says one."""
    head = _head(fact.message)
    simple = fact.type.rpartition(".")[2]
    if CONTEXT_TYPE.search(simple):
        return Verdict("context", 1.0)
    if found := CONTEXT.search(head):
        return Verdict("context", 1.0, found[0])
    return (
        _by_type(fact.type, head)
        or _by_code(fact.code, 1.0)
        or _by_form(head)
        or (None if simple in DATA else _by_status_words(head))
        or _by_words(head, simple)
        or (Verdict("service", 0.7) if UNREACHABLE.search(simple) else None)
    )


def _head(message: str) -> str:
    """The beginning of a message; of a traceback its last line, where the exception stands."""
    text = message.strip()
    if "Traceback (most recent call last)" in text[: 4 * _HEAD]:
        text = text.rpartition("\n")[2]
    return text[:_HEAD]


def _by_type(dotted: str, head: str) -> Verdict | None:
    simple = dotted.rpartition(".")[2]
    if not simple and head[:1] != "'":  # the text of a KeyError is its key in quotation marks
        return None
    if simple == "ResourceExhausted":  # HTTP 429 at Google, memory elsewhere
        return Verdict("rate" if "google" in dotted else "exhausted", 1.0)
    for pattern, kind in TYPES:
        if pattern.search(simple):
            return Verdict(kind, 1.0)
    if simple == "PermissionError":
        return Verdict("setup", 1.0 if ERRNO.search(head) else 0.8)
    if simple in ("KeyError", "") and (found := ENV_KEY.fullmatch(head)):
        return Verdict("setup", 0.9, found[1]) if ENV_SECRET.search(found[1]) else None
    return None


def by_status(code: int) -> Kind | None:
    """The kind of an HTTP status; None for one that says none, as 400 or 422."""
    named: dict[int, Kind] = {
        401: "auth", 403: "auth", 407: "auth", 404: "missing", 410: "missing", 408: "timeout",
        429: "rate", 504: "timeout", 507: "exhausted",
    }  # fmt: skip
    return named.get(code) or ("service" if 500 <= code <= 599 else None)


def _by_code(code: int | None, confidence: float, words: str = "") -> Verdict | None:
    kind = None if code is None else by_status(code)
    if kind is None:
        return None
    return Verdict(kind, min(confidence, 0.7) if code == 504 else confidence, words)


def _by_form(head: str) -> Verdict | None:
    """What the message is in the fixed form of a library."""
    if found := SDK_STATUS.search(head):
        return _by_code(int(next(filter(None, found.groups()))), 1.0, found[0])
    if found := BOTO.search(head):
        code = found[1]
        return _by_type(code, "") or _by_code(int(code) if code.isdigit() else None, 1.0, code)
    if (found := GRPC.search(head)) and found[1] in GRPC_KINDS:
        return Verdict(GRPC_KINDS[found[1]], 1.0, found[0])
    if (found := ERRNO.search(head)) and found[1] in ERRNO_KINDS:
        kind, confidence = ERRNO_KINDS[found[1]]
        return Verdict(kind, confidence, found[0])
    for named in NAMED.finditer(head):
        if verdict := _by_type(named[1], ""):
            return Verdict(verdict.kind, 0.95, named[1])
    return None


def _by_status_words(head: str) -> Verdict | None:
    plain = without_quotes(head)
    if found := PHRASE.search(plain):
        return _by_code(PHRASES[found[0].lower()], 0.95, found[0])
    if found := ANY_STATUS.search(plain):
        return _by_code(int(found[1] or found[2]), 0.9, found[0])
    return None


def _by_words(head: str, simple: str) -> Verdict | None:
    if found := SETUP.search(head):
        return Verdict("setup", 0.95, found[0])
    if simple in DATA:
        return None
    plain = without_quotes(head.partition("\n")[0])
    for pattern, kind in WORDS:
        if found := pattern.search(plain):
            return Verdict(kind, 0.9, found[0])
    return None
