"""An experiment that was broken off is known as such until all of it is there."""

from __future__ import annotations

import asyncio
import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.engine import Experiment, Outcome
from agenteval.engine.judging import JudgeUnit
from agenteval.errors import BudgetExceeded, StoreError
from agenteval.records import FailureStatus
from agenteval.store import Store, experiments
from agenteval.store.experiments import Grid, Unfinished, short, unfinished_of, unfinished_trials
from agenteval.utility.evaluator import JudgeEvaluator
from tests.store.making import ScriptedJudge, criteria, failures, items
from tests.store.test_kill import CRITERIA, REPEATS, RUNS, finish, round_of
from tests.store.trial_making import SYSTEM, begin_trials, case, failed, known, trial


def capped(after: int, error: type[Exception] = BudgetExceeded) -> ScriptedJudge:
    """A judge whose calls are refused after so many."""
    left = iter(range(after))

    def script(_: JudgeUnit) -> Outcome | None:
        if next(left, None) is None:
            raise error("no more")
        return None

    return ScriptedJudge(script=script)


def judge_all(
    store: Store, judge: ScriptedJudge, *, runs: int = 6, n: int = 2, repeats: int = 1
) -> None:
    rated = JudgeEvaluator.of(judge, items(runs), criteria(n), repeats)
    asyncio.run(Experiment(rated, store, concurrency=1).run())


def open_in(store: Store) -> list[Unfinished]:
    return unfinished_of(store, [ScriptedJudge().source.sha256])


def far(store: Store) -> list[tuple[int, int]]:
    return [(one.stored, one.planned) for one in open_in(store)]


def notes_in(path: Path) -> set[str]:
    """Keys of the experiments that are open: none at rest."""
    with closing(sqlite3.connect(path)) as db:
        query = "SELECT experiment_key FROM experiments WHERE finished IS NULL"
        return {name for (name,) in db.execute(query)}


AT_REST: set[str] = set()


def test_a_cap_leaves_it_open_and_the_same_command_closes_it(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        judge_all(store, capped(5), repeats=2)
        (one,) = open_in(store)
        assert (one.stored, one.planned, one.at_work) == (5 * 2, 6 * 2 * 2, None)
        assert one.line == (
            "not finished: 10 of 24 planned cells are done (6 runs × 2 criteria × 2 repeats); "
            "run the same command again to finish"
        )
        assert one.json() == {
            "source": ScriptedJudge().source.sha256,
            "what": "cells",
            "planned": 24,
            "done": 10,
            "in_progress": False,
            "experiment": one.experiment.key,
        }
        judge_all(store, capped(3), repeats=2)
        assert far(store) == [(16, 24)]
        judge_all(store, ScriptedJudge(), repeats=2)
        assert far(store) == []
    assert notes_in(tmp_path / "s.db") == AT_REST


def test_while_it_runs_the_first_cell_is_never_there_without_the_note(tmp_path: Path) -> None:
    seen: list[list[tuple[int, int]]] = []

    def script(_: JudgeUnit) -> None:
        seen.append(far(store))

    with Store(tmp_path / "s.db") as store:
        judge_all(store, ScriptedJudge(script=script), runs=3)
    assert seen == [[(0, 6)], [(2, 6)], [(4, 6)]]


@pytest.mark.parametrize(
    ("status", "left"),
    # At the budget it stops.
    [("unscored:parse", []), ("error:timeout", [(10, 12)]), ("error:budget", [(6, 12)])],
)
def test_what_a_resume_would_ask_again_is_not_done(
    tmp_path: Path, status: FailureStatus, left: list[tuple[int, int]]
) -> None:
    def script(unit: JudgeUnit) -> Outcome | None:
        broken = unit.run.id == "run-3"
        return failures(unit, ScriptedJudge().source, status) if broken else None

    with Store(tmp_path / "s.db") as store:
        judge_all(store, ScriptedJudge(script=script))
        assert far(store) == left
        assert bool(left) == (notes_in(tmp_path / "s.db") != AT_REST)
        judge_all(store, ScriptedJudge())
    assert notes_in(tmp_path / "s.db") == AT_REST


def test_a_larger_plan_takes_the_place_of_the_smaller(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        judge_all(store, capped(2), repeats=1)
        judge_all(store, capped(6), repeats=3)
        assert far(store) == [(16, 36)]
        judge_all(store, capped(1), repeats=2)  # a part of it: the same is open
        assert far(store) == [(18, 36)]
        judge_all(store, ScriptedJudge(), repeats=3)
    assert notes_in(tmp_path / "s.db") == AT_REST


def test_a_living_process_is_named(tmp_path: Path) -> None:
    judge = ScriptedJudge()
    with Store(tmp_path / "s.db") as store:
        judge_all(store, capped(2))
        with store.lock(JudgeEvaluator.of(judge, items(6), criteria(2)).lock):
            (one,) = open_in(store)
            assert one.line.startswith("in progress: 4 of 12 planned cells are done (6 runs")
            assert one.line.endswith(" works on it")
            assert "process " in one.line
            assert one.json()["in_progress"] is True
        assert open_in(store)[0].line.startswith("not finished: 4 of 12")


@pytest.mark.slow
def test_a_process_that_is_killed_leaves_the_note(tmp_path: Path) -> None:
    path = tmp_path / "killed.db"
    round_of(path, 0.0, heard=9)
    with closing(sqlite3.connect(path)) as db:
        (stored,) = db.execute("SELECT count(*) FROM results").fetchone()
    assert stored >= 8 * CRITERIA
    with Store(path) as store:
        (source,) = [k for k, _ in store.sources()]
        (one,) = unfinished_of(store, [source])
        assert (one.stored, one.planned, one.at_work) == (stored, RUNS * REPEATS * CRITERIA, None)
    finish(path)
    assert notes_in(path) == AT_REST


def test_a_damaged_note_is_told(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        judge_all(store, capped(2))
    with closing(sqlite3.connect(tmp_path / "s.db")) as db, db:
        db.execute("UPDATE experiments SET plan = '[]'")
    with Store(tmp_path / "s.db") as store, pytest.raises(StoreError, match="open experiment"):
        open_in(store)


NAMES = st.sets(st.sampled_from("abcd"), min_size=1)
GRIDS = st.builds(
    lambda rows, n, variant, names: Grid(short(rows), n, variant, tuple(sorted(names))),
    NAMES,
    st.integers(1, 3),
    st.sampled_from(["original", "pad"]),
    NAMES,
)


def cells_of(grid: Grid) -> set[tuple[str, str, str, int]]:
    return {
        (row, grid.variant, c, k)
        for row in grid.rows
        for c in grid.criteria
        for k in range(grid.repeats)
    }


@given(GRIDS, GRIDS)
def test_a_grid_covers_another_as_sets_of_cells_do(one: Grid, other: Grid) -> None:
    assert one.planned == len(cells_of(one))
    assert one.covers(other) == (cells_of(one) >= cells_of(other))


# ---- trials --------------------------------------------------------------------------------------


def test_trials_are_open_until_all_of_them_are_stored(tmp_path: Path) -> None:
    keys = [case(i).key for i in range(4)]
    with Store(tmp_path / "s.db") as store:
        book = known(store, 4)
        source = begin_trials(store, "planning", keys, 2)
        for i in range(3):
            book.store.save_soon((), failed(i) if i == 1 else trial(i)).result(5)
        (one,) = unfinished_trials(store, ["planning"])
        assert one.line == (
            "not finished: 2 of 8 planned trials (planning) of scripted are done (4 cases × 2 "
            "trials); run the same command again to finish"
        )
        assert one.json() == {
            "system": SYSTEM.key,
            "name": "scripted",
            "evaluator": "planning",
            "what": "trials",
            "planned": 8,
            "done": 2,
            "in_progress": False,
            "experiment": one.experiment.key,
        }
        # Resumed: what is missing is a part of what is open, and the failure is tried again.
        begin_trials(store, "planning", keys[1:2], 2)
        assert len(unfinished_trials(store, ["planning"])) == 1
        for i in range(4):
            for number in range(2):
                book.store.save_soon((), trial(i, number)).result(5)
        experiments.finish(store, source)
        assert unfinished_trials(store, ["planning"]) == []
        experiments.finish(store, source)  # nothing is left to be taken away
    assert notes_in(tmp_path / "s.db") == AT_REST
