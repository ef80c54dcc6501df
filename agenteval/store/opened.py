"""Which databases this process has open.

A process that closes any descriptor of a file gives up all its POSIX locks on that file, those
that SQLite believes to hold too (sqlite.org/howtocorrupt.html, section 2.2). Another process then
takes itself for the last one and deletes the log that this one goes on writing to: what was
durable is gone. So a database that is open here is looked at by SQLite with its locks alone, never
by `open` or by a connection without locks.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from pathlib import Path

from agenteval.databases import descriptors_on

_File = tuple[int, int]  # device and inode: one file may have several names

# Held while a store is looked at and opened, or closed: of one process, one at a time.
gate = threading.Lock()
_stores: Counter[_File] = Counter()
_inherited: set[_File] = set()


def mark_open(path: Path) -> _File:
    """Note one more store on the file; returns what `mark_closed` takes. Raises OSError."""
    file = file_of(path)
    if file is None:
        raise FileNotFoundError(2, "No such file or directory", str(path))
    _stores[file] += 1
    return file


def mark_closed(file: _File) -> None:
    """Note that one store on the file was closed."""
    _stores[file] -= 1
    if not _stores[file]:
        del _stores[file]


def is_store(path: str | os.PathLike[str]) -> bool:
    """Whether a store of this process has the file open, under this name or another."""
    return bool(_stores) and file_of(path) in _stores


def is_open(path: str | os.PathLike[str]) -> bool:
    """Whether this process has the file open, through a store, a connection of somebody else's or
    one that was left behind."""
    return is_store(path) or any(True for _ in descriptors_on(path))


def was_inherited(path: str | os.PathLike[str]) -> bool:
    """Whether a store had the file open when this process was forked.

    SQLite has then inherited the list of its locks, but not the locks: it would take none.
    """
    return bool(_inherited) and file_of(path) in _inherited


def file_of(path: str | os.PathLike[str]) -> _File | None:
    """What stands for the file itself, whatever its name; None where there is none."""
    try:
        about = os.stat(path)
    except (OSError, ValueError):
        return None
    return about.st_dev, about.st_ino


def _in_child() -> None:
    global gate
    gate = threading.Lock()  # whoever held it is not in this process
    _inherited.update(_stores)
    _stores.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_in_child)
