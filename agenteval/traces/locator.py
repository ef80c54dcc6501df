"""The locator: a judge that reads a trace in parts, and says which errors stand where.

Every part goes to the model with the kinds of errors, the task, notes on what came before, and
what rules found in it. What comes back is checked (the span exists, the kind is known, the
quoted words stand in the span) before it counts. A part that could not be judged is recorded as
such: it never passes for a part without errors. After TRAIL (arXiv 2505.08638), whose judges read
a whole trace at once and fail on long ones.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Coroutine, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from agenteval.engine.judging import classify
from agenteval.errors import TooLong, Unauthorized
from agenteval.models.client import Client
from agenteval.models.prompts import neutralise
from agenteval.models.wire import Request
from agenteval.readers.assignment import Passage, assignment
from agenteval.records import FailureStatus, Finding, Findings, Grade, Rejected, Run, Source, Usage
from agenteval.traces.locator_merge import PartReading, merge, with_hints
from agenteval.traces.locator_prompt import (
    FULL,
    PROMPTS_SHA256,
    SUMMARY,
    LocatorOptions,
    LocatorQuestion,
    PromptBuilder,
    RunningNotes,
    shown_again,
)
from agenteval.traces.locator_quotes import Quotes
from agenteval.traces.locator_reply import (
    Named,
    UsageTracker,
    abridged,
    ask,
    check,
    read_grades,
    read_reply,
)
from agenteval.traces.locator_text import (
    SliceRow,
    prompt_tokens,
    refit,
    rows_of,
    shorten,
    slices_of,
)
from agenteval.traces.pieces import Condensed
from agenteval.traces.taxonomy import Taxonomy

_VERSION = 4
_GIVE_UP = 3  # parts that fail in a row, for other reasons than their reply
_SMALLEST, _LEAST = 8, 150  # a part is halved down to this share of the room, and so many tokens
_HINT = 60  # tokens of a hint
_ERROR = 400  # tokens of an error in the list for the grades: whole, unless it rambles
_FOUND = 160  # characters of one error among those found already
_WEIGHT = {"HIGH": 0, "MEDIUM": 1, "LOW": 2, None: 3}


@dataclass(frozen=True, slots=True)
class LocatorPlan:
    """What reading a trace takes when nothing has to be asked twice.

    `prompt_tokens` is estimated (UTF-8 bytes / 3) with summaries of full length, `reply_tokens`
    the most that the replies may have. `parts` is the number of parts for each question.
    `grades_tokens` are those of the prompt for the grades, told as many as the context takes.
    """

    requests: int
    prompt_tokens: int
    reply_tokens: int
    parts: tuple[int, ...]
    grades_tokens: int = 0


@dataclass(frozen=True)
class Located:
    """What a locator said of one run, and what it took.

    `calls` counts questions to the model, repairs and cached answers included; `usage` what was
    sent and paid for. `readings` counts parts read, once for each question and repeat, and
    `failed` those of them that gave nothing. `unread` are the indices of spans that no reading
    judged, `cut` those shown without their middle. `notes` are the last summaries, by area.
    `failures` are the kinds of failures of parts, sorted, then that of the grades.
    """

    findings: Findings
    usage: Usage = Usage()  # noqa: RUF009  frozen
    calls: int = 0
    readings: int = 0
    failed: int = 0
    unread: tuple[str, ...] = ()
    cut: tuple[str, ...] = ()
    notes: tuple[tuple[str, str], ...] = ()
    failures: tuple[FailureStatus, ...] = ()


class Locator:
    """Finds errors in traces with a chat model; see the module.

    `legend` explains to the judge the marks that stand in the texts it reads.
    """

    def __init__(
        self,
        client: Client,
        taxonomy: Taxonomy,
        options: LocatorOptions | None = None,
        *,
        legend: str = "",
    ) -> None:
        self.client = client
        self.taxonomy = taxonomy
        self.options = options or LocatorOptions()
        self.legend = legend
        self._prompts = PromptBuilder(taxonomy, self.options, legend)

    @property
    def source(self) -> Source:
        """Model, prompts, taxonomy, parameters and seed of this judge."""
        return Source(
            evaluator="traces.locator",
            version=_VERSION,
            model=self.client.model,
            prompt_sha256=PROMPTS_SHA256,
            parameters={
                **self.options.parameters(),
                "taxonomy": self.taxonomy.sha256,
                "legend": self.legend,
                "endpoint": self.client.address,
            },
            seed=self.options.seed,
        )

    def with_context(self, context: int) -> Locator:
        """The same judge with another context, in tokens."""
        options = replace(self.options, context=context)
        return Locator(self.client, self.taxonomy, options, legend=self.legend)

    def check(self) -> None:
        """Raises InputError when the context leaves no room for spans, however short the task."""
        self._prompts.questions(Run(id="-"))

    def plan(self, run: Run, condensed: Condensed, hints: Sequence[Finding] = ()) -> LocatorPlan:
        """Return what `examine` will ask if nothing has to be repaired or halved; nothing is sent.

        Raises InputError when the context leaves no room for spans.
        """
        layout, _ = self._layout(run, condensed, hints)
        asked = sum(
            prompt_tokens(self._prompts.part(question, row, FULL if i else RunningNotes(), 0))
            for question, rows in layout
            for i, row in enumerate(rows)
        )
        parts = tuple(len(rows) for _, rows in layout)
        grades = self.options.grades and bool(condensed.pieces)
        requests = self.options.repeats * sum(parts) + grades
        most = self.options.context - self.options.reply_tokens if grades else 0
        asked = asked * self.options.repeats + most
        return LocatorPlan(requests, asked, requests * self.options.reply_tokens, parts, most)

    async def examine(
        self, run: Run, condensed: Condensed, hints: Sequence[Finding] = (), attempt: int = 0
    ) -> Located:
        """Return the errors of a run, its grades, what was not taken and what was not judged.

        `hints` are the findings of rules; `attempt` counts earlier tries, whose replies are not
        taken from the cache. If no part could be judged, the status of the findings is the kind of
        the first failure and there are no findings, those of rules neither. Raises InputError if
        the context leaves no room for spans, and Unauthorized.
        """
        if not condensed.pieces:
            message = "the trace has no spans to read"
            return Located(Findings(trace=run.id, status="unscored:missing", message=message))
        hints, unknown = self._known(run, hints)
        layout, cut = self._layout(run, condensed, hints)
        tracker = UsageTracker(self.client, attempt)
        quotes = Quotes(run, condensed, self.options.quotes)
        readers = [
            (PartReader(self._prompts, question, repeat, tracker, quotes), rows)
            for question, rows in layout
            for repeat in range(self.options.repeats)
        ]
        await _together([reader.read(rows) for reader, rows in readers])
        readings = [reading for reader, _ in readers for reading in reader.readings]
        notes = tuple(
            (reader.question.area or "", reader.notes.notes)
            for reader, _ in readers
            if reader.repeat == 0 and reader.notes.notes
        )
        lost = [r.status for r in readings if r.status is not None]
        rejected = [entry for reading in readings for entry in reading.rejected]
        ungraded: tuple[FailureStatus, ...] = ()
        if len(lost) == len(readings):
            message = f"none of {len(lost)} parts could be judged: {readings[0].message}"[:500]
            findings = Findings(
                trace=run.id, status=lost[0], message=message, rejected=(*rejected, *unknown)
            )
        else:
            judged, left_out = merge(readings, condensed.pieces, self.taxonomy)
            every = with_hints(judged, hints, run, self.taxonomy)
            message = _message(readings, cut)
            grades: dict[str, Grade] = {}
            if self.options.grades:
                request = self._grades_request(run, condensed, every, notes, message)
                grades, problems, ungraded = await self._grade(tracker, request)
                rejected += problems
            findings = Findings(
                trace=run.id,
                findings=every,
                grades=grades,
                message=message,
                rejected=(*rejected, *left_out, *unknown),
            )
        read = {index for r in readings if r.status is None for index in r.shown}
        return Located(
            findings=findings,
            usage=tracker.usage,
            calls=tracker.calls,
            readings=len(readings),
            failed=len(lost),
            unread=tuple(p.index for p in condensed.pieces if p.index not in read),
            cut=cut,
            notes=notes,
            failures=(*sorted(set(lost)), *ungraded),
        )

    def _known(
        self, run: Run, hints: Sequence[Finding]
    ) -> tuple[tuple[Finding, ...], tuple[Rejected, ...]]:
        """The hints on spans of the run and leaves of the taxonomy, and the others."""
        spans = {span.id for span in run.spans}
        good: list[Finding] = []
        bad: list[Rejected] = []
        for hint in hints:
            leaf = self.taxonomy.find(hint.category)
            if leaf is None or hint.span not in spans:
                stated = hint.model_dump(mode="json")
                bad.append(Rejected(why="a rule named an unknown span or category", said=stated))
            else:
                good.append(hint.model_copy(update={"category": leaf.name}))
        return tuple(good), tuple(bad)

    def _layout(
        self, run: Run, condensed: Condensed, hints: Sequence[Finding]
    ) -> tuple[list[tuple[LocatorQuestion, list[SliceRow]]], tuple[str, ...]]:
        """The trace spread over parts, for every question; and the spans without their middle."""
        lines: dict[str, list[str]] = {}
        for hint in hints:
            text = " ".join(f"{hint.category}: {hint.description or hint.evidence}".split())
            lines.setdefault(hint.span, []).append(shorten(neutralise(text), _HINT))
        layout = []
        cut: dict[str, None] = {}
        indices = {piece.span: piece.index for piece in condensed.pieces}
        for question in self._prompts.questions(run, indices):
            slices = list(slices_of(condensed.pieces, lines, question.room))
            cut |= {part.index: None for part in slices if part.note}
            layout.append((question, list(rows_of(slices, question.room))))
        return layout, tuple(cut)

    def _grades_request(
        self,
        run: Run,
        condensed: Condensed,
        findings: Sequence[Finding],
        notes: Sequence[tuple[str, str]],
        unread: str,
    ) -> Request:
        index = {piece.span: piece.index for piece in condensed.pieces}
        ordered = sorted(findings, key=lambda f: (_WEIGHT[f.impact], -(f.confidence or 0)))
        lines = [
            shorten(
                f"{index.get(f.span, '')} {f.category} ({f.impact or 'impact unknown'}): "
                f"{' '.join((f.description or f.evidence).split())}".strip(),
                _ERROR,
            )
            for f in ordered
        ]
        ending = assignment(run).ending
        if not ending.text:
            ending = Passage(condensed.pieces[-1].text, condensed.pieces[-1].span)
        return self._prompts.grades(run, notes, lines, ending, unread)

    async def _grade(
        self, tracker: UsageTracker, request: Request
    ) -> tuple[dict[str, Grade], list[Rejected], tuple[FailureStatus, ...]]:
        """The grades; those that were not given have no value, and it is said why, with the kind
        of the failure."""
        try:
            answer = await ask(tracker, request, read_grades, self._prompts.repair, shown_again)
        except Unauthorized:
            raise
        except Exception as error:  # noqa: BLE001  grades are missing, findings stay
            status, message = classify(error)
            return {}, [Rejected(why=f"no grades: {status}: {message[:300]}")], (status,)
        return answer.value, [Rejected(why=f"grades: {answer.gap}")] if answer.gap else [], ()


def _message(readings: Sequence[PartReading], cut: Sequence[str]) -> str:
    """How many parts were not judged or not wholly, and why; "" when all were."""
    sentences = []
    if kinds := Counter(r.status for r in readings if r.status is not None):
        listed = ", ".join(f"{kind} {n}" for kind, n in sorted(kinds.items()))
        names = _names(r.part for r in readings if r.status is not None)
        sentences.append(
            f"{kinds.total()} of {len(readings)} parts were not judged ({listed}): {names}"
        )
    if gaps := [r.part for r in readings if r.gap is not None]:
        sentences.append(f"{len(gaps)} of {len(readings)} were judged in part: {_names(gaps)}")
    entries, taken = sum(r.said for r in readings), sum(len(r.named) for r in readings)
    if taken < entries:
        sentences.append(f"{entries - taken} of {entries} entries of the judge did not hold")
    if near := sum(named.near for r in readings for named in r.named):
        sentences.append(f"{near} quote words of another span of their step")
    if cut:
        sentences.append(f"{len(cut)} spans were shown without their middle")
    return "; ".join(sentences)


def _names(parts: Iterable[str]) -> str:
    """The first five, in the order of the trace."""
    ordered = sorted(set(parts), key=lambda part: (int(part.partition(" ")[0][1:]), part))
    more = f" and {len(ordered) - 5} more" if len(ordered) > 5 else ""
    return f"{', '.join(ordered[:5])}{more}"


class PartReader:
    """Reads the parts of one question for one repeat, one after the other.

    A part that an endpoint calls too long is halved, and so are all that follow; after some
    failures in a row that are not about the reply, the rest is not asked. `notes` is what is known
    after the last part that was read.
    """

    def __init__(
        self,
        prompts: PromptBuilder,
        question: LocatorQuestion,
        repeat: int,
        tracker: UsageTracker,
        quotes: Quotes,
    ) -> None:
        self.question = question
        self.repeat = repeat
        self.readings: list[PartReading] = []
        self.notes = RunningNotes()
        self._prompts = prompts
        self._tracker = tracker
        self._quotes = quotes
        self._room = question.room
        self._in_a_row = 0
        self._stopped: tuple[FailureStatus, str] | None = None

    async def read(self, rows: Sequence[SliceRow]) -> None:
        """Make a Reading for each part, failed ones as well. Raises Unauthorized."""
        waiting = list(reversed(rows))
        while waiting:
            row = waiting.pop()
            if self._stopped is not None:
                self._lost(row, *self._stopped)
            elif row.tokens > self._room:
                slices = [piece for part in row.new for piece in refit(part, self._room)]
                waiting += reversed(list(rows_of(slices, self._room, 0)))
            elif not await self._ask(row):
                waiting.append(row)

    async def _ask(self, row: SliceRow) -> bool:
        """Whether the part is dealt with; False: to be asked again in smaller parts."""
        request = self._prompts.part(self.question, row, self.notes, self.repeat)
        try:
            repair = self._prompts.repair
            answer = await ask(self._tracker, request, read_reply, repair, shown_again)
        except Unauthorized:
            raise
        except Exception as error:  # noqa: BLE001  becomes the record of this part
            smaller = row.tokens // 2
            if isinstance(error, TooLong) and smaller >= max(
                self.question.room // _SMALLEST, _LEAST
            ):
                self._room = min(self._room, smaller)
                return False
            self._failed(row, error)
            return True
        self._in_a_row = 0
        items, summary = answer.value
        asked = [leaf.name for leaf in self.question.leaves]
        taxonomy = self._prompts.taxonomy
        checked = [check(item, asked, taxonomy, self._quotes) for item in items]
        named = tuple(entry for entry in checked if isinstance(entry, Named))
        rejected = [entry for entry in checked if isinstance(entry, Rejected)]
        if answer.gap is not None:
            rejected.insert(0, Rejected(why=f"{self._where(row)} judged in part: {answer.gap}"))
        reading = self._reading(row, *rejected)
        self.readings.append(replace(reading, named=named, gap=answer.gap, said=len(checked)))
        lines = [
            f"{entry.index} {entry.category}: {' '.join(entry.description.split())}"[:_FOUND]
            for entry in named
        ]
        notes = shorten(neutralise(summary), SUMMARY) if summary else self.notes.notes
        lines = [*self.notes.found.splitlines(), *lines]
        self.notes = RunningNotes(notes, _last_lines("\n".join(lines)))
        return True

    def _reading(self, row: SliceRow, *rejected: Rejected) -> PartReading:
        shown = frozenset(part.index for part in row.slices)
        return PartReading(row.name, self.question.area, self.repeat, shown, rejected=rejected)

    def _failed(self, row: SliceRow, error: Exception) -> None:
        status, message = classify(error)
        self._lost(row, status, message, getattr(error, "raw", None))
        if not status.startswith(("error:", "unscored:too_long")):  # the reply's own failure
            self._in_a_row = 0
            return
        self._in_a_row += 1
        if self._in_a_row >= _GIVE_UP:
            reason = f"not asked: {self._in_a_row} parts in a row failed: {message}"
            self._stopped = status, reason[:300]

    def _lost(
        self, row: SliceRow, status: FailureStatus, message: str, raw: str | None = None
    ) -> None:
        """Record that a part was not judged, here and for the reader of the next part."""
        why = f"{self._where(row)} not judged: {status}: {message[:300]}"
        reading = self._reading(row, Rejected(why=why, said=abridged(raw) if raw else None))
        self.readings.append(replace(reading, status=status, message=message))
        notes = neutralise(f"{self.notes.notes}\n({row.name} could not be read.)".strip())
        self.notes = RunningNotes(shorten(notes, SUMMARY), self.notes.found)

    def _where(self, row: SliceRow) -> str:
        asked = f" ({self.question.area})" if self.question.area else ""
        again = f" in repeat {self.repeat + 1}" if self._prompts.options.repeats > 1 else ""
        return f"{row.name}{asked}{again}"


def _last_lines(text: str) -> str:
    """Whole lines from the end, within the tokens of a summary."""
    lines = neutralise(text).splitlines()
    while lines and len("\n".join(lines).encode("utf-8", "replace")) > 3 * SUMMARY:
        lines.pop(0)
    return "\n".join(lines)


async def _together(work: Sequence[Coroutine[Any, Any, None]]) -> None:
    """Wait for all; if one raises, the others are cancelled first."""
    tasks = [asyncio.create_task(coroutine) for coroutine in work]
    try:
        await asyncio.gather(*tasks)
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
