"""A store in one SQLite file: WAL mode, with explicit transactions.

Has the same functions as `postgres`. Each experiment has a lock file; the lock is released when the
process ends.
"""

from __future__ import annotations

import json
import os
import socket
import sqlite3
import time
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from filelock import FileLock, Timeout
from sqlalchemy import URL, ColumnElement, Connection, Engine, create_engine, event, func, select
from sqlalchemy.exc import SQLAlchemyError

from agenteval.errors import StoreError, StoreLocked, StoreRefused
from agenteval.files import has_log, looking, sqlite_mode, write_atomically
from agenteval.store.schema import APPLICATION_ID, SCHEMA_VERSION

_LOG = 64 * 1024 * 1024  # bytes of the log kept for reuse after a reader made it grow
_PATIENCE = 1.0  # seconds for a query to release the lock and for a holder to write its name
BUSY_SECONDS = 30  # seconds that a writer waits for another process's transaction
REPLACE = "put a whole copy in its place and delete the -wal beside it, or use another --store"
WRITING: dict[str, Any] = {}  # further options of a connection that writes
PARAMETER = "?"


def make_engine(path: Path, *, create: bool = True) -> Engine:
    """Return an engine on the file, which is created only with `create`. Nothing is written before
    it is prepared."""
    url = URL.create("sqlite", database=str(path))
    engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS, "uri": True})

    @event.listens_for(engine, "do_connect")
    def _place(_dialect: Any, _record: Any, places: list[Any], _named: Any) -> None:
        places[0] = f"{path.as_uri()}?mode={'rwc' if create else sqlite_mode(path)}"

    @event.listens_for(engine, "connect")
    def _connected(connection: Any, _: Any) -> None:
        # The driver issues BEGIN late and not before CREATE TABLE, so transactions are explicit.
        connection.isolation_level = None
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute(f"PRAGMA journal_size_limit={_LOG}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        writing_now = connection.get_execution_options().get("writing")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing_now else "BEGIN")

    return engine


def shown(url: URL) -> str:
    """The file, for people."""
    return str(url.database)


def is_prepared(engine: Engine, *, create: bool) -> bool:
    """Return whether there is a store; False for a missing or empty file.

    Nothing is written, and the log of a killed process is not replayed. Raises StoreRefused for a
    file that is not a store, is corrupt, has another version or, with `create`, is not writable;
    sqlite3.Error and OSError when it cannot be read.
    """
    path = Path(str(engine.url.database))
    if create and path.is_file() and not os.access(path, os.W_OK):
        raise StoreRefused(f"{path}: must not be written; change its mode or use another --store")
    if not path.exists():
        return False
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "not a regular file"
        raise StoreRefused(f"{path}: cannot be opened (it is {kind})")
    if path.stat().st_size == 0:
        return False
    logged = has_log(path)
    with looking(path, timeout=BUSY_SECONDS) as db:
        recognised = _recognised(db, path)
        (page,) = db.execute("PRAGMA page_size").fetchone()
        # SQLite does not notice a truncated last page, and continues to write.
        if not logged and not has_log(path) and (remainder := path.stat().st_size % page):
            missing = f"{page - remainder:,} bytes are missing at its end"
            raise StoreRefused(f"{path}: damaged ({missing}); {REPLACE}")
    return recognised


def recognised(connection: Connection) -> bool:
    """Whether the database is a store of this version by now. Raises StoreRefused as
    `is_prepared`."""
    driver: Any = connection.connection.driver_connection
    return _recognised(driver, Path(str(connection.engine.url.database)))


def mark(connection: Connection) -> None:
    """Mark a database whose tables were just made as a store of this version."""
    connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA_VERSION}")


def _recognised(db: sqlite3.Connection, path: Path) -> bool:
    """Whether the database that is open is a store of this version; False when it is empty.

    Raises StoreRefused for another application's database and for another version.
    """
    # Tables first: a process that creates the store marks it together with them.
    tables = {n for (n,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    (application,) = db.execute("PRAGMA application_id").fetchone()
    if application == APPLICATION_ID:
        (version,) = db.execute("PRAGMA user_version").fetchone()
    else:
        if not application and not tables:
            return False
        # The first stores had no mark in their header.
        if application or not {"meta", "cells", "runs", "criteria"} <= tables:
            raise StoreRefused(f"{path}: this database is not an agenteval store")
        (version,) = db.execute(
            "SELECT CAST(CAST(max(value) AS TEXT) AS INTEGER) FROM meta WHERE key = 'version'"
        ).fetchone()
    if version == SCHEMA_VERSION:
        return True
    if version is None or version < 1:
        problem = "this database is not an agenteval store: its version is invalid"
    elif version < SCHEMA_VERSION:
        problem = f"was made by an older agenteval (format {version}); export it with the version "
        problem += "that made it (agenteval export), then start a new one"
    else:
        problem = f"written by a newer agenteval (store version {version}; this one reads up to "
        problem += f"{SCHEMA_VERSION}); update agenteval or use another --store"
    raise StoreRefused(f"{path}: {problem}")


def before_use(engine: Engine) -> None:
    """Readers and the writer do not block each other. A disk that does not support this keeps its
    mode.

    SQLite does not wait here for another writer: two processes that open a new store together would
    fail. Raises StoreError when another has been writing for BUSY_SECONDS.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    raw = engine.raw_connection()
    try:
        while True:
            try:
                raw.cursor().execute("PRAGMA journal_mode=WAL")
            except sqlite3.Error as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise translated(error, engine) from error
                time.sleep(0.02)
            else:
                return
    finally:
        raw.close()


def translated(error: BaseException, engine: Engine, *, opening: bool = False) -> StoreError:
    """Return the exception for a database error in one line: StoreRefused if the file itself is
    invalid, else StoreError."""
    cause = getattr(error, "orig", None) or error
    text = " ".join(str(cause).split()) or type(cause).__name__
    place = engine.url.database or str(engine.url)
    if "disk is full" in text or "disk I/O error" in text:
        return StoreError(
            f"{place}: cannot write ({text}); free some space and run the command again"
        )
    if "database is locked" in text:
        return StoreError(
            f"{place}: another process has been writing for {BUSY_SECONDS} s; try again later"
        )
    for words, problem in (
        ("file is not a database", f"not an agenteval store ({text})"),
        ("malformed", f"damaged ({text}); {REPLACE}"),
        ("readonly database", f"must not be written ({text})"),
    ):
        if words in text:
            return StoreRefused(f"{place}: {problem}")
    if "unable to open database file" in text:
        return StoreRefused(
            f"{place}: cannot be opened; check the file, its folder and their modes"
        )
    if isinstance(error, SQLAlchemyError | OSError | sqlite3.Error):
        return StoreError(f"{place}: {text}")
    return StoreError(f"{place}: cannot store the data ({text})")


def has_snapshots(connection: Connection) -> bool:
    """Return whether a reader can keep a snapshot while others write; not without WAL."""
    return bool(connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() == "wal")


def read_alone(connection: Any) -> None:
    """Return the connection unchanged: each read of this driver is its own transaction."""


def json_text(column: ColumnElement[str], key: str) -> ColumnElement[str]:
    """Return the text under a key of the JSON object in a column, or NULL."""
    extracted: ColumnElement[str] = func.json_extract(column, f"$.{key}")
    return extracted


def among(column: ColumnElement[str], keys: Iterable[str]) -> ColumnElement[bool]:
    """Whether a column is one of the keys: one parameter however many there are, since databases
    bound the number of parameters."""
    each = func.json_each(json.dumps(list(keys))).table_valued("value")
    return column.in_(select(each.c.value))


# ---- one process for each experiment -------------------------------------------------------------


@contextmanager
def lock(engine: Engine, experiment: str) -> Iterator[None]:
    """Hold the experiment for this process.

    `experiment` is a hash. Raises StoreLocked, naming process and host, when it is held, and
    StoreError when the folder cannot be written.
    """
    store = Path(str(engine.url.database))
    lock_file, owner_file = _files(store, experiment)
    held = FileLock(str(lock_file), timeout=_PATIENCE, poll_interval=0.02)
    try:
        lock_file.parent.mkdir(exist_ok=True)
        held.acquire()
        me = {"pid": os.getpid(), "host": socket.gethostname()}
        write_atomically(owner_file, json.dumps(me))
    except Timeout:
        owner = _owner(owner_file) or "another process"
        raise StoreLocked(
            f"{store}: {owner} works on the same experiment; wait for it or stop it"
        ) from None
    except Exception as error:
        held.release()
        raise StoreError(f"{store}: cannot lock ({error})") from error
    try:
        yield
    finally:
        # The lock file itself stays: removing it while a third process waits would split the lock.
        # A leftover name is ignored once the lock is free; the next holder replaces it.
        with suppress(OSError):
            owner_file.unlink(missing_ok=True)
        held.release()


def holder(engine: Engine, experiment: str) -> str | None:
    """Return a description of the process that holds the experiment, or None.

    The lock is acquired and released at once; a process that starts meanwhile waits. If the lock
    cannot be tried, for example without write permission, the recorded name is used.
    """
    lock_file, owner_file = _files(Path(str(engine.url.database)), experiment)
    if not lock_file.exists():
        return None
    try:
        with FileLock(str(lock_file), timeout=0):
            return None
    except Timeout:
        return _owner(owner_file) or "another process"
    except OSError:
        return _owner(owner_file)


def _files(store: Path, experiment: str) -> tuple[Path, Path]:
    """The lock, and the file beside it that names its holder."""
    # One hidden folder for all of them: they stay, see `lock`.
    lock_file = store.with_name(f".{store.name}.locks") / f"{experiment[:16]}.lock"
    return lock_file, lock_file.with_suffix(".owner")


def _owner(path: Path) -> str | None:
    """Return the holder of the lock, or None if unknown."""
    try:
        owner = json.loads(path.read_text(encoding="utf-8"))
        pid, host = int(owner["pid"]), str(owner["host"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if host == socket.gethostname() and not _alive(pid):
        return None
    return f"process {pid} on {host}"


def _alive(pid: int) -> bool:
    if os.name != "posix":  # on Windows, signal 0 would end the process
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it exists and is not ours
        return True
    return True
