"""The server as the openai SDK sees it: endpoints, default and scripted answers."""

from __future__ import annotations

import json
from typing import Any

import openai
import pytest

from agenteval.testing import serve
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
