"""Turn an HTTP answer that is not a reply into a typed error; every transport uses this reader."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from agenteval.errors import BadRequest, Filtered, ModelError, TooLong, Transient, Unauthorized
from agenteval.models.waiting import may_retry, retry_after, wait_in_words
from agenteval.models.wire import one_line

_MOST_READ = 100_000  # bytes of a body in which words are looked for
_DEEPEST = 12
_MOST_SHOWN = 20  # messages of one body
_RETRYABLE = {408, 409, 425, 429, 498, 499}
_OVERLOADED = {429, 529}
_IDS = ("x-request-id", "request-id", "apim-request-id", "x-amzn-requestid", "cf-ray")
_MESSAGE_KEYS = {
    "message",
    "msg",
    "detail",
    "details",
    "error",
    "errors",
    "error_description",
    "title",
    "description",
    "raw",
    "reasons",
    "error_message",
}
_CODE_KEYS = {"code", "type", "status", "reason", "error_code", "error_type"}
_PARAM_KEYS = {"param", "parameter", "field"}

# Longer than the context. A limit on the reply that does not fit beside the prompt is another
# matter: `room_in` finds what is left for it.
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
    words = _Words()
    if (value := _parsed(text)) is not None:
        words.search(value, "message", 0)
    elif title := re.search(r"<title[^<>]*>([^<]*)", text, re.I):
        words.messages, words.strings = [title[1]], [text]
    else:
        words.messages, words.strings = [re.sub(r"<[^<>]*>", " ", text)], [text]
    return words.found(text)


def _parsed(text: str) -> Any:
    """The object or list that the text is; None for any other text."""
    if text[:1] not in ("{", "["):
        return None
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return None


class _Words:
    """Gathers the words of a JSON value by the names of the members they are in."""

    def __init__(self) -> None:
        self.messages: list[str] = []
        self.strings: list[str] = []
        self.codes: set[str] = set()
        self.params: set[str] = set()

    def search(self, value: Any, name: str, depth: int) -> None:
        if depth > _DEEPEST:
            return
        if isinstance(value, dict):
            place = value.get("loc")
            if isinstance(place, list) and isinstance(value.get("msg"), str):  # FastAPI
                self.params.update(map(str, place[-1:]))
                value = {**value, "msg": f"{'.'.join(map(str, place))}: {value['msg']}"}
            self.strings += map(str, value)
            for key, member in value.items():
                self.search(member, str(key).lower(), depth + 1)
        elif isinstance(value, list):
            for member in value:
                self.search(member, name, depth + 1)
        elif isinstance(value, str):
            self._read(value, name, depth)
        elif isinstance(value, int) and name in _CODE_KEYS:
            self.codes.add(str(value))

    def _read(self, text: str, name: str, depth: int) -> None:
        if (inner := _parsed(text.strip())) is not None:
            self.search(inner, name, depth + 1)
            return
        self.strings.append(text)
        if name in _CODE_KEYS:
            self.codes.add(text.lower())
        elif name in _PARAM_KEYS and text.lower() not in ("", "none", "null"):
            self.params.add(text)
        elif name in _MESSAGE_KEYS and text:
            self.messages.append(text)

    def found(self, whole: str) -> ErrorBody:
        distinct = list(dict.fromkeys(self.messages))[:_MOST_SHOWN]
        shown = [m for m in distinct if not any(m != other and m in other for other in distinct)]
        message = "; ".join(shown) or ("" if whole in ("{}", "[]", "null") else whole)
        if unnamed := sorted(p for p in self.params if p not in message):
            message += f" (param {', '.join(unnamed)})"
        text = "\n".join((*self.strings, *self.codes, *self.params)).lower()
        return ErrorBody(message, text, frozenset(self.codes), frozenset(self.params))


def room_in(text: str) -> int | None:
    """Tokens that a context leaves for the reply, when the text names both context and prompt."""
    context, prompt = _CONTEXT.search(text), _PROMPT.search(text)
    if not (context and prompt):
        return None
    return int(context[1]) - int(next(filter(None, prompt.groups())))


def read_error(where: str, status: int, headers: Mapping[str, str], body: bytes) -> ModelError:
    """The typed error for a failed request; `said` of it is the ErrorBody."""
    details = replace(read_body(body), status=status)
    words = one_line(details.message) or "no reason given"
    request_id = next((headers[name] for name in _IDS if headers.get(name)), "")
    request_id = f", request {one_line(request_id)[:80]}" if request_id else ""
    error = _typed(where, details, f"{words}{request_id}", headers, _asked_wait(headers, body))
    error.said = details
    return error


def _asked_wait(headers: Mapping[str, str], body: bytes) -> float | None:
    wait = retry_after(headers)
    if wait is not None:
        return wait
    return wait_in_words(body[:_MOST_READ].decode("utf-8", "replace").lower())


def _typed(
    where: str, said: ErrorBody, words: str, headers: Mapping[str, str], wait: float | None
) -> ModelError:
    status, text = said.status, said.text
    message, retry = f"{where}: HTTP {status} ({words})", may_retry(headers)
    concerns_request = status in (400, 403, 413, 422, 451, 498, 500)
    too_long = status == 413 and not retry
    too_long |= concerns_request and status != 403 and _TOO_LONG.search(text) is not None
    if too_long and (room_in(text) or 0) < 64:
        return TooLong(f"{where}: the model's context is too short ({words})")
    if concerns_request and _FILTERED.search(text) and not re.search(r"\baccount\b|\bkey\b", text):
        return Filtered(f"{where}: withheld by a content filter, HTTP {status} ({words})")
    no_money = "insufficient_quota" in said.codes or (status != 429 and _NO_MONEY.search(text))
    # an exhausted quota is like a refused key: every further request would fail alike
    if (status == 402 or (no_money and status < 500)) and not retry:
        return Unauthorized(message)
    if status in (401, 403) and not retry:
        return Unauthorized(message) if _KEY.search(text) else BadRequest(message)
    throttled = status in _OVERLOADED or (status == 400 and _THROTTLED.search(text) is not None)
    heals = status in _RETRYABLE or (status >= 500 and status not in (501, 505))
    if not (retry or throttled or heals):
        return BadRequest(message)
    retryable = retry is not False
    if not retryable:
        message += "; it asks not to be asked again"
    elif wait is not None and wait >= 1:
        message += f"; it asks to wait {wait:.0f} s"
    return Transient(message, retry_after=wait, overload=throttled, again=retryable)
