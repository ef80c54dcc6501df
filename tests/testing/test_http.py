"""HTTP/1.1 as it comes over the socket: framing, limits, keep-alive."""

from __future__ import annotations

import contextlib
import json
import socket
from collections.abc import Iterator

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.testing import Fault, Server, serve

BODY = json.dumps({"model": "m", "messages": [{"role": "user", "content": "hi"}]}).encode()


def post(body: bytes = BODY, *headers: str) -> bytes:
    lines = ["POST /v1/chat/completions HTTP/1.1", "Host: x", *headers]
    head = "\r\n".join([*lines, f"Content-Length: {len(body)}"])
    return head.encode() + b"\r\n\r\n" + body


def connect(server: Server) -> socket.socket:
    port = int(server.base_url.split(":")[2].split("/")[0])
    return socket.create_connection(("127.0.0.1", port), timeout=5)


def read(connection: socket.socket) -> tuple[int, bytes]:
    """One response: status and body."""
    data = b""
    while b"\r\n\r\n" not in data:
        piece = connection.recv(65536)
        assert piece, "closed before the head was complete"
        data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65536)
    assert len(body) == length, "more bytes than the response has"
    return int(head.split()[1]), body


def test_a_request_may_come_byte_by_byte() -> None:
    with serve() as server, connect(server) as connection:
        for byte in post():
            connection.sendall(bytes([byte]))
        assert read(connection)[0] == 200


def test_pipelined_requests_are_answered_in_order() -> None:
    texts = [json.dumps({"model": str(i), "messages": [{"role": "user"}]}) for i in range(5)]
    with serve(latency=0.01) as server, connect(server) as connection:
        connection.sendall(b"".join(post(t.encode()) for t in texts))
        got = b""
        while got.count(b'"model":') < 5:
            got += connection.recv(65536)
        assert server.max_in_flight == 1
    models = [part.split(b'"')[1] for part in got.split(b'"model":')[1:]]
    assert models == [b"0", b"1", b"2", b"3", b"4"]


def test_connection_close_and_http_1_0_end_the_connection() -> None:
    for data in (post(BODY, "Connection: close"), post().replace(b"HTTP/1.1", b"HTTP/1.0")):
        with serve() as server, connect(server) as connection:
            connection.sendall(data)
            assert read(connection)[0] == 200
            assert connection.recv(1) == b""


def test_expect_100_continue() -> None:
    with serve() as server, connect(server) as connection:
        head, _, body = post(BODY, "Expect: 100-continue").partition(b"\r\n\r\n")
        connection.sendall(head + b"\r\n\r\n")
        assert connection.recv(100).startswith(b"HTTP/1.1 100 ")
        connection.sendall(body)
        assert read(connection)[0] == 200


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"hello\r\n\r\n", 400),
        (b"GET / SPDY/3\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nname : x\r\n\r\n", 400),
        (post(BODY, "Content-Length: 5"), 400),
        (b"POST / HTTP/1.1\r\nContent-Length: -5\r\n\r\n", 400),
        (b"POST / HTTP/1.1\r\nContent-Length: " + b"9" * 5000 + b"\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n", 411),
        (b"GET / HTTP/1.1\r\nx: " + b"y" * 70_000, 431),
    ],
)
def test_what_is_not_http_is_answered_and_closed(data: bytes, status: int) -> None:
    with serve() as server, connect(server) as connection:
        connection.sendall(data)
        assert connection.recv(65536).split()[1] == str(status).encode()
        with connect(server) as other:
            other.sendall(post())
            assert read(other)[0] == 200


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"{",
        b"[]",
        b'{"model": 1, "messages": [{"role": "user"}]}',
        b'{"model": "m"}',
        b'{"model": "m", "messages": []}',
        b'{"model": "m", "messages": ["x"]}',
        b'{"model": "m", "messages": [{"role": "user"}], "temperature": NaN}',
        b"[" * 100_000,
        b"\xff\xfe",
    ],
)
def test_a_bad_body_gets_400_and_the_connection_lives_on(body: bytes) -> None:
    with serve() as server, connect(server) as connection:
        connection.sendall(post(body))
        status, reply = read(connection)
        assert status == 400
        assert json.loads(reply)["error"]["type"] == "invalid_request_error"
        connection.sendall(post())
        assert read(connection)[0] == 200


@pytest.fixture(scope="module")
def shared() -> Iterator[Server]:
    with serve() as server:
        yield server


@given(noise=st.lists(st.binary(max_size=300) | st.just(post()[:60]), max_size=4))
@settings(max_examples=60, deadline=None)
def test_noise_neither_stops_nor_confuses_the_server(shared: Server, noise: list[bytes]) -> None:
    with connect(shared) as connection:
        # The server may close at the first line that is not HTTP, as it should.
        with contextlib.suppress(BrokenPipeError, ConnectionResetError):
            for piece in noise:
                connection.sendall(piece)
        with connect(shared) as other:
            other.sendall(post())
            assert read(other)[0] == 200


def test_reset_is_a_tcp_reset_and_half_a_body_is_an_early_end() -> None:
    with serve(faults=[Fault("reset")]) as server, connect(server) as connection:
        connection.sendall(post())
        with pytest.raises(ConnectionResetError):
            connection.recv(100)
    with serve(faults=[Fault("half_body")]) as server, connect(server) as connection:
        connection.sendall(post())
        data = b""
        while piece := connection.recv(65536):
            data += piece
    head, _, body = data.partition(b"\r\n\r\n")
    length = int(head.split(b"content-length: ")[1])
    assert len(body) == length // 2


def test_an_unfinished_request_is_dropped_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("agenteval.testing.http.PARTIAL_SECONDS", 0.0)
    monkeypatch.setattr("agenteval.testing.http.SWEEP_SECONDS", 0.1)
    with serve() as server, connect(server) as connection:
        connection.settimeout(60)
        connection.sendall(post()[:40])
        assert connection.recv(1) == b""


def test_it_listens_on_loopback_alone() -> None:
    with serve() as server:
        assert server.base_url.startswith("http://127.0.0.1:")
        port = int(server.base_url.split(":")[2].split("/")[0])
        # 127.0.0.2 is this machine, too, but not the address that was bound
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port), timeout=5)
