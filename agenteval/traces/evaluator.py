"""Finders of errors over traces: what is missing is located, what was found is kept.

A trial is one finder's work on one trace. Its log is the Findings, also where the finder failed:
then it has a status and no findings, and is done again on resume or on `retry_failed`.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar

from pydantic import JsonValue, ValidationError

from agenteval.engine import Outcome, Requests, Unit
from agenteval.engine.attempts import AttemptEvaluator
from agenteval.errors import InputError, StoreError
from agenteval.records import Criterion, Findings, Record, Run, Usage
from agenteval.records.score import INFRASTRUCTURE
from agenteval.records.trial import Trial, TrialCase, TrialSystem, distinct
from agenteval.store import Store, Trials, of_one_state
from agenteval.traces.finders import TraceFinder, find, finder_key
from agenteval.traces.measures import GRADE_MEASURES, MEASURES, of_findings
from agenteval.traces.outline import Outline, outline, trace_key

EVALUATOR = "traces"
_ATTEMPT = "attempt"  # in a log, beside the fields of Findings


@dataclass(frozen=True, slots=True)
class TraceCase:
    """A trace to be examined: its key, its outline, and where to get all of it again.

    Traces are large: a campaign holds those it works on, not all.
    """

    key: str
    outline: Outline
    load: Callable[[], Run]

    @property
    def trace(self) -> str:
        """Id of the trace."""
        return self.outline.trace

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle with the trace itself: its file may be missing where the case is read."""
        return _loaded, (self.key, self.outline, self.load())


def _loaded(key: str, outline: Outline, run: Run) -> TraceCase:
    return TraceCase(key, outline, lambda: run)


def case_of(run: Run, load: Callable[[], Run] | None = None) -> TraceCase:
    """The case of a trace; `load` reads it again (default: it is kept)."""
    return TraceCase(trace_key(run), outline(run), load or (lambda: run))


@dataclass(frozen=True, slots=True)
class Stored:
    """Findings as stored: by which finder (name distinct among those read, and key), of what."""

    finder: str
    finder_key: str
    trace_key: str
    findings: Findings
    usage: Usage | None
    seconds: float | None


@dataclass(frozen=True)
class TracesEvaluator(AttemptEvaluator[TraceCase]):
    """A finder of errors over traces.

    `attempts` are the earlier tries of each trace whose content could not be used (see
    `attempts_of`): none of them is repeated.
    """

    finder: TraceFinder = field(kw_only=True)
    attempts: Mapping[str, int] = field(kw_only=True)

    noun: ClassVar[str] = "trace"
    measures: ClassVar[tuple[Criterion, ...]] = (*MEASURES, *GRADE_MEASURES.values())
    sends_by_client: ClassVar[bool] = True

    @classmethod
    def of(cls, store: Store, cases: Sequence[TraceCase], finder: TraceFinder) -> TracesEvaluator:
        """Return the evaluator of a finder over these traces.

        Raises InputError when two traces have one id but not one content: findings name their
        trace by its id.
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
        """Return the outline of the trace, as the store keeps it."""
        body = case.outline.model_dump(mode="json", exclude_defaults=True)
        return TrialCase(key=case.key, id=case.trace, body=body)

    def failure_log(self, case: TraceCase, message: str) -> Record:
        """Return findings with the status of the failure."""
        return Findings(trace=case.trace, status="error:infrastructure", message=message)

    def requests(self, unit: Unit[TraceCase]) -> Requests:
        """Return what the finder asks about the trace, read again."""
        return self.finder.requests(unit.content.load())

    async def evaluate(self, unit: Unit[TraceCase]) -> Outcome:
        """Examine one trace, read again. Raises Unauthorized, StoreError, and InputError for a
        trace that has changed since it was read."""
        case, attempt, started = unit.content, self.attempts.get(unit.key, 0), time.time()
        found = await find(self.finder, await asyncio.to_thread(_same, case), attempt)
        findings = found.findings
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
            usage=found.usage,
        )
        return Outcome(of_findings(trial, findings), trial)


def attempts_of(tables: Trials, key: str, cases: Sequence[str]) -> dict[str, int]:
    """By trace key, how many tries ended in a failure of content: none of them is repeated.

    Where the infrastructure failed the number stays, so that what was answered is not asked again.
    """
    stored = {}
    for trial in tables.trials(EVALUATOR, cases, [key]):
        before = trial.log.get(_ATTEMPT)
        content = trial.status != "done" and trial.status not in INFRASTRUCTURE
        stored[trial.case_key] = (before if isinstance(before, int) else 0) + content
    return stored


@of_one_state
def load_findings(
    store: Store, *, traces: Iterable[str] | None = None, finders: Iterable[str] | None = None
) -> list[Stored]:
    """Stored findings (of these trace and finder keys), by finder, then trace key.

    Two finders of one name get what differs between them behind it (see `distinct_names`). Raises
    StoreError for a damaged row.
    """
    tables = Trials(store)
    names = distinct_names(tables.systems(EVALUATOR))
    rows = []
    for t in tables.trials(EVALUATOR, traces, finders):
        seconds = None if t.started is None or t.ended is None else t.ended - t.started
        name = names[t.system_key]
        rows.append(Stored(name, t.system_key, t.case_key, _findings(t), t.usage, seconds))
    return sorted(rows, key=lambda r: (r.finder, r.trace_key))


def distinct_names(systems: Iterable[TrialSystem]) -> dict[str, str]:
    """Names of finders by key. Those of one name are told apart by the options in which they
    differ, at most three, and by a piece of their key where that does not do."""
    alike: dict[str, list[TrialSystem]] = {}
    for system in systems:
        alike.setdefault(system.name, []).append(system)
    names = {}
    for name, group in alike.items():
        options = [dict(_leaves(system.parameters)) for system in group]
        differing = [
            key
            for key in dict.fromkeys(key for chosen in options for key in chosen)
            if len({str(chosen.get(key)) for chosen in options}) > 1
        ]
        for system, own in zip(group, options, strict=True):
            listed = ", ".join(f"{key} {_brief(own.get(key))}" for key in differing[:3])
            names[system.key] = f"{name} [{listed}]" if listed else name
    return distinct(names)


def _leaves(value: JsonValue, name: str = "") -> Iterator[tuple[str, str]]:
    """The single options in a finder's parameters, each by the last part of its name."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _leaves(inner, key)
    else:
        yield name.removesuffix("_sha256"), str(value)


def _brief(value: str | None) -> str:
    """Of a hash its beginning."""
    text = "none" if value is None else value
    return text[:6] if len(text) in (40, 64) and text.isalnum() else text[:30]


def load_outlines(store: Store, traces: Iterable[str] | None = None) -> dict[str, Outline]:
    """Outlines of the stored traces by trace key. Raises StoreError for a damaged one."""
    wanted = None if traces is None else set(traces)
    outlines = {}
    for case in Trials(store).cases(EVALUATOR):
        if wanted is None or case.key in wanted:
            try:
                outlines[case.key] = Outline.model_validate(case.body)
            except ValidationError as error:
                raise StoreError(f"the trace {case.id!r} is damaged in the store") from error
    return outlines


def _findings(trial: Trial) -> Findings:
    try:
        return Findings.model_validate({k: v for k, v in trial.log.items() if k != _ATTEMPT})
    except ValidationError as error:
        raise StoreError(f"the findings of {trial.case_id!r} are damaged in the store") from error


def _same(case: TraceCase) -> Run:
    run = case.load()
    if trace_key(run) != case.key:
        raise InputError("the trace has changed since it was read; start again", case.trace)
    return run
