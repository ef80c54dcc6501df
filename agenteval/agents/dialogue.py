"""An agent in a conversation: what it is given at its turn, and what it must do.

An assistant is anything with `async proceed(dialogue, tools) -> str`. It is stateless: everything
said and done so far stands in the dialogue. So the same adapter serves a live session, one turn of
a recorded one, and a session taken up again; and nothing is lost when it crashes.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING, Protocol

from pydantic import JsonValue

from agenteval.agents.drive import drive
from agenteval.agents.protocol import AgentFailure, AgentLog
from agenteval.records import Message, Record, ToolCall, content_hash

if TYPE_CHECKING:
    from agenteval.agents.toolbox import Toolbox


class Dialogue(Record):
    """A conversation up to an assistant's turn.

    `instructions` is the system prompt. `messages` are those of the user, the assistant (with
    `tool_calls` where it called tools) and the tools (`tool_call_id` set), in their order; the
    last one is the user's or a tool's.
    """

    instructions: str
    messages: tuple[Message, ...]


class Assistant(Protocol):
    """An agent that serves a user; it keeps nothing between two turns."""

    async def proceed(self, dialogue: Dialogue, tools: Toolbox) -> str:
        """Call tools as needed, then return what is said to the user.

        What the assistant writes beside its calls and replies (thoughts) goes to `tools.say`, as
        do the messages of its calls. Raises ModelError for an endpoint that fails.
        """
        ...


@dataclass(frozen=True, slots=True)
class AssistantSystem:
    """An assistant under test: how to make one, and what identifies it (see `System`)."""

    name: str
    make: Callable[[], Assistant]
    parameters: dict[str, JsonValue]

    @property
    def sha256(self) -> str:
        """Content hash (hex) of name and parameters."""
        return content_hash({"name": self.name, "parameters": self.parameters})


def turn_messages(log: AgentLog, dialogue: Dialogue) -> tuple[Message, ...]:
    """What a turn adds to the dialogue: its calls with their results, and the words to the user.

    Made from the events, so it is the same for all adapters: calls asked for at once are one
    message, with the text beside them where the adapter kept it. Ids are unique within the
    dialogue; what could not be read as a call is left out. Without words there is no last message.
    """
    taken = sum(len(message.tool_calls) for message in dialogue.messages)
    beside = [m.content for m in log.messages if m.role == "assistant" and m.tool_calls]
    events = [event for event in log.events if event.name]
    steps = [list(step) for _, step in groupby(events, key=lambda event: event.turn)]
    texts = beside if len(beside) == len(steps) else [""] * len(steps)
    made: list[Message] = []
    for text, step in zip(texts, steps, strict=True):
        numbers = [f"call_{taken + n}" for n in range(1, len(step) + 1)]
        taken += len(step)
        calls = tuple(
            ToolCall(name=event.name, arguments=event.arguments, id=number)
            for number, event in zip(numbers, step, strict=True)
        )
        made.append(Message(role="assistant", content=text, tool_calls=calls))
        made += [
            Message(role="tool", content=event.result, tool_call_id=number)
            for number, event in zip(numbers, step, strict=True)
        ]
    if log.output:
        made.append(Message(role="assistant", content=log.output))
    return tuple(made)


async def take_turn(
    assistant: Assistant, dialogue: Dialogue, tools: Toolbox
) -> AgentLog | AgentFailure:
    """One turn of an assistant within the limits of the toolbox; see `drive` for what is raised."""
    return await drive(_Turn(assistant, dialogue), "", tools)


@dataclass(frozen=True, slots=True)
class _Turn:
    assistant: Assistant
    dialogue: Dialogue

    async def run(self, request: str, tools: Toolbox) -> str:
        return await self.assistant.proceed(self.dialogue, tools)
