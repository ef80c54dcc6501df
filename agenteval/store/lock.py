"""One writer per experiment. The lock lives with the process: death releases it."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from filelock import FileLock, Timeout

from agenteval.errors import StoreError, StoreLocked


@contextmanager
def experiment_lock(store: Path, experiment: str) -> Iterator[None]:
    """Hold the experiment for this process.

    `experiment` is a hash. Raises StoreLocked, naming process and host, when it is held.
    """
    lock_file = store.with_name(f"{store.name}.{experiment[:16]}.lock")
    owner_file = lock_file.with_suffix(".owner")
    lock = FileLock(str(lock_file), timeout=0)
    try:
        lock.acquire()
    except Timeout:
        raise StoreLocked(
            f"{store}: {_owner(owner_file)} works on the same experiment; wait for it or stop it"
        ) from None
    except OSError as error:
        raise StoreError(f"{store}: cannot lock ({error})") from error
    try:
        owner_file.write_text(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}))
        yield
    finally:
        owner_file.unlink(missing_ok=True)
        # The lock file itself stays: removing it while a third process waits would split the lock.
        lock.release()


def _owner(path: Path) -> str:
    try:
        owner = json.loads(path.read_text())
        return f"process {owner['pid']} on {owner['host']}"
    except (OSError, ValueError, KeyError, TypeError):
        return "another process"
