"""The benchmark of faults at a small size; and that it sees what it counts."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from benchmarks.faults import __main__ as faults
from benchmarks.faults import tries as faults_tries
from benchmarks.faults.operations import (
    OLD,
    OPERATIONS,
    STORE,
    Operation,
    Ran,
    call,
    copied,
    noting,
    prepare,
)
from benchmarks.faults.tries import KINDS, Reference, Tally
from tests.support import faulty_sqlite
from tests.thorough import often

QUANTIFY, EXPORT = OPERATIONS[0], OPERATIONS[3]
needs_sqlite = pytest.mark.skipif(
    faulty_sqlite.unavailable() is not None, reason=str(faulty_sqlite.unavailable())
)
pytestmark = [pytest.mark.slow, pytest.mark.xdist_group("faults")]  # one template for all


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    with pytest.MonkeyPatch.context() as patch:
        for name in ("AGENTEVAL_MODEL", "AGENTEVAL_STORE", "AGENTEVAL_BASE_URL", "OPENAI_API_KEY"):
            patch.delenv(name, raising=False)
        folder = tmp_path_factory.mktemp("faults") / "template"
        folder.mkdir()
        prepare(folder)
        yield folder


def assert_sound(found: dict[str, Tally], least: int) -> None:
    assert [f"{k}: {text}" for k, tally in found.items() for text in tally.wrong] == []
    assert all(t.tried == t.clean + t.survived for t in found.values())
    assert sum(t.tried for t in found.values()) >= least
    rows = {row.what: row.measured for row in faults.rows_of(found)}
    assert {rows[f"faults: {word}"] for word in faults_tries.BAD} == {"0"}


@needs_sqlite
def test_failing_writes_and_syncs_of_the_store(template: Path, tmp_path: Path) -> None:
    for kind, stride in (("sqlite write ENOSPC lasting", 30), ("sqlite fsync EIO once", 5)):
        found = faults.loop("quantify", template, tmp_path, often(stride, 1), [kind])
        assert found[f"quantify: {kind}"].clean
        assert_sound(found, 2)
    found = faults.loop("plan", template, tmp_path, often(60, 1), ["sqlite write EIO half"])
    assert_sound(found, 1)


def test_failing_writes_of_an_output(template: Path, tmp_path: Path) -> None:
    kinds = [kind.name for kind in KINDS if kind.name.startswith("file ")]
    found = faults.loop("export", template, tmp_path, 1, kinds)
    for call_ in ("write ENOSPC once", "write ENOSPC half", "fsync EIO once", "rename EIO once"):
        assert found[f"export: file {call_}"].clean
    assert_sound(found, 12)


def test_the_loops_can_be_run_in_processes_of_their_own() -> None:
    """Spawned by `python -m benchmarks.faults`, which has no importable `__main__`."""
    assert faults.loop.__module__ == "benchmarks.faults.loops"


# ---- what is counted would be seen ---------------------------------------------------------------


def test_damage_loss_and_halves_are_seen(template: Path, tmp_path: Path) -> None:
    folder = copied(template, tmp_path / "x", EXPORT)
    store = folder / STORE
    expected = Reference("", (b"new",))
    said = [("replies", {"key": "never stored", "reply": "{}"})]
    assert faults_tries.damage(store) == []
    assert len(faults_tries.lost(store, said)) == 1
    assert faults_tries.half(folder, EXPORT, expected) == []
    (folder / "cells.csv").write_text("ne")
    (folder / "recorded.jsonl").write_text('{"torn\n{}\n')
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("DELETE FROM results WHERE rowid = (SELECT min(rowid) FROM results)")
    found = faults_tries.half(folder, EXPORT, expected)
    assert [text.split(" ")[0] for text in found] == ["call", "cells.csv", "recorded.jsonl:"]
    with closing(sqlite3.connect(store)) as db, db:
        db.execute("DELETE FROM items")
    assert faults_tries.damage(store)
    data = bytearray(store.read_bytes())
    data[4096:8192] = b"\xff" * 4096
    store.write_bytes(data)
    assert faults_tries.damage(store)
    (folder / ".cells.csv.0.partial").write_text("")
    assert faults_tries.leftovers(folder) == [".cells.csv.0.partial"]


def test_a_way_back_to_another_table_or_none_is_seen(template: Path, tmp_path: Path) -> None:
    other = Reference("another table", (b"other",))
    kind = next(k for k in KINDS if k.name == "file rename EIO once")
    tally = Tally()
    assert faults_tries.attempt(template, tmp_path / "x", EXPORT, kind, 1, other, tally)
    assert [text.split(":")[0] for text in tally.wrong] == ["differing"]
    broken = Operation("export", ("export", "cells.csv", "--source", "none"), ("cells.csv",))
    fault = next(k for k in KINDS if k.name == "file size limited")
    tally = Tally()
    faults_tries.attempt(template, tmp_path / "y", broken, fault, 40, other, tally)
    assert [text.split(":")[0] for text in tally.wrong] == ["unclear", "stuck"]


def test_what_is_acknowledged_is_noted(template: Path, tmp_path: Path) -> None:
    folder = copied(template, tmp_path / "x", QUANTIFY)
    with noting() as said:
        assert call(folder, *QUANTIFY.command).code == 0
    names = [name for name, _ in said]
    assert {"results", "calls", "replies", "items"} <= set(names)
    assert names.count("results") == 2 * names.count("calls") == 12
    assert faults_tries.lost(folder / STORE, said) == []
    assert len(faults_tries.unsaid(folder / STORE, said[:-1], QUANTIFY)) <= 1
    (folder / STORE).unlink()
    assert faults_tries.lost(folder / STORE, said) == [f"the store, with {len(said)} rows"]


def test_an_unclear_end_is_seen() -> None:
    one = "agenteval: a.db: cannot write (database or disk is full)\n"
    assert Ran(3, "", one).clean
    assert Ran(3, "", f"6 runs read\n{one}").clean
    assert not Ran(2, "", one).clean
    assert Ran(2, "", "agenteval: runs.jsonl: cannot read (Too many open files)\n").clean
    assert not Ran(3, "", one * 2).clean
    assert not Ran(3, "", "").clean
    assert not Ran(None, "", f"{one}OSError: [Errno 28] No space left on device").clean
    assert OLD.endswith("\n")
