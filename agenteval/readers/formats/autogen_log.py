"""Result logs of AutoGen 0.2: `problem`, `messages`, `is_correct`, `correct_ans`, `solution`, ...

Input is the problem, reference the short `correct_ans`, success `is_correct`. The worked
`solution`, `check_result`, `response_with_ans` and everything else go to the metadata. The output
is the last assistant-side text that is more than the stop word TERMINATE.

An agent logs a conversation from its own side: its own turns are `assistant`, its partner's are
`user`. In a log of the user proxy the problem therefore stands in an `assistant` turn. When the
first message is an assistant's and says the problem, user and assistant are exchanged, and the
metadata says so (`roles_exchanged`).
"""

from __future__ import annotations

from typing import Any

from agenteval.readers.draft import Context, Draft
from agenteval.readers.formats import native
from agenteval.readers.messages import is_message_list

_MARKS = frozenset({"is_correct", "correct_ans", "check_result", "response_with_ans"})
_OTHER_SIDE = {"user": "assistant", "assistant": "user"}


def matches(value: Any) -> bool:
    """Whether `value` has a problem, messages and one of the fields that only these logs have."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("problem"), str)
        and is_message_list(value.get("messages"))
        and not _MARKS.isdisjoint(value)
    )


def to_draft(value: Any, context: Context) -> Draft:
    """See the module. The id is left to the place: `problem_id` repeats from folder to folder."""
    record = dict(value)
    kept = {key: record.pop(key) for key in ("problem_id", "response_with_ans") if key in record}
    if exchanged := _inverted(record):
        record["messages"] = [_exchange(m) for m in record["messages"]]
    draft = native.to_draft(record, context)
    for key, item in kept.items():
        draft.keep(key, item)
    if exchanged:
        draft.keep("roles_exchanged", True)
    return draft


def _inverted(record: dict[str, Any]) -> bool:
    first = record["messages"][0]
    content = first.get("content")
    problem = record["problem"].strip()
    return (
        first.get("role") == "assistant"
        and isinstance(content, str)
        and bool(problem)
        and problem in content
    )


def _exchange(message: dict[str, Any]) -> dict[str, Any]:
    role = message.get("role")
    other = _OTHER_SIDE.get(role) if isinstance(role, str) else None
    return {**message, "role": other} if other else message
