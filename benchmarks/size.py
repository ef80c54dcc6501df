"""How large the project is, and through how much of it a command goes.

    python -m benchmarks.size

Lines are all lines of a file. The path of a command is counted from the call of the command line
until its first outcome is stored: every file of the package in which a function ran, with all of
its lines, and how often control went from one file to another. What runs only when a module is
imported does not count.
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
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any

from benchmarks.folders import ROOT

PACKAGE = ROOT / "agenteval"
TASK = "name: sums\ndescription: Add the numbers and explain the result.\n"
CRITERIA = [
    {
        "name": "Clarity",
        "description": "Is it easy to follow?",
        "accepted_values": ["unclear", "partly clear", "clear"],
    }
]


def lines(paths: Iterable[Path]) -> int:
    return sum(len(path.read_text(encoding="utf-8").splitlines()) for path in paths)


def judge(body: dict[str, Any], n: int) -> str:
    """Replies of a judge of runs, and of one that finds no error in a trace."""
    asked = body.get("response_format", {}).get("json_schema", {}).get("schema", {})
    if "clarity" in asked.get("properties", {}):
        return json.dumps({"clarity": {"explanation": "Easy.", "label": "clear"}})
    return json.dumps({"errors": [], "summary": "", "scores": []})


@dataclass
class CommandPath:
    """The files that one command passes through until its first outcome is stored.

    `files` are those in which a function ran, in order of first entry; `switches` counts how often
    control went from one file of the package to another.
    """

    files: list[Path] = field(default_factory=list)
    switches: int = 0
    stored: bool = False
    _last: dict[int, str] = field(default_factory=dict)

    def profile(self, frame: FrameType, event: str, argument: object) -> None:
        """Note a call; to be set as the profile function of all threads."""
        name = frame.f_code.co_filename
        if self.stored or not _in_package(name):
            return
        if event != "call" or _importing(frame):
            return
        if not frame.f_code.co_flags & inspect.CO_OPTIMIZED:
            return
        thread = threading.get_ident()
        self.switches += self._last.get(thread, name) != name
        self._last[thread] = name
        if (path := Path(name)) not in self.files:
            self.files.append(path)


def path_of(words: Sequence[str]) -> CommandPath:
    """Return the path of a command, run in the working folder."""
    from agenteval.app.main import main as command_line
    from agenteval.store.store import Store

    followed, save = CommandPath(), Store.save

    async def until_saved(*args: Any, **options: Any) -> None:
        await save(*args, **options)
        followed.stored = True

    with contextlib.redirect_stdout(io.StringIO()) as out:
        Store.save = until_saved  # type: ignore[method-assign]
        threading.setprofile(followed.profile)
        sys.setprofile(followed.profile)
        try:
            command_line(list(words))
        except SystemExit as end:
            if end.code not in (0, 4):
                raise
        finally:
            sys.setprofile(None)
            threading.setprofile(None)
            Store.save = save  # type: ignore[method-assign]
    if not followed.stored:
        raise RuntimeError(f"nothing was stored: {out.getvalue()}")
    return followed


def command_paths() -> dict[str, CommandPath]:
    """Return the paths of one `quantify`, `verify`, `trace locate` and `flow session`."""
    from agenteval.testing import serve

    runs = [
        {"id": str(i), "task": "sums", "input": f"{i} + 1?", "output": f"It is {i + 1}."}
        for i in range(2)
    ]
    trace = min((ROOT / "tasks" / "traces" / "traces").glob("*.jsonl"))
    role = ROOT / "tasks" / "flows" / "hotel_reception"
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        Path("task.yaml").write_text(TASK, encoding="utf-8")
        Path("criteria.json").write_text(json.dumps(CRITERIA), encoding="utf-8")
        Path("runs.jsonl").write_text("\n".join(map(json.dumps, runs)), encoding="utf-8")
        with serve(judge) as server:
            model = ["--model", "m", "--base-url", server.base_url, "-q"]
            judged = ["runs.jsonl", "--task", folder, "--criteria", "criteria.json", *model]
            session = [str(role), "--agent", "recorded:perfect", "--user", "scripted", "-q"]
            return {
                "quantify": path_of(["quantify", *judged, "--store", "q.db"]),
                "verify": path_of(["verify", *judged, "--store", "v.db", "-o", "out.json"]),
                "trace locate": path_of(["trace", "locate", str(trace), *model, "--store", "t.db"]),
                "flow session": path_of(["flow", "session", *session, "--store", "f.db"]),
            }


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
    """Print the tables."""
    package = sorted(PACKAGE.rglob("*.py"))
    root = [path for path in PACKAGE.glob("*.py") if path.name != "__init__.py"]
    cli = sorted((PACKAGE / "cli").rglob("*.py"))
    figures = {
        "package": package,
        "root modules": root,
        "command line": cli,
        "tests": sorted((ROOT / "tests").rglob("*.py")),
        "benchmarks": sorted((ROOT / "benchmarks").rglob("*.py")),
    }
    print(f"{'':24}{'files':>8}{'lines':>10}")
    for name, paths in figures.items():
        print(f"{name:24}{len(paths):>8,}{lines(paths):>10,}")
    print(f"\n{'path of one':24}{'files':>8}{'lines':>10}{'switches':>10}")
    for name, path in command_paths().items():
        print(f"{name:24}{len(path.files):>8,}{lines(path.files):>10,}{path.switches:>10,}")


if __name__ == "__main__":
    main()
