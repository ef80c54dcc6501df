"""The plain tools loop over chat completions: ask, carry out the calls, answer them, ask again."""

from __future__ import annotations

from agenteval.agents.conversation import (
    begun,
    carry_out,
    report_unparsed,
    say_reply,
    wire_messages,
)
from agenteval.agents.dialogue import AssistantSystem, Dialogue
from agenteval.agents.endpoint import INSTRUCTIONS, Endpoint, Line
from agenteval.agents.protocol import System
from agenteval.agents.toolbox import Toolbox
from agenteval.models.client import Client
from agenteval.models.wire import Request
from agenteval.records import Message


class OpenAIChatAgent:
    """A model with function tools, asked until its reply holds no call: Agent and Assistant.

    `instructions` are for single requests; a dialogue has its own.
    """

    def __init__(self, endpoint: Endpoint, client: Client, instructions: str | None = None) -> None:
        self._parameters = endpoint.request_parameters()
        self._client = client
        self._instructions = instructions

    async def run(self, request: str, tools: Toolbox) -> str:
        """The text of the first reply without calls. Raises ModelError for a failing endpoint.

        All calls of one reply share a turn.
        """
        return await self._talk(begun(self._instructions, request, tools), tools)

    async def proceed(self, dialogue: Dialogue, tools: Toolbox) -> str:
        """As `run`, at the assistant's turn in a dialogue."""
        return await self._talk(dialogue, tools)

    async def _talk(self, dialogue: Dialogue, tools: Toolbox) -> str:
        line = Line(self._client, tools)
        messages = wire_messages(dialogue)
        functions = tuple(tool.function() for tool in tools.tools)
        while not tools.exhausted.is_set():
            asked = Request(tuple(messages), parameters=self._parameters, tools=functions)
            reply = await line.ask(asked)
            say_reply(reply, tools)
            if not reply.tool_calls:
                report_unparsed(reply, tools)
                return reply.text
            turn = tools.turn()
            if tools.exhausted.is_set():
                break
            calls = list(reply.tool_calls)
            messages.append(
                {"role": "assistant", "content": reply.text or None, "tool_calls": calls}
            )
            for number, answer in await carry_out(calls, tools, turn):
                tools.say(Message(role="tool", content=answer, tool_call_id=number))
                messages.append({"role": "tool", "tool_call_id": number, "content": answer})
        return ""  # stopped: nobody reads it


def openai_chat(
    endpoint: Endpoint,
    client: Client,
    *,
    instructions: str | None = INSTRUCTIONS,
    name: str | None = None,
) -> System:
    """The system `openai-chat:MODEL`; `client` comes from `connect(endpoint)`."""
    return System(
        name=name or f"openai-chat:{endpoint.model}",
        make=lambda: OpenAIChatAgent(endpoint, client, instructions),
        parameters={
            "adapter": "openai-chat",
            "version": 1,
            "instructions": instructions,
            **endpoint.parameters(),
        },
    )


def openai_chat_assistant(endpoint: Endpoint, client: Client) -> AssistantSystem:
    """The assistant `openai-chat:MODEL`; `client` comes from `connect(endpoint)`."""
    return AssistantSystem(
        name=f"openai-chat:{endpoint.model}",
        make=lambda: OpenAIChatAgent(endpoint, client),
        parameters={"adapter": "openai-chat", "version": 1, **endpoint.parameters()},
    )
