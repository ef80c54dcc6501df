"""Opening: what is not a store is told in one line and left as it is."""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import socket
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from agenteval.engine import Experiment
from agenteval.errors import AgentevalError, StoreError, StoreLocked, StoreRefused
from agenteval.store import Store, rows
from agenteval.store.export import export_cells
from agenteval.store.schema import APPLICATION_ID, SCHEMA_VERSION
from agenteval.utility.evaluator import JudgeEvaluator
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


# ---- The locks of an open store stay, whatever else this process does with the file --------------


# Where readers of a database hold their lock (sqlite.org/fileformat2.html and os.h, SHARED_FIRST).
SHARED, LENGTH = 0x40000002, 510
PROBE = f"""
import fcntl, os, sys
file = os.open(sys.argv[1], os.O_RDWR)
try:
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, {LENGTH}, {SHARED})
except BlockingIOError:
    print("held")
else:
    print("free")
"""


def state_of_the_lock(path: Path) -> str:
    """What another process finds: "held" or "free"."""
    done = subprocess.run(
        [sys.executable, "-c", PROBE, str(path)], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def path(tmp_path: Path) -> Path:
    with Store(tmp_path / "s.db") as store:
        store.register(items(3), criteria(1), ScriptedJudge().source)
    return tmp_path / "s.db"


def _again(path: Path) -> None:
    Store(path).close()


def _to_read(path: Path) -> None:
    Store(path, create=False).close()


def _by_a_link(path: Path) -> None:
    link = path.with_name("link.db")
    if not link.exists():
        link.symlink_to(path)
    Store(link).close()


def _in_a_thread(path: Path) -> None:
    thread = threading.Thread(target=_again, args=(path,))
    thread.start()
    thread.join(20)


def _refused(path: Path) -> None:
    """While it is open here, somebody makes it a newer version."""
    db = sqlite3.connect(path)
    with db:
        db.execute("PRAGMA user_version = 99")
    with pytest.raises(StoreRefused, match="newer"):
        Store(path)
    db.close()


def _damaged(path: Path) -> None:
    bad = path.with_name("bad.db")
    bad.write_bytes(b"SQLite format 3\0" + bytes(200))
    with pytest.raises(StoreRefused):
        Store(bad)


def _unread_results(path: Path) -> None:
    """A store is closed while somebody has its results half read, and opened again."""
    store = Store(path)
    half = store.states(ScriptedJudge().source.sha256)
    next(half, None)
    store.close()
    Store(path).close()
    with pytest.raises(StoreError, match="closed"):
        store.sources()


WAYS = [_again, _to_read, _by_a_link, _in_a_thread, _refused, _damaged, _unread_results]


@pytest.mark.slow
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("logged", [False, True])
def test_the_lock_stays_while_the_process_opens_the_file_again(
    path: Path, way: Callable[[Path], None], logged: bool
) -> None:
    with Store(path) as store:
        if logged:  # a log with something in it is read in another way
            store.register(items(5), criteria(2), ScriptedJudge().source)
            assert path.with_name("s.db-wal").stat().st_size > 0
        assert state_of_the_lock(path) == "held"
        way(path)
        assert state_of_the_lock(path) == "held"
    assert state_of_the_lock(path) == "free"


def test_ctrl_c_while_a_store_is_opened_leaves_no_connection(path: Path) -> None:
    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    event.listen(Engine, "connect", interrupt)
    try:
        with pytest.raises(KeyboardInterrupt) as kept:
            Store(path)
    finally:
        event.remove(Engine, "connect", interrupt)
    assert state_of_the_lock(path) == "free"
    with Store(path):
        assert state_of_the_lock(path) == "held"
    assert kept.value.__traceback__ is not None


# -- what it is for ----------------------------------------------------------------------------


def _write(path: Path, pipe: Connection) -> None:
    """Store replies one by one; say each when it is durable, then wait for a word."""
    with Store(path) as store:
        number = 0
        while True:
            row = {"key": f"k{number}", "reply": "{}"}
            store.submit([(rows.ADD_REPLY, [row])]).result()
            pipe.send(number)
            pipe.recv()
            number += 1


def _visit(path: Path) -> None:
    Store(path, create=False).close()


@pytest.mark.slow
@pytest.mark.parametrize("visits", [(), (3,), (2, 3, 7)])
def test_visitors_take_nothing_from_a_writer_that_is_killed(
    path: Path, visits: tuple[int, ...]
) -> None:
    ours, theirs = FORK.Pipe()
    child = FORK.Process(target=_write, args=(path, theirs))
    child.start()
    theirs.close()
    for number in range(10):
        assert ours.recv() == number
        if number in visits:
            visitor = FORK.Process(target=_visit, args=(path,))
            visitor.start()
            visitor.join(20)
            assert visitor.exitcode == 0
        if number < 9:
            ours.send("go on")
    assert child.pid is not None
    os.kill(child.pid, signal.SIGKILL)
    child.join(20)
    db = sqlite3.connect(path)
    assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    assert {k for (k,) in db.execute("SELECT key FROM replies")} == {f"k{n}" for n in range(10)}
    db.close()


# ---- One experiment, one process; death releases it; other experiments do not wait ---------------


EXPERIMENT = "e" * 64


def _hold(path: Path, pipe: Connection) -> None:
    """Wait for a word, try to take the lock, hold it until the next word."""
    with Store(path) as store:
        pipe.send(os.getpid())
        pipe.recv()
        try:
            with store.lock(EXPERIMENT):
                pipe.send("won")
                pipe.recv()
        except StoreLocked as error:
            pipe.send(str(error))


@pytest.mark.slow
def test_of_two_processes_exactly_one_wins_five_times(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    Store(path).close()
    for _ in range(5):
        pipes = [FORK.Pipe() for _ in range(2)]
        children = [FORK.Process(target=_hold, args=(path, theirs)) for _, theirs in pipes]
        for child in children:
            child.start()
        for _, theirs in pipes:
            theirs.close()  # a child that dies is heard, not waited for
        pids = [ours.recv() for ours, _ in pipes]
        for ours, _ in pipes:
            ours.send("go")
        said = [ours.recv() for ours, _ in pipes]
        assert said.count("won") == 1
        winner = said.index("won")
        loser = said[1 - winner]
        assert f"process {pids[winner]} on {socket.gethostname()}" in loser
        assert str(path) in loser
        assert "\n" not in loser
        pipes[winner][0].send("end")
        for child in children:
            child.join(20)
            assert child.exitcode == 0


@pytest.mark.slow
def test_kill_releases_the_lock_and_the_dead_is_not_named(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    for _ in range(3):
        ours, theirs = FORK.Pipe()
        child = FORK.Process(target=_hold, args=(path, theirs))
        child.start()
        ours.recv()
        ours.send("go")
        assert ours.recv() == "won"
        with Store(path) as store:
            with pytest.raises(StoreLocked, match=f"process {child.pid} on "):
                store.lock(EXPERIMENT).__enter__()
            child.kill()
            child.join(20)
            with store.lock(EXPERIMENT):
                owner = next(tmp_path.glob(".*.locks/*.owner"))
                assert json.loads(owner.read_text())["pid"] == os.getpid()
            assert list(tmp_path.glob(".*.locks/*.owner")) == []


def _judge(path: Path, seed: int, pipe: Connection) -> None:
    judge = ScriptedJudge(seed=seed, delay=0.001)
    with Store(path) as store:
        rated = JudgeEvaluator.of(judge, items(40), criteria(3), 5)
        ended = asyncio.run(Experiment(rated, store, concurrency=8).run())
        pipe.send((ended.stopped, ended.progress.scored))


@pytest.mark.slow
def test_different_experiments_share_a_store_and_both_finish(tmp_path: Path) -> None:
    path = tmp_path / "s.db"
    pipes = [FORK.Pipe(duplex=False) for _ in range(2)]
    children = [
        FORK.Process(target=_judge, args=(path, seed, theirs))
        for seed, (_, theirs) in enumerate(pipes)
    ]
    for child in children:
        child.start()
    assert [ours.recv() for ours, _ in pipes] == [(None, 600), (None, 600)]
    for child in children:
        child.join(20)
    with Store(path) as store:
        assert export_cells(store, tmp_path / "all.jsonl") == 1200
