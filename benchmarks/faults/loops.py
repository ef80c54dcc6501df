"""The loops over n, one operation each, which `faults` runs beside each other.

Apart from the program itself: a process that is spawned cannot import `__main__` of a package.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.faults.operations import OPERATIONS, alone
from benchmarks.faults.tries import KINDS, Tally, attempt, undisturbed

MOST = 2000  # a loop that has not ended by then never will
Found = dict[str, Tally]


@alone()
def loop(name: str, template: Path, work: Path, stride: int, kinds: Sequence[str]) -> Found:
    """All kinds of fault under one operation; tallies by kind."""
    operation = next(o for o in OPERATIONS if o.name == name)
    expected = undisturbed(template, work, operation)
    found = {}
    for kind in KINDS:
        if kind.name not in kinds:
            continue
        tally = found[f"{name}: {kind.name}"] = Tally()
        n = 1
        while attempt(template, work / "try", operation, kind, n, expected, tally):
            n += stride
            if n > MOST:
                tally.wrong.append(f"stuck: still failing at n = {n}")
                break
    return found
