"""A loopback endpoint that repeats every credential it gets, in each way of failing."""

from __future__ import annotations

import base64
import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

STATUSES = (200, 400, 401, 403, 404, 422, 429, 500, 503)
_HEADERS = ("authorization", "api-key", "x-api-key", "proxy-authorization")
MODES = (*(str(s) for s in STATUSES), "cut", "slow", "html", "no-json", "error200", "redirect")


class Echo(ThreadingHTTPServer):
    """`heard` are the credentials that came, of a redirect's target apart."""

    daemon_threads = True

    def __init__(self, other: str | None = None) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.other = other
        self.heard: list[str] = []

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that went away is what is tested, not an error of the server."""


class _Handler(BaseHTTPRequestHandler):
    server: Echo
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers.get("content-length") or 0))
        mode = self.path.strip("/").split("/")[0].partition("?")[0]
        told = self._credentials()
        self.server.heard.append(told)
        if mode == "redirect" and self.server.other:
            self._send(307, b"", "text/plain", [("Location", f"{self.server.other}/200/v1/x")])
        elif mode == "cut":
            self.wfile.write(
                f"HTTP/1.1 200 OK\r\nX-Told: {told}\r\nContent-Length: 9999\r\n\r\n{{".encode()
            )
            self.close_connection = True
        elif mode == "slow":
            time.sleep(3)
            self._send(200, b"{}", "application/json")
        elif mode in ("html", "no-json"):
            self._send(200, f"<h1>no</h1> {told}".encode(), "text/html")
        else:
            self._answer(mode, told)

    do_GET = do_POST  # noqa: N815

    def _answer(self, mode: str, told: str) -> None:
        status = int(mode) if mode.isdigit() else 200
        error = {"error": {"message": f"wrong key: {told}", "type": told[-60:], "code": status}}
        good = {"choices": [{"message": {"role": "assistant", "content": f"You sent {told}"},
                             "finish_reason": "stop"}], "model": told}  # fmt: skip
        body = good if status == 200 and mode != "error200" else error
        self._send(status, json.dumps(body).encode(), "application/json")

    def _credentials(self) -> str:
        """Headers that hold keys, the Basic one decoded as well, and the path with its query."""
        kept = [f"{k}: {v}" for k, v in self.headers.items()
                if k.lower() in _HEADERS]  # fmt: skip
        scheme, _, given = self.headers.get("authorization", "").partition(" ")
        if scheme.lower() == "basic":
            kept.append(base64.b64decode(given).decode("utf-8", "replace"))
        return " | ".join([*kept, self.path])

    def _send(
        self, status: int, body: bytes, kind: str, more: list[tuple[str, str]] | None = None
    ) -> None:
        self.send_response(status)
        for name, value in [
            ("Content-Type", kind),
            ("Content-Length", str(len(body))),
            *(more or []),
        ]:
            self.send_header(name, value)
        self.send_header("X-Request-Id", self._credentials()[:200])
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: Any) -> None:
        """Quiet."""


@contextmanager
def echo() -> Iterator[tuple[Echo, Echo]]:
    """The endpoint, and the other host that it redirects to."""
    other = Echo()
    own = Echo(other.url.replace("127.0.0.1", "localhost"))
    for server in (own, other):
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
    try:
        yield own, other
    finally:
        for server in (own, other):
            server.shutdown()
            server.server_close()
