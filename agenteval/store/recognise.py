"""Look at a file before anything is done to it: is it a store, whole, of a version known here?

`recognise` before this process has connections to it, `recognise_open` through one of them.
"""

from __future__ import annotations

import os
import sqlite3
import time
from contextlib import closing
from pathlib import Path

from sqlalchemy import Engine

from agenteval.databases import MAGIC
from agenteval.errors import StoreRefused
from agenteval.store.connect import BUSY_SECONDS, REPLACE, store_error
from agenteval.store.opened import is_open
from agenteval.store.schema import SCHEMA_VERSION

_HEADER = 100  # bytes; sqlite.org/fileformat2.html, section 1.3
_LOOKS = 4  # at a file that seems damaged: another process may just be writing to it


def recognise(engine: Engine) -> int | None:
    """The version of the store; None where there is no file yet, or nothing in it.

    To be called under `opened.gate`. Nothing is written, and no log of a killed process is
    brought into the file. Raises StoreRefused for what is no store, damaged, or of a newer
    version, StoreError when the file cannot be read for another reason.
    """
    path = Path(str(engine.url.database))
    looks = 0
    while True:
        looks += 1
        try:
            return _look(path)
        except (sqlite3.Error, OSError) as error:
            failure = store_error(error, engine)
            if looks == _LOOKS or not isinstance(failure, StoreRefused):
                raise failure from error
        except _Short as error:
            if looks == _LOOKS:
                raise StoreRefused(str(error)) from None
        time.sleep(0.02)


def recognise_open(engine: Engine) -> None:
    """Look again, through the engine. Raises StoreRefused as `recognise` does, sqlite3.Error."""
    with closing(engine.raw_connection()) as raw:
        driver: sqlite3.Connection = raw.driver_connection  # type: ignore[assignment]
        _version(driver, Path(str(engine.url.database)))


class _Short(Exception):
    """The file is shorter than it says itself."""


def _look(path: Path) -> int | None:
    if not path.exists():
        return None
    if not path.is_file():
        kind = "a folder" if path.is_dir() else "not a file of the disk"
        raise StoreRefused(f"{path}: cannot be opened (it is {kind})")
    if path.stat().st_size == 0:
        return None
    if _has_content(f"{path}-journal"):
        how = "mode=rw"  # a change that was cut off must be undone before it can be read
    elif _has_content(f"{path}-wal") or is_open(path):
        how = "mode=ro"
    else:
        how = "immutable=1"  # the whole store is in this file, and no other file is made
        _check_length(path)
    with closing(sqlite3.connect(f"{path.as_uri()}?{how}", uri=True, timeout=BUSY_SECONDS)) as db:
        return _version(db, path)


def must_write(path: Path) -> None:
    """Raises StoreRefused for a file that is there and must not be written, or has a second name
    that another process might use, with a log and locks of its own: said before anything is paid
    for."""
    if not path.is_file():
        return
    if not os.access(path, os.W_OK):
        raise StoreRefused(f"{path}: must not be written; change its mode or use another --store")
    if (names := path.stat().st_nlink) > 1:
        raise StoreRefused(
            f"{path}: must not be written (the file has {names} names, hard links, which would "
            "get a log each); copy it and delete the others, or use another --store"
        )


def _version(db: sqlite3.Connection, path: Path) -> int | None:
    names = {n for (n,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if not names:
        return None
    foreign = f"{path}: this database is not an agenteval store"
    columns = {row[1] for row in db.execute("PRAGMA table_info(meta)")}
    if not {"meta", "cells"} <= names or columns != {"key", "value"}:
        raise StoreRefused(foreign)
    found = db.execute("SELECT value FROM meta WHERE key = 'version'").fetchone()
    if found is None or not isinstance(found[0], bytes):
        raise StoreRefused(f"{foreign}: it lacks its version")
    if not found[0].isdigit():
        raise StoreRefused(f"{foreign} (version {found[0]!r})")
    version = int(found[0])
    if version > SCHEMA_VERSION:
        raise StoreRefused(
            f"{path}: written by a newer agenteval (store version {version}; this "
            f"one reads up to {SCHEMA_VERSION}); update agenteval or use another --store"
        )
    return version


def _check_length(path: Path) -> None:
    """Raises _Short. SQLite does not notice what is missing of the last page, and writes on."""
    if missing := _missing(path):
        raise _Short(f"{path}: damaged ({missing:,} bytes are missing at its end); {REPLACE}")


def _missing(path: Path) -> int:
    """Bytes missing at the end, by the number of pages in the header."""
    with path.open("rb") as file:
        header = file.read(_HEADER)
        length = os.fstat(file.fileno()).st_size
    if not header.startswith(MAGIC) or len(header) < _HEADER:
        return 0  # no database: SQLite says so

    def number(start: int, size: int = 4) -> int:
        return int.from_bytes(header[start : start + size], "big")

    page = {1: 65536}.get(number(16, 2), number(16, 2))
    if number(24) != number(92):  # the number of pages is not that of the last change
        return 0
    return max(0, number(28) * page - length)


def _has_content(path: str) -> bool:
    try:
        return os.stat(path).st_size > 0
    except FileNotFoundError:
        return False
