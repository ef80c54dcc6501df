"""The benchmarks run at small sizes, print the keys that README.md names, and see what is wrong."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

from benchmarks.__main__ import BENCHMARKS
from benchmarks.startup import HEAVY, imported

ROOT = Path(__file__).parents[2]
ORDER = tuple(BENCHMARKS)
QUANTIFY = {
    "benchmark", "runs", "criteria", "cells", "concurrency", "latency_s", "rounds", "load", "cores",
    "same_bodies", "target_ratio", "met", "wrong", "sides",
}  # fmt: skip
SIDE = {
    "calls_per_s", "cells_per_s", "ratio", "ratios", "cpu_ms_per_call", "cpu_ratio",
    "loop_cpu_ms_per_call", "server_cpu_ms_per_call", "peak_rss_mb", "cells_committed",
}  # fmt: skip


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)


def last_line(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    value: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return value


def test_quantify_commits_every_cell_and_sends_what_bare_sends() -> None:
    small = ["--runs", "40", "--rounds", "1", "--latency", "0.01", "--sides", "autogen"]
    result = last_line(run("benchmarks/quantify.py", *small))
    assert set(result) == QUANTIFY
    assert result["wrong"] == []
    assert result["same_bodies"] is True
    assert result["met"] is None  # other settings than the target's
    sides = result["sides"]
    assert set(sides) == {"bare", "quantify", "autogen"}
    assert all(set(side) == SIDE for side in sides.values())
    assert sides["bare"]["cells_committed"] is None
    assert sides["quantify"]["cells_committed"] == sides["autogen"]["cells_committed"] == 40 * 6
    for side in sides.values():
        assert side["calls_per_s"] > 0
        assert side["cpu_ms_per_call"] > 0
        assert len(side["ratios"]) == 1
    assert sides["bare"]["ratio"] == 1.0


def test_startup_loads_nothing_heavy() -> None:
    result = last_line(run("benchmarks/startup.py", "--n", "2"))
    assert set(result) == {
        "benchmark", "n", "median_s", "ratio", "target_s", "heavy", "slowest_ms",
    }  # fmt: skip
    assert set(result["median_s"]) == set(result["ratio"]) == {"pass", "import", "help"}
    assert result["heavy"] == {"import": [], "help": []}


def test_planning_compares_like_with_like() -> None:
    result = last_line(run("benchmarks/planning.py", "--seconds", "0.05"))
    assert set(result) == {"benchmark", "rows", "extended", "met"}
    assert result["met"] is None  # too short to say
    assert [row["actions"] for row in result["rows"]] == ["3-5", *"3456789"]
    for row in result["rows"]:
        assert row["ratio"] == row["literal_ms"] / row["ours_ms"]
        assert row["case_ms"] > 0


def test_a_heavy_import_would_be_seen() -> None:
    assert {"numpy"} == HEAVY & imported(["-c", "import numpy.linalg"]).keys()
    assert not HEAVY & imported(["-c", "import json"]).keys()


def test_all_go_on_past_a_failing_one(tmp_path: Path) -> None:
    shutil.copy(ROOT / "benchmarks" / "__main__.py", tmp_path)
    for name in ORDER:
        code = {"startup": 3, "readers": 1}.get(name, 0)
        (tmp_path / f"{name}.py").write_text(f"print('ran {name}'); raise SystemExit({code})")
    done = run(str(tmp_path / "__main__.py"))
    assert done.returncode == 1
    ran = [line for line in done.stdout.splitlines() if line.startswith("ran ")]
    order = list(ORDER)
    assert ran == [f"ran {name}" for name in order]
    assert done.stderr.strip() == "failed: startup (exit code 3), readers (exit code 1)"
    only = run(str(tmp_path / "__main__.py"), "--quick", "--only", "merge")
    assert (only.returncode, only.stderr) == (0, "")
