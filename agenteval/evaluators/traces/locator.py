"""The locator: a judge that reads a trace in parts, and says which errors stand where.

Every part goes to the model with the kinds of errors, the task, notes on what came before, and
what exact rules found in it. What comes back is checked (the span exists, the kind is known, the
quoted words stand in the span) before it counts. A part that could not be judged is recorded as
such: it never passes for a part without errors. After TRAIL (arXiv 2505.08638), whose judges read
a whole trace at once and fail on long ones.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from agenteval.errors import Unauthorized
from agenteval.evaluators.base import classify
from agenteval.evaluators.traces.locator_lane import Lane, together
from agenteval.evaluators.traces.locator_merge import Failed, Reading, Spot, merge, with_hints
from agenteval.evaluators.traces.locator_prompt import (
    Asking,
    Carry,
    LocatorOptions,
    Plan,
    Question,
    Shown,
    prompts_sha256,
)
from agenteval.evaluators.traces.locator_reply import Meter, ask, read_grades
from agenteval.evaluators.traces.locator_rows import (
    Row,
    flat,
    prompt_tokens,
    rows_of,
    shorten,
    slices_of,
)
from agenteval.evaluators.traces.pieces import Condensed
from agenteval.evaluators.traces.taxonomy import Taxonomy
from agenteval.models.client import Client
from agenteval.models.prompts import neutralise
from agenteval.models.wire import Request
from agenteval.records import FailureStatus, Finding, Findings, Grade, Rejected, Run, Source, Usage

_VERSION = 1
_LINE = 60  # tokens of a hint or of an error in the list for the grades
_WEIGHT = {"HIGH": 0, "MEDIUM": 1, "LOW": 2, None: 3}


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


@dataclass(frozen=True)
class _Layout:
    """A trace spread over parts, for every question."""

    questions: list[Question]
    rows: list[list[Row]]
    cut: tuple[str, ...] = field(default=())


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
        self._asking = Asking(taxonomy, self.options, legend)

    @property
    def source(self) -> Source:
        """Model, prompts, taxonomy, parameters and seed of this judge."""
        return Source(
            evaluator="traces.locator",
            version=_VERSION,
            model=self.client.model,
            prompt_sha256=prompts_sha256(),
            parameters={
                **self.options.parameters(),
                "taxonomy": self.taxonomy.sha256,
                "legend": self.legend,
                "endpoint": self.client.transport.endpoint,
            },
            seed=self.options.seed,
        )

    def check(self) -> None:
        """Raises InputError when the context leaves no room for spans, however short the task."""
        self._asking.questions(Run(id="-"))

    def plan(self, run: Run, condensed: Condensed, hints: Sequence[Finding] = ()) -> Plan:
        """What `locate` will ask when nothing has to be repaired or halved; nothing is sent.

        Raises InputError when the context leaves no room for spans.
        """
        layout = self._layout(run, condensed, hints)
        full = "x" * (3 * self.options.summary_tokens) if self.options.summary else ""
        asked = 0
        for question, rows in zip(layout.questions, layout.rows, strict=True):
            for i, row in enumerate(rows):
                carry = Carry(full, full) if i else Carry()
                asked += prompt_tokens(self._asking.part(question, row, carry, 0))
        parts = tuple(len(rows) for rows in layout.rows)
        grades = self.options.grades and bool(condensed.pieces)
        requests = self.options.repeats * sum(parts) + grades
        most = self.options.context - self.options.reply_tokens if grades else 0
        asked = asked * self.options.repeats + most
        return Plan(requests, asked, requests * self.options.reply_tokens, parts, most)

    async def locate(
        self, run: Run, condensed: Condensed, hints: Sequence[Finding] = ()
    ) -> Findings:
        """The errors of a run, its grades, what was said and not taken, and what was not judged.

        `hints` are the findings of exact rules. When no part could be judged, `status` is the
        kind of the first failure and there are no findings, those of rules neither. Raises
        InputError when the context leaves no room for spans, and Unauthorized.
        """
        return (await self.examine(run, condensed, hints)).findings

    async def examine(
        self, run: Run, condensed: Condensed, hints: Sequence[Finding] = (), attempt: int = 0
    ) -> Located:
        """As `locate`, with what it took; `attempt` counts earlier tries, whose replies are not
        taken from the cache."""
        if not condensed.pieces:
            message = "the trace has no spans to read"
            return Located(Findings(trace=run.id, status="unscored:missing", message=message))
        hints, unknown = self._known(run, hints)
        layout = self._layout(run, condensed, hints)
        meter, texts = Meter(self.client, attempt), _Texts(condensed)
        lanes = [
            (Lane(self._asking, question, repeat, meter, texts.flat), rows)
            for question, rows in zip(layout.questions, layout.rows, strict=True)
            for repeat in range(self.options.repeats)
        ]
        found = await together([lane.read(rows) for lane, rows in lanes])
        readings = [reading for lane in found for reading in lane]
        first = range(0, len(lanes), self.options.repeats)
        notes = tuple(
            (question.area or "", lanes[i][0].notes)
            for question, i in zip(layout.questions, first, strict=True)
            if lanes[i][0].notes
        )
        read = _Read(readings, notes, meter, layout.cut)
        findings, ungraded = await self._conclude(run, condensed, hints, read)
        if unknown:
            findings = findings.model_copy(update={"rejected": (*findings.rejected, *unknown)})
        judged = {index for r in readings if r.failed is None for index in r.shown}
        return Located(
            findings=findings,
            usage=meter.usage,
            calls=meter.calls,
            readings=len(readings),
            failed=sum(r.failed is not None for r in readings),
            unread=tuple(p.index for p in condensed.pieces if p.index not in judged),
            cut=layout.cut,
            notes=notes,
            failures=(*sorted({f.status for f in read.failures}), *ungraded),
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
                said = hint.model_dump(mode="json")
                bad.append(Rejected(why="a rule named an unknown span or category", said=said))
            else:
                good.append(hint.model_copy(update={"category": leaf.name}))
        return tuple(good), tuple(bad)

    def _layout(self, run: Run, condensed: Condensed, hints: Sequence[Finding]) -> _Layout:
        lines: dict[str, list[str]] = {}
        for hint in hints:
            text = " ".join(f"{hint.category}: {hint.description or hint.evidence}".split())
            lines.setdefault(hint.span, []).append(shorten(neutralise(text), _LINE))
        questions = self._asking.questions(run)
        rows: list[list[Row]] = []
        cut: dict[str, None] = {}
        for question in questions:
            slices = list(slices_of(condensed.pieces, lines, question.room, self.options.longest))
            cut |= {one.index: None for one in slices if one.note}
            rows.append(list(rows_of(slices, question.room, self.options.overlap)))
        return _Layout(questions, rows, tuple(cut))

    async def _conclude(
        self, run: Run, condensed: Condensed, hints: tuple[Finding, ...], read: _Read
    ) -> tuple[Findings, tuple[FailureStatus, ...]]:
        """The findings, and how the grades failed where they did."""
        failed = read.failures
        rejected = [one for reading in read.readings for one in reading.rejected]
        if len(failed) == len(read.readings):
            message = f"none of {len(failed)} parts could be judged: {failed[0].message}"[:500]
            return Findings(
                trace=run.id, status=failed[0].status, message=message, rejected=tuple(rejected)
            ), ()
        spots = {p.index: Spot(p.span, i) for i, p in enumerate(condensed.pieces)}
        findings, left_out = merge(read.readings, spots, self.taxonomy, self.options)
        if self.options.add_hints:
            findings = with_hints(findings, hints, run, self.taxonomy)
        grades: dict[str, Grade] = {}
        ungraded: tuple[FailureStatus, ...] = ()
        if self.options.grades:
            shown = [*findings, *(() if self.options.add_hints else hints)]
            grades, problems, ungraded = await self._grade(run, condensed, shown, read)
            rejected += problems
        return Findings(
            trace=run.id,
            findings=findings,
            grades=grades,
            rejected=(*rejected, *left_out),
            message=read.message,
        ), ungraded

    async def _grade(
        self, run: Run, condensed: Condensed, findings: Sequence[Finding], read: _Read
    ) -> tuple[dict[str, Grade], list[Rejected], tuple[FailureStatus, ...]]:
        """The grades; those that were not given have no value, and it is said why, with the kind
        of the failure."""
        request = self._grades_request(run, condensed, findings, read)

        def repair(problem: str, text: str) -> Request:
            return self._asking.repair(request, problem, text)

        try:
            answer = await ask(
                read.meter, request, read_grades, repair if self.options.repair else None
            )
        except Unauthorized:
            raise
        except Exception as error:  # noqa: BLE001  grades are missing, findings stay
            status, message = classify(error)
            return {}, [Rejected(why=f"no grades: {status}: {message[:300]}")], (status,)
        return answer.value, [Rejected(why=f"grades: {answer.gap}")] if answer.gap else [], ()

    def _grades_request(
        self, run: Run, condensed: Condensed, findings: Sequence[Finding], read: _Read
    ) -> Request:
        index = {piece.span: piece.index for piece in condensed.pieces}
        ordered = sorted(findings, key=lambda f: (_WEIGHT[f.impact], -(f.confidence or 0)))
        lines = tuple(
            shorten(
                f"{index.get(f.span, '')} {f.category} ({f.impact or 'impact unknown'}): "
                f"{' '.join((f.description or f.evidence).split())}".strip(),
                _LINE,
            )
            for f in ordered
        )
        ending = run.output or condensed.pieces[-1].text
        return self._asking.grades(run, read.notes, Shown(lines, ending, read.message))


@dataclass(frozen=True)
class _Read:
    """All readings of a trace, the last notes, and the meter they ran on."""

    readings: list[Reading]
    notes: tuple[tuple[str, str], ...]
    meter: Meter
    cut: tuple[str, ...]

    @property
    def failures(self) -> list[Failed]:
        return [reading.failed for reading in self.readings if reading.failed is not None]

    @property
    def message(self) -> str:
        """How many parts were not judged or not wholly, and why; "" when all were."""
        said = []
        if kinds := Counter(failed.status for failed in self.failures):
            listed = ", ".join(f"{kind} {n}" for kind, n in sorted(kinds.items()))
            names = _names(r.part for r in self.readings if r.failed is not None)
            said.append(
                f"{len(self.failures)} of {len(self.readings)} parts were not judged "
                f"({listed}): {names}"
            )
        if gaps := [r.part for r in self.readings if r.gap is not None]:
            said.append(f"{len(gaps)} of {len(self.readings)} were judged in part: {_names(gaps)}")
        entries = sum(r.said for r in self.readings)
        taken = sum(len(r.named) for r in self.readings)
        if taken < entries:
            said.append(f"{entries - taken} of {entries} entries of the judge did not hold")
        if self.cut:
            said.append(f"{len(self.cut)} spans were shown without their middle")
        return "; ".join(said)


def _names(parts: Iterable[str]) -> str:
    ordered = sorted(set(parts), key=_by_index)
    more = f" and {len(ordered) - 5} more" if len(ordered) > 5 else ""
    return f"{', '.join(ordered[:5])}{more}"


def _by_index(part: str) -> tuple[int, str]:
    digits = "".join(c for c in part.partition(" ")[0] if c.isdigit())
    return (int(digits) if digits else 0), part


class _Texts:
    """The texts of a trace, flattened when they are asked for; the last few are kept."""

    _most = 32

    def __init__(self, condensed: Condensed) -> None:
        self._pieces: Mapping[str, str] = {p.index: p.text for p in condensed.pieces}
        self._flat: dict[str, str] = {}

    def flat(self, index: str) -> str | None:
        """The text of a span as quotes are compared with it, None for an unknown index."""
        text = self._pieces.get(index)
        if text is None:
            return None
        if index not in self._flat:
            if len(self._flat) >= self._most:
                self._flat.pop(next(iter(self._flat)))
            self._flat[index] = flat(text)
        return self._flat[index]
