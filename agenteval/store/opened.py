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

# Held while a store is looked at and opened, or closed: of one process, one at a time.
gate = threading.Lock()

_File = tuple[int, int]  # device and inode: one file may have several names
_open: Counter[_File] = Counter()


def mark_open(path: Path) -> _File:
    """Note one more opening of the file; returns what `mark_closed` takes. Raises OSError."""
    about = path.stat()
    file = about.st_dev, about.st_ino
    _open[file] += 1
    return file


def mark_closed(file: _File) -> None:
    """Note that one opening of the file has ended, with all its connections."""
    _open[file] -= 1
    if not _open[file]:
        del _open[file]


def is_open(path: str | os.PathLike[str]) -> bool:
    """Whether this process has the file open, under this name or another."""
    if not _open:
        return False
    try:
        about = os.stat(path)
    except (OSError, ValueError):
        return False
    return (about.st_dev, about.st_ino) in _open
