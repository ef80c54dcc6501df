"""One loopback server for the model and the service of the world of the run under way."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Coroutine
from types import TracebackType
from typing import TYPE_CHECKING, Any, Self

from agenteval.errors import AgentevalError
from agenteval.evaluators.traces.plant.endpoint import answer_chat, answer_upstream
from agenteval.evaluators.traces.plant.policy import Policy
from agenteval.evaluators.traces.plant.service import Answer, Service, serve
from agenteval.evaluators.traces.plant.world import World

if TYPE_CHECKING:
    from aiohttp import web


class Host:
    """A server on 127.0.0.1 in a thread of its own; a context manager.

    `/v1/chat/completions` is the model, everything below `/api/` the service. Tools that speak
    HTTP asynchronously use its event loop by `wait`.
    """

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="world", daemon=True)
        self._world: World | None = None
        self._service: Service | None = None
        self._policy: Policy | None = None
        self._upstream: str | None = None
        self._runner: Any = None
        self.url = ""

    def __enter__(self) -> Self:
        self._thread.start()
        self.url = self.wait(self._open())
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.wait(self._runner.cleanup())
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()

    def wait(self, work: Coroutine[Any, Any, Any], timeout: float = 30.0) -> Any:
        """The result of a coroutine that runs in the server's event loop."""
        return asyncio.run_coroutine_threadsafe(work, self._loop).result(timeout)

    def show(
        self,
        world: World,
        service: Service,
        policy: Policy | None = None,
        upstream: str | None = None,
    ) -> None:
        """From now on, this world is served: by a policy, or by the model at `upstream`."""
        self._world, self._service = world, service
        self._policy, self._upstream = policy, upstream
        world.base_url = f"{self.url}/api"

    async def _open(self) -> str:
        from aiohttp import web

        app = web.Application(client_max_size=64 * 2**20)
        app.router.add_post("/v1/chat/completions", self._chat)
        app.router.add_get("/api/{path:.*}", self._api)
        self._runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        return f"http://{host}:{port}"

    async def _chat(self, request: web.Request) -> web.Response:
        world, body = self._world, await request.json()
        if world is not None and self._policy is not None:
            return await _guarded(world, answer_chat(world, self._policy, body))
        if world is None or self._upstream is None:
            raise AgentevalError("the host serves no model yet")
        key = request.headers.get("Authorization", "")
        return await _guarded(world, answer_upstream(world, self._upstream, key, body))

    async def _api(self, request: web.Request) -> web.Response:
        if self._world is None or self._service is None:
            raise AgentevalError("the host serves no world yet")
        path, key = request.match_info["path"], request.headers.get("Authorization", "")
        work = serve(self._world, self._service, f"/{path}", dict(request.query), key)
        return await _guarded(self._world, work)


async def _guarded(world: World, work: Coroutine[Any, Any, Answer]) -> web.Response:
    """The answer; a defect of a world in this package must not pass for one that was planted."""
    try:
        return _response(await work)
    except Exception as error:
        world.surprises.append(f"defect: {error!r}")
        raise


def _response(answer: Answer) -> web.Response:
    from aiohttp import web

    return web.Response(
        status=answer.status,
        text=answer.body,
        content_type=answer.content_type,
        headers=dict(answer.headers),
    )
