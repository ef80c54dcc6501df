"""Ask a model for a parseable reply, with one repair request."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from agenteval.errors import AgentevalError, BadRequest, Filtered, ReplyError
from agenteval.models.prompts import neutralise
from agenteval.models.wire import Reply, Request
from agenteval.records import Usage

T = TypeVar("T")
MOST_REQUESTS = 2  # per question: one, and one to repair an unreadable reply
_SHOWN = 8000  # characters of a reply that are shown back to the model


@dataclass(frozen=True, slots=True)
class ParsedReply(Generic[T]):
    """The parsed value, the text it came from, and the usage. Cached replies cost nothing."""

    value: T
    text: str
    usage: Usage
    repaired: bool


class Asks(Protocol):
    """A client, or anything that wraps one."""

    async def complete(self, request: Request) -> Reply: ...


async def ask(
    client: Asks,
    request: Request,
    read: Callable[[str], T],
    repair: Callable[[str], str],
    show: Callable[[str], str] = lambda text: neutralise(text[:_SHOWN]),
) -> ParsedReply[T]:
    """Return what `read` parses from the reply, or from the reply to the one repair request.

    `repair` turns the problem with the first answer into a second question, and `show` selects what
    is repeated of that answer. Raises ReplyError when neither reply is parseable, Filtered when a
    reply was refused or filtered, and what the client raises; `spent` is the usage of both
    requests.
    """
    first = _usable(await client.complete(request))
    try:
        return ParsedReply(_read(first, read), first.text, _cost(first), repaired=False)
    except ReplyError as error:
        if first.says_nothing:  # there is nothing to repair
            raise
        problem = error
    repair_request = replace(
        request,
        messages=(
            *request.messages,
            {"role": "assistant", "content": show(first.text) or "(empty)"},
            {"role": "user", "content": repair(str(problem))},
        ),
        role=f"{request.role}:repair",
    )
    try:
        second = _usable(await client.complete(repair_request))
        return ParsedReply(
            _read(second, read), second.text, _cost(first) + _cost(second), repaired=True
        )
    except BadRequest as refused:  # no repair can be asked for here: a recording, a full context
        problem.spent = _cost(first) + (refused.spent or Usage())
        raise problem from None
    except AgentevalError as error:
        error.spent = _cost(first) + (error.spent or Usage())
        raise


def _usable(reply: Reply) -> Reply:
    if reply.refusal or reply.finish == "content_filter":
        withheld = Filtered(reply.refusal or "withheld by the endpoint's content filter")
        withheld.spent = _cost(reply)
        raise withheld
    return reply


def _read(reply: Reply, read: Callable[[str], T]) -> T:
    try:
        return read(reply.text)
    except ReplyError as error:
        if reply.finish == "length":
            cut = ReplyError(f"{error} (cut off by the length limit)")
            cut.spent = _cost(reply)
            raise cut from error
        error.spent = _cost(reply)
        raise


def _cost(reply: Reply) -> Usage:
    return Usage() if reply.cached else reply.usage
