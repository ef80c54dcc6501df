"""Open the database: one SQLite file in WAL mode, with transactions that we begin ourselves, or a
database of PostgreSQL (see `postgres`).

`prepare` creates it, or checks that it is a store of this version.
"""

from __future__ import annotations

import os
import re
import secrets
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from sqlalchemy import URL, Connection, Engine, create_engine, event, insert, select
from sqlalchemy.exc import SQLAlchemyError

from agenteval.errors import InputError, NoStoreYet, StoreError, StoreRefused
from agenteval.files import has_log, looking, sqlite_mode
from agenteval.store.postgres import (
    SCHEMES,
    make_postgres_engine,
    postgres_error,
    prepare_postgres,
    read_url,
)
from agenteval.store.schema import APPLICATION_ID, SCHEMA_VERSION, meta, metadata

if TYPE_CHECKING:
    from agenteval.store.store import Store

_P = ParamSpec("_P")
_R = TypeVar("_R")

_LOG = 64 * 1024 * 1024  # bytes of a log that is kept for reuse when a reader has made it grow
BUSY_SECONDS = 30  # how long a writer waits for another process's transaction
REPLACE = "put a whole copy in its place and delete the -wal beside it, or use another --store"
_URL = re.compile(r"^[A-Za-z][A-Za-z0-9+.]+:/")


def store_place(path: str | Path) -> Path | URL:
    """Absolute path of the store, links followed, so that one file has one name; the URL of a
    PostgreSQL database. Raises InputError for any other URL."""
    if _URL.match(str(path)):
        if str(path).partition(":")[0] in SCHEMES:
            return read_url(str(path))
        raise InputError("the store is an SQLite file or postgresql://HOST/DATABASE", str(path))
    try:
        return Path(path).expanduser().resolve()
    except (RuntimeError, ValueError) as error:  # a NUL character; before 3.13 a circle of links
        raise InputError(f"names no file ({' '.join(str(error).split())})", str(path)) from error


def make_engine(path: Path | URL, *, create: bool = True) -> Engine:
    """Engine on the file, which SQLite makes with `create` alone, or on the database.

    Nothing is written to it before `prepare` has recognised it.
    """
    if isinstance(path, URL):
        return make_postgres_engine(path)
    url = URL.create("sqlite", database=str(path))
    engine = create_engine(url, connect_args={"timeout": BUSY_SECONDS, "uri": True})

    @event.listens_for(engine, "do_connect")
    def _place(_dialect: Any, _record: Any, places: list[Any], _named: Any) -> None:
        places[0] = f"{path.as_uri()}?mode={'rwc' if create else sqlite_mode(path)}"

    @event.listens_for(engine, "connect")
    def _connected(connection: Any, _: Any) -> None:
        # The driver's own BEGIN comes late and not before CREATE TABLE; ours comes when we say so.
        connection.isolation_level = None
        connection.execute("PRAGMA synchronous=FULL")
        connection.execute("PRAGMA foreign_keys=ON")
        connection.execute(f"PRAGMA journal_size_limit={_LOG}")

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        writing_now = connection.get_execution_options().get("writing")
        connection.exec_driver_sql("BEGIN IMMEDIATE" if writing_now else "BEGIN")

    return engine


def close_engine(engine: Engine) -> None:
    """Close all connections that are not in use, for good: who asks for another gets an error."""

    @event.listens_for(engine, "do_connect")
    def _no_more(*_: object) -> None:
        raise engine.dialect.loaded_dbapi.ProgrammingError("the store is closed")

    engine.dispose()


class _Held(threading.local):
    """The connections in the read transactions of the thread at hand, by engine."""

    def __init__(self) -> None:
        self.by_engine: dict[Engine, Connection] = {}


_held = _Held()


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection that sees one state of the database; its errors are raised as StoreError.

    While this thread holds a snapshot of the engine, it is that of the snapshot.
    """
    held = _held.by_engine.get(engine)
    try:
        with engine.connect() if held is None else nullcontext(held) as connection:
            yield connection
    except SQLAlchemyError as error:
        raise store_error(error, engine) from error


@contextmanager
def snapshot(engine: Engine) -> Iterator[None]:
    """Everything this thread reads over `reading` until the end is of the state at the start.

    One within another is the same. Other threads, and what is written, have their own connections.
    Rows that are not read to the end by then cannot be read further. On a disk without WAL, where
    a reader stops all writers, every read has a state of its own. Raises StoreError.
    """
    if engine in _held.by_engine:
        yield
        return
    try:
        with engine.connect() as connection:
            sqlite = engine.dialect.name == "sqlite"
            if sqlite and connection.exec_driver_sql("PRAGMA journal_mode").scalar_one() != "wal":
                connection.rollback()
                yield
                return
            # BEGIN alone takes no state yet: the first read does.
            connection.execute(select(meta.c.key)).all()
            _held.by_engine[engine] = connection
            try:
                yield
            finally:
                del _held.by_engine[engine]
                connection.invalidate()  # half read rows would keep the old state in the pool
    except SQLAlchemyError as error:
        raise store_error(error, engine) from error


def of_one_state(
    read: Callable[Concatenate[Store, _P], _R],
) -> Callable[Concatenate[Store, _P], _R]:
    """The function, with all that it reads of the store, its first argument, in one snapshot."""

    @wraps(read)
    def within(store: Store, /, *args: _P.args, **kwargs: _P.kwargs) -> _R:
        with store.snapshot():
            return read(store, *args, **kwargs)

    return within


@contextmanager
def writing(engine: Engine) -> Iterator[Connection]:
    """A transaction that holds the write lock from its start: durable at the end, or undone."""
    options: dict[str, Any] = {"writing": True}
    if engine.dialect.name != "sqlite":  # it reads what others wrote while it waited for its turn
        options["isolation_level"] = "READ COMMITTED"
    with engine.connect().execution_options(**options) as connection, connection.begin():
        yield connection


def store_error(error: BaseException, engine: Engine, *, opening: bool = False) -> StoreError:
    """What to raise for a database error, with one line for a person: StoreRefused where the file
    itself is not as it must be, else StoreError. The cause is left to the caller."""
    if engine.dialect.name == "postgresql":
        return postgres_error(error, engine, opening=opening)
    return _sqlite_error(error, engine)


def _sqlite_error(error: BaseException, engine: Engine) -> StoreError:
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
        path = Path(place)
        if path.is_dir():
            return StoreRefused(f"{place}: cannot be opened (it is a folder)")
        if path.exists() and not os.access(path, os.R_OK):
            return StoreRefused(f"{place}: cannot be opened (it must not be read)")
        if not os.access(path.parent, os.W_OK | os.X_OK):
            return StoreRefused(f"{place}: cannot be opened (its folder must not be written)")
    if isinstance(error, SQLAlchemyError | OSError | sqlite3.Error):
        return StoreError(f"{place}: {text}")
    return StoreError(f"{place}: cannot store this ({text})")


# ---- a new store, or one of this version ---------------------------------------------------------


def prepare(engine: Engine, *, create: bool = True) -> bytes:
    """Create or check; returns the store's secret (32 bytes, for nonces).

    Raises NoStoreYet without `create` when there is nothing yet, and StoreRefused for a file that
    is no store, damaged, of another version, or with `create` not to be written: it is left as it
    is. Raises StoreError, OSError or sqlite3.Error when the machine is in the way.
    """
    if engine.dialect.name == "postgresql":
        return prepare_postgres(engine, create=create)
    path = Path(str(engine.url.database))
    if create and path.is_file() and not os.access(path, os.W_OK):
        raise StoreRefused(f"{path}: must not be written; change its mode or use another --store")
    there = _look(path)
    if not there and not create:
        raise NoStoreYet(str(path))
    _use_wal(engine)
    if not there:
        with writing(engine) as connection:
            # Asked again under the write lock: another process may have been faster.
            driver: Any = connection.connection.driver_connection
            if not _recognised(driver, path):
                metadata.create_all(connection)
                row = {"key": "secret", "value": secrets.token_bytes(32)}
                connection.execute(insert(meta), row)
                connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
                connection.exec_driver_sql(f"PRAGMA user_version = {SCHEMA_VERSION}")
    with engine.connect() as connection:
        query = select(meta.c.value).where(meta.c.key == "secret")
        secret = connection.execute(query).scalar_one_or_none()
    if not isinstance(secret, bytes):
        raise StoreRefused("the store lacks its secret; it was not written by agenteval")
    return secret


def _look(path: Path) -> bool:
    """Whether there is a store; False where there is no file yet, or nothing in it.

    Nothing is written, and no log of a killed process is brought into the file. Raises StoreRefused
    for what is no store, damaged, or of another version, sqlite3.Error and OSError for what cannot
    be read.
    """
    if not path.exists():
        return False
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "not a file of the disk"
        raise StoreRefused(f"{path}: cannot be opened (it is {kind})")
    if path.stat().st_size == 0:
        return False
    logged = has_log(path)
    with looking(path, timeout=BUSY_SECONDS) as db:
        there = _recognised(db, path)
        (page,) = db.execute("PRAGMA page_size").fetchone()
        # SQLite does not notice what is missing of the last page, and writes on.
        if not logged and not has_log(path) and (rest := path.stat().st_size % page):
            missing = f"{page - rest:,} bytes are missing at its end"
            raise StoreRefused(f"{path}: damaged ({missing}); {REPLACE}")
    return there


def _recognised(db: sqlite3.Connection, path: Path) -> bool:
    """Whether the database that is open is a store of this version; False when it is empty.

    Raises StoreRefused for another application's database and for another version.
    """
    # The tables first: another process that makes the store marks it with them.
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
        raise StoreRefused(f"{path}: this database is not an agenteval store: its version is none")
    if version < SCHEMA_VERSION:
        raise StoreRefused(
            f"{path}: was made by an older agenteval (format {version}); export it with the "
            "version that made it (agenteval export), then start a new one"
        )
    raise StoreRefused(
        f"{path}: written by a newer agenteval (store version {version}; this "
        f"one reads up to {SCHEMA_VERSION}); update agenteval or use another --store"
    )


def _use_wal(engine: Engine) -> None:
    """Readers and the writer do not block each other. A disk that cannot do it keeps its mode.

    SQLite itself does not wait here for one who has begun to write: two that open a new store at
    once would fail. Raises StoreError when another has been writing for BUSY_SECONDS.
    """
    deadline = time.monotonic() + BUSY_SECONDS
    raw = engine.raw_connection()
    try:
        while True:
            try:
                raw.cursor().execute("PRAGMA journal_mode=WAL")
            except sqlite3.Error as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise store_error(error, engine) from error
                time.sleep(0.02)
            else:
                return
    finally:
        raw.close()
