"""The last verdict on a judge is a row of the store."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

from agenteval.records.verification import JudgeVerdict, VerifiedSet
from agenteval.store import Store
from agenteval.store.export import copy_store
from tests.store.making import ScriptedJudge

KEY = ScriptedJudge().source.sha256


def verdict(words: str) -> VerifiedSet:
    return VerifiedSet(judge=JudgeVerdict(verdict=words, reasons=("why",)), criteria=())


def test_the_last_verdict_of_each_task_is_kept(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        store.register((), (), ScriptedJudge().source)
        assert store.verdict_on(KEY) is None
        store.save_verdict(KEY, "sums", verdict("not enough data"))
        store.save_verdict(KEY, "sums", verdict("trustworthy"))
        store.save_verdict(KEY, "essays", verdict("not trustworthy"))
    with Store(tmp_path / "s.db") as store:
        on_sums, newest = store.verdict_on(KEY, "sums"), store.verdict_on(KEY)
        assert on_sums is not None
        assert on_sums.result == verdict("trustworthy")
        assert newest is not None
        assert (newest.task, newest.result.judge.verdict) == ("essays", "not trustworthy")
        assert store.verdict_on(KEY, "poems") is None
        with Store(tmp_path / "copy.db") as copy:
            assert copy_store(store, copy)["verdicts"] == 2


def test_a_store_without_the_table_gets_it_with_the_first_verdict(tmp_path: Path) -> None:
    with Store(tmp_path / "s.db") as store:
        store.register((), (), ScriptedJudge().source)
    with closing(sqlite3.connect(tmp_path / "s.db")) as db, db:
        db.execute("DROP TABLE verdicts")
    with Store(tmp_path / "s.db") as store:
        assert store.verdict_on(KEY) is None
        with Store(tmp_path / "copy.db") as copy:
            assert "verdicts" not in copy_store(store, copy)
        store.save_verdict(KEY, "sums", verdict("trustworthy"))
        assert store.verdict_on(KEY) is not None
