"""AutoGen in both directions: any AutoGen model client carries our requests, and our Client is
a model client for any AutoGen agent.

Imported lazily: it loads autogen-core.
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    ModelInfo,
    RequestUsage,
    SystemMessage,
    UserMessage,
)
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel, ValidationError

from agenteval.errors import AgentevalError, BadRequest, InputError
from agenteval.files import read_text
from agenteval.models.adaptation import LIMITS
from agenteval.models.client import Client, estimate_tokens
from agenteval.models.openai import follow_no_redirect, sdk_error
from agenteval.models.wire import NONCE, Reply, Request, WireMessage, one_line, printable
from agenteval.records import Usage, content_hash
from agenteval.text import keep_secret, public_url, url_secrets, without_known

_FINISH = {
    "stop": "stop",
    "length": "length",
    "content_filter": "content_filter",
    "function_calls": "tool_calls",
}
_SECRET_WORDS = ("key", "token", "secret", "password", "authorization")
_NOT_SECRET = ("max_tokens", "max_completion_tokens")


class AutogenTransport:
    """Sends through an AutoGen `ChatCompletionClient`, given as an object or a component config.

    `endpoint` names the class and, for a config, a hash of it without its secrets. The wrapped
    client's own retries are turned off where it has the setting: every request must be counted.
    """

    def __init__(
        self, client: ChatCompletionClient, name: str, *, config: Mapping[str, Any] | None = None
    ) -> None:
        self._client = client
        keep_secret(_secrets(config or {}))  # what a client says may repeat them
        _keep_to_its_host(client)
        self.model = name
        stated = (config or {}).get("config", {})
        self._stated = {name for name in stated if stated[name] is not None}
        if self._stated & LIMITS:  # in either spelling
            self._stated |= LIMITS
        self.endpoint = f"autogen:{type(client).__name__}"
        if config is not None:
            self.endpoint += f":{content_hash(_without_secrets(config))[:16]}"

    @classmethod
    def from_config(cls, path: Path) -> AutogenTransport:
        """Load a component config (JSON), as written by `dump_component`.

        Raises InputError if it does not name a loadable model client.
        """
        config: Any = None
        text = read_text(path)
        try:
            config = json.loads(text)
            keep_secret(_secrets(config))
            client = ChatCompletionClient.load_component(_without_retries(config))
        except Exception as error:  # noqa: BLE001  a component may raise anything when it is built
            reason = f"{type(error).__name__}: {error}"
            if isinstance(error, ValidationError):  # its text repeats the input: maybe a key
                places = [f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors()]
                reason = "; ".join(places)
            message = f"not the config of an AutoGen model client ({one_line(reason)})"
            family = re.search(r"autogen_ext\.models\.(\w+)", str(config)) if config else None
            if family and isinstance(error, ImportError):
                command = f"pip install 'autogen-ext[{family[1].replace('_', '-')}]'"
                message = f"its client needs what is not installed ({one_line(error)}): {command}"
            raise InputError(message, str(path)) from None
        model = config["config"].get("model")
        return cls(client, f"autogen:{model or path.stem}", config=config)

    async def send(self, request: Request) -> Reply:
        """Send one request. Errors of the wrapped client are classified by HTTP status."""
        json_output = bool(request.schema) and self._client.model_info.get("json_output", False)
        extra = {
            name: value
            for name, value in request.parameters.items()
            if value is not None and name not in self._stated
        }
        tools = [tool["function"] for tool in request.tools]
        if tools and isinstance(request.tool_choice, dict):  # it wants the object
            raise BadRequest("an AutoGen client cannot be made to call one tool by name")
        choice: Any = {"tool_choice": request.tool_choice or "auto"} if tools else {}
        try:
            result = await self._client.create(
                [to_autogen(m, request.messages) for m in request.messages],
                tools=tools,
                json_output=json_output or None,
                extra_create_args=extra,
                **choice,
            )
        except AgentevalError:
            raise
        except Exception as error:  # noqa: BLE001  each client raises its own SDK's
            raise sdk_error("autogen", error) from None  # the cause may hold the key
        text = without_known(result.content) if isinstance(result.content, str) else ""
        return Reply(
            text=printable(text),
            finish=_FINISH.get(result.finish_reason, "unknown"),
            tool_calls=tuple(wire_call(c) for c in result.content if not isinstance(c, str)),
            usage=Usage(
                requests=1,
                # AutoGen writes 0 where the endpoint did not say; no prompt has 0 tokens
                prompt_tokens=result.usage.prompt_tokens or None,
                completion_tokens=result.usage.completion_tokens
                if result.usage.prompt_tokens
                else None,
            ),
            mode="json_object" if json_output else "text",
        )

    async def close(self) -> None:
        """Close the wrapped client."""
        await self._client.close()


def _keep_to_its_host(client: Any) -> None:
    """Follow no redirect where the client is one of an SDK on httpx, or a wrapper around one
    (AutoGen's cache). Others decide for themselves."""
    wrapped = getattr(client, "client", None)
    if isinstance(wrapped, ChatCompletionClient):
        _keep_to_its_host(wrapped)
    follow_no_redirect(getattr(client, "_client", None))


def _without_retries(config: Any) -> Any:
    """The config with `max_retries` 0 where the client takes it and the user has not set it."""
    provider = str(config["provider"])
    if not isinstance(config.get("config"), dict):
        raise TypeError("it has no member `config`")
    if not any(f"autogen_ext.models.{name}." in provider for name in ("openai", "anthropic")):
        return config
    return {**config, "config": {"max_retries": 0, **config["config"]}}


def _is_secret(name: str) -> bool:
    return name not in _NOT_SECRET and any(word in name.lower() for word in _SECRET_WORDS)


def _secrets(value: Any, inside: bool = False) -> Iterator[str]:
    """Yield every text under a member whose name suggests a key, and credentials in URLs."""
    if isinstance(value, str):
        yield from [value] if inside else url_secrets(value) if "://" in value else []
    elif isinstance(value, Mapping):
        for name, member in value.items():
            yield from _secrets(member, inside or _is_secret(str(name)))
    elif isinstance(value, list):
        for member in value:
            yield from _secrets(member, inside)


def _without_secrets(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {k: _without_secrets(v) for k, v in value.items() if not _is_secret(str(k))}
    if isinstance(value, list):
        return [_without_secrets(v) for v in value]
    return public_url(value) if isinstance(value, str) and "://" in value else value


class _NoConfig(BaseModel):
    """The component protocol wants a config class; a live Client cannot be described by one."""


class AgentevalChatClient(ChatCompletionClient):
    """Our Client as an AutoGen model client: its cache, budget, retries and limits included."""

    component_type = "model"
    component_config_schema = _NoConfig

    def __init__(self, client: Client, *, role: str = "agent", repeat: int = 0) -> None:
        self._client = client
        self._role = role
        self._repeat = repeat
        self._last = RequestUsage(prompt_tokens=0, completion_tokens=0)

    async def create(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = (),
        tool_choice: Any = "auto",
        json_output: bool | type[BaseModel] | None = None,
        extra_create_args: Mapping[str, Any] = {},
        cancellation_token: CancellationToken | None = None,
    ) -> CreateResult:
        """Return one completion. Raises the ModelError of the Client."""
        choice = tool_choice
        if not isinstance(choice, str):
            choice = {"type": "function", "function": {"name": choice.name}}
        request = Request(
            messages=tuple(w for m in messages for w in _to_wire(m)),
            schema=_schema_of(json_output),
            parameters=dict(extra_create_args),
            repeat=self._repeat,
            tools=tuple(
                {"type": "function", "function": dict(t.schema if isinstance(t, Tool) else t)}
                for t in tools
            ),
            tool_choice=choice if tools else None,
            role=self._role,
        )
        answer = asyncio.ensure_future(self._client.complete(request))
        if cancellation_token is not None:
            cancellation_token.link_future(answer)
        reply = await answer
        self._last = RequestUsage(
            prompt_tokens=reply.usage.prompt_tokens or 0,
            completion_tokens=reply.usage.completion_tokens or 0,
        )
        finish = reply.finish if reply.finish in ("stop", "length", "content_filter") else "unknown"
        return CreateResult(
            finish_reason="function_calls" if reply.tool_calls else finish,
            content=[_function_call(c) for c in reply.tool_calls] or reply.text,
            usage=self._last,
            cached=reply.cached,
        )

    async def create_stream(
        self,
        messages: Sequence[LLMMessage],
        *,
        tools: Sequence[Tool | ToolSchema] = (),
        tool_choice: Any = "auto",
        json_output: bool | type[BaseModel] | None = None,
        extra_create_args: Mapping[str, Any] = {},
        cancellation_token: CancellationToken | None = None,
    ) -> AsyncGenerator[str | CreateResult, None]:
        """Yield the whole completion as one piece; judged text is never streamed."""
        yield await self.create(
            messages,
            tools=tools,
            tool_choice=tool_choice,
            json_output=json_output,
            extra_create_args=extra_create_args,
            cancellation_token=cancellation_token,
        )

    async def close(self) -> None:
        """Do nothing: the caller owns the Client."""

    def actual_usage(self) -> RequestUsage:
        """Tokens of the last call."""
        return self._last

    def total_usage(self) -> RequestUsage:
        """Tokens of all calls of the Client."""
        usage = self._client.usage
        return RequestUsage(
            prompt_tokens=usage.prompt_tokens or 0, completion_tokens=usage.completion_tokens or 0
        )

    def count_tokens(
        self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()
    ) -> int:
        """Estimate (an upper one); no tokenizer is downloaded for it."""
        return estimate_tokens(Request(messages=tuple(w for m in messages for w in _to_wire(m))))

    def remaining_tokens(
        self, messages: Sequence[LLMMessage], *, tools: Sequence[Tool | ToolSchema] = ()
    ) -> int:
        """128,000 less the estimate; only the endpoint knows the true window."""
        return 128_000 - self.count_tokens(messages, tools=tools)

    @property
    def capabilities(self) -> ModelInfo:
        """Deprecated name of `model_info`."""
        return self.model_info

    @property
    def model_info(self) -> ModelInfo:
        """Capabilities that the client passes on: tools and structured output, no images."""
        return ModelInfo(
            vision=False,
            function_calling=True,
            json_output=True,
            family="unknown",
            structured_output=True,
        )


# ---- messages, tools and calls between AutoGen and OpenAI's wire format -------------------------


def to_autogen(message: WireMessage, history: Sequence[WireMessage]) -> LLMMessage:
    """Convert a message to AutoGen's format. Raises BadRequest for content that is not text."""
    content = message.get("content")
    if not isinstance(content, str | None):
        raise BadRequest("a message in parts cannot be sent through an AutoGen client")
    content = content or ""
    if message["role"] == "system":
        return SystemMessage(content=content)
    if message["role"] == "tool":
        call = str(message.get("tool_call_id") or "")
        calls = [c for m in history for c in m.get("tool_calls") or () if c.get("id") == call]
        name = str(calls[0]["function"]["name"]) if calls else "tool"
        result = FunctionExecutionResult(content=content, name=name, call_id=call, is_error=False)
        return FunctionExecutionResultMessage(content=[result])
    if message["role"] == "assistant":
        calls = [_function_call(c) for c in message.get("tool_calls") or ()]
        thought = content if calls and content else None
        return AssistantMessage(content=calls or content, thought=thought, source="assistant")
    return UserMessage(content=content, source=str(message.get("name") or "user"))


def wire_call(call: FunctionCall) -> dict[str, Any]:
    """AutoGen's tool call in OpenAI's form."""
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def _schema_of(json_output: bool | type[BaseModel] | None) -> dict[str, Any] | None:
    """The JSON schema of a model class in OpenAI's strict form; any object for True."""
    if isinstance(json_output, type):
        import openai

        tool: Any = openai.pydantic_function_tool(json_output)
        schema: dict[str, Any] = tool["function"]["parameters"]
        return schema
    return {"type": "object"} if json_output else None


def _outside(text: str) -> str:
    """Return text from a model or a tool, which must not contain the placeholder of a nonce."""
    return text.replace(NONCE[0], "\ufffd")


def _to_wire(message: LLMMessage) -> list[WireMessage]:
    """AutoGen's message as ours, one per tool result. Raises BadRequest for pictures."""
    if isinstance(message, SystemMessage):
        return [{"role": "system", "content": message.content}]
    if isinstance(message, FunctionExecutionResultMessage):
        return [
            {"role": "tool", "tool_call_id": r.call_id, "content": _outside(r.content)}
            for r in message.content
        ]
    if isinstance(message, AssistantMessage):
        if isinstance(message.content, str):
            return [{"role": "assistant", "content": _outside(message.content)}]
        calls = [wire_call(c) for c in message.content]
        thought = _outside(message.thought or "")
        return [{"role": "assistant", "content": thought, "tool_calls": calls}]
    if isinstance(message.content, str):
        return [{"role": "user", "content": message.content}]
    if not all(isinstance(part, str) for part in message.content):
        raise BadRequest("this client sends text only, no pictures")
    return [{"role": "user", "content": "\n".join(map(str, message.content))}]


def _function_call(call: dict[str, Any]) -> FunctionCall:
    """A tool call in OpenAI's form as AutoGen's."""
    function = call.get("function") or {}
    return FunctionCall(
        id=str(call.get("id") or ""),
        name=str(function.get("name") or ""),
        arguments=str(function.get("arguments") or "{}"),
    )
