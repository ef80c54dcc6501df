"""An OTLP/HTTP endpoint for logs on the loopback, which keeps what it is sent."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, str, dict[str, str]]  # status, body, headers


def value_of(any_value: dict[str, Any]) -> Any:
    """A value of OTLP/JSON."""
    ((kind, value),) = any_value.items()
    return int(value) if kind == "intValue" else value


def events_of(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The log records of one request, `attributes` as a dictionary."""
    for resource in document["resourceLogs"]:
        for scope in resource["scopeLogs"]:
            for record in scope["logRecords"]:
                pairs = record["attributes"]
                attributes = {pair["key"]: value_of(pair["value"]) for pair in pairs}
                assert len(attributes) == len(pairs)
                yield {**record, "attributes": attributes}


@dataclass
class Collector:
    """`answers` are given in turn, then `{}`; what is answered with 200 counts as taken."""

    answers: list[Answer] = field(default_factory=list)
    url: str = ""
    requests: list[tuple[str, dict[str, str]]] = field(default_factory=list)
    documents: list[dict[str, Any]] = field(default_factory=list)

    @property
    def events(self) -> list[dict[str, Any]]:
        return [event for document in self.documents for event in events_of(document)]


@contextmanager
def collecting(answers: Sequence[Answer] = ()) -> Iterator[Collector]:
    """A collector that listens until the end of the block."""
    collector = Collector(list(answers))

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = self.rfile.read(int(self.headers["Content-Length"]))
            collector.requests.append((self.path, dict(self.headers)))
            given = collector.answers.pop(0) if collector.answers else (200, "{}", {})
            status, text, headers = given
            if status == 200:
                collector.documents.append(json.loads(body))
            self.send_response(status)
            for name, value in {"Content-Length": str(len(text.encode())), **headers}.items():
                self.send_header(name, value)
            self.end_headers()
            self.wfile.write(text.encode())

        def log_message(self, *_: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield collector
        server.shutdown()
        thread.join(10)
