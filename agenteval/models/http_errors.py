"""Turn an HTTP answer that is not a reply into a typed error, with the wait it asks for."""

from __future__ import annotations

import email.utils
import json
import math
import re
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from datetime import UTC
from typing import Any

from agenteval.errors import BadRequest, Filtered, ModelError, TooLong, Transient, Unauthorized
from agenteval.models.wire import one_line

_MOST_READ = 100_000  # bytes of a body in which words are looked for
_DEEPEST = 12
_MOST_SHOWN = 20  # messages of one body
_RETRYABLE = {408, 409, 425, 429, 498, 499}
_OVERLOADED = {429, 529}
_IDS = ("x-request-id", "request-id", "apim-request-id", "x-amzn-requestid", "cf-ray")
_MESSAGE_KEYS = {"message", "msg", "detail", "details", "error", "errors", "error_description"}
_MESSAGE_KEYS |= {"title", "description", "raw", "reasons", "error_message"}
_CODE_KEYS = {"code", "type", "status", "reason", "error_code", "error_type"}
_PARAM_KEYS = {"param", "parameter", "field"}

# Longer than the context. A reply limit that does not fit after the prompt is handled by `room_in`.
_TOO_LONG = re.compile(
    r"context[ _](length|window|size)|prompt is too long|(input|prompt) (tokens|length) exceed"
    r"|exceeds? the (available )?context|maximum (prompt|input) length|input is too long"
    r"|max_new_tokens\W+must be|inputs\W+must have less than"
)
_CONTEXT = re.compile(
    r"(?:maximum context length|context window|max_model_len|max_new_tokens\W+must be)"
    r"\D{0,20}(\d{1,9})"
)
_PROMPT = re.compile(
    r"(?<!\d)(\d{1,9}) (?:tokens )?(?:in the (?:messages|input)|input tokens|prompt tokens"
    r"|of text input)"
    r"|given: (\d{1,9}) \W?inputs|prompt contains (?:at least )?(\d{1,9})"
)
_FILTERED = re.compile(
    r"content[ _-]?(filter|polic|management|moderation|exists risk|violation|safety)|responsibleai"
    r"|requires moderation|\bmoderat(ion|ed)\b|\bflagged\b|data_?inspection|inappropriate content"
    r"|safety[_ ](check|filter|setting|system|polic|reason)|guardrail|prohibited[_ ]content"
    r"|violat\w*(?: \w+){0,4} (polic|guideline|safety|terms)|(usage|safety) (policy|guidelines)"
    r"|(prompt|input|request|content|response) (was |is |has been )?(blocked|withheld)"
    r"|sensitive (content|words)|(unsafe|harmful) (content|prompt|input)"
)
_THROTTLED = re.compile(r"throttl|too many requests|rate limit (exceeded|reached)")
_KEY = re.compile(
    r"api[ _-]?key|\bkey\b|authenti|authori[sz]|credential|(access|bearer|invalid|jwt) token"
    r"|token (is |has )?(invalid|expired|missing)|\b(log|sign)[ -]?in\b|subscription|billing"
    r"|\baccount\b|organi[sz]ation|permission|payment|(not|n't) have access|quota|licen[cs]e"
    r"|country|region|ip address"
)
_NO_MONEY = re.compile(
    r"credit balance|(insufficient|not enough|out of)[ _](credit|balance|funds|quota)"
    r"|billing_hard_limit|budget(_| has been )exceeded|spending limit"
)


@dataclass(frozen=True, slots=True)
class ErrorBody:
    """The words in the body of a failed request.

    `message` is for people. `text` holds every string of the body in lower case, to search in;
    `codes` and `params` are the values under names such as code and type, param and loc.
    """

    message: str
    text: str
    codes: frozenset[str]
    params: frozenset[str]
    status: int = 0


def read_body(body: bytes) -> ErrorBody:
    """Search a whole body for words, whatever its form: JSON, JSON within JSON, HTML or text."""
    text = body[:_MOST_READ].decode("utf-8", "replace").strip().removeprefix("null")
    messages: list[str] = []
    strings: list[str] = []
    codes: set[str] = set()
    params: set[str] = set()
    if (value := _parsed(text)) is None:
        title = re.search(r"<title[^<>]*>([^<]*)", text, re.I)
        messages = [title[1] if title else re.sub(r"<[^<>]*>", " ", text)]
        strings = [text]
    for name, word in _words(value, "message", 0):
        strings.append(word)
        if name in _CODE_KEYS:
            codes.add(word.lower())
        elif name in _PARAM_KEYS and word.lower() not in ("", "none", "null"):
            params.add(word)
        elif name in _MESSAGE_KEYS and word:
            messages.append(word)
    distinct = list(dict.fromkeys(messages))[:_MOST_SHOWN]
    shown = [m for m in distinct if not any(m != other and m in other for other in distinct)]
    message = "; ".join(shown) or ("" if text in ("{}", "[]", "null") else text)
    if unnamed := sorted(p for p in params if p not in message):
        message += f" (param {', '.join(unnamed)})"
    searched = "\n".join((*strings, *codes, *params)).lower()
    return ErrorBody(message, searched, frozenset(codes), frozenset(params))


def _parsed(text: str) -> Any:
    """Return the JSON object or list in the text, or None if it is neither."""
    if text[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


def _words(value: Any, name: str, depth: int) -> Iterator[tuple[str, str]]:
    """Yield (name of its member, text) for every text and code in a JSON value, and ("", key)."""
    if depth > _DEEPEST:
        return
    if isinstance(value, dict):
        place = value.get("loc")
        if isinstance(place, list) and isinstance(value.get("msg"), str):  # FastAPI
            yield from (("param", str(last)) for last in place[-1:])
            value = {**value, "msg": f"{'.'.join(map(str, place))}: {value['msg']}"}
        for key, member in value.items():
            yield "", str(key)
            yield from _words(member, str(key).lower(), depth + 1)
    elif isinstance(value, list):
        for member in value:
            yield from _words(member, name, depth + 1)
    elif isinstance(value, str):
        if (inner := _parsed(value.strip())) is not None:
            yield from _words(inner, name, depth + 1)
        else:
            yield name, value
    elif isinstance(value, int) and name in _CODE_KEYS:
        yield name, str(value)


def room_in(text: str) -> int | None:
    """Tokens that a context leaves for the reply, when the text names both context and prompt."""
    context, prompt = _CONTEXT.search(text), _PROMPT.search(text)
    if not (context and prompt):
        return None
    return int(context[1]) - int(next(filter(None, prompt.groups())))


def read_error(where: str, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
    """Return the typed error for a failed request; its `said` is the ErrorBody."""
    details = replace(read_body(body), status=status)
    words = one_line(details.message) or "no reason given"
    if request_id := next((headers[name] for name in _IDS if headers.get(name)), ""):
        words += f", request {one_line(request_id)[:80]}"
    wait = retry_after(headers)
    if wait is None and (hint := _IN_WORDS.search(body[:_MOST_READ].decode(errors="replace"))):
        wait = _duration(hint[1].rstrip(".").lower())
    # OpenAI's header, which its SDKs obey: true to retry whatever the status, false not to retry
    answer = (headers.get("x-should-retry") or "").strip().lower()
    may_retry = {"true": True, "false": False}.get(answer)
    error = _typed(where, details, words, may_retry=may_retry, wait=wait)
    error.said = details
    return error


def _typed(
    where: str, said: ErrorBody, words: str, *, may_retry: bool | None, wait: float | None
) -> ModelError:
    status, text = said.status, said.text
    message = f"{where}: HTTP {status} ({words})"
    concerns_request = status in (400, 403, 413, 422, 451, 498, 500)
    too_long = status == 413 and not may_retry
    too_long |= concerns_request and status != 403 and _TOO_LONG.search(text) is not None
    if too_long and (room_in(text) or 0) < 64:
        return TooLong(f"{where}: the model's context is too short ({words})")
    if concerns_request and _FILTERED.search(text) and not re.search(r"\baccount\b|\bkey\b", text):
        return Filtered(f"{where}: withheld by a content filter, HTTP {status} ({words})")
    no_money = "insufficient_quota" in said.codes or (status != 429 and _NO_MONEY.search(text))
    # an exhausted quota is like a refused key: every further request would fail too
    if (status == 402 or (no_money and status < 500)) and not may_retry:
        return Unauthorized(message)
    if status in (401, 403) and not may_retry:
        return Unauthorized(message) if _KEY.search(text) else BadRequest(message)
    throttled = status in _OVERLOADED or (status == 400 and _THROTTLED.search(text) is not None)
    heals = status in _RETRYABLE or (status >= 500 and status not in (501, 505))
    if not (may_retry or throttled or heals):
        return BadRequest(message)
    if may_retry is False:
        message += "; it asks not to retry"
    elif wait is not None and wait >= 1:
        message += f"; it asks to wait {wait:.0f} s"
    return Transient(message, retry_after=wait, overload=throttled, again=may_retry is not False)


# ---- the wait that an endpoint asks for, in all forms that endpoints use -------------------------

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)")
# no digit can belong to two parts: an endpoint's header must not cost time in its number of digits
_NUMBER = r"[+-]?(?:\d+(?:\.\d*)?|\.\d+)(?:e[+-]?\d{1,4})?"
_NUMBERS = re.compile(rf"{_NUMBER}(?:\s*,\s*{_NUMBER})*", re.ASCII | re.IGNORECASE)
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86_400.0}
_IN_WORDS = re.compile(
    r"(?:retry ?delay\W+|estimated_time\W+|try again in |retry (?:after|in) )"
    r"((?:\d{1,9}(?:\.\d{1,9})?(?:ms|h|m|s)?){1,6})",
    re.I,
)


def retry_after(headers: Mapping[str, str], *, now: float | None = None) -> float | None:
    """Seconds the endpoint asks to wait; the largest of its hints, None when it gives none.

    Reads `retry-after-ms`, and `retry-after` as seconds (one number, or several with commas) or as
    an HTTP date (in UTC when it names no zone); negative, infinite and unreadable hints count as
    none. Only without such hints, reads `x-ratelimit-reset-requests` and `-tokens` ("1m2.5s",
    "250ms", seconds) of limits that seem exhausted: they say when a limit is full again, often long
    after the next request would pass.
    """
    hints: list[float] = []
    for name, scale in (("retry-after-ms", 0.001), ("retry-after", 1.0)):
        text = (headers.get(name) or "").strip()
        if _NUMBERS.fullmatch(text):  # several of one name come as one, with commas
            hints += [float(number) * scale for number in text.split(",")]
            continue
        try:
            date = email.utils.parsedate_to_datetime(text)
            moment = date.replace(tzinfo=date.tzinfo or UTC).timestamp()
        except (ValueError, OverflowError):
            continue
        hints.append(moment - (time.time() if now is None else now))
    usable = [h for h in hints if math.isfinite(h) and h >= 0]
    if not usable:
        for name in ("requests", "tokens"):
            remaining = (headers.get(f"x-ratelimit-remaining-{name}") or "0").strip()
            wait = _duration((headers.get(f"x-ratelimit-reset-{name}") or "").strip())
            if remaining == "0" and wait is not None:
                usable.append(wait)
    return max(usable, default=None)


def _duration(text: str) -> float | None:
    """Seconds of "1h2m3.5s" or "250ms" or a bare number below a year, else None."""
    parts = _PART.findall(text)
    if parts and "".join(number + unit for number, unit in parts) == text:
        seconds = sum(float(number) * _SECONDS[unit] for number, unit in parts)
        return seconds if math.isfinite(seconds) else None
    return float(text) if re.fullmatch(r"\d{1,7}(\.\d{1,9})?", text) else None
