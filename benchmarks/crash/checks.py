"""What a killed command has left: is the database whole, is everything acknowledged there?"""

from __future__ import annotations

import json
import shutil
import sqlite3
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agenteval.store import schema

TABLES = set(schema.metadata.tables)
Key = tuple[str, tuple[tuple[str, Any], ...]]  # a table, and columns with values that tell a row


@dataclass
class Findings:
    """What went wrong, in words, by kind."""

    corrupt: list[str] = field(default_factory=list)
    lost: list[str] = field(default_factory=list)
    half_units: list[str] = field(default_factory=list)
    half_files: list[str] = field(default_factory=list)

    def all(self) -> list[str]:
        return self.corrupt + self.lost + self.half_units + self.half_files


@dataclass
class Ledger:
    """What the children said of one store: rows that were acknowledged, rows seen there before."""

    acknowledged: set[Key] = field(default_factory=set)
    seen: set[Key] = field(default_factory=set)


@contextmanager
def copied(store: Path) -> Iterator[Path]:
    """A copy with its log, so that looking at it changes nothing for the next command.

    SQLite would bring the log into the database, and delete it, when the last reader leaves.
    """
    with tempfile.TemporaryDirectory(prefix="crash-") as folder:
        for suffix in ("", "-wal", "-journal"):
            path = store.with_name(f"{store.name}{suffix}")
            if path.exists():
                shutil.copyfile(path, Path(folder) / path.name)
        yield Path(folder) / store.name


def examine(store: Path, units: Path, ledger: Ledger, found: Findings, about: str) -> None:
    """Add to `found` what is wrong with the store after the end of the child that wrote `units`."""
    submitted: dict[str, list[Key]] = {}  # rows by unit as they were queued
    for line in units.read_text("utf-8").splitlines() if units.exists() else ():
        kind, unit, rows = json.loads(line)
        if kind == "A":
            ledger.acknowledged.update(submitted[unit])
        else:
            submitted[unit] = [(table, tuple(sorted(k.items()))) for table, k in rows]
    if not store.exists():
        if ledger.acknowledged:
            found.lost.append(f"{about}: the store is gone")
        return
    with copied(store) as copy, closing(sqlite3.connect(copy)) as db:
        try:
            _examine(db, submitted, ledger, found, about)
        except sqlite3.DatabaseError as error:
            found.corrupt.append(f"{about}: {error}")


def _examine(
    db: sqlite3.Connection,
    submitted: dict[str, list[Key]],
    ledger: Ledger,
    found: Findings,
    about: str,
) -> None:
    checks: dict[str, list[Any]] = {"integrity_check": [("ok",)], "foreign_key_check": []}
    for pragma, want in checks.items():
        if (rows := db.execute(f"PRAGMA {pragma}").fetchall()) != want:
            found.corrupt.append(f"{about}: {pragma}: {rows[:3]}")
    tables = {n for (n,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if tables not in (set(), TABLES):
        found.corrupt.append(f"{about}: tables {sorted(tables)}")
    if tables == TABLES:
        found.half_units += [f"{about}: {line}" for line in _half_calls(db) + _half_verdicts(db)]
    there = {key: _there(db, tables, key) for keys in submitted.values() for key in keys}
    for key in ledger.acknowledged - ledger.seen:
        if not _there(db, tables, key):
            found.lost.append(f"{about}: {key}")
    often = Counter(key for keys in submitted.values() for key in set(keys))
    several = {key for key, units in often.items() if units > 1}  # as the criterion of many trials
    for keys in submitted.values():
        fresh = [there[key] for key in keys if key not in ledger.seen | several]
        if any(fresh) and not all(fresh):
            found.half_units.append(f"{about}: {sum(fresh)} of {len(fresh)} rows of a unit")
    gone = [key for key in ledger.seen if not _there(db, tables, key)]
    found.lost += [f"{about}: {key} was there before" for key in gone]
    ledger.seen.update(key for key, is_there in there.items() if is_there)


def _half_calls(db: sqlite3.Connection) -> list[str]:
    """Calls that have another number of results than criteria they were asked for."""
    counted = """SELECT k.call_id, json_array_length(k.record, '$.shown'), count(c.call_id)
        FROM calls AS k LEFT JOIN results AS c USING (call_id) WHERE k.status IS NULL
        GROUP BY k.call_id"""
    return [
        f"call {call}: {cells} of {shown} results"
        for call, shown, cells in db.execute(counted)
        if shown != cells
    ]


def _half_verdicts(db: sqlite3.Connection) -> list[str]:
    """Trials of which only a part of the verdict is there, and failures with a verdict."""
    query = """SELECT id, repeat FROM calls JOIN items USING (item_key) WHERE status IS NOT NULL
        AND ((outcome IS NULL) != (check_key IS NULL) OR (outcome IS NULL AND verdict IS NOT NULL)
        OR (status != 'done' AND outcome IS NOT NULL) OR NOT json_valid(record)
        OR NOT json_valid(coalesce(verdict, '{}')))"""
    return [f"trial {trial} of {case}: half a verdict" for case, trial in db.execute(query)]


def _there(db: sqlite3.Connection, tables: set[str], key: Key) -> bool:
    table, values = key
    if table not in tables:
        return False
    where = " AND ".join(f"{column} = ?" for column, _ in values)
    query = f"SELECT 1 FROM {table} WHERE {where}"
    return db.execute(query, [value for _, value in values]).fetchone() is not None


def leftovers(folder: Path) -> list[Path]:
    """Temporary files of whole-file outputs, at any depth."""
    return sorted(folder.rglob(".*.partial"))


def old_or_new(path: Path, contents: tuple[bytes, bytes], found: Findings, about: str) -> None:
    """A file has its old or its new content; b"" stands for no file."""
    content = path.read_bytes() if path.exists() else b""
    if content not in contents:
        found.half_files.append(f"{about}: {path.name}: {len(content)} bytes")
