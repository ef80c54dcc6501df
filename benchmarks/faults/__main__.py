"""The n-th write, fsync, open, rename … fails, for n = 1, 2, 3 … until the run succeeds.

Runs `quantify`, `verify`, `criteria`, `export`, `report`, `plan test`, `flow session` (every 4th n)
and `trace locate` in process, on tiny inputs with recorded replies, each time in a new folder.
Under them one call of SQLite or of Python's files fails, or every write beyond a size of file that
grows with n.

Counts after each failure: *clean* (exit code 3, or 2 where the file itself is to blame, and one
line that says why) and *survived* (the run ended well). These must not occur: *unclear* (any other
end, a traceback), *corrupt* (`integrity_check`, `foreign_key_check`), *lost* (acknowledged rows),
*half* (calls with some of their results, outputs neither old nor new, torn recordings),
*differing* (the same command without faults gives another table or output than an undisturbed
run), *leftover* (temporary files after that), *stuck* (it fails).

Targets: 0 of the seven. `--quick` takes every 7th n, fewer kinds and operations. At full size
about 10 minutes on two cores; operations run beside each other (`--workers`).
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import shutil
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benchmarks.faults.loops import Found, loop
from benchmarks.faults.operations import OPERATIONS, alone, prepare
from benchmarks.faults.tries import BAD, KINDS, Tally
from benchmarks.outcome import Row, finish

SMALL = {
    "quantify": "sqlite fsync EIO once",
    "export": "file",
    "plan": "sqlite write ENOSPC lasting",
}
STRIDES = {"session": 4}  # at full size; 1 of all others


@alone()
def measure(work: Path, *, quick: bool, workers: int) -> tuple[Found, list[str]]:
    """Everything, in `work`; tallies by operation and kind, and what was skipped and why."""
    from tests.support import faulty_sqlite

    template = work / "template"
    template.mkdir()
    prepare(template)
    reason = faulty_sqlite.unavailable()
    skipped = [reason] if reason else []
    usable = [k.name for k in KINDS if not (reason and k.name.startswith("sqlite"))]
    stride = 7 if quick else 1
    context = multiprocessing.get_context("spawn")  # faults hold for a process
    with ProcessPoolExecutor(workers, mp_context=context) as pool:
        jobs = [
            pool.submit(
                loop,
                o.name,
                template,
                work / o.name,
                stride if quick else STRIDES.get(o.name, stride),
                [k for k in usable if not quick or k.startswith(SMALL.get(o.name, "-"))],
            )
            for o in OPERATIONS
            if not quick or o.name in SMALL
        ]
        found: Found = {}
        for job in jobs:
            found |= job.result()
    return found, skipped


def table(found: Found) -> list[str]:
    """The tallies as lines of text."""
    width = max(map(len, found))
    head = ("tried", "clean", "survived", *BAD)
    lines = [" ".join([f"{'operation: what fails':{width}}", *(f"{h:>9}" for h in head)])]
    for name, tally in found.items():
        numbers = (tally.tried, tally.clean, tally.survived, *(count(tally, word) for word in BAD))
        lines.append(" ".join([f"{name:{width}}", *(f"{n:9}" for n in numbers)]))
    return lines


def count(tally: Tally, word: str) -> int:
    """How often a try went wrong in this way."""
    return sum(text.startswith(f"{word}:") for text in tally.wrong)


def rows_of(found: Found) -> list[Row]:
    """The figures with their targets."""
    total = sum(tally.tried for tally in found.values())
    rows = [Row("failures made", str(total), "at least 1", total > 0)]
    for word in BAD:
        number = sum(count(tally, word) for tally in found.values())
        rows.append(Row(f"faults: {word}", str(number), "0", number == 0))
    return rows


def main() -> int:
    """Run it all; 1 when anything went wrong."""
    parser = argparse.ArgumentParser(description="Faults, one call at a time; see the docstring.")
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--workers", type=int, default=min(4, os.cpu_count() or 1))
    options = parser.parse_args()
    began = time.monotonic()
    shared = Path("/dev/shm")  # what is tried is faults, not the speed of a disk
    home = shared if os.access(shared, os.W_OK) else None
    work = Path(tempfile.mkdtemp(prefix="faults-", dir=home))
    try:
        found, skipped = measure(work, quick=options.quick, workers=options.workers)
    finally:
        shutil.rmtree(work)
    print("\n".join(table(found)))
    for name, tally in found.items():
        for text in tally.wrong[:5]:
            print(f"{name}: {text}")
    for reason in skipped:
        print(f"skipped: {reason}")
    return finish("faults", rows_of(found), skipped=skipped, seconds=time.monotonic() - began)


if __name__ == "__main__":
    sys.exit(main())
