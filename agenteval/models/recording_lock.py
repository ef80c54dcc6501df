"""One process records into a file. The lock lives with the process: death releases it."""

from __future__ import annotations

import io
import logging
import sys
from collections.abc import Callable
from pathlib import Path

from agenteval.errors import InputError

if sys.platform != "win32":
    import fcntl

_TAKEN = "another process records into this file; wait for it, or name another one"

_log = logging.getLogger(__name__)


def hold(file: io.FileIO, path: Path) -> Callable[[], None]:
    """Lock the open file for this process; returns what gives it back.

    On a disk without locks a warning is all. Processes that are forked meanwhile share the lock,
    and hold it until they end as well. Raises InputError when another process has it.
    """
    if sys.platform == "win32":  # a lock on the file itself would keep readers out
        return _hold_beside(path)
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise InputError(_TAKEN, str(path)) from None
    except OSError as error:
        _log.warning("%s: cannot be locked (%s); no other process may record into it",
                     path, error.strerror)  # fmt: skip
    return file.close


def _hold_beside(path: Path) -> Callable[[], None]:
    from filelock import FileLock, Timeout

    lock = FileLock(path.with_name(f".{path.name}.lock"), timeout=0)  # removed when given back
    try:
        lock.acquire()
    except Timeout:
        raise InputError(_TAKEN, str(path)) from None
    return lock.release
