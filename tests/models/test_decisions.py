"""DecisionsTransport against the loopback server: what is sent, what comes back, what it costs."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from agenteval.errors import BadRequest, InputError, Transient
from agenteval.models.client import Client, RetryPolicy
from agenteval.models.factory import choose_model, make_transport
from agenteval.models.openai import DecisionsTransport
from agenteval.models.wire import Reply, Request
from agenteval.testing import Fault, serve

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
    with (
        serve(faults=[Fault("error_200", body="overloaded")]) as server,
        pytest.raises(Transient),
    ):
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
