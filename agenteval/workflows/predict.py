"""Turn level: the agent's next step in a conversation."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from agenteval.agents import Dialogue, System, drive
from agenteval.agents.protocol import AgentFailure, AgentLimits, AgentLog, Tool
from agenteval.agents.toolbox import Toolbox
from agenteval.workflows.reply_text import read_reply, thought_items
from agenteval.workflows.session import Prediction


async def predict_next(
    system: System,
    dialogue: Dialogue,
    tools: Sequence[Tool],
    limits: AgentLimits | None = None,
    *,
    in_words: bool = False,
) -> Prediction | AgentFailure:
    """Return the first thing that the agent does in the dialogue: a call or a reply.

    The agent is asked once and its call is not answered; a call that cannot be carried out is a
    call too. `unreadable` is what could not be read as a call, silence, and an agent out of time.
    Node and intent are those that its text names. With `in_words`, a call or reply in the templates
    of arXiv 2406.14884 counts as one, whatever the agent's own form is. Raises what `drive` raises.
    """
    box = Toolbox(tools, lambda name, arguments: "", limits, stop_after=1)
    log = await drive(system.make(), dialogue, box)
    if isinstance(log, AgentFailure):
        return log
    prediction, read = _prediction(log, tuple(box.beyond)), read_reply(log.output)
    if not in_words or prediction.form != "reply" or read.form == "unreadable":
        return prediction
    names = ("form", "tool", "arguments", "further", "response")
    return prediction.model_copy(update={name: getattr(read, name) for name in names})


def _prediction(log: AgentLog, beyond: tuple[str, ...]) -> Prediction:
    """`beyond` are the tools called after the first call."""
    first = log.events[0] if log.events else None
    called = first is not None and first.status != "malformed"
    spoken = next((m for m in reversed(log.messages) if m.role == "assistant"), None)
    unread = first.arguments if first is not None and not first.name else ""
    raw = spoken.content if spoken is not None else (log.output or str(unread))
    read = read_reply(raw)
    thought, node, intent = read.thought, read.node, read.intent
    if not thought and read.form == "unreadable":  # text beside a call is its thought
        thought, (node, intent) = raw if called else "", thought_items(raw)
    common: dict[str, Any] = {
        "thought": thought,
        "node": node,
        "intent": intent,
        "raw": raw,
        "usage": log.usage,
        "seconds": log.seconds,
        "model": log.model,
    }
    if first is not None and called:
        calls = spoken.tool_calls if spoken is not None else ()
        further = tuple(call.name for call in calls[1:] if call.name) or beyond or read.further
        step = {"form": "call", "tool": first.name, "arguments": first.arguments}
        return Prediction(**step, further=further, **common)
    if first is not None or not log.output.strip():
        return Prediction(form="unreadable", **common)
    return Prediction(form="reply", response=log.output, **common)
