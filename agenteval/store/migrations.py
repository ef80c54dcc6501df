"""Versions of the store: create, recognise, bring up to date."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from pathlib import Path

from sqlalchemy import Connection, Engine, insert, inspect, select, text, update

from agenteval.errors import NoStoreYet, StoreRefused
from agenteval.records import Criterion
from agenteval.store.connect import use_wal, writing
from agenteval.store.recognise import must_write, recognise, recognise_open
from agenteval.store.relabel import relabel, same_order
from agenteval.store.rows import decode
from agenteval.store.schema import SCHEMA_VERSION, criteria, meta, metadata


def prepare(engine: Engine, *, create: bool = True) -> bytes:
    """Create, check or bring up to date; returns the store's secret (32 bytes, for nonces).

    Raises NoStoreYet without `create` when there is nothing yet, and StoreRefused for a file that
    is no store, damaged, of a newer version, or with `create` not to be written: it is left as it
    is. Raises StoreError or sqlite3.Error when the machine is in the way. To be called under
    `opened.gate`.
    """
    path = Path(str(engine.url.database))
    empty = recognise(engine) is None
    if create:
        must_write(path)
    elif empty:
        raise NoStoreYet(str(path))
    use_wal(engine)
    if empty:
        with writing(engine) as connection:
            # Asked again under the write lock: another process may have been faster.
            if not inspect(connection).get_table_names():
                _create(connection)
    _upgrade(engine)
    recognise_open(engine)  # a newer program may have been faster
    with engine.connect() as connection:
        return _value(connection, "secret")


def _upgrade(engine: Engine) -> None:
    """Run the steps from the store's version to ours, each with its number in one transaction."""
    with engine.connect() as connection:
        version = int(_value(connection, "version"))
    while version < SCHEMA_VERSION:
        with writing(engine) as connection:
            # Asked again under the write lock: another process may have done it.
            version = int(_value(connection, "version"))
            if version >= SCHEMA_VERSION:
                return
            _STEPS[version](connection)
            version += 1
            number = update(meta).where(meta.c.key == "version")
            connection.execute(number.values(value=str(version).encode()))


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


def _create(connection: Connection) -> None:
    metadata.create_all(connection)
    connection.execute(
        insert(meta),
        [
            {"key": "version", "value": str(SCHEMA_VERSION).encode()},
            {"key": "secret", "value": secrets.token_bytes(32)},
        ],
    )


def _value(connection: Connection, key: str) -> bytes:
    value = connection.execute(select(meta.c.value).where(meta.c.key == key)).scalar_one_or_none()
    if not isinstance(value, bytes):
        raise StoreRefused(f"the store lacks its {key}; it was not written by agenteval")
    return value
