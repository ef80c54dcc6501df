"""A loopback endpoint that costs little: one reply to all requests, in a process of its own.

`python -m benchmarks.endpoint LATENCY < REPLY` prints its port and serves until standard input is
closed again. Every POST is answered with the reply, LATENCY seconds after it came. GET returns what
was counted since the last GET: requests, different bodies among them, and CPU seconds.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, cast

from benchmarks.folders import ROOT, module


@dataclass(frozen=True)
class Endpoint:
    """Where it listens."""

    base_url: str

    def counted(self) -> dict[str, Any]:
        """Requests, different bodies and CPU seconds since the last time."""
        with urllib.request.urlopen(self.base_url, timeout=10) as answer:
            return cast(dict[str, Any], json.load(answer))


@contextmanager
def endpoint(text: str, latency: float) -> Iterator[Endpoint]:
    """An endpoint whose model replies `text`."""
    message = {"role": "assistant", "content": text}
    completion = {
        "id": "1",
        "object": "chat.completion",
        "created": 1,
        "model": "test-model",
        "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 300, "total_tokens": 1200},
    }
    command, pipe = module("endpoint", str(latency)), subprocess.PIPE
    with subprocess.Popen(command, cwd=ROOT, stdin=pipe, stdout=pipe, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(completion) + "\n")
        process.stdin.flush()
        try:
            yield Endpoint(f"http://127.0.0.1:{int(process.stdout.readline())}/v1")
        finally:
            process.stdin.close()
            process.wait(10)


class _Counts:
    def __init__(self) -> None:
        self.requests = 0
        self.bodies: set[int] = set()
        self.cpu = time.process_time()

    def json(self) -> bytes:
        cpu = time.process_time() - self.cpu
        counts = {"requests": self.requests, "different": len(self.bodies), "cpu_seconds": cpu}
        self.__init__()  # type: ignore[misc]
        return json.dumps(counts).encode()


class _Connection(asyncio.Protocol):
    def __init__(self, reply: bytes, latency: float, counts: _Counts) -> None:
        self.reply, self.latency, self.counts = reply, latency, counts
        self.buffer = b""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast(asyncio.WriteTransport, transport)

    def data_received(self, data: bytes) -> None:
        self.buffer += data
        while (end := self.buffer.find(b"\r\n\r\n") + 4) > 3:
            head = self.buffer[:end].lower()
            _, _, length = head.partition(b"content-length:")
            size = int(length.split(b"\r\n", 1)[0] or 0)
            if len(self.buffer) < end + size:
                return
            body, self.buffer = self.buffer[end : end + size], self.buffer[end + size :]
            if head.startswith(b"get"):
                self.answer(_response(self.counts.json()))
                continue
            self.counts.requests += 1
            self.counts.bodies.add(hash(body))
            asyncio.get_running_loop().call_later(self.latency, self.answer, self.reply)

    def answer(self, response: bytes) -> None:
        if not self.transport.is_closing():
            self.transport.write(response)


def _response(body: bytes) -> bytes:
    head = "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: "
    return f"{head}{len(body)}\r\n\r\n".encode() + body


async def _serve(reply: bytes, latency: float) -> None:
    loop, counts = asyncio.get_running_loop(), _Counts()
    server = await loop.create_server(
        lambda: _Connection(reply, latency, counts), "127.0.0.1", 0, backlog=1024
    )
    print(server.sockets[0].getsockname()[1], flush=True)
    await loop.run_in_executor(None, sys.stdin.read)


if __name__ == "__main__":
    asyncio.run(_serve(_response(sys.stdin.readline().strip().encode()), float(sys.argv[1])))
