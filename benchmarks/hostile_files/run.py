"""One command on one hostile file, in this process or in a child, and what is to be said of it."""

from __future__ import annotations

import contextlib
import io
import os
import re
import shutil
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agenteval.cli.main import main
from benchmarks.folders import ROOT
from benchmarks.hostile_files.doors import Door
from benchmarks.hostile_files.inputs import Hostile

PATIENCE = 120.0  # seconds of the clock after which a command hangs; one that waits has no end
_COMPARING = ("compare", "agree")
# VmHWM is of this program alone; what getrusage gives begins with the parent's memory.
_CHILD = """
import sys
from agenteval.cli.main import main
try:
    main(sys.argv[1:])
finally:
    with open("/proc/self/status") as status:
        peak = next(line.split()[1] for line in status if line.startswith("VmHWM"))
    sys.stderr.write(f"\\npeak {peak}\\n")
"""


@dataclass(frozen=True)
class Told:
    """What a command did. `crash` is a traceback, `cpu` in seconds, `peak` in MB (of a child)."""

    code: int
    out: str
    err: str
    crash: str = ""
    cpu: float = 0.0
    peak: float = 0.0
    hung: bool = False

    @property
    def lines(self) -> list[str]:
        """The lines of error."""
        return [line for line in self.err.splitlines() if line.startswith("agenteval: ")]


class _HungError(BaseException):
    """Raised by the clock."""


def command_line(door: Door, folder: Path) -> list[str]:
    """The arguments of a door, for this folder."""
    return [argument.replace("{d}", str(folder)) for argument in door.arguments]


def here(arguments: list[str]) -> Told:
    """Run a command in this process."""
    out, err = io.StringIO(), io.StringIO()
    hook, began = sys.excepthook, time.process_time()
    code, crash, hung = 0, "", False
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err), _clock():
        try:
            main(arguments)
        except SystemExit as ended:
            code = ended.code if isinstance(ended.code, int) else int(ended.code is not None)
        except _HungError:
            hung = True
        except BaseException:  # noqa: BLE001  whatever comes out is what is looked for
            crash = traceback.format_exc()
    sys.excepthook = hook
    cpu = time.process_time() - began
    return Told(code, out.getvalue(), err.getvalue(), crash, cpu, hung=hung)


@contextlib.contextmanager
def _clock() -> Iterator[None]:
    def ring(*_: object) -> None:
        raise _HungError

    old: Any = signal.signal(signal.SIGALRM, ring)
    signal.setitimer(signal.ITIMER_REAL, PATIENCE)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, old)


def in_child(arguments: list[str]) -> Told:
    """Run a command in a process of its own and measure its memory."""
    command = [sys.executable, "-c", _CHILD, *arguments]
    environment = {**os.environ, "PYTHONPATH": str(ROOT)}
    try:
        done = subprocess.run(
            command, capture_output=True, text=True, timeout=PATIENCE, check=False, env=environment
        )
    except subprocess.TimeoutExpired:
        return Told(-1, "", "", hung=True)
    peak = re.search(r"^peak (\d+)$", done.stderr, re.MULTILINE)
    crash = done.stderr[-3000:] if "Traceback" in done.stderr or peak is None else ""
    megabytes = int(peak[1]) / 1024 if peak else 0.0
    return Told(done.returncode, done.stdout, done.stderr, crash, peak=megabytes)


def tried(door: Door, one: Hostile, folder: Path, *, child: bool = False) -> Told:
    """Put the hostile file in the place of the clean one, run the command, and put it back."""
    target = folder / door.target
    clean = target.read_bytes()
    target.unlink()
    try:
        one.put(target)
        arguments = command_line(door, folder)
        return in_child(arguments) if child else here(arguments)
    finally:
        _remove(target)
        _remove(target.with_name("circle"))
        target.write_bytes(clean)


def tidy(folder: Path) -> list[str]:
    """Take away what a command wrote; names of what was there."""
    left = [path for path in folder.rglob("*") if path.suffix == ".partial"]
    left += [folder / "made"] if (folder / "made").exists() else []
    for path in left:
        _remove(path)
    for path in folder.glob("s.db*"):
        path.unlink()
    return [path.name for path in left]


def _remove(path: Path) -> None:
    if path.is_symlink() or path.is_file() or path.is_fifo():
        path.unlink()
    elif path.is_dir():
        shutil.rmtree(path)


def problem(door: Door, one: Hostile, told: Told, clean: Told, left: list[str]) -> str:
    """What is wrong with the outcome; "" if nothing is."""
    if told.hung:
        return "hangs"
    if told.crash:
        return "traceback: " + told.crash.strip().splitlines()[-1][:200]
    if door.lenient and told.code in (2, 3) and not told.lines and told.out:
        return ""  # too little could be read: a result, told in the table
    if told.lines and (told.code, told.lines) == (clean.code, clean.lines):
        return ""  # the file is read; what the command lacks besides is another matter
    if told.code in (2, 3) and not (told.code in door.fine and not told.lines):
        return _refusal(door, one, told, left)
    if told.code not in {0, 1, 4, 5, *door.fine}:
        return f"exit code {told.code}"
    if one.outcome == "refused" and not door.lenient and 2 not in door.fine:
        return "accepted"
    if one.outcome == "clean" and (told.code, told.out) != (clean.code, clean.out):
        return "accepted, but the result is another one than that of the clean file"
    return ""


def _refusal(door: Door, one: Hostile, told: Told, left: list[str]) -> str:
    if len(told.lines) != 1:
        return f"{len(told.lines)} lines of error: {told.err[-300:]!r}"
    line = told.lines[0]
    if len(line) > 3000:
        return f"a line of {len(line):,} characters"
    path = Path(door.target)
    names = {path.name, path.parent.name, "--"} - {""}
    named = any(name in line for name in names)
    # Of files that can be read, the line may say that they have nothing in common.
    about_both = door.command in _COMPARING and one.outcome == "either"
    if not named and not door.lenient and not about_both:
        return f"the line does not name the file: {line[:200]}"
    if left:
        return f"left behind: {', '.join(left)}"
    return "" if told.code == 2 else f"exit code {told.code}: {line[:200]}"
