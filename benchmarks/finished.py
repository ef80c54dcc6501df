"""What a command costs beside its calls: `quantify` again, with everything stored.

    python -m benchmarks.finished [--runs 2000] [--n 5]

A first command judges the runs over a loopback endpoint. The same command then starts, imports,
reads the runs, finds every result in the store, and prints the tables; nothing is sent. It is timed
`--n` times, in turn with a bare interpreter and an import of what it uses. Median wall time and CPU
seconds are shown beside the aim (0.8 s for 2,000 runs on two idle cores) and never decide; the exit
code is 1 when anything is sent, or two tables differ.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from benchmarks.endpoint import endpoint
from benchmarks.folders import OUT, ROOT
from benchmarks.outcome import Row, finish
from benchmarks.sides import MODEL, criteria, fixed_reply

AIM = 0.8  # seconds


def write_runs(path: Path, count: int) -> None:
    """Numbered copies of the runs of tasks/math, of which no two texts are the same."""
    lines = (ROOT / "tasks" / "math" / "runs.jsonl").read_text(encoding="utf-8").splitlines()
    with path.open("w", encoding="utf-8") as file:
        for i in range(count):
            run = json.loads(lines[i % len(lines)])
            changed = {name: f"{run[name]}\n\nCopy {i}." for name in ("input", "output")}
            file.write(json.dumps(run | changed | {"id": f"copy-{i}"}) + "\n")


class Timed(NamedTuple):
    """Wall and CPU seconds of a process, and what it printed."""

    wall: float
    cpu: float
    printed: str


def timed(command: list[str], folder: Path) -> Timed:
    """One process, from its start to its end. Bytecode is kept in the folder, as
    it is where a package is installed."""
    cached = os.environ | {"PYTHONPYCACHEPREFIX": str(folder / "bytecode"), "OPENAI_API_KEY": "x"}
    cached.pop("PYTHONDONTWRITEBYTECODE", None)
    before, start = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    done = subprocess.run(
        command, cwd=ROOT, env=cached, check=True, stdout=subprocess.PIPE, text=True
    )
    wall, after = time.perf_counter() - start, resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
    return Timed(wall, cpu, done.stdout)


def _table(printed: str) -> str:
    """Return what was printed without the requests of this command, which differ.

    White space is made one: lines are wrapped with the text that is taken out here.
    """
    words = " ".join(printed.split())
    return re.sub(r"[0-9,]+ requests by this command; in all ", "", words)


def main() -> int:
    """Measure and print; 1 when a finished command asked for anything or printed another table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=2000)
    parser.add_argument("--n", type=int, default=5, help="commands that are timed")
    options = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=OUT) as name, endpoint(fixed_reply(), 0.0) as server:
        folder = Path(name)
        write_runs(folder / "runs.jsonl", options.runs)
        dimensions = [c.model_dump(mode="json", exclude_defaults=True) for c in criteria()]
        whole = {"schema": 1, "task": "math", "criteria": dimensions}
        (folder / "criteria.json").write_text(json.dumps(whole), encoding="utf-8")
        commands = {
            "pass": [sys.executable, "-c", "pass"],
            "import": [sys.executable, "-c", "import agenteval.app.main, agenteval.utility.api"],
            "finished": [
                sys.executable,
                "-m",
                "agenteval",
                "quantify",
                str(folder / "runs.jsonl"),
                "--criteria",
                str(folder / "criteria.json"),
                "--model",
                f"openai:{MODEL}",
                "--base-url",
                server.base_url,
                "--store",
                str(folder / "store.db"),
                "--quiet",
                "-j",
                "64",
            ],
        }
        first = timed(commands["finished"], folder)
        asked = server.counted()["requests"]
        rounds = [{k: timed(c, folder) for k, c in commands.items()} for _ in range(options.n)]
        sent = server.counted()["requests"]
    wall = {k: statistics.median(r[k].wall for r in rounds) for k in commands}
    cpu = {k: statistics.median(r[k].cpu for r in rounds) for k in commands}
    others = sum(_table(r["finished"].printed) != _table(first.printed) for r in rounds)
    what = f"a finished command of {options.runs:,} runs"
    rows = [
        Row(f"{what}, median", f"{wall['finished']:.2f} s", f"{AIM} s (shown, not judged)"),
        Row(f"{what}, CPU", f"{cpu['finished']:.2f} s, {cpu['import']:.2f} s of it imports"),
        Row(f"{what}, CPU over that of judging them", f"{cpu['finished'] / first.cpu:.2f}"),
        Row(
            "requests sent again, tables that differ",
            f"{sent} of {asked}, {others}",
            "0, 0",
            (asked, sent, others) == (options.runs, 0, 0),
        ),
    ]
    for row in rows:
        print(f"{row.what}: {row.measured}" + (f" (target {row.target})" if row.target else ""))
    return finish(
        "finished",
        rows,
        runs=options.runs,
        n=options.n,
        load=round(os.getloadavg()[0], 1),
        wall_s={k: round(v, 3) for k, v in wall.items()},
        cpu_s={k: round(v, 3) for k, v in cpu.items()},
        judging_cpu_s=round(first.cpu, 2),
    )


if __name__ == "__main__":
    sys.exit(main())
