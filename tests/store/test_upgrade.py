"""Stores that older programs wrote: nothing is lost, the layout is that of a new store."""

from __future__ import annotations

import sqlite3
import threading
import time
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import event
from sqlalchemy.exc import OperationalError

from agenteval.errors import AgentevalError
from agenteval.records import Criterion
from agenteval.store import Store, Trials
from agenteval.store.connect import make_engine
from agenteval.store.migrations import prepare
from tests.store.making import FORK, ScriptedJudge, check_file
from tests.store.trial_making import SYSTEM, case, trial

VERSIONS = [1, 2, 3]


def old_store(path: Path, version: int) -> Path:
    """The file that a program of that version wrote, from its dump."""
    dump = (Path(__file__).parent / f"version{version}.sql").read_text(encoding="utf-8")
    db = sqlite3.connect(path)
    db.executescript(dump)
    db.close()
    return path


def rows_of(path: Path) -> dict[str, list[dict[str, Any]]]:
    db = sqlite3.connect(path)
    db.row_factory = sqlite3.Row
    names = [n for (n,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
    found = {n: [dict(r) for r in db.execute(f"SELECT * FROM {n} ORDER BY rowid")] for n in names}
    db.close()
    return found


def layout(path: Path) -> dict[str, Any]:
    """Columns with type, NULL and key position, foreign keys and indexes, by table."""
    db = sqlite3.connect(path)
    found: dict[str, Any] = {}
    for (name,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'").fetchall():
        columns = [row[1:] for row in db.execute(f"PRAGMA table_info({name})")]
        foreign = sorted(row[2:5] for row in db.execute(f"PRAGMA foreign_key_list({name})"))
        indexes = sorted(
            (unique, origin, tuple(r[2] for r in db.execute(f"PRAGMA index_info({index})")))
            for _, index, unique, origin, _ in db.execute(f"PRAGMA index_list({name})").fetchall()
        )
        found[name] = (columns, foreign, indexes)
    db.close()
    return found


def version_of(path: Path) -> bytes:
    return next(r["value"] for r in rows_of(path)["meta"] if r["key"] == "version")


@pytest.mark.parametrize("version", VERSIONS)
def test_an_old_store_is_brought_up_to_date_and_keeps_every_row(
    tmp_path: Path, version: int
) -> None:
    path = old_store(tmp_path / "old.db", version)
    before = rows_of(path)
    assert version_of(path) == str(version).encode()
    assert ("origin" in before["runs"][0], "trials" in before) == (version >= 2, version >= 3)
    Store(tmp_path / "new.db").close()
    for _ in range(2):  # the second time there is nothing to do
        Store(path).close()
        assert layout(path) == layout(tmp_path / "new.db")
        after = rows_of(path)
        assert version_of(path) == b"4"
        for name, rows in before.items():
            if name in ("meta", "criteria", "cells"):  # see the test of orders below
                continue
            extra = {"origin": None} if name == "runs" else {}
            assert after[name] == [{**extra, **row} for row in rows], name
        own = {row["criterion_key"]: key_of(row) for row in before["criteria"]}
        assert {r["criterion_key"] for r in after["criteria"]} == set(own.values())
        two = [r["criterion_key"] for r in before["criteria"] if r["criterion_id"] == "tidiness"]
        one_order = [r for r in before["cells"] if r["criterion_key"] not in two]
        cells = [{**row, "criterion_key": own[row["criterion_key"]]} for row in one_order]
        assert len(cells) == (9 if version == 3 else 6)
        assert all(cell in after["cells"] for cell in cells)
        assert [after[n] for n in ("cases", "systems", "trials")] == [[], [], []]
    check_file(path)


def key_of(row: dict[str, Any]) -> str:
    return Criterion.model_validate_json(row["record"]).sha256


def test_one_list_that_was_judged_in_two_orders_becomes_one(tmp_path: Path) -> None:
    """Three runs under tidy, fair, untidy (as worst to best), then two under the reverse."""
    path = old_store(tmp_path / "old.db", 3)
    judge = ScriptedJudge(seed=1)
    rated = """
        SELECT run_id, label, value FROM cells JOIN criteria USING (criterion_key)
        JOIN runs USING (run_key) WHERE criterion_id = 'tidiness' ORDER BY run_id, cells.rowid
    """
    with sqlite3.connect(path) as db:
        assert db.execute(rated).fetchall() == [
            ("run-0", "tidy", 0.0), ("run-0", "untidy", 0.0), ("run-1", "fair", 0.5),
            ("run-1", "untidy", 0.0), ("run-2", "untidy", 1.0),
        ]  # fmt: skip
    with Store(path) as store:
        stored = store.criteria_of(judge.source.sha256)
        (criterion,) = [c for c in stored.values() if c.id == "tidiness"]
        assert criterion.accepted_values == ("untidy", "fair", "tidy")
        assert stored[criterion.sha256] == criterion
    with sqlite3.connect(path) as db:  # what was rated last stays; the rest is relabelled
        assert db.execute(rated).fetchall() == [
            ("run-0", "untidy", 0.0), ("run-1", "untidy", 0.0), ("run-2", "untidy", 0.0),
        ]  # fmt: skip
    check_file(path)


@pytest.mark.parametrize("version", VERSIONS)
async def test_an_old_store_is_read_and_takes_trials(tmp_path: Path, version: int) -> None:
    path = old_store(tmp_path / "old.db", version)
    judge = ScriptedJudge()
    secret = next(r["value"] for r in rows_of(path)["meta"] if r["key"] == "secret")
    with Store(path, create=False) as store:
        statuses = sorted(state.status for state in store.states(judge.source).values())
        assert statuses == ["error:timeout"] * 2 + ["scored"] * 4
        assert sorted(r["run_id"] for r in store.runs().values()) == ["run-0", "run-1", "run-2"]
        assert store.get_reply("k") == {"text": "paid"}
        assert store.secret == secret
        trials = Trials(store)
        trials.add_system(SYSTEM)
        trials.add_cases("planning", [case(0)])
        await trials.write_trial(trial(0))
        assert list(trials.trials("planning")) == [trial(0)]


@pytest.mark.parametrize("version", VERSIONS)
def test_an_upgrade_that_fails_at_any_statement_is_made_good(tmp_path: Path, version: int) -> None:
    whole = old_store(tmp_path / "whole.db", version)
    Store(whole).close()
    failed = 0
    left_at: set[bytes] = set()
    while True:
        path = old_store(tmp_path / f"f{failed}.db", version)
        engine = make_engine(path)
        seen = 0

        def fail(*_: object, at: int = failed + 1) -> None:
            nonlocal seen
            seen += 1
            if seen == at:
                raise OperationalError("statement", {}, Exception("disk I/O error"))

        event.listen(engine, "before_cursor_execute", fail)
        try:
            prepare(engine)
        except OperationalError:
            failed += 1
        else:
            break
        finally:
            engine.dispose()
        left = version_of(path)
        left_at.add(left)
        assert set(rows_of(path)) == set(rows_of(whole)) - (
            set() if left >= b"3" else {"cases", "systems", "trials"}
        )
        Store(path).close()
        assert layout(path) == layout(whole)
        assert rows_of(path) == rows_of(whole)
    assert failed >= 8
    # It stops before a step or after it, never inside.
    assert left_at == {str(v).encode() for v in range(version, 5)}


def test_an_upgrade_waits_for_a_program_that_is_writing(tmp_path: Path) -> None:
    path = old_store(tmp_path / "old.db", 2)
    begun = threading.Event()

    def write() -> None:
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("BEGIN IMMEDIATE")
        begun.set()
        time.sleep(0.4)
        db.execute("INSERT INTO replies VALUES ('late', '{}')")
        db.execute("COMMIT")
        db.close()

    writer = threading.Thread(target=write)
    writer.start()
    begun.wait(5)
    with Store(path) as store:
        assert store.get_reply("late") == {}
    writer.join(5)
    assert version_of(path) == b"4"


def _open(path: Path, start: Any, said: Any) -> None:
    start.wait(20)
    try:
        with Store(path) as store:
            said.send(store.secret)
    except AgentevalError as error:
        said.send(str(error))


@pytest.mark.parametrize("version", VERSIONS)
def test_processes_that_upgrade_one_store_together_agree(tmp_path: Path, version: int) -> None:
    whole = old_store(tmp_path / "whole.db", version)
    Store(whole).close()
    for i in range(4):
        path = old_store(tmp_path / f"s{i}.db", version)
        start = FORK.Event()
        pipes = [FORK.Pipe(duplex=False) for _ in range(3)]
        children = [FORK.Process(target=_open, args=(path, start, p[1])) for p in pipes]
        for child in children:
            child.start()
        for _, theirs in pipes:
            theirs.close()  # a child that dies is heard, not waited for
        start.set()
        said = [ours.recv() for ours, _ in pipes]
        for child in children:
            child.join(20)
        assert len(set(said)) == 1, said
        assert isinstance(said[0], bytes)
        assert rows_of(path) == rows_of(whole)
