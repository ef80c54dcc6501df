"""The locks of an open store stay, whatever else this process does with the file.

Without them another process takes itself for the last one, and deletes the log being written to.
"""

from __future__ import annotations

import os
import signal
import sqlite3
import subprocess
import sys
import threading
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import pytest
from sqlalchemy import Engine, event

from agenteval.errors import StoreError, StoreRefused
from agenteval.store import Store, rows
from tests.store.making import FORK, ScriptedJudge, criteria, items

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
