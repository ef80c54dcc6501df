"""Dry runs: inside `nothing_sent()` clients of this package record requests instead of sending
them. The code is that of a real run. Replies that are stored are answered from the store.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field

from agenteval.errors import BudgetExceeded
from agenteval.models.wire import Request


class WouldSend(BudgetExceeded):
    """A dry run reached a request whose reply is not stored. As at the end of a budget, it is not
    tried again."""


@dataclass(frozen=True, slots=True)
class UnsentRequest:
    """A request that a dry run did not send: its key, its size in bytes, the tokens of its prompt
    (estimated) and of the longest reply it allows, and the model and address it would go to."""

    request: Request
    key: str
    prompt: int
    reply: int
    size: int
    where: str = ""


@dataclass(slots=True)
class DryRun:
    """The requests that were not sent, and how many were answered from the store."""

    drafts: list[UnsentRequest] = field(default_factory=list)
    answered: int = 0


dry_run: ContextVar[DryRun | None] = ContextVar("dry_run", default=None)


@contextmanager
def nothing_sent() -> Iterator[DryRun]:
    """Collect the requests that would be sent within the block."""
    collected = DryRun()
    token = dry_run.set(collected)
    try:
        yield collected
    finally:
        dry_run.reset(token)


def is_dry_run() -> bool:
    """Return whether this code runs within `nothing_sent()`: nothing may be stored either."""
    return dry_run.get() is not None
