"""A whole store copied into an empty one: from a file to PostgreSQL, back, or to another file."""

from __future__ import annotations

from collections.abc import Callable

from sqlalchemy import Connection, Table, delete, func, insert, inspect, literal_column, select
from sqlalchemy.exc import SQLAlchemyError

from agenteval.errors import InputError
from agenteval.store import schema
from agenteval.store.connect import reading, store_error, writing
from agenteval.store.store import Store

_CHUNK = 2000  # rows of which the texts are held at once


def counts(store: Store) -> dict[str, int]:
    """Rows of every table by its name."""
    with reading(store.engine) as connection:
        return {table.name: _count(connection, table) for table in schema.metadata.sorted_tables}


def copy_store(
    source: Store, target: Store, told: Callable[[str, int], None] = lambda table, rows: None
) -> dict[str, int]:
    """Copy all rows or none; return the number of rows by table.

    `told` is called after each table. Raises InputError for a target that is not empty, and
    StoreError when reading or writing fails.
    """
    tables = [table for table in schema.metadata.sorted_tables if table is not schema.meta]
    copied: dict[str, int] = {}
    try:
        with source.snapshot(), writing(target.engine) as into:
            for table in tables:
                if _count(into, table):
                    raise InputError("holds something already; copy into a new store", target.shown)
            # the secret too: what is asked again finds its replies
            into.execute(delete(schema.meta).where(schema.meta.c.key == "secret"))
            into.execute(insert(schema.meta), {"key": "secret", "value": source.secret})
            with reading(source.engine) as out:
                for table in tables:
                    if not inspect(out).has_table(table.name):  # of version 0.1
                        continue
                    copied[table.name] = _copy(out, into, table)
                    told(table.name, copied[table.name])
    except SQLAlchemyError as error:
        raise store_error(error, target.engine) from error
    return copied


def _copy(out: Connection, into: Connection, table: Table) -> int:
    query = select(table)
    if table is schema.items:  # rows of one moment come in the order in which they were stored
        query = query.order_by(literal_column("items.rowid"))
    count = 0
    rows = out.execution_options(yield_per=_CHUNK).execute(query)
    for part in rows.partitions():
        into.execute(insert(table), [dict(row._mapping) for row in part])
        count += len(part)
    return count


def _count(connection: Connection, table: Table) -> int:
    if not inspect(connection).has_table(table.name):
        return 0
    return int(connection.execute(select(func.count()).select_from(table)).scalar_one())
