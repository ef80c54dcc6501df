"""A bare list of OpenAI messages. (`{"messages": [...]}` is a generic record.)"""

from __future__ import annotations

from typing import Any

from agenteval.readers.draft import Context, Draft
from agenteval.readers.formats import native
from agenteval.readers.messages import is_message_list


def matches(value: Any) -> bool:
    """Whether `value` is a list of messages with known roles."""
    return is_message_list(value)


def to_draft(value: Any, context: Context) -> Draft:
    """Input from the first user message, output from the last assistant message with text."""
    return native.to_draft({"messages": value}, context)
