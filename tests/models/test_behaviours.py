"""What real endpoints do, through the whole client: status, requests, words, what is remembered."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest

from agenteval.errors import BadRequest, Filtered, InputError, ModelError, Transient, Unauthorized
from agenteval.models.client import Client
from agenteval.models.factory import ChatModel, choose_model, make_client
from agenteval.models.limits import Budget, Limits, Price
from agenteval.models.openai import OpenAITransport, endpoint_of
from agenteval.models.wire import Reply, Request
from tests.support.endpoints import BODIES, FILTERED, Behaving, behaving

SCHEMA = {
    "type": "object",
    "properties": {"clear": {"type": "object"}},
    "required": ["clear"],
    "additionalProperties": False,
}
ANSWER = {"clear": {"explanation": "fine", "label": "good"}}
USUAL = {"temperature": 0.5, "seed": 7, "max_tokens": 2048}


@pytest.fixture(scope="module")
def endpoint() -> Iterator[Behaving]:
    with behaving() as served:
        yield served


def ask(text: str, **parameters: Any) -> Request:
    messages = ({"role": "system", "content": "You judge."}, {"role": "user", "content": text})
    return Request(messages, schema=SCHEMA, parameters=USUAL | parameters)


@asynccontextmanager
async def client_of(endpoint: Behaving, name: str, **more: Any) -> AsyncIterator[Client]:
    async def sleep(_: float) -> None:
        """Pauses are not waited for."""

    endpoint.asked[name].clear()
    transport = OpenAITransport(name, base_url=f"{endpoint.url}/v1", api_key=None)
    client = Client(transport, sleep=sleep, **more)
    try:
        yield client
    finally:
        await client.close()


async def replies(client: Client, count: int) -> list[Reply]:
    return [await client.complete(ask(f"question {n}")) for n in range(count)]


# name, requests for the first question, requests for the next two
ANSWERED = [
    ("good", 1, 2),
    ("gpt5", 3, 2),
    ("only_max_tokens", 1, 2),
    ("too_many_states", 2, 2),
    ("no_form_unnamed", 3, 4),
    ("lmstudio_form", 1, 2),
    ("form_501", 3, 2),
    ("form_500", 3, 2),
    ("system_role", 2, 2),
    ("alternate", 2, 2),
    ("gemma", 2, 2),
    ("maxtoolarge", 2, 2),
    ("max_range", 2, 2),
    ("vllm_context", 2, 3),
    ("detail", 2, 2),
    ("azure_param", 2, 2),
    ("invalidparam", 2, 2),
    ("kimi_temperature", 2, 2),
    *((name, 2, 2) for name in BODIES),
    ("sse", 1, 2),
    ("parts", 1, 2),
    ("content_object", 1, 2),
    ("tool_call", 1, 2),
    ("function_call", 1, 2),
    ("beside_reasoning", 1, 2),
    ("choice_text", 1, 2),
    ("odd_finish", 1, 2),
    ("odd_usage", 1, 2),
    ("nan_usage", 1, 2),
    ("blanks", 1, 2),
    ("gzipped", 1, 2),
    ("in_a_list", 1, 2),
    ("finish_error", 2, 2),
    ("empty_200", 2, 2),
    ("null_choices", 2, 2),
    ("no_choices", 2, 2),
    ("error_200", 2, 2),
    ("error_200_text", 2, 2),
    ("bad_429", 2, 2),
    ("words_429", 2, 2),
    ("status_499", 2, 2),
    ("no_limit_at_all", 3, 2),
    ("litellm", 2, 2),
    ("tgi", 2, 3),
    ("bedrock_key", 2, 2),
    ("openrouter_404", 3, 4),
    ("status_529", 2, 2),
    ("status_524", 2, 2),
    ("half_gzip", 2, 2),
    ("groq_always", 3, 4),
]


@pytest.mark.parametrize(("name", "first", "later"), ANSWERED)
async def test_answered_and_remembered(
    endpoint: Behaving, name: str, first: int, later: int
) -> None:
    async with client_of(endpoint, name) as client:
        answers = await replies(client, 1)
        assert len(endpoint.asked[name]) == first
        answers += await replies(client, 2)
    assert [json.loads(reply.text) for reply in answers] == [ANSWER] * 3
    assert len(endpoint.asked[name]) == first + later == client.usage.requests


async def test_a_mode_that_fails_at_random_is_tried_again_and_kept(endpoint: Behaving) -> None:
    async with client_of(endpoint, "groq_fail") as client:
        answers = await replies(client, 6)
    assert {reply.mode for reply in answers} == {"json_schema"}


async def test_the_text_of_a_system_message_is_not_lost(endpoint: Behaving) -> None:
    async with client_of(endpoint, "system_role") as client:
        await replies(client, 1)
    (message,) = endpoint.asked["system_role"][-1]["messages"]
    assert message == {"role": "user", "content": "You judge.\n\nquestion 0"}


async def test_the_limit_that_a_refusal_names_is_used(endpoint: Behaving) -> None:
    for name, limit in (("maxtoolarge", 1024), ("max_range", 1500), ("vllm_context", 1000)):
        async with client_of(endpoint, name) as client:
            await replies(client, 1)
        assert endpoint.asked[name][-1]["max_tokens"] == limit


async def test_many_at_once_learn_together_and_say_it_once(
    endpoint: Behaving, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.WARNING, logger="agenteval")
    async with client_of(endpoint, "gpt5@many") as client:
        await asyncio.gather(*(client.complete(ask(f"q {n}")) for n in range(12)))
    assert len(caplog.messages) == len(set(caplog.messages)) == 2


REFUSED: list[tuple[str, type[ModelError], int, str]] = [
    ("s_404", BadRequest, 1, "model 'llama9' not found, try pulling it first"),
    ("s_401", Unauthorized, 1, "API key not valid"),
    ("keyed", Unauthorized, 1, "Incorrect API key provided"),
    ("no_credit", Unauthorized, 1, "credit balance is too low"),
    ("quota", Unauthorized, 1, "current quota"),
    ("html_502", Transient, 6, "502 Bad Gateway"),
    ("html_200", Transient, 6, "not JSON (35 bytes: Sign in)"),
    ("gigabyte", BadRequest, 1, "longer than 16 MiB"),
    ("anthropic", BadRequest, 1, "not a chat completion: its members are content, type"),
    ("ollama", BadRequest, 1, "not a chat completion: its members are done, message, model"),
    ("gemini", BadRequest, 1, "not a chat completion: its members are candidates"),
]


@pytest.mark.parametrize(("name", "kind", "requests", "words"), REFUSED)
async def test_not_answered(
    endpoint: Behaving, name: str, kind: type[ModelError], requests: int, words: str
) -> None:
    async with client_of(endpoint, name) as client:
        with pytest.raises(kind) as raised:
            await replies(client, 1)
    assert words in str(raised.value)
    assert "\n" not in str(raised.value)
    assert len(endpoint.asked[name]) == requests


@pytest.mark.parametrize(
    "name", ["azure_filter", "or_moderation", "xai_403", "dashscope", "filter_200"]
)
async def test_a_moderated_request_is_refused_alone(endpoint: Behaving, name: str) -> None:
    async with client_of(endpoint, name) as client:
        for _ in range(4):
            with pytest.raises(Filtered):
                await client.complete(ask(f"a {FILTERED} text"))
        assert len(endpoint.asked[name]) == 4
        assert len(await replies(client, 1)) == 1


async def test_403_without_a_reason_ends_all_when_the_first_requests_meet_it(
    endpoint: Behaving,
) -> None:
    async with client_of(endpoint, "all_403") as client:
        for kind in (BadRequest, BadRequest, Unauthorized, Unauthorized):
            with pytest.raises(kind, match="Forbidden"):
                await replies(client, 1)
    assert len(endpoint.asked["all_403"]) == 3


async def test_403_without_a_reason_concerns_one_request_when_others_are_answered(
    endpoint: Behaving,
) -> None:
    async with client_of(endpoint, "waf_403") as client:
        await replies(client, 1)
        for _ in range(5):
            with pytest.raises(BadRequest, match="403 Forbidden"):
                await client.complete(ask(f"a {FILTERED} text"))
        await replies(client, 1)


# ---- limits on tokens ----------------------------------------------------------------------------


async def test_a_reply_cut_off_in_its_thinking_is_asked_once_more_without_limit(
    endpoint: Behaving, caplog: pytest.LogCaptureFixture
) -> None:
    async with client_of(endpoint, "reasons") as client:
        answers = await replies(client, 3)
        assert all(json.loads(reply.text) == ANSWER for reply in answers)
        # the tokens of the reply that said nothing are counted
        assert client.usage.completion_tokens == 2048 + 3 * 5
    assert ["max_tokens" in body for body in endpoint.asked["reasons"]] == [True, *[False] * 3]
    assert len([m for m in caplog.messages if "without a limit on tokens" in m]) == 1


async def test_where_no_limit_helps_a_handful_of_replies_ends_it(endpoint: Behaving) -> None:
    name = "reasons_forever"
    async with client_of(endpoint, name) as client:
        answers = await replies(client, 4)
        assert all(reply.says_nothing for reply in answers)
        with pytest.raises(Unauthorized, match=r"--max-tokens.*--reasoning-effort"):
            await replies(client, 1)
    assert len(endpoint.asked[name]) == 6  # five, and one of them again


async def test_a_limit_of_the_user_is_kept(endpoint: Behaving) -> None:
    async with client_of(endpoint, "reasons", parameters={"max_tokens": 500}) as client:
        (reply,) = await replies(client, 1)
    assert reply.says_nothing
    assert [body["max_tokens"] for body in endpoint.asked["reasons"]] == [500]


async def test_under_a_cap_on_cost_no_limit_is_dropped_where_the_bound_is_unknown(
    endpoint: Behaving,
) -> None:
    budget = Budget(max_cost=1.0, price=Price(1.0, 1.0))
    async with client_of(endpoint, "reasons", budget=budget) as client:
        (reply,) = await replies(client, 1)
    assert reply.says_nothing
    assert len(endpoint.asked["reasons"]) == 1


async def test_a_model_known_to_reason_gets_no_limit_and_its_bound_is_reserved(
    endpoint: Behaving,
) -> None:
    client = Client(OpenAITransport("o3-mini", base_url=f"{endpoint.url}/v1", api_key=None))
    draft = client.draft(ask("q"))
    assert "max_tokens" not in draft.request.parameters
    assert draft.reply == 100_000


def test_a_cap_on_cost_asks_for_a_limit_where_no_bound_is_known() -> None:
    limits = Limits(max_cost=1.0, price=Price(1.0, 1.0))
    for model in (ChatModel("my-own", parameters={"max_tokens": None}), "qwq-32b"):
        with pytest.raises(InputError, match="--max-tokens N"):
            make_client(choose_model(model, "http://h/v1"), limits, None)
    known = ChatModel("qwq-32b", parameters={"max_tokens": 100})
    make_client(choose_model(known, "http://h/v1"), limits, None)


def test_parameters_are_part_of_who_judges() -> None:
    def of(**parameters: Any) -> Client:
        model = ChatModel("m", parameters=parameters)
        return make_client(choose_model(model, "http://h/v1"), Limits(), None)

    plain, low, high = of(), of(reasoning_effort="low"), of(reasoning_effort="high")
    assert plain.address == "http://h/v1"
    assert len({client.address for client in (plain, low, high)}) == 3
    keys = {client.draft(ask("q")).key for client in (plain, low, high)}
    assert len(keys) == 3
    assert plain.draft(ask("q")).key == ask("q").key("http://h/v1", "m")


# ---- addresses -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "path", ["", "/", "/v1", "/v1/", "/v1/chat/completions", "/v1/chat/completions/"]
)
async def test_spellings_of_one_endpoint(endpoint: Behaving, path: str) -> None:
    transport = OpenAITransport(f"good@{path}", base_url=f"{endpoint.url}{path}", api_key=None)
    assert transport.endpoint == f"{endpoint.url}/v1"
    client = Client(transport)
    assert json.loads((await replies(client, 1))[0].text) == ANSWER
    await client.close()


def test_replies_of_the_providers_are_found_under_the_spelling_of_before() -> None:
    assert endpoint_of("https://api.anthropic.com/v1") == "https://api.anthropic.com/v1/"
    assert endpoint_of("https://api.openai.com/v1/") == "https://api.openai.com/v1"


async def test_a_path_that_is_not_served_has_a_hint(endpoint: Behaving) -> None:
    transport = OpenAITransport("good", base_url=f"{endpoint.url}/elsewhere", api_key=None)
    with pytest.raises(BadRequest, match=r"HTTP 404 .* is it the right base URL"):
        await transport.send(ask("q"))
    await transport.close()


@pytest.mark.parametrize(
    ("version", "path"),
    [
        ("2025-01-01", "/openai/deployments/good/chat/completions?api-version=2025-01-01"),
        (None, "/openai/v1/chat/completions"),
    ],
)
async def test_azure(
    endpoint: Behaving, monkeypatch: pytest.MonkeyPatch, version: str | None, path: str
) -> None:
    monkeypatch.setenv("AZURE_OPENAI_ENDPOINT", f"{endpoint.url}/")
    monkeypatch.setenv("AZURE_OPENAI_API_KEY", "azure-canary-0f3a")
    if version:
        monkeypatch.setenv("OPENAI_API_VERSION", version)
    client = make_client(choose_model("azure:good"), Limits(), None)
    await replies(client, 1)
    await client.close()
    assert endpoint.paths[-1] == path
    assert endpoint.headers[-1]["api-key"] == "azure-canary-0f3a"
    assert "Authorization" not in endpoint.headers[-1]


def test_azure_without_an_endpoint_says_what_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("AZURE_OPENAI_ENDPOINT", raising=False)
    with pytest.raises(InputError, match="AZURE_OPENAI_ENDPOINT"):
        choose_model("azure:x")


@pytest.mark.parametrize("kind", ["openai", "azure"])
async def test_a_client_object_of_the_caller(endpoint: Behaving, kind: str) -> None:
    sdk: openai.AsyncOpenAI
    if kind == "openai":
        sdk = openai.AsyncOpenAI(base_url=f"{endpoint.url}/v1", api_key="mine")
    else:
        sdk = openai.AsyncAzureOpenAI(
            azure_endpoint=endpoint.url, api_key="mine", api_version="2025-01-01"
        )
    for name in ("gpt5", "s_list", "azure_filter"):
        model = ChatModel(f"{name}@{kind}", client=sdk)
        client = make_client(choose_model(model), Limits(), None)
        assert json.loads((await replies(client, 1))[0].text) == ANSWER
        if name == "azure_filter":
            with pytest.raises(Filtered):
                await client.complete(ask(FILTERED))
        await client.close()
    await sdk.close()


# ---- the connection itself -----------------------------------------------------------------------


async def test_a_connection_that_was_closed_while_idle_is_opened_anew_at_once() -> None:
    closing = 0

    async def serve_one(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Answer one request with keep-alive, then close the moment the next one comes."""
        nonlocal closing
        for turn in range(2):
            head = await reader.readuntil(b"\r\n\r\n")
            if turn == 1:
                closing += 1
                break
            length = int(head.lower().split(b"content-length: ")[1].split(b"\r\n")[0])
            await reader.readexactly(length)
            body = json.dumps({"choices": [{"message": {"content": "ok"}}]}).encode()
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%s" % (len(body), body))
            await writer.drain()
        writer.close()

    pauses: list[float] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)

    server = await asyncio.start_server(serve_one, "127.0.0.1", 0)
    port = server.sockets[0].getsockname()[1]
    transport = OpenAITransport("m", base_url=f"http://127.0.0.1:{port}/v1", api_key=None)
    client = Client(transport, sleep=sleep)
    answers = await replies(client, 3)
    assert [reply.text for reply in answers] == ["ok"] * 3
    assert pauses == []
    assert closing == 2
    assert client.usage.requests == 5  # each attempt is counted
    await client.close()
    server.close()
