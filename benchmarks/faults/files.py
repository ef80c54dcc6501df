"""Files that are written whole, for `faults.py`: killed writers."""

from __future__ import annotations

import multiprocessing
import time
from multiprocessing.connection import Connection
from pathlib import Path

from agenteval.files import replacing, write_atomically
from benchmarks.faults.tries import Tally, leftovers

LINES = 4_000


def _write_for_ever(path: Path, pipe: Connection) -> None:
    pipe.send("ready")
    n = 0
    while True:
        n += 1
        if n % 2:
            write_atomically(path, f"{n}\n" * LINES)
        else:
            with replacing(path) as temporary, temporary.open("w", encoding="utf-8") as out:
                for _ in range(LINES):
                    out.write(f"{n}\n")


def killed(work: Path, times: int) -> Tally:
    """A writer is killed with SIGKILL while it writes, again and again: whole files."""
    tally = Tally()
    work.mkdir(parents=True, exist_ok=True)
    path = work / "figures.txt"
    fork = multiprocessing.get_context("forkserver")
    fork.set_forkserver_preload(["benchmarks.faults.files"])
    for n in range(times):
        ours, theirs = fork.Pipe(duplex=False)
        child = fork.Process(target=_write_for_ever, args=(path, theirs))
        child.start()
        theirs.close()  # a child that dies early is an EOFError, not a wait
        ours.recv()
        time.sleep(0.002 + 0.0007 * (n % 41))
        child.kill()
        child.join()
        tally.tried += 1
        for left in leftovers(work):
            (work / left).unlink()
            tally.clean += 1  # it was killed within a write
        if path.exists():
            lines = path.read_text(encoding="utf-8").split("\n")
            if len(lines) != LINES + 1 or len(set(lines[:-1])) != 1:
                tally.wrong.append(f"half: kill {n}: {len(lines) - 1} lines")
    return tally
