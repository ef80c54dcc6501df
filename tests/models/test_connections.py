"""Certificates are read once, and they are those that the environment names."""

from __future__ import annotations

import json
import shutil
import ssl
import subprocess
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest

from agenteval.errors import InputError, Transient, Untrusted
from agenteval.models.embeddings import EndpointEmbedder
from agenteval.models.openai import OpenAITransport
from agenteval.models.wire import Request
from agenteval.testing import serve
from agenteval.testing.engine import ServerExchange

ASKED = Request(({"role": "user", "content": "hello"},))
SAID = {"choices": [{"message": {"role": "assistant", "content": "hi"}, "finish_reason": "stop"}]}


class Saying(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        body = json.dumps(SAID).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A certificate of localhost that nobody else trusts, and its key, in one file."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("no openssl to make a certificate with")
    folder = tmp_path_factory.mktemp("tls")
    subprocess.run(
        [
            openssl,
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            "/CN=localhost",
            "-addext",
            "subjectAltName=DNS:localhost",
            "-keyout",
            "key.pem",
            "-out",
            "cert.pem",
        ],
        cwd=folder,
        check=True,
        capture_output=True,
    )
    return folder / "cert.pem"


@pytest.fixture(scope="module")
def url(certificate: Path) -> Iterator[str]:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, certificate.with_name("key.pem"))
    with ThreadingHTTPServer(("127.0.0.1", 0), Saying) as server:
        server.socket = context.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"https://localhost:{server.server_address[1]}/v1"
        server.shutdown()
        thread.join()


async def say(url: str) -> str:
    transport = OpenAITransport("m", base_url=url, api_key=None)
    try:
        return (await transport.send(ASKED)).text
    finally:
        await transport.close()


async def test_a_certificate_of_the_environment_is_trusted(
    url: str, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(certificate))
    assert await say(url) == "hi"


@pytest.mark.parametrize("credentials", ["", "user:word@"])
async def test_one_that_nobody_trusts_is_not(
    url: str, credentials: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On both kinds of connections; also after the other test had it trusted."""
    monkeypatch.delenv("SSL_CERT_FILE", raising=False)
    with pytest.raises(Untrusted, match=r"not trusted \(self-signed certificate\); SSL_CERT_FILE"):
        await say(url.replace("https://", f"https://{credentials}"))


@pytest.mark.parametrize(("name", "why"), [("none.pem", "No such file"), ("empty.pem", "X509")])
async def test_a_file_of_certificates_that_cannot_be_read_is_named(
    name: str, why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is refused names it as a way out, so a slip in it must not look like another defect."""
    path = tmp_path / name
    if name == "empty.pem":
        path.write_text("no certificate\n")
    monkeypatch.setenv("SSL_CERT_FILE", str(path))
    with pytest.raises(Untrusted, match=f"SSL_CERT_FILE={path} .*{why}"):
        await say("https://localhost:9/v1")
    with pytest.raises(Untrusted, match="SSL_CERT_FILE"):
        EndpointEmbedder("m", "https://localhost:9/v1").embed(["a"])


@pytest.mark.parametrize("proxy", ["gopher://127.0.0.1:1", "socks5://127.0.0.1:1"])
async def test_a_proxy_that_cannot_be_spoken_to_is_named(
    proxy: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ALL_PROXY", proxy)
    with pytest.raises(InputError, match=r"^ALL_PROXY: .* scheme"):
        await say("https://judge.example/v1")


async def test_a_dead_proxy_is_named_and_no_proxy_is_honoured(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with serve(lambda body, n: "direct") as server:
        monkeypatch.setenv("HTTP_PROXY", "http://me:proxy-pass-77@127.0.0.1:9")
        monkeypatch.delenv("NO_PROXY", raising=False)
        with pytest.raises(Transient) as raised:
            await say("http://judge.example/v1")
        assert "cannot connect to the proxy http://127.0.0.1:9 (" in str(raised.value)
        assert "proxy-pass-77" not in str(raised.value)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        assert await say(server.base_url) == "direct"


async def test_requests_go_through_the_proxy(monkeypatch: pytest.MonkeyPatch) -> None:
    with serve(lambda body, n: "by proxy") as proxy:
        monkeypatch.setenv("HTTP_PROXY", proxy.base_url.removesuffix("/v1"))
        asked: list[str] = []
        answer = proxy.engine.handle

        def handle(method: str, path: str, headers: dict[str, str], raw: bytes) -> ServerExchange:
            asked.append(path)
            return answer(method, "/v1/chat/completions", headers, raw)

        proxy.engine.handle = handle  # type: ignore[method-assign]
        assert await say("http://judge.example/v1") == "by proxy"
    assert asked == ["/v1/chat/completions"]  # the host itself does not exist
