"""Open the database and read and write it in transactions: an SQLite file or PostgreSQL.

All that differs between the two is in `sqlite` and in `postgres`, under the same names.
"""

from __future__ import annotations

import re
import secrets
import threading
from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, Protocol, TypeVar

from sqlalchemy import URL, ColumnElement, Connection, Engine, event, insert, select
from sqlalchemy.exc import SQLAlchemyError

from agenteval.errors import InputError, NoStoreYet, StoreError, StoreRefused
from agenteval.store import postgres, sqlite
from agenteval.store.schema import meta, metadata

if TYPE_CHECKING:
    from agenteval.store.store import Store

_P = ParamSpec("_P")
_R = TypeVar("_R")

_URL = re.compile(r"^[A-Za-z][A-Za-z0-9+.]+:/")


class DatabaseDialect(Protocol):
    """Differences between databases: the functions of the modules `sqlite` and `postgres`."""

    WRITING: dict[str, Any]
    PARAMETER: str

    def shown(self, url: URL) -> str: ...
    def is_prepared(self, engine: Engine, *, create: bool) -> bool: ...
    def before_use(self, engine: Engine) -> None: ...
    def recognised(self, connection: Connection) -> bool: ...
    def mark(self, connection: Connection) -> None: ...
    def translated(
        self, error: BaseException, engine: Engine, *, opening: bool = False
    ) -> StoreError: ...
    def has_snapshots(self, connection: Connection) -> bool: ...
    def read_alone(self, connection: Any) -> None: ...
    def json_text(self, column: ColumnElement[str], key: str) -> ColumnElement[str]: ...
    def among(self, column: ColumnElement[str], keys: Iterable[str]) -> ColumnElement[bool]: ...
    def lock(self, engine: Engine, experiment: str) -> AbstractContextManager[None]: ...
    def holder(self, engine: Engine, experiment: str) -> str | None: ...


def dialect_of(engine: Engine) -> DatabaseDialect:
    """Return the dialect functions of the engine's database."""
    return postgres if engine.dialect.name == "postgresql" else sqlite


def store_place(path: str | Path) -> Path | URL:
    """Absolute path of the store, links followed, so that one file has one name; the URL of a
    PostgreSQL database. Raises InputError for any other URL."""
    if _URL.match(str(path)):
        if str(path).partition(":")[0] in postgres.SCHEMES:
            return postgres.read_url(str(path))
        raise InputError("the store is an SQLite file or postgresql://HOST/DATABASE", str(path))
    try:
        return Path(path).expanduser().resolve()
    except (RuntimeError, ValueError) as error:  # a NUL character, or before 3.13 a symlink loop
        raise InputError(f"names no file ({' '.join(str(error).split())})", str(path)) from error


def make_engine(place: Path | URL, *, create: bool = True) -> Engine:
    """Return an engine on the file, which is created only with `create`, or on the database."""
    make: Any = postgres.make_engine if isinstance(place, URL) else sqlite.make_engine
    engine: Engine = make(place, create=create)
    return engine


def close_engine(engine: Engine) -> None:
    """Close all unused connections; later requests for a connection raise an error."""

    @event.listens_for(engine, "do_connect")
    def _no_more(*_: object) -> None:
        raise engine.dialect.loaded_dbapi.ProgrammingError("the store is closed")

    engine.dispose()


class _Held(threading.local):
    """The connections of the current thread's read transactions, by engine."""

    def __init__(self) -> None:
        self.by_engine: dict[Engine, Connection] = {}


_held = _Held()


@contextmanager
def reading(engine: Engine) -> Iterator[Connection]:
    """A connection that sees one state of the database; its errors are raised as StoreError.

    If this thread holds a snapshot of the engine, the connection is the snapshot's.
    """
    held = _held.by_engine.get(engine)
    try:
        with engine.connect() if held is None else nullcontext(held) as connection:
            yield connection
    except SQLAlchemyError as error:
        raise store_error(error, engine) from error


@contextmanager
def snapshot(engine: Engine) -> Iterator[None]:
    """Everything this thread reads over `reading` in the block is from the state at its start.
    Nested snapshots share it. Other threads and writers have their own connections. Rows not
    fetched in the block are lost. On a disk without WAL, where a reader blocks all writers, every
    read has its own state. Raises StoreError.
    """
    if engine in _held.by_engine:
        yield
        return
    try:
        with engine.connect() as connection:
            if not dialect_of(engine).has_snapshots(connection):
                connection.rollback()
                yield
                return
            # BEGIN alone takes no snapshot; the first read does.
            connection.execute(select(meta.c.key)).all()
            _held.by_engine[engine] = connection
            try:
                yield
            finally:
                del _held.by_engine[engine]
                connection.invalidate()  # partly read rows would keep the old state in the pool
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
    """A transaction that holds the write lock from its start and is committed or rolled back."""
    options = {"writing": True, **dialect_of(engine).WRITING}
    with engine.connect().execution_options(**options) as connection, connection.begin():
        yield connection


def store_error(error: BaseException, engine: Engine, *, opening: bool = False) -> StoreError:
    """Return the exception for a database error, with a one-line message: StoreRefused if the file
    itself is invalid, else StoreError. The caller sets the cause."""
    return dialect_of(engine).translated(error, engine, opening=opening)


def prepare(engine: Engine, *, create: bool = True) -> bytes:
    """Create or check the tables; return the store's secret (32 bytes, for nonces).

    Raises NoStoreYet without `create` when the store is empty, and StoreRefused for a file that is
    not a store, is corrupt, has another version or, with `create`, is not writable; it is left
    unchanged. Other errors of the driver, SQLAlchemy or the system are raised as they are.
    """
    dialect = dialect_of(engine)
    exists = dialect.is_prepared(engine, create=create)
    if not exists and not create:
        raise NoStoreYet(dialect.shown(engine.url))
    dialect.before_use(engine)
    if not exists:
        with writing(engine) as connection:
            # Checked again under the write lock: another process may have been faster.
            if not dialect.recognised(connection):
                metadata.create_all(connection)
                row = {"key": "secret", "value": secrets.token_bytes(32)}
                connection.execute(insert(meta), row)
                dialect.mark(connection)
    with engine.connect() as connection:
        query = select(meta.c.value).where(meta.c.key == "secret")
        secret = connection.execute(query).scalar_one_or_none()
    if not isinstance(secret, bytes):
        raise StoreRefused("the store lacks its secret; it was not written by agenteval")
    return secret
