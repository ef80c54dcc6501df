"""Result logs of AutoGen 0.2: `problem`, `messages`, `is_correct`, `correct_ans`, `solution`, ...

Input is the problem, reference the short `correct_ans`, success `is_correct`. The worked
`solution`, `check_result` and everything else go to the metadata. The output is the last
assistant-side text that is more than the stop word TERMINATE; in logs without messages, of a single
call or of a ReAct agent, it is `response_with_ans`. The actions and observations of the latter
(`intermediate_steps`) become messages.

An agent logs a conversation from its own side: its own turns are `assistant`, its partner's are
`user`. In a log of the user proxy the problem therefore stands in an `assistant` turn. When the
first message is an assistant's and says the problem, user and assistant are exchanged, and the
metadata says so (`roles_exchanged`).
"""

from __future__ import annotations

from typing import Any

from agenteval.readers.draft import Context, Draft
from agenteval.readers.fields import plain_text
from agenteval.readers.formats import native
from agenteval.readers.messages import is_message_list

_MARKS = frozenset({"is_correct", "correct_ans", "check_result", "response_with_ans"})
_OTHER_SIDE = {"user": "assistant", "assistant": "user"}


def matches(value: Any) -> bool:
    """Whether `value` has a problem, messages or a reply, and a field that only these logs have."""
    return (
        isinstance(value, dict)
        and isinstance(value.get("problem"), str)
        and not _MARKS.isdisjoint(value)
        and (
            is_message_list(value.get("messages"))
            or (not value.get("messages") and isinstance(value.get("response_with_ans"), str))
        )
    )


def to_draft(value: Any, context: Context) -> Draft:
    """See the module. The id is left to the place: `problem_id` repeats from folder to folder."""
    record = dict(value)
    talked = bool(record.get("messages"))
    aside = ("problem_id", "response_with_ans") if talked else ("problem_id",)
    kept = {key: record.pop(key) for key in aside if key in record}
    exchanged = talked and _inverted(record)
    if exchanged:
        record["messages"] = [_exchange(m) for m in record["messages"]]
    elif not talked and (steps := _steps(record.get("intermediate_steps"))):
        record["messages"] = steps
        del record["intermediate_steps"]
    draft = native.to_draft(record, context)
    for key, item in kept.items():
        draft.keep(key, item)
    if exchanged:
        draft.keep("roles_exchanged", True)
    return draft


def _steps(value: Any) -> list[dict[str, str]]:
    """Messages of a list of [action, observation]; none where it has another form."""
    pairs = value if isinstance(value, list) else []
    if not all(isinstance(pair, list) and len(pair) == 2 for pair in pairs):
        return []
    messages = []
    for action, observation in pairs:
        said = action["log"] if isinstance(action, dict) and "log" in action else action
        messages.append({"role": "assistant", "content": plain_text(said)})
        messages.append({"role": "tool", "content": plain_text(observation)})
    return messages


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
