"""The locator: a judge that reads a trace in parts and locates errors at spans.

Each part is sent with the kinds of errors, the task, notes on earlier parts, and the findings of
detectors. An entry of a reply counts if its span exists, its kind is known, and its quoted words
occur in the span. A part that could not be judged is recorded as not judged, never as free of
errors. Based on TRAIL (arXiv 2505.08638), where judges read a whole trace at once and fail on long
ones.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property

from pydantic import JsonValue

from agenteval.engine import RequestBounds, Requests
from agenteval.engine.judging import classify
from agenteval.errors import Unauthorized
from agenteval.models.asking import MOST_REQUESTS
from agenteval.models.client import Client
from agenteval.models.prompts import neutralise
from agenteval.models.windows import LARGEST
from agenteval.models.wire import Request
from agenteval.readers.assignment import Passage, assignment
from agenteval.records import FailureStatus, Finding, Findings, Grade, Rejected, Run, Source, Usage
from agenteval.records.score import INFRASTRUCTURE
from agenteval.traces import detectors
from agenteval.traces.condense import CONDENSE_VERSION, LEGEND, Condensed, Options, condense
from agenteval.traces.evaluator import FinderResult
from agenteval.traces.locator_parts import PartReader, PartReading, ask, merge, with_hints
from agenteval.traces.locator_prompt import (
    LONGEST_NOTES,
    PROMPTS_SHA256,
    LocatorOptions,
    LocatorQuestion,
    PromptBuilder,
    RunningNotes,
)
from agenteval.traces.locator_reply import Quotes, read_grades
from agenteval.traces.locator_text import SliceRow, prompt_tokens, rows_of, shorten, slices_of
from agenteval.traces.taxonomy import Taxonomy

_VERSION = 4
_HINT = 60  # tokens of a hint
_ERROR = 400  # tokens of an error in the list for the grades: complete, unless it rambles
_WEIGHT = {"HIGH": 0, "MEDIUM": 1, "LOW": 2, None: 3}


@dataclass(frozen=True)
class _Graded:
    """The grades, or why there are none."""

    grades: Mapping[str, Grade] = field(default_factory=dict)
    rejected: tuple[Rejected, ...] = ()
    status: FailureStatus | None = None
    usage: Usage = Usage()  # noqa: RUF009  frozen


@dataclass(frozen=True)
class Locator:
    """A finder that asks a chat model; see the module.

    With `hints`, prompts include the findings of detectors. `with_reference` means that the runs
    were read with the gold answers in their spans.
    """

    client: Client
    taxonomy: Taxonomy
    options: LocatorOptions = LocatorOptions()  # noqa: RUF009  frozen
    condensing: Options = Options()  # noqa: RUF009  frozen
    hints: bool = True
    with_reference: bool = False

    @cached_property
    def _prompts(self) -> PromptBuilder:
        return PromptBuilder(self.taxonomy, self.options, LEGEND)

    @property
    def name(self) -> str:
        """The name of the finder in tables."""
        return f"locator ({self.client.model})"

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
                "legend": LEGEND,
                "endpoint": self.client.address,
            },
            seed=self.options.seed,
        )

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        """Everything that can change the findings."""
        return {
            "source": self.source.model_dump(mode="json"),
            "condensing": asdict(self.condensing),
            "condense": CONDENSE_VERSION,
            "hints": detectors.detectors_key() if self.hints else None,
            **({"with_reference": True} if self.with_reference else {}),
        }

    def check(self) -> None:
        """Raise InputError if the context leaves no room for spans, even with an empty task."""
        self._prompts.questions(Run(id="-"))

    def requests(self, run: Run) -> Requests:
        """Count a request per part, question and repeat, and one for the grades.

        Each malformed reply costs one more. Parts that the endpoint rejects as too long are halved;
        these requests are not counted. Raises InputError as `check` does.
        """
        return {"judge": self.bounds(run, condense(run, self.condensing), self._hints(run))}

    def bounds(
        self, run: Run, condensed: Condensed, hints: Sequence[Finding] = ()
    ) -> RequestBounds:
        """Return the requests for a condensed trace.

        Tokens are estimated (UTF-8 bytes / 3) for summaries of maximum length; the request for
        grades is excluded.
        """
        layout, _ = self._layout(run, condensed, hints)
        prompts = [
            self._prompts.part(question, row, LONGEST_NOTES if i else RunningNotes())
            for question, rows in layout
            for i, row in enumerate(rows)
        ]
        repeats = self.options.repeats
        grades = self.options.grades and bool(condensed.pieces)
        least = repeats * len(prompts) + grades
        return RequestBounds(
            least, MOST_REQUESTS * least, repeats * sum(map(prompt_tokens, prompts))
        )

    def size_lines(self, runs: Iterable[Run]) -> list[str]:
        """Return lines on how far traces are condensed and how much a larger context would save."""
        before = after = requests = least = tokens = 0
        large = replace(self, options=replace(self.options, context=LARGEST))
        for run in runs:
            condensed = condense(run, self.condensing)
            least += self.bounds(run, condensed, self._hints(run)).least
            bounds = large.bounds(run, condensed)
            before += condensed.source_tokens
            after += condensed.tokens
            requests += bounds.least
            tokens += bounds.prompt or 0
        share = f" ({after / before:.1%})" if before else ""
        lines = [f"condensed: {before:,} tokens to {after:,}{share}"]
        if self.options.context < LARGEST and requests < least:
            lines.append(
                f"context: {self.options.context:,} tokens; for a model with a larger window, "
                f"--context {LARGEST} would need {requests:,} requests and at least "
                f"{tokens:,} tokens of prompt"
            )
        return lines

    async def find(self, run: Run, attempt: int = 0) -> FinderResult:
        """Condense the trace and examine it; see `examine`."""
        condensed = await asyncio.to_thread(condense, run, self.condensing)
        hints = await asyncio.to_thread(self._hints, run)
        return await self.examine(run, condensed, hints, attempt)

    async def examine(
        self, run: Run, condensed: Condensed, hints: Sequence[Finding] = (), attempt: int = 0
    ) -> FinderResult:
        """Return the errors and grades of a run, and what was rejected or not judged.

        `hints` are the findings of detectors. `attempt` counts earlier tries; their stored replies
        are not used. If no part could be judged, the findings have the status of the first failure.
        If an infrastructure failure affected any part, they have that status: resuming then uses
        the stored replies and requests only the missing parts. Raises InputError as `check` does,
        and Unauthorized.
        """
        if not condensed.pieces:
            message = "the trace has no spans to read"
            return FinderResult(Findings(trace=run.id, status="unscored:missing", message=message))
        layout, cut = self._layout(run, condensed, hints)
        quotes = Quotes(run, condensed, self.options.quotes)
        readers: list[PartReader] = []
        try:
            async with asyncio.TaskGroup() as group:
                for question, rows in layout:
                    for repeat in range(self.options.repeats):
                        reader = PartReader(
                            self.client, self._prompts, question, quotes, repeat, attempt
                        )
                        readers.append(reader)
                        group.create_task(reader.read(rows))
        except ExceptionGroup as errors:
            raise errors.exceptions[0] from None
        usage = sum((reader.usage for reader in readers), Usage())
        readings = [reading for reader in readers for reading in reader.readings]
        lost = [reading.status for reading in readings if reading.status is not None]
        rejected = tuple(entry for reading in readings for entry in reading.rejected)
        if len(lost) == len(readings):
            message = f"none of {len(lost)} parts could be judged: {readings[0].message}"[:500]
            failed = Findings(trace=run.id, status=lost[0], message=message, rejected=rejected)
            return FinderResult(failed, usage)
        judged, repeated = merge(readings, condensed.pieces, self.taxonomy)
        findings = with_hints(judged, hints, run, self.taxonomy)
        message = _message(readings, cut)
        graded = _Graded()
        if self.options.grades:
            notes = [
                (reader.question.area or "", reader.notes.notes)
                for reader in readers
                if reader.repeat == 0 and reader.notes.notes
            ]
            request = self._grades_request(run, condensed, findings, notes, message)
            graded = await self._grade(replace(request, attempt=attempt))
        for status in (*sorted(lost), graded.status):
            if status in INFRASTRUCTURE:
                message = message or graded.rejected[-1].why
                failed = Findings(trace=run.id, status=status, message=message[:500])
                return FinderResult(failed, usage + graded.usage)
        complete = Findings(
            trace=run.id,
            findings=findings,
            grades=dict(graded.grades),
            message=message,
            rejected=(*rejected, *graded.rejected, *repeated),
        )
        return FinderResult(complete, usage + graded.usage)

    async def _grade(self, request: Request) -> _Graded:
        """Request the grades; if this fails, the findings still count."""
        try:
            answer = await ask(self.client, request, read_grades)
        except Unauthorized:
            raise
        except Exception as error:  # noqa: BLE001  recorded as a rejected entry
            status, why = classify(error)
            rejected = Rejected(why=f"no grades: {status}: {why[:300]}")
            return _Graded({}, (rejected,), status, getattr(error, "spent", None) or Usage())
        gap = (Rejected(why=f"grades: {answer.gap}"),) if answer.gap else ()
        return _Graded(answer.value, gap, None, answer.usage)

    def _hints(self, run: Run) -> tuple[Finding, ...]:
        return detectors.detect(run, self.taxonomy) if self.hints else ()

    def _layout(
        self, run: Run, condensed: Condensed, hints: Sequence[Finding]
    ) -> tuple[list[tuple[LocatorQuestion, list[SliceRow]]], set[str]]:
        """Return the rows of each question, and the indices of spans shown without their middle."""
        lines: dict[str, list[str]] = {}
        for hint in hints:
            text = " ".join(f"{hint.category}: {hint.description or hint.evidence}".split())
            lines.setdefault(hint.span, []).append(shorten(neutralise(text), _HINT))
        layout = []
        cut: set[str] = set()
        indices = {piece.span: piece.index for piece in condensed.pieces}
        for question in self._prompts.questions(run, indices):
            slices = list(slices_of(condensed.pieces, lines, question.room))
            cut.update(part.index for part in slices if part.note)
            layout.append((question, list(rows_of(slices, question.room))))
        return layout, cut

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
        lines = []
        for finding in ordered:
            head = f"{index.get(finding.span, '')} {finding.category}"
            text = " ".join((finding.description or finding.evidence).split())
            line = f"{head} ({finding.impact or 'impact unknown'}): {text}".strip()
            lines.append(shorten(line, _ERROR))
        ending = assignment(run).ending
        if not ending.text:
            ending = Passage(condensed.pieces[-1].text, condensed.pieces[-1].span)
        return self._prompts.grades(run, notes, lines, ending, unread)


def _message(readings: Sequence[PartReading], cut: set[str]) -> str:
    """Return how many parts were not judged or only partially, and why, or ""."""
    sentences = []
    if kinds := Counter(r.status for r in readings if r.status is not None):
        listed = ", ".join(f"{kind} {n}" for kind, n in sorted(kinds.items()))
        names = _names(r.part for r in readings if r.status is not None)
        sentences.append(
            f"{kinds.total()} of {len(readings)} parts were not judged ({listed}): {names}"
        )
    if gaps := [r.part for r in readings if r.gap is not None]:
        sentences.append(f"{len(gaps)} of {len(readings)} were judged in part: {_names(gaps)}")
    entries, accepted = sum(r.entries for r in readings), sum(len(r.findings) for r in readings)
    if accepted < entries:
        sentences.append(f"{entries - accepted} of {entries} entries of the judge did not hold")
    if near := sum(finding.near for r in readings for finding in r.findings):
        sentences.append(f"{near} quote words of another span of their step")
    if cut:
        sentences.append(f"{len(cut)} spans were shown without their middle")
    return "; ".join(sentences)


def _names(parts: Iterable[str]) -> str:
    """Return the first five parts, in trace order."""
    ordered = sorted(set(parts), key=lambda part: (int(part.partition(" ")[0][1:]), part))
    more = f" and {len(ordered) - 5} more" if len(ordered) > 5 else ""
    return f"{', '.join(ordered[:5])}{more}"
