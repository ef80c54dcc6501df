"""Read the parts of a trace with a judge, and merge its answers into one list of findings.

The same span and category in several parts, areas or repeats is one finding. Its votes are the
repeats that reported it; its confidence is

    share of votes  ×  mean of the confidences stated with them

where the share counts only repeats that read the span and were asked for the category. Without a
stated confidence it is the share alone, or unknown after a single reading, since one vote measures
nothing.

Errors of one category with nearly identical quotes or descriptions (`alike`) are one repeated
error. It is kept at its first span, or at its last if the category says so (TRAIL, arXiv
2505.08638, the judge's instructions: first instance, last for Resource Abuse).
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any, TypeVar

from rapidfuzz import fuzz

from agenteval.engine.judging import classify
from agenteval.errors import AgentevalError, ReplyError, TooLong, Unauthorized
from agenteval.models import asking
from agenteval.models.client import Client
from agenteval.models.prompts import neutralise
from agenteval.models.wire import Request
from agenteval.records import FailureStatus, Finding, Impact, Rejected, Run, Usage
from agenteval.traces.condense import TracePiece
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
from agenteval.traces.taxonomy import Leaf, Taxonomy

T = TypeVar("T")
_GIVE_UP = 3  # consecutive parts that fail for reasons other than their reply
# A part is halved down to this share of the room and this number of tokens.
_MIN_SHARE, _MIN_TOKENS = 8, 150
_ERROR_LINE = 160  # characters


class UnreadableReply(ReplyError):
    """Neither the reply nor its repair could be read. `raw` is the last text."""

    raw = ""


async def ask(
    client: Client, request: Request, read: Callable[[str], LocatorAnswer[T]]
) -> LocatorAnswer[T]:
    """Return the parsed reply, or its repair if the reply is unreadable or has a gap.

    A reply with a gap is used if its repair is no better. Raises UnreadableReply, Filtered and the
    client's errors; `spent` is the usage of both requests.
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

    If the endpoint rejects a part as too long, it and all later parts are halved. After several
    consecutive failures not caused by a reply, the remaining parts are skipped. `notes` is the
    state after the last part, `usage` the usage that was paid for.
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
        self._failures = 0  # consecutive
        self._stopped: tuple[FailureStatus, str] | None = None

    async def read(self, rows: Sequence[SliceRow]) -> None:
        """Append a reading for each part, including failed ones. Raises Unauthorized."""
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
        """Ask about a part. Returns False if it must be split into smaller parts."""
        request = self._prompts.part(self.question, row, self.notes, self.repeat)
        try:
            answer = await ask(self._client, replace(request, attempt=self._attempt), read_reply)
        except Unauthorized:
            raise
        except Exception as error:  # noqa: BLE001  recorded as the failure of this part
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
        if not status.startswith(("error:", "unscored:too_long")):  # the reply itself was at fault
            self._failures = 0
            return
        self._failures += 1
        if self._failures >= _GIVE_UP:
            reason = f"not asked: {self._failures} parts in a row failed: {message}"
            self._stopped = status, reason[:300]

    def _lose(
        self, row: SliceRow, status: FailureStatus, message: str, raw: str | None = None
    ) -> None:
        """Record that a part was not judged, and tell the next part in its notes."""
        why = f"{self._where(row)} not judged: {status}: {message[:300]}"
        reading = self._reading(row, Rejected(why=why, said=abridged(raw) if raw else None))
        self.readings.append(replace(reading, status=status, message=message))
        notes = neutralise(f"{self.notes.notes}\n({row.name} could not be read.)".strip())
        self.notes = RunningNotes(shorten(notes, SUMMARY), self.notes.errors)

    def _where(self, row: SliceRow) -> str:
        area = f" ({self.question.area})" if self.question.area else ""
        repeat = f" in repeat {self.repeat + 1}" if self._prompts.options.repeats > 1 else ""
        return f"{row.name}{area}{repeat}"


# -- merging --------------------------------------------------------------------------------------

SAME = 90.0  # similarity (0 to 100) from which two errors of a category count as one
_GRAVITY: Mapping[Impact | None, int] = {"HIGH": 3, "MEDIUM": 2, "LOW": 1, None: 0}
_COMPARED = 400  # characters
_MIN_DESCRIPTION = 40  # characters; shorter ones describe a kind of error, not a specific error


def merge(
    readings: Sequence[PartReading], pieces: Sequence[TracePiece], taxonomy: Taxonomy
) -> tuple[tuple[Finding, ...], tuple[Rejected, ...]]:
    """Return findings ordered by trace, then taxonomy; and those omitted as repetitions.

    The result does not depend on the order of the readings.
    """
    votes: dict[tuple[str, str], dict[int, list[CheckedFinding]]] = {}
    readers: dict[tuple[str | None, str], set[int]] = {}  # repeats by area and index
    for reading in readings:
        for entry in reading.findings:
            by_repeat = votes.setdefault((entry.index, entry.category), {})
            by_repeat.setdefault(reading.repeat, []).append(entry)
        for index in reading.shown if reading.status is None else ():
            readers.setdefault((reading.area, index), set()).add(reading.repeat)
    broad = any(reading.area is None for reading in readings)
    position = {piece.index: i for i, piece in enumerate(pieces)}
    merged: list[tuple[int, Finding]] = []
    rejected: list[Rejected] = []
    for leaf in taxonomy.leaves:
        findings = []
        for piece in pieces:
            if by_repeat := votes.get((piece.index, leaf.name), {}):
                read = readers.get((None if broad else leaf.area, piece.index), set())
                finding = _finding(piece.span, by_repeat, len(read | set(by_repeat)))
                findings.append((piece.index, finding))
        distinct, repeated = _distinct(findings, leaf)
        merged += [(position[index], finding) for index, finding in distinct]
        rejected += repeated
    merged.sort(key=lambda entry: entry[0])
    return tuple(finding for _, finding in merged), tuple(rejected)


def _finding(span: str, votes: Mapping[int, Sequence[CheckedFinding]], read: int) -> Finding:
    """Merge all votes into one finding, with the text of the most confident one."""
    entries = [entry for repeat in sorted(votes) for entry in votes[repeat]]
    best = min(entries, key=lambda n: (-(n.confidence or 0), n.evidence, n.description))
    impacts: list[Impact | None] = [n.impact for n in entries if n.impact is not None]
    return Finding(
        span=span,
        category=best.category,
        evidence=best.evidence,
        description=best.description,
        impact=max(impacts, key=lambda i: (impacts.count(i), _GRAVITY[i]), default=None),
        confidence=confidence(votes, read),
        source="locator",
    )


def confidence(votes: Mapping[int, Sequence[CheckedFinding]], read: int) -> float | None:
    """Return the share of votes times the mean of the stated confidences; see the module.

    A repeat that reported the error in two overlapping parts counts once, with the higher value.
    """
    share = len(votes) / read
    stated = [
        max(confidences)
        for entries in votes.values()
        if (confidences := [n.confidence for n in entries if n.confidence is not None])
    ]
    if stated:
        return share * math.fsum(stated) / len(stated)
    return share if read > 1 else None


def _distinct(
    findings: Sequence[tuple[str, Finding]], leaf: Leaf
) -> tuple[list[tuple[str, Finding]], list[Rejected]]:
    """Split the findings of one leaf (by index) into distinct errors and repetitions."""
    last = leaf.locate == "last"
    distinct: list[tuple[str, Finding]] = []
    repeated = []
    for index, finding in reversed(findings) if last else findings:
        first = next((at for at, other in distinct if alike(finding, other, renumbered=last)), None)
        if first is None:
            distinct.append((index, finding))
            continue
        why = f"the error of {first} again: its {leaf.locate} span is marked"
        stated = finding.model_dump(mode="json", exclude={"span", "source"})
        repeated.append(Rejected(why=why, said={"index": index, **stated}))
    return distinct, repeated


def alike(first: Finding, second: Finding, *, renumbered: bool) -> bool:
    """Return whether two findings of one leaf are the same error.

    They are if the normalized Indel similarity (0 to 100) of their quotes, or of their descriptions
    (from 40 characters), reaches SAME and their numbers are equal. With `renumbered`, numbers may
    differ, because errors marked at their last span repeat by nature.
    """
    pairs = [(first.evidence, second.evidence)]
    if min(len(first.description), len(second.description)) >= _MIN_DESCRIPTION:
        pairs.append((first.description, second.description))
    for a, b in pairs:
        (text_a, numbers_a), (text_b, numbers_b) = _compared(a), _compared(b)
        same_numbers = renumbered or numbers_a == numbers_b
        if a and b and same_numbers and fuzz.ratio(text_a, text_b, score_cutoff=SAME) >= SAME:
            return True
    return False


@lru_cache(maxsize=4096)  # every finding is compared with many others
def _compared(text: str) -> tuple[str, list[str]]:
    """Return the normalized beginning of a text for comparison, and the numbers in it."""
    plain = " ".join(text[:_COMPARED].casefold().split())
    return plain, re.findall(r"\d+", plain)


def with_hints(
    findings: Sequence[Finding], hints: Sequence[Finding], run: Run, taxonomy: Taxonomy
) -> tuple[Finding, ...]:
    """Add findings of detectors, which replace the judge's on the same span and category.

    Ordered by trace, then taxonomy, then source.
    """
    position = {span.id: i for i, span in reversed(list(enumerate(run.spans)))}
    rank = {leaf.name: i for i, leaf in enumerate(taxonomy.leaves)}
    hinted = {(hint.span, hint.category) for hint in hints}
    both = [*(f for f in findings if (f.span, f.category) not in hinted), *hints]
    both.sort(key=lambda f: (position[f.span], rank[f.category], f.source, f.evidence))
    return tuple(both)
