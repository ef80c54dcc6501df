"""One question to the judge of a trace, with one repair round, and what all questions took."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Generic, TypeVar

from agenteval.errors import AgentevalError, BadRequest, Filtered, ReplyError
from agenteval.models.client import Client
from agenteval.models.wire import Reply, Request
from agenteval.records import Usage

T = TypeVar("T")


class Unreadable(ReplyError):
    """Neither the reply nor its repair could be read. `raw` is the last text."""

    def __init__(self, message: str, raw: str) -> None:
        super().__init__(message)
        self.raw = raw


class Meter:
    """A client whose requests are counted. `calls` counts questions, cached ones as well;
    `usage` what was sent and paid for."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.calls = 0
        self.usage = Usage()

    async def complete(self, request: Request) -> Reply:
        """The client's reply. Raises what it raises, and Filtered for a refusal."""
        self.calls += 1
        try:
            reply = await self.client.complete(request)
        except AgentevalError as error:
            self.usage += error.spent or Usage()
            raise
        self.usage += Usage() if reply.cached else reply.usage
        if reply.refusal or reply.finish == "content_filter":
            raise Filtered(reply.refusal or "withheld by the endpoint's content filter")
        return reply


@dataclass(frozen=True, slots=True)
class Read(Generic[T]):
    """A reply that was understood. `gap` says what is missing of it, None for a whole one."""

    value: T
    gap: str | None = None


async def ask(
    meter: Meter,
    request: Request,
    read: Callable[[str], Read[T]],
    repair: Callable[[str, str], Request] | None,
) -> Read[T]:
    """What the reply says, or its repair where the reply is unreadable or has a gap.

    `repair(problem, text)` makes the second request. A first reply with a gap stands when its
    repair is no better. Raises Unreadable, Filtered, and what the client raises; a repair that an
    endpoint refuses to take (a full context, a recording) counts as not tried.
    """
    first = await meter.complete(request)
    kept, problem, raw = _attempt(first, read)
    if repair is None or (kept is not None and kept.gap is None):
        return _settled(kept, problem, raw)
    again = replace(repair(problem, first.text), role=f"{request.role}:repair")
    try:
        second = await meter.complete(again)
    except BadRequest:
        return _settled(kept, problem, raw)
    except AgentevalError:
        if kept is not None:  # what could be read is not lost with its repair
            return kept
        raise
    better, problem, raw = _attempt(second, read)
    if better is not None and (kept is None or better.gap is None):
        return better
    return _settled(kept, problem, raw)


def _attempt(reply: Reply, read: Callable[[str], Read[T]]) -> tuple[Read[T] | None, str, str]:
    cut = " (cut off by the length limit)" if reply.finish == "length" else ""
    try:
        value = read(reply.text)
    except ReplyError as error:
        return None, f"{error}{cut}", reply.text
    return value, f"{value.gap}{cut}" if value.gap else "", reply.text


def _settled(kept: Read[T] | None, problem: str, raw: str) -> Read[T]:
    if kept is None:
        raise Unreadable(problem, raw)
    return kept
