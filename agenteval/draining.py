"""What an interrupt does to work that is paid for: the first begins nothing more and lets what is
under way come to its end, a second one ends it as it is.

An interrupt arrives as the cancellation of the task that waits here (`asyncio.run` makes Ctrl-C
one); at the second `asyncio.run` cancels everything.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

from agenteval.text import plural

if TYPE_CHECKING:
    from agenteval.models.client import Client

_T = TypeVar("_T")
LONGEST = 30.0  # seconds that trials under way get to end


async def drained(
    work: Coroutine[Any, Any, _T],
    wind_down: Callable[[], None],
    *,
    seconds: float | None = None,
    late: Callable[[], None] = lambda: None,
) -> _T:
    """What `work` returns.

    When this task is cancelled, `wind_down` is called, which has to see to it that `work` begins
    nothing more; `work` is waited for, and CancelledError raised, or what it raises. After
    `seconds` (None: no bound) `late` is called and `work` cancelled where it stands; when this task
    is cancelled again, at once.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if task.done():  # it was not this task that was cancelled, or both came at once
            _raise_failure(task)
            raise
        wind_down()
        await _waited(task, seconds, late)
        raise


async def _waited(
    task: asyncio.Future[Any], seconds: float | None, late: Callable[[], None]
) -> None:
    try:
        await asyncio.wait({task}, timeout=seconds)
        if not task.done():
            late()
    finally:  # also at a second cancellation
        if not task.done():
            task.cancel()
            await asyncio.wait({task})
    await task


async def answered(
    work: Coroutine[Any, Any, _T], client: Client, on_cancel: Callable[[], None]
) -> _T:
    """What `work` returns, of which nothing is kept but the replies that it has `client` ask for.

    When this task is cancelled, nothing more is asked; if requests are under way, `on_cancel` is
    called, and their replies go into the client's cache before `work` is cancelled where it stands
    and CancelledError raised.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        if task.done():
            _raise_failure(task)
            raise
        if client.under_way:
            on_cancel()
        try:
            await client.hold()
        finally:  # also at a second cancellation
            task.cancel()
            await asyncio.wait({task})
        _raise_failure(task)  # such as a store that has not kept the replies
        raise


def _raise_failure(task: asyncio.Future[Any]) -> None:
    if not task.cancelled() and (error := task.exception()) is not None:
        raise error


@dataclass(frozen=True, slots=True)
class Drain:
    """How trials end that are interrupted: those under way get so many `seconds`.

    `told` gets a sentence when the wait begins and when it was too short. What is cancelled then
    is not stored, as if it had never been begun; the replies of clients that have a cache are.
    """

    seconds: float = LONGEST
    told: Callable[[str], None] = lambda _: None

    async def over(
        self,
        work: Coroutine[Any, Any, _T],
        stop: Callable[[], None],
        under_way: Callable[[], int],
        what: str,
    ) -> _T:
        """What `work` returns; see `drained`. `under_way` counts what was begun and is not kept
        yet, each called `what`; `stop` has to see to it that no other is begun."""

        def begin() -> None:
            stop()
            if count := under_way():
                self.told(
                    f"interrupted: finishing {plural(count, what)} under way, for at most "
                    f"{self.seconds:g} s; once more ends it at once"
                )

        def late() -> None:
            self.told(f"{plural(under_way(), what)} broken off: not stored, to be run again")

        return await drained(work, begin, seconds=self.seconds, late=late)


USUAL = Drain()
