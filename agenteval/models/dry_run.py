"""Dry runs: inside `nothing_sent()` no client of this package sends a request; it is noted instead.

The code that asks is the code of the real run. Replies that are stored are answered from the store.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

from agenteval.errors import BudgetExceeded
from agenteval.models.wire import Request


class WouldSend(BudgetExceeded):
    """A dry run reached a request whose reply is not stored. As at the end of a budget, it is not
    tried again."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A request that a dry run did not send: its key, its size in bytes, the tokens of its prompt
    (estimated) and of the longest reply it allows, and the model and address it would go to."""

    request: Request
    key: str
    prompt: int
    reply: int
    size: int
    where: str = ""

    @property
    def is_repair(self) -> bool:
        """Whether it asks again because a stored reply was malformed."""
        return self.request.role.endswith(":repair")


drafts: ContextVar[list[Draft] | None] = ContextVar("drafts", default=None)


@contextmanager
def nothing_sent() -> Iterator[list[Draft]]:
    """Collect the requests that would be sent within the block."""
    collected: list[Draft] = []
    token = drafts.set(collected)
    try:
        yield collected
    finally:
        drafts.reset(token)


def is_dry_run() -> bool:
    """Return whether this code runs within `nothing_sent()`: nothing may be stored either."""
    return drafts.get() is not None
