"""Run finders of errors over traces: examine missing traces and store the findings.

A trial is one finder's work on one trace. Its log is the Findings. If the finder failed, they have
a status and no findings, and the trial is repeated on resume or with `retry_failed`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol

from pydantic import JsonValue, ValidationError

from agenteval.engine import Outcome, Requests, Unit
from agenteval.engine.attempts import AttemptEvaluator
from agenteval.engine.judging import classify
from agenteval.engine.measures import failed, level, levels, number, place
from agenteval.errors import InputError, StoreError, Unauthorized
from agenteval.readers.span_usage import why_not_understood
from agenteval.records import GRADES, Criterion, Findings, Record, Result, Run, Usage, content_hash
from agenteval.records.score import INFRASTRUCTURE
from agenteval.records.trial import Trial, TrialCase, TrialSystem, distinct
from agenteval.store import Store, Trials, of_one_state
from agenteval.traces import detectors
from agenteval.traces.annotations import OVERALL
from agenteval.traces.outline import Outline, outline, trace_key
from agenteval.traces.taxonomy import Taxonomy

EVALUATOR = "traces"
_ATTEMPT = "attempt"  # stored in a log next to the fields of Findings
CLEAN = levels("clean", "Whether nothing was found in the trace.", "no", "yes")
NO_HIGH_IMPACT = levels(
    "no_high_impact", "Whether no error of high impact was found in the trace.", "no", "yes"
)
MEASURES: tuple[Criterion, ...] = (CLEAN, NO_HIGH_IMPACT)
GRADE_MEASURES = {
    name: number(name, "A grade of the whole trace.", 1, 5) for name in (*GRADES, OVERALL)
}


@dataclass(frozen=True, slots=True)
class FinderResult:
    """The findings of one trace, and the usage that was paid for them."""

    findings: Findings
    usage: Usage = Usage()  # noqa: RUF009  frozen


class TraceFinder(Protocol):
    """Anything that finds errors in traces.

    `parameters` is everything that can change the findings (model, prompts, taxonomy, options).
    Findings are stored under a hash of name and parameters.
    """

    @property
    def name(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, JsonValue]: ...
    def requests(self, run: Run) -> Requests:
        """Return the number of requests for a trace, for the dry run."""
        ...

    async def find(self, run: Run, attempt: int = 0) -> FinderResult:
        """Return the findings; they have a status if the trace was not examined.

        May also raise. `attempt` counts earlier tries with an unusable reply; it is part of the
        requests, so that stored replies to earlier tries are not used.
        """
        ...


def finder_key(finder: TraceFinder) -> str:
    """Return the content hash (hex) of name and parameters."""
    return content_hash({"name": finder.name, "parameters": dict(finder.parameters)})


async def find(finder: TraceFinder, run: Run, attempt: int = 0) -> FinderResult:
    """Return the findings of one trace; an exception becomes Findings with a status.

    A trace that the readers did not understand is not examined, and has a status as well.

    Raises Unauthorized, because all further traces would fail too.
    """
    if why := why_not_understood(run):
        return FinderResult(not_examined(run, why))
    try:
        return await finder.find(run, attempt)
    except Unauthorized:
        raise
    except Exception as error:  # noqa: BLE001  a crash of a finder is a failure of this trace
        status, message = classify(error)
        spent = getattr(error, "spent", None)
        failed = Findings(trace=run.id, status=status, message=message[:500])
        return FinderResult(failed, spent if isinstance(spent, Usage) else Usage())


def not_examined(run: Run, why: str) -> Findings:
    """Return findings with a status, for a trace that the readers did not understand."""
    return Findings(trace=run.id, status="unscored:unsupported", message=why[:500])


def detected(run: Run, taxonomy: Taxonomy) -> Findings:
    """Return the findings of the detectors on a run."""
    if why := why_not_understood(run):
        return not_examined(run, why)
    return Findings(trace=run.id, findings=detectors.detect(run, taxonomy))


@dataclass(frozen=True)
class DetectorsFinder:
    """The detectors (`detectors.detect`)."""

    taxonomy: Taxonomy

    @property
    def name(self) -> str:
        return "detectors"

    @property
    def parameters(self) -> Mapping[str, JsonValue]:
        return {"rules": detectors.detectors_key(), "taxonomy": self.taxonomy.sha256}

    def requests(self, run: Run) -> Requests:
        """Detectors send no requests."""
        return {}

    async def find(self, run: Run, attempt: int = 0) -> FinderResult:
        """Return the findings; none if the taxonomy lacks the detector's category."""
        return FinderResult(await asyncio.to_thread(detected, run, self.taxonomy))


@dataclass(frozen=True, slots=True)
class TraceCase:
    """A trace to examine: its key, its outline, and a function that reads it again.

    Traces are large, so only those being examined are in memory.
    """

    key: str
    outline: Outline
    load: Callable[[], Run]

    @property
    def trace(self) -> str:
        """Id of the trace."""
        return self.outline.trace

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the trace itself, because its file may be missing in the other process."""
        return _loaded, (self.key, self.outline, self.load())


def _loaded(key: str, outline: Outline, run: Run) -> TraceCase:
    return TraceCase(key, outline, lambda: run)


def case_of(run: Run, load: Callable[[], Run] | None = None) -> TraceCase:
    """Return the case of a trace; without `load`, the run stays in memory."""
    return TraceCase(trace_key(run), outline(run), load or (lambda: run))


@dataclass(frozen=True, slots=True)
class StoredFindings:
    """The stored findings of one trace, with distinct names of finders (see `distinct_names`)."""

    finder: str
    trace_key: str
    findings: Findings


@dataclass(frozen=True)
class TracesEvaluator(AttemptEvaluator[TraceCase]):
    """A finder of errors over traces; `attempts` by trace key are those of `attempts_of`."""

    finder: TraceFinder = field(kw_only=True)
    attempts: Mapping[str, int] = field(kw_only=True)

    noun: ClassVar[str] = "trace"
    measures: ClassVar[tuple[Criterion, ...]] = (*MEASURES, *GRADE_MEASURES.values())
    sends_by_client: ClassVar[bool] = True

    @classmethod
    def of(cls, store: Store, cases: Sequence[TraceCase], finder: TraceFinder) -> TracesEvaluator:
        """Return the evaluator of a finder over these traces.

        Raises InputError for different traces with the same id, because findings refer to it.
        """
        by_key = {case.key: case for case in cases}
        names: dict[str, str] = {}
        for case in cases:
            if names.setdefault(case.trace, case.key) != case.key:
                raise InputError("two different traces have this id", case.trace)
        key = finder_key(finder)
        system = TrialSystem(key=key, name=finder.name, parameters=dict(finder.parameters))
        attempts = attempts_of(Trials(store), key, list(by_key))
        return cls(EVALUATOR, system, by_key, 1, finder=finder, attempts=attempts)

    def stored_case(self, key: str, case: TraceCase) -> TrialCase:
        """Return the outline of the trace as a stored case."""
        body = case.outline.model_dump(mode="json", exclude_defaults=True)
        return TrialCase(key=case.key, id=case.trace, body=body)

    def failure_log(self, case: TraceCase, message: str) -> Record:
        """Return findings with the status of the failure."""
        return Findings(trace=case.trace, status="error:infrastructure", message=message)

    def requests(self, unit: Unit[TraceCase]) -> Requests:
        """Read the trace again and return the finder's requests for it."""
        run = unit.content.load()
        return {} if why_not_understood(run) else self.finder.requests(run)

    async def evaluate(self, unit: Unit[TraceCase]) -> Outcome:
        """Read one trace again and examine it.

        Raises Unauthorized, StoreError, and InputError for a trace that has changed.
        """
        case, attempt, started = unit.content, self.attempts.get(unit.key, 0), time.time()
        run = await asyncio.to_thread(case.load)
        if await asyncio.to_thread(trace_key, run) != case.key:
            raise InputError(
                "the trace has changed since it was read; run the command again", case.trace
            )
        result = await find(self.finder, run, attempt)
        findings = result.findings
        trial = Trial(
            evaluator=EVALUATOR,
            system_key=self.system.key,
            case_key=case.key,
            trial=0,
            case_id=case.trace,
            status=findings.status or "done",
            log={**findings.model_dump(mode="json"), _ATTEMPT: attempt},
            started=started,
            ended=time.time(),
            usage=result.usage,
        )
        return Outcome(of_findings(trial, findings), trial)


def of_findings(trial: Trial, findings: Findings) -> tuple[Result, ...]:
    """Return the results of a trace: whether it has no errors, and its grades."""
    if findings.status is not None:
        return failed(trial, MEASURES, findings.status, findings.message)
    high = any(finding.impact == "HIGH" for finding in findings.findings)
    grades = [
        place(trial, GRADE_MEASURES[name], grade.value)
        for name, grade in findings.grades.items()
        if name in GRADE_MEASURES and grade.value is not None
    ]
    return (
        level(trial, CLEAN, not findings.findings),
        level(trial, NO_HIGH_IMPACT, not high),
        *grades,
    )


def attempts_of(tables: Trials, key: str, cases: Sequence[str]) -> dict[str, int]:
    """Return by trace key the number of tries with an unusable reply, which must not be reused.

    Failures of the infrastructure do not count, so that stored replies are used.
    """
    attempts = {}
    for trial in tables.trials(EVALUATOR, cases, [key]):
        before = trial.log.get(_ATTEMPT)
        repeat = trial.status != "done" and trial.status not in INFRASTRUCTURE
        attempts[trial.case_key] = (before if isinstance(before, int) else 0) + repeat
    return attempts


@of_one_state
def load_findings(
    store: Store, *, traces: Iterable[str] | None = None, finders: Iterable[str] | None = None
) -> list[StoredFindings]:
    """Return stored findings (of these trace and finder keys), by finder, then trace key.

    Raises StoreError for a damaged row.
    """
    tables = Trials(store)
    names = distinct_names(tables.systems(EVALUATOR))
    rows = []
    for trial in tables.trials(EVALUATOR, traces, finders):
        log = {key: value for key, value in trial.log.items() if key != _ATTEMPT}
        try:
            findings = Findings.model_validate(log)
        except ValidationError as error:
            what = f"the findings of {trial.case_id!r} are damaged in the store"
            raise StoreError(what) from error
        rows.append(StoredFindings(names[trial.system_key], trial.case_key, findings))
    return sorted(rows, key=lambda row: (row.finder, row.trace_key))


def distinct_names(systems: Iterable[TrialSystem]) -> dict[str, str]:
    """Return names of finders by key.

    Finders with the same name get up to three options in which they differ, and part of their key
    if that is not enough.
    """
    by_name: dict[str, list[TrialSystem]] = {}
    for system in systems:
        by_name.setdefault(system.name, []).append(system)
    names = {}
    for name, group in by_name.items():
        options = [dict(_leaves(system.parameters)) for system in group]
        differing = [
            key
            for key in dict.fromkeys(key for of_system in options for key in of_system)
            if len({str(of_system.get(key)) for of_system in options}) > 1
        ]
        for system, of_system in zip(group, options, strict=True):
            listed = ", ".join(f"{key} {_brief(of_system.get(key))}" for key in differing[:3])
            names[system.key] = f"{name} [{listed}]" if listed else name
    return distinct(names)


def _leaves(value: JsonValue, name: str = "") -> Iterator[tuple[str, str]]:
    """Yield the single options in a finder's parameters, each with the last part of its name."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, key)
    else:
        yield name.removesuffix("_sha256"), str(value)


def _brief(value: str | None) -> str:
    """Shorten a hash in an option."""
    text = "none" if value is None else value
    return text[:6] if len(text) in (40, 64) and text.isalnum() else text[:30]


def load_outlines(store: Store, traces: Iterable[str] | None = None) -> dict[str, Outline]:
    """Return outlines of stored traces by trace key. Raises StoreError for a damaged one."""
    keys = None if traces is None else set(traces)
    outlines = {}
    for case in Trials(store).cases(EVALUATOR):
        if keys is None or case.key in keys:
            try:
                outlines[case.key] = Outline.model_validate(case.body)
            except ValidationError as error:
                raise StoreError(f"the trace {case.id!r} is damaged in the store") from error
    return outlines
