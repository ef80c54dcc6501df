"""OpenAITransport against a real loopback server: statuses, resets, forms, keys, budgets."""

from __future__ import annotations

import asyncio
import json
import logging
import socket
import time
import traceback
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import openai
import pytest

from agenteval.errors import (
    BadRequest,
    BudgetExceeded,
    InputError,
    ModelError,
    RequestTimeout,
    Transient,
    Unauthorized,
)
from agenteval.models.client import Client, RetryPolicy
from agenteval.models.completion import read_completion
from agenteval.models.factory import ModelChoice, choose_model, make_transport
from agenteval.models.limits import Budget, Limiter
from agenteval.models.openai import DecisionsTransport, OpenAITransport
from agenteval.models.wire import Reply, Request
from agenteval.testing import Fault, Rule, Server, serve

CANARY = "sk-canary-5f1e8d7c2b"
SCHEMA = {
    "type": "object",
    "properties": {"label": {"type": "string", "enum": ["good"]}},
    "required": ["label"],
    "additionalProperties": False,
}


def ask(text: str = "hello", **more: Any) -> Request:
    return Request(messages=({"role": "user", "content": text},), **more)


@asynccontextmanager
async def client_of(server: Server | str, **more: Any) -> AsyncIterator[tuple[Client, list[float]]]:
    """A client whose pauses are only noted."""
    slept: list[float] = []

    async def sleep(seconds: float) -> None:
        slept.append(seconds)

    url = server if isinstance(server, str) else server.base_url
    key = more.pop("api_key", None)
    client = Client(OpenAITransport("test-model", base_url=url, api_key=key), sleep=sleep, **more)
    try:
        yield client, slept
    finally:
        await client.close()


# ---- A good answer -------------------------------------------------------------------------------


async def test_a_reply_with_usage_and_key() -> None:
    with serve(answer=lambda body, n: "four") as server:
        async with client_of(server, api_key=CANARY) as (client, _):
            reply = await client.complete(ask("x" * 40, parameters={"seed": 7, "max_tokens": 9}))
    assert (reply.text, reply.finish, reply.mode, reply.model) == (
        "four",
        "stop",
        "text",
        "test-model",
    )
    # the server counts a quarter of the characters
    assert (reply.usage.prompt_tokens, reply.usage.completion_tokens) == (10, 1)
    (request,) = server.requests
    assert request.headers["authorization"] == f"Bearer {CANARY}"
    assert request.body is not None
    assert request.body == {
        "model": "test-model",
        "messages": [{"role": "user", "content": "x" * 40}],
        "seed": 7,
        "max_tokens": 9,
    }


async def test_tools_and_logprobs() -> None:
    tool = {"type": "function", "function": {"name": "look", "parameters": SCHEMA}}
    with serve() as server:
        async with client_of(server) as (client, _):
            called = await client.complete(ask(tools=(tool,), tool_choice="required"))
            scored = await client.complete(ask(parameters={"logprobs": True, "top_logprobs": 2}))
    (call,) = called.tool_calls
    assert call["function"]["name"] == "look"
    assert json.loads(call["function"]["arguments"]) == {"label": "good"}
    assert called.finish == "tool_calls"
    assert scored.logprobs is not None
    assert "".join(t["token"] for t in scored.logprobs) == scored.text
    assert all(len(t["top_logprobs"]) == 2 for t in scored.logprobs)


# ---- What heals and what does not ----------------------------------------------------------------


@pytest.mark.parametrize("status", [408, 409, 425, 429, 500, 502, 503, 504])
async def test_statuses_that_heal(status: int) -> None:
    with serve(lambda b, n: "ok", [Rule(Fault("status", status), first=2)]) as server:
        async with client_of(server) as (client, slept):
            reply = await client.complete(ask())
    assert (reply.text, reply.attempts, server.count, len(slept)) == ("ok", 3, 3, 2)


def error(message: str) -> str:
    return json.dumps({"error": {"message": message}})


@pytest.mark.parametrize(
    "kind",
    ["reset", "half_reset", "half_body", "truncated_json", "html", "error_200", "empty_choices"],
)
async def test_broken_answers_heal(kind: str) -> None:
    with serve(lambda b, n: "ok", [Rule(Fault(kind), first=1)]) as server:
        async with client_of(server) as (client, _):
            reply = await client.complete(ask())
    assert (reply.text, server.count) == ("ok", 2)


@pytest.mark.parametrize(
    ("fault", "finish", "refused"),
    [
        (Fault("length"), "length", False),
        (Fault("content_filter"), "content_filter", False),
        (Fault("refusal", body="I won't"), "stop", True),
    ],
)
async def test_what_is_no_answer_is_said_as_it_is(fault: Fault, finish: str, refused: bool) -> None:
    with serve(lambda b, n: "a long answer", [fault]) as server:
        async with client_of(server) as (client, _):
            reply = await client.complete(ask())
    assert (reply.finish, reply.refusal) == (finish, "I won't" if refused else None)


@pytest.mark.parametrize("fault", [Fault("slow_drip", seconds=30), Fault("hang", seconds=30)])
async def test_silence_and_dripping_hit_the_timeout(fault: Fault) -> None:
    started = time.monotonic()
    with serve(faults=[fault]) as server:
        async with client_of(server, timeout=1, retry=RetryPolicy(attempts=2)) as (client, _):
            with pytest.raises(RequestTimeout, match=r"no complete answer within 1 s"):
                await client.complete(ask())
        assert server.count == 2
    assert time.monotonic() - started < 25  # the fault lasts 30


# ---- Retry-After ---------------------------------------------------------------------------------


# ---- Stepping down -------------------------------------------------------------------------------


def refusing(*rules: tuple[Callable[[dict[str, Any]], bool], str]) -> Any:
    """An endpoint that answers 400 with a text when the body has something it does not take."""

    def answer(body: dict[str, Any], n: int) -> str | Fault:
        for strikes, text in rules:
            if strikes(body):
                return Fault("status", 400, body=json.dumps({"error": {"message": text}}))
        return '{"label": "good"}'

    return answer


def form_of(body: dict[str, Any]) -> str:
    form: str = body.get("response_format", {}).get("type", "text")
    return form


async def test_a_schema_that_is_refused_does_not_change_the_form_of_others() -> None:
    bad = {"type": "object", "properties": {"odd": {"type": "string"}}}

    def wants_bad(body: dict[str, Any]) -> bool:
        return form_of(body) == "json_schema" and "odd" in json.dumps(body["response_format"])

    rule = (
        wants_bad,
        "Invalid schema for response_format 'answer': additionalProperties is required",
    )
    with serve(refusing(rule)) as server:
        async with client_of(server) as (client, _):
            assert (await client.complete(ask("1", schema=bad))).mode == "json_object"
            assert (await client.complete(ask("2", schema=bad))).mode == "json_object"
            assert (await client.complete(ask("3", schema=SCHEMA))).mode == "json_schema"
    assert server.count == 4


REFUSED_PARAMETERS = [
    ("seed", None, "Unsupported parameter: 'seed' is not supported with this model."),
    ("seed", None, 'Invalid JSON payload received. Unknown name "seed": Cannot find field.'),
    (
        "temperature",
        None,
        "'temperature' does not support 0.2. Only the default (1) value is supported.",
    ),
    (
        "max_tokens",
        "max_completion_tokens",
        "Unsupported parameter: 'max_tokens' is not supported with this model. "
        "Use 'max_completion_tokens' instead.",
    ),
]


@pytest.mark.parametrize(("name", "other", "text"), REFUSED_PARAMETERS)
async def test_parameters_that_are_not_taken(name: str, other: str | None, text: str) -> None:
    parameters = {"seed": 1, "temperature": 0.2, "max_tokens": 50}
    with serve(refusing((lambda b: name in b, text))) as server:
        async with client_of(server) as (client, slept):
            await client.complete(ask("1", parameters=parameters))
            await client.complete(ask("2", parameters=parameters))
    last = server.requests[-1].body
    assert (server.count, slept) == (3, [])
    assert last is not None
    left = {k: v for k, v in parameters.items() if k != name}
    assert {k: v for k, v in last.items() if k not in ("model", "messages")} == (
        left | ({other: parameters[name]} if other else {})
    )


@pytest.mark.parametrize(
    "text",
    [
        "temperature must be at most 1",
        "maximum context length is 8192 tokens; you asked for 9000",
        "your text speaks of a seedling that is not supported",
    ],
)
async def test_a_bad_value_is_not_silently_left_out(text: str) -> None:
    parameters = {"seed": 1, "temperature": 3.0, "max_tokens": 99999}
    with serve(refusing((lambda b: True, text))) as server:
        async with client_of(server) as (client, _):
            with pytest.raises(BadRequest):
                await client.complete(ask(parameters=parameters))
    assert server.count == 1


# ---- Budget and concurrency ----------------------------------------------------------------------


# ---- One clear line; no key ----------------------------------------------------------------------


def free_port() -> int:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port: int = s.getsockname()[1]
        return port


async def test_a_dead_endpoint_gives_one_line() -> None:
    url = f"http://127.0.0.1:{free_port()}/v1"
    async with client_of(url, retry=RetryPolicy(attempts=2)) as (client, slept):
        with pytest.raises(Transient) as raised:
            await client.complete(ask())
    assert str(raised.value).startswith(f"{url}: cannot connect (")
    assert "\n" not in str(raised.value)
    assert len(slept) == 1


async def test_half_characters_are_refused_not_sent() -> None:
    with serve() as server:
        async with client_of(server) as (client, _):
            with pytest.raises(BadRequest, match="lone surrogates"):
                await client.complete(ask("a\ud800b"))
    assert server.count == 0


@pytest.mark.parametrize("key", ["sk-\u00e9", "sk-1\nx", "sk\x00"])
def test_a_key_that_cannot_be_sent(key: str) -> None:
    with pytest.raises(InputError, match="API key") as raised:
        OpenAITransport("m", base_url=None, api_key=key)
    assert key not in str(raised.value)


LEAKS = [
    Fault("status", 401, body=json.dumps({"error": {"message": f"Incorrect API key: {CANARY}"}})),
    Fault("status", 401, body=f"<p>Bearer {CANARY} is wrong"),
    Fault("status", 400, body=json.dumps({"error": {"message": f"'seed' unknown {CANARY}"}})),
    Fault("status", 429, headers={"retry-after": "999999"}, body=f'{{"error": "{CANARY}"}}'),
    Fault("status", 500, body=CANARY, headers={"x-debug": CANARY}),
    Fault("error_200", body=json.dumps({"error": {"message": CANARY}})),
    Fault("error_200", body=json.dumps({"error": {"message": CANARY, "code": 401}})),
    Fault("html", body=CANARY),
    Fault("truncated_json"),
    Fault("reset"),
    Fault("half_body"),
    Fault("hang", seconds=5),
]


@pytest.mark.parametrize("fault", LEAKS, ids=lambda f: f"{f.kind}-{f.status}")
async def test_the_key_is_nowhere(fault: Fault, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.DEBUG)
    for name in ("openai", "httpx", "httpx2", "httpcore", "httpcore2", "asyncio", "agenteval"):
        caplog.set_level(logging.DEBUG, logger=name)
    with serve(faults=[fault]) as server:
        url = server.base_url.replace("http://", f"http://user:{CANARY}@") + f"?key={CANARY}"
        for base_url in (server.base_url, url):
            retry = RetryPolicy(attempts=2)
            async with client_of(base_url, api_key=CANARY, timeout=0.3, retry=retry) as (client, _):
                with pytest.raises(ModelError) as raised:
                    await client.complete(ask(parameters={"seed": 1}))
                shown = "".join(traceback.format_exception(raised.value))
                shown += str(raised.value) + repr(raised.value) + repr(client.transport)
                shown += repr(client) + client.transport.endpoint
                shown += repr(ModelChoice("chat", "m", "openai", base_url, CANARY))
                assert CANARY not in shown
    assert not [
        r for r in caplog.records if r.name.startswith("agenteval") and CANARY in r.getMessage()
    ]


def body_with(**more: Any) -> dict[str, Any]:
    return {"choices": [{"message": {"content": "x"}, "finish_reason": "stop", **more}]}


SPELLED = "".join(f"\\u{ord(c):04x}" if i % 2 else c for i, c in enumerate(CANARY))
INNER = f'{{"label": "good", "reason": "the key is {SPELLED}, caf\\u00e9"}}'
OUTER = f'{{"choices": [{{"finish_reason": "stop", "message": {{"content": "{SPELLED}!"}}}}]}}'


@pytest.mark.parametrize(
    ("body", "text"),
    [
        (OUTER, "[hidden]!"),
        (
            json.dumps(body_with(message={"content": INNER})),
            '{"label": "good", "reason": "the key is [hidden], caf\\u00e9"}',
        ),
    ],
)
async def test_a_key_in_escapes_is_hidden_in_a_reply(body: str, text: str) -> None:
    assert CANARY not in body
    with serve(faults=[Fault("error_200", body=body)]) as server:
        async with client_of(server, api_key=CANARY) as (client, _):
            assert (await client.complete(ask())).text == text


async def test_escapes_beside_no_key_stay() -> None:
    body = json.dumps(body_with(message={"content": r"print('\u0041')"}))
    with serve(faults=[Fault("error_200", body=body)]) as server:
        async with client_of(server, api_key=CANARY) as (client, _):
            assert (await client.complete(ask())).text == r"print('\u0041')"


# ---- Bodies out of form --------------------------------------------------------------------------


BROKEN: list[Any] = [
    b"",
    b"null",
    b"[]",
    b"3",
    b"{",
    b"\xff\xfe",
    b"[" * 100_000,
    b"{}",
    {"choices": None},
    {"choices": {}},
    {"choices": []},
    {"choices": [None]},
    {"choices": [{}]},
    {"choices": [{"message": None}]},
    {"choices": [{"message": "text"}]},
    {"error": "busy"},
    {"error": {"message": None}},
    {"error": {"code": 503, "message": "x"}},
    body_with(error={"message": "upstream died", "code": 502}),
]


@pytest.mark.parametrize("body", BROKEN, ids=lambda b: repr(b)[:60])
def test_no_message_may_heal(body: Any) -> None:
    payload = body if isinstance(body, bytes) else json.dumps(body).encode()
    with pytest.raises(Transient, match=r"^here: [^\n]+$"):
        read_completion(payload, "text", 0.0, "here")


@pytest.mark.parametrize(
    ("code", "kind"), [(401, Unauthorized), (402, Unauthorized), (400, BadRequest)]
)
def test_an_error_under_status_200_is_what_it_says(code: int, kind: type[ModelError]) -> None:
    payload = json.dumps({"error": {"message": "no such key", "code": code}}).encode()
    with pytest.raises(kind, match="no such key"):
        read_completion(payload, "text", 0.0, "here")


def read(**more: Any) -> Any:
    payload = json.dumps({"choices": [{"finish_reason": "stop", **more}], "usage": None})
    return read_completion(payload.encode(), "text", 0.0, "here")


@pytest.mark.parametrize(
    ("content", "text"),
    [
        ("x", "x"),
        (None, ""),
        (3, ""),
        ([{"type": "text", "text": "a"}, {"text": "b"}], "ab"),
        ([None, {"text": 3}, {"text": "c"}], "c"),
        ("a\ud800", "a\ufffd"),
        ({"a": 1}, '{"a": 1}'),
        ([{"type": "thinking", "text": "hm"}, {"type": "text", "text": "a"}], "a"),
    ],
)
def test_contents(content: Any, text: str) -> None:
    assert read(message={"content": content}).text == text


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("stop", "stop"),
        ("STOP", "stop"),
        ("end_turn", "stop"),
        ("MAX_TOKENS", "length"),
        ("model_length", "length"),
        ("SAFETY", "content_filter"),
        ("tool_use", "tool_calls"),
        ("function_call", "tool_calls"),
        (None, "unknown"),
        (7, "unknown"),
        ("other", "unknown"),
    ],
)
def test_how_a_reply_ended(said: Any, meant: str) -> None:
    assert read(message={"content": "x"}, finish_reason=said).finish == meant


def test_numbers_that_are_none_do_not_stop_the_storing() -> None:
    payload = (
        b'{"choices": [{"message": {"content": "x"}, "logprobs": {"content": '
        b'[{"token": "x", "logprob": -Infinity}, {"token": "y", "logprob": 1e999}]}}]}'
    )
    reply = read_completion(payload, "text", 0.0, "here")
    assert json.dumps(reply.to_json(), allow_nan=False)
    assert reply.logprobs == ({"token": "x", "logprob": None}, {"token": "y", "logprob": None})


@pytest.mark.parametrize(
    "calls", ["abc", {"a": 1}, [None], [{"function": {}}], [{"function": {"name": 3}}]]
)
def test_tool_calls_out_of_form_are_none(calls: Any) -> None:
    assert read(message={"content": "x", "tool_calls": calls}).tool_calls == ()


def test_tool_arguments_sent_as_an_object_become_text() -> None:
    calls = [
        {"id": 7, "function": {"name": "f", "arguments": {"a": 1}}},
        {"function": {"name": "g"}},
    ]
    first, second = read(message={"tool_calls": calls}).tool_calls
    assert first == {
        "id": "7",
        "type": "function",
        "function": {"name": "f", "arguments": '{"a": 1}'},
    }
    assert second["function"] == {"name": "g", "arguments": "{}"}


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        (None, (None, None)),
        ([], (None, None)),
        ({"prompt_tokens": 3}, (3, None)),
        ({"prompt_tokens": True, "completion_tokens": "4"}, (None, 4)),
        ({"prompt_tokens": 9.0, "completion_tokens": "many"}, (9, None)),
        ({"prompt_tokens": -1, "completion_tokens": 10**400}, (None, None)),
        ({"prompt_tokens": 1.5, "completion_tokens": 0}, (None, 0)),
    ],
)
def test_usage(usage: Any, expected: tuple[int | None, int | None]) -> None:
    payload = json.dumps(body_with() | {"usage": usage}).encode()
    found = read_completion(payload, "text", 0.0, "here").usage
    assert (found.prompt_tokens, found.completion_tokens) == expected
    assert found.requests == 1


async def test_the_server_sees_no_more_than_the_cap() -> None:
    rules = [Rule((Fault("status", 500), Fault("reset"), Fault("half_body")), probability=0.3)]
    with serve(lambda b, n: "ok", rules, latency=0.01, seed=3) as server:
        async with client_of(server, budget=Budget(max_calls=40), limiter=Limiter(16)) as (
            client,
            _,
        ):
            results = await asyncio.gather(
                *(client.complete(ask(str(n))) for n in range(100)), return_exceptions=True
            )
            assert client.usage.requests == 40
    assert server.count == 40
    kinds = {type(r) for r in results if isinstance(r, BaseException)}
    assert kinds == {BudgetExceeded}


# ---- DecisionsTransport against the loopback server: what is sent, what comes back, what i -------


QUESTIONS: tuple[dict[str, Any], ...] = (
    {
        "name": "a",
        "type": "score",
        "instructions": "How good?",
        "levels": [{"label": "poor"}, {"label": "good"}],
    },
    {
        "name": "b",
        "type": "choice",
        "instructions": "Which?",
        "choices": [{"value": "x"}, {"value": "y"}, {"value": "z"}],
    },
    {"name": "c", "type": "predicate", "instructions": "It is so."},
)
REQUEST = Request(messages=({"role": "user", "content": "the work"},), questions=QUESTIONS)


async def asked(url: str, request: Request = REQUEST) -> Reply:
    client = Client(
        DecisionsTransport("m", base_url=url, api_key=None), retry=RetryPolicy(attempts=1)
    )
    try:
        return await client.complete(request)
    finally:
        await client.close()


async def test_the_request_is_that_of_the_sdk_and_the_answers_come_as_they_are() -> None:
    with serve() as server:
        reply = await asked(server.base_url)
        sdk = openai.OpenAI(base_url=server.base_url, api_key="none")
        questions: Any = QUESTIONS
        own = sdk.decisions.create(model="m", input="the work", questions=questions)
        ours, theirs = (request.body for request in server.requests)
    assert ours is not None
    assert theirs is not None
    assert ours["questions"] == theirs["questions"]
    assert ours.keys() == theirs.keys() == {"model", "input", "questions"}
    answers = json.loads(reply.text)
    assert [a["type"] for a in answers] == [a.type for a in own.answers]  # the SDK reads the server
    assert [a["name"] for a in answers] == ["a", "b", "c"]
    assert sum(p["probability"] for p in answers[1]["probabilities"]) == pytest.approx(1)
    assert reply.mode == "decisions"
    assert (reply.usage.prompt_tokens or 0) > 0
    assert reply.usage.completion_tokens == 0


async def test_answers_that_are_none_and_refused_requests() -> None:
    with serve(faults=[Fault("error_200", body="overloaded")]) as server, pytest.raises(Transient):
        await asked(server.base_url)
    many = Request(messages=REQUEST.messages, questions=QUESTIONS[:1] * 401)
    with serve() as server, pytest.raises(BadRequest, match="1 to 400 questions"):
        await asked(server.base_url, many)


def test_how_it_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    choice = choose_model("decisions:gpt-6-luna", decides=True)
    assert (choice.kind, choice.name, choice.provider) == ("decisions", "gpt-6-luna", "openai")
    assert isinstance(make_transport(choice), DecisionsTransport)
    own = choose_model("decisions:org/model", "http://127.0.0.1:1/v1", decides=True)
    assert (own.name, own.base_url) == ("org/model", "http://127.0.0.1:1/v1")
    other = choose_model("decisions:openrouter:some/model", decides=True, need_key=False)
    assert (other.name, other.provider) == ("some/model", "openrouter")
    for spec in ("decisions:", "decisions:embedded", "decisions:recorded", "decisions:autogen:x"):
        with pytest.raises(InputError, match="cannot decide"):
            choose_model(spec, decides=True)
    with pytest.raises(InputError, match="writes no text"):
        choose_model("decisions:gpt-6-luna")
