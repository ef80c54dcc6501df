"""Create the database, or check that it is a store of this version."""

from __future__ import annotations

import os
import secrets
import sqlite3
from pathlib import Path
from typing import Any

from sqlalchemy import Engine, insert, select

from agenteval.errors import NoStoreYet, StoreRefused
from agenteval.files import has_log, looking
from agenteval.store.connect import BUSY_SECONDS, REPLACE, use_wal, writing
from agenteval.store.schema import APPLICATION_ID, SCHEMA_VERSION, meta, metadata


def prepare(engine: Engine, *, create: bool = True) -> bytes:
    """Create or check; returns the store's secret (32 bytes, for nonces).

    Raises NoStoreYet without `create` when there is nothing yet, and StoreRefused for a file that
    is no store, damaged, of another version, or with `create` not to be written: it is left as it
    is. Raises StoreError, OSError or sqlite3.Error when the machine is in the way.
    """
    path = Path(str(engine.url.database))
    if create and path.is_file() and not os.access(path, os.W_OK):
        raise StoreRefused(f"{path}: must not be written; change its mode or use another --store")
    there = _look(path)
    if not there and not create:
        raise NoStoreYet(str(path))
    use_wal(engine)
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
