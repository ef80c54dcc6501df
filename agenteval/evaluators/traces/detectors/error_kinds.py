"""Kinds of failures, from the names and forms that libraries give their errors.

Names of types are those of openai, anthropic, google-api-core, google-genai, botocore, httpx,
requests, urllib3, aiohttp, grpc, litellm and the standard library; forms of messages are those of
their `__str__`. Free words count only in the message of a failed span.
"""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

from agenteval.evaluators.traces.detectors import error_words as known
from agenteval.evaluators.traces.detectors.error_facts import Fact
from agenteval.evaluators.traces.detectors.error_words import Kind
from agenteval.evaluators.traces.detectors.prose import without_quotes

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
    if known.CONTEXT_TYPE.search(simple):
        return Verdict("context", 1.0)
    if found := known.CONTEXT.search(head):
        return Verdict("context", 1.0, found[0])
    return (
        _by_type(fact.type, head)
        or _by_code(fact.code, 1.0)
        or _by_form(head)
        or (None if simple in known.DATA else _by_status_words(head))
        or _by_words(head, simple)
        or (Verdict("service", 0.7) if known.UNREACHABLE.search(simple) else None)
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
    for pattern, kind in known.TYPES:
        if pattern.search(simple):
            return Verdict(kind, 1.0)
    if simple == "PermissionError":
        return Verdict("setup", 1.0 if known.ERRNO.search(head) else 0.8)
    if simple in ("KeyError", "") and (found := known.ENV_KEY.fullmatch(head)):
        return Verdict("setup", 0.9, found[1]) if known.ENV_SECRET.search(found[1]) else None
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
    if found := known.SDK_STATUS.search(head):
        return _by_code(int(next(filter(None, found.groups()))), 1.0, found[0])
    if found := known.BOTO.search(head):
        code = found[1]
        return _by_type(code, "") or _by_code(int(code) if code.isdigit() else None, 1.0, code)
    if (found := known.GRPC.search(head)) and found[1] in known.GRPC_KINDS:
        return Verdict(known.GRPC_KINDS[found[1]], 1.0, found[0])
    if (found := known.ERRNO.search(head)) and found[1] in known.ERRNO_KINDS:
        kind, confidence = known.ERRNO_KINDS[found[1]]
        return Verdict(kind, confidence, found[0])
    for named in known.NAMED.finditer(head):
        if verdict := _by_type(named[1], ""):
            return Verdict(verdict.kind, 0.95, named[1])
    return None


def _by_status_words(head: str) -> Verdict | None:
    plain = without_quotes(head)
    if found := known.PHRASE.search(plain):
        return _by_code(known.PHRASES[found[0].lower()], 0.95, found[0])
    if found := known.ANY_STATUS.search(plain):
        return _by_code(int(found[1] or found[2]), 0.9, found[0])
    return None


def _by_words(head: str, simple: str) -> Verdict | None:
    if found := known.SETUP.search(head):
        return Verdict("setup", 0.95, found[0])
    if simple in known.DATA:
        return None
    plain = without_quotes(head.partition("\n")[0])
    for pattern, kind in known.WORDS:
        if found := pattern.search(plain):
            return Verdict(kind, 0.9, found[0])
    return None
