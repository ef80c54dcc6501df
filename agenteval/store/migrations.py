"""Versions of the store: create, recognise, and later migrate."""

from __future__ import annotations

import secrets

from sqlalchemy import Connection, Engine, insert, inspect, select

from agenteval.errors import StoreError
from agenteval.store.connect import use_wal, writing
from agenteval.store.schema import SCHEMA_VERSION, meta, metadata


def prepare(engine: Engine) -> bytes:
    """Create or check the tables; returns the store's secret (32 bytes, for nonces).

    A database that is not ours is left as it is. Raises StoreError for one, and for a store that
    a newer version wrote.
    """
    with engine.connect() as connection:
        empty = not inspect(connection).get_table_names()
        if not empty:
            _recognise(connection, engine)
    use_wal(engine)
    if empty:
        with writing(engine) as connection:
            # Asked again under the write lock: another process may have been faster.
            if not inspect(connection).get_table_names():
                _create(connection)
    with engine.connect() as connection:
        _recognise(connection, engine)
        return _value(connection, "secret")


def _create(connection: Connection) -> None:
    metadata.create_all(connection)
    connection.execute(
        insert(meta),
        [
            {"key": "version", "value": str(SCHEMA_VERSION).encode()},
            {"key": "secret", "value": secrets.token_bytes(32)},
        ],
    )


def _recognise(connection: Connection, engine: Engine) -> None:
    place = engine.url.database
    tables = inspect(connection)
    names = set(tables.get_table_names())
    if not {"meta", "cells"} <= names or {c["name"] for c in tables.get_columns("meta")} != {
        "key",
        "value",
    }:
        raise StoreError(f"{place}: this database is not an agenteval store")
    raw = _value(connection, "version")
    if not raw.isdigit():
        raise StoreError(f"{place}: this database is not an agenteval store (version {raw!r})")
    if int(raw) > SCHEMA_VERSION:
        raise StoreError(
            f"{place}: written by a newer agenteval (store version {int(raw)}; this "
            f"one reads up to {SCHEMA_VERSION}); update agenteval or use another --store"
        )


def _value(connection: Connection, key: str) -> bytes:
    value = connection.execute(select(meta.c.value).where(meta.c.key == key)).scalar_one_or_none()
    if not isinstance(value, bytes):
        raise StoreError(f"the store lacks its {key}; it was not written by agenteval")
    return value
