"""The loops over n, one operation each, which `faults` runs beside each other.

Apart from the program itself: a process that is spawned cannot import `__main__` of a package.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from benchmarks.faults import full as faults_full
from benchmarks.faults import sockets as faults_sockets
from benchmarks.faults.operations import OPERATIONS, alone, answer
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


@alone()
def sockets(template: Path, work: Path, stride: int) -> Found:
    """The n-th socket call of the model client."""
    from agenteval.testing import serve

    with serve(answer) as server:
        found = faults_sockets.tries(template, work, server.base_url, stride)
    return {f"quantify: {kind}": tally for kind, tally in found.items()}


@alone()
def full(template: Path, work: Path, sizes: Sequence[int]) -> tuple[Found, list[str]]:
    """A full disk under `quantify` and `export`; the tallies, and what could not be had."""
    found, skipped = {}, []
    for operation in (OPERATIONS[0], OPERATIONS[3]):
        expected = undisturbed(template, work, operation)
        limited = faults_full.limits(template, work, operation, expected, list(sizes))
        found[f"{operation.name}: process with a file limit"] = limited
        rooms = faults_full.in_namespace(template, work, operation, expected, list(sizes))
        if isinstance(rooms, str):
            skipped.append(f"{operation.name} on a full tmpfs: {rooms}")
        else:
            found[f"{operation.name}: process on a full tmpfs"] = rooms
    if Path("/dev/full").exists():
        shows = [("show",), ("show", "--json"), ("--help",)]
        found["show: standard output full"] = faults_full.full_output(template, work, shows)
    return found, skipped
