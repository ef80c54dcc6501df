"""Run the benchmarks, each as a process of its own: `python -m benchmarks [--quick] [GROUP ...]`.

Their output passes through; the last line of each is JSON with the rows of its figures. At the
end one table shows the rows of all that ran. A run without --quick keeps them in results.json and
writes results.md from it; what did not run this time stays as it was, with the day on which it was
measured. One that fails does not stop the others; the exit code is 1 then.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from typing import Any, NamedTuple

from rich.console import Console

from benchmarks.folders import ROOT, module
from benchmarks.results import RESULTS, Result, load_results, save_results, table


class Benchmark(NamedTuple):
    """How one is called: its group, and its arguments with --quick."""

    group: str
    quick: tuple[str, ...] = ("--quick",)


BENCHMARKS: dict[str, Benchmark] = {
    "soak": Benchmark("soak"),
    "crash": Benchmark("crash"),
    "malformed": Benchmark("hostile"),
    "injection": Benchmark("hostile"),
    "quantify": Benchmark("speed", ("--runs", "400", "--rounds", "1")),
    "merge_quality": Benchmark("quality", ()),
    "embedded": Benchmark("quality"),
    "coverage": Benchmark("quality", ("--experiments", "400")),
    "calibration": Benchmark("quality", ("--draws", "50")),
    "scale": Benchmark(
        "scale", ("--runs", "200", "--calls", "300", "--sessions", "4", "--rounds", "1")
    ),
    "few_labels": Benchmark("quality", ("--draws", "400", "--looks", "1000")),
    "escalation": Benchmark("quality", ("--draws", "200")),
    "pairwise": Benchmark("quality", ("--experiments", "200", "--seeds", "3")),
    "verdicts": Benchmark("quality", ("--seeds", "5", "--runs", "60")),
    "anchor": Benchmark("quality"),
    "verifier": Benchmark("quality"),
    "detectors": Benchmark("quality", ()),
    "flow_import": Benchmark("speed"),
    "view": Benchmark("speed"),
}
GROUPS = tuple(dict.fromkeys(b.group for b in BENCHMARKS.values()))


def run(name: str, quick: bool) -> Result:
    """Run one; its output passes through. A crash or a missing last line is `failed`."""
    arguments = BENCHMARKS[name].quick if quick else ()
    command = module(name, *arguments)
    began, last = time.monotonic(), ""
    with subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        for line in process.stdout:
            print(line, end="", flush=True)
            last = line if line.strip() else last
    seconds = time.monotonic() - began
    rows = _rows(last)
    failed = None
    if rows is None:
        failed = f"exit code {process.returncode}, no figures"
    elif process.returncode:
        failed = f"exit code {process.returncode}"
    return Result(name, tuple(rows or ()), seconds, time.strftime("%Y-%m-%d"), failed)


def _rows(line: str) -> list[dict[str, Any]] | None:
    try:
        rows = json.loads(line)["rows"]
    except (ValueError, KeyError, TypeError):
        return None
    return rows if isinstance(rows, list) else None


def chosen(groups: list[str], only: list[str] | None) -> list[str]:
    """Names in their order; all of them unless told."""
    names = only or [n for n, b in BENCHMARKS.items() if not groups or b.group in groups]
    return [n for n in BENCHMARKS if n in names]


def main() -> int:
    """Run them; 0 when all ended well and met their targets."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=", ".join(GROUPS))
    parser.add_argument("--quick", action="store_true", help="smaller sizes, less certain figures")
    parser.add_argument("--only", nargs="+", choices=BENCHMARKS, metavar="NAME")
    options = parser.parse_args()
    if unknown := set(options.groups) - set(GROUPS):
        parser.error(f"unknown group {min(unknown)!r}; there are {', '.join(GROUPS)}")
    results = []
    for name in chosen(options.groups, options.only):
        print(f"\n== {name} ==", flush=True)
        results.append(run(name, options.quick))
        if not options.quick:  # after each: what was measured is kept when the next is broken off
            save_results({**load_results(), name: results[-1]}, list(BENCHMARKS))
    console = Console()
    console.print(table(results))
    if not options.quick:
        console.print(f"written to {RESULTS.with_suffix('.md')}", soft_wrap=True)
    failed = [f"{r.name} ({r.failed})" for r in results if r.failed]
    if failed:
        print(f"\nfailed: {', '.join(failed)}", file=sys.stderr)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
