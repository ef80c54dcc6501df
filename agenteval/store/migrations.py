"""Versions of the store: create, recognise, and later migrate."""

from __future__ import annotations

import secrets

from sqlalchemy import Connection, Engine, insert, inspect, select

from agenteval.errors import StoreError
from agenteval.store.schema import SCHEMA_VERSION, meta, metadata


def prepare(engine: Engine) -> bytes:
    """Create or check the tables; returns the store's secret (32 bytes, for nonces).

    Raises StoreError for a database that is not ours or was written by a newer version.
    """
    with engine.begin() as connection:
        tables = set(inspect(connection).get_table_names())
        if not tables:
            metadata.create_all(connection)
            connection.execute(
                insert(meta), {"key": "version", "value": str(SCHEMA_VERSION).encode()}
            )
            connection.execute(insert(meta), {"key": "secret", "value": secrets.token_bytes(32)})
        elif "meta" not in tables or "cells" not in tables:
            raise StoreError(f"{engine.url.database}: this database is not an agenteval store")
        _check_version(connection, engine)
        return _value(connection, "secret")


def _check_version(connection: Connection, engine: Engine) -> None:
    version = int(_value(connection, "version"))
    if version > SCHEMA_VERSION:
        raise StoreError(
            f"{engine.url.database}: written by a newer agenteval (store version {version}; this "
            f"one reads up to {SCHEMA_VERSION}); update agenteval or use another --store"
        )


def _value(connection: Connection, key: str) -> bytes:
    value = connection.execute(select(meta.c.value).where(meta.c.key == key)).scalar_one_or_none()
    if value is None:
        raise StoreError(f"the store lacks its {key}; it was not written by agenteval")
    return bytes(value)
