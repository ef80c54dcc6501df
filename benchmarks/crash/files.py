"""Stores that cannot be used as they are: newer, older, damaged, forbidden, no store at all."""

from __future__ import annotations

import os
import shutil
import sqlite3
from collections.abc import Callable
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agenteval.store.schema import SCHEMA_VERSION
from benchmarks.crash.checks import TABLES, copied
from benchmarks.crash.watch import Kill
from benchmarks.crash.work import Kitchen, works
from benchmarks.crash.zygote import Ended, Job

Content = dict[str, bytes]


@dataclass
class Files:
    """How many cases did what they should; `wrong` says of the others what they did."""

    refused: int = 0
    read: int = 0  # a store that may only be read, read
    creation_kills: int = 0
    wrong: list[str] = field(default_factory=list)


def run_files(kitchen: Kitchen, *, quick: bool) -> Files:
    """All cases; the quick size takes one command for most of them and every eleventh write."""
    files = Files()
    full = _full_store(kitchen)
    writing = ("quantify", "verify", "criteria", "plan test")
    reading = ("export", "report", "show")
    both = ("quantify", "export") if quick else (*writing, *reading)
    for name, spoil in CASES.items():
        for command in both:
            if name == "an empty file" and command not in reading:
                continue  # a command that writes makes a store of it
            if quick and command not in reading and name not in QUICK_WRITES:
                continue
            _refuse(kitchen, files, command, name, _spoilt(kitchen, full, spoil))
    for command in both:
        folder = _spoilt(kitchen, full, _forbid)
        if command in reading:
            _read(kitchen, files, command, folder)
        else:
            _refuse(kitchen, files, command, "a file that may not be written", folder, bound=True)
    _without_log(kitchen, files)
    _create(kitchen, files, every=30 if quick else 1)
    return files


# ---- refused -------------------------------------------------------------------------------------


def _newer(store: Path) -> None:
    _execute(store, "PRAGMA user_version = 9")


def _older(store: Path) -> None:
    _execute(store, f"PRAGMA user_version = {SCHEMA_VERSION - 1}")


def _newer_with_log(store: Path) -> None:
    """As a killed writer of a newer version leaves it: with a log that is not in the file yet."""
    aside = store.with_name("aside.db")
    store.rename(aside)
    with closing(sqlite3.connect(aside, isolation_level=None)) as db:
        db.execute("PRAGMA journal_mode=WAL")
        db.execute("PRAGMA user_version = 9")
        for end in ("", "-wal"):
            shutil.copyfile(f"{aside}{end}", f"{store}{end}")
    aside.unlink()


def _text(store: Path) -> None:
    store.write_text("these are notes, not results\n" * 400)


def _foreign(store: Path) -> None:
    store.unlink()
    _execute(store, "CREATE TABLE accounts (name TEXT)")


def _folder(store: Path) -> None:
    store.unlink()
    store.mkdir()


def _halved(store: Path) -> None:
    os.truncate(store, store.stat().st_size // 8192 * 4096)


def _cut(store: Path) -> None:
    os.truncate(store, store.stat().st_size - 1500)


def _overwritten(store: Path) -> None:
    """The root of the tables is there; the pages behind it are noise."""
    with store.open("r+b") as file:
        file.seek(4096)
        file.write(b"\xa5" * (store.stat().st_size - 4096))


def _empty(store: Path) -> None:
    store.write_bytes(b"")


CASES: dict[str, Callable[[Path], None]] = {
    "a newer version": _newer,
    "an older version": _older,
    "a newer version with a log": _newer_with_log,
    "a text": _text,
    "another program's database": _foreign,
    "a folder": _folder,
    "half a database": _halved,
    "a database cut within a page": _cut,
    "a database full of noise": _overwritten,
    "an empty file": _empty,
}
QUICK_WRITES = ("a newer version with a log", "a database cut within a page")


def _forbid(store: Path) -> None:
    store.chmod(0o444)


def _execute(store: Path, statement: str) -> None:
    with closing(sqlite3.connect(store, isolation_level=None)) as db:
        db.execute(statement)


def _full_store(kitchen: Kitchen) -> Path:
    quantify = works(kitchen.sizes)["quantify"]
    folder = kitchen.folder(quantify)
    kitchen.finish(quantify, folder)
    return folder / "s.db"


def _spoilt(kitchen: Kitchen, full: Path, spoil: Callable[[Path], None]) -> Path:
    folder = kitchen.folder()
    shutil.copyfile(full, folder / "s.db")
    spoil(folder / "s.db")
    return folder


def _words(kitchen: Kitchen, command: str) -> tuple[str, ...]:
    if command == "show":
        return ("show", "--json", "--store", "s.db")
    return works(kitchen.sizes)[command].argv(kitchen.url)


def _content(folder: Path) -> Content:
    """Every file but the locks of experiments and the shared memory of readers."""
    skipped = (".locks", "-shm")
    return {
        str(p.relative_to(folder)): p.read_bytes()
        for p in folder.rglob("*")
        if p.is_file() and not any(part.endswith(skipped) for part in p.parts)
    }


def _refuse(
    kitchen: Kitchen, files: Files, command: str, case: str, folder: Path, *, bound: bool = False
) -> None:
    """Exit code 2, one line that names the store, every file as it was."""
    before = _content(folder)
    ended = kitchen.zygote.run(Job(_words(kitchen, command), str(folder), bound=bound))
    about = f"{command} on {case}"
    if trouble := _unlike_refusal(ended, case):
        files.wrong.append(f"{about}: {trouble}")
    elif (after := _content(folder)) != before:
        changed = [n for n in before | after if before.get(n) != after.get(n)]
        files.wrong.append(f"{about}: changed {changed}")
    else:
        files.refused += 1


def _unlike_refusal(ended: Ended, case: str) -> str:
    lines = [line for line in ended.err.splitlines() if line.startswith("agenteval: ")]
    good = ended.code == 2 and len(lines) == 1 and "Traceback" not in ended.err
    if good and case.startswith("a newer") and "update agenteval" not in lines[0]:
        good = False
    if good and "s.db" not in lines[0]:
        good = False
    return "" if good else f"exit code {ended.code}: {ended.err[-300:]}"


def _read(kitchen: Kitchen, files: Files, command: str, folder: Path) -> None:
    """A store that may only be read is read."""
    before = (folder / "s.db").read_bytes()
    ended = kitchen.zygote.run(Job(_words(kitchen, command), str(folder), bound=True))
    if ended.code != 0 or (folder / "s.db").read_bytes() != before:
        files.wrong.append(f"{command} on a file that may only be read: {ended.err[-300:]}")
    else:
        files.read += 1


# ---- used ----------------------------------------------------------------------------------------


def _without_log(kitchen: Kitchen, files: Files) -> None:
    """A store whose log was lost is the whole store of an earlier moment; the rest is asked again.

    SQLite cannot know that a log is missing: after every proper end there is none.
    """
    work = works(kitchen.sizes)["quantify"]
    folder = kitchen.folder(work)
    ended = kitchen.zygote.run(kitchen.job(work, folder, kill=Kill("after", at=4)))
    if not ended.killed:
        files.wrong.append(f"a store without its log: ended with {ended.code}")
        return
    (folder / "s.db-wal").unlink()
    (folder / "s.db-shm").unlink()
    with copied(folder / "s.db") as copy, closing(sqlite3.connect(copy)) as db:
        whole = db.execute("PRAGMA integrity_check").fetchall() == [("ok",)]
    kitchen.finish(work, folder)
    with closing(sqlite3.connect(folder / "s.db")) as db:
        cells = db.execute("SELECT count(*) FROM results WHERE status = 'scored'").fetchone()[0]
    if not whole or cells != kitchen.sizes.judged_cells:
        files.wrong.append(f"a store without its log: whole {whole}, {cells} cells at the end")


def _rows(store: Path) -> dict[str, dict[Any, Any]]:
    """Tables with their rows in order; of `meta` its values by key.

    Raises RuntimeError for a database that is not sound.
    """
    with closing(sqlite3.connect(store)) as db:
        if (said := db.execute("PRAGMA integrity_check").fetchall()) != [("ok",)]:
            raise RuntimeError(f"{store}: {said[:3]}")
        names = [n for (n,) in db.execute("SELECT name FROM sqlite_master WHERE type = 'table'")]
        found: dict[str, dict[Any, Any]] = {}
        for name in names:
            rows = db.execute(f"SELECT * FROM {name} ORDER BY rowid").fetchall()
            found[name] = dict(rows) if name == "meta" else dict(enumerate(rows))
    return found


def _create(kitchen: Kitchen, files: Files, *, every: int) -> None:
    """A new store, killed at each write of its making: no table or all of them, and usable."""
    work = works(kitchen.sizes)["criteria"]
    at = 1
    while True:
        folder = kitchen.folder(work)
        kill = Kill("any_write", at, share=0.5)
        ended = kitchen.zygote.run(kitchen.job(work, folder, kill=kill))
        if not ended.killed or ended.state["commits"] > 1:
            return
        files.creation_kills += 1
        with copied(folder / "s.db") as copy:
            left = _rows(copy)
        if set(left) not in (set(), TABLES):
            files.wrong.append(f"creation, write {at}: tables {sorted(left)}")
        done = kitchen.zygote.run(kitchen.job(work, folder))
        if done.code != 0:
            files.wrong.append(f"creation, write {at}: {done.err[-300:]}")
        at += every
