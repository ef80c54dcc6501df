"""Turn level: what an agent does at one turn of a recorded session, after its history."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from agenteval.agents import Dialogue, System, drive
from agenteval.agents.protocol import AgentFailure, AgentLimits, AgentLog, Tool
from agenteval.agents.toolbox import Toolbox
from agenteval.errors import InputError
from agenteval.records import Message, ToolCall
from agenteval.workflows.instructions import instructions, tools_given
from agenteval.workflows.reply_text import read_reply, thought_items
from agenteval.workflows.scenario import Format, RecordedSession, Role, Turn
from agenteval.workflows.session import Prediction


async def predict(
    role: Role,
    session: RecordedSession,
    index: int,
    system: System,
    format: Format,
    limits: AgentLimits | None = None,
) -> Prediction | AgentFailure:
    """The first thing that the agent does at turn `index` of the session: a call or a reply.

    It is asked once: nothing is answered to its call, and a call that cannot be carried out is a
    call. `unreadable` is what could not be read as a call, silence, and an agent out of time.
    Node and intent are those that its text names. Raises InputError when `index` is no turn of an
    agent, the session is not the role's, and what `drive` raises.
    """
    if not 0 <= index < len(session.turns) or session.turns[index].kind == "user":
        raise InputError(f"{session.id} has no turn of an agent at {index}")
    return await predict_next(system, *given_at(role, session, index, format), limits)


async def predict_next(
    system: System,
    dialogue: Dialogue,
    tools: Sequence[Tool],
    limits: AgentLimits | None = None,
    *,
    in_words: bool = False,
) -> Prediction | AgentFailure:
    """The first thing that the agent does in the dialogue, as `predict`. With `in_words` a call or
    reply in the templates of arXiv 2406.14884 is one, whatever the agent's own form is."""
    box = Toolbox(tools, _nothing, limits, stop_after=1)
    log = await drive(system.make(), dialogue, box)
    if isinstance(log, AgentFailure):
        return log
    prediction, read = _prediction(log, tuple(box.beyond)), read_reply(log.output)
    if not in_words or prediction.form != "reply" or read.form == "unreadable":
        return prediction
    kept = ("form", "tool", "arguments", "further", "response")
    return prediction.model_copy(update={name: getattr(read, name) for name in kept})


def given_at(
    role: Role, session: RecordedSession, index: int, format: Format
) -> tuple[Dialogue, tuple[Tool, ...]]:
    """Instructions with the talk before a turn, and the tools."""
    ids = scenarios_of(role, session)
    before = history(session.turns[:index])
    dialogue = Dialogue(instructions=instructions(role, ids, format), messages=before)
    return dialogue, tools_given(role, ids, format)


def scenarios_of(role: Role, session: RecordedSession) -> tuple[str, ...]:
    """Ids of the scenarios whose procedures the agent is given for a session of the role.

    The one scenario it is recorded in, or for a cross-scenario session all of the role (paper,
    section 3.1). Raises InputError for a session of another role.
    """
    for scenario in role.scenarios:
        if session in scenario.sessions:
            return (scenario.id,)
    if session in role.cross_sessions:
        return tuple(scenario.id for scenario in role.scenarios)
    raise InputError(f"{session.id} is no session of {role.id}")


def history(turns: Sequence[Turn]) -> tuple[Message, ...]:
    """Recorded turns as the messages of a dialogue; results of tools as JSON text."""
    messages: list[Message] = []
    for position, turn in enumerate(turns):
        if turn.kind != "call":
            role = "user" if turn.kind == "user" else "assistant"
            messages.append(Message(role=role, content=turn.text))
            continue
        number = f"call_{position}"
        call = ToolCall(name=turn.tool, arguments=turn.arguments, id=number)
        result = json.dumps(turn.result, ensure_ascii=False)
        messages += [
            Message(role="assistant", tool_calls=(call,)),
            Message(role="tool", content=result, tool_call_id=number),
        ]
    return tuple(messages)


def _nothing(name: str, arguments: object) -> str:
    """The answer to a call: nobody reads it."""
    return ""


def _prediction(log: AgentLog, beyond: tuple[str, ...]) -> Prediction:
    spoken = next((m for m in reversed(log.messages) if m.role == "assistant"), None)
    unread = log.events[0].arguments if log.events and not log.events[0].name else ""
    raw = spoken.content if spoken is not None else (log.output or str(unread))
    called = bool(log.events) and log.events[0].status != "malformed"
    kept: dict[str, Any] = {
        **_stated(raw, called=called),
        "raw": raw,
        "usage": log.usage,
        "seconds": log.seconds,
        "model": log.model,
    }
    if called:
        first = log.events[0]
        asked = spoken.tool_calls if spoken is not None else ()
        further = (
            tuple(call.name for call in asked[1:] if call.name) or beyond or read_reply(raw).further
        )
        return Prediction(
            form="call", tool=first.name, arguments=first.arguments, further=further, **kept
        )
    if log.events or not log.output.strip():
        return Prediction(form="unreadable", **kept)
    return Prediction(form="reply", response=log.output, **kept)


def _stated(raw: str, *, called: bool) -> dict[str, Any]:
    """Thought, node and intent. What stands beside a call in no template is the thought."""
    read = read_reply(raw)
    if read.thought or read.form != "unreadable":
        return {"thought": read.thought, "node": read.node, "intent": read.intent}
    node, intent = thought_items(raw)
    return {"thought": raw if called else "", "node": node, "intent": intent}
