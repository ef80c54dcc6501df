"""AutoGen in both directions, with real agents and real clients against a loopback server."""

from __future__ import annotations

import asyncio
import json
import sys
import traceback
from pathlib import Path
from typing import Any, Literal

import pytest
from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.messages import StructuredMessage
from autogen_core import FunctionCall, Image
from autogen_core.models import (
    AssistantMessage,
    CreateResult,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    RequestUsage,
    SystemMessage,
    UserMessage,
)
from autogen_ext.models.replay import ReplayChatCompletionClient
from pydantic import BaseModel

from agenteval.errors import BadRequest, BudgetExceeded, InputError, Transient, Unauthorized
from agenteval.models.autogen import AgentevalChatClient, AutogenTransport
from agenteval.models.client import Client, RetryPolicy
from agenteval.models.limits import Budget, Price
from agenteval.models.openai import OpenAITransport
from agenteval.models.wire import NONCE, Reply, Request
from agenteval.records import Usage
from agenteval.testing import Fault, Rule, Server, serve

CANARY = "sk-canary-0a1b2c3d4e"
INFO = {
    "vision": False,
    "function_calling": True,
    "json_output": True,
    "family": "unknown",
    "structured_output": True,
}


def ask(text: str = "hello", **more: Any) -> Request:
    return Request(messages=({"role": "user", "content": text},), **more)


def openai_config(server: Server | str, **more: Any) -> dict[str, Any]:
    url = server if isinstance(server, str) else server.base_url
    settings = {"model": "test-model", "base_url": url, "api_key": CANARY, "model_info": INFO}
    return {
        "provider": "autogen_ext.models.openai.OpenAIChatCompletionClient",
        "component_type": "model",
        "config": settings | more,
    }


def load(tmp_path: Path, config: Any) -> AutogenTransport:
    path = tmp_path / "client.json"
    path.write_text(config if isinstance(config, str) else json.dumps(config))
    return AutogenTransport.from_config(path)


# ---- An AutoGen client carries our requests ------------------------------------------------------


async def test_a_component_config_against_a_server(tmp_path: Path) -> None:
    schema = {"type": "object", "properties": {"a": {"type": "string"}}}
    with serve(lambda body, n: '{"a": "b"}') as server:
        transport = load(tmp_path, openai_config(server))
        client = Client(transport)
        reply = await client.complete(
            ask("return JSON", schema=schema, parameters={"seed": 3, "max_tokens": 9, "stop": None})
        )
        await client.close()
    assert (reply.text, reply.mode, reply.finish) == ('{"a": "b"}', "json_object", "stop")
    assert reply.usage.prompt_tokens == 3  # 11 characters, four to a token
    assert transport.model == "autogen:test-model"
    body = server.requests[0].body
    assert body is not None
    assert (body["seed"], body["max_tokens"]) == (3, 9)
    assert body["response_format"] == {"type": "json_object"}


async def test_a_conversation_with_tools_goes_through_whole(tmp_path: Path) -> None:
    parameters = {"type": "object", "properties": {"q": {"type": "string"}}, "required": ["q"]}
    tool = {
        "type": "function",
        "function": {"name": "look", "description": "d", "parameters": parameters},
    }
    call = {"id": "c1", "type": "function", "function": {"name": "look", "arguments": '{"q": "x"}'}}
    messages = (
        {"role": "system", "content": "be brief"},
        {"role": "user", "content": "look it up"},
        {"role": "assistant", "content": "", "tool_calls": [call]},
        {"role": "tool", "tool_call_id": "c1", "content": "found"},
    )
    with serve() as server:
        client = Client(load(tmp_path, openai_config(server)))
        request = Request(messages=messages, tools=(tool,), tool_choice="required")
        reply = await client.complete(request)
        await client.close()
    assert reply.finish == "tool_calls"
    assert [c["function"]["name"] for c in reply.tool_calls] == ["look"]
    body = server.requests[0].body
    assert body is not None
    assert [m["role"] for m in body["messages"]] == ["system", "user", "assistant", "tool"]
    assert body["messages"][2]["tool_calls"][0]["function"] == call["function"]
    assert body["messages"][3]["tool_call_id"] == "c1"
    assert body["messages"][3]["content"] == "found"
    assert body["tools"][0]["function"]["parameters"]["required"] == ["q"]


async def test_the_wrapped_client_does_not_retry_by_itself(tmp_path: Path) -> None:
    with serve(lambda b, n: "ok", [Fault("status", 500)]) as server:
        client = Client(
            load(tmp_path, openai_config(server)),
            retry=RetryPolicy(attempts=3, first=0.001),
            budget=Budget(max_calls=9),
        )
        with pytest.raises(Transient, match="HTTP 500"):
            await client.complete(ask())
        await client.close()
        assert server.count == 3 == client.usage.requests


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (Fault("status", 400), BadRequest),
        (Fault("status", 401), Unauthorized),
        (Fault("status", 404), BadRequest),
        (Fault("status", 429), Transient),
        (Fault("reset"), Transient),
    ],
)
async def test_errors_are_sorted_and_hold_no_key(
    tmp_path: Path, fault: Fault, kind: type[Exception]
) -> None:
    if fault.kind == "status":
        body = json.dumps({"error": {"message": f"the key {CANARY}"}})
        fault = Fault("status", fault.status, body=body)
    with serve(faults=[fault]) as server:
        transport = load(tmp_path, openai_config(server))
        with pytest.raises(kind) as raised:
            await transport.send(ask())
        await transport.close()
    shown = "".join(traceback.format_exception(raised.value))
    assert CANARY not in shown + repr(transport) + transport.endpoint
    assert "\n" not in str(raised.value)


async def test_a_client_given_as_an_object() -> None:
    replay = ReplayChatCompletionClient(["one", "two"])
    client = Client(AutogenTransport(replay, "mine"))
    assert (await client.complete(ask())).text == "one"
    assert (await client.complete(ask())).text == "two"
    with pytest.raises(BadRequest, match="No more mock responses"):
        await client.complete(ask())
    assert client.transport.endpoint == "autogen:ReplayChatCompletionClient"
    await client.close()


async def test_an_unknown_usage_is_not_zero() -> None:
    silent = CreateResult(
        finish_reason="stop",
        content="x",
        cached=False,
        usage=RequestUsage(prompt_tokens=0, completion_tokens=0),
    )

    class Silent(ReplayChatCompletionClient):  # type: ignore[misc]
        async def create(self, *args: Any, **kwargs: Any) -> CreateResult:
            return silent

    budget = Budget(max_cost=1e9, price=Price(1e6, 1e6))
    client = Client(AutogenTransport(Silent(["x"]), "silent"), budget=budget)
    reply = await client.complete(ask(parameters={"max_tokens": 5}))
    assert reply.usage.prompt_tokens is None
    assert reply.usage.cost is not None
    assert reply.usage.cost > 5  # the worst case, not nothing


def test_the_identity_is_the_config_without_its_secrets(tmp_path: Path) -> None:
    def endpoint(**more: Any) -> str:
        return load(tmp_path, openai_config("http://h/v1", **more)).endpoint

    base = endpoint()
    assert endpoint(api_key="another") == base
    assert endpoint(base_url="http://other/v1") != base
    assert endpoint(temperature=0.3) != base
    assert endpoint(max_tokens=7) != base


BAD_CONFIGS: list[Any] = [
    "",
    "{",
    "[]",
    "3",
    '"x"',
    "null",
    {},
    {"provider": "x"},
    {"provider": 3, "config": {}},
    {"provider": "no_such_module.Client", "component_type": "model", "config": {}},
    {"provider": "json.JSONDecoder", "component_type": "model", "config": {}},
    {"provider": "autogen_ext.models.openai.Absent", "component_type": "model", "config": {}},
    openai_config("http://h/v1", model=["m"]),
    openai_config("http://h/v1", timeout="soon", model=None),
    {
        "provider": "autogen_ext.models.openai.OpenAIChatCompletionClient",
        "component_type": "model",
        "config": {"model": "gpt-4o", "api_key": {"nested": CANARY}},
    },
]


@pytest.mark.parametrize("config", BAD_CONFIGS, ids=lambda c: str(c)[:50])
def test_a_bad_config_is_one_line_without_the_key(tmp_path: Path, config: Any) -> None:
    with pytest.raises(InputError, match=r"client\.json: not the config of an AutoGen") as raised:
        load(tmp_path, config)
    shown = "".join(traceback.format_exception(raised.value))
    assert "\n" not in str(raised.value)
    assert CANARY not in shown


def test_a_client_whose_package_is_missing_is_named_with_its_command(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "anthropic", None)  # what Python does for a blocked import
    name = "autogen_ext.models.anthropic.AnthropicChatCompletionClient"
    config = {"provider": name, "component_type": "model", "config": {"model": "claude"}}
    with pytest.raises(InputError, match=r"pip install 'autogen-ext\[anthropic\]'"):
        load(tmp_path, config)


async def test_limits_that_a_config_states_are_kept(tmp_path: Path) -> None:
    with serve(lambda b, n: "ok") as server:
        transport = load(tmp_path, openai_config(server, max_tokens=77, temperature=0.3))
        await transport.send(ask(parameters={"max_tokens": 2048, "temperature": 1.0, "seed": 5}))
        await transport.close()
    body = server.requests[0].body
    assert body is not None
    assert (body["max_tokens"], body["temperature"], body["seed"]) == (77, 0.3, 5)


async def test_what_autogen_cannot_carry_is_refused() -> None:
    transport = AutogenTransport(ReplayChatCompletionClient(["x"]), "r")
    with pytest.raises(BadRequest, match="in parts"):
        await transport.send(Request(messages=({"role": "user", "content": [{"text": "x"}]},)))
    tool = {"type": "function", "function": {"name": "f"}}
    with pytest.raises(BadRequest, match="by name"):
        await transport.send(ask(tools=(tool,), tool_choice={"function": {"name": "f"}}))


# ---- Our Client is a client for AutoGen agents ---------------------------------------------------


class Verdict(BaseModel):
    """A typed answer with a nested part and a default, which strict schemas do not know."""

    explanation: str
    label: Literal["good", "poor"] = "good"
    parts: list[str] = []


def client_of(server: Server, **more: Any) -> Client:
    return Client(OpenAITransport("test-model", base_url=server.base_url, api_key="k"), **more)


async def test_an_agent_answers_in_a_typed_form() -> None:
    with serve() as server:
        client = client_of(server)
        agent = AssistantAgent(
            "judge", AgentevalChatClient(client, role="critic"), output_content_type=Verdict
        )
        result = await agent.run(task="grade it")
        await client.close()
    message = result.messages[-1]
    assert isinstance(message, StructuredMessage)
    assert isinstance(message.content, Verdict)
    body = server.requests[0].body
    assert body is not None
    form = body["response_format"]["json_schema"]
    # what OpenAI demands of a strict schema: everything required, nothing further
    assert form["strict"] is True
    assert form["schema"]["additionalProperties"] is False
    assert set(form["schema"]["required"]) == {"explanation", "label", "parts"}


async def test_budget_cache_and_retries_hold_for_agents() -> None:
    rules = [Rule(Fault("status", 500), first=1)]
    with serve(lambda b, n: "ok", rules) as server:
        client = client_of(server, budget=Budget(max_calls=2), retry=RetryPolicy(first=0.001))
        chat = AgentevalChatClient(client)
        result = await chat.create([UserMessage(content="x", source="u")])
        assert result.content == "ok"
        with pytest.raises(BudgetExceeded):
            await chat.create([UserMessage(content="y", source="u")])
        await client.close()
    assert server.count == 2
    assert client.usage.requests == 2
    assert chat.actual_usage().prompt_tokens == 1
    assert chat.total_usage().prompt_tokens == 1


class Canned:
    """A transport that keeps what it is sent and returns one reply."""

    endpoint = model = "canned"

    def __init__(self, reply: Reply) -> None:
        self.reply = reply
        self.sent: list[Request] = []

    async def send(self, request: Request) -> Reply:
        self.sent.append(request)
        await asyncio.sleep(0)
        return self.reply

    async def close(self) -> None:
        pass


async def test_messages_both_ways() -> None:
    canned = Canned(Reply("fine", usage=Usage(prompt_tokens=7, completion_tokens=2)))
    chat = AgentevalChatClient(Client(canned), role="r", repeat=3)
    call = FunctionCall(id="1", name="f", arguments="{}")
    executed = FunctionExecutionResult(
        content=f"res {NONCE}", name="f", call_id="1", is_error=False
    )
    result = await chat.create(
        [
            SystemMessage(content=f"rules {NONCE}"),
            UserMessage(content=["a", "b"], source="u"),
            AssistantMessage(content=f"said {NONCE}", source="a"),
            AssistantMessage(content=[call], thought="hm", source="a"),
            FunctionExecutionResultMessage(content=[executed]),
        ],
        json_output=True,
        extra_create_args={"temperature": 0.1},
    )
    (request,) = canned.sent
    system, user, said, calls, tool_result = request.messages
    assert user == {"role": "user", "content": "a\nb"}
    assert NONCE not in system["content"]  # the nonce itself was put in
    # what a model or a tool wrote cannot hold its place
    assert said == {"role": "assistant", "content": "said \ufffdnonce\ufffd"}
    assert tool_result == {"role": "tool", "tool_call_id": "1", "content": "res \ufffdnonce\ufffd"}
    assert calls["content"] == "hm"
    assert calls["tool_calls"][0]["function"] == {"name": "f", "arguments": "{}"}
    assert (request.schema, request.parameters) == ({"type": "object"}, {"temperature": 0.1})
    assert (request.role, request.repeat, request.tools) == ("r", 3, ())
    assert (result.content, result.finish_reason, result.cached) == ("fine", "stop", False)
    assert (result.usage.prompt_tokens, result.usage.completion_tokens) == (7, 2)


async def test_pictures_are_refused_not_dropped() -> None:
    from PIL import Image as Picture

    chat = AgentevalChatClient(Client(Canned(Reply("x"))))
    picture = Image(Picture.new("RGB", (2, 2)))
    with pytest.raises(BadRequest, match="no pictures"):
        await chat.create([UserMessage(content=["look", picture], source="u")])
