"""Patterns and unit tests in a process of their own, with limits of time and memory.

This is no prison: code that runs here has the user's rights. It gets an empty environment and
folder, CPU seconds, memory and file sizes are limited, and it is killed when its time is up; the
network and the user's files are not closed to it.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

_MEMORY = 1 << 30
_SECONDS = 60  # of CPU; the clock ends it earlier
_SEARCH = "import re, sys; p, t = sys.stdin.read().split('\\0', 1); print(bool(re.search(p, t)))"


def _limits() -> None:
    import resource

    resource.setrlimit(resource.RLIMIT_CPU, (_SECONDS, _SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (_MEMORY, _MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 24, 1 << 24))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _run(code: list[str], given: str, seconds: float, folder: str) -> tuple[int, str, str]:
    limits = None if sys.platform == "win32" else _limits
    try:
        done = subprocess.run(  # noqa: S603  isolated Python, or code that the user allowed
            [sys.executable, "-I", *code], input=given, capture_output=True, text=True, env={},
            timeout=seconds, cwd=folder, preexec_fn=limits, start_new_session=True,
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise TimeoutError(f"not done after {seconds:g} s") from None
    return done.returncode, done.stdout, done.stderr


def finds(pattern: str, text: str, seconds: float) -> bool:
    """Whether a pattern is found in a text. Raises TimeoutError, and ValueError for a pattern that
    cannot be used."""
    with tempfile.TemporaryDirectory() as folder:
        code, out, err = _run(["-c", _SEARCH], f"{pattern}\0{text}", seconds, folder)
    if code:
        raise ValueError(err.strip().rpartition("\n")[2][:200])
    return out.strip() == "True"


def passes(code: str, test: str, seconds: float) -> tuple[bool, str]:
    """Whether the code, with the test behind it, runs to its end without an error; and what was
    said. Raises TimeoutError."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "tested.py"
        path.write_text(f"{code}\n\n{test}\n", "utf-8")
        status, _, err = _run([str(path)], "", seconds, folder)
    return status == 0, err.strip().rpartition("\n")[2][:200] or "the test passes"
