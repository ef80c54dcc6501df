"""Certificates are read once, and they are those that the environment names."""

from __future__ import annotations

import json
import shlex
import shutil
import ssl
import subprocess
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import pytest
from autogen_ext.models.cache import ChatCompletionCache
from autogen_ext.models.openai import OpenAIChatCompletionClient
from yarl import URL

from agenteval.agents.endpoint import Endpoint, connect
from agenteval.agents.openai_responses import ResponsesTransport
from agenteval.errors import InputError, Redirected, Transient, Untrusted
from agenteval.models.autogen import AutogenTransport
from agenteval.models.client import Client
from agenteval.models.connections import redirect_target
from agenteval.models.embeddings import EndpointEmbedder
from agenteval.models.openai import OpenAITransport
from agenteval.models.wire import Request
from agenteval.testing import Server, serve
from agenteval.testing.engine import ServerExchange, refusal

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
    options = (
        "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost "
        "-addext subjectAltName=DNS:localhost -keyout key.pem -out cert.pem"
    )
    subprocess.run([openssl, *shlex.split(options)], cwd=folder, check=True, capture_output=True)
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


# ---- A redirect to another host is not followed: neither prompt nor key arrives there ------------


CANARY = "sk-canary-51be09aa"
PRIVATE = "a prompt that is nobody's business"
ASK = Request(({"role": "user", "content": PRIVATE},))
STATUSES = (301, 302, 303, 307, 308)


async def no_pause(_: float) -> None:
    raise AssertionError("a redirect is not asked again")


def direct(url: str, folder: Path) -> Client:
    return Client(OpenAITransport("m", base_url=url, api_key=CANARY), sleep=no_pause)


def agents(url: str, folder: Path) -> Client:
    return connect(Endpoint("m", url, api_key=CANARY), sleep=no_pause)


def responses(url: str, folder: Path) -> Client:
    endpoint = Endpoint("m", url, api_key=CANARY)
    return connect(endpoint, transport=ResponsesTransport, sleep=no_pause)


def autogen(url: str, folder: Path) -> Client:
    config = {
        "provider": "autogen_ext.models.openai.OpenAIChatCompletionClient",
        "config": {
            "model": "m",
            "base_url": url,
            "api_key": CANARY,
            "default_headers": {"x-api-key": CANARY},
            "model_info": {
                "vision": False,
                "function_calling": True,
                "json_output": True,
                "family": "unknown",
                "structured_output": False,
            },
        },
    }
    path = folder / "client.json"
    path.write_text(json.dumps(config))
    return Client(AutogenTransport.from_config(path), sleep=no_pause)


def wrapped(url: str, folder: Path) -> Client:
    inner = OpenAIChatCompletionClient(
        model="gpt-4o-2024-08-06",
        max_retries=0,
        base_url=url,
        api_key=CANARY,
        default_headers={"x-api-key": CANARY},
    )
    return Client(AutogenTransport(ChatCompletionCache(inner), "mine"), sleep=no_pause)


OURS: list[Callable[[str, Path], Client]] = [direct, responses]
SDKS: list[Callable[[str, Path], Client]] = [autogen, wrapped]


class Heard(list[tuple[str, str, bytes]]):
    """Every request that a server got, whatever for: method, path, body. `location` gives where a
    request is sent on to, None where it is answered."""

    def __init__(self, server: Server, status: int = 307) -> None:
        super().__init__()
        self.location: Callable[[str], str | None] = lambda path: None
        answer = server.engine.handle

        def handle(method: str, path: str, headers: dict[str, str], raw: bytes) -> ServerExchange:
            self.append((method, path, raw))
            if (target := self.location(path)) is not None:
                return refusal(status, "moved", {"location": target})
            return answer(method, path, headers, raw)

        server.engine.handle = handle  # type: ignore[method-assign]


def base(server: Server) -> str:
    return server.base_url.removesuffix("/v1")


def line(here: str, there: str) -> str:
    return (
        f"{here} redirects to {there}; nothing was sent there: another host must be named as the "
        "endpoint itself"
    )


async def refused(client: Client) -> str:
    try:
        with pytest.raises(Redirected) as raised:
            await client.complete(ASK)
    finally:
        await client.close()
    assert client.usage.requests == 1
    assert CANARY not in str(raised.value)
    return str(raised.value)


@pytest.mark.parametrize("make", OURS)
@pytest.mark.parametrize("status", STATUSES)
async def test_another_host_gets_nothing(
    make: Callable[[str, Path], Client], status: int, tmp_path: Path
) -> None:
    with serve() as other, serve() as home:
        there, here = Heard(other), Heard(home, status)
        here.location = lambda path: base(other) + path
        said = await refused(make(home.base_url, tmp_path))
        assert there == []
        assert len(here) == 1
        assert PRIVATE.encode() in here[0][2]
    assert said == line(base(home), base(other))


@pytest.mark.parametrize("make", SDKS)
async def test_the_client_of_an_sdk_follows_no_redirect(
    make: Callable[[str, Path], Client], tmp_path: Path
) -> None:
    with serve() as other, serve() as home:
        there, here = Heard(other), Heard(home)
        for target in (f"{base(other)}/there", f"{base(home)}/there"):
            here.location = {"/v1/chat/completions": target}.get
            said = await refused(make(home.base_url, tmp_path))
            assert f"redirects to {target}; nothing was sent there" in said
        assert there == []
        assert len(here) == 2


@pytest.mark.parametrize("make", OURS)
async def test_another_path_of_the_same_host_is_followed(
    make: Callable[[str, Path], Client], tmp_path: Path
) -> None:
    with serve(lambda body, n: "moved, but here") as home:
        here = Heard(home)
        moved = {"/old/chat/completions": "/v1/chat/completions", "/old/responses": "/v1/gone"}
        here.location = moved.get
        client = make(f"{base(home)}/old", tmp_path)
        if make is responses:  # the server does not speak it: that it was asked there is enough
            with pytest.raises(Exception, match="unknown path: /v1/gone"):
                await client.complete(ASK)
        else:
            assert (await client.complete(ASK)).text == "moved, but here"
        await client.close()
        assert [path for _, path, _ in here] == list(
            next(pair for pair in moved.items() if pair[0] == here[0][1])
        )
        assert all(PRIVATE.encode() in body for _, _, body in here)


@pytest.mark.parametrize("make", [direct])
async def test_a_circle_is_left_after_three_and_not_entered_again(
    make: Callable[[str, Path], Client], tmp_path: Path
) -> None:
    with serve() as home:
        here = Heard(home)
        here.location = lambda path: f"{path}/more"
        said = await refused(make(f"{base(home)}/a", tmp_path))
        assert said == f"{base(home)} redirects more than 3 times"
        assert len(here) == 1 + 3


async def test_another_user_of_the_same_host_is_not_followed(tmp_path: Path) -> None:
    with serve() as home:
        here = Heard(home)
        named = base(home).replace("://", "://ann:word@")
        here.location = {"/a/chat/completions": f"{named}/b/chat/completions"}.get
        said = await refused(direct(f"{base(home)}/a", tmp_path))
        assert said == f"{base(home)} redirects to itself with another user; nothing was sent there"
        assert len(here) == 1


@pytest.mark.parametrize(
    ("home", "target", "allowed"),
    [
        ("http://h/v1", "https://h/v1", True),
        ("http://h/v1", "https://h:443/v2", True),
        ("https://h/v1", "https://h/v2", True),
        ("https://h/v1", "https://h:443/v1", True),
        ("https://h/v1", "http://h/v1", False),
        ("https://h/v1", "https://h:8443/v1", False),
        ("http://h/v1", "https://h:8443/v1", False),
        ("http://h:80/v1", "http://h/v1", True),
        ("http://h:8080/v1", "https://h/v1", False),
        ("http://h/v1", "https://sub.h/v1", False),
        ("https://h/v1", "https://h.evil/v1", False),
        ("https://h/v1", "https://h@evil/v1", False),
        ("https://h/v1", "ftp://h/v1", False),
    ],
)
def test_which_redirects_are_followed(home: str, target: str, allowed: bool) -> None:
    start = URL(home)
    if allowed:
        assert redirect_target(start, start, target) == URL(target)
    else:
        with pytest.raises(Redirected):
            redirect_target(start, start, target)
