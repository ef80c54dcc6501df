"""Commands as processes that can be killed; see `child`."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from itertools import count
from pathlib import Path
from typing import Any

from benchmarks.crash.child import Kill, read_state
from benchmarks.folders import ROOT

WAIT_SECONDS = 120.0
SETTINGS = {
    "PYTHONPATH": str(ROOT),
    "OMP_NUM_THREADS": "1",
    "OPENBLAS_NUM_THREADS": "1",
    "NO_COLOR": "1",
    "OPENAI_API_KEY": "none",
    "MPLBACKEND": "svg",
}
_numbers = count(1)


@dataclass(frozen=True)
class Ended:
    """How a command ended: its exit code, or minus the number of the signal; seconds it ran.

    `state` is where it stood, `units` the file with the units that it said.
    """

    code: int
    seconds: float
    out: str
    err: str
    state: dict[str, int]
    units: Path

    @property
    def killed(self) -> bool:
        return self.code == -signal.SIGKILL


class Command:
    """A command in a folder, started; what it says is kept beside that folder."""

    def __init__(self, argv: tuple[str, ...], folder: Path, kill: Kill | None = None) -> None:
        self._kill, self._began = kill, time.monotonic()
        self._place = folder.parent / f"{folder.name}-command{next(_numbers)}"
        self._place.mkdir()
        kind = None if kill is None else asdict(kill)
        job: dict[str, Any] = {"argv": argv, "kill": kind}
        job |= {name: self._file(name) for name in ("state", "units")}
        plain = {k: v for k, v in os.environ.items() if not k.startswith("AGENTEVAL_")}
        with Path(self._file("out")).open("wb") as out, Path(self._file("err")).open("wb") as err:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "benchmarks.crash.child", json.dumps(job)],
                cwd=folder,
                env=plain | SETTINGS,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
            )

    def _file(self, name: str) -> str:
        return str(self._place / name)

    def has_ended(self) -> bool:
        """Return whether it has ended; ends it when its time has come."""
        timed = self._kill is not None and self._kill.moment == "time"
        if timed and self._kill and time.monotonic() - self._began >= self._kill.seconds:
            self._process.kill()
        return self._process.poll() is not None

    def wait(self) -> Ended:
        """Return how it ended. Raises TimeoutError after two minutes."""
        while not self.has_ended():
            if time.monotonic() - self._began > WAIT_SECONDS:
                raise TimeoutError(f"a command did not end: {self._place}")
            time.sleep(0.005)
        seconds = time.monotonic() - self._began
        out, err = (Path(self._file(name)).read_text("utf-8", "replace") for name in ("out", "err"))
        state, units = Path(self._file("state")), Path(self._file("units"))
        return Ended(self._process.returncode, seconds, out, err, read_state(state), units)


def run(argv: tuple[str, ...], folder: Path, kill: Kill | None = None) -> Ended:
    """Start a command and wait for its end."""
    return Command(argv, folder, kill).wait()
