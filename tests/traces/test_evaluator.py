"""Finders over traces: each trace once, resumed after every kind of end, failures kept apart."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from agenteval.engine import Experiment, ExperimentResult
from agenteval.errors import (
    ReplyError,
    RequestTimeout,
    StoreError,
    Transient,
)
from agenteval.records import Finding, Findings, Run, Span, Usage
from agenteval.store import Store, Trials
from agenteval.traces.evaluator import (
    EVALUATOR,
    FinderResult,
    StoredFindings,
    TraceCase,
    TracesEvaluator,
    case_of,
    load_findings,
)

Answer = Callable[[Run], FinderResult]


class Scripted:
    """A finder that answers as told and counts how often it was asked."""

    def __init__(self, answer: Answer, name: str = "scripted", version: int = 1) -> None:
        self.answer, self.name, self.parameters = answer, name, {"version": version}
        self.asked: list[str] = []
        self.attempts: list[int] = []

    async def find(self, run: Run, attempt: int = 0) -> FinderResult:
        self.asked.append(run.id)
        self.attempts.append(attempt)
        return self.answer(run)


def one_error(run: Run) -> FinderResult:
    finding = Finding(span=run.spans[0].id, category="Goal Deviation")
    usage = Usage(requests=2, prompt_tokens=10, completion_tokens=3, cost=0.5)
    return FinderResult(Findings(trace=run.id, findings=(finding,)), usage)


def raising(error: Exception) -> Answer:
    def answer(run: Run) -> FinderResult:
        raise error

    return answer


def run_of(number: int) -> Run:
    spans = (Span(id=f"s{number}", name="root"), Span(id="x", parent_id=f"s{number}", kind="llm"))
    return Run(id=f"t{number}", input="task", spans=spans)


def cases(n: int) -> list[TraceCase]:
    return [case_of(run_of(i)) for i in range(n)]


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    with Store(tmp_path / "a.db") as opened:
        yield opened


async def go(
    store: Store,
    finder: Scripted,
    all_of: list[TraceCase],
    *,
    retry_failed: bool = False,
    workers: int = 4,
) -> ExperimentResult:
    rated = TracesEvaluator.of(store, all_of, finder)
    work = Experiment(rated, store, concurrency=workers, retry_failed=retry_failed)
    return await work.run()


def left(store: Store, all_of: list[TraceCase], finder: Scripted) -> int:
    return len(Experiment(TracesEvaluator.of(store, all_of, finder), store).pending().units)


def by_trace(store: Store) -> dict[str, StoredFindings]:
    return {one.findings.trace: one for one in load_findings(store)}


@pytest.mark.parametrize(
    ("error", "status", "again"),
    [
        (ReplyError("no JSON"), "unscored:parse", False),
        (RequestTimeout("slow"), "error:timeout", True),
        (Transient("gone"), "error:infrastructure", True),
        (KeyError("a defect"), "error:infrastructure", True),
    ],
)
async def test_failures_are_kept_apart_and_retried_where_that_can_heal(
    store: Store, error: Exception, status: str, again: bool
) -> None:
    await go(store, Scripted(raising(error)), cases(1))
    (stored,) = load_findings(store)
    assert (stored.findings.status, stored.findings.findings) == (status, ())
    healed = Scripted(one_error)
    await go(store, healed, cases(1))
    assert bool(healed.asked) is again
    await go(store, healed, cases(1), retry_failed=True)
    assert len(healed.asked) == 1
    assert by_trace(store)["t0"].findings.status is None


async def test_only_what_failed_in_content_is_asked_afresh(store: Store) -> None:
    kinds = [
        Transient("gone"),
        ReplyError("no JSON"),
        Transient("gone"),
        Transient("gone"),
        ReplyError("no JSON"),
        Transient("gone"),
    ]
    seen = []
    for kind in kinds:
        finder = Scripted(raising(kind))
        await go(store, finder, cases(1), retry_failed=True)
        seen += finder.attempts
    assert seen == [0, 0, 1, 1, 1, 2]


async def test_a_damaged_row_is_no_empty_result(store: Store) -> None:
    await go(store, Scripted(one_error), cases(1))
    tables = Trials(store)
    (trial,) = tables.trials(EVALUATOR)
    wrong = trial.model_copy(update={"log": {"trace": "t0", "finding": []}, "trial": 1})
    await tables.store.save((), wrong)
    with pytest.raises(StoreError, match="damaged"):
        load_findings(store)
