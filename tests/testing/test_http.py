"""HTTP/1.1 as it comes over the socket: framing, limits, keep-alive."""

from __future__ import annotations

import json
import socket

import pytest

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


def test_it_listens_on_loopback_alone() -> None:
    with serve() as server:
        assert server.base_url.startswith("http://127.0.0.1:")
        port = int(server.base_url.split(":")[2].split("/")[0])
        # 127.0.0.2 is this machine, too, but not the address that was bound
        with pytest.raises(ConnectionRefusedError):
            socket.create_connection(("127.0.0.2", port), timeout=5)
