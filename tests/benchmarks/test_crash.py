"""The crash benchmark at its small size finds nothing wrong, and would find what is wrong."""

from __future__ import annotations

import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from agenteval.records.trial import Trial, TrialCase, TrialSystem
from agenteval.store import Store, Trials
from benchmarks.crash import __main__ as crash
from benchmarks.crash import checks
from benchmarks.crash import child as watching
from benchmarks.crash.storm import Tally
from tests.store.making import ScriptedJudge, criteria, items, scores

ROOT = Path(__file__).parents[2]
pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(sys.platform != "linux", reason="forks and counts threads"),
]


def test_a_kill_of_each_command() -> None:
    command = [sys.executable, "-m", "benchmarks.crash", "--quick"]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["wrong"] == []
    rows = {row["what"]: row["measured"] for row in last["rows"]}
    assert rows["kills by SIGKILL"] == "7"
    assert rows["fewest kills of a command"] == "1"
    assert int(rows["fewest kills of a flow or trace command"]) >= 1
    assert int(rows["kills within COMMIT"]) >= 1
    nothing = [
        "databases corrupt",
        "acknowledged rows lost",
        "half units",
        "half output files",
        "tables that differ after resume",
    ]
    assert [rows[name] for name in nothing] == ["0"] * 5
    assert all(row["met"] is not False for row in last["rows"])


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with four calls of two results."""
    from agenteval.engine.judging import JudgeUnit

    path, judge = tmp_path / "s.db", ScriptedJudge()
    with Store(path) as opened:
        opened.register(items(4), criteria(2), judge.source)
        for run, view in items(4):
            unit = JudgeUnit(run, view, tuple(criteria(2)), 0, "original", 0)
            outcome = scores(unit, judge.source)
            opened.save_soon(outcome.results, outcome.call).result(20)
    return path


def examined(store: Path, units: list[list[object]]) -> checks.Findings:
    found = checks.Findings()
    log = store.with_name("units")
    log.write_text("".join(json.dumps(line) + "\n" for line in units))
    checks.examine(store, log, checks.Ledger(), found, "here")
    return found


def runs_of(store: Path) -> list[list[object]]:
    with closing(sqlite3.connect(store)) as db:
        query = "SELECT item_key FROM items WHERE kind = 'run'"
        return [["items", {"item_key": key}] for (key,) in db.execute(query)]


def test_a_whole_store_is_whole(store: Path) -> None:
    there = runs_of(store)
    assert examined(store, [["S", "1", there], ["A", "1", None]]).all() == []
    absent = [["items", {"item_key": "absent"}]]
    assert examined(store, [["S", "1", absent]]).all() == []  # nobody was told that it is there


def test_what_was_acknowledged_and_is_not_there_is_lost(store: Path) -> None:
    absent = [["items", {"item_key": "absent"}]]
    found = examined(store, [["S", "1", absent], ["A", "1", None]])
    assert (len(found.lost), len(found.all())) == (1, 1)


def test_a_part_of_a_unit_is_half_a_unit(store: Path) -> None:
    found = examined(store, [["S", "1", [runs_of(store)[0], ["items", {"item_key": "absent"}]]]])
    assert found.half_units == ["here: 1 of 2 rows of a unit"]
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("DELETE FROM results WHERE rowid = (SELECT min(rowid) FROM results)")
    assert [line[-14:] for line in examined(store, []).half_units] == ["1 of 2 results"]


KEY = {"evaluator": "traces", "system_key": "b" * 64, "case_key": "a" * 64, "trial": 0}
TRIAL = {
    **KEY,
    "case_id": "one",
    "status": "done",
    "log": {},
    "outcome": "pass",
    "check_key": "c" * 64,
    "verdict": {},
}


@pytest.fixture
def judged(store: Path) -> Path:
    """The store with a trial that the judge "ccc…" has called a pass."""
    with Store(store) as opened:
        trials = Trials(opened)
        trials.add_cases("traces", [TrialCase(key="a" * 64, id="one", body={})])
        trials.add_system("traces", TrialSystem(key="b" * 64, name="finder", parameters={}))
        trials.store.save_soon((), Trial.model_validate(TRIAL)).result(20)
    return store


def test_a_verdict_that_was_acknowledged_and_is_not_there_is_lost(judged: Path) -> None:
    for judge, lost in (("c", 0), ("d", 1)):
        verdict = [
            "calls",
            {"call_id": Trial.model_validate(TRIAL).call_id, "check_key": judge * 64},
        ]
        found = examined(judged, [["S", "1", [verdict]], ["A", "1", None]])
        assert (len(found.lost), len(found.all())) == (lost, lost)


@pytest.mark.parametrize("change", ["check_key = NULL", "outcome = NULL", "record = '{\"a\": '"])
def test_a_part_of_a_verdict_is_half_a_unit(judged: Path, change: str) -> None:
    with closing(sqlite3.connect(judged)) as db, db:
        db.execute("PRAGMA ignore_check_constraints = 1")
        db.execute(f"UPDATE calls SET {change} WHERE status IS NOT NULL")
    assert examined(judged, []).half_units == ["here: trial 0 of one: half a verdict"]


def _garble(store: Path) -> None:
    with store.open("r+b") as file:
        file.seek(3 * 4096)
        file.write(os.urandom(4096))


def _drop(store: Path) -> None:
    with closing(sqlite3.connect(store)) as db:
        db.execute("DROP TABLE results")


def _orphan(store: Path) -> None:
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("DELETE FROM items")


@pytest.mark.parametrize("spoil", [_garble, _drop, _orphan])
def test_damage_is_seen(store: Path, spoil: Callable[[Path], None]) -> None:
    spoil(store)
    assert examined(store, []).corrupt


def test_half_a_file_is_neither_old_nor_new(tmp_path: Path) -> None:
    found = checks.Findings()
    file = tmp_path / "out.csv"
    for content, wrong in ((b"old", 0), (b"new", 0), (b"ne", 1), (b"", 2)):
        file.write_bytes(content)
        checks.old_or_new(file, (b"old", b"new"), found, "here")
        assert len(found.half_files) == wrong


def test_a_kill_within_a_commit_leaves_a_part_of_its_log(tmp_path: Path) -> None:
    """In a process of its own: the second commit's fourth write is cut in the middle."""
    code = f"""
import sqlite3, sys
from pathlib import Path
sys.path.insert(0, {str(ROOT)!r})
from benchmarks.crash import child as w
w._watch_commits(watch := w.Watch(Path("state"), w.Kill("write", at=2, write=4, share=0.5)))
w._watch_writes(watch)
db = sqlite3.dbapi2.connect("s.db", isolation_level=None)
db.execute("PRAGMA journal_mode=WAL")
for n in (1, 2):
    db.execute("BEGIN IMMEDIATE")
    db.execute(f"CREATE TABLE t{{n}} (x)")
    db.execute(f"INSERT INTO t{{n}} VALUES (zeroblob(20000))")
    db.commit()
"""
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, timeout=60, check=False)
    assert done.returncode == -9
    state = watching.read_state(tmp_path / "state")
    assert (state["in_commit"], state["commits"]) == (1, 2)
    frame = 24 + 4096
    assert (tmp_path / "s.db-wal").stat().st_size % frame not in (0, 32)
    with closing(sqlite3.connect(tmp_path / "s.db")) as db:
        assert db.execute("SELECT name FROM sqlite_master").fetchall() == [("t1",)]


def test_a_missed_target_ends_with_one(capsys: pytest.CaptureFixture[str]) -> None:
    tally = Tally("quantify", kills=1)
    tally.found.lost.append("a row")
    measured = [tally]
    rows = crash.rows_of(measured, quick=True)
    assert {row.what for row in rows if row.met is False} >= {"acknowledged rows lost"}
    assert crash.wrong(measured) == ["a row"]
