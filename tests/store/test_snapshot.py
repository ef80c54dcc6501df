"""What is read inside a snapshot is of one state, whatever others commit meanwhile."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy.pool import QueuePool

from agenteval.analysis.means import load_ratings
from agenteval.analysis.scores import scores_from_store
from agenteval.engine.judging import JudgeUnit
from agenteval.errors import StoreError
from agenteval.records import Criterion, Usage
from agenteval.records.trial import TrialSystem
from agenteval.store import Store
from agenteval.store.connect import make_engine, reading, snapshot
from tests.store.making import ScriptedJudge, criteria, items, scores
from tests.store.trial_making import SYSTEM, key, known, trial

JUDGE = ScriptedJudge()
KEY = JUDGE.source.sha256
OTHER = TrialSystem(key=key("another"), name="another", parameters={})


def judge(store: Store, runs: int, of: list[Criterion]) -> None:
    """Every run on every criterion; what is stored already stays."""
    store.register(items(runs), of, JUDGE.source)
    for run, view in items(runs):
        made = scores(JudgeUnit(run, view, tuple(of)), JUDGE.source)
        store.save_soon(made.results, made.call).result(5)


class Beside(Store):
    """A store in which another connection commits three runs, a criterion, a case and a system
    between the first read that a function makes of it and the second."""

    reads = 0

    def _read(self) -> None:
        self.reads += 1
        if self.reads == 2:
            grow(self.path)

    def runs(self) -> dict[str, dict[str, Any]]:
        self._read()
        return super().runs()

    def criteria_of(self, source_key: str) -> dict[str, Criterion]:
        self._read()
        return super().criteria_of(source_key)

    def cells(self, source_key: str, **which: Any) -> Iterator[tuple[Any, ...]]:
        self._read()
        return super().cells(source_key, **which)


def grow(path: Path) -> None:
    with Store(path) as other:
        judge(other, 5, criteria(3))
        trials = known(other, 4, SYSTEM, OTHER)
        for i in (2, 3):
            trials.store.save_soon((), trial(i)).result(5)
        trials.store.save_soon((), trial(3, system=OTHER.key)).result(5)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Store(tmp_path / "s.db") as store:
        judge(store, 2, criteria(2))
        trials = known(store, 2)
        for i in (0, 1):
            trials.store.save_soon((), trial(i)).result(5)
    return tmp_path / "s.db"


def rows(path: Path) -> int:
    with closing(sqlite3.connect(path)) as db:
        return int(db.execute("SELECT count(*) FROM results").fetchone()[0])


def cells(store: Store) -> int:
    return len(list(store.cells(KEY)))


def in_use(store: Store) -> int:
    """Connections taken from the pool; one of them is that for replies."""
    assert isinstance(store.engine.pool, QueuePool)
    return store.engine.pool.checkedout()


def test_ratings_are_of_the_state_at_the_start(path: Path) -> None:
    store = Beside(path, create=False)
    with store, store.snapshot():
        ratings = load_ratings(store, KEY)
        assert store.reads >= 2
        assert rows(path) == 2 * 2 + 5 * 3 - 2 * 2  # committed, and not seen inside
        assert {(r.run_id, r.criterion_id) for r in ratings} == {
            (run.id, c.id) for run, _ in items(2) for c in criteria(2)
        }
        # Two calls by the first, of 100 and 10 tokens each; the other made five more.
        assert store.usage(KEY) == Usage(requests=2, prompt_tokens=200, completion_tokens=20)
        chosen = {c.sha256 for c in criteria(3)}
        assert len(scores_from_store(store, KEY, criteria=chosen, runs=set(store.runs()))) == 4
    with Store(path) as later:
        assert {r.run_id for r in load_ratings(later, KEY)} == {run.id for run, _ in items(5)}
        assert later.usage(KEY).requests == 7


@pytest.mark.parametrize("left", [True, False])
def test_rows_half_read_at_the_end_keep_no_old_state(path: Path, left: bool) -> None:
    with Store(path) as store:
        with store.snapshot():
            half = iter(store.cells(KEY))
            next(half)
            if not left:
                assert len(list(half)) == 3
        grow(path)
        assert cells(store) == 15
        assert in_use(store) == 1
        if left:
            with pytest.raises(StoreError):
                list(half)
        assert cells(store) == 15


def test_without_wal_nobody_is_held_up(tmp_path: Path) -> None:
    """There a reader's lock would keep every writer out."""
    engine = make_engine(tmp_path / "plain.db")
    with closing(sqlite3.connect(tmp_path / "plain.db", timeout=0)) as other:
        other.execute("CREATE TABLE one (x)")
        with snapshot(engine):
            with reading(engine) as connection:
                assert connection.exec_driver_sql("SELECT count(*) FROM one").scalar_one() == 0
            with other:
                other.execute("INSERT INTO one VALUES (1)")
            with reading(engine) as connection:
                assert connection.exec_driver_sql("SELECT count(*) FROM one").scalar_one() == 1
    engine.dispose()
