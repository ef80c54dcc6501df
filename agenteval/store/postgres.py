"""A store in PostgreSQL instead of a file.

Has the same functions as `sqlite`. The tables are the same; texts are compared byte by byte, as
SQLite does. Writers of all processes take turns, transaction by transaction, as with SQLite.
"""

from __future__ import annotations

import logging
import os
import socket
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

from sqlalchemy import (
    JSON,
    URL,
    ColumnElement,
    Connection,
    Engine,
    String,
    any_,
    cast,
    create_engine,
    event,
    insert,
    select,
    text,
)
from sqlalchemy.dialects.postgresql import ARRAY
from sqlalchemy.engine import make_url
from sqlalchemy.exc import ArgumentError, SQLAlchemyError

from agenteval.errors import InputError, StoreError, StoreLocked, StoreRefused
from agenteval.store.schema import APPLICATION_ID, SCHEMA_VERSION, meta, metadata

SCHEMES = ("postgresql", "postgres")
_CONNECT_SECONDS = 10
_WAIT_SECONDS = 60  # how long a writer waits for the lock
# A writer reads what others wrote while it waited for its turn.
WRITING: dict[str, Any] = {"isolation_level": "READ COMMITTED"}
PARAMETER = "%s"
_IDLE_SECONDS = 20  # a writer that is idle for this long loses the lock


def read_url(address: str) -> URL:
    """The URL of a database. Raises InputError if host or database is missing or the driver is not
    installed."""
    try:
        url = make_url(address)
    except ArgumentError as error:
        raise InputError("is not the URL of a database", _shown_anyhow(address)) from error
    if not url.host or not url.database:
        raise InputError("name host and database: postgresql://HOST/DATABASE", shown(url))
    try:
        import psycopg  # noqa: F401 checked here for a clear message
    except ImportError as error:
        raise InputError(
            "PostgreSQL needs a driver: pip install 'agenteval[postgres]'", shown(url)
        ) from error
    return url.set(drivername="postgresql+psycopg")


def shown(url: URL) -> str:
    """Return the URL for display: host and database, without user and password."""
    plain = URL.create("postgresql", host=url.host, port=url.port, database=url.database)
    return plain.render_as_string()


def without_password(address: str) -> str:
    """Return the URL without its password."""
    return shown(make_url(address))


def _shown_anyhow(address: str) -> str:
    """Return the URL with everything that may be a password hidden, even if it cannot be parsed."""
    return f"{address.partition('://')[0]}://…{address.rpartition('@')[2]}"


def make_engine(url: URL, *, create: bool = True) -> Engine:
    """Engine on the database: reads see one state each, writers take turns."""
    logging.getLogger("sqlalchemy.pool").addHandler(logging.NullHandler())  # we tell errors
    about = f"agenteval process {os.getpid()} on {socket.gethostname()}"
    engine = create_engine(
        url,
        isolation_level="REPEATABLE READ",
        pool_pre_ping=True,
        connect_args={"connect_timeout": _CONNECT_SECONDS, "application_name": about[:63]},
    )

    @event.listens_for(engine, "begin")
    def _begin(connection: Connection) -> None:
        if connection.get_execution_options().get("writing"):
            connection.exec_driver_sql(
                f"SELECT set_config('lock_timeout', '{_WAIT_SECONDS}s', true), "
                f"set_config('idle_in_transaction_session_timeout', '{_IDLE_SECONDS}s', true), "
                f"pg_advisory_xact_lock({APPLICATION_ID})"
            )

    return engine


def is_prepared(engine: Engine, *, create: bool) -> bool:
    """Whether the database is a store of this version; False if it has none of its tables.
    Raises StoreRefused for other tables and for another version."""
    with engine.connect() as connection:
        return recognised(connection)


def before_use(engine: Engine) -> None:
    """No settings are needed."""


def recognised(connection: Connection) -> bool:
    """The same, over a connection."""
    place = shown(connection.engine.url)
    query = text(
        "SELECT table_name FROM information_schema.tables WHERE table_schema = current_schema()"
    )
    tables = set(connection.execute(query).scalars())
    ours = set(metadata.tables)
    if not tables & ours:
        return False
    if not ours <= tables:
        raise StoreRefused(f"{place}: this database has tables of others: {min(tables & ours)}")
    row = connection.execute(select(meta.c.value).where(meta.c.key == "version")).first()
    version = int(bytes(row[0])) if row is not None and bytes(row[0]).isdigit() else None
    if version != SCHEMA_VERSION:
        raise StoreRefused(
            f"{place}: its tables are of version {version}, this agenteval reads {SCHEMA_VERSION}"
        )
    return True


def mark(connection: Connection) -> None:
    """Mark a database whose tables were just made as a store of this version."""
    # in insertion order, as in SQLite
    connection.exec_driver_sql("ALTER TABLE items ADD COLUMN rowid BIGSERIAL")
    connection.execute(insert(meta), {"key": "version", "value": str(SCHEMA_VERSION).encode()})


def has_snapshots(connection: Connection) -> bool:
    """Return whether a reader can keep a snapshot while others write."""
    return True


def read_alone(connection: Any) -> None:
    """Make each read on this driver's connection its own transaction."""
    connection.autocommit = True


def json_text(column: ColumnElement[str], key: str) -> ColumnElement[str]:
    """Return the text under a key of the JSON object in a column, or NULL."""
    extracted: ColumnElement[str] = cast(column, JSON)[key].as_string()
    return extracted


def among(column: ColumnElement[str], keys: Iterable[str]) -> ColumnElement[bool]:
    """Whether a column is one of the keys: one parameter however many there are."""
    return column == any_(cast(list(keys), ARRAY(String)))


def translated(error: BaseException, engine: Engine, *, opening: bool = False) -> StoreError:
    """Return the exception for a database error in one line: StoreRefused if it cannot be reached
    when opened, else StoreError."""
    cause = getattr(error, "orig", None) or error
    lines = [line.strip() for line in str(cause).splitlines() if line.strip()]
    message = lines[0] if lines else type(cause).__name__
    reached = "connection" in message and ("failed" in message or "refused" in message)
    if opening and getattr(cause, "sqlstate", None) is None and reached:
        why = message.rpartition(": ")[2].strip() if "FATAL" in message else message
        return StoreRefused(f"{shown(engine.url)}: cannot be opened ({why})")
    if getattr(cause, "sqlstate", None) == "55P03":  # lock_not_available
        message = f"another process has been writing for {_WAIT_SECONDS} s; try again later"
    return StoreError(f"{shown(engine.url)}: {message}")


# ---- one worker per experiment -------------------------------------------------------------------


@contextmanager
def lock(engine: Engine, experiment: str) -> Iterator[None]:
    """Hold the experiment (a hash) while this connection is open; it is released when the process
    ends.

    Raises StoreLocked, naming the holder, when it is held.
    """
    try:
        connection = engine.connect().execution_options(isolation_level="AUTOCOMMIT")
        with connection:
            query = f"SELECT pg_try_advisory_lock({APPLICATION_ID}, {_number(experiment)})"
            if not connection.exec_driver_sql(query).scalar_one():
                owner = holder(engine, experiment) or "another process"
                raise StoreLocked(
                    f"{shown(engine.url)}: {owner} works on the same experiment; wait for it or "
                    "stop it"
                )
            try:
                yield
            finally:
                connection.invalidate()  # the server releases the lock when the connection closes
    except SQLAlchemyError as error:
        raise translated(error, engine) from error


def holder(engine: Engine, experiment: str) -> str | None:
    """Return a description of the process that holds the experiment, or None."""
    query = text(
        "SELECT a.application_name FROM pg_locks l JOIN pg_stat_activity a ON a.pid = l.pid "
        "WHERE l.locktype = 'advisory' AND l.granted AND l.objsubid = 2 "
        "AND l.classid = :ours AND l.objid::bigint = :which "
        "AND l.database = (SELECT oid FROM pg_database WHERE datname = current_database())"
    )
    with engine.connect() as connection:
        values = {"ours": APPLICATION_ID, "which": _number(experiment)}
        name = connection.execute(query, values).scalar()
    return None if name is None else str(name).removeprefix("agenteval ") or "another process"


def _number(experiment: str) -> int:
    """Return 31 bits of a hash, for an advisory lock."""
    return int(experiment[:8], 16) & 0x7FFFFFFF
