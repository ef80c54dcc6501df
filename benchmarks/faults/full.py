"""A disk that is full, for `faults.py`: a small tmpfs, a limit on the size of files, `/dev/full`.

The commands run as processes of their own, the way back within this one. Run as a program, this is
the part that may mount: it needs a mount namespace (`unshare`), so that nothing is mounted for
anybody else.
"""

from __future__ import annotations

import json
import os
import resource
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

from benchmarks.faults.operations import OPERATIONS, STORE, Operation, Ran, call, copied
from benchmarks.faults.tries import Reference, Tally, damage, leftovers, outcome
from benchmarks.folders import ROOT, module

_TMPFS = 8 * 2**20  # bytes


def process(folder: Path, *arguments: str, limit: int | None = None, out: int = -1) -> Ran:
    """A command as a process of its own; `limit`: bytes of its largest file; `out`: where to."""

    def limited() -> None:
        if limit is not None:
            resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))

    ended = subprocess.run(
        [sys.executable, "-m", "agenteval", *arguments],
        cwd=folder, stdout=out, stderr=subprocess.PIPE, text=True, check=False,
        preexec_fn=limited,
    )  # fmt: skip
    return Ran(ended.returncode, ended.stdout or "", ended.stderr)


def limits(
    template: Path, work: Path, operation: Operation, expected: Reference, sizes: list[int]
) -> Tally:
    """No file may grow beyond each size in turn; then the limit is gone."""
    tally = Tally()
    for size in sizes:
        folder = copied(template, work / f"limit-{size}", operation)
        ran = process(folder, *operation.command, limit=size)
        _judge(folder, operation, expected, ran, f"{size} bytes", tally)
        shutil.rmtree(folder)
    return tally


def rooms(
    disk: Path, template: Path, operation: Operation, expected: Reference, sizes: list[int]
) -> Tally:
    """A disk with room for each number of bytes in turn; then there is more."""
    tally = Tally()
    for size in sizes:
        folder = copied(template, disk / f"room-{size}", operation)
        filler = disk / "filler"
        _fill(filler, size)
        ran = process(folder, *operation.command)
        filler.unlink()
        _judge(folder, operation, expected, ran, f"room for {size} bytes", tally)
        shutil.rmtree(folder)
    return tally


def _fill(filler: Path, room: int) -> None:
    found = os.statvfs(filler.parent)
    filler.write_bytes(b"\0" * max(0, found.f_bavail * found.f_frsize - room))


def _judge(
    folder: Path, operation: Operation, expected: Reference, ran: Ran, where: str, tally: Tally
) -> None:
    tally.tried += 1
    tally.survived += ran.code == 0
    tally.clean += ran.clean
    if ran.code != 0 and not ran.clean:
        tally.wrong.append(f"unclear: {where}: {ran.code} {ran.err.strip()[-300:]}")
    again = call(folder, *operation.command)
    if again.code != 0:
        tally.wrong.append(f"stuck: {where}: {again.code} {again.err.strip()[-300:]}")
    elif outcome(folder, operation) != expected:
        tally.wrong.append(f"differing: {where}")
    tally.wrong += [f"corrupt: {where}: {text}" for text in damage(folder / STORE)]
    tally.wrong += [f"leftover: {where}: {name}" for name in leftovers(folder)]


def full_output(template: Path, work: Path, commands: Sequence[tuple[str, ...]]) -> Tally:
    """Results that go to a full disk through standard output: said, with exit code 3."""
    tally = Tally()
    folder = copied(template, work / "output", OPERATIONS[3])
    for command in commands:
        with open("/dev/full", "wb") as device:
            ran = process(folder, *command, out=device.fileno())
        tally.tried += 1
        tally.clean += ran.clean
        if not ran.clean:
            tally.wrong.append(f"unclear: {command}: {ran.code} {ran.err.strip()[-300:]}")
    shutil.rmtree(folder)
    return tally


def in_namespace(
    template: Path, work: Path, operation: Operation, expected: Reference, sizes: list[int]
) -> Tally | str:
    """`rooms` on a tmpfs in a mount namespace of its own, or why that cannot be had here."""
    unshare = shutil.which("unshare")
    if unshare is None:
        return "no unshare on this machine"
    (work / "disk").mkdir(parents=True, exist_ok=True)
    asked = json.dumps({
        "disk": str(work / "disk"), "template": str(template), "operation": operation.name,
        "table": expected.table, "outputs": [o.decode() for o in expected.outputs],
        "sizes": sizes,
    })  # fmt: skip
    ended = subprocess.run(
        [unshare, "--map-root-user", "--mount", *module("faults.full")],
        input=asked, cwd=ROOT, capture_output=True, text=True, check=False,
    )  # fmt: skip
    lines = ended.stdout.splitlines()
    if ended.returncode == 0 and lines:
        return Tally(**json.loads(lines[-1]))
    said = (ended.stderr.strip().splitlines() or ["no reason given"])[-1]
    return f"no tmpfs can be mounted here ({said})"


def main() -> int:
    """Inside the namespace: mount, try, print the tally."""
    asked = json.load(sys.stdin)
    disk = Path(asked["disk"])
    mount = ["mount", "-t", "tmpfs", "-o", f"size={_TMPFS}", "tmpfs", str(disk)]
    if subprocess.run(mount, check=False).returncode:
        return 1
    operation = next(o for o in OPERATIONS if o.name == asked["operation"])
    expected = Reference(asked["table"], tuple(o.encode() for o in asked["outputs"]))
    tally = rooms(disk, Path(asked["template"]), operation, expected, asked["sizes"])
    print(json.dumps({name: getattr(tally, name) for name in Tally.__slots__}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
