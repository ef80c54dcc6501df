"""AutoGen in both directions: any AutoGen model client carries our requests, and our Client is
a model client for any AutoGen agent.

Imported lazily: it loads autogen-core.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Mapping, Sequence
from pathlib import Path
from typing import Any

from autogen_core import CancellationToken, FunctionCall
from autogen_core.models import (
    AssistantMessage,
    ChatCompletionClient,
    CreateResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    ModelInfo,
    RequestUsage,
    SystemMessage,
    UserMessage,
)
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel

from agenteval.errors import BadRequest, InputError, ModelError, Transient
from agenteval.models.client import Client, estimate_tokens
from agenteval.models.wire import Reply, Request, WireMessage
from agenteval.records import Usage

_FINISH = {"stop": "stop", "length": "length", "content_filter": "content_filter",
           "function_calls": "tool_calls"}  # fmt: skip


class AutogenTransport:
    """Sends through an AutoGen `ChatCompletionClient`, given as an object or a component config.

    Raises InputError when the config names no model client that can be loaded.
    """

    def __init__(self, client: ChatCompletionClient, name: str) -> None:
        self._client = client
        self.model = name
        self.endpoint = f"autogen:{type(client).__name__}"

    @classmethod
    def from_config(cls, path: Path) -> AutogenTransport:
        """Load a component config (JSON), as written by `dump_component`."""
        try:
            config = json.loads(path.read_text(encoding="utf-8"))
            client = ChatCompletionClient.load_component(config)
        except (OSError, ValueError, TypeError, KeyError, ImportError, AttributeError) as error:
            raise InputError(
                f"not the config of an AutoGen model client ({error})", str(path)
            ) from error
        settings = config.get("config") if isinstance(config, dict) else None
        model = settings.get("model") if isinstance(settings, dict) else None
        return cls(client, f"autogen:{model or path.stem}")

    async def send(self, request: Request) -> Reply:
        """One attempt. Errors of the wrapped client are sorted by their HTTP status."""
        json_output = bool(request.schema) and self._client.model_info.get("json_output", False)
        extra = {k: v for k, v in request.parameters.items() if v is not None}
        try:
            result = await self._client.create(
                [_to_autogen(m) for m in request.messages],
                json_output=json_output or None,
                extra_create_args=extra,
            )
        except Exception as error:
            raise _sorted_error(error) from error
        text = result.content if isinstance(result.content, str) else ""
        return Reply(
            text=text,
            finish=_FINISH.get(result.finish_reason, "unknown"),
            tool_calls=tuple(_wire_call(c) for c in result.content if not isinstance(c, str)),
            usage=Usage(
                requests=1,
                prompt_tokens=result.usage.prompt_tokens,
                completion_tokens=result.usage.completion_tokens,
            ),
            mode="json_object" if json_output else "text",
        )

    async def close(self) -> None:
        """Close the wrapped client."""
        await self._client.close()


def _sorted_error(error: Exception) -> ModelError:
    from agenteval.models.openai import status_error

    status = getattr(error, "status_code", None)
    if isinstance(status, int):
        return status_error("autogen", error)
    kind = type(error).__name__
    message = f"autogen: {kind}: {' '.join(str(error).split())[:300]}"
    lasting = isinstance(error, TypeError | ValueError | KeyError | NotImplementedError)
    return BadRequest(message) if lasting else Transient(message)


def _to_autogen(message: WireMessage) -> LLMMessage:
    content = str(message.get("content") or "")
    if message["role"] == "system":
        return SystemMessage(content=content)
    if message["role"] == "assistant":
        return AssistantMessage(content=content, source="assistant")
    return UserMessage(content=content, source=str(message.get("name") or "user"))


def _wire_call(call: FunctionCall) -> dict[str, Any]:
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


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
        """One completion. Raises the ModelError of the Client."""
        is_model = isinstance(json_output, type) and issubclass(json_output, BaseModel)
        schema = json_output.model_json_schema() if is_model else None  # type: ignore[union-attr]
        request = Request(
            messages=tuple(w for m in messages for w in _to_wire(m)),
            schema=schema or ({"type": "object"} if json_output is True else None),
            parameters=dict(extra_create_args),
            repeat=self._repeat,
            tools=tuple(_wire_tool(t) for t in tools),
            tool_choice=_wire_choice(tool_choice) if tools else None,
            role=self._role,
        )
        reply = await self._client.complete(request)
        self._last = RequestUsage(
            prompt_tokens=reply.usage.prompt_tokens or 0,
            completion_tokens=reply.usage.completion_tokens or 0,
        )
        return CreateResult(
            finish_reason=_autogen_finish(reply),
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
        """The whole completion as one piece; judged text is never needed in chunks."""
        yield await self.create(
            messages,
            tools=tools,
            tool_choice=tool_choice,
            json_output=json_output,
            extra_create_args=extra_create_args,
            cancellation_token=cancellation_token,
        )

    async def close(self) -> None:
        """Nothing: the Client belongs to who made it."""

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
        """128,000 less the estimate; the true window is known to the endpoint alone."""
        return 128_000 - self.count_tokens(messages, tools=tools)

    @property
    def capabilities(self) -> ModelInfo:  # type: ignore[override]
        """Deprecated name of `model_info`."""
        return self.model_info

    @property
    def model_info(self) -> ModelInfo:
        """What the client passes on: tools and structured output, no pictures."""
        return ModelInfo(
            vision=False,
            function_calling=True,
            json_output=True,
            family="unknown",
            structured_output=True,
        )


def _to_wire(message: LLMMessage) -> list[WireMessage]:
    if isinstance(message, SystemMessage):
        return [{"role": "system", "content": message.content}]
    if isinstance(message, FunctionExecutionResultMessage):
        return [
            {"role": "tool", "tool_call_id": r.call_id, "content": r.content}
            for r in message.content
        ]
    if isinstance(message, AssistantMessage):
        if isinstance(message.content, str):
            return [{"role": "assistant", "content": message.content}]
        calls = [_wire_call(c) for c in message.content]
        return [{"role": "assistant", "content": message.thought or "", "tool_calls": calls}]
    if isinstance(message.content, str):
        return [{"role": "user", "content": message.content}]
    texts = [part if isinstance(part, str) else "[image]" for part in message.content]
    return [{"role": "user", "content": "\n".join(texts)}]


def _wire_tool(tool: Tool | ToolSchema) -> dict[str, Any]:
    schema = tool.schema if isinstance(tool, Tool) else tool
    return {"type": "function", "function": dict(schema)}


def _wire_choice(choice: Any) -> str | dict[str, Any]:
    if isinstance(choice, str):
        return choice
    return {"type": "function", "function": {"name": choice.name}}


def _function_call(call: dict[str, Any]) -> FunctionCall:
    function = call.get("function") or {}
    return FunctionCall(
        id=str(call.get("id") or ""),
        name=str(function.get("name") or ""),
        arguments=str(function.get("arguments") or "{}"),
    )


def _autogen_finish(reply: Reply) -> Any:
    if reply.tool_calls:
        return "function_calls"
    return reply.finish if reply.finish in ("stop", "length", "content_filter") else "unknown"
