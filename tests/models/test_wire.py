"""What identifies a request, what a stored reply must look like, what is hidden."""

from __future__ import annotations

import dataclasses
import hashlib
import json
from typing import Any

import pytest

from agenteval.models.wire import NONCE, Reply, Request
from agenteval.records import Usage

BASE = Request(
    messages=({"role": "user", "content": "hello"},),
    schema={"type": "object"},
    parameters={"temperature": 0.5, "seed": 1},
    tools=({"type": "function", "function": {"name": "f"}},),
    tool_choice="auto",
)

CHANGES: list[dict[str, Any]] = [
    {"messages": ({"role": "user", "content": "hello "},)},
    {"messages": ({"role": "system", "content": "hello"},)},
    {"messages": ({"role": "user", "content": "hello", "name": "x"},)},
    {"messages": ({"role": "user", "content": "hello"},) * 2},
    {"schema": None},
    {"schema": {"type": "array"}},
    {"repeat": 1},
    {"attempt": 1},
    {"tools": ()},
    {"parameters": {"temperature": 0.6, "seed": 1}},
    {"parameters": {"temperature": 0.5}},
    {"tools": ({"type": "function", "function": {"name": "g"}},)},
    {"tool_choice": "required"},
]


@pytest.mark.parametrize("change", CHANGES, ids=str)
def test_every_part_of_a_request_changes_its_key(change: dict[str, Any]) -> None:
    changed = dataclasses.replace(BASE, **change)
    assert changed.key("e", "m") != BASE.key("e", "m")
    assert changed.logical_hash() != BASE.logical_hash()


def test_endpoint_and_model_change_the_key() -> None:
    keys = {
        BASE.key(*pair) for pair in [("e", "m"), ("e2", "m"), ("e", "m2"), ("em", ""), ("", "em")]
    }
    assert len(keys) == 5


def test_what_it_is_for_does_not_change_the_key() -> None:
    same = dataclasses.replace(BASE, role="critic", run_id="r7")
    assert same.key("e", "m") == BASE.key("e", "m")
    order = dataclasses.replace(BASE, parameters={"seed": 1, "temperature": 0.5})
    assert order.key("e", "m") == BASE.key("e", "m")


def test_the_key_is_the_sha256_of_the_canonical_text_and_its_size_bounds_the_tokens() -> None:
    request = Request(messages=({"role": "user", "content": "Grüße"},))
    text = (
        '{"attempt":0,"endpoint":"e","messages":[{"content":"Grüße","role":"user"}],"model":"m",'
        '"parameters":{},"repeat":0,"schema":null,"tool_choice":null,"tools":[]}'
    ).encode()
    assert request.identify("e", "m") == (hashlib.sha256(text).hexdigest(), len(text))


# ---- Nonce ---------------------------------------------------------------------------------------

MARKED = Request(
    messages=({"role": "system", "content": f"code {NONCE}, {NONCE}"}, {"role": "tool"})
)


def nonce_of(request: Request) -> str:
    content: str = request.messages[0]["content"]
    first, second = content.removeprefix("code ").split(", ")
    assert first == second
    return first


def test_the_nonce_has_96_bits_and_follows_request_and_secret() -> None:
    key = MARKED.key("e", "m")
    nonce = nonce_of(MARKED.with_nonce(key, b"secret"))
    assert len(nonce) == 24
    assert int(nonce, 16) >= 0
    assert nonce == nonce_of(MARKED.with_nonce(key, b"secret"))  # reproducible
    again = dataclasses.replace(MARKED, repeat=1)
    others = {
        nonce_of(MARKED.with_nonce(key, b"another secret")),
        nonce_of(again.with_nonce(again.key("e", "m"), b"secret")),
        nonce_of(MARKED.with_nonce(MARKED.key("e", "m2"), b"secret")),
    }
    assert len(others | {nonce}) == 4


# ---- Reply ---------------------------------------------------------------------------------------

REPLY = Reply(
    text="answer \ud83d\ude00 é".encode("utf-16", "surrogatepass").decode("utf-16"),
    finish="tool_calls",
    refusal="no",
    tool_calls=({"id": "1", "type": "function", "function": {"name": "f", "arguments": "{}"}},),
    usage=Usage(requests=2, prompt_tokens=3, completion_tokens=4, cost=0.5),
    logprobs=({"token": "a", "logprob": -0.25, "top_logprobs": []},),
    mode="json_schema",
    model="m-2024",
    latency=1.5,
    attempts=2,
)


def test_a_reply_survives_being_stored() -> None:
    stored = json.loads(json.dumps(REPLY.to_json(), allow_nan=False))
    assert Reply.from_json(stored, key="k", cached=True) == dataclasses.replace(
        REPLY, key="k", cached=True
    )


FOREIGN: list[Any] = [
    None,
    1,
    "text",
    [],
    {},
    {"text": None},
    {"text": 1},
    {"text": ["a"]},
    {"Text": "x"},
    {"text": "x", "finish": 3},
    {"text": "x", "refusal": True},
    {"text": "x", "tool_calls": "abc"},
    {"text": "x", "tool_calls": [1]},
    {"text": "x", "logprobs": {"a": 1}},
    {"text": "x", "logprobs": ["a"]},
    {"text": "x", "usage": {"requests": "many"}},
    {"text": "x", "usage": 7},
    {"text": "x", "usage": {"cost": float("nan")}},
    {"text": "x", "latency": "slow"},
    {"text": "x", "latency": float("nan")},
    {"text": "x", "attempts": float("inf")},
    {"text": "x", "attempts": True},
    {"text": "x", "mode": 1},
    {"text": "x", "model": {}},
]


@pytest.mark.parametrize("value", FOREIGN, ids=repr)
def test_a_foreign_value_is_refused_not_bent(value: Any) -> None:
    with pytest.raises((KeyError, TypeError, ValueError)):
        Reply.from_json(value, key="", cached=True)


# ---- Texts ---------------------------------------------------------------------------------------
