"""The engine of trials: each is kept once, and what is broken ends the run with a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from agenteval.engine import Experiment, ExperimentResult, Outcome, Progress, Requests, Unit
from agenteval.engine.attempts import AttemptEvaluator
from agenteval.errors import Unauthorized
from agenteval.records import FailureStatus, Usage
from agenteval.records.trial import Trial, TrialCase, TrialSystem
from agenteval.store import Store, Trials

NAME, SYSTEM, CHECK = "unit", "a" * 64, "c" * 64


@pytest.fixture
def tables(tmp_path: Path) -> Iterator[Trials]:
    with Store(tmp_path / "s.db") as store:
        found = Trials(store)
        found.add_cases(
            NAME, [TrialCase(key=f"{i:064x}", id=f"case {i}", body={}) for i in range(40)]
        )
        found.add_system(NAME, TrialSystem(key=SYSTEM, name="one", parameters={}))
        yield found


def trial(number: int, status: FailureStatus | None = None, requests: int = 1) -> Trial:
    log = {"message": f"message {number}"} if status else {"said": number}
    made = Trial(
        evaluator=NAME,
        system_key=SYSTEM,
        case_key=f"{number:064x}",
        trial=0,
        case_id=f"case {number}",
        status=status or "done",
        log=log,
        usage=Usage(requests=requests),
    )
    return made if status else made.judged(CHECK, "pass")


Job = Callable[[], Awaitable[Outcome]]


def job(made: Trial | Outcome | Exception, ran: list[str] | None = None) -> Job:
    async def do() -> Outcome:
        if ran is not None:
            ran.append("ran")
        if isinstance(made, Exception):
            raise made
        return made if isinstance(made, Outcome) else Outcome((), made)

    return do


class Scripted(AttemptEvaluator[Job]):
    """Attempts whose outcomes are what the jobs say."""

    def stored_case(self, key: str, case: Job) -> TrialCase:
        return TrialCase(key=key, id=key, body={})

    def requests(self, unit: Unit[Job]) -> Requests:
        return {}

    async def evaluate(self, unit: Unit[Job]) -> Outcome:
        return await unit.content()


def experiment(
    tables: Trials, jobs: list[Job], grace: float = 30.0, **more: Any
) -> Experiment[Job]:
    system = TrialSystem(key=SYSTEM, name="one", parameters={})
    evaluator = Scripted(NAME, system, {f"{i:064x}": job for i, job in enumerate(jobs)}, 1)
    evaluator.__class__.grace = grace
    return Experiment(evaluator, tables.store, announce=False, **more)


def run(tables: Trials, jobs: list[Job], concurrency: int = 1) -> ExperimentResult:
    return asyncio.run(experiment(tables, jobs, concurrency=concurrency).run())


def statuses(tables: Trials) -> list[str]:
    return [t.status for t in tables.trials(NAME)]


def test_each_trial_is_stored_and_counted_once(tables: Trials) -> None:
    seen: list[int] = []

    def watch(progress: Progress) -> None:
        seen.append(progress.done)
        assert len(statuses(tables)) >= progress.done  # durable before it counts

    jobs = [job(trial(0)), job(trial(1, "unscored:parse")), job(Outcome((), trial(2)))]
    ended = asyncio.run(experiment(tables, jobs, concurrency=1).run(watch))
    assert seen == [0, 1, 2, 3]
    assert ended.progress.outcomes == {"pass": 2, "unscored:parse": 1}
    assert ended.progress.failures == {"unscored:parse": 1}
    assert ended.progress.usage.requests == 3
    assert (ended.stopped, ended.left_out) == (None, 0)
    assert sorted(statuses(tables)) == ["done", "done", "unscored:parse"]


def test_the_budget_ends_it_and_what_was_spent_is_kept(tables: Trials) -> None:
    ran: list[str] = []
    jobs = [job(trial(0), ran), job(trial(1, "error:budget", 5), ran), job(trial(2), ran)]
    ended = run(tables, jobs)
    assert len(ran) == 2
    assert (ended.stopped, ended.left_out) == ("message 1", 2)
    assert tables.usage(NAME, SYSTEM).requests == 6
    # It was not an attempt: the next run makes it, and what it spent before still counts.
    again = [job(trial(0), ran), job(trial(1, requests=2), ran), job(trial(2), ran)]
    run(tables, again)
    assert len(ran) == 4
    assert tables.usage(NAME, SYSTEM).requests == 9


def test_judges_that_fail_one_after_the_other_end_it(tables: Trials) -> None:
    ran: list[str] = []
    jobs = [
        job(Outcome((), trial(i), failure=("error:infrastructure", "no judge")), ran)
        for i in range(12)
    ]
    ended = run(tables, jobs)
    assert len(ran) == 8
    assert ended.stopped == "8 trials in a row failed: no judge"
    assert ended.left_out == 4
    assert ended.progress.failures == {"judge error:infrastructure": 8}
    assert statuses(tables) == ["done"] * 8


def test_a_verdict_alone_leaves_the_attempt_as_it_is(tables: Trials) -> None:
    asyncio.run(tables.store.save((), trial(0, requests=3)))
    judged = trial(0, requests=3).judged("d" * 64, "fail")
    run(tables, [job(Outcome((), judged, verdict_only=True))])
    assert statuses(tables) == ["done"]  # settled: not evaluated again
    assert tables.usage(NAME, SYSTEM).requests == 3


def test_what_a_job_raises_is_raised_and_what_is_done_stays(tables: Trials) -> None:
    with pytest.raises(Unauthorized, match="refused"):
        run(tables, [job(trial(0)), job(Unauthorized("refused")), job(trial(1))])
    assert statuses(tables) == ["done"]


async def _cancelled(work: Experiment[Job], begun: asyncio.Event) -> None:
    """An experiment, cancelled as Ctrl-C does it when `begun` is set."""
    running = asyncio.create_task(work.run())
    await begun.wait()
    running.cancel()
    with pytest.raises(asyncio.CancelledError):
        await running


def test_interrupted_what_is_under_way_is_stored_and_nothing_else_begun(tables: Trials) -> None:
    told: list[str] = []
    ran: list[str] = []

    async def work() -> None:
        begun, go = asyncio.Event(), asyncio.Event()

        async def slow() -> Outcome:
            begun.set()
            await go.wait()
            return Outcome((), trial(0))

        def tell(line: str) -> None:
            told.append(line)
            go.set()  # it ends only after the interrupt

        jobs: list[Job] = [slow, job(trial(1), ran)]
        await _cancelled(experiment(tables, jobs, concurrency=1, notify=tell), begun)

    asyncio.run(work())
    assert statuses(tables) == ["done"]
    assert ran == []
    assert told == [
        "interrupted: finishing 1 trial in progress, for at most 30 s; "
        "interrupt again to stop at once"
    ]


def test_what_does_not_end_in_time_is_no_failure_and_is_run_again(tables: Trials) -> None:
    told: list[str] = []

    async def work() -> None:
        begun = asyncio.Event()

        async def endless() -> Outcome:
            begun.set()
            await asyncio.Event().wait()
            raise AssertionError

        work = experiment(tables, [endless] * 3, 0.0, concurrency=2, notify=told.append)
        await _cancelled(work, begun)

    asyncio.run(work())
    assert statuses(tables) == []
    assert told[1:] == ["2 trials stopped: not stored, to be run again"]
    run(tables, [job(trial(0))])
    assert statuses(tables) == ["done"]


def test_what_is_raised_while_it_winds_down_is_raised(tables: Trials) -> None:
    async def work() -> None:
        begun, go = asyncio.Event(), asyncio.Event()

        async def refused() -> Outcome:
            begun.set()
            await go.wait()
            raise Unauthorized("refused")

        running = asyncio.create_task(
            experiment(tables, [refused], notify=lambda _: go.set()).run()
        )
        await begun.wait()
        running.cancel()
        await running

    with pytest.raises(Unauthorized, match="refused"):
        asyncio.run(work())
