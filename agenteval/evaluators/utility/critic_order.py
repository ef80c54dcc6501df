"""The question to the critic which end of a list is the best, for lists that do not show it.

Asked once for all such criteria of a reply, without a repair: a criterion that gets no answer stays
as it was, unclear and without a mean.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from agenteval.errors import AgentevalError, ReplyError, StoreError, Unauthorized
from agenteval.models.client import Client
from agenteval.models.prompts import load_prompt
from agenteval.models.reply import parse_reply
from agenteval.models.wire import NONCE, Request
from agenteval.records import Criterion, Task, Usage

_PACKAGE = "agenteval.evaluators.utility"
_MAX_TOKENS = 2000
PROMPT = "critic_order"


@dataclass(frozen=True, slots=True)
class Ordered:
    """The criteria with the orders that the critic gave, and one line for each that was asked."""

    criteria: tuple[Criterion, ...]
    problems: tuple[str, ...]
    usage: Usage


def unclear_leaves(criteria: Sequence[Criterion]) -> list[Criterion]:
    """Criteria and parts whose levels are grades in an unknown order."""
    leaves = [leaf for criterion in criteria for _, leaf in criterion.leaves()]
    return [leaf for leaf in leaves if leaf.scale != "nominal" and leaf.order == "unclear"]


def order_request(task: Task, unclear: Sequence[Criterion], parameters: dict[str, Any]) -> Request:
    """The one request about these criteria; `parameters` are those of the critic."""
    text = load_prompt(_PACKAGE, PROMPT).render(
        nonce=NONCE, task_name=task.name, task_description=task.description, criteria=unclear
    )
    answer = {
        "type": "object",
        "properties": {
            "criterion": {"type": "integer"},
            "reason": {"type": "string"},
            "best": {"type": "string", "enum": ["first", "last", "none"]},
        },
        "required": ["criterion", "reason", "best"],
        "additionalProperties": False,
    }
    schema = {
        "type": "object",
        "properties": {"answers": {"type": "array", "items": answer}},
        "required": ["answers"],
        "additionalProperties": False,
    }
    return Request(
        messages=({"role": "user", "content": text},),
        schema=schema,
        parameters={**parameters, "max_tokens": _MAX_TOKENS},
        repeat=int(parameters.get("seed", 0)),
        role="critic:order",
        run_id=task.name,
    )


async def ask_orders(client: Client, request: Request, criteria: Sequence[Criterion]) -> Ordered:
    """The criteria as the critic orders them; `request` is that about their unclear leaves.

    Raises Unauthorized, and StoreError of a recording that cannot be kept; whatever else goes
    wrong leaves the criteria unclear and is told.
    """
    unclear = unclear_leaves(criteria)
    usage = Usage()
    try:
        reply = await client.complete(request)
        usage = Usage() if reply.cached else reply.usage
        if reply.refusal or reply.finish == "content_filter":
            raise ReplyError("the critic refused")
        best = read_orders(reply.text, len(unclear))
    except (Unauthorized, StoreError):
        raise
    except AgentevalError as error:
        usage += error.spent or Usage()
        best, why = {}, str(error)
    else:
        why = "the critic did not say"
    answers = {id(leaf): best.get(number) for number, leaf in enumerate(unclear, start=1)}
    problems = [
        f"{leaf.name}: order asked of the critic: {_said(leaf, answers[id(leaf)], why)}"
        for leaf in unclear
    ]
    ordered = tuple(_ordered(criterion, answers) for criterion in criteria)
    return Ordered(ordered, tuple(problems), usage)


def read_orders(text: str, count: int) -> dict[int, str]:
    """ "first", "last" or "none" by number of the criterion; contradictions are no answer.

    Raises ReplyError when there is none at all.
    """
    value = parse_reply(text).value
    entries = value.get("answers", value) if isinstance(value, dict) else value
    if isinstance(entries, dict):  # {"1": "first"} or {"1": {"best": "first"}}
        entries = [
            {**(own if isinstance(own, dict) else {"best": own}), "criterion": number}
            for number, own in entries.items()
        ]
    found: dict[int, set[str]] = {}
    for entry in entries if isinstance(entries, list) else ():
        if not isinstance(entry, dict):
            continue
        number = re.fullmatch(
            r"(?:criterion )?(\d{1,3})", str(entry.get("criterion")).strip().lower()
        )
        best = str(entry.get("best")).strip().lower()
        if number and best in ("first", "last", "none"):
            found.setdefault(int(number[1]), set()).add(best)
    answers = {n: own.pop() for n, own in found.items() if len(own) == 1 and 1 <= n <= count}
    if not answers:
        raise ReplyError("the reply names no order")
    return answers


def _said(leaf: Criterion, best: str | None, why: str) -> str:
    if best is None:
        return f"{why}; it stays unclear and has no mean"
    if best == "none":
        return "its values are no grades in this order; it is counted and has no mean"
    return f"the {best} value is the best"


def _ordered(criterion: Criterion, answers: dict[int, str | None]) -> Criterion:
    """The criterion, or its parts, with the order that was answered."""
    if criterion.sub_criteria:
        parts = tuple(_ordered(part, answers) for part in criterion.sub_criteria)
        return criterion.model_copy(update={"sub_criteria": parts})
    best = answers.get(id(criterion))
    if best is None:
        return criterion
    reason = f"asked the critic: {'no end' if best == 'none' else 'the ' + best} is the best"
    if best == "none":
        changes: dict[str, Any] = {"scale": "nominal"} if criterion.accepted_values else {}
        return criterion.model_copy(update={**changes, "order_reason": reason})
    turn = -1 if best == "first" else 1
    bounds = criterion.numeric_range
    return criterion.model_copy(
        update={
            "accepted_values": criterion.accepted_values[::turn],
            "numeric_range": None if bounds is None else bounds[::turn],
            "order": "worst_to_best", "order_confirmed": True, "order_reason": reason,
        }
    )  # fmt: skip
