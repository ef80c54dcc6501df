"""Finders of errors over traces: what is missing is located, what was found is kept.

A trial is one finder's work on one trace. Its log is the Findings, also where the finder failed:
then it has a status and no findings, and is done again on resume or on `retry_failed`.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from pydantic import JsonValue, ValidationError

from agenteval.errors import InputError, StoreError, Unauthorized
from agenteval.evaluators.base import classify
from agenteval.evaluators.traces.outline import Outline, outline, trace_key
from agenteval.outage import Breaker, run_workers
from agenteval.records import Findings, Run, Usage, content_hash
from agenteval.records.score import INFRASTRUCTURE
from agenteval.store import Store, Trial, TrialCase, Trials, TrialSystem

EVALUATOR = "traces"
_ATTEMPT = "attempt"  # in a log, beside the fields of Findings


@dataclass(frozen=True, slots=True)
class Found:
    """What a finder said of a trace, and what it took."""

    findings: Findings
    usage: Usage = Usage()  # noqa: RUF009  frozen


class Finder(Protocol):
    """Anything that finds errors in traces.

    `parameters` is everything that can change what it finds (model, prompts, taxonomy, options):
    its hash with the name is the key under which findings are stored.
    """

    @property
    def name(self) -> str: ...
    @property
    def parameters(self) -> Mapping[str, JsonValue]: ...
    async def find(self, run: Run, attempt: int = 0) -> Found:
        """The findings; of a trace it could not examine, with a status, or an exception.

        `attempt` counts earlier tries that ended in a failure of content: it is asked afresh.
        """
        ...


def finder_key(finder: Finder) -> str:
    """Content hash (hex) of name and parameters."""
    return content_hash({"name": finder.name, "parameters": dict(finder.parameters)})


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


def case_of(run: Run, load: Callable[[], Run] | None = None) -> TraceCase:
    """The case of a trace; `load` reads it again (default: it is kept)."""
    return TraceCase(trace_key(run), outline(run), load or (lambda: run))


@dataclass(slots=True)
class Progress:
    """Counts while traces are examined; failures by their status."""

    total: int
    calls_done: int = 0
    findings: int = 0
    failures: Counter[str] = field(default_factory=Counter)
    usage: Usage = field(default_factory=Usage)


@dataclass(frozen=True, slots=True)
class Ended:
    """How it ended. `stopped` says why when traces were left out."""

    progress: Progress
    stopped: str | None = None
    left_out: int = 0


@dataclass(frozen=True, slots=True)
class Stored:
    """Findings as stored: by which finder (name distinct among those read, and key), of what."""

    finder: str
    finder_key: str
    trace_key: str
    findings: Findings
    usage: Usage | None
    seconds: float | None


def open_traces(
    store: Store, cases: Sequence[TraceCase], finder: Finder, *, retry_failed: bool = False
) -> list[TraceCase]:
    """The traces that the store lacks findings of by this finder, in their order.

    Raises InputError when two traces have one id but not one content: findings name their trace
    by its id.
    """
    by_key = {case.key: case for case in cases}
    names: dict[str, str] = {}
    for case in cases:
        if names.setdefault(case.trace, case.key) != case.key:
            raise InputError("two different traces have this id", case.trace)
    missing = Trials(store).missing(
        EVALUATOR, list(by_key), finder_key(finder), 1, retry_failed=retry_failed
    )
    return [by_key[key] for key, _ in missing]


async def run_finder(
    store: Store,
    finder: Finder,
    work: Sequence[TraceCase],
    *,
    concurrency: int = 4,
    on_progress: Callable[[Progress], None] = lambda _: None,
) -> Ended:
    """Examine the traces; each counts when its findings are durable.

    Stops early, with a reason, at the budget and when trace after trace fails for the
    infrastructure. Raises Unauthorized, StoreError, and InputError for a trace that is not what
    it was when the case was made; what was stored stays.
    """
    tables = Trials(store)
    key = finder_key(finder)
    tables.add_cases(EVALUATOR, (_stored_case(c) for c in {c.key: c for c in work}.values()))
    tables.add_system(TrialSystem(key=key, name=finder.name, parameters=dict(finder.parameters)))
    attempts = _attempts(tables, key, [case.key for case in work])
    engine = _Engine(tables, finder, key, attempts, Progress(len(work)), on_progress)
    pending = iter(work)
    await run_workers(lambda: engine.work(pending), min(concurrency, len(work)))
    left = len(work) - engine.progress.calls_done
    return Ended(engine.progress, engine.breaker.stopped or engine.breaker.nothing_worked(), left)


@dataclass
class _Engine:
    tables: Trials
    finder: Finder
    key: str
    attempts: Mapping[str, int]
    progress: Progress
    on_progress: Callable[[Progress], None]
    breaker: Breaker = field(default_factory=lambda: Breaker("trace"))

    async def work(self, pending: Iterator[TraceCase]) -> None:
        for case in pending:
            if self.breaker.stopped:
                return
            started = time.time()
            run = await asyncio.to_thread(_same, case)
            found = await find(self.finder, run, self.attempts.get(case.key, 0))
            # Also when the budget broke off the work on a trace: what it has spent must count.
            await self.tables.write_trial(self._trial(case, found, started))
            if found.findings.status == "error:budget":
                self.breaker.stopped = self.breaker.stopped or found.findings.message
                return
            self._count(found)

    def _trial(self, case: TraceCase, found: Found, started: float) -> Trial:
        return Trial(
            evaluator=EVALUATOR,
            system_key=self.key,
            case_key=case.key,
            trial=0,
            case_id=case.trace,
            status=found.findings.status or "done",
            log={
                **found.findings.model_dump(mode="json"),
                _ATTEMPT: self.attempts.get(case.key, 0),
            },
            started=started,
            ended=time.time(),
            usage=found.usage,
        )

    def _count(self, found: Found) -> None:
        said, progress = found.findings, self.progress
        progress.calls_done += 1
        progress.usage = progress.usage + found.usage
        progress.findings += len(said.findings)
        if said.status is not None:
            progress.failures[said.status] += 1
        self.breaker.note(said.message if said.status in INFRASTRUCTURE else None)
        self.on_progress(progress)


def _attempts(tables: Trials, key: str, cases: Sequence[str]) -> dict[str, int]:
    """By trace key, how many tries ended in a failure of content: none of them is repeated.

    Where the infrastructure failed the number stays, so that what was answered is not asked again.
    """
    found = {}
    for trial in tables.trials(EVALUATOR, cases, [key]):
        before = trial.log.get(_ATTEMPT)
        content = trial.status != "done" and trial.status not in INFRASTRUCTURE
        found[trial.case_key] = (before if isinstance(before, int) else 0) + content
    return found


async def find(finder: Finder, run: Run, attempt: int = 0) -> Found:
    """What the finder says of one trace; an exception becomes Findings with its status.

    Raises Unauthorized, which concerns every further trace alike.
    """
    try:
        return await finder.find(run, attempt)
    except Unauthorized:
        raise
    except Exception as error:  # noqa: BLE001  a finder that crashes has found nothing out
        status, message = classify(error)
        spent = getattr(error, "spent", None)
        failed = Findings(trace=run.id, status=status, message=message[:500])
        return Found(failed, spent if isinstance(spent, Usage) else Usage())


def load_findings(
    store: Store, *, traces: Iterable[str] | None = None, finders: Iterable[str] | None = None
) -> list[Stored]:
    """Stored findings (of these trace and finder keys), by finder, then trace key.

    Two finders of one name get a piece of their key behind it. Raises StoreError for a damaged
    row.
    """
    tables = Trials(store)
    known = {system.key: system.name for system in tables.systems(EVALUATOR)}
    often = Counter(known.values())
    names = {k: n if often[n] == 1 else f"{n} [{k[:6]}]" for k, n in known.items()}
    rows = [
        Stored(
            names[t.system_key], t.system_key, t.case_key, _findings(t), t.usage,
            None if t.started is None or t.ended is None else t.ended - t.started,
        )
        for t in tables.trials(EVALUATOR, traces, finders)
    ]  # fmt: skip
    return sorted(rows, key=lambda r: (r.finder, r.trace_key))


def load_outlines(store: Store, traces: Iterable[str] | None = None) -> dict[str, Outline]:
    """Outlines of the stored traces by trace key. Raises StoreError for a damaged one."""
    wanted = None if traces is None else set(traces)
    found = {}
    for case in Trials(store).cases(EVALUATOR):
        if wanted is None or case.key in wanted:
            try:
                found[case.key] = Outline.model_validate(case.body)
            except ValidationError as error:
                raise StoreError(f"the trace {case.id!r} is damaged in the store") from error
    return found


def _findings(trial: Trial) -> Findings:
    try:
        return Findings.model_validate({k: v for k, v in trial.log.items() if k != _ATTEMPT})
    except ValidationError as error:
        raise StoreError(f"the findings of {trial.case_id!r} are damaged in the store") from error


def _stored_case(case: TraceCase) -> TrialCase:
    body = case.outline.model_dump(mode="json", exclude_defaults=True)
    return TrialCase(key=case.key, id=case.trace, body=body)


def _same(case: TraceCase) -> Run:
    run = case.load()
    if trace_key(run) != case.key:
        raise InputError("the trace has changed since it was read; start again", case.trace)
    return run
