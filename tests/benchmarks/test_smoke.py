"""The benchmarks run at small sizes, print the keys that README.md names, and see what is wrong."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from benchmarks.__main__ import BENCHMARKS

pytestmark = pytest.mark.slow

ROOT = Path(__file__).parents[2]
ORDER = tuple(BENCHMARKS)
QUANTIFY = {
    "benchmark",
    "runs",
    "criteria",
    "cells",
    "concurrency",
    "latency_s",
    "rounds",
    "load",
    "cores",
    "same_bodies",
    "target_ratio",
    "cpu_ms_above_bare",
    "met",
    "wrong",
    "sides",
}
SIDE = {
    "calls_per_s",
    "cells_per_s",
    "ratio",
    "ratios",
    "cpu_ms_per_call",
    "cpu_ratio",
    "loop_cpu_ms_per_call",
    "server_cpu_ms_per_call",
    "peak_rss_mb",
    "cells_committed",
}


def run(*arguments: str, folder: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)


def last_line(done: subprocess.CompletedProcess[str]) -> dict[str, Any]:
    assert done.returncode == 0, done.stderr
    value: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return value


def test_quantify_commits_every_cell_and_sends_what_bare_sends() -> None:
    small = ["--runs", "40", "--rounds", "1", "--latency", "0.01", "--sides", "aiohttp"]
    result = last_line(run("-m", "benchmarks.quantify", *small, "--concurrency", "8"))
    assert set(result) == QUANTIFY | {"rows", "others"}
    assert result["others"] == []
    assert result["wrong"] == []
    assert result["same_bodies"] is True
    assert result["met"] is None  # other settings than the target's
    sides = result["sides"]
    assert set(sides) == {"bare", "quantify", "aiohttp"}
    assert all(set(side) == SIDE for side in sides.values())
    assert sides["bare"]["cells_committed"] is None
    assert sides["quantify"]["cells_committed"] == 40 * 6
    for side in sides.values():
        assert side["calls_per_s"] > 0
        assert side["cpu_ms_per_call"] > 0
        assert len(side["ratios"]) == 1
    assert sides["bare"]["ratio"] == 1.0


def folder_of_fakes(folder: Path, codes: dict[str, int]) -> Path:
    """The runner beside programs that print a row and end with a code; the folder of both."""
    package = folder / "benchmarks"
    package.mkdir()
    for name in ("__init__", "__main__", "folders", "results"):
        shutil.copy(ROOT / "benchmarks" / f"{name}.py", package)
    row = {"what": "a | b", "measured": "7", "target": "at least 8", "met": None}
    for name in ORDER:
        code = codes.get(name, 0)
        rows = [{**row, "met": code == 0}]
        line = json.dumps({"benchmark": name, "rows": rows})
        program = f"print('ran {name}'); print({line!r}); raise SystemExit({code})"
        (package / f"{name}.py").write_text(program if code != 9 else "raise SystemExit(9)")
    return folder


def test_all_go_on_past_a_failing_one(tmp_path: Path) -> None:
    folder = folder_of_fakes(tmp_path, {"finished": 3, "scales": 1, "judges": 9})
    done = run("-m", "benchmarks", folder=folder)
    assert done.returncode == 1
    ran = [line for line in done.stdout.splitlines() if line.startswith("ran ")]
    assert ran == [f"ran {name}" for name in ORDER if name != "judges"]
    assert done.stderr.strip() == (
        "failed: finished (exit code 3), scales (exit code 1), judges (exit code 9, no figures)"
    )
    page = (folder / "benchmarks" / "results.md").read_text("utf-8")
    assert "| soak | a \\| b | 7 | at least 8 | met |" in page
    assert "| finished | a \\| b | 7 | at least 8 | MISSED |" in page
    assert "| judges | failed | exit code 9, no figures | | FAILED |" in page


def test_what_is_not_run_keeps_its_figures(tmp_path: Path) -> None:
    folder = folder_of_fakes(tmp_path, {})
    assert run("-m", "benchmarks", "--only", "crash", folder=folder).returncode == 0
    page = folder / "benchmarks" / "results.md"
    first = page.read_text("utf-8")
    assert "| crash | a" in first
    assert "Not measured yet: soak, faults," in first
    assert run("-m", "benchmarks", "--quick", "--only", "judges", folder=folder).returncode == 0
    assert page.read_text("utf-8") == first  # a quick run is no result
    assert run("-m", "benchmarks", "speed", folder=folder).returncode == 0
    second = page.read_text("utf-8")
    assert second.index("| crash | a") < second.index("| quantify | a")
    assert "| judges | a" not in second


def test_an_unknown_group_is_refused() -> None:
    done = run("-m", "benchmarks", "sped")
    assert done.returncode == 2
    assert "unknown group 'sped'; there are soak, crash, hostile, speed, quality" in done.stderr
