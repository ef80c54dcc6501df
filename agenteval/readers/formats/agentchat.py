"""Dumps of AutoGen AgentChat's `TaskResult`: `{"messages": [...], "stop_reason": ...}`."""

from __future__ import annotations

from typing import Any

from agenteval.readers.draft import Context, Draft
from agenteval.readers.events import is_event_list
from agenteval.readers.formats import native


def matches(value: Any) -> bool:
    """Whether `value` is a TaskResult, perhaps with fields of a record around it, or its list."""
    return is_event_list(value) or (
        isinstance(value, dict) and is_event_list(value.get("messages"))
    )


def to_draft(value: Any, context: Context) -> Draft:
    """A generic record whose messages are AgentChat's: see `events`."""
    return native.to_draft({"messages": value} if isinstance(value, list) else value, context)
