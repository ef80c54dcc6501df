"""The server as the openai SDK sees it."""

from __future__ import annotations

import asyncio
import itertools
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Literal

import httpx2
import openai
import pytest
from pydantic import BaseModel

from agenteval.errors import InputError
from agenteval.testing import DEFAULT, RETRY_AFTER_FORMS, Fault, Latency, Rule, Server, serve


class Verdict(BaseModel):
    explanation: str
    label: Literal["bad", "fair", "good"]


FORM = {
    "type": "json_schema",
    "json_schema": {"name": "verdict", "schema": Verdict.model_json_schema(), "strict": True},
}


@contextmanager
def client(server: Server, **options: Any) -> Iterator[openai.OpenAI]:
    options = {"max_retries": 0, "timeout": 10.0} | options
    with openai.OpenAI(base_url=server.base_url, api_key="none", **options) as made:
        yield made


def ask(sdk: openai.OpenAI, text: str = "hello", **more: Any) -> Any:
    messages: Any = [{"role": "user", "content": text}]
    return sdk.chat.completions.create(model="m", messages=messages, **more)


# ---- Endpoints -----------------------------------------------------------------------------------


def test_chat_answers_are_a_function_of_request_and_seed() -> None:
    def replies(seed: int) -> list[bytes]:
        with serve(seed=seed) as server, client(server) as sdk:
            texts = ["a", "b", "a", "c"]
            raw = [ask(_raw(sdk), t, temperature=0.5, user=str(i)) for i, t in enumerate(texts)]
            return [r.content for r in raw]

    first = replies(1)
    assert first[0] == first[2]
    assert len(set(first)) == 3
    assert first == replies(1)
    assert first != replies(2)


def _raw(sdk: openai.OpenAI) -> Any:
    class Raw:
        chat = sdk.chat.with_raw_response

    return Raw()


def test_schema_is_honoured_and_seeds_differ() -> None:
    labels = []
    for seed in range(12):
        with serve(seed=seed) as server, client(server) as sdk:
            reply = ask(sdk, response_format=FORM)
            labels.append(Verdict.model_validate_json(reply.choices[0].message.content).label)
    assert set(labels) == {"bad", "fair", "good"}


def test_the_sdk_parses_a_typed_reply() -> None:
    with serve() as server, client(server) as sdk:
        reply = sdk.chat.completions.parse(
            model="m", messages=[{"role": "user", "content": "x"}], response_format=Verdict
        )
    assert isinstance(reply.choices[0].message.parsed, Verdict)


def test_usage_counts_quarters_of_characters() -> None:
    with serve(answer=lambda body, n: "123456789") as server, client(server) as sdk:
        usage = ask(sdk, "x" * 401).usage
    assert (usage.prompt_tokens, usage.completion_tokens, usage.total_tokens) == (101, 3, 104)


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


def test_models() -> None:
    with serve(models=("a", "b")) as server, client(server) as sdk:
        assert [m.id for m in sdk.models.list()] == ["a", "b"]


@pytest.mark.parametrize(
    "more",
    [
        {"stream": True},
        {"n": 2},
        {"response_format": {"type": "json_schema"}},
        {"response_format": {"type": "json_schema", "json_schema": {"schema": {"type": "x"}}}},
    ],
)
def test_what_is_not_spoken_is_refused(more: dict[str, Any]) -> None:
    with serve() as server, client(server) as sdk:
        with pytest.raises(openai.BadRequestError):
            ask(sdk, **more)
        assert server.requests[0].outcome == "refused"
        assert ask(sdk).choices[0].message.content


# ---- Answers -------------------------------------------------------------------------------------


def test_the_answer_callable_sees_the_body_and_how_often_it_was_asked() -> None:
    with (
        serve(answer=lambda body, n: f"{body['temperature']} {n}") as server,
        client(server) as sdk,
    ):
        said = [ask(sdk, t, temperature=1).choices[0].message.content for t in ("a", "b", "a")]
    assert said == ["1 0", "1 0", "1 1"]


def test_an_answer_may_be_a_fault_a_default_or_a_whole_response() -> None:
    whole = {"id": "x", "choices": [], "model": "other"}
    script: list[Any] = [Fault("status", 503), DEFAULT, whole]
    with serve(answer=lambda body, n: script[n]) as server, client(server) as sdk:
        with pytest.raises(openai.InternalServerError):
            ask(sdk)
        assert ask(sdk).choices[0].message.content.startswith("This is reply")
        assert ask(sdk).model == "other"


@pytest.mark.parametrize("bad", [None, 7, {"content": {1, 2}}, {"choices": float("nan")}])
def test_an_answer_that_is_none_is_the_tests_error(bad: Any) -> None:
    with pytest.raises((TypeError, ValueError)), serve(answer=lambda body, n: bad) as server:  # noqa: SIM117
        with client(server) as sdk, pytest.raises(openai.BadRequestError, match="scripted"):
            ask(sdk)


def test_an_error_in_the_answer_comes_out_of_the_with_block() -> None:
    with pytest.raises(ZeroDivisionError), serve(answer=lambda body, n: str(1 // 0)) as server:  # noqa: SIM117
        with client(server) as sdk, pytest.raises(openai.BadRequestError, match="ZeroDivision"):
            ask(sdk)


def test_key_decides_what_is_the_same_request() -> None:
    def key(body: dict[str, Any]) -> str:
        return str(body["messages"][0]["content"].split()[0])

    with serve(key=key) as server, client(server) as sdk:
        said = [ask(sdk, t).choices[0].message.content for t in ("r1 nonce9", "r1 nonce7", "r2 x")]
        assert [(r.key, r.n) for r in server.requests] == [("r1", 0), ("r1", 1), ("r2", 0)]
    assert said[0] == said[1] != said[2]


# ---- Faults as the SDK documents them ------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "error"),
    [
        (400, openai.BadRequestError),
        (401, openai.AuthenticationError),
        (403, openai.PermissionDeniedError),
        (404, openai.NotFoundError),
        (409, openai.ConflictError),
        (422, openai.UnprocessableEntityError),
        (429, openai.RateLimitError),
        (500, openai.InternalServerError),
        (502, openai.InternalServerError),
        (503, openai.InternalServerError),
        (418, openai.APIStatusError),
    ],
)
def test_status(status: int, error: type[openai.APIStatusError]) -> None:
    fault = Fault("status", status, code="why", headers={"x-note": "here"})
    with serve(faults=[fault]) as server, client(server) as sdk:
        with pytest.raises(error) as caught:
            ask(sdk)
        with pytest.raises(error):
            sdk.embeddings.create(model="e", input="x")
    assert caught.value.status_code == status
    assert caught.value.code == "why"
    assert caught.value.response.headers["x-note"] == "here"


def test_status_with_a_body_of_another_kind() -> None:
    fault = Fault("status", 502, body="<h1>Bad</h1>", headers={"content-type": "text/html"})
    with (
        serve(faults=[fault]) as server,
        client(server) as sdk,
        pytest.raises(openai.InternalServerError) as caught,
    ):
        ask(sdk)
    assert caught.value.response.text == "<h1>Bad</h1>"
    assert caught.value.response.headers.get_list("content-type") == ["text/html"]


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


def test_the_sdk_heeds_retry_after_and_succeeds_at_the_third_try() -> None:
    fault = Fault("status", 429, headers={"retry-after-ms": "120"})
    with serve(faults=[Rule(fault, first=2)]) as server, client(server, max_retries=3) as sdk:
        ask(sdk)
        seen = server.requests
    assert [r.outcome for r in seen] == ["status", "status", "ok"]
    assert [r.n for r in seen] == [0, 1, 2]
    assert list(server.engine.per_request.values()) == [[3, 1]]
    gaps = [b.received - a.received for a, b in itertools.pairwise(seen)]
    assert min(gaps) >= 0.12


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


def test_silence_runs_into_the_clients_timeout_and_counts_as_aborted() -> None:
    with serve(faults=[Fault("hang", seconds=30)]) as server, client(server, timeout=0.2) as sdk:
        with pytest.raises(openai.APITimeoutError):
            ask(sdk)
        deadline = time.monotonic() + 5
        while server.requests[0].outcome is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server.requests[0].outcome == "aborted"
        assert server.engine.stats()["in_flight"] == 0


def test_slow_drip_takes_its_time_and_arrives_whole() -> None:
    with serve(faults=[Rule(Fault("slow_drip", seconds=0.4), first=1)]) as server:
        with client(server) as sdk:
            started = time.monotonic()
            slow = ask(_raw(sdk)).content
            assert time.monotonic() - started >= 0.39
            assert ask(_raw(sdk)).content == slow
        assert next(iter(server.engine.per_request.values())) == [2, 2]


def test_good_json_under_a_wrong_content_type_is_still_read() -> None:
    with serve(faults=[Fault("content_type")]) as server, client(server) as sdk:
        reply = _raw(sdk).chat.completions.create(
            model="m", messages=[{"role": "user", "content": "x"}]
        )
    assert reply.headers["content-type"].startswith("text/plain")
    assert reply.parse().choices[0].finish_reason == "stop"


def test_html_comes_back_as_text() -> None:
    with serve(faults=[Fault("html")]) as server, client(server) as sdk:
        reply = ask(sdk)
    assert isinstance(reply, str)
    assert reply.startswith("<!doctype html>")


def test_truncated_json_does_not_parse() -> None:
    faults = [Fault("truncated_json")]
    with (
        serve(faults=faults) as server,
        client(server) as sdk,
        pytest.raises(json.JSONDecodeError),
    ):
        ask(sdk)


def test_error_under_status_200_has_no_choices() -> None:
    with serve(faults=[Fault("error_200", code="overloaded")]) as server, client(server) as sdk:
        reply = ask(sdk)
    assert reply.choices is None
    assert reply.error["code"] == "overloaded"


def test_empty_choices_and_empty_data() -> None:
    with serve(faults=[Fault("empty_choices")]) as server, client(server) as sdk:
        assert ask(sdk).choices == []
        with pytest.raises(ValueError, match="No embedding data"):
            sdk.embeddings.create(model="e", input="x")


def test_wrong_usage() -> None:
    with serve(faults=[Fault("usage")]) as server, client(server) as sdk:
        assert ask(sdk).usage.prompt_tokens == -5
    with serve(faults=[Fault("usage", usage={"total_tokens": 1})]) as server, client(server) as sdk:
        assert ask(sdk).usage.to_dict() == {"total_tokens": 1}


def _parse(sdk: openai.OpenAI) -> Any:
    messages: Any = [{"role": "user", "content": "x"}]
    return sdk.chat.completions.parse(model="m", messages=messages, response_format=Verdict)


def test_content_filter_and_length_raise_in_the_typed_call() -> None:
    with serve(faults=[Fault("content_filter")]) as server, client(server) as sdk:
        choice = ask(sdk).choices[0]
        assert (choice.finish_reason, choice.message.content) == ("content_filter", None)
        with pytest.raises(openai.ContentFilterFinishReasonError):
            _parse(sdk)
    with serve(lambda body, n: "0123456789", [Fault("length")]) as server, client(server) as sdk:
        choice = ask(sdk).choices[0]
        assert (choice.finish_reason, choice.message.content) == ("length", "01234")
        with pytest.raises(openai.LengthFinishReasonError):
            _parse(sdk)


def test_refusal_and_foreign_content() -> None:
    with serve(faults=[Fault("refusal", body="No.")]) as server, client(server) as sdk:
        message = _parse(sdk).choices[0].message
        assert (message.refusal, message.content, message.parsed) == ("No.", None, None)
    with serve(faults=[Fault("content", body="```json\n{}")]) as server, client(server) as sdk:
        assert ask(sdk).choices[0].message.content == "```json\n{}"


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


# ---- Concurrency and counting --------------------------------------------------------------------


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


async def test_64_concurrent_requests_overlap() -> None:
    with serve(latency=0.5) as server:
        replies = await _many(server.base_url, 64)
        assert server.max_in_flight == 64
        assert server.count == 64
        stats = server.engine.stats()
    assert len(set(replies)) == 64
    assert stats["answered"] == 64
    assert stats["answered_again"] == 0
    assert stats["in_flight_seconds"] == pytest.approx(64 * 0.5, rel=0.15)


async def test_above_the_ceiling_there_are_429s_and_they_use_up_no_turn() -> None:
    with serve(lambda body, n: f"turn {n}", ceiling=10, latency=0.5) as server:
        replies = await _many(server.base_url, 30, lambda i: "same")
        assert server.max_in_flight == 10
        assert server.engine.stats()["outcomes"] == {"ok": 10, "rejected": 20}
    assert sorted(r for r in replies if r != "429") == [f"turn {n}" for n in range(10)]


def test_connections_are_kept_alive() -> None:
    with serve() as server, client(server) as sdk:
        for _ in range(20):
            ask(sdk)
        assert server.count == 20
        assert server.max_in_flight == 1
        stats = httpx2.get(server.base_url.replace("/v1", "/stats")).json()
        assert stats["connections"] == 2  # one for 20 requests, one for /stats


def test_latency_is_a_lower_bound_and_depends_on_the_request() -> None:
    with serve(latency=Latency("uniform", 0.05, 0.15), seed=3) as server, client(server) as sdk:
        for text in "abab":
            ask(sdk, text)
        times = [(r.finished or 0) - r.received for r in server.requests]
    assert all(0.05 <= t < 0.5 for t in times)


def test_requests_are_recorded_in_order_and_bounded() -> None:
    with serve(record=3) as server, client(server) as sdk:
        for i in range(5):
            ask(sdk, str(i), extra_headers={"x-number": str(i)})
        seen = server.requests
        assert server.count == 5
    assert [r.order for r in seen] == [2, 3, 4]
    assert [r.headers["x-number"] for r in seen] == ["2", "3", "4"]
    assert [r.body["messages"][0]["content"] for r in seen if r.body] == ["2", "3", "4"]
    assert all(r.outcome == "ok" for r in seen)


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


@pytest.mark.parametrize(
    "options",
    [{"latency": -1}, {"ceiling": 0}, {"record": -1}, {"seed": "x"}, {"ignore": ["("]}],
)
def test_bad_options_are_refused(options: dict[str, Any]) -> None:
    with pytest.raises(InputError):
        serve(**options)
