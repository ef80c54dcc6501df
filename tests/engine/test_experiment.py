"""Plan exactly what is missing, keep everything that came, stop for good reasons only."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agenteval.engine import ExperimentResult, Outcome, Progress
from agenteval.engine.judging import JudgeUnit
from agenteval.errors import BudgetExceeded, StoreError, Transient, Unauthorized
from agenteval.store import Store
from agenteval.store.export import export_cells
from tests.store.making import ScriptedJudge, criteria, experiment, failures, items, left, scores


def run(
    store: Store,
    judge: ScriptedJudge,
    *,
    runs: int = 6,
    n: int = 2,
    repeats: int = 1,
    retry: bool = False,
    workers: int = 3,
) -> ExperimentResult:
    work = experiment(
        judge,
        items(runs),
        criteria(n),
        store,
        repeats=repeats,
        retry_failed=retry,
        concurrency=workers,
    )
    return asyncio.run(work.run())


def asked(judge: ScriptedJudge) -> set[tuple[str, str, int]]:
    cells = [(u.run.id, c.id, u.repeat) for u in judge.seen for c in u.criteria]
    assert len(set(cells)) == len(cells), "a cell was judged twice"
    return set(cells)


ALL = [(f"run-{r}", f"quality-{c}", p) for r in range(4) for c in range(3) for p in range(2)]


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(done=st.sets(st.sampled_from(ALL)), one_per_call=st.booleans())
def test_a_resume_asks_exactly_what_is_missing(
    tmp_path_factory: pytest.TempPathFactory, done: set[tuple[str, str, int]], one_per_call: bool
) -> None:
    judge = ScriptedJudge(one_per_call=one_per_call)
    with Store(tmp_path_factory.mktemp("resume") / "s.db") as store:
        store.register(items(4), criteria(3), judge.source)
        for r, view in items(4):
            for repeat in range(2):
                kept = tuple(c for c in criteria(3) if (r.id, c.id, repeat) in done)
                if kept:
                    o = scores(JudgeUnit(r, view, kept, repeat), judge.source)
                    store.save_soon(o.results, o.call)
        store.register([], [], judge.source)  # everything queued before is durable now
        plan = left(judge, items(4), criteria(3), store, repeats=2)
        assert (plan.cells, plan.done, plan.failed, plan.open) == (24, len(done), 0, 24 - len(done))
        work = experiment(judge, items(4), criteria(3), store, repeats=2, concurrency=3)
        ended = asyncio.run(work.run())
        assert ended == ExperimentResult(ended.progress, None, 0)
        assert ended.progress.scored == 24 - len(done)
        assert asked(judge) == set(ALL) - done
        assert len(dict(store.states(judge.source.sha256))) == 24
        again = left(judge, items(4), criteria(3), store, repeats=2)
        assert (again.units, again.done) == ([], 24)


@pytest.mark.parametrize("change", [{"seed": 1}, {"model": "other"}, {"prompt": "v2"}])
def test_another_judge_starts_anew_and_mixes_nothing(
    tmp_path: Path, change: dict[str, object]
) -> None:
    with Store(tmp_path / "s.db") as store:
        old, new = ScriptedJudge(), ScriptedJudge(**change)  # type: ignore[arg-type]
        run(store, old)
        before = list(store.results(old.source.sha256))
        run(store, new)
        assert len(new.seen) == 6
        assert list(store.results(old.source.sha256)) == before
        assert len(list(store.results(new.source.sha256))) == 12
        locks = {experiment(j, items(6), criteria(2), store).evaluator.lock for j in (old, new)}
        assert len(locks) == 2


def test_another_scale_or_text_is_another_cell(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        judge = ScriptedJudge()
        run(store, judge)
        shorter = [
            c.model_copy(update={"accepted_values": c.accepted_values[1:]}) for c in criteria(2)
        ]
        assert left(judge, items(6), shorter, store, repeats=1).open == 12
        assert left(judge, items(6, "another text"), criteria(2), store, repeats=1).open == 12
        assert left(judge, items(6), criteria(2), store, repeats=1, variant="drop:1").open == 12
        assert left(judge, items(6), criteria(2), store, repeats=1).open == 0


def test_which_failures_are_asked_again(tmp_path: Path) -> None:
    """Infrastructure on resume, with the same attempt; content only on demand, with a new one."""
    status = {"run-0": "error:timeout", "run-1": "unscored:parse", "run-2": "unscored:off_scale"}

    def bad(unit: JudgeUnit) -> Outcome | None:
        if unit.run.id not in status:
            return None
        return failures(unit, ScriptedJudge().source, status[unit.run.id])  # type: ignore[arg-type]

    with Store(tmp_path / "s.db") as store:
        ended = run(store, ScriptedJudge(script=bad))
        assert ended.progress.failures == {
            "error:timeout": 2,
            "unscored:parse": 2,
            "unscored:off_scale": 2,
        }
        plan = left(ScriptedJudge(), items(6), criteria(2), store, repeats=1)
        assert [(u.content[0].id, u.attempt) for u in plan.units] == [("run-0", 0)]
        assert (plan.done, plan.failed, plan.open) == (6, 4, 2)
        plan = left(ScriptedJudge(), items(6), criteria(2), store, repeats=1, retry_failed=True)
        assert [(u.content[0].id, u.attempt) for u in plan.units] == [
            ("run-0", 0),
            ("run-1", 1),
            ("run-2", 1),
        ]
        # The fresh attempt meets a dead endpoint: the next resume repeats attempt 1, since
        # attempt 0 would only find the old reply again.
        status.update({"run-1": "error:infrastructure", "run-0": "unscored:refusal"})
        run(store, ScriptedJudge(script=bad), retry=True)
        plan = left(ScriptedJudge(), items(6), criteria(2), store, repeats=1)
        assert [(u.content[0].id, u.attempt) for u in plan.units] == [("run-1", 1)]
        plan = left(ScriptedJudge(), items(6), criteria(2), store, repeats=1, retry_failed=True)
        assert [(u.content[0].id, u.attempt) for u in plan.units] == [
            ("run-0", 1),
            ("run-1", 1),
            ("run-2", 2),
        ]
        run(store, ScriptedJudge(), retry=True)
        assert {s.status for s in dict(store.states(ScriptedJudge().source.sha256)).values()} == {
            "scored"
        }


def test_a_crash_in_one_unit_is_that_units_failure(tmp_path: Path) -> None:
    def script(unit: JudgeUnit) -> Outcome | None:
        if unit.run.id == "run-3":
            raise ZeroDivisionError("a defect")
        return None

    with Store(tmp_path / "s.db") as store:
        judge = ScriptedJudge(script=script)
        ended = run(store, judge)
        assert (ended.stopped, ended.progress.scored) == (None, 10)
        assert ended.progress.failures == {"error:infrastructure": 2}
        message = {r.message for r in store.results(judge.source.sha256) if ":" in r.status}
        assert message == {"unexpected ZeroDivisionError: a defect"}


def test_a_refused_key_stops_at_once_and_keeps_what_was_done(tmp_path: Path) -> None:
    def script(unit: JudgeUnit) -> Outcome | None:
        if unit.run.id == "run-10":
            raise Unauthorized("the key is refused")
        return None

    with Store(tmp_path / "s.db") as store:
        judge = ScriptedJudge(script=script)
        with pytest.raises(Unauthorized, match="the key is refused"):
            run(store, judge, runs=300, workers=1)
        assert len(judge.seen) == 11
        assert len(dict(store.states(judge.source.sha256))) == 20
        many = ScriptedJudge(script=script, delay=0.001)
        with pytest.raises(Unauthorized):
            run(store, many, runs=300, workers=32)
        assert len(many.seen) <= 64


def test_the_budget_stops_and_keeps_what_is_done(tmp_path: Path) -> None:
    calls = [7]

    def script(_: JudgeUnit) -> Outcome | None:
        if calls[0] == 0:
            raise BudgetExceeded("the cap of 7 calls is reached")
        calls[0] -= 1
        return None

    with Store(tmp_path / "s.db") as store:
        judge = ScriptedJudge(script=script)
        ended = run(store, judge, runs=20, workers=4)
        assert ended.stopped == "the cap of 7 calls is reached"
        assert (ended.left_out, ended.progress.done) == (13, 7)
        assert len(judge.seen) <= 7 + 4
        # What the budget forbade leaves no trace: it was never asked.
        assert {s.status for s in dict(store.states(judge.source.sha256)).values()} == {"scored"}
        assert left(judge, items(20), criteria(2), store, repeats=1).open == 26
        calls[0] = 100
        assert run(store, judge, runs=20).stopped is None
        assert len(dict(store.states(judge.source.sha256))) == 40


def test_a_dead_endpoint_is_left_after_eight_calls(tmp_path: Path) -> None:
    def script(_: JudgeUnit) -> Outcome | None:
        raise Transient("connection refused")

    with Store(tmp_path / "s.db") as store:
        for workers in (1, 4):
            judge = ScriptedJudge(script=script, seed=workers)
            ended = run(store, judge, runs=200, workers=workers)
            assert ended.stopped == "8 calls in a row failed: connection refused"
            assert 8 <= len(judge.seen) <= 8 + workers
            assert ended.left_out + ended.progress.done == 200


def test_a_short_plan_of_which_nothing_works_says_why(tmp_path: Path) -> None:
    def script(unit: JudgeUnit) -> Outcome | None:
        if unit.run.id != "run-5":
            raise Transient("connection refused")
        return None

    with Store(tmp_path / "s.db") as store:
        ended = run(store, ScriptedJudge(script=script), runs=5)
        assert (ended.stopped, ended.left_out) == ("every call failed: connection refused", 0)
        # One success, now or earlier: the failures of the others are only counted.
        for _ in range(2):
            ended = run(store, ScriptedJudge(script=script), runs=6)
            assert ended.stopped is None
            assert ended.progress.failures == {"error:infrastructure": 10}


@pytest.mark.slow
def test_an_endpoint_that_dies_midway_does_not_burn_the_rest(tmp_path: Path) -> None:
    def dies(unit: JudgeUnit) -> Outcome | None:
        if int(unit.run.id[4:]) >= 20:
            raise Transient("connection refused")
        return None

    def stutters(unit: JudgeUnit) -> Outcome | None:
        if int(unit.run.id[4:]) % 20 != 0:
            raise Transient("overloaded")
        return None

    with Store(tmp_path / "s.db") as store:
        judge = ScriptedJudge(script=dies)
        ended = run(store, judge, runs=300, workers=2)
        assert ended.progress.scored == 40
        assert ended.stopped == "32 calls in a row failed: connection refused"
        assert len(judge.seen) <= 20 + 32 + 2
        judge = ScriptedJudge(script=stutters, seed=1)
        ended = run(store, judge, runs=300, workers=1)
        assert ended.stopped is None
        assert ended.progress.failures == {"error:infrastructure": 2 * 285}


def test_progress_counts_and_only_what_is_durable(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        judge = ScriptedJudge()
        work = experiment(judge, items(9), criteria(3), store, repeats=2, concurrency=4)
        seen: list[tuple[int, int]] = []

        def look(progress: Progress) -> None:
            seen.append((progress.scored, len(dict(store.states(judge.source.sha256)))))

        ended = asyncio.run(work.run(look))
        assert len(seen) == 19
        assert all(told <= stored for told, stored in seen)
        assert ended.progress.scored == 54
        assert ended.progress.usage.requests == 18
        assert ended.progress.usage.prompt_tokens == 1800


@pytest.mark.slow
def test_cancellation_keeps_what_was_acknowledged(tmp_path: Path) -> None:
    rng = random.Random(7)
    whole = tmp_path / "whole.db"
    with Store(whole) as store:
        run(store, ScriptedJudge(), runs=60, repeats=2)
        export_cells(store, tmp_path / "whole.jsonl")

    async def interrupted(store: Store, wait: float, told: list[int]) -> None:
        judge = ScriptedJudge(delay=0.01)
        work = experiment(judge, items(60), criteria(2), store, repeats=2)
        job = asyncio.create_task(work.run(lambda p: told.append(p.scored)))
        while len(told) < 3:  # at least one call is acknowledged
            await asyncio.sleep(0.001)
        await asyncio.sleep(wait)
        job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job

    with Store(tmp_path / "s.db") as store:
        total = 0
        for _ in range(6):
            told = [0]
            asyncio.run(interrupted(store, rng.uniform(0, 0.05), told))
            total += told[-1]
            assert len(dict(store.states(ScriptedJudge().source.sha256))) >= total
        assert 0 < total < 240
        last = ScriptedJudge()
        run(store, last, runs=60, repeats=2)
        assert len(last.seen) <= 120 - total // 2
        export_cells(store, tmp_path / "s.jsonl")
    assert (tmp_path / "s.jsonl").read_bytes() == (tmp_path / "whole.jsonl").read_bytes()


@pytest.mark.parametrize("twice", [False, True])
def test_cancelled_once_it_finishes_what_is_under_way(tmp_path: Path, twice: bool) -> None:
    judge, called = ScriptedJudge(delay=0.05), []

    async def work(store: Store) -> None:
        work = experiment(
            judge,
            items(20),
            criteria(2),
            store,
            concurrency=3,
            notify=called.append,
            announce=False,
        )
        job = asyncio.create_task(work.run())
        while len(judge.seen) < 3:
            await asyncio.sleep(0)
        job.cancel()
        while not called:
            await asyncio.sleep(0)
        if twice:
            job.cancel()
        with pytest.raises(asyncio.CancelledError):
            await job

    with Store(tmp_path / "s.db") as store:
        asyncio.run(work(store))
        assert len(judge.seen) == 3  # no further unit was begun
        assert len(dict(store.states(judge.source.sha256))) == (0 if twice else 6)
    assert called == ["interrupted: finishing 3 calls in progress; interrupt again to stop at once"]


def test_a_store_that_fails_ends_the_run_with_its_reason(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        judge = ScriptedJudge(delay=0.001)

        def close_at(progress: Progress) -> None:
            if progress.done == 5:
                store.close()

        work = experiment(judge, items(50), criteria(2), store, concurrency=3)
        with pytest.raises(StoreError, match="closed"):
            asyncio.run(work.run(close_at))
    with Store(store.path) as again:
        assert 10 <= len(dict(again.states(judge.source.sha256))) < 40


def test_a_plan_of_nothing_ends_at_once(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        assert run(store, ScriptedJudge(), runs=0) == ExperimentResult(Progress(0), None, 0)
        assert run(store, ScriptedJudge(), n=0) == ExperimentResult(Progress(0), None, 0)
