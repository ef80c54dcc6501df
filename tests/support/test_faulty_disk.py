"""The tools that make calls fail: the n-th and no other, with the system's error, then undone."""

from __future__ import annotations

import errno
import io
import os
import socket
import sqlite3
import threading
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from tests.support import faulty_disk, faulty_socket, faulty_sqlite
from tests.support.faulty import NthCall, Verdict

needs_sqlite = pytest.mark.skipif(
    faulty_sqlite.unavailable() is not None, reason=str(faulty_sqlite.unavailable())
)
CARRY_OUT, HALF, FAIL = Verdict.CARRY_OUT, Verdict.HALF, Verdict.FAIL


@pytest.mark.parametrize(
    ("fault", "verdicts"),
    [
        (NthCall(0), [CARRY_OUT] * 4),
        (NthCall(2), [CARRY_OUT, FAIL, CARRY_OUT, CARRY_OUT]),
        (NthCall(2, lasting=True), [CARRY_OUT, FAIL, FAIL, FAIL]),
        (NthCall(2, half=True), [CARRY_OUT, HALF, FAIL, CARRY_OUT]),
        (NthCall(1, half=True, lasting=True), [HALF, FAIL, FAIL, FAIL]),
    ],
)
def test_which_calls_fail(fault: NthCall, verdicts: list[Verdict]) -> None:
    assert [fault.next() for _ in verdicts] == verdicts
    assert fault.seen == 4
    assert fault.fired == sum(v is not CARRY_OUT for v in verdicts)


def test_threads_are_counted_together() -> None:
    fault = NthCall(500)
    threads = [
        threading.Thread(target=lambda: [fault.next() for _ in range(100)]) for _ in range(8)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (fault.seen, fault.fired) == (800, 1)
    with pytest.raises(ValueError, match="from 1"):
        NthCall(-1)


# ---- files ---------------------------------------------------------------------------------------


def test_the_second_write_fails_and_the_rest_does_not(tmp_path: Path) -> None:
    path = tmp_path / "a"
    fault = NthCall(2, errno.ENOSPC)
    with faulty_disk.failing({"write": fault}), path.open("wb", buffering=0) as file:
        assert file.write(b"one") == 3
        with pytest.raises(OSError, match="No space left") as raised:
            file.write(b"two")
        assert file.write(b"three") == 5
    assert raised.value.errno == errno.ENOSPC
    assert path.read_bytes() == b"onethree"
    assert (fault.seen, fault.fired) == (3, 1)


def test_half_of_a_write_is_really_written(tmp_path: Path) -> None:
    path = tmp_path / "a"
    with faulty_disk.failing({"write": NthCall(1, half=True)}):
        file = path.open("w", encoding="utf-8")
        file.write("12345678")
        with pytest.raises(OSError, match="No space left"):
            file.flush()  # the buffer goes on behind the half that was taken
        assert path.read_bytes() == b"1234"
        file.close()
    assert path.read_bytes() == b"12345678"
    descriptor = os.open(path, os.O_WRONLY)
    with faulty_disk.failing({"write": NthCall(1, half=True)}):
        assert os.write(descriptor, b"abcd") == 2
    os.close(descriptor)
    assert path.read_bytes() == b"ab345678"


@pytest.mark.parametrize("kind", faulty_disk.KINDS)
def test_each_kind_fails_once_with_its_error(tmp_path: Path, kind: str) -> None:
    (tmp_path / "old").write_text("x")
    (tmp_path / "gone").write_text("x")

    def everything() -> None:
        descriptor = os.open(tmp_path / "new", os.O_CREAT | os.O_RDWR)
        try:
            os.write(descriptor, b"x")
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        (tmp_path / "old").replace(tmp_path / "older")
        (tmp_path / "older").rename(tmp_path / "old")
        (tmp_path / "gone").unlink(missing_ok=True)
        (tmp_path / "folder").mkdir(exist_ok=True)
        os.truncate(tmp_path / "old", 0)
        (tmp_path / "old").chmod(0o600)
        os.listdir(tmp_path)

    before = {name: getattr(os, name) for name in dir(os)}
    fault = NthCall(1, errno.EIO)
    with faulty_disk.failing({kind: fault}):
        with pytest.raises(OSError, match=os.strerror(errno.EIO)) as raised:
            everything()
        everything()
    assert raised.value.errno == errno.EIO
    assert fault.fired == 1
    assert fault.seen > 1 or kind == "unlink"
    assert {name: getattr(os, name) for name in dir(os)} == before


def test_reading_is_left_alone_and_all_is_undone(tmp_path: Path) -> None:
    path = tmp_path / "a"
    path.write_text("old")
    real = io.open
    with faulty_disk.failing({"open": NthCall(1, lasting=True), "write": NthCall(1, lasting=True)}):
        assert path.read_text() == "old"
        with pytest.raises(OSError, match="No space left"):
            path.write_text("new")
        with path.open("rb") as file:
            assert file.read() == b"old"
    assert io.open is real
    with pytest.raises(ValueError, match="no kinds of call: sync"):
        faulty_disk.failing({"sync": NthCall(1)}).__enter__()


def test_the_file_limit_holds_for_c_as_well(tmp_path: Path) -> None:
    import shutil

    (tmp_path / "source").write_bytes(b"x" * 5000)
    with faulty_disk.file_limit(1000):
        with pytest.raises(OSError, match="File too large") as raised:
            shutil.copyfile(tmp_path / "source", tmp_path / "copy")  # sendfile, in the system
        with closing(sqlite3.connect(tmp_path / "a.db")) as db, pytest.raises(sqlite3.Error):
            db.execute("CREATE TABLE t (x)")
    assert raised.value.errno == errno.EFBIG
    shutil.copyfile(tmp_path / "source", tmp_path / "copy")


# ---- SQLite --------------------------------------------------------------------------------------


def filled(path: Path) -> list[int]:
    """Sizes that were committed before an error; raises nothing of SQLite's."""
    done: list[int] = []
    db = sqlite3.connect(path, isolation_level=None)
    try:
        db.execute("PRAGMA synchronous=FULL")
        db.execute("CREATE TABLE IF NOT EXISTS t (n INTEGER, x BLOB)")
        for n in range(3):
            db.execute("INSERT INTO t VALUES (?, zeroblob(6000))", (n,))
            done.append(n)
    finally:
        db.close()
    return done


@needs_sqlite
@pytest.mark.parametrize(
    ("kind", "error", "said"),
    [
        ("write", errno.ENOSPC, "database or disk is full"),
        ("write", errno.EIO, "disk I/O error"),
        ("open", errno.EMFILE, "unable to open database file"),
        ("fsync", errno.EIO, "disk I/O error"),
        ("read", errno.EACCES, "disk I/O error"),
        ("unlink", errno.EIO, "disk I/O error"),
    ],
)
def test_sqlite_says_what_the_system_said(tmp_path: Path, kind: str, error: int, said: str) -> None:
    """The words are those of sqlite3_errstr for the codes in the comments of os_unix.c."""
    texts, n = set(), 0
    while True:
        n += 1
        path = tmp_path / f"{n}.db"
        fault = NthCall(n, error, lasting=True)
        try:
            with faulty_sqlite.failing({kind: fault}):
                filled(path)
        except sqlite3.Error as raised:
            texts.add(str(raised))
        with closing(sqlite3.connect(path)) as db:
            assert db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
        if not fault.fired:
            break
    assert said in texts
    assert n > 2


@needs_sqlite
def test_a_failing_fsync_is_no_commit_and_leaves_no_half(tmp_path: Path) -> None:
    failed = 0
    for n in range(1, 100):
        path = tmp_path / f"{n}.db"
        filled(path)  # rows 0 to 2
        fault = NthCall(n, errno.EIO)
        try:
            with faulty_sqlite.failing({"fsync": fault}):
                filled(path)
            committed = 6
        except sqlite3.OperationalError:
            failed += 1
            committed = 3
        with closing(sqlite3.connect(path)) as db:
            (count,) = db.execute("SELECT count(*) FROM t").fetchone()
        assert count >= committed
        if not fault.fired:
            break
    assert failed >= 3  # each of the three transactions, at least once
    assert not fault.fired


@needs_sqlite
def test_half_a_page_is_really_written(tmp_path: Path) -> None:
    path = tmp_path / "a.db"
    with faulty_sqlite.failing({"write": NthCall(1, errno.EIO, half=True)}):
        db = sqlite3.connect(path, isolation_level=None)
        db.execute("PRAGMA journal_mode=OFF")
        with pytest.raises(sqlite3.OperationalError):
            db.execute("CREATE TABLE t (x)")
        db.close()
    assert path.stat().st_size == 2048  # of a page of 4096


@needs_sqlite
def test_connections_of_before_and_after_work(tmp_path: Path) -> None:
    old = sqlite3.connect(tmp_path / "a.db", isolation_level=None)
    old.execute("CREATE TABLE t (x)")
    seen = NthCall(0)
    with faulty_sqlite.failing({"write": NthCall(1, errno.EIO, lasting=True), "fsync": seen}):
        inner = sqlite3.connect(tmp_path / "b.db", isolation_level=None)
        with pytest.raises(sqlite3.OperationalError):
            old.execute("INSERT INTO t VALUES (1)")
        with (
            pytest.raises(RuntimeError, match="already"),
            faulty_sqlite.failing({"write": NthCall(1)}),
        ):
            pass
        with pytest.raises(sqlite3.OperationalError):
            inner.execute("CREATE TABLE t (x)")
    old.execute("INSERT INTO t VALUES (2)")
    inner.execute("CREATE TABLE t (x)")  # its files still have our xSync
    assert old.execute("SELECT x FROM t").fetchall() == [(2,)]
    old.close()
    inner.close()
    with pytest.raises(ValueError, match="no kinds of call: chmod"):
        faulty_sqlite.failing({"chmod": NthCall(1)}).__enter__()


# ---- sockets -------------------------------------------------------------------------------------


@pytest.fixture
def echo() -> Iterator[int]:
    """Port of a server that repeats what comes."""

    def repeat(server: socket.socket) -> None:
        heard = b""
        while heard != b"end":
            peer, _ = server.accept()
            with peer:
                heard = peer.recv(100)
                peer.sendall(heard)

    with socket.create_server(("127.0.0.1", 0)) as server:
        thread = threading.Thread(target=repeat, args=(server,))
        thread.start()
        port: int = server.getsockname()[1]
        yield port
        assert said(port, b"end") == b"end"
        thread.join()


def said(port: int, text: bytes = b"hello") -> bytes | int | None:
    """What the server answered, or the error number."""
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=5) as client:
            client.send(text)
            client.shutdown(socket.SHUT_WR)
            return client.recv(100)
    except OSError as error:
        return error.errno


@pytest.mark.parametrize(
    ("kind", "error"),
    [
        ("socket", errno.EMFILE),
        ("connect", errno.ENETUNREACH),
        ("send", errno.EPIPE),
        ("recv", errno.ECONNRESET),
    ],
)
def test_the_second_socket_call_fails(echo: int, kind: str, error: int) -> None:
    real = socket.socket
    fault = NthCall(2, error)
    with faulty_socket.failing({kind: fault}):
        assert [said(echo) for _ in range(3)] == [b"hello", error, b"hello"]
        left, right = socket.socketpair()  # an event loop's own: not counted
        left.send(b"x")
        assert right.recv(1) == b"x"
        left.close()
        right.close()
    assert (fault.seen, fault.fired) == (3, 1)
    assert socket.socket is real
    with pytest.raises(ValueError, match="no kinds of call: bind"):
        faulty_socket.failing({"bind": NthCall(1)}).__enter__()


def test_half_a_message_and_the_end_of_a_stream(echo: int) -> None:
    with faulty_socket.failing({"send": NthCall(1, errno.EPIPE, half=True)}):
        assert said(echo, b"12345678") == b"1234"
        assert said(echo) == errno.EPIPE
    with faulty_socket.failing({"recv": NthCall(1)}, cut=True):
        assert [said(echo), said(echo)] == [b"", b"hello"]


@pytest.mark.parametrize(
    ("kind", "error", "told"),
    [
        ("socket", errno.EMFILE, "cannot connect (Too many open files)"),
        ("connect", errno.ENETUNREACH, "cannot connect (Network is unreachable)"),
        ("connect", errno.ECONNREFUSED, "cannot connect (Connection refused)"),
        ("send", errno.EPIPE, "connection lost (Broken pipe)"),
        ("recv", errno.ECONNRESET, "connection lost (Connection reset by peer)"),
        ("recv", 0, "connection lost (Server disconnected)"),
    ],
)
async def test_the_model_client_says_what_the_system_said(kind: str, error: int, told: str) -> None:
    """To the SDK's transport nearly all of these are timeouts."""
    from agenteval.errors import Transient
    from agenteval.models.openai import OpenAITransport
    from agenteval.models.wire import Request
    from agenteval.testing import serve

    with serve() as server:
        transport = OpenAITransport("m", base_url=server.base_url, api_key=None)
        request = Request(messages=({"role": "user", "content": "hi"},))
        fault = NthCall(1, error)
        with (
            faulty_socket.failing({kind: fault}, cut=not error),
            pytest.raises(Transient) as raised,
        ):
            await transport.send(request)
        await transport.close()
    assert str(raised.value) == f"{server.base_url}: {told}"
    assert fault.fired == 1
