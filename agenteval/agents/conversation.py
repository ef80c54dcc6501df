"""A dialogue as chat completions take it, and what its next replies mean for the toolbox."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

from agenteval.agents.protocol import AgentLog, Dialogue
from agenteval.agents.toolbox import Toolbox, as_object
from agenteval.errors import InputError
from agenteval.models.wire import Reply, WireMessage
from agenteval.records import Message, ToolCall

UNREADABLE = "Not carried out: this call could not be read. It needs a name and arguments."
# How chat templates write calls (Hermes, Llama, Mistral, DeepSeek, Functionary, Kimi).
_NOTATION = re.compile(
    r"</?tool_calls?>|<function[=_]|<\|python_tag\|>|\[TOOL_CALLS\]|<[|｜]tool[_▁]calls?"
)


def begun(dialogue: Dialogue, instructions: str | None, tools: Toolbox) -> Dialogue:
    """The dialogue with instructions. The given ones are for a single request, whose messages the
    toolbox keeps; a conversation has its own."""
    if dialogue.instructions is not None:
        return dialogue
    if instructions:
        tools.say(Message(role="system", content=instructions))
    for message in dialogue.messages:
        tools.say(message)
    return Dialogue(instructions=instructions or "", messages=dialogue.messages)


def turn_messages(log: AgentLog, dialogue: Dialogue) -> tuple[Message, ...]:
    """Return the messages that a turn adds to the dialogue: calls with results, and final words.

    They are made from the events, so they are the same for all adapters: simultaneous calls are one
    message, with the adapter's text if it recorded one. Ids are unique within the dialogue. Calls
    that could not be parsed are omitted.
    """
    call_count = sum(len(message.tool_calls) for message in dialogue.messages)
    step_texts = [m.content for m in log.messages if m.role == "assistant" and m.tool_calls]
    events = [event for event in log.events if event.name]
    steps = [list(step) for _, step in groupby(events, key=lambda event: event.turn)]
    texts = step_texts if len(step_texts) == len(steps) else [""] * len(steps)
    turn: list[Message] = []
    for text, step in zip(texts, steps, strict=True):
        numbers = [f"call_{call_count + n}" for n in range(1, len(step) + 1)]
        call_count += len(step)
        calls = tuple(
            ToolCall(name=event.name, arguments=event.arguments, id=number)
            for number, event in zip(numbers, step, strict=True)
        )
        turn.append(Message(role="assistant", content=text, tool_calls=calls))
        turn += [
            Message(role="tool", content=event.result, tool_call_id=number)
            for number, event in zip(numbers, step, strict=True)
        ]
    if log.output:
        turn.append(Message(role="assistant", content=log.output))
    return tuple(turn)


def wire_messages(dialogue: Dialogue) -> list[WireMessage]:
    """The dialogue as OpenAI's chat completions take it, the instructions first.

    Raises InputError for a tool result without an earlier call: endpoints reject such a history.
    """
    wire: list[WireMessage] = []
    if dialogue.instructions:
        wire.append({"role": "system", "content": dialogue.instructions})
    open_calls: set[str | None] = set()
    for message in dialogue.messages:
        if message.role == "tool":
            number = message.tool_call_id
            if number is None or number not in open_calls:
                raise InputError(f"the dialogue holds a result of no call (id {number!r})")
            wire.append({"role": "tool", "tool_call_id": number, "content": message.content})
        elif message.role == "assistant" and message.tool_calls:
            calls = [wire_call(call) for call in message.tool_calls]
            open_calls.update(call["id"] for call in calls)
            words = message.content or None
            wire.append({"role": "assistant", "content": words, "tool_calls": calls})
        else:
            wire.append({"role": message.role, "content": message.content})
    return wire


@dataclass(frozen=True, slots=True)
class Exchange:
    """A call and its result, with the text written next to the call ("" from the second
    call on)."""

    thought: str
    call: ToolCall
    result: str


def in_words(messages: Sequence[Message]) -> Iterator[Message | Exchange]:
    """The dialogue for an agent that reads and writes text: messages, and calls one by one.

    Assistant text that its previous message already contains is not repeated. Raises InputError for
    the result of a tool that no call asked for.
    """
    unanswered: dict[str, tuple[str, ToolCall]] = {}
    last_words = ""  # of the assistant, when it spoke last
    for message in messages:
        words = message.content.strip()
        plain = message.role == "assistant" and not message.tool_calls
        if plain and words and words in last_words:
            continue
        last_words = words if plain else ""
        if message.role == "tool":
            number = message.tool_call_id or ""
            if number not in unanswered:
                raise InputError(f"the dialogue holds a result of no call (id {number!r})")
            yield Exchange(*unanswered.pop(number), message.content)
        elif message.role == "assistant" and message.tool_calls:
            thought = message.content
            for call in message.tool_calls:
                unanswered[call.id or ""] = thought, call
                thought = ""
        else:
            yield message


def wire_call(call: ToolCall) -> dict[str, Any]:
    """A call of a dialogue as chat completions have it. Raises InputError for one without id."""
    if not call.id:
        raise InputError(f"the dialogue holds a call of {call.name!r} without an id")
    return {
        "id": call.id,
        "type": "function",
        "function": {"name": call.name, "arguments": arguments_text(call)},
    }


def arguments_text(call: ToolCall) -> str:
    """Return the arguments of a call as JSON text, or unchanged if they are not JSON."""
    if isinstance(call.arguments, str):
        return call.arguments
    if call.arguments is None:
        return "{}"
    return json.dumps(call.arguments, ensure_ascii=False)


async def carry_out(
    calls: Sequence[dict[str, Any]], tools: Toolbox, turn: int
) -> list[tuple[str, str]]:
    """Execute the calls of one reply in order; return (id, the answer to the model) pairs."""
    answers = []
    for call in calls:
        name, arguments = call["function"]["name"], call["function"]["arguments"]
        if name:
            answers.append((call["id"], await tools.call_async(name, arguments, turn=turn)))
        else:
            tools.malformed(arguments, turn=turn)
            answers.append((call["id"], UNREADABLE))
    return answers


def report_unparsed(reply: Reply, tools: Toolbox) -> None:
    """Log an attempted call in a reply without parsed calls.

    This is text in the notation of a chat template that the endpoint did not parse as a call, or an
    empty reply whose finish reason is tool calls.
    """
    announced = reply.finish == "tool_calls" and not reply.text.strip()
    if not reply.tool_calls and (announced or _NOTATION.search(reply.text)):
        tools.malformed(reply.text)


def say_reply(reply: Reply, tools: Toolbox) -> None:
    """Keep a reply, with the calls it asks for, in the toolbox."""
    calls = []
    for call in reply.tool_calls:
        call_arguments, _ = as_object(call["function"]["arguments"])
        calls.append(
            ToolCall(name=call["function"]["name"], arguments=call_arguments, id=call["id"])
        )
    tools.say(Message(role="assistant", content=reply.text, tool_calls=tuple(calls)))
