"""How services word their refusals: bodies in the manner of several frameworks and vendors.

All texts are written for this package; none is copied from a product.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus

from agenteval.evaluators.traces.plant.dice import Dice

WORDS: Mapping[int, tuple[str, ...]] = {
    429: (
        "Too many requests, slow down.",
        "You have used up the calls of this minute. Wait 30 seconds and try again.",
        "Quota of 60 requests per minute exceeded for this project.",
        "Rate exceeded",
        "The request was throttled. Available again in 27 seconds.",
    ),
    401: (
        "The key that was sent has been revoked.",
        "Token expired at 08:00, sign in again.",
        "No valid credentials were given.",
        "Incorrect API key provided: ****7Qx2.",
    ),
    403: (
        "This account may not read this resource.",
        "The caller lacks the permission records.read.",
        "Access denied by policy.",
        "Your plan does not include this operation.",
    ),
    404: (
        "There is no such record.",
        "No route matches this path.",
        "The item was deleted or never existed.",
        "Not found",
    ),
    500: (
        "An unexpected condition was met.",
        "Something went wrong on our side. The incident has been logged.",
        "NullPointerException at com.example.store.Reader.load",
        "unhandled exception in worker 3",
    ),
    503: (
        "Down for maintenance until noon.",
        "No healthy upstream.",
        "The service is overloaded, please come back later.",
        "temporarily unavailable",
    ),
}
_GRPC = {429: 8, 401: 16, 403: 7, 404: 5, 500: 13, 503: 14}
_CODES = {
    429: "RESOURCE_EXHAUSTED", 401: "UNAUTHENTICATED", 403: "PERMISSION_DENIED",
    404: "NOT_FOUND", 500: "INTERNAL", 503: "UNAVAILABLE",
}  # fmt: skip
_TYPES = {
    429: "ThrottlingException", 401: "UnrecognizedClientException", 403: "AccessDeniedException",
    404: "ResourceNotFoundException", 500: "InternalFailure", 503: "ServiceUnavailableException",
}  # fmt: skip

_CHAT: Mapping[int, tuple[str, str | None]] = {
    429: ("rate_limit_error", "rate_limit_exceeded"),
    401: ("authentication_error", "invalid_api_key"),
    403: ("permission_error", None),
    404: ("not_found_error", "model_not_found"),
    500: ("server_error", None),
    503: ("overloaded_error", None),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer of a service or endpoint."""

    status: int
    body: str
    content_type: str = "application/json"
    headers: Mapping[str, str] = field(default_factory=dict)


def _json(status: int, value: object, kind: str = "application/json") -> Answer:
    return Answer(status, json.dumps(value), kind)


def _problem(status: int, words: str, path: str) -> Answer:
    value = {
        "type": "about:blank",
        "title": HTTPStatus(status).phrase,
        "status": status,
        "detail": words,
        "instance": path,
    }
    return _json(status, value, "application/problem+json")


def _page(status: int, words: str, path: str) -> Answer:
    title = f"{status} {HTTPStatus(status).phrase}"
    body = (
        f"<html>\r\n<head><title>{title}</title></head>\r\n<body>\r\n<center><h1>{title}</h1>"
        "</center>\r\n<hr><center>edge/1.4</center>\r\n</body>\r\n</html>\r\n"
    )
    return Answer(status, body, "text/html")


def _plain(status: int, words: str, path: str) -> Answer:
    return Answer(status, words, "text/plain")


def _grpc(status: int, words: str, path: str) -> Answer:
    return _json(status, {"code": _GRPC[status], "message": words, "details": []})


def _cloud(status: int, words: str, path: str) -> Answer:
    error = {"code": status, "message": words, "status": _CODES[status]}
    return _json(status, {"error": error})


def _typed(status: int, words: str, path: str) -> Answer:
    return _json(status, {"__type": _TYPES[status], "message": words})


def _detail(status: int, words: str, path: str) -> Answer:
    return _json(status, {"detail": words})


def _boot(status: int, words: str, path: str) -> Answer:
    return _json(
        status,
        {"status": status, "error": HTTPStatus(status).phrase, "message": words, "path": path},
    )


STYLES: Mapping[str, Callable[[int, str, str], Answer]] = {
    "problem": _problem, "page": _page, "plain": _plain, "grpc": _grpc,
    "cloud": _cloud, "typed": _typed, "detail": _detail, "boot": _boot,
}  # fmt: skip


def refusal(status: int, style: str, dice: Dice, path: str) -> Answer:
    """The answer of a service that refuses. Raises KeyError for an unknown status or style."""
    made = STYLES[style](status, dice.pick(WORDS[status]), path)
    if status == 429 and dice.chance(0.5):
        return Answer(made.status, made.body, made.content_type, {"Retry-After": "30"})
    return made


def model_refusal(status: int, dice: Dice, path: str) -> Answer:
    """The same of a model endpoint, mostly in the words of the chat protocol."""
    if dice.chance(0.3):
        return refusal(status, dice.pick(("page", "plain", "cloud", "detail")), dice, path)
    kind, code = _CHAT[status]
    words = dice.pick(WORDS[status])
    return _json(status, {"error": {"message": words, "type": kind, "param": None, "code": code}})


def too_long(tokens: int, window: int, dice: Dice) -> Answer:
    """The refusal of a request that is longer than the model's context (status 400)."""
    words = dice.pick(
        (
            f"This model's maximum context length is {window} tokens. However, your messages "
            f"resulted in {tokens} tokens. Please reduce the length of the messages.",
            f"prompt is too long: {tokens} tokens > {window} maximum",
            f"the request exceeds the available context size ({tokens} > {window})",
            f"Input length {tokens} exceeds the maximum prompt length of {window}.",
        )
    )
    error = {
        "message": words,
        "type": "invalid_request_error",
        "param": "messages",
        "code": "context_length_exceeded",
    }
    return _json(400, {"error": error})
