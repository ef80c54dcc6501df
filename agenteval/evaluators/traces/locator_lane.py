"""One question asked of every part of a trace, once: a lane. Parts that fail are recorded."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from agenteval.errors import TooLong, Unauthorized
from agenteval.evaluators.base import classify
from agenteval.evaluators.traces.locator_merge import Failed, Reading
from agenteval.evaluators.traces.locator_prompt import Asking, Carry, Question
from agenteval.evaluators.traces.locator_reply import (
    Grounds,
    Meter,
    Named,
    Spoken,
    ask,
    check,
    kept,
    read_reply,
)
from agenteval.evaluators.traces.locator_rows import Row, Slice, refit, rows_of, shorten
from agenteval.models.prompts import neutralise
from agenteval.models.wire import Request
from agenteval.records import Rejected

T = TypeVar("T")
_SMALLEST = 8  # a refused part may shrink to this share of the first room, not further,
_LEAST = 150  # and not below so many tokens
_LINE = 160  # characters of one error among those found already
_NOT_THE_REPLY = ("error:", "unscored:too_long")  # failures that the next part would share


@dataclass(slots=True)
class _Progress:
    """What a lane knows as it goes."""

    room: int  # halved when an endpoint says that a prompt was too long
    carry: Carry = Carry()  # noqa: RUF009  frozen
    in_a_row: int = 0
    stopped: Failed | None = None


class Lane:
    """Reads the rows of one question for one repeat.

    With a summary one after the other, else many at a time. A part that an endpoint calls too
    long is halved, and so are all that follow; after `give_up` failures in a row that are not
    about the reply, the rest is not asked.
    """

    def __init__(
        self,
        asking: Asking,
        question: Question,
        repeat: int,
        meter: Meter,
        flat_text: Callable[[str], str | None],
    ) -> None:
        self._asking = asking
        self._options = asking.options
        self._question = question
        self._repeat = repeat
        self._meter = meter
        self._flat_text = flat_text
        self._asked = {leaf.name: leaf for leaf in question.leaves}
        self._now = _Progress(question.room)
        self._readings: list[Reading] = []

    @property
    def notes(self) -> str:
        """The summary after the last part that was read."""
        return self._now.carry.notes

    async def read(self, rows: Sequence[Row]) -> list[Reading]:
        """A Reading for each part, failed ones as well. Raises Unauthorized."""
        if self._options.summary:
            for row in rows:
                await self._part(row)
        else:
            waiting = iter(rows)
            most = min(len(rows), self._meter.client.limiter.maximum)
            await together([self._worker(waiting) for _ in range(most)])
        return self._readings

    async def _worker(self, rows: Iterator[Row]) -> None:
        for row in rows:  # the workers share the iterator
            await self._part(row)

    async def _part(self, row: Row) -> None:
        """Read one part, in smaller ones where it does not fit."""
        if self._now.stopped is not None:
            self._note(row, self._now.stopped)
            return
        parts = self._fitted(row)
        if parts != [row]:
            for part in parts:
                await self._part(part)
            return
        request = self._asking.part(self._question, row, self._now.carry, self._repeat)
        try:
            await self._ask(row, request)
        except Unauthorized:
            raise
        except TooLong as error:
            smaller = row.tokens // 2
            if smaller < max(self._question.room // _SMALLEST, _LEAST):
                self._failed(row, error)
                return
            self._now.room = min(self._now.room, smaller)
            await self._part(row)
        except Exception as error:  # noqa: BLE001  becomes the record of this part
            self._failed(row, error)

    def _fitted(self, row: Row) -> list[Row]:
        """The row, or smaller ones where the room has shrunk since it was made."""
        if row.tokens <= self._now.room:
            return [row]
        slices: list[Slice] = [part for one in row.new for part in refit(one, self._now.room)]
        return list(rows_of(slices, self._now.room, 0))

    async def _ask(self, row: Row, request: Request) -> None:
        def repair(problem: str, text: str) -> Request:
            return self._asking.repair(request, problem, text)

        answer = await ask(
            self._meter, request, read_reply, repair if self._options.repair else None
        )
        self._now.in_a_row = 0
        grounds = Grounds(
            shown=frozenset(one.index for one in row.slices),
            asked=self._asked,
            taxonomy=self._asking.taxonomy,
            flat_text=self._flat_text,
            unverified=self._options.unverified,
        )
        checked = [check(item, grounds) for item in answer.value.items]
        named = tuple(one for one in checked if isinstance(one, Named))
        rejected = [one for one in checked if isinstance(one, Rejected)]
        if answer.gap is not None:
            rejected.insert(0, Rejected(why=f"{self._where(row)} judged in part: {answer.gap}"))
        reading = self._reading(row, named, tuple(rejected))
        self._readings.append(replace(reading, gap=answer.gap, said=len(checked)))
        self._remember(answer.value, named)

    def _reading(
        self,
        row: Row,
        named: tuple[Named, ...] = (),
        rejected: tuple[Rejected, ...] = (),
        failed: Failed | None = None,
    ) -> Reading:
        return Reading(
            part=row.name,
            area=self._question.area,
            repeat=self._repeat,
            shown=frozenset(one.index for one in row.slices),
            named=named,
            rejected=rejected,
            failed=failed,
        )

    def _failed(self, row: Row, error: Exception) -> None:
        status, message = classify(error)
        self._note(row, Failed(status, message), getattr(error, "raw", None))
        if not status.startswith(_NOT_THE_REPLY):
            self._now.in_a_row = 0
            return
        self._now.in_a_row += 1
        if self._now.in_a_row >= self._options.give_up:
            reason = f"not asked: {self._now.in_a_row} parts in a row failed: {message}"
            self._now.stopped = Failed(status, reason[:300])

    def _note(self, row: Row, failed: Failed, raw: str | None = None) -> None:
        """Record that a part was not judged, here and for the reader of the next part."""
        why = f"{self._where(row)} not judged: {failed.status}: {failed.message[:300]}"
        said = kept(raw) if raw else None
        self._readings.append(
            self._reading(row, rejected=(Rejected(why=why, said=said),), failed=failed)
        )
        if self._options.summary:
            carry = self._now.carry
            notes = self._bounded(f"{carry.notes}\n({row.name} could not be read.)".strip())
            self._now.carry = Carry(notes, carry.found)

    def _where(self, row: Row) -> str:
        asked = f" ({self._question.area})" if self._question.area else ""
        again = f" in repeat {self._repeat + 1}" if self._options.repeats > 1 else ""
        return f"{row.name}{asked}{again}"

    def _remember(self, spoken: Spoken, named: Sequence[Named]) -> None:
        if not self._options.summary:
            return
        carry = self._now.carry
        lines = [
            f"{one.index} {one.category}: {' '.join(one.description.split())}"[:_LINE]
            for one in named
        ]
        found = self._bounded("\n".join([*carry.found.splitlines(), *lines]), last=True)
        notes = self._bounded(spoken.summary) if spoken.summary else carry.notes
        self._now.carry = Carry(notes, found)

    def _bounded(self, text: str, *, last: bool = False) -> str:
        """Within the tokens of a summary; with `last` whole lines from the end."""
        text, most = neutralise(text), self._options.summary_tokens
        if not last:
            return shorten(text, most)
        lines = text.splitlines()
        while lines and len("\n".join(lines).encode("utf-8", "replace")) > 3 * most:
            lines.pop(0)
        return "\n".join(lines)


async def together(work: Sequence[Coroutine[Any, Any, T]]) -> list[T]:
    """The results of all, in their order; when one raises, the others are cancelled first."""
    tasks = [asyncio.create_task(one) for one in work]
    try:
        return list(await asyncio.gather(*tasks))
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
