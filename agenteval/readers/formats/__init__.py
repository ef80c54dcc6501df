"""The table of formats: a new one is a module with `matches` and `to_draft`, and one line here."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from agenteval.readers.draft import Context, Draft
from agenteval.readers.formats import agentchat, autogen_log, native, openai_messages


@dataclass(frozen=True)
class Format:
    """One form of a run. `matches` is tried in the order of the table and never raises."""

    name: str
    matches: Callable[[Any], bool]
    to_draft: Callable[[Any, Context], Draft]


FORMATS: tuple[Format, ...] = (
    Format("AutoGen AgentChat TaskResult", agentchat.matches, agentchat.to_draft),
    Format("AutoGen 0.2 result log", autogen_log.matches, autogen_log.to_draft),
    Format("OpenAI message list", openai_messages.matches, openai_messages.to_draft),
    Format("native or generic record", native.matches, native.to_draft),
)


def recognise(value: Any) -> Format | None:
    """The first format that matches; None when there is none."""
    return next((f for f in FORMATS if f.matches(value)), None)
