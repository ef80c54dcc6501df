"""When to stop asking an endpoint that does not answer, and which of many errors to show."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from dataclasses import dataclass
from typing import Any

from agenteval.errors import StoreError, Unauthorized

AT_FIRST = 8  # calls that fail in a row before anything has worked: it never will
LATER = 32  # the same after successes: more than a short outage with many calls in flight


@dataclass(slots=True)
class Breaker:
    """Counts failures in a row; `stopped` is the reason to stop, None as long as there is none."""

    what: str = "call"
    stopped: str | None = None
    in_a_row: int = 0
    answered: bool = False
    last: str = ""

    def note(self, failure: str | None) -> None:
        """One more call ended: with this failure of the infrastructure, or with none."""
        self.in_a_row = 0 if failure is None else self.in_a_row + 1
        self.answered = self.answered or failure is None
        self.last = failure or ""
        limit = LATER if self.answered else AT_FIRST
        if self.in_a_row >= limit and self.stopped is None:
            self.stopped = f"{limit} {self.what}s in a row failed: {self.last}"

    def nothing_worked(self) -> str | None:
        """The reason when every call failed for the infrastructure; None when one did not."""
        if self.answered or not self.in_a_row:
            return None
        return f"every {self.what} failed: {self.last}"


async def run_workers(work: Callable[[], Coroutine[Any, Any, None]], count: int) -> None:
    """Run `count` workers at once until all have ended.

    When one raises, the others are cancelled and one exception is raised (see `first_error`).
    """
    try:
        async with asyncio.TaskGroup() as group:
            for _ in range(count):
                group.create_task(work())
    except BaseExceptionGroup as many:
        raise first_error(many) from None


def first_error(many: BaseExceptionGroup[BaseException]) -> BaseException:
    """One exception to show: a refused key or a full disk says it all, else the first."""
    errors = list(_leaves(many))
    for kind in (Unauthorized, StoreError):
        for error in errors:
            if isinstance(error, kind):
                return error
    return errors[0]


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for inner in error.exceptions:
            yield from _leaves(inner)
    else:
        yield error
