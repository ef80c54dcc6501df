"""Several connection pools for one endpoint.

The pool of the SDK's HTTP library looks at each of its connections at every request, with a system
call for each idle one, so that its cost per request grows with the number in flight: at 64 in
flight it is more than half of the client's CPU time. Pools of a few connections keep it small.
"""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

_CONNECT_SECONDS = 15.0
_WIDTH = 2  # requests in flight in one pool; one more client takes 0.6 ms to make


@dataclass(slots=True)
class _Lane:
    sdk: Any
    busy: int = 0


class Lanes:
    """SDK clients for one endpoint, made as they are needed, one TLS context for all.

    `response` is the Response class of the HTTP library that the SDK uses: httpx's, from openai 3
    on httpx2's. `width` is the number of requests that one client carries at a time.
    """

    def __init__(self, url: str, key: str, *, width: int = _WIDTH) -> None:
        import openai

        base = openai.DefaultAsyncHttpxClient.__base__
        assert base is not None
        library: Any = importlib.import_module(base.__module__.partition(".")[0])
        self.response: Any = library.Response
        self._tls = library.create_ssl_context()  # 70 ms: not once per client
        self._url, self._key, self._width = url, key, width
        self._lanes: list[_Lane] = []

    @contextmanager
    def lane(self) -> Iterator[Any]:
        """The first `openai.AsyncOpenAI` with a free place, so that few stay warm."""
        lane = next((one for one in self._lanes if one.busy < self._width), None)
        if lane is None:
            lane = _Lane(self._open())
            self._lanes.append(lane)
        lane.busy += 1
        try:
            yield lane.sdk
        finally:
            lane.busy -= 1

    def _open(self) -> Any:
        import openai

        return openai.AsyncOpenAI(
            api_key=self._key or "none",  # a local server needs no key, but the SDK does
            base_url=self._url,
            max_retries=0,
            timeout=openai.Timeout(None, connect=_CONNECT_SECONDS),
            http_client=openai.DefaultAsyncHttpxClient(base_url=self._url, verify=self._tls),
        )

    async def close(self) -> None:
        """Close every client's connections."""
        lanes, self._lanes = self._lanes, []
        for lane in lanes:
            await lane.sdk.close()
