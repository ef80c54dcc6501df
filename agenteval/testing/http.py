"""HTTP/1.1 as far as clients of the OpenAI protocol speak it, on one asyncio loop."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import time
from collections.abc import Callable

from agenteval.testing.engine import Engine, Exchange, refusal
from agenteval.testing.wire import MAX_BODY, Refused

MAX_HEAD = 64 * 1024  # bytes
PARTIAL_SECONDS = 30.0  # a request must have arrived completely within this time
SWEEP_SECONDS = 5.0  # how often that is looked at
IDLE_SECONDS = 600.0


class Connection(asyncio.Protocol):
    """One client. Requests are answered one after the other; pipelined ones wait in the buffer."""

    def __init__(self, engine: Engine, open_connections: set[Connection]) -> None:
        self.engine, self.peers = engine, open_connections
        self.buffer = bytearray()
        self.head: tuple[str, str, dict[str, str], int] | None = None
        self.exchange: Exchange | None = None
        self.timer: asyncio.TimerHandle | None = None
        self.since = time.monotonic()  # when this request, or this idleness, began
        self.last = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Asyncio's callback."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.loop = asyncio.get_running_loop()
        self.peers.add(self)
        self.engine.connections += 1

    def connection_lost(self, exc: Exception | None) -> None:
        """Asyncio's callback."""
        self.peers.discard(self)
        self.engine.connections -= 1
        if self.timer is not None:
            self.timer.cancel()
        if self.exchange is not None:
            self.engine.finish(self.exchange, delivered=False)
            self.exchange = None

    def data_received(self, data: bytes) -> None:
        """Asyncio's callback."""
        if not self.buffer and self.head is None:
            self.since = time.monotonic()
        self.buffer += data
        if len(self.buffer) > MAX_HEAD + MAX_BODY:
            self.transport.abort()
        elif self.exchange is None:
            self._next()

    def expire(self, now: float) -> None:
        """Close when the client is silent in the middle of a request, or for very long."""
        if self.exchange is None:
            partial = bool(self.buffer) or self.head is not None
            if now - self.since > (PARTIAL_SECONDS if partial else IDLE_SECONDS):
                self.transport.abort()

    def _next(self) -> None:
        while self.exchange is None and not self.transport.is_closing():
            try:
                request = self._read()
            except Refused as error:  # not HTTP as we know it: answer, then close
                self.last = True
                self._play(refusal(error.status, str(error)))
                return
            if request is None:
                return
            self._play(self.engine.handle(*request))

    def _read(self) -> tuple[str, str, dict[str, str], bytes] | None:
        if self.head is None:
            end = self.buffer.find(b"\r\n\r\n")
            if end > MAX_HEAD or (end < 0 and len(self.buffer) > MAX_HEAD):
                raise Refused(431, "the request's head is too long")
            if end < 0:
                return None
            self.head = _parse_head(bytes(self.buffer[:end]))
            del self.buffer[: end + 4]
            if self.head[2].get("expect", "").lower() == "100-continue":
                self.transport.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        method, path, headers, length = self.head
        if len(self.buffer) < length:
            return None
        body = bytes(self.buffer[:length])
        del self.buffer[:length]
        self.head = None
        self.last = headers.get("connection", "").lower() == "close"
        return method, path, headers, body

    def _play(self, exchange: Exchange, step: int = 0) -> None:
        wait, _ = exchange.wire.steps[step]
        self.exchange = exchange
        if wait > 0:
            self.timer = self.loop.call_later(wait, self._write, step)
        else:
            self._write(step)

    def _write(self, step: int) -> None:
        exchange, self.timer = self.exchange, None
        assert exchange is not None
        data, final = exchange.wire.steps[step][1], step + 1 == len(exchange.wire.steps)
        if final:  # counted before the last byte leaves, so whoever has the reply sees the count
            self.engine.finish(exchange, delivered=True)
        if data:
            self.transport.write(data)
        if not final:
            self._play(exchange, step + 1)
            return
        self.exchange, self.since = None, time.monotonic()
        if exchange.wire.end == "reset":
            linger = struct.pack("ii", 1, 0)  # close with RST instead of FIN
            self.transport.get_extra_info("socket").setsockopt(
                socket.SOL_SOCKET, socket.SO_LINGER, linger
            )
            self.transport.abort()
        elif self.last or exchange.wire.end == "close":
            self.transport.close()
        elif self.buffer:
            self.loop.call_soon(self._next)


def _parse_head(raw: bytes) -> tuple[str, str, dict[str, str], int]:
    first, *lines = raw.decode("latin-1").split("\r\n")
    parts = first.split(" ")
    if len(parts) != 3 or parts[2] not in ("HTTP/1.1", "HTTP/1.0"):
        raise Refused(400, "not an HTTP/1.1 request")
    headers: dict[str, str] = {}
    for line in lines:
        name, colon, value = line.partition(":")
        name = name.lower()
        if not colon or not name or name.strip() != name:
            raise Refused(400, "malformed header line")
        if name == "content-length" and name in headers:
            raise Refused(400, "content-length is given twice")
        headers[name] = value.strip()
    if parts[2] == "HTTP/1.0":
        headers["connection"] = "close"
    if "transfer-encoding" in headers:
        raise Refused(411, "send a content-length; chunked requests are not read here")
    length = headers.get("content-length", "0")
    if not (length.isascii() and length.isdigit()):
        raise Refused(400, "content-length is not a number")
    if len(length) > 12 or int(length) > MAX_BODY:
        raise Refused(413, f"the body is longer than {MAX_BODY} bytes")
    return parts[0], parts[1], headers, int(length)


async def run(engine: Engine, port: int, stop: asyncio.Event, ready: Callable[[int], None]) -> None:
    """Listen on 127.0.0.1 until `stop` is set; `ready` gets the port. Raises OSError when the
    port is taken."""
    connections: set[Connection] = set()
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: Connection(engine, connections), "127.0.0.1", port, backlog=4096
    )
    try:
        ready(server.sockets[0].getsockname()[1])
        while not stop.is_set():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(stop.wait(), SWEEP_SECONDS)
            for connection in list(connections):
                connection.expire(time.monotonic())
    finally:
        server.close()
        for connection in list(connections):
            connection.transport.abort()
        await asyncio.sleep(0)  # lets connection_lost run
