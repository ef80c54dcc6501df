"""The server as the openai SDK sees it: endpoints, default and scripted answers."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import Callable
from typing import Any

import httpx2
import openai
import pytest

from agenteval.testing import RETRY_AFTER_FORMS, Fault, Rule, Server, serve
from tests.testing.conftest import Verdict, ask, client

FORM = {
    "type": "json_schema",
    "json_schema": {"name": "verdict", "schema": Verdict.model_json_schema(), "strict": True},
}


def test_schema_is_honoured_and_seeds_differ() -> None:
    labels = []
    for seed in range(12):
        with serve(seed=seed) as server, client(server) as sdk:
            reply = ask(sdk, response_format=FORM)
            labels.append(Verdict.model_validate_json(reply.choices[0].message.content).label)
    assert set(labels) == {"bad", "fair", "good"}


def test_logprobs_spell_the_reply_and_are_probabilities() -> None:
    said = " Two  words\nand ümlaut "
    with serve(answer=lambda body, n: said) as server, client(server) as sdk:
        tokens = ask(sdk, logprobs=True, top_logprobs=3).choices[0].logprobs.content
        none = ask(sdk).choices[0].logprobs
    assert none is None
    assert "".join(t.token for t in tokens) == said
    assert bytes(b for t in tokens for b in t.bytes).decode() == said
    for token in tokens:
        top = [t.logprob for t in token.top_logprobs]
        assert token.top_logprobs[0].token == token.token
        assert top == sorted(top, reverse=True)
        assert sum(2.718281828**p for p in top) < 1


def test_a_tool_call_is_made_when_required_or_scripted() -> None:
    parameters = {"type": "object", "properties": {"city": {"enum": ["Bonn"]}}}
    tool = {"type": "function", "function": {"name": "weather", "parameters": parameters}}
    with serve() as server, client(server) as sdk:
        assert ask(sdk, tools=[tool]).choices[0].message.tool_calls is None
        choice = ask(sdk, tools=[tool], tool_choice="required").choices[0]
        named = {"type": "function", "function": {"name": "other"}}
        with pytest.raises(openai.BadRequestError, match="other"):
            ask(sdk, tools=[tool], tool_choice=named)
    assert choice.finish_reason == "tool_calls"
    (call,) = choice.message.tool_calls
    assert call.function.name == "weather"
    assert json.loads(call.function.arguments) == {"city": "Bonn"}

    function = {"name": "weather", "arguments": "{}"}
    message = {"tool_calls": [{"id": "1", "type": "function", "function": function}]}
    with serve(answer=lambda body, n: message) as server, client(server) as sdk:
        choice = ask(sdk, tools=[tool]).choices[0]
    assert choice.message.tool_calls[0].function.name == "weather"
    assert choice.finish_reason == "tool_calls"


def test_embeddings_in_both_encodings() -> None:
    with serve() as server, client(server) as sdk:
        coded = sdk.embeddings.create(model="e", input=["one", "two"]).data
        plain = sdk.embeddings.create(model="e", input="one", encoding_format="float").data
        small = sdk.embeddings.create(model="e", input="one", dimensions=5).data
        with pytest.raises(openai.BadRequestError):
            sdk.embeddings.create(model="e", input="")
    assert coded[0].embedding == pytest.approx(plain[0].embedding, abs=1e-6)
    assert coded[0].embedding != coded[1].embedding
    assert sum(x * x for x in coded[1].embedding) == pytest.approx(1, abs=1e-5)
    assert (len(coded[0].embedding), len(small[0].embedding)) == (384, 5)


def test_key_decides_what_is_the_same_request() -> None:
    def key(body: dict[str, Any]) -> str:
        return str(body["messages"][0]["content"].split()[0])

    with serve(key=key) as server, client(server) as sdk:
        said = [ask(sdk, t).choices[0].message.content for t in ("r1 nonce9", "r1 nonce7", "r2 x")]
        assert [(r.key, r.n) for r in server.requests] == [("r1", 0), ("r1", 1), ("r2", 0)]
    assert said[0] == said[1] != said[2]


# ---- HTTP/1.1 as it comes over the socket: framing, limits, keep-alive ---------------------------


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


# ---- Requests at the same time, and what is counted ----------------------------------------------


async def _many(
    url: str, count: int, text: Callable[[int], str] = lambda i: f"text {i}"
) -> list[str]:
    limits = httpx2.Limits(max_connections=None, max_keepalive_connections=None)
    async with openai.AsyncOpenAI(
        base_url=url,
        api_key="none",
        max_retries=0,
        http_client=openai.DefaultAsyncHttpxClient(limits=limits),
    ) as sdk:

        async def one(i: int) -> str:
            try:
                reply = await sdk.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": text(i)}]
                )
            except openai.RateLimitError:
                return "429"
            return reply.choices[0].message.content or ""

        return list(await asyncio.gather(*(one(i) for i in range(count))))


async def test_above_the_ceiling_there_are_429s_and_they_use_up_no_turn() -> None:
    with serve(lambda body, n: f"turn {n}", ceiling=10, latency=2.0) as server:
        replies = await _many(server.base_url, 30, lambda i: "same")
        assert server.max_in_flight == 10
        assert server.engine.stats()["outcomes"] == {"ok": 10, "rejected": 20}
    assert sorted(r for r in replies if r != "429") == [f"turn {n}" for n in range(10)]


def test_stats_and_reset() -> None:
    with serve(lambda body, n: "x") as server, client(server) as sdk:
        for text in "aab":
            ask(sdk, text)
        root = server.base_url.removesuffix("/v1")
        stats = httpx2.get(f"{root}/stats").json()
        assert stats["requests"] == 3
        assert sorted(stats["per_request"].values()) == [[1, 1], [2, 2]]
        assert stats["answered_again"] == 1
        assert "per_request" not in httpx2.get(f"{root}/stats?keys=no").json()
        assert httpx2.post(f"{root}/reset").status_code == 200
        assert httpx2.get(f"{root}/stats").json()["requests"] == 0
        assert httpx2.get(f"{root}/reset").status_code == 405
        assert httpx2.get(f"{root}/nothing").status_code == 404


# ---- Faults as the openai SDK documents them -----------------------------------------------------


@pytest.mark.parametrize("form", RETRY_AFTER_FORMS)
def test_every_retry_after_form_reaches_the_client(form: str) -> None:
    fault = Fault("status", 429, headers=RETRY_AFTER_FORMS[form])
    with (
        serve(faults=[fault]) as server,
        client(server) as sdk,
        pytest.raises(openai.RateLimitError) as caught,
    ):
        ask(sdk)
    for name, value in RETRY_AFTER_FORMS[form].items():
        got = caught.value.response.headers[name]
        assert got == value or (value.startswith("@") and len(got.split()) >= 4)


@pytest.mark.parametrize("kind", ["reset", "half_body", "half_reset", "hang"])
def test_broken_connections(kind: str) -> None:
    with serve(faults=[Rule(Fault(kind, seconds=0.05), first=1)]) as server, client(server) as sdk:
        with pytest.raises((openai.APIConnectionError, httpx2.TransportError)) as caught:
            ask(sdk)
        assert ask(sdk).choices[0].message.content
        assert [r.outcome for r in server.requests] == [kind, "ok"]
    chain = f"{caught.value!r} {caught.value.__cause__!r}"
    named = {"reset": "ReadError", "half_reset": "ReadError"}.get(kind, "RemoteProtocolError")
    assert named in chain


def test_faults_strike_the_same_requests_in_whatever_order_they_come() -> None:
    def struck(texts: list[str]) -> set[str]:
        rules = [Rule(Fault("status", 500), probability=0.3)]
        with serve(faults=rules, seed=5) as server, client(server) as sdk:
            for text in texts:
                try:
                    ask(sdk, text)
                except openai.InternalServerError:
                    continue
            return {r.key for r in server.requests if r.outcome == "status"}

    texts = [f"t{i}" for i in range(40)]
    first = struck(texts)
    assert 3 <= len(first) <= 22  # binomial(40, .3): 12 expected, 3.5 standard deviations
    assert struck(texts[::-1]) == first
