"""Read the parts of a trace, one after the other, for one question to the judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

from agenteval.engine.judging import classify
from agenteval.errors import AgentevalError, ReplyError, TooLong, Unauthorized
from agenteval.models import asking
from agenteval.models.client import Client
from agenteval.models.prompts import neutralise
from agenteval.models.wire import Request
from agenteval.records import FailureStatus, Rejected, Usage
from agenteval.traces.locator_prompt import (
    SUMMARY,
    LocatorQuestion,
    PromptBuilder,
    RunningNotes,
    repair_text,
    shown_again,
)
from agenteval.traces.locator_reply import (
    CheckedFinding,
    LocatorAnswer,
    Quotes,
    abridged,
    check,
    read_reply,
)
from agenteval.traces.locator_text import SliceRow, refit, rows_of, shorten

T = TypeVar("T")
_GIVE_UP = 3  # parts that fail in a row, for other reasons than their reply
# A part is halved down to this share of the room, and to so many tokens
_MIN_SHARE, _MIN_TOKENS = 8, 150
_ERROR_LINE = 160  # characters


class UnreadableReply(ReplyError):
    """Neither the reply nor its repair could be read. `raw` is the last text."""

    raw = ""


async def ask(
    client: Client, request: Request, read: Callable[[str], LocatorAnswer[T]]
) -> LocatorAnswer[T]:
    """Return the parsed reply, or its repair if the reply is unreadable or has a gap.

    A reply with a gap is used if its repair is not better. Raises UnreadableReply, Filtered, and
    what the client raises; `spent` is the usage of both requests.
    """
    partial: list[LocatorAnswer[T]] = []
    last = ""

    def read_all(text: str) -> LocatorAnswer[T]:
        nonlocal last
        last = text
        answer = read(text)
        if answer.gap is not None:
            partial.append(answer)
            raise ReplyError(answer.gap)
        return answer

    try:
        parsed = await asking.ask(client, request, read_all, repair_text, shown_again)
        return replace(parsed.value, usage=parsed.usage)
    except AgentevalError as error:
        if partial:
            return replace(partial[0], usage=error.spent or Usage())
        if isinstance(error, ReplyError):
            unreadable = UnreadableReply(str(error))
            unreadable.raw, unreadable.spent = last, error.spent
            raise unreadable from error
        raise


@dataclass(frozen=True, slots=True)
class PartReading:
    """One reading of a part of a trace for one question.

    `status` and `message` explain a failure; `entries` counts the entries in the reply, and `gap`
    is what is missing from a partial reply.
    """

    part: str  # "S4 to S9"
    area: str | None
    repeat: int
    shown: frozenset[str]
    findings: tuple[CheckedFinding, ...] = ()
    rejected: tuple[Rejected, ...] = ()
    status: FailureStatus | None = None
    message: str = ""
    entries: int = 0
    gap: str | None = None


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
                waiting += reversed(list(rows_of(slices, self._room, overlap=False)))
            elif not await self._ask(row):
                waiting.append(row)

    async def _ask(self, row: SliceRow) -> bool:
        """Ask about a part. Returns False if it must be asked again in smaller parts."""
        request = self._prompts.part(self.question, row, self.notes, self.repeat)
        try:
            answer = await ask(self._client, replace(request, attempt=self._attempt), read_reply)
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
        self.readings.append(replace(reading, findings=findings, gap=gap, entries=len(checked)))
        lines = self.notes.errors.splitlines()
        for entry in findings:
            description = " ".join(entry.description.split())
            lines.append(f"{entry.index} {entry.category}: {description}"[:_ERROR_LINE])
        lines = neutralise("\n".join(lines)).splitlines()
        while lines and len("\n".join(lines).encode("utf-8", "replace")) > 3 * SUMMARY:
            lines.pop(0)
        notes = shorten(neutralise(summary), SUMMARY) if summary else self.notes.notes
        self.notes = RunningNotes(notes, "\n".join(lines))

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
