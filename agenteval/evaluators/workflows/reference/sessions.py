"""Session level as the published script counts (session_simulate.py, session_eval).

Every gold action is right when any generated one equals it: one call may serve many, and precision
may exceed 1. No action at all counts as one empty action. Nested JSON reads as {}.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agenteval.evaluators.workflows.reference.values import (
    Asked,
    Judge,
    same_type,
    texts_equal,
    without_empty,
)

_ACTIONS = re.compile(r"(Action: [^\n]+)\n(Action Input: [\s\S]+?)(?=\n\n|\nAction: |\Z)")
_NAME = re.compile(r"Action: (?:functions\.)?(\w+)")
# The published pattern recurses as a whole, label included: only flat braces ever match it.
_FLAT = re.compile(r"Action Input: (\{[^{}]*\})")


@dataclass(frozen=True, slots=True)
class ReferenceCounts:
    """Gold actions that were matched, gold actions, generated ones."""

    right: int
    gold: int
    generated: int


async def score_session(
    gold_actions: str, dialogue: str, judge: Judge, *, published: bool = False
) -> ReferenceCounts:
    """The counts of one session from its two texts.

    With `published` the names `string` and `llm` are unbound, as in the released file: a gold
    action that holds a text is never right.
    """
    gold = gold_actions.split("\n\n")
    generated = "\n\n".join("\n".join(found) for found in _ACTIONS.findall(dialogue)).split("\n\n")
    right = 0
    for action in gold:
        for other in generated:
            if await equal_actions(action, other, judge, published=published):
                right += 1
                break
    return ReferenceCounts(right, len(gold), len(generated))


async def equal_actions(gold: str, other: str, judge: Judge, *, published: bool = False) -> bool:
    """Whether two texts are the same call. Names go without case, as do the inputs; any error in
    reading them is a no."""
    if _name(gold) != _name(other):
        return False
    try:
        wanted, given = _input(gold), _input(other)
    except (ValueError, AttributeError):
        return False
    for key, value in wanted.items():
        if key not in given or not same_type(value, given[key]):
            return False
        if not await _equal(key, value, given[key], judge, published=published):
            return False
    return True


def micro(sessions: Sequence[ReferenceCounts]) -> tuple[float | None, float | None]:
    """Precision and recall over sessions: sum right / sum generated, sum right / sum gold."""
    right = sum(one.right for one in sessions)
    generated = sum(one.generated for one in sessions)
    gold = sum(one.gold for one in sessions)
    return (right / generated if generated else None), (right / gold if gold else None)


async def _equal(key: str, gold: Any, given: Any, judge: Judge, *, published: bool) -> bool:
    if not isinstance(gold, str):
        return bool(gold == given)
    if published:
        return False  # a NameError, swallowed
    return await texts_equal(Asked("", key, gold, given), judge)


def _name(action: str) -> str:
    found = _NAME.search(action)
    return found.group(1).lower() if found else ""


def _input(action: str) -> dict[str, Any]:
    found = _FLAT.search(action)
    return without_empty(json.loads(found.group(1).lower())) if found else {}
