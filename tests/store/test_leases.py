"""Leases: a unit is with one worker, a late result is refused, caps hold for all together."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Literal

import pytest
from sqlalchemy import text

from agenteval.engine import Outcome, Progress
from agenteval.errors import BudgetExceeded, LeaseLost
from agenteval.evaluators.base import Unit
from agenteval.records import Source
from agenteval.store import Store
from agenteval.store.leases import Job, live_jobs
from agenteval.workers import Leader, Places
from tests.store.making import criteria, items, scores
from tests.support.postgres import Server, postgres_server, why_not

JUDGE = Source(evaluator="test", version="1", model="m")
UNITS = [f"u{n}" for n in range(10)]


@pytest.fixture(scope="module")
def server() -> Iterator[Server | None]:
    if why_not() is not None:
        yield None
        return
    with postgres_server() as running:
        yield running


@pytest.fixture(params=["file", "postgresql"])
def store(request: pytest.FixtureRequest, tmp_path: Path, server: Server | None) -> Iterator[Store]:
    if request.param == "postgresql" and server is None:
        pytest.skip(str(why_not()))
    place = tmp_path / "s.db" if server is None or request.param == "file" else server.database()
    with Store(place) as opened:
        yield opened


def begun(store: Store, *, seconds: float = 30.0, key: str = "j") -> Job:
    job = Job(store.engine, key, seconds=seconds)
    job.begin(["quantify", "--", "runs.jsonl"], "package")
    job.open_stage(["s"], UNITS)
    return job


def judged(store: Store) -> Outcome:
    """The result of a call, on a run that the store knows."""
    runs, some = items(1), criteria(1)
    store.register(runs, some, JUDGE)
    return scores(Unit(*runs[0], tuple(some)), JUDGE)


def units(job: Job, worker: str, most: int) -> list[str]:
    return [leased.unit for leased in job.lease(worker, "s", most)]


def test_each_unit_is_with_one_worker(store: Store) -> None:
    job = begun(store)
    assert units(job, "a", 4) == UNITS[:4]
    assert units(job, "b", 4) == UNITS[4:8]
    assert units(job, "a", 4) == UNITS[8:]
    assert units(job, "b", 4) == []
    assert job.undone("s") == 10
    assert job.undone("another") == 0


def test_many_at_once_share_all_of_it(store: Store) -> None:
    job = begun(store)
    job.open_stage(["s"], [f"v{n}" for n in range(300)])
    with ThreadPoolExecutor(6) as pool:
        taken = [*pool.map(lambda n: units(job, f"w{n % 6}", 7), range(60))]
    flat = [unit for some in taken for unit in some]
    assert (len(flat), len(set(flat))) == (310, 310)


def test_a_lease_that_ran_out_goes_to_another_and_the_late_result_is_refused(store: Store) -> None:
    job = begun(store, seconds=0.2)
    outcome = judged(store)
    (first,) = job.lease("slow", "s", 1)
    assert units(job, "quick", 1) == ["u1"]
    time.sleep(0.25)
    again = job.lease("quick", "s", 1)
    assert [(leased.unit, leased.epoch) for leased in again] == [("u0", 2)]
    with pytest.raises(LeaseLost):
        asyncio.run(outcome.keep(store, job.finishing("slow", "s", first)))
    assert not [*store.results(JUDGE.sha256)]
    asyncio.run(outcome.keep(store, job.finishing("quick", "s", again[0])))
    assert len([*store.results(JUDGE.sha256)]) == 1
    assert job.undone("s") == 9
    with pytest.raises(LeaseLost):  # done is done
        store.submit(job.finishing("quick", "s", again[0])).result()


def test_of_units_written_together_only_the_late_one_is_refused(store: Store) -> None:
    job = begun(store)
    mine = job.lease("a", "s", 3)
    job.release("a")
    (kept, *_) = job.lease("a", "s", 1)
    written = [store.submit(job.finishing("a", "s", one)) for one in (*mine, kept)]
    lost = [isinstance(one.exception(), LeaseLost) for one in written]
    assert lost == [True, True, True, False]


def test_who_lives_keeps_what_it_holds(store: Store) -> None:
    job = begun(store, seconds=0.3)
    job.lease("a", "s", 2)
    for _ in range(4):
        time.sleep(0.15)
        job.beat("a", "process 1", {})
        job.live()
    assert units(job, "b", 3) == ["u2", "u3", "u4"]
    assert [(w.worker, w.alive) for w in job.workers()] == [("a", True)]
    time.sleep(0.35)
    assert [w.alive for w in job.workers()] == [False]
    assert units(job, "c", 2) == ["u0", "u1"]
    assert not job.state().leader


def test_what_is_given_back_is_free_at_once(store: Store) -> None:
    job = begun(store)
    job.beat("a", "process 1", {"stage": "s"}, stopped="the cap")
    job.lease("a", "s", 6)
    job.release("a")
    assert units(job, "b", 10) == UNITS
    assert [(w.alive, w.stopped, w.counts) for w in job.workers()] == [
        (False, "the cap", {"stage": "s"})
    ]


def test_a_job_is_found_while_its_leader_lives(store: Store) -> None:
    assert live_jobs(store.engine) == []
    job = begun(store)
    assert live_jobs(store.engine) == [("j", ["quantify", "--", "runs.jsonl"], "package")]
    job.drain()
    assert (job.state().state, live_jobs(store.engine)) == ("draining", [])
    job.end()
    assert job.state().state == "ended"
    begun(store, key="k")
    with store.engine.connect() as connection:
        assert connection.execute(text("SELECT job FROM jobs")).scalars().all() == ["k"]
    assert (job.state().state, Job(store.engine, "k").state().stages) == ("ended", ("s",))


def test_workers_together_reach_the_cap_and_never_pass_it(store: Store) -> None:
    job = begun(store)
    job.cap(0, 40, 1.0)
    job.cap(0, 90, 9.0)  # who comes later changes nothing

    def spend(_: int) -> int:
        granted = 0
        while True:
            try:
                granted += job.grant_calls(0, 1000)
            except BudgetExceeded:
                return granted

    with ThreadPoolExecutor(4) as pool:
        assert sum(pool.map(spend, range(4))) == 960
    job.give_back(0, 5, 0.0)
    assert job.grant_calls(0, 1000) == 1


def test_money_is_granted_for_one_call_at_least(store: Store) -> None:
    job = begun(store)
    job.cap(0, 0, 0.5)
    assert job.grant_cost(0, 0.1, 4.5) == pytest.approx(4 / 32)
    assert job.grant_cost(0, 3.0, 4.5) == 3.0
    with pytest.raises(BudgetExceeded, match=r"the cap of 4\.5, of all workers, is reached"):
        job.grant_cost(0, 1.0, 4.5)
    job.give_back(0, 0, 2.5)
    assert job.grant_cost(0, 1.0, 4.5) == 1.0


def test_of_a_job_that_was_removed_nothing_is_taken_for_done(store: Store) -> None:
    class Nowhere(Places):
        def spawn(self, words: Sequence[str], store: str) -> None:
            job = Job(opened.engine, leader.known.key)
            job.end()  # as another command does, a day after the last sign of life

        def ended(self, one: Any) -> Literal["", "ended", "killed"]:
            return ""

        def kill(self, one: Any) -> None:
            pass

    opened, progress = store, Progress(len(UNITS))
    leader = Leader(["quantify"], "package", Nowhere(1, 1))
    leader.bind(store)
    stage, left = leader.begin("a plan", UNITS)
    told = asyncio.run(leader.watch(stage, progress, lambda _: None, lambda _: None))
    leader.kill()
    leader.end()
    assert (left, progress.done) == (len(UNITS), 0)
    assert told == "another command took this one for dead"
