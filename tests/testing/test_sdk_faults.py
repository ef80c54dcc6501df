"""Faults as the openai SDK documents them."""

from __future__ import annotations

import itertools
import json
import time
from typing import Any

import httpx2
import openai
import pytest

from agenteval.testing import RETRY_AFTER_FORMS, Fault, Rule, serve
from tests.testing.conftest import Verdict, ask, client, raw


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
        deadline = time.monotonic() + 60
        while server.requests[0].outcome is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert server.requests[0].outcome == "aborted"
        assert server.engine.stats()["in_flight"] == 0


def test_slow_drip_takes_its_time_and_arrives_whole() -> None:
    with serve(faults=[Rule(Fault("slow_drip", seconds=0.4), first=1)]) as server:
        with client(server) as sdk:
            started = time.monotonic()
            slow = ask(raw(sdk)).content
            assert time.monotonic() - started >= 0.39
            assert ask(raw(sdk)).content == slow
        assert next(iter(server.engine.per_request.values())) == [2, 2]


def test_good_json_under_a_wrong_content_type_is_still_read() -> None:
    with serve(faults=[Fault("content_type")]) as server, client(server) as sdk:
        reply = raw(sdk).chat.completions.create(
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
