"""An AutoGen AssistantAgent under test. Imported lazily: it loads autogen-agentchat.

AutoGen 0.7.5 handles a model's mistakes internally: a call of an unknown tool is answered "Error:
tool 'x' not found in any workbench", arguments that are not JSON "Error: ..." with the parser's
message, and neither reaches a tool; `null`, `[]`, `0` and `""` as arguments are treated as `{}`. So
calls are executed when the agent announces them, unchanged and in order, and the tools only return
the answers. The model sees AutoGen's own sentences.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import aclosing
from functools import partial
from importlib.metadata import version
from inspect import signature
from typing import Any, cast

from autogen_agentchat.agents import AssistantAgent
from autogen_agentchat.base import TaskResult
from autogen_agentchat.messages import ToolCallExecutionEvent, ToolCallRequestEvent
from autogen_core import CancellationToken
from autogen_core.model_context import UnboundedChatCompletionContext
from autogen_core.models import (
    AssistantMessage,
    CreateResult,
    FunctionExecutionResultMessage,
    LLMMessage,
)
from autogen_core.tools import BaseTool, ToolSchema
from pydantic import BaseModel, JsonValue

from agenteval.agents.conversation import (
    begun,
    carry_out,
    report_unparsed,
    say_reply,
    wire_messages,
)
from agenteval.agents.endpoint import Endpoint, Line, model_system
from agenteval.agents.protocol import Dialogue, System, Tool
from agenteval.agents.toolbox import Toolbox
from agenteval.models.autogen import AgentevalChatClient, to_autogen, wire_call
from agenteval.models.client import Client
from agenteval.records import Message

_NAME = "assistant"


class _Model(AgentevalChatClient):
    """The model client of one case, with the request's parameters and the text beside calls."""

    def __init__(self, line: Line, parameters: Mapping[str, Any]) -> None:
        super().__init__(cast(Client, line))  # which uses `complete` alone
        self._line = line
        self._parameters = parameters

    async def create(self, messages: Sequence[LLMMessage], **more: Any) -> CreateResult:
        result = await super().create(messages, **more, extra_create_args=self._parameters)
        reply = self._line.last
        if reply is None or not (reply.tool_calls and reply.text):
            return result
        return result.model_copy(update={"thought": reply.text})


class _Tool(BaseTool[Any, Any]):
    """A tool of the toolbox, with its own JSON schema."""

    def __init__(self, tool: Tool, answers: Mapping[str, str]) -> None:
        super().__init__(BaseModel, str, tool.name, tool.description)
        self._tool = tool
        self._answers = answers

    @property
    def schema(self) -> ToolSchema:
        return cast(ToolSchema, self._tool.model_dump())

    async def run(self, args: BaseModel, cancellation_token: CancellationToken) -> str:
        raise NotImplementedError("calls arrive as JSON")

    async def run_json(
        self,
        args: Mapping[str, Any],
        cancellation_token: CancellationToken,
        call_id: str | None = None,
    ) -> str:
        return self._answers[call_id or ""]


class AutogenAgent:
    """A fresh AssistantAgent with the toolbox's tools; no reflection on tool use.

    `instructions` are for single requests; a conversation has its own, and is the agent's model
    context.
    """

    def __init__(self, endpoint: Endpoint, client: Client, instructions: str = "") -> None:
        self._parameters = endpoint.request_parameters()
        self._client = client
        self._instructions = instructions

    async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
        """The agent's last message. Raises ModelError for a failing endpoint.

        All calls of one reply share a turn. AutoGen's limit on turns is one above the toolbox's: at
        its limit it would end as if the agent had finished.
        """
        dialogue = begun(dialogue, self._instructions, tools)
        line = Line(self._client, tools)
        answers: dict[str, str] = {}  # what the tools say, by the id of the call
        earlier, task = _context(dialogue)
        agent = AssistantAgent(
            _NAME,
            _Model(line, self._parameters),
            tools=[_Tool(tool, answers) for tool in tools.tools],
            reflect_on_tool_use=False,
            max_tool_iterations=tools.limits.turns + 1,
            system_message=dialogue.instructions or None,
            model_context=UnboundedChatCompletionContext(earlier),
        )
        async with aclosing(agent.run_stream(task=task)) as stream:
            async for item in stream:
                if line.last and isinstance(item, ToolCallRequestEvent | TaskResult):
                    say_reply(line.last, tools)
                if isinstance(item, ToolCallRequestEvent):
                    calls = [wire_call(call) for call in item.content]
                    answers.update(await carry_out(calls, tools, tools.turn()))
                elif isinstance(item, ToolCallExecutionEvent):
                    for r in item.content:
                        ids = {"name": r.name or None, "tool_call_id": r.call_id or None}
                        tools.say(Message(role="tool", content=r.content, **ids))
                elif isinstance(item, TaskResult):
                    if line.last:
                        report_unparsed(line.last, tools)
                    return item.messages[-1].to_text()
                if tools.exhausted.is_set():
                    return ""
        raise AssertionError("the stream of an AutoGen agent ends with its result")


def _context(dialogue: Dialogue) -> tuple[list[LLMMessage], str | None]:
    """Return (model context, task): a final user message is the task.

    A dialogue that ends with a tool's result has no task: AssistantAgent then asks the model with
    its context alone. Results of calls made at once are one message, as AutoGen makes it.
    """
    messages = wire_messages(dialogue)[1 if dialogue.instructions else 0 :]
    task: str | None = None
    if messages and messages[-1]["role"] == "user":
        task = str(messages.pop()["content"])
    context: list[LLMMessage] = []
    for message in messages:
        converted = to_autogen(message, messages)
        last = context[-1] if context else None
        if isinstance(converted, AssistantMessage):
            converted.source = _NAME
        if isinstance(last, FunctionExecutionResultMessage) and isinstance(
            converted, FunctionExecutionResultMessage
        ):
            last.content.extend(converted.content)
        else:
            context.append(converted)
    return context, task


def autogen(
    endpoint: Endpoint,
    client: Client,
    *,
    instructions: str | None = None,
    name: str | None = None,
    dialogue: bool = False,
) -> System:
    """The system `autogen:MODEL`; `client` comes from `connect(endpoint)`, `dialogue` as for
    `openai_chat`.

    `instructions` replaces AutoGen's own system message.
    """
    if instructions is None:
        instructions = str(signature(AssistantAgent).parameters["system_message"].default)
    parameters: dict[str, JsonValue] = {"autogen": version("autogen-agentchat")}
    if not dialogue:
        parameters["instructions"] = instructions
    make = partial(AutogenAgent, endpoint, client, instructions)
    return model_system("autogen", endpoint, make, name, parameters)
