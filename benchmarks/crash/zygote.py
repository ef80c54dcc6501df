"""Commands as forked children of one process that has imported everything.

Python needs seconds to import what a command needs, and a crash test starts hundreds. So one
process imports it once, holds no thread and no connection, and forks a child for each command: the
child sets the hooks of `watch.py`, calls `agenteval.app.main.main` and ends with its code.
"""

from __future__ import annotations

import ctypes
import gc
import importlib
import json
import os
import select
import signal
import subprocess
import sys
import time
import traceback
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from types import TracebackType
from typing import Any, NoReturn

from benchmarks.crash.watch import STATE_BYTES, Kill, Watch, install, read_state
from benchmarks.folders import ROOT, module

IMPORTS = (
    "agenteval.app.main",
    "openai.resources.chat.completions",
    "sqlalchemy.dialects.sqlite",
    "scipy.stats",
    "matplotlib.backends.backend_svg",
    "matplotlib.figure",
    "jinja2",
    "rich.progress",
    "agenteval.engine.experiment",
    "agenteval.utility.evaluator",
    "agenteval.utility.perturbed_runs",
    "agenteval.planning.evaluator",
    "agenteval.utility.api",
    "agenteval.utility.verifying",
    "agenteval.utility.page",
    "agenteval.models.openai",
    "agenteval.readers.formats",
    "agenteval.planning.scripted",
    "agenteval.planning.api",
    "agenteval.planning.tables",
    "agenteval.analysis.tables",
    "agenteval.utility.commands",
    "agenteval.cli.progress",
    "agenteval.analysis.means",
    "agenteval.store.export",
    "agenteval.utility.verify",
    "filelock",
    "agenteval.utility.quantifier",
    "agenteval.workflows.api",
    "agenteval.traces.commands",
    "agenteval.traces.api",
    "agenteval.traces.annotations",
    "agenteval.traces.detectors",
    "agenteval.workflows.variants",
    "agenteval.traces.evaluator",
    "agenteval.workflows.evaluator",
    "agenteval.readers.tasks",
    "agenteval.agents.spec",
    "agenteval.workflows.equality",
    "h11",
    "httpcore2",
    "jsonschema",
)
WARM_PROMPTS = ("quantifier_system", "quantifier_user", "quantifier_criterion", "quantifier_repair")
WAIT_SECONDS = 120.0


@dataclass(frozen=True)
class Ended:
    """How a child ended: its exit code, or minus the number of the signal; seconds it ran."""

    code: int
    seconds: float
    out: str
    err: str
    state: dict[str, int]

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL


@dataclass(frozen=True)
class Job:
    """A command: its words, its working folder, and what happens to it.

    hold: it waits for this file to appear once it holds its experiment. bound: without the
    superuser's right to write what nobody may write.
    """

    argv: tuple[str, ...]
    folder: str
    kill: Kill | None = None
    hold: str | None = None
    bound: bool = False


class Zygote:
    """The parent's end. Use as a context manager."""

    def __init__(self, scratch: Path) -> None:
        self._scratch = scratch
        self._number = 0
        self._ended: dict[int, tuple[int, float]] = {}
        self.pids: dict[int, int] = {}
        self.cpu = 0.0  # seconds of all commands that have ended
        self.commands = 0

    def __enter__(self) -> Zygote:
        environment = {k: v for k, v in os.environ.items() if not k.startswith("AGENTEVAL_")}
        environment |= {
            "OMP_NUM_THREADS": "1",
            "OPENBLAS_NUM_THREADS": "1",
            "NO_COLOR": "1",
            "OPENAI_API_KEY": "none",
            "MPLBACKEND": "svg",
        }
        self._process = subprocess.Popen(
            module("crash.zygote", str(self._scratch)),
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            env=environment,
            text=True,
            bufsize=1,
        )
        self._read("ready")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        value: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(30)

    def run(self, job: Job) -> Ended:
        """Start a command and wait for its end."""
        return self.wait(self.start(job))

    def start(self, job: Job) -> int:
        """Start a command; returns its number."""
        self._number += 1
        line = {"number": self._number, **asdict(job)}
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(line) + "\n")
        self.pids[self._number] = int(self._read("pid", self._number)["pid"])
        return self._number

    def wait(self, number: int) -> Ended:
        """The end of a command. Raises TimeoutError after two minutes."""
        deadline = time.monotonic() + WAIT_SECONDS
        while number not in self._ended:
            if time.monotonic() > deadline:
                raise TimeoutError(f"command {number} did not end: {self.paths(number)}")
            self._take()
        code, seconds = self._ended[number]
        out, err, state, _ = self.paths(number)
        said, told = (p.read_text("utf-8", "replace") if p.exists() else "" for p in (out, err))
        return Ended(code, seconds, said, told, read_state(state))

    def kill(self, number: int) -> None:
        """Send SIGKILL to a command that has not ended; `wait` tells how it did end."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"kill": number}) + "\n")

    def first_to_end(self, numbers: Sequence[int]) -> int:
        """The number of the first of these commands that has ended."""
        deadline = time.monotonic() + WAIT_SECONDS
        while True:
            for number in numbers:
                if number in self._ended:
                    return number
            if time.monotonic() > deadline:
                raise TimeoutError(f"none of the commands {numbers} ended")
            self._take()

    def has_ended(self, number: int) -> bool:
        """Whether the end of a command has been heard of, while others were waited for."""
        return number in self._ended

    def state(self, number: int) -> dict[str, int]:
        """Where a command stands now."""
        return read_state(self.paths(number)[2])

    def paths(self, number: int) -> tuple[Path, Path, Path, Path]:
        """Output, error output, state, units."""
        return _paths(self._scratch, number)

    def _read(self, kind: str, number: int | None = None) -> dict[str, Any]:
        while True:
            value = self._take()
            if value["kind"] == kind and value.get("number") == number:
                return value

    def _take(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError("the process that forks the commands has ended")
        value: dict[str, Any] = json.loads(line)
        if value["kind"] == "end":
            self._ended[value["number"]] = (value["code"], value["seconds"])
            self.cpu += value["cpu"]
            self.commands += 1
        return value


def _paths(scratch: Path, number: int) -> tuple[Path, Path, Path, Path]:
    out, err, state, units = (
        scratch / f"{number}.{end}" for end in ("out", "err", "state", "units")
    )
    return out, err, state, units


# ---- the process that forks ----------------------------------------------------------------------


@dataclass
class _Child:
    number: int
    started: float
    deadline: float | None


def main() -> int:
    """Fork a child for each line of standard input; say its pid and its end."""
    scratch = Path(sys.argv[1])
    for name in IMPORTS:
        importlib.import_module(name)
    from agenteval.app.main import command_of

    command_of()
    _warm()
    threads = Path("/proc/self/task")
    if threads.exists() and len(list(threads.iterdir())) != 1:
        raise RuntimeError("an import has started a thread; a fork would lose it")
    gc.collect()
    gc.freeze()  # else the first collection of each child copies all pages
    _say({"kind": "ready"})
    children: dict[int, _Child] = {}
    waiting = b""
    while True:
        readable, _, _ = select.select([0], [], [], 0.002 if children else None)
        if readable:
            read = os.read(0, 65536)
            if not read:
                for pid in children:
                    os.kill(pid, signal.SIGKILL)
                return 0
            *lines, waiting = (waiting + read).split(b"\n")
            for line in lines:
                _obey(json.loads(line), scratch, children)
        _look_after(children)


def _warm() -> None:
    """Fill what a process keeps of its own: a third of the CPU time of a small command."""
    from agenteval.models import connections, prompts

    connections.trusted()  # the system's certificates
    for name in WARM_PROMPTS:
        prompts.load_prompt("agenteval.utility", name)


def _say(value: dict[str, Any]) -> None:
    os.write(1, (json.dumps(value) + "\n").encode())


def _obey(line: dict[str, Any], scratch: Path, children: dict[int, _Child]) -> None:
    if "kill" not in line or "argv" in line:
        _fork(line, scratch, children)
        return
    for pid, child in children.items():
        if child.number == line["kill"]:
            os.kill(pid, signal.SIGKILL)


def _fork(job: dict[str, Any], scratch: Path, children: dict[int, _Child]) -> None:
    kill = None if job["kill"] is None else Kill(**job["kill"])
    _, _, state, _ = _paths(scratch, job["number"])
    state.write_bytes(bytes(STATE_BYTES))  # there to be read, however early the child ends
    pid = os.fork()
    if pid == 0:
        _run(job, kill, scratch)
    now = time.monotonic()
    timed = kill is not None and kill.moment == "time"
    deadline = now + kill.seconds if kill is not None and timed else None
    children[pid] = _Child(job["number"], now, deadline)
    _say({"kind": "pid", "number": job["number"], "pid": pid})


def _look_after(children: dict[int, _Child]) -> None:
    now = time.monotonic()
    for pid, child in list(children.items()):
        if child.deadline is not None and now >= child.deadline:
            os.kill(pid, signal.SIGKILL)  # not yet waited for, so the number is still its own
            child.deadline = None
        ended, status, used = os.wait4(pid, os.WNOHANG)
        if ended:
            del children[pid]
            code = os.waitstatus_to_exitcode(status)
            seconds = now - child.started
            _say(
                {
                    "kind": "end",
                    "number": child.number,
                    "code": code,
                    "seconds": seconds,
                    "cpu": used.ru_utime + used.ru_stime,
                }
            )


def _run(job: dict[str, Any], kill: Kill | None, scratch: Path) -> NoReturn:
    """The child: hooks, command, code. It never returns."""
    code = 70
    try:
        out, err, state, units = _paths(scratch, job["number"])
        for path, number in ((Path(os.devnull), 0), (out, 1), (err, 2)):
            flags = os.O_RDONLY if number == 0 else os.O_WRONLY | os.O_CREAT | os.O_TRUNC
            os.dup2(os.open(path, flags, 0o644), number)
        os.chdir(job["folder"])
        install(Watch(state, kill), units, Path(job["hold"]) if job["hold"] else None)
        if job["bound"]:
            _give_up_rights()
        code = _command_line(job["argv"])
    except BaseException:  # noqa: BLE001  the benchmark sees it in the child's error output
        traceback.print_exc()
    finally:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)


def _command_line(argv: list[str]) -> int:
    from agenteval.app.main import main as command

    try:
        command(argv)
    except SystemExit as ended:
        return ended.code if isinstance(ended.code, int) else int(ended.code is not None)
    return 0


def _give_up_rights() -> None:
    """Let the modes of files hold for the superuser too (capset(2), all sets empty)."""
    libc = ctypes.CDLL(None, use_errno=True)
    header = (ctypes.c_uint32 * 2)(0x20080522, 0)
    if libc.capset(header, (ctypes.c_uint32 * 6)()) != 0:
        raise OSError(ctypes.get_errno(), "capset")


if __name__ == "__main__":
    sys.exit(main())
