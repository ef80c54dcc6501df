"""The engine of trials: each is kept once, and what is broken ends the run with a reason."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path

import pytest

from agenteval.errors import Unauthorized
from agenteval.evaluators.base import Progress
from agenteval.evaluators.trials import TrialOutcome, TrialPlan
from agenteval.experiment import Ended, Experiment
from agenteval.records import FailureStatus, Usage
from agenteval.store import Store, Trial, TrialCase, Trials, TrialSystem

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
        evaluator=NAME, system_key=SYSTEM, case_key=f"{number:064x}", trial=0,
        case_id=f"case {number}", status=status or "done", log=log,
        usage=Usage(requests=requests),
    )  # fmt: skip
    return made if status else made.judged(CHECK, "pass")


Job = Callable[[], Awaitable[TrialOutcome]]


def job(made: Trial | TrialOutcome | Exception, ran: list[str] | None = None) -> Job:
    async def do() -> TrialOutcome:
        if ran is not None:
            ran.append("ran")
        if isinstance(made, Exception):
            raise made
        return made if isinstance(made, TrialOutcome) else TrialOutcome(made)

    return do


def plan_of(jobs: list[Job], grace: float = 30.0) -> TrialPlan[Job]:
    """Trials that are what the jobs say."""

    async def act(unit: Job) -> TrialOutcome:
        return await unit()

    system = TrialSystem(key=SYSTEM, name="one", parameters={})
    return TrialPlan(NAME, system, [], jobs, [], [], act, grace=grace)


def run(tables: Trials, jobs: list[Job], concurrency: int = 1) -> Ended:
    return asyncio.run(Experiment(plan_of(jobs), tables._store, workers=concurrency).run())


def statuses(tables: Trials) -> list[str]:
    return [t.status for t in tables.trials(NAME)]


def test_each_trial_is_stored_and_counted_once(tables: Trials) -> None:
    seen: list[int] = []

    def watch(progress: Progress) -> None:
        seen.append(progress.done)
        assert len(statuses(tables)) >= progress.done  # durable before it counts

    jobs = [job(trial(0)), job(trial(1, "unscored:parse")), job(TrialOutcome(trial(2)))]
    ended = asyncio.run(Experiment(plan_of(jobs), tables._store, workers=1).run(watch))
    assert seen == [1, 2, 3]
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
    # It was no trial: the next run does it, and what it took before is not forgotten.
    assert tables.missing(NAME, [f"{i:064x}" for i in range(3)], SYSTEM, 1) == [
        (f"{1:064x}", 0), (f"{2:064x}", 0),
    ]  # fmt: skip
    run(tables, [job(trial(1, requests=2))])
    assert tables.usage(NAME, SYSTEM).requests == 8


def test_judges_that_fail_one_after_the_other_end_it(tables: Trials) -> None:
    ran: list[str] = []
    jobs = [
        job(TrialOutcome(trial(i), failure=("error:infrastructure", "no judge")), ran)
        for i in range(12)
    ]
    ended = run(tables, jobs)
    assert len(ran) == 8
    assert ended.stopped == "8 trials in a row failed: no judge"
    assert ended.left_out == 4
    assert ended.progress.failures == {"judge error:infrastructure": 8}
    assert statuses(tables) == ["done"] * 8


def test_what_is_stored_already_is_not_written_again(tables: Trials) -> None:
    asyncio.run(tables.write_trial(trial(0, "error:timeout", 3)))
    # A second write would replace the failure and add up what it took.
    run(tables, [job(TrialOutcome(trial(0, requests=3), stored=True))])
    assert statuses(tables) == ["error:timeout"]
    assert tables.usage(NAME, SYSTEM).requests == 3


def test_what_a_job_raises_is_raised_and_what_is_done_stays(tables: Trials) -> None:
    with pytest.raises(Unauthorized, match="refused"):
        run(tables, [job(trial(0)), job(Unauthorized("refused")), job(trial(1))])
    assert statuses(tables) == ["done"]


async def _cancelled(
    tables: Trials,
    plan: TrialPlan[Job],
    begun: asyncio.Event,
    tell: Callable[[str], None],
    concurrency: int = 1,
) -> None:
    """An experiment, cancelled as Ctrl-C does it when `begun` is set."""
    experiment = Experiment(plan, tables._store, workers=concurrency, on_interrupt=tell)
    work = asyncio.create_task(experiment.run())
    await begun.wait()
    work.cancel()
    with pytest.raises(asyncio.CancelledError):
        await work


def test_interrupted_what_is_under_way_is_stored_and_nothing_else_begun(tables: Trials) -> None:
    told: list[str] = []
    ran: list[str] = []

    async def work() -> None:
        begun, go = asyncio.Event(), asyncio.Event()

        async def slow() -> TrialOutcome:
            begun.set()
            await go.wait()
            return TrialOutcome(trial(0))

        def tell(line: str) -> None:
            told.append(line)
            go.set()  # it ends only after the interrupt

        jobs: list[Job] = [slow, job(trial(1), ran)]
        await _cancelled(tables, plan_of(jobs), begun, tell)

    asyncio.run(work())
    assert statuses(tables) == ["done"]
    assert ran == []
    assert told == [
        "interrupted: finishing 1 trial under way, for at most 30 s; once more ends it at once"
    ]


def test_what_does_not_end_in_time_is_no_failure_and_is_run_again(tables: Trials) -> None:
    told: list[str] = []

    async def work() -> None:
        begun = asyncio.Event()

        async def endless() -> TrialOutcome:
            begun.set()
            await asyncio.Event().wait()
            raise AssertionError

        await _cancelled(tables, plan_of([endless] * 3, grace=0.0), begun, told.append, 2)

    asyncio.run(work())
    assert statuses(tables) == []
    assert told[1:] == ["2 trials broken off: not stored, to be run again"]
    run(tables, [job(trial(0))])
    assert statuses(tables) == ["done"]


def test_what_is_raised_while_it_winds_down_is_raised(tables: Trials) -> None:
    async def work() -> None:
        begun, go = asyncio.Event(), asyncio.Event()

        async def refused() -> TrialOutcome:
            begun.set()
            await go.wait()
            raise Unauthorized("refused")

        running = asyncio.create_task(
            Experiment(plan_of([refused]), tables._store, on_interrupt=lambda _: go.set()).run()
        )
        await begun.wait()
        running.cancel()
        await running

    with pytest.raises(Unauthorized, match="refused"):
        asyncio.run(work())
