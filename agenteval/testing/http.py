"""The engine behind aiohttp's server, which reads the requests; replies are written as they are,
byte by byte, since many of them are meant to be broken."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable
from typing import Any

from aiohttp import web

from agenteval.testing.engine import Engine
from agenteval.testing.wire import MAX_BODY


class _Played(web.StreamResponse):
    """Passed to aiohttp for a reply that is already written."""

    def __init__(self, *, keep: bool) -> None:
        super().__init__()
        self._keep_alive = keep

    async def prepare(self, request: web.BaseRequest) -> None:
        """Nothing is left to write."""

    async def write_eof(self, data: Any = b"") -> None:
        """Nothing is left to write."""


async def run(engine: Engine, port: int, stop: asyncio.Event, ready: Callable[[int], None]) -> None:
    """Listen on 127.0.0.1 until `stop` is set; `ready` gets the port. Raises OSError when the
    port is taken."""
    loop = asyncio.get_running_loop()

    def request(head: Any, body: Any, protocol: Any, writer: Any, task: Any) -> web.BaseRequest:
        return web.BaseRequest(head, body, protocol, writer, task, loop, client_max_size=MAX_BODY)

    async def answer(asked: web.BaseRequest) -> web.StreamResponse:
        raw = await asked.read()
        engine.connections = len(server.connections)
        headers = {name.lower(): value for name, value in asked.headers.items()}
        exchange = engine.handle(asked.method, asked.path_qs, headers, raw)
        transport, delivered = asked.transport, False
        try:
            for number, (wait, data) in enumerate(exchange.wire.steps, 1):
                if wait > 0:
                    await asyncio.sleep(wait)
                if number == len(exchange.wire.steps):
                    # counted before the last byte leaves: whoever has the reply sees the count
                    engine.finish(exchange, delivered=True)
                    delivered = True
                if data and transport is not None:
                    transport.write(data)
        finally:
            if not delivered:
                engine.finish(exchange, delivered=False)
        if exchange.wire.end == "reset" and transport is not None:
            linger = struct.pack("ii", 1, 0)  # close with RST instead of FIN
            open_socket = transport.get_extra_info("socket")
            open_socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, linger)
            transport.abort()
        return _Played(keep=asked.keep_alive and exchange.wire.end == "keep")

    server = web.Server(
        answer,
        request_factory=request,
        handler_cancellation=True,
        access_log=None,
        keepalive_timeout=600.0,
    )
    listening = await loop.create_server(server, "127.0.0.1", port, backlog=4096)
    try:
        ready(listening.sockets[0].getsockname()[1])
        await stop.wait()
    finally:
        listening.close()
        await server.shutdown(0.01)  # 0 would wait for those under way
