"""Read the parts of a trace, one after the other, for one question to the judge."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from agenteval.engine.judging import classify
from agenteval.errors import TooLong, Unauthorized
from agenteval.models.client import Client
from agenteval.models.prompts import neutralise
from agenteval.records import FailureStatus, Rejected, Usage
from agenteval.traces.locator_merge import PartReading
from agenteval.traces.locator_prompt import (
    SUMMARY,
    LocatorQuestion,
    PromptBuilder,
    RunningNotes,
    repair_text,
    shown_again,
)
from agenteval.traces.locator_quotes import Quotes
from agenteval.traces.locator_reply import CheckedFinding, abridged, ask, check, read_reply
from agenteval.traces.locator_text import SliceRow, refit, rows_of, shorten

_GIVE_UP = 3  # parts that fail in a row, for other reasons than their reply
# A part is halved down to this share of the room, and to so many tokens
_MIN_SHARE, _MIN_TOKENS = 8, 150
_ERROR_LINE = 160  # characters


class PartReader:
    """Reads the parts for one question and repeat.

    If an endpoint calls a part too long, it and all later parts are halved. After some failures in
    a row that are not about the reply, the remaining parts are not asked. `notes` is the state
    after the last part, `usage` what was paid for.
    """

    def __init__(
        self,
        client: Client,
        prompts: PromptBuilder,
        question: LocatorQuestion,
        quotes: Quotes,
        repeat: int = 0,
        attempt: int = 0,
    ) -> None:
        self.question = question
        self.repeat = repeat
        self.readings: list[PartReading] = []
        self.notes = RunningNotes()
        self.usage = Usage()
        self._client = client
        self._prompts = prompts
        self._quotes = quotes
        self._attempt = attempt
        self._room = question.room
        self._failures = 0  # in a row
        self._stopped: tuple[FailureStatus, str] | None = None

    async def read(self, rows: Sequence[SliceRow]) -> None:
        """Append a reading for each part, failed ones as well. Raises Unauthorized."""
        waiting = list(reversed(rows))
        while waiting:
            row = waiting.pop()
            if self._stopped is not None:
                self._lose(row, *self._stopped)
            elif row.tokens > self._room:
                slices = [piece for part in row.new for piece in refit(part, self._room)]
                waiting += reversed(list(rows_of(slices, self._room, 0)))
            elif not await self._ask(row):
                waiting.append(row)

    async def _ask(self, row: SliceRow) -> bool:
        """Ask about a part. Returns False if it must be asked again in smaller parts."""
        request = self._prompts.part(self.question, row, self.notes, self.repeat)
        request = replace(request, attempt=self._attempt)
        try:
            answer = await ask(self._client, request, read_reply, repair_text, shown_again)
        except Unauthorized:
            raise
        except Exception as error:  # noqa: BLE001  becomes the record of this part
            self.usage += getattr(error, "spent", None) or Usage()
            smaller = row.tokens // 2
            least = max(self.question.room // _MIN_SHARE, _MIN_TOKENS)
            if isinstance(error, TooLong) and smaller >= least:
                self._room = min(self._room, smaller)
                return False
            self._fail(row, error)
            return True
        self.usage += answer.usage
        self._failures = 0
        self._accept(row, answer.gap, *answer.value)
        return True

    def _accept(self, row: SliceRow, gap: str | None, items: list[Any], summary: str) -> None:
        names = [leaf.name for leaf in self.question.leaves]
        checked = [check(item, names, self._prompts.taxonomy, self._quotes) for item in items]
        findings = tuple(entry for entry in checked if isinstance(entry, CheckedFinding))
        rejected = [entry for entry in checked if isinstance(entry, Rejected)]
        if gap is not None:
            rejected.insert(0, Rejected(why=f"{self._where(row)} judged partially: {gap}"))
        reading = self._reading(row, *rejected)
        reading = replace(reading, findings=findings, gap=gap, entries=len(checked))
        self.readings.append(reading)
        lines = [
            f"{entry.index} {entry.category}: {' '.join(entry.description.split())}"[:_ERROR_LINE]
            for entry in findings
        ]
        notes = shorten(neutralise(summary), SUMMARY) if summary else self.notes.notes
        lines = [*self.notes.errors.splitlines(), *lines]
        self.notes = RunningNotes(notes, _last_lines("\n".join(lines)))

    def _reading(self, row: SliceRow, *rejected: Rejected) -> PartReading:
        shown = frozenset(part.index for part in row.slices)
        return PartReading(row.name, self.question.area, self.repeat, shown, rejected=rejected)

    def _fail(self, row: SliceRow, error: Exception) -> None:
        status, message = classify(error)
        self._lose(row, status, message, getattr(error, "raw", None))
        if not status.startswith(("error:", "unscored:too_long")):  # the reply's own failure
            self._failures = 0
            return
        self._failures += 1
        if self._failures >= _GIVE_UP:
            reason = f"not asked: {self._failures} parts in a row failed: {message}"
            self._stopped = status, reason[:300]

    def _lose(
        self, row: SliceRow, status: FailureStatus, message: str, raw: str | None = None
    ) -> None:
        """Record that a part was not judged, also in the notes for the next part."""
        why = f"{self._where(row)} not judged: {status}: {message[:300]}"
        reading = self._reading(row, Rejected(why=why, said=abridged(raw) if raw else None))
        self.readings.append(replace(reading, status=status, message=message))
        notes = neutralise(f"{self.notes.notes}\n({row.name} could not be read.)".strip())
        self.notes = RunningNotes(shorten(notes, SUMMARY), self.notes.errors)

    def _where(self, row: SliceRow) -> str:
        area = f" ({self.question.area})" if self.question.area else ""
        repeat = f" in repeat {self.repeat + 1}" if self._prompts.options.repeats > 1 else ""
        return f"{row.name}{area}{repeat}"


def _last_lines(text: str) -> str:
    """Complete lines from the end, within the tokens of a summary."""
    lines = neutralise(text).splitlines()
    while lines and len("\n".join(lines).encode("utf-8", "replace")) > 3 * SUMMARY:
        lines.pop(0)
    return "\n".join(lines)
