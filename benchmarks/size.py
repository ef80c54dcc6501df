"""How large the project is, and through how much of it one `quantify` goes.

    python -m benchmarks.size

Lines are all lines of a file. The path of a `quantify` is counted from the call of the command line
until the scores of two runs by a judge on loopback are committed: every file of the package in
which a function ran, with all of its lines (what runs only when a module is imported does not
count).
"""

from __future__ import annotations

import contextlib
import inspect
import io
import json
import os
import sys
import tempfile
import threading
from collections.abc import Iterable
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.folders import ROOT

PACKAGE = ROOT / "agenteval"
TASK = "name: sums\ndescription: Add the numbers and explain the result.\n"
CRITERIA = [{"name": "Clarity", "description": "Is it easy to follow?",
             "accepted_values": ["unclear", "partly clear", "clear"]}]  # fmt: skip


def lines(paths: Iterable[Path]) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def judge(body: dict[str, Any], n: int) -> str:
    return json.dumps({"clarity": {"explanation": "Easy.", "label": "clear"}})


def quantify_path() -> list[Path]:
    """Files of the package in which a function ran during one `quantify` of two runs."""
    from agenteval.cli.main import main as command_line
    from agenteval.testing import serve

    entered: set[str] = set()
    committed = threading.Event()

    def profile(frame: FrameType, event: str, argument: Any) -> None:
        name = frame.f_code.co_filename
        if committed.is_set() or server.count < len(runs):
            pass
        elif event == "c_return" and getattr(argument, "__name__", "") == "commit":
            committed.set()
        if event != "call" or committed.is_set() or name in entered or not _in_package(name):
            return
        if frame.f_code.co_flags & inspect.CO_OPTIMIZED and not _importing(frame):
            entered.add(name)

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("task.yaml").write_text(TASK, encoding="utf-8")
        Path("criteria.json").write_text(json.dumps(CRITERIA), encoding="utf-8")
        runs = [{"id": str(i), "task": "sums", "input": f"{i} + 1?", "output": f"It is {i + 1}."}
                for i in range(2)]  # fmt: skip
        Path("runs.jsonl").write_text("\n".join(map(json.dumps, runs)), encoding="utf-8")
        with serve(judge) as server, contextlib.redirect_stdout(io.StringIO()) as out:
            words = ["quantify", "runs.jsonl", "--task", folder, "--criteria", "criteria.json",
                     "--store", "s.db", "--model", "m", "--base-url", server.base_url, "--json",
                     "-q"]  # fmt: skip
            threading.setprofile(profile)
            sys.setprofile(profile)
            try:
                command_line(words)
            except SystemExit as end:
                if end.code:
                    raise
            finally:
                sys.setprofile(None)
                threading.setprofile(None)
    if not committed.is_set() or json.loads(out.getvalue())["ratings"] != len(runs):
        raise RuntimeError(f"quantify stored no score: {out.getvalue()}")
    return sorted(Path(name) for name in entered)


def _in_package(name: str) -> bool:
    """Whether the file belongs to what users run; the server is ours."""
    inside = name.removeprefix(f"{PACKAGE}{os.sep}")
    return inside != name and not inside.startswith(f"testing{os.sep}")


def _importing(frame: FrameType | None) -> bool:
    """Whether the frame runs because a module of the package is being imported."""
    while frame is not None:
        if frame.f_code.co_name == "<module>" and _in_package(frame.f_code.co_filename):
            return True
        frame = frame.f_back
    return False


def main() -> None:
    """Print the table."""
    package = sorted(PACKAGE.rglob("*.py"))
    root = [path for path in PACKAGE.glob("*.py") if path.name != "__init__.py"]
    cli = sorted((PACKAGE / "cli").rglob("*.py"))
    path = quantify_path()
    figures = {
        "package": package,
        "root modules": root,
        "command line": cli,
        "path of one quantify": path,
        "tests": sorted((ROOT / "tests").rglob("*.py")),
        "benchmarks": sorted((ROOT / "benchmarks").rglob("*.py")),
    }
    print(f"{'':24}{'files':>8}{'lines':>10}")
    for name, paths in figures.items():
        print(f"{name:24}{len(paths):>8,}{lines(paths):>10,}")


if __name__ == "__main__":
    main()
