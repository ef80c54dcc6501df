"""Messages, tools and tool calls between AutoGen's classes and OpenAI's wire format.

Imported lazily: it loads autogen-core.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from autogen_core import FunctionCall
from autogen_core.models import (
    AssistantMessage,
    FunctionExecutionResult,
    FunctionExecutionResultMessage,
    LLMMessage,
    SystemMessage,
    UserMessage,
)
from autogen_core.tools import Tool, ToolSchema
from pydantic import BaseModel

from agenteval.errors import BadRequest
from agenteval.models.wire import NONCE, Reply, Request, WireMessage


def to_autogen(message: WireMessage, history: Sequence[WireMessage]) -> LLMMessage:
    """Our message as AutoGen's. Raises BadRequest for content that is no text."""
    content = message.get("content")
    if not isinstance(content, str | None):
        raise BadRequest("a message in parts cannot be sent through an AutoGen client")
    content = content or ""
    if message["role"] == "system":
        return SystemMessage(content=content)
    if message["role"] == "tool":
        call = str(message.get("tool_call_id") or "")
        result = FunctionExecutionResult(
            content=content, name=_called(call, history), call_id=call, is_error=False
        )
        return FunctionExecutionResultMessage(content=[result])
    if message["role"] == "assistant":
        calls = [function_call(c) for c in message.get("tool_calls") or ()]
        thought = content if calls and content else None
        return AssistantMessage(content=calls or content, thought=thought, source="assistant")
    return UserMessage(content=content, source=str(message.get("name") or "user"))


def _called(call_id: str, history: Sequence[WireMessage]) -> str:
    """Name of the function behind a tool call."""
    calls = (c for m in history for c in m.get("tool_calls") or () if c.get("id") == call_id)
    return next((str(c["function"]["name"]) for c in calls), "tool")


def tool_schema(tool: dict[str, Any]) -> ToolSchema:
    """The schema inside a tool in OpenAI's form."""
    schema: ToolSchema = tool["function"]
    return schema


def tool_choice(request: Request) -> Any:
    """What AutoGen takes. Raises BadRequest for one tool by name: it wants the object."""
    if isinstance(request.tool_choice, dict):
        raise BadRequest("an AutoGen client cannot be told to call one tool by its name")
    return request.tool_choice or "auto"


def wire_call(call: FunctionCall) -> dict[str, Any]:
    """AutoGen's tool call in OpenAI's form."""
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments},
    }


def schema_of(json_output: bool | type[BaseModel] | None) -> dict[str, Any] | None:
    """The JSON schema of a model class in OpenAI's strict form; any object for True."""
    if isinstance(json_output, type):
        import openai

        tool: Any = openai.pydantic_function_tool(json_output)
        schema: dict[str, Any] = tool["function"]["parameters"]
        return schema
    return {"type": "object"} if json_output else None


def _outside(text: str) -> str:
    """What a model or a tool wrote; it must not hold the place of a nonce."""
    return text.replace(NONCE[0], "\ufffd")


def to_wire(message: LLMMessage) -> list[WireMessage]:
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


def wire_tool(tool: Tool | ToolSchema) -> dict[str, Any]:
    """AutoGen's tool in OpenAI's form."""
    schema = tool.schema if isinstance(tool, Tool) else tool
    return {"type": "function", "function": dict(schema)}


def wire_choice(choice: Any) -> str | dict[str, Any]:
    """AutoGen's choice of tool in OpenAI's form."""
    if isinstance(choice, str):
        return choice
    return {"type": "function", "function": {"name": choice.name}}


def function_call(call: dict[str, Any]) -> FunctionCall:
    """A tool call in OpenAI's form as AutoGen's."""
    function = call.get("function") or {}
    return FunctionCall(
        id=str(call.get("id") or ""),
        name=str(function.get("name") or ""),
        arguments=str(function.get("arguments") or "{}"),
    )


def autogen_finish(reply: Reply) -> Any:
    """AutoGen's name for how a reply ended."""
    if reply.tool_calls:
        return "function_calls"
    return reply.finish if reply.finish in ("stop", "length", "content_filter") else "unknown"
