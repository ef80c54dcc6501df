"""The service of a world: what it answers, how it refuses, and the clients by which tools ask it.

Refusals are worded in the manner of several frameworks and vendors; all texts are written for this
package, none is copied from a product.
"""

from __future__ import annotations

import asyncio
import http.client
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass, field
from http import HTTPStatus
from typing import Any

from agenteval.evaluators.traces.plant.world import KEY, Dice, Health, World

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


_IN_STYLE: Mapping[str, Callable[[int, str, str], Answer]] = {
    "problem": _problem, "page": _page, "plain": _plain, "grpc": _grpc,
    "cloud": _cloud, "typed": _typed, "detail": _detail, "boot": _boot,
}  # fmt: skip


def refusal(status: int, style: str, dice: Dice, path: str) -> Answer:
    """The answer of a service that refuses. Raises KeyError for an unknown status or style."""
    made = _IN_STYLE[style](status, dice.pick(WORDS[status]), path)
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


Refuse = Callable[[int], Answer]


def sick(world: World, health: Health, refuse: Refuse) -> Answer | None:
    """The refusal (made by `refuse` from a status) of what is in this state; None: it serves."""
    if health.spared > 0:
        health.spared -= 1
        return None
    if health.healthy_after is not None and health.healthy_after <= 0:
        return None
    for active, status, category in (
        (not health.key_good, 401, "Authentication Errors"),
        (health.forbidden, 403, "Authentication Errors"),
        (health.down, 503, "Service Errors"),
        (health.gone, 404, "Resource Not Found"),
        (health.quota is not None and health.quota <= 0, 429, "Rate Limiting"),
        (health.defect and _fails(), 500, "Service Errors"),
    ):
        if active:
            if health.healthy_after is not None:
                health.healthy_after -= 1
            world.note(category, str(status))
            return refuse(status)
    if health.quota is not None:
        health.quota -= 1
    return None


def _fails() -> bool:
    """Whether the handler with the defect raises, as it does."""
    try:
        _handler({})
    except KeyError:
        return True
    return False


def _handler(row: Mapping[str, Any]) -> float:
    return float(row["price"]["amount"])


Service = Callable[[World, str, Mapping[str, str]], tuple[int, Any]]  # path, query: status, value


async def serve(
    world: World, service: Service, path: str, query: Mapping[str, str], key: str
) -> Answer:
    """The answer to one GET of the service of a world; `key` is the header of authorization."""
    health = world.service
    if health.slow and health.spared <= 0:
        world.note("Timeout Issues")
        await asyncio.sleep(health.slow)
    if key != f"Bearer {KEY}":
        return refusal(401, world.style, world.dice, path)
    refused = sick(world, health, lambda code: refusal(code, world.style, world.dice, path))
    if refused is not None:
        return refused
    status, value = service(world, path, query)
    if status >= 400:
        world.note("Resource Not Found", str(status))
        return refusal(status, world.style, world.dice, path)
    return Answer(status, json.dumps(value, ensure_ascii=False))


CLIENTS = ("urllib", "aiohttp", "client")
Wait = Callable[[Coroutine[Any, Any, Any]], Any]


class ServiceError(Exception):
    """The client library of a service: it words what the service refused."""


class Api:
    """The service of a world, for tools. The key comes from the variable SERVICE_KEY."""

    def __init__(self, world: World, wait: Wait) -> None:
        self._world = world
        self._wait = wait

    def get(self, path: str, **query: object) -> Any:
        """The JSON of a GET. Raises what the client raises, KeyError without a key."""
        rules = self._world.tools
        tail = f"?{urllib.parse.urlencode(query)}" if query else ""
        url = self._world.base_url + urllib.parse.quote(path + tail, safe="/?&=%+")
        send = {"urllib": _urllib, "client": _client}.get(rules.client)
        try:
            if send is None:
                text = self._wait(_aiohttp(url, _headers(), rules.patience))
            else:
                text = send(url, _headers(), rules.patience)
        except urllib.error.HTTPError as error:
            if rules.raises:
                raise
            body = error.read().decode("utf-8", "replace")
            return f"HTTP {error.code} {error.reason}\n{body}"
        except ServiceError as error:
            if rules.raises:
                raise
            return str(error)
        return json.loads(text)

    def status(self, path: str) -> int:
        """The HTTP status of a GET, whatever it is."""
        url = self._world.base_url + path
        try:
            _urllib(url, _headers(), self._world.tools.patience)
        except urllib.error.HTTPError as error:
            return error.code
        return 200


def _headers() -> dict[str, str]:
    key = os.environ["SERVICE_KEY"]
    return {"Authorization": f"Bearer {key}", "Content-Type": "application/json"}


def _urllib(url: str, headers: Mapping[str, str], patience: float) -> str:
    asked = urllib.request.Request(url, None, dict(headers))  # noqa: S310
    with urllib.request.urlopen(asked, timeout=patience) as answer:  # noqa: S310  loopback
        text: str = answer.read().decode()
    return text


def _client(url: str, headers: Mapping[str, str], patience: float) -> str:
    """A small library of the service's own, as vendors ship them."""
    parts = urllib.parse.urlsplit(url)
    line = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=patience)
    try:
        tail = f"?{parts.query}" if parts.query else ""
        line.request("GET", parts.path + tail, None, dict(headers))
        answer = line.getresponse()
        text = answer.read().decode()
    finally:
        line.close()
    if answer.status >= 400:
        name = HTTPStatus(answer.status).phrase
        raise ServiceError(f"GET {parts.path} failed [{answer.status} {name}]: {text[:300]}")
    return text


async def _aiohttp(url: str, headers: Mapping[str, str], patience: float) -> str:
    import aiohttp

    limit = aiohttp.ClientTimeout(total=patience)
    async with (
        aiohttp.ClientSession(timeout=limit) as session,
        session.get(url, headers=headers) as answer,
    ):
        answer.raise_for_status()
        return await answer.text()
