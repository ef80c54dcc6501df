"""Versions of the store: create, recognise, bring up to date."""

from __future__ import annotations

import os
import secrets
import sqlite3
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Connection, Engine, insert, select, text

from agenteval.errors import NoStoreYet, StoreRefused
from agenteval.files import has_log, looking
from agenteval.records import Criterion
from agenteval.store.connect import BUSY_SECONDS, REPLACE, use_wal, writing
from agenteval.store.relabel import relabel, same_order
from agenteval.store.rows import decode
from agenteval.store.schema import APPLICATION_ID, SCHEMA_VERSION, criteria, meta, metadata


def prepare(engine: Engine, *, create: bool = True) -> bytes:
    """Create, check or bring up to date; returns the store's secret (32 bytes, for nonces).

    Raises NoStoreYet without `create` when there is nothing yet, and StoreRefused for a file that
    is no store, damaged, of a newer version, or with `create` not to be written: it is left as it
    is. Raises StoreError, OSError or sqlite3.Error when the machine is in the way.
    """
    path = Path(str(engine.url.database))
    if create and path.is_file() and not os.access(path, os.W_OK):
        raise StoreRefused(f"{path}: must not be written; change its mode or use another --store")
    version = _look(path)
    if version is None and not create:
        raise NoStoreYet(str(path))
    use_wal(engine)
    if version is None:
        with writing(engine) as connection:
            # Asked again under the write lock: another process may have been faster.
            if _version(_driver(connection), path) is None:
                metadata.create_all(connection)
                connection.execute(
                    insert(meta), [{"key": "secret", "value": secrets.token_bytes(32)}]
                )
                _mark(connection, SCHEMA_VERSION)
    _upgrade(engine, path, mark=create)
    with engine.connect() as connection:
        _version(_driver(connection), path)  # a newer program may have been faster
        return _value(connection, "secret")


def _look(path: Path) -> int | None:
    """The version of the store; None where there is no file yet, or nothing in it.

    Nothing is written, and no log of a killed process is brought into the file. Raises StoreRefused
    for what is no store, damaged, or of a newer version, sqlite3.Error and OSError for what cannot
    be read.
    """
    if not path.exists():
        return None
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "not a file of the disk"
        raise StoreRefused(f"{path}: cannot be opened (it is {kind})")
    if path.stat().st_size == 0:
        return None
    logged = has_log(path)
    with looking(path, timeout=BUSY_SECONDS) as db:
        version = _version(db, path)
        (page,) = db.execute("PRAGMA page_size").fetchone()
        # SQLite does not notice what is missing of the last page, and writes on.
        if not logged and not has_log(path) and (rest := path.stat().st_size % page):
            missing = f"{page - rest:,} bytes are missing at its end"
            raise StoreRefused(f"{path}: damaged ({missing}); {REPLACE}")
    return version


def _version(db: sqlite3.Connection, path: Path) -> int | None:
    """The version of the store that is open; None when there is nothing in the file.

    Raises StoreRefused for another application's database and for a newer store.
    """
    foreign = f"{path}: this database is not an agenteval store"
    (application,) = db.execute("PRAGMA application_id").fetchone()
    if application == APPLICATION_ID:
        (version,) = db.execute("PRAGMA user_version").fetchone()
    else:  # stores had no mark at first: their tables tell
        tables = {n for (n,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not application and not tables:
            return None
        columns = {row[1] for row in db.execute("PRAGMA table_info(meta)")}
        if application or not {"meta", "cells"} <= tables or columns != {"key", "value"}:
            raise StoreRefused(foreign)
        stored = db.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
        if stored is None or not isinstance(stored[0], bytes):
            raise StoreRefused(f"{foreign}: it lacks its version")
        version = int(stored[0]) if stored[0].isdigit() else 0
    if version < 1:
        raise StoreRefused(f"{foreign}: its version is none")
    if version > SCHEMA_VERSION:
        raise StoreRefused(
            f"{path}: written by a newer agenteval (store version {version}; this "
            f"one reads up to {SCHEMA_VERSION}); update agenteval or use another --store"
        )
    return int(version)


def _driver(connection: Connection) -> sqlite3.Connection:
    return connection.connection.driver_connection  # type: ignore[return-value]


def _mark(connection: Connection, version: int) -> None:
    """Write what the file is into its header, and the version where older programs look for it."""
    connection.exec_driver_sql(f"PRAGMA application_id = {APPLICATION_ID}")
    connection.exec_driver_sql(f"PRAGMA user_version = {version}")
    connection.execute(
        text("INSERT OR REPLACE INTO meta VALUES ('version', :value)"),
        {"value": str(version).encode()},
    )


def _upgrade(engine: Engine, path: Path, *, mark: bool) -> None:
    """Run the steps from the store's version to ours, each with its number in one transaction.

    With `mark`, a store of our version that lacks the mark in its header gets it.
    """
    with engine.connect() as connection:
        version = _version(_driver(connection), path)
        (application,) = connection.exec_driver_sql("PRAGMA application_id").one()
    while version is not None and version < SCHEMA_VERSION:
        with writing(engine) as connection:
            # Asked again under the write lock: another process may have done it.
            version = _version(_driver(connection), path)
            if version is None or version >= SCHEMA_VERSION:
                return
            _STEPS[version](connection)
            version += 1
            _mark(connection, version)
        application = APPLICATION_ID
    if mark and application != APPLICATION_ID:
        with writing(engine) as connection:
            _version(_driver(connection), path)
            _mark(connection, SCHEMA_VERSION)


def _origin_of_runs(connection: Connection) -> None:
    connection.execute(text("ALTER TABLE runs ADD COLUMN origin VARCHAR"))


# Written out, not taken from schema.py: a step makes the layout of its own time.
_TRIALS = (
    """CREATE TABLE cases (
        evaluator VARCHAR NOT NULL,
        case_key VARCHAR NOT NULL,
        case_id VARCHAR NOT NULL,
        body TEXT NOT NULL,
        PRIMARY KEY (evaluator, case_key)
    )""",
    """CREATE TABLE systems (
        system_key VARCHAR NOT NULL,
        name VARCHAR NOT NULL,
        parameters TEXT NOT NULL,
        PRIMARY KEY (system_key)
    )""",
    """CREATE TABLE trials (
        evaluator VARCHAR NOT NULL,
        system_key VARCHAR NOT NULL,
        case_key VARCHAR NOT NULL,
        trial INTEGER NOT NULL,
        case_id VARCHAR NOT NULL,
        status VARCHAR NOT NULL,
        outcome VARCHAR,
        check_key VARCHAR,
        tries INTEGER NOT NULL,
        started FLOAT,
        ended FLOAT,
        requests INTEGER,
        prompt_tokens INTEGER,
        completion_tokens INTEGER,
        cost FLOAT,
        verdict TEXT,
        log TEXT NOT NULL,
        PRIMARY KEY (evaluator, system_key, case_key, trial),
        FOREIGN KEY (evaluator, case_key) REFERENCES cases (evaluator, case_key),
        FOREIGN KEY (system_key) REFERENCES systems (system_key)
    )""",
)


def _trials_of_agents(connection: Connection) -> None:
    for statement in _TRIALS:
        connection.execute(text(statement))


def _order_leaves_the_hash(connection: Connection) -> None:
    """Keys of criteria without the order of their levels.

    Where a store holds one list in two orders, the one used last counts: ratings of the other are
    relabelled, and give way where the same was rated under both.
    """
    c = criteria.c
    query = select(c.criterion_key, c.record).order_by(c.used, text("rowid"))
    current: dict[str, Criterion] = {}
    renamed: list[tuple[str, str, Criterion]] = []
    for key, record in connection.execute(query).all():
        criterion = Criterion.model_validate(decode(record, f"the criterion {key[:12]}"))
        current[criterion.sha256] = criterion
        renamed.append((key, criterion.sha256, criterion))
    for old, new, criterion in renamed:
        if old == new:
            continue
        last = current[new]
        if not same_order(criterion, last):
            relabel(connection, criterion, last, old)
        connection.execute(
            text(
                "INSERT INTO criteria (criterion_key, criterion_id, record, used) "
                "SELECT :new, criterion_id, record, used FROM criteria WHERE criterion_key = :old "
                "ON CONFLICT (criterion_key) DO UPDATE SET record = excluded.record, "
                "used = excluded.used"
            ),
            {"old": old, "new": new},
        )
        for statement in (
            "UPDATE OR REPLACE cells SET criterion_key = :new WHERE criterion_key = :old",
            "DELETE FROM criteria WHERE criterion_key = :old",
            "UPDATE meta SET value = CAST(replace(CAST(value AS TEXT), :old, :new) AS BLOB) "
            "WHERE instr(CAST(value AS TEXT), :old) > 0",
        ):
            connection.execute(text(statement), {"old": old, "new": new})


_STEPS: dict[int, Callable[[Connection], None]] = {  # by the version before
    1: _origin_of_runs,
    2: _trials_of_agents,
    3: _order_leaves_the_hash,
}


def _value(connection: Connection, key: str) -> bytes:
    value = connection.execute(select(meta.c.value).where(meta.c.key == key)).scalar_one_or_none()
    if not isinstance(value, bytes):
        raise StoreRefused(f"the store lacks its {key}; it was not written by agenteval")
    return value
