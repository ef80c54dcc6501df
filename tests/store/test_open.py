"""Opening: what is not a store is told in one line and left as it is."""

from __future__ import annotations

import multiprocessing
import os
import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from agenteval.errors import AgentevalError, StoreRefused
from agenteval.store import Store
from agenteval.store.schema import APPLICATION_ID, SCHEMA_VERSION
from tests.store.making import FORK, ScriptedJudge, check_file, criteria, items


def one_line(error: AgentevalError, path: Path) -> str:
    text = str(error)
    assert "\n" not in text
    assert str(path) in text
    return text


@pytest.mark.parametrize("marked", [APPLICATION_ID, 0, 1])
@pytest.mark.parametrize("version", [SCHEMA_VERSION, SCHEMA_VERSION + 1, SCHEMA_VERSION - 1, 0])
def test_the_header_tells_what_the_file_is(tmp_path: Path, marked: int, version: int) -> None:
    path = tmp_path / "s.db"
    Store(path).close()
    with sqlite3.connect(path) as db:
        assert db.execute("PRAGMA application_id").fetchone() == (0x61676576,)
        assert db.execute("PRAGMA user_version").fetchone() == (SCHEMA_VERSION,)
        db.execute(f"PRAGMA application_id = {marked}")
        db.execute(f"PRAGMA user_version = {version}")
    db.close()
    before = files_of(tmp_path)
    why = "not an agenteval store"
    if marked == APPLICATION_ID and version == SCHEMA_VERSION:
        Store(path, create=False).close()
        assert files_of(tmp_path) == before
        Store(path).close()
        return
    if marked == APPLICATION_ID:
        why = {0: "its version", 4: r"older agenteval \(format 4\); export it"}.get(
            version, "newer"
        )
    for create in (True, False):
        with pytest.raises(StoreRefused, match=why) as caught:
            Store(path, create=create)
        one_line(caught.value, path)
        assert files_of(tmp_path) == before


def test_a_store_of_the_first_versions_which_had_no_mark_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "old.db"
    with sqlite3.connect(path) as db:
        db.executescript(
            "CREATE TABLE meta (key TEXT, value BLOB); CREATE TABLE cells (x TEXT);"
            "CREATE TABLE runs (x TEXT); CREATE TABLE criteria (x TEXT);"
            "INSERT INTO meta VALUES ('version', x'33');"
        )
    db.close()
    with pytest.raises(StoreRefused, match=r"older agenteval \(format 3\)") as caught:
        Store(path)
    assert one_line(caught.value, path).endswith("then start a new one")


KILLED = """
import os, sqlite3, sys
sqlite3.connect(sys.argv[1], isolation_level=None).execute(sys.argv[2])
os._exit(0)
"""


def log_of(path: Path, statement: str) -> None:
    """Change the store as a writer does that is killed before its log is in the file."""
    subprocess.run([sys.executable, "-c", KILLED, str(path), statement], check=True)
    assert path.with_name(f"{path.name}-wal").stat().st_size > 0


def files_of(folder: Path) -> dict[str, bytes]:
    """Every file but the memory that readers share."""
    found = [p for p in folder.iterdir() if p.is_file() and not p.name.endswith("-shm")]
    return {p.name: p.read_bytes() for p in found}


def filled(path: Path, runs: int = 50) -> Path:
    with Store(path) as store:
        store.register(items(runs), criteria(3), ScriptedJudge().source)
    return path


NEWER = "PRAGMA user_version = 99"


@pytest.mark.parametrize("create", [True, False])
@pytest.mark.parametrize("logged", [True, False])
def test_a_newer_store_keeps_every_byte_and_its_log(
    tmp_path: Path, create: bool, logged: bool
) -> None:
    path = filled(tmp_path / "new.db")
    if logged:
        log_of(path, NEWER)
    else:
        with sqlite3.connect(path) as db:
            db.execute(NEWER)
        db.close()
    before = files_of(tmp_path)
    assert ("new.db-wal" in before) == logged
    with pytest.raises(StoreRefused, match=r"store version 99.*update agenteval") as caught:
        Store(path, create=create)
    assert caught.value.exit_code == 2
    one_line(caught.value, path)
    assert files_of(tmp_path) == before


def test_the_log_of_a_killed_writer_is_used(tmp_path: Path) -> None:
    path = filled(tmp_path / "s.db")
    log_of(path, "INSERT INTO replies VALUES ('late', '{}')")
    with Store(path, create=False) as store:
        assert store.get_reply("late") == {}


@pytest.mark.parametrize("cut", [1, 1500, 4096, 20_000])
@pytest.mark.parametrize("create", [True, False])
def test_a_store_that_lacks_its_end_is_refused(tmp_path: Path, cut: int, create: bool) -> None:
    """SQLite itself opens one that lacks a part of its last page, and writes on."""
    path = filled(tmp_path / "s.db", 200)
    os.truncate(path, path.stat().st_size - cut)
    before = files_of(tmp_path)
    why = f"{cut:,} bytes are missing" if cut < 4096 else "malformed"
    with pytest.raises(StoreRefused, match=f"damaged .*{why}") as caught:
        Store(path, create=create)
    one_line(caught.value, path)
    assert files_of(tmp_path) == before


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="folders have no such mode")
def test_a_read_only_folder(tmp_path: Path) -> None:
    folder = tmp_path / "fixed"
    folder.mkdir()
    folder.chmod(0o555)
    code = (
        "import os, sys\n"
        "from agenteval.store import Store\n"
        "if os.getuid() == 0:\n"
        "    os.setuid(65534)\n"  # the superuser may write anywhere: become nobody
        "try:\n"
        "    Store(sys.argv[1])\n"
        "except Exception as error:\n"
        "    print(type(error).__name__, error)\n"
    )
    for part in (tmp_path, *tmp_path.parents):  # nobody must be able to get there
        if part.stat().st_uid == os.getuid() and not part.stat().st_mode & 0o001:
            part.chmod(part.stat().st_mode | 0o011)
    done = subprocess.run(
        [sys.executable, "-c", code, str(folder / "s.db")],
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("StoreRefused ")
    assert str(folder) in lines[0]
    assert list(folder.iterdir()) == []


def _open(path: Path, start: multiprocessing.synchronize.Event, said: object) -> None:
    start.wait(20)
    try:
        with Store(path) as store:
            store.register(items(2), criteria(1), ScriptedJudge().source)
            said.send(store.secret)  # type: ignore[attr-defined]
    except AgentevalError as error:
        said.send(str(error))  # type: ignore[attr-defined]


@pytest.mark.slow
def test_processes_that_create_one_store_together_agree(tmp_path: Path) -> None:
    for i in range(5):
        path = tmp_path / f"s{i}.db"
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
        check_file(path)
