"""The locks of an open store stay, whatever else this process does with the file.

Without them another process takes itself for the last one, and deletes the log being written to.
"""

from __future__ import annotations

import fcntl
import os
import shutil
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
from agenteval.store import Store, opened, statements
from tests.store.making import FORK, ScriptedJudge, criteria, items
from tests.thorough import often

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


def test_the_probe_sees_a_lock_that_is_gone(path: Path) -> None:
    with Store(path):
        assert state_of_the_lock(path) == "held"
        folder = "/proc/self/fd"
        links = {n: os.path.realpath(f"{folder}/{n}") for n in os.listdir(folder)}
        ours = next(int(n) for n, target in links.items() if target == str(path))
        os.close(os.dup(ours))  # what POSIX makes of it
        assert state_of_the_lock(path) == "free"
    assert state_of_the_lock(path) == "free"


def test_the_tests_are_watched_for_openings_without_locks(path: Path) -> None:
    with Store(path):
        with pytest.raises(AssertionError, match="without its locks"):
            path.open("rb")
        with pytest.raises(AssertionError, match="without its locks"):
            sqlite3.connect(f"{path.as_uri()}?immutable=1", uri=True)
        sqlite3.connect(path).close()
        assert state_of_the_lock(path) == "held"
    path.open("rb").close()


def _again(path: Path) -> None:
    Store(path).close()


def _to_read(path: Path) -> None:
    Store(path, create=False).close()


def _by_another_name(path: Path) -> None:
    """With a log of its own, so it is refused to write there."""
    other = path.with_name("other.db")
    os.link(path, other)
    with pytest.raises(StoreRefused, match="2 names"):
        Store(other)
    Store(other, create=False).close()
    other.unlink()


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
        db.execute("UPDATE meta SET value = x'3939' WHERE key = 'version'")
    with pytest.raises(StoreRefused, match="newer"):
        Store(path)
    db.close()


def _another_file(path: Path) -> None:
    """One that is damaged, and so is looked at four times."""
    bad = path.with_name("bad.db")
    bad.write_bytes(b"SQLite format 3\0" + bytes(200))
    with pytest.raises(StoreRefused):
        Store(bad)


def _unread_results(path: Path) -> None:
    """A store is closed while somebody has its results half read, and opened again."""
    store = Store(path)
    half = store.states_of(ScriptedJudge().source, "original")
    next(half, None)
    store.close()
    Store(path).close()
    with pytest.raises(StoreError, match="closed"):
        store.sources()


WAYS = [_again, _to_read, _by_another_name, _by_a_link, _in_a_thread, _refused, _another_file,
        _unread_results]  # fmt: skip


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


def test_a_new_store_and_one_brought_up_to_date_hold_it(tmp_path: Path) -> None:
    for number, layout in enumerate((None, "version1.sql", "version2.sql")):
        path = tmp_path / f"{number}.db"
        if layout is not None:
            db = sqlite3.connect(path)
            db.executescript((Path(__file__).parent / layout).read_text())
            db.close()
        with Store(path):
            assert state_of_the_lock(path) == "held"


def test_what_is_closed_is_not_remembered(path: Path) -> None:
    with Store(path), Store(path):
        assert opened.is_open(path)
    assert not opened.is_open(path)
    with pytest.raises(StoreRefused):
        Store(path.parent)  # a folder
    copy = path.with_name("copy.db")
    with Store(path):
        shutil.copyfile(path.with_name("s.db-wal"), copy)  # any file
        assert not opened.is_open(copy)
    assert not opened.is_open(path.with_name("none.db"))


def test_a_store_that_is_open_may_be_replaced_by_another_file(path: Path, tmp_path: Path) -> None:
    """The new file is not the open one: it is looked at as any other, and refused."""
    with Store(path):
        (tmp_path / "text").write_text("not a store\n" * 9)
        os.replace(tmp_path / "text", path)
        with pytest.raises(StoreRefused, match="not an agenteval store"):
            Store(path)


def test_a_connection_of_the_user_keeps_its_lock_too(path: Path) -> None:
    theirs = sqlite3.connect(path)
    theirs.execute("SELECT * FROM meta").fetchall()
    assert state_of_the_lock(path) == "held"
    Store(path).close()
    assert state_of_the_lock(path) == "held"
    theirs.close()
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


# -- a process that is forked, a file that goes away -----------------------------------------------


def said_by_a_fork(act: Callable[[], object]) -> str:
    """What comes of the act in a forked process: the error's text, or what it returns."""
    read, write = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            said = str(act())
        except BaseException as error:  # noqa: BLE001  told to the parent
            said = f"{type(error).__name__}: {error}"
        os.write(write, said.encode())
        os._exit(0)
    os.close(write)
    with os.fdopen(read) as stream:
        said = stream.read()
    os.waitpid(child, 0)
    return said


def test_a_fork_is_told_that_it_has_no_locks(path: Path, tmp_path: Path) -> None:
    row = {"key": "of the fork", "reply": "{}"}
    with Store(path) as store:
        assert "StoreError" in (said := said_by_a_fork(lambda: Store(path)))
        assert "forked" in said
        writes = [(statements.ADD_REPLY, [row])]
        assert "StoreError" in said_by_a_fork(lambda: store.submit(writes).result(20))
        assert "StoreError" in said_by_a_fork(lambda: store.get_reply("k"))
        assert said_by_a_fork(store.close) == "None"
        assert state_of_the_lock(path) == "held"
        with opened.gate:  # another thread may hold it at that moment
            assert said_by_a_fork(lambda: Store(tmp_path / "own.db").close()) == "None"
        assert store.get_reply("of the fork") is None
    assert said_by_a_fork(lambda: Store(path).close()) == "None"


@pytest.mark.parametrize("how", ["removed", "renamed", "replaced"])
def test_nothing_is_acknowledged_in_a_file_that_has_lost_its_name(path: Path, how: str) -> None:
    store = Store(path)
    store.register(items(9), criteria(1), ScriptedJudge().source)
    away = path.with_name("away.db")
    if how == "removed":
        path.unlink()
    else:
        path.rename(away)
    if how == "replaced":
        path.write_bytes(b"another")
    for _ in range(2):
        with pytest.raises(StoreError, match="removed, renamed or replaced"):
            store.register(items(12), criteria(1), ScriptedJudge().source)
    store.close()
    if how == "renamed":
        away.rename(path)
        with Store(path) as again:
            assert len(again.runs()) == 9


# -- what it is for ----------------------------------------------------------------------------


def _write(path: Path, pipe: Connection) -> None:
    """Store replies one by one; say each when it is durable, then wait for a word."""
    with Store(path) as store:
        number = 0
        while True:
            row = {"key": f"k{number}", "reply": "{}"}
            store.submit([(statements.ADD_REPLY, [row])]).result()
            pipe.send(number)
            pipe.recv()
            number += 1


def _visit(path: Path) -> None:
    Store(path, create=False).close()


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


def _fill(path: Path, letter: str, start: Connection) -> None:
    start.recv()
    with Store(path) as store:
        for n in range(30):
            store.put_reply(f"{letter if n % 2 else 'both'} {n}", {"text": letter * 1500})


def test_processes_that_come_and_go_leave_a_sound_file_with_everything(path: Path) -> None:
    for _ in range(often(4, 40)):
        children = []
        for letter in "abc":
            ours, theirs = FORK.Pipe()
            child = FORK.Process(target=_fill, args=(path, letter, theirs))
            child.start()
            children.append((child, ours))
        for _, ours in children:
            ours.send("go")
        for child, _ in children:
            child.join(30)
            assert child.exitcode == 0
        db = sqlite3.connect(path)
        assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        assert db.execute("SELECT count(*) FROM replies").fetchone() == (15 + 3 * 15,)
        db.execute("DELETE FROM replies")
        db.commit()
        db.close()


def test_the_range_of_the_lock_is_the_one_that_sqlite_uses(path: Path) -> None:
    """Held by hand, it keeps a writer of the file's own mode out."""
    file = os.open(path, os.O_RDWR)
    fcntl.lockf(file, fcntl.LOCK_EX | fcntl.LOCK_NB, LENGTH, SHARED)
    code = (
        "import sqlite3, sys; sqlite3.connect(sys.argv[1], timeout=0).execute('SELECT * FROM meta')"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(path)], capture_output=True, text=True, check=False
    )
    os.close(file)
    assert "locked" in done.stderr
