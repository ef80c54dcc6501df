"""Is a file a database? Told from its first bytes, without taking this process's locks away.

A process that closes any descriptor of a file gives up all its POSIX locks on that file, those
that SQLite believes to hold too (sqlite.org/howtocorrupt.html, section 2.2). So a file that is
open here already is read through the descriptor that is there, and no second one is opened.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

_MAGIC = b"SQLite format 3\0"  # sqlite.org/fileformat2.html, section 1.3
_BESIDE = ("-wal", "-shm", "-journal")  # what SQLite keeps beside a database belongs to it
_MOST = 65_536  # descriptors that are tried where the system does not list them


def is_database(path: Path) -> bool:
    """Whether the file is an SQLite database, or a name that SQLite uses beside one that is there.

    False where there is no file. Raises OSError for a file that cannot be looked at.
    """
    target = Path(os.path.realpath(path))
    if _begins(target):
        return True
    bases = (target.name.removesuffix(end) for end in _BESIDE if target.name.endswith(end))
    return any(base and _begins(target.with_name(base)) for base in bases)


def _begins(path: Path) -> bool:
    if not path.is_file():
        return False
    about = path.stat()
    for descriptor in _descriptors():
        head = _head(descriptor, (about.st_dev, about.st_ino))
        if head is not None:
            return head == _MAGIC
    with path.open("rb") as file:  # no connection of SQLite is without a descriptor that reads
        return file.read(len(_MAGIC)) == _MAGIC


def _descriptors() -> Iterable[int]:
    """Those of this process; none on Windows, where closing one takes no lock along."""
    if os.name != "posix":
        return ()
    try:
        return [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        limit = os.sysconf("SC_OPEN_MAX")
        return range(min(limit, _MOST) if limit > 0 else _MOST)


def _head(descriptor: int, file: tuple[int, int]) -> bytes | None:
    """First bytes through a descriptor; None when it is on another file, closed, or for writing."""
    try:
        about = os.fstat(descriptor)
        if (about.st_dev, about.st_ino) != file:
            return None
        return os.pread(descriptor, len(_MAGIC), 0)
    except OSError:
        return None
