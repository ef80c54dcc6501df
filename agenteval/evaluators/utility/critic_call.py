"""One question to a critic, with one repair round when the reply is not in form."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

from agenteval.errors import BadRequest, Filtered, ReplyError
from agenteval.evaluators.utility.critic_reply import CriticReading
from agenteval.models.client import Client
from agenteval.models.prompts import Prompt
from agenteval.models.wire import Reply, Request
from agenteval.records import Criterion, Provenance, Usage


@dataclass(frozen=True, slots=True)
class Asked:
    """What was read, from which text, and what it took. Cached replies cost nothing."""

    reading: CriticReading
    raw: str
    usage: Usage


async def ask(
    client: Client, request: Request, read: Callable[[str], CriticReading], repair: Prompt
) -> Asked:
    """The reading of the reply, or of the one repair.

    Raises ReplyError when neither can be read, Filtered when the reply was refused or withheld,
    and whatever the client raises for the first request.
    """
    first = _usable(await client.complete(request))
    try:
        return Asked(_read(first, read), first.text, _cost(first))
    except ReplyError as error:
        problem = error
    again = replace(
        request,
        messages=(
            *request.messages,
            {"role": "assistant", "content": first.text[:8000] or "(empty)"},
            {"role": "user", "content": repair.render(problem=str(problem), key="criteria")},
        ),
        role=f"{request.role}:repair",
    )
    try:
        second = _usable(await client.complete(again))
    except BadRequest:  # the repair cannot be asked for here: a recording, a full context
        raise problem from None
    reading = _read(second, read)
    reading.rung = f"repair:{reading.rung}"
    return Asked(reading, second.text, _cost(first) + _cost(second))


def _usable(reply: Reply) -> Reply:
    if reply.refusal or reply.finish == "content_filter":
        raise Filtered(reply.refusal or "withheld by the endpoint's content filter")
    return reply


def _read(reply: Reply, read: Callable[[str], CriticReading]) -> CriticReading:
    try:
        return read(reply.text)
    except ReplyError as error:
        if reply.finish == "length":
            raise ReplyError(f"{error} (cut off by the length limit)") from error
        raise


def _cost(reply: Reply) -> Usage:
    return Usage() if reply.cached else reply.usage


def signed(criterion: Criterion, provenance: Provenance) -> Criterion:
    """The criterion and its parts with this provenance."""
    parts = tuple(signed(part, provenance) for part in criterion.sub_criteria)
    return criterion.model_copy(update={"provenance": provenance, "sub_criteria": parts})
