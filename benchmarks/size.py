"""How large the project is, and through how much of it one `quantify` goes.

    python -m benchmarks.size

Lines are all lines of a file. The path of a `quantify` is counted from the call of the command line
until it ends, with two runs and a judge on loopback: every file of the package in which a function
ran, with all of its lines (what runs only when a module is imported does not count).
"""

from __future__ import annotations

import contextlib
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
from benchmarks.outcome import Row, finish

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

    def profile(frame: FrameType, event: str, argument: object) -> None:
        if event == "call" and frame.f_code.co_name != "<module>":
            entered.add(frame.f_code.co_filename)

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("task.yaml").write_text(TASK, encoding="utf-8")
        Path("criteria.json").write_text(json.dumps(CRITERIA), encoding="utf-8")
        runs = [{"id": str(i), "task": "sums", "input": f"{i} + 1?", "output": f"It is {i + 1}."}
                for i in range(2)]  # fmt: skip
        Path("runs.jsonl").write_text("\n".join(map(json.dumps, runs)), encoding="utf-8")
        with serve(judge) as server, contextlib.redirect_stdout(io.StringIO()) as out:
            words = ["quantify", "runs.jsonl", "--task", folder, "--criteria", "criteria.json",
                     "--model", "m", "--base-url", server.base_url, "--json", "-q"]  # fmt: skip
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
    if json.loads(out.getvalue())["ratings"] != len(runs):
        raise RuntimeError(f"quantify stored no score: {out.getvalue()}")
    inside = (Path(name) for name in entered if name.startswith(f"{PACKAGE}{os.sep}"))
    return sorted(path for path in inside if "testing" not in path.relative_to(PACKAGE).parts)


def main() -> int:
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
    return finish("size", [
        Row(f"size of {name}", f"{len(paths):,} files, {lines(paths):,} lines")
        for name, paths in figures.items()
    ])  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
