"""One writer per experiment. The lock lives with the process: death releases it."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from filelock import FileLock, Timeout

from agenteval.errors import StoreError, StoreLocked
from agenteval.files import write_atomically

_PATIENCE = 1.0  # seconds in which one that only asks lets go, and a holder says who it is


@contextmanager
def experiment_lock(store: Path, experiment: str) -> Iterator[None]:
    """Hold the experiment for this process.

    `experiment` is a hash. Raises StoreLocked, naming process and host, when it is held, and
    StoreError when the folder cannot be written.
    """
    lock_file, owner_file = _files(store, experiment)
    lock = FileLock(str(lock_file), timeout=_PATIENCE, poll_interval=0.02)
    try:
        lock_file.parent.mkdir(exist_ok=True)
        lock.acquire()
        me = {"pid": os.getpid(), "host": socket.gethostname()}
        write_atomically(owner_file, json.dumps(me))
    except Timeout:
        owner = _owner(owner_file) or "another process"
        raise StoreLocked(
            f"{store}: {owner} works on the same experiment; wait for it or stop it"
        ) from None
    except Exception as error:
        lock.release()
        raise StoreError(f"{store}: cannot lock ({error})") from error
    try:
        yield
    finally:
        # The lock file itself stays: removing it while a third process waits would split the lock.
        # A name that stays names nobody once the lock is free; the next holder replaces it.
        with suppress(OSError):
            owner_file.unlink(missing_ok=True)
        lock.release()


def holder(store: Path, experiment: str) -> str | None:
    """Who works on the experiment at this moment, in words; None when nobody does.

    The lock is tried and given back at once: whoever comes meanwhile waits. Where it cannot
    be tried, as by a user who must not write here, the name beside it is believed.
    """
    lock_file, owner_file = _files(store, experiment)
    if not lock_file.exists():
        return None
    try:
        with FileLock(str(lock_file), timeout=0):
            return None
    except Timeout:
        return _owner(owner_file) or "another process"
    except OSError:
        return _owner(owner_file)


def _files(store: Path, experiment: str) -> tuple[Path, Path]:
    """The lock, and the file beside it that names its holder."""
    # One hidden folder for all of them: they stay, see experiment_lock.
    lock_file = store.with_name(f".{store.name}.locks") / f"{experiment[:16]}.lock"
    return lock_file, lock_file.with_suffix(".owner")


def _owner(path: Path) -> str | None:
    """Who holds the lock, or None while that is not known."""
    try:
        owner = json.loads(path.read_text(encoding="utf-8"))
        pid, host = int(owner["pid"]), str(owner["host"])
    except (OSError, ValueError, KeyError, TypeError):
        return None
    if host == socket.gethostname() and not _alive(pid):
        return None
    return f"process {pid} on {host}"


def _alive(pid: int) -> bool:
    if os.name != "posix":  # there, signal 0 would end the process
        return True
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except OSError:  # it exists and is not ours
        return True
    return True
