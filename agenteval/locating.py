"""Finders of errors over traces: what is missing is located, what was found is kept.

A trial is one finder's work on one trace. Its log is the Findings, also where the finder failed:
then it has a status and no findings, and is done again on resume or on `retry_failed`.
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Protocol

from pydantic import JsonValue, ValidationError

from agenteval.draining import USUAL, Drain
from agenteval.errors import InputError, StoreError, Unauthorized
from agenteval.evaluators.base import classify
from agenteval.evaluators.traces.outline import Outline, outline, trace_key
from agenteval.records import Findings, Run, Usage, content_hash
from agenteval.records.score import INFRASTRUCTURE
from agenteval.store import Store, Trial, TrialCase, Trials, TrialSystem, of_one_state
from agenteval.trialling import Ended, Progress, run_jobs

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
    drain: Drain = USUAL,
) -> Ended:
    """Examine the traces; each counts when its findings are durable.

    Stops early, with a reason, at the budget and when trace after trace fails for the
    infrastructure. Raises Unauthorized, StoreError, and InputError for a trace that is not what
    it was when the case was made; what was stored stays. When it is cancelled, traces under way
    have the time of `drain` to end and be stored (see `run_jobs`).
    """
    tables = Trials(store)
    key = finder_key(finder)
    tables.add_cases(EVALUATOR, (_stored_case(c) for c in {c.key: c for c in work}.values()))
    system = TrialSystem(key=key, name=finder.name, parameters=dict(finder.parameters))
    begun = tables.begin(EVALUATOR, system, [(case.key, 0) for case in work])
    tables.add_system(EVALUATOR, system)
    attempts = attempts_of(tables, key, [case.key for case in work])
    jobs = [partial(_examine, finder, key, case, attempts.get(case.key, 0)) for case in work]
    ended = await run_jobs(
        tables, jobs, what="trace", concurrency=concurrency, on_progress=on_progress, drain=drain
    )
    if not ended.left_out:
        tables.finish(begun)
    return ended


async def _examine(finder: Finder, key: str, case: TraceCase, attempt: int) -> Trial:
    """One trace, read again. What the budget broke off is kept as well: it has spent something."""
    started = time.time()
    found = await find(finder, await asyncio.to_thread(_same, case), attempt)
    said = found.findings
    return Trial(
        evaluator=EVALUATOR,
        system_key=key,
        case_key=case.key,
        trial=0,
        case_id=case.trace,
        status=said.status or "done",
        log={**said.model_dump(mode="json"), _ATTEMPT: attempt},
        started=started,
        ended=time.time(),
        usage=found.usage,
    )


def attempts_of(tables: Trials, key: str, cases: Sequence[str]) -> dict[str, int]:
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


@of_one_state
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
