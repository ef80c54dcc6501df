"""Is a file a database? Told from its first bytes, without taking this process's locks away.

A process that closes any descriptor of a file gives up all its POSIX locks on that file, those
that SQLite believes to hold too (sqlite.org/howtocorrupt.html, section 2.2). So a file that is
open here already is read through the descriptor that is there, and no second one is opened.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

MAGIC = b"SQLite format 3\0"  # sqlite.org/fileformat2.html, section 1.3
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


def descriptors_on(path: str | os.PathLike[str]) -> Iterator[int]:
    """Descriptors of this process that are on the file, under this name or another.

    None on Windows, where closing one takes no lock along, and where there is no file.
    """
    try:
        about = os.stat(path)
    except (OSError, ValueError):
        return
    for descriptor in _descriptors():
        try:
            found = os.fstat(descriptor)
        except OSError:  # closed
            continue
        if (found.st_dev, found.st_ino) == (about.st_dev, about.st_ino):
            yield descriptor


def _descriptors() -> Iterable[int]:
    if os.name != "posix":
        return ()
    try:
        return [int(name) for name in os.listdir("/dev/fd")]
    except OSError:
        limit = os.sysconf("SC_OPEN_MAX")
        return range(min(limit, _MOST) if limit > 0 else _MOST)


def _begins(path: Path) -> bool:
    if not path.is_file():
        return False
    for descriptor in descriptors_on(path):
        with suppress(OSError):  # one for writing alone
            return os.pread(descriptor, len(MAGIC), 0) == MAGIC
    with path.open("rb") as file:  # no connection of SQLite is without a descriptor that reads
        return file.read(len(MAGIC)) == MAGIC
