"""Put a process to sleep that shares a store, as a machine does whose lid is closed."""

from __future__ import annotations

import os
import signal
import time
from pathlib import Path

from agenteval.store import Store
from agenteval.store.connect import writing


def put_to_sleep(pid: int, store: Store) -> None:
    """Stop it while it is in no transaction that writes, where it would hold up all others; SIGCONT
    wakes it. Returns when every thread has stopped: until then one may still take a lock."""
    with writing(store.engine):
        os.kill(pid, signal.SIGSTOP)
        until = time.monotonic() + 20
        while any(
            stat.read_text().rpartition(")")[2].split()[0] != "T"
            for stat in Path(f"/proc/{pid}/task").glob("*/stat")
        ):
            assert time.monotonic() < until
            time.sleep(0.01)
