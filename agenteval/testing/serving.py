"""Runs the server: on an event loop, in a thread of the test (`serve`), in a process (`spawn`).

aiohttp's server reads the requests. Replies are written as they are, byte by byte, since many of
them are meant to be broken.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import select
import socket
import struct
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from agenteval.testing.engine import Answer, Engine, Recorded, Settings
from agenteval.testing.faults import Fault, Latency, Rule, as_rules
from agenteval.testing.wire import MAX_BODY, Body


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

    async def answer(incoming: web.BaseRequest) -> web.StreamResponse:
        raw = await incoming.read()
        engine.connections = len(server.connections)
        headers = {name.lower(): value for name, value in incoming.headers.items()}
        exchange = engine.handle(incoming.method, incoming.path_qs, headers, raw)
        transport, delivered = incoming.transport, False
        try:
            for number, (wait, data) in enumerate(exchange.wire.steps, 1):
                if wait > 0:
                    await asyncio.sleep(wait)
                if number == len(exchange.wire.steps):
                    # counted before the last byte, so that a client with the reply sees the count
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
        return _Played(keep=incoming.keep_alive and exchange.wire.end == "keep")

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
        await server.shutdown(0.01)  # 0 would wait for running requests


class Server:
    """A server in a thread with its own event loop; see `serve`."""

    def __init__(self, settings: Settings) -> None:
        self.engine = Engine(settings)
        self.base_url = ""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._up = threading.Event()
        self._failed: BaseException | None = None
        self._thread = threading.Thread(target=self._work, name="fault-server", daemon=True)

    def __enter__(self) -> Server:
        self._thread.start()
        if not self._up.wait(10):
            raise RuntimeError("the test server did not start within 10 s")
        if self._failed is not None:
            raise self._failed
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        if self._loop is not None:
            with contextlib.suppress(RuntimeError):  # the loop may have ended already
                self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)
        if self._thread.is_alive():
            raise RuntimeError("the test server did not stop within 10 s")
        trouble = self._failed or self.engine.error
        if trouble is not None and kind is None:
            raise trouble

    def _work(self) -> None:
        try:
            asyncio.run(self._main())
        except Exception as error:  # noqa: BLE001  (raised again in the thread that waits for us)
            self._failed = error
        finally:
            self._up.set()

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        self._loop.set_exception_handler(self._broken)
        await run(self.engine, 0, self._stop, self._listening)

    def _broken(self, loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        # A defect of the server itself: asyncio would only log it.
        error = context.get("exception") or RuntimeError(str(context.get("message")))
        self.engine.error = self.engine.error or error
        loop.default_exception_handler(context)

    def _listening(self, port: int) -> None:
        self.base_url = f"http://127.0.0.1:{port}/v1"
        self._up.set()

    @property
    def requests(self) -> list[Recorded]:
        """The last `record` requests, in order of arrival."""
        return list(self.engine.log.copy())

    @property
    def count(self) -> int:
        """Requests to the model endpoints, faulty and rejected ones included."""
        return self.engine.count

    @property
    def max_in_flight(self) -> int:
        """Most requests that were being answered at once; rejected ones do not count."""
        return self.engine.max_in_flight


def serve(
    answer: Answer | None = None,
    faults: Sequence[Fault | Rule] = (),
    latency: float | Latency = 0.0,
    **more: Any,
) -> Server:
    """A server to be entered with `with`; Settings explains these and all other options.

    Leaving the block raises the first error of `answer` or `key`, if there was one. Raises
    InputError for values out of bounds, TypeError for an unknown option.
    """
    waits = latency if isinstance(latency, Latency) else Latency(a=latency)
    return Server(Settings(answer=answer, faults=as_rules(faults), latency=waits, **more))


@dataclass
class ServerProcess:
    """A server in a process of its own; see `spawn`."""

    base_url: str
    pid: int
    process: subprocess.Popen[bytes] = field(repr=False)

    def stats(self, *, keys: bool = True) -> Body:
        """GET /stats. Raises OSError when the server is gone."""
        return self._call("GET", "/stats" if keys else "/stats?keys=no")

    def reset(self) -> None:
        """POST /reset. Raises OSError when the server is gone or has requests in flight."""
        self._call("POST", "/reset")

    def _call(self, method: str, path: str) -> Body:
        from http.client import HTTPConnection  # no proxy from the environment, unlike urllib

        port = int(self.base_url.rsplit(":", 1)[1].split("/")[0])
        with contextlib.closing(HTTPConnection("127.0.0.1", port, timeout=30)) as connection:
            connection.request(method, path)
            response = connection.getresponse()
            value: Body = json.loads(response.read())
        if response.status != 200:
            raise OSError(f"{method} {path}: {response.status} {value['error']['message']}")
        return value


@contextlib.contextmanager
def spawn(*arguments: str) -> Iterator[ServerProcess]:
    """The server as a child process, given the arguments of the command line; stopped at the end.

    Raises RuntimeError when it does not come up within 20 s.
    """
    command = [sys.executable, "-m", "agenteval.testing.server", *arguments]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe) as process:  # noqa: S603  (ourselves)
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            readable, _, _ = select.select([process.stdout], [], [], 20)
            line = process.stdout.readline() if readable else b""
            if not line:
                raise RuntimeError(f"the test server did not start: {' '.join(command)}")
            ready = json.loads(line)
            yield ServerProcess(ready["base_url"], ready["pid"], process)
        finally:
            process.stdin.close()
            try:
                process.wait(10)
            except subprocess.TimeoutExpired:
                process.kill()
