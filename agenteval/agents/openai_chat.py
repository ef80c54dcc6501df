"""The plain tools loop over chat completions: ask, carry out the calls, answer them, ask again."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

from pydantic import JsonValue

from agenteval.agents.conversation import (
    begun,
    carry_out,
    report_unparsed,
    say_reply,
    wire_messages,
)
from agenteval.agents.endpoint import INSTRUCTIONS, Endpoint, Line, model_system
from agenteval.agents.protocol import Dialogue, System, Tool
from agenteval.agents.toolbox import Toolbox
from agenteval.models.client import Client
from agenteval.models.wire import Reply, Request
from agenteval.records import Message

Items = list[dict[str, Any]]


class OpenAIChatAgent:
    """A model with function tools, called until its reply has no calls. `instructions` are for
    single requests; a conversation has its own."""

    adapter = "openai-chat"

    def __init__(self, endpoint: Endpoint, client: Client, instructions: str | None = None) -> None:
        self._parameters = endpoint.request_parameters()
        self._client = client
        self._instructions = instructions

    async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
        """The text of the first reply without calls. Raises ModelError for a failing endpoint.

        All calls of one reply share a turn.
        """
        line = Line(self._client, tools)
        items = self.history(begun(dialogue, self._instructions, tools))
        functions = tuple(self.functions(tools.tools))
        while not tools.exhausted.is_set():
            request = Request(tuple(items), parameters=self._parameters, tools=functions)
            reply = await line.ask(request)
            say_reply(reply, tools)
            if not reply.tool_calls:
                report_unparsed(reply, tools)
                return reply.text
            turn = tools.turn()
            if tools.exhausted.is_set():
                break
            items += self.asked(reply)
            for number, answer in await carry_out(reply.tool_calls, tools, turn):
                tools.say(Message(role="tool", content=answer, tool_call_id=number))
                items.append(self.answered(number, answer))
        return ""  # stopped: nothing reads it

    def history(self, dialogue: Dialogue) -> Items:
        """The dialogue as the endpoint takes it."""
        return wire_messages(dialogue)

    def functions(self, tools: Sequence[Tool]) -> Items:
        """The tools as the endpoint takes them."""
        return [tool.function() for tool in tools]

    def asked(self, reply: Reply) -> Items:
        """A reply with calls, as the next request carries it along."""
        calls = list(reply.tool_calls)
        return [{"role": "assistant", "content": reply.text or None, "tool_calls": calls}]

    def answered(self, number: str, answer: str) -> dict[str, Any]:
        """Return the answer to a call."""
        return {"role": "tool", "tool_call_id": number, "content": answer}


def openai_chat(
    endpoint: Endpoint,
    client: Client,
    *,
    instructions: str | None = INSTRUCTIONS,
    name: str | None = None,
    dialogue: bool = False,
    kind: type[OpenAIChatAgent] = OpenAIChatAgent,
) -> System:
    """The system `openai-chat:MODEL`; `client` comes from `connect(endpoint)`. With `dialogue` its
    parameters are those of conversations, which have their own instructions."""
    parameters: dict[str, JsonValue] = {} if dialogue else {"instructions": instructions}
    make = partial(kind, endpoint, client, instructions)
    return model_system(kind.adapter, endpoint, make, name, parameters)
