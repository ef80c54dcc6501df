"""The plain tools loop over chat completions: ask, carry out the calls, answer them, ask again."""

from __future__ import annotations

from agenteval.agents.conversation import (
    begun,
    carry_out,
    report_unparsed,
    say_reply,
    wire_messages,
)
from agenteval.agents.endpoint import INSTRUCTIONS, Endpoint, Line
from agenteval.agents.protocol import Dialogue, System
from agenteval.agents.toolbox import Toolbox
from agenteval.models.client import Client
from agenteval.models.wire import Request
from agenteval.records import Message


class OpenAIChatAgent:
    """A model with function tools, asked until its reply holds no call.

    `instructions` are for single requests; a conversation has its own.
    """

    def __init__(self, endpoint: Endpoint, client: Client, instructions: str | None = None) -> None:
        self._parameters = endpoint.request_parameters()
        self._client = client
        self._instructions = instructions

    async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
        """The text of the first reply without calls. Raises ModelError for a failing endpoint.

        All calls of one reply share a turn.
        """
        line = Line(self._client, tools)
        messages = wire_messages(begun(dialogue, self._instructions, tools))
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
    dialogue: bool = False,
) -> System:
    """The system `openai-chat:MODEL`; `client` comes from `connect(endpoint)`. With `dialogue` it
    is known by what it does in conversations, which have instructions of their own."""
    return System(
        name=name or f"openai-chat:{endpoint.model}",
        make=lambda: OpenAIChatAgent(endpoint, client, instructions),
        parameters={
            "adapter": "openai-chat",
            "version": 1,
            **({} if dialogue else {"instructions": instructions}),
            **endpoint.parameters(),
        },
    )
