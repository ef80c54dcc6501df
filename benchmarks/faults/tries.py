"""One try of `faults.py`: a command with one fault under it, what it leaves, and the way back."""

from __future__ import annotations

import contextlib
import errno
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from pathlib import Path

from agenteval.models.replay import ReplayTransport
from agenteval.store.schema import metadata
from benchmarks.faults.operations import (
    OLD,
    STORE,
    Acknowledged,
    Operation,
    Ran,
    call,
    copied,
    noting,
)
from tests.support import faulty_disk, faulty_sqlite
from tests.support.faulty import NthCall

_PAGE = 4096  # bytes


@dataclass(frozen=True)
class Kind:
    """One kind of fault; `under` gives the fault and the block in which it holds."""

    name: str
    under: Callable[[int], tuple[NthCall, AbstractContextManager[None]]]


def _kind(where: str, call: str, error: int, how: str = "once") -> Kind:
    module = {"sqlite": faulty_sqlite, "file": faulty_disk}[where]

    def under(n: int) -> tuple[NthCall, AbstractContextManager[None]]:
        fault = NthCall(n, error, lasting=how == "lasting", half=how == "half")
        return fault, module.failing({call: fault})

    return Kind(f"{where} {call} {errno.errorcode[error]} {how}", under)


def _limited(n: int) -> tuple[NthCall, AbstractContextManager[None]]:
    # 1, 3, 6, 10 … pages: a page of HTML has hundreds
    return NthCall(0), faulty_disk.file_limit(n * (n + 1) // 2 * _PAGE)


KINDS = (
    _kind("sqlite", "write", errno.ENOSPC),
    _kind("sqlite", "write", errno.ENOSPC, "lasting"),
    _kind("sqlite", "write", errno.EIO, "half"),
    _kind("sqlite", "fsync", errno.EIO),
    _kind("sqlite", "fsync", errno.EIO, "lasting"),
    _kind("sqlite", "open", errno.EMFILE),
    _kind("sqlite", "read", errno.EIO),
    _kind("sqlite", "truncate", errno.EIO),
    _kind("sqlite", "unlink", errno.EIO),
    _kind("sqlite", "mmap", errno.ENOMEM),
    _kind("file", "write", errno.ENOSPC),
    _kind("file", "write", errno.ENOSPC, "half"),
    _kind("file", "write", errno.ENOSPC, "lasting"),
    _kind("file", "fsync", errno.EIO),
    _kind("file", "rename", errno.EIO),
    _kind("file", "open", errno.EMFILE),
    _kind("file", "unlink", errno.EIO),
    _kind("file", "mkdir", errno.ENOSPC),
    _kind("file", "truncate", errno.EIO),
    _kind("file", "chmod", errno.EIO),
    _kind("file", "list", errno.EIO),
    Kind("file size limited", _limited),
)


@dataclass(slots=True)
class Tally:
    """What the tries of one operation with one kind of fault came to."""

    tried: int = 0
    clean: int = 0  # ended with code 3 and one line
    survived: int = 0  # ended well all the same, with the same table
    wrong: list[str] = field(default_factory=list)  # each begins with one of the words of BAD


BAD = ("unclear", "corrupt", "lost", "half", "differing", "leftover", "stuck")


@dataclass(frozen=True)
class Reference:
    """What an undisturbed run leaves: its table and its outputs."""

    table: str
    outputs: tuple[bytes, ...]


def undisturbed(template: Path, work: Path, operation: Operation) -> Reference:
    """Run it twice in folders of its own. Raises RuntimeError when it fails or differs."""
    found = []
    for name in ("one", "two"):
        folder = copied(template, work / name, operation)
        with noting() as said:
            ran = call(folder, *operation.command)
        if ran.code != 0:
            raise RuntimeError(f"{operation.name} fails by itself: {ran.err}")
        if missing := lost(folder / STORE, said) or unsaid(folder / STORE, said, operation):
            raise RuntimeError(f"{operation.name}: what is acknowledged cannot be told: {missing}")
        found.append(outcome(folder, operation))
        shutil.rmtree(folder)
    if found[0] != found[1]:
        raise RuntimeError(f"{operation.name}: two undisturbed runs differ")
    return found[0]


def attempt(  # noqa: PLR0913  what a try is made of
    template: Path,
    folder: Path,
    operation: Operation,
    kind: Kind,
    n: int,
    expected: Reference,
    tally: Tally,
) -> bool:
    """One try with the n-th call failing; False when the run got by without meeting the fault."""
    copied(template, folder, operation)
    fault, under = kind.under(n)
    with noting() as said, under:
        ran = call(folder, *operation.command)
    limited = not fault.n and ran.code != 0
    if not (fault.fired or limited):
        shutil.rmtree(folder)
        return False
    where = f"n = {n}: "
    tally.tried += 1
    tally.survived += ran.code == 0
    tally.clean += ran.clean
    tally.wrong += [
        f"{w[0]}: {where}{w[1]}" for w in _judged(folder, operation, ran, said, expected)
    ]
    again = call(folder, *operation.command)
    if again.code != 0:
        tally.wrong.append(f"stuck: {where}{again.code} {again.err.strip()[-300:]}")
    elif (found := outcome(folder, operation)) != expected:
        what = "table" if found.table != expected.table else "outputs"
        tally.wrong.append(f"differing: {where}{what} after {ran.code} {ran.err.strip()[-200:]}")
    if left := leftovers(folder):
        tally.wrong.append(f"leftover: {where}{', '.join(left)}")
    shutil.rmtree(folder)
    return True


def _judged(
    folder: Path, operation: Operation, ran: Ran, said: Acknowledged, expected: Reference
) -> list[tuple[str, str]]:
    """What is wrong with how it ended and what it left, by the words of BAD."""
    found = []
    if ran.code != 0 and not ran.clean:
        found.append(("unclear", f"{ran.code} {ran.err.strip()[-300:]}"))
    # on a copy: the way back must start from what the fault has left
    copy = folder.with_name(f"{folder.name}.copy")
    shutil.copytree(folder, copy)
    try:
        found += [("corrupt", w) for w in damage(copy / STORE)]
        if not found:
            found += [("lost", w) for w in lost(copy / STORE, said)]
            found += [("half", w) for w in half(copy, operation, expected)]
    finally:
        shutil.rmtree(copy)
    return found


def outcome(folder: Path, operation: Operation) -> Reference:
    outputs = tuple((folder / name).read_bytes() for name in operation.outputs)
    return Reference(operation.table(folder), outputs)


# ---- what may be wrong ---------------------------------------------------------------------------


def damage(path: Path) -> list[str]:
    """What SQLite itself finds wrong with a database file; nothing for one that is not there."""
    if not path.exists():
        return []
    try:
        with contextlib.closing(sqlite3.connect(path)) as db:
            found = [row[0] for row in db.execute("PRAGMA integrity_check") if row[0] != "ok"]
            return found + [str(row) for row in db.execute("PRAGMA foreign_key_check")]
    except sqlite3.Error as error:
        return [str(error)]


def lost(path: Path, said: Acknowledged) -> list[str]:
    """Acknowledged rows that are not in the database, by their primary keys."""
    if not said:
        return []
    if not path.exists():
        return [f"the store, with {len(said)} rows"]
    missing = []
    with contextlib.closing(sqlite3.connect(path)) as db:
        for table, row in said:
            keys = [c.name for c in metadata.tables[table].primary_key]
            where = " AND ".join(f"{key} = ?" for key in keys)
            query = f"SELECT count(*) FROM {table} WHERE {where}"
            if db.execute(query, [row[key] for key in keys]).fetchone() != (1,):
                missing.append(f"{table} {[row[key] for key in keys]}")
    return missing


def unsaid(path: Path, said: Acknowledged, operation: Operation) -> list[str]:
    """Tables of results with rows that nobody acknowledged: then `lost` would be blind to them."""
    if operation.name in ("export", "report", "criteria"):
        return []
    blind = []
    with contextlib.closing(sqlite3.connect(path)) as db:
        for table in ("results", "calls", "replies"):
            (count,) = db.execute(f"SELECT count(*) FROM {table}").fetchone()
            if count != sum(name == table for name, _ in said):
                blind.append(table)
    return blind


def half(folder: Path, operation: Operation, expected: Reference) -> list[str]:
    """Calls with some of their results only, outputs neither old nor whole, torn recordings."""
    found = []
    store = folder / STORE
    if operation.cells:
        found += store_halves(store, operation.cells)
    for name, new in zip(operation.outputs, expected.outputs, strict=True):
        path = folder / name
        text = path.read_bytes() if path.exists() else b""
        if text not in (OLD.encode(), new):
            found.append(f"{name} is neither old nor new: {len(text)} bytes")
    recorded = folder / "recorded.jsonl"
    if recorded.exists() and recorded.stat().st_size:
        try:
            ReplayTransport(recorded)
        except Exception as error:  # noqa: BLE001  named, whatever it is
            found.append(f"{recorded.name}: {error}")
    return found


def store_halves(store: Path, cells: int) -> list[str]:
    """Stored calls with another number of results than `cells`."""
    if not store.exists():
        return []
    with contextlib.closing(sqlite3.connect(store)) as db:
        if not db.execute("SELECT 1 FROM sqlite_master WHERE name = 'calls'").fetchall():
            return []
        query = """SELECT call_id, count(r.item_key) FROM calls LEFT JOIN results r USING (call_id)
            WHERE calls.status IS NULL GROUP BY call_id HAVING count(r.item_key) != ?"""
        return [f"call {c} has {n} results" for c, n in db.execute(query, (cells,))]


def leftovers(folder: Path) -> list[str]:
    """Temporary files in a folder and below."""
    return sorted(str(p.relative_to(folder)) for p in folder.rglob("*.partial"))
