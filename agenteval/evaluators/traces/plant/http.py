"""How tools speak to the service: three HTTP clients with their own exceptions."""

from __future__ import annotations

import http.client
import json
import os
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Callable, Coroutine, Mapping
from http import HTTPStatus
from typing import Any

from agenteval.evaluators.traces.plant.world import World

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
        asked = {k: str(v) for k, v in query.items()}
        tail = f"?{urllib.parse.urlencode(asked)}" if asked else ""
        return self._send("GET", path + tail, None)

    def post(self, path: str, value: Mapping[str, Any]) -> Any:
        """The JSON of a POST; raises as `get`."""
        return self._send("POST", path, json.dumps(value).encode())

    def status(self, path: str) -> int:
        """The HTTP status of a GET, whatever it is."""
        url = self._world.base_url + path
        headers = {"Authorization": f"Bearer {os.environ['SERVICE_KEY']}"}
        try:
            _urllib("GET", url, None, headers, self._world.tools.patience)
        except urllib.error.HTTPError as error:
            return error.code
        return 200

    def _send(self, method: str, path: str, body: bytes | None) -> Any:
        rules = self._world.tools
        url = self._world.base_url + urllib.parse.quote(path, safe="/?&=%+")
        headers = {
            "Authorization": f"Bearer {os.environ['SERVICE_KEY']}",
            "Content-Type": "application/json",
        }
        send = {"urllib": _urllib, "client": _client}.get(rules.client)
        try:
            if send is None:
                text = self._wait(_aiohttp(method, url, body, headers, rules.patience))
            else:
                text = send(method, url, body, headers, rules.patience)
        except (urllib.error.HTTPError, ServiceError) as error:
            if rules.raises:
                raise
            return _as_text(error)
        return json.loads(text)


def _as_text(error: Exception) -> str:
    """What a tool returns that hands on the refusal instead of raising."""
    if isinstance(error, urllib.error.HTTPError):
        body = error.read().decode("utf-8", "replace")
        return f"HTTP {error.code} {error.reason}\n{body}"
    return str(error)


def _urllib(
    method: str, url: str, body: bytes | None, headers: Mapping[str, str], patience: float
) -> str:
    asked = urllib.request.Request(url, body, dict(headers), method=method)  # noqa: S310
    with urllib.request.urlopen(asked, timeout=patience) as answer:  # noqa: S310  loopback
        text: str = answer.read().decode()
    return text


def _client(
    method: str, url: str, body: bytes | None, headers: Mapping[str, str], patience: float
) -> str:
    """A small library of the service's own, as vendors ship them."""
    parts = urllib.parse.urlsplit(url)
    line = http.client.HTTPConnection(parts.hostname or "", parts.port, timeout=patience)
    try:
        tail = f"?{parts.query}" if parts.query else ""
        line.request(method, parts.path + tail, body, dict(headers))
        answer = line.getresponse()
        text = answer.read().decode()
    finally:
        line.close()
    if answer.status >= 400:
        name = HTTPStatus(answer.status).phrase
        raise ServiceError(f"{method} {parts.path} failed [{answer.status} {name}]: {text[:300]}")
    return text


async def _aiohttp(
    method: str, url: str, body: bytes | None, headers: Mapping[str, str], patience: float
) -> str:
    import aiohttp

    limit = aiohttp.ClientTimeout(total=patience)
    async with (
        aiohttp.ClientSession(timeout=limit) as session,
        session.request(method, url, data=body, headers=headers) as answer,
    ):
        answer.raise_for_status()
        return await answer.text()
