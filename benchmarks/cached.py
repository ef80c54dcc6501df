"""Stored cells per second when every answer comes from the reply cache.

    python -m benchmarks.cached [--runs 5000] [--rounds 3] [--quick] [--profile]

A store holds the replies to all requests but neither cells nor calls, as when the second half of a
store was lost, or results are thrown away to be read anew. One process then does what `agenteval
quantify` does: it renders every prompt, finds the reply by the request's hash, reads it, and
commits cells and calls durably. The store is on disk; the transport raises if anything is sent.
Each round is a process of its own.

Counted are cells in the store at the end, read back, and requests sent. Targets: at least 1,500
cells per second (median of the rounds; one call is one run on six criteria, six cells), every cell
stored, nothing sent.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agenteval.engine import Experiment
from agenteval.store import Store
from agenteval.utility.evaluator import JudgeEvaluator
from benchmarks.folders import OUT, module
from benchmarks.instant import IN_FLIGHT, Instant, instant_judge, peak_mb, reply_text, scored
from benchmarks.outcome import Row, finish
from benchmarks.sides import CRITERIA, EXPLANATION, criteria, items

TARGET = 1500


@dataclass(frozen=True)
class Pass:
    """One pass over all runs."""

    seconds: float
    cpu: float
    cells: int
    sent: int


def judge_all(path: Path, runs: int, *, answer: bool, profile: bool = False) -> Pass:
    """Plan and execute over a store; only `answer` lets the transport answer."""
    asked = criteria()
    work = items(runs)
    transport = Instant(reply_text(asked, EXPLANATION) if answer else None)
    with Store(path) as store:
        evaluator = instant_judge(store, transport)
        with _profiler() if profile else nullcontext():
            start = time.perf_counter(), time.process_time()
            rated = JudgeEvaluator.of(evaluator, work, asked)
            # As many workers as the command line takes.
            asyncio.run(Experiment(rated, store, concurrency=2 * IN_FLIGHT).run())
            wall, cpu = time.perf_counter() - start[0], time.process_time() - start[1]
        return Pass(wall, cpu, scored(store, evaluator), transport.sent)


def forget_results(path: Path) -> None:
    """Take cells and calls out of the store; replies stay."""
    with Store(path, create=False) as store, store.engine.begin() as connection:
        for table in ("results", "calls"):
            connection.exec_driver_sql(f"DELETE FROM {table}")


def one_round(runs: int, folder: Path, *, profile: bool = False) -> dict[str, Any]:
    """Fill a new store, forget the results, and judge again from the replies alone."""
    path = folder / "store.db"
    filled = judge_all(path, runs, answer=True)
    forget_results(path)
    again = judge_all(path, runs, answer=False, profile=profile)
    return {
        "cells": again.cells,
        "sent": again.sent,
        "filled_sent": filled.sent,
        "cells_per_s": again.cells / again.seconds,
        "cpu_ms_per_call": 1000 * again.cpu / runs,
        "filled_cells_per_s": filled.cells / filled.seconds,
        "peak_mb": peak_mb(),
    }


def _profiler() -> Any:
    import cProfile
    import pstats

    class Printing(cProfile.Profile):
        def __exit__(self, *exc_info: object) -> None:
            super().__exit__(*exc_info)
            pstats.Stats(self, stream=sys.stderr).sort_stats("tottime").print_stats(40)

    return Printing()


def summary(runs: int, rounds: list[dict[str, Any]]) -> tuple[list[Row], dict[str, Any]]:
    """The rows, and the figures behind them."""
    speed = statistics.median(r["cells_per_s"] for r in rounds)
    cells, sent = min(r["cells"] for r in rounds), max(r["sent"] for r in rounds)
    wanted = runs * CRITERIA
    figures = {
        "runs": runs,
        "cells": wanted,
        "rounds": len(rounds),
        "load": round(os.getloadavg()[0], 1),
        "cells_per_s": round(speed, 1),
        "cells_committed": cells,
        "requests_sent": sent,
        "cpu_ms_per_call": round(statistics.median(r["cpu_ms_per_call"] for r in rounds), 3),
        "filled_cells_per_s": round(statistics.median(r["filled_cells_per_s"] for r in rounds), 1),
        "peak_mb": round(max(r["peak_mb"] for r in rounds), 1),
    }
    rows = [
        Row(
            "cells per second from cached replies, one process",
            f"{speed:,.0f}",
            f">= {TARGET:,}",
            speed >= TARGET,
        ),
        Row("cells stored", f"{cells:,}", f"{wanted:,}", cells == wanted),
        Row("requests sent", f"{sent:,}", "0", sent == 0),
        Row("CPU per call of six cells", f"{figures['cpu_ms_per_call']:.2f} ms"),
    ]
    return rows, figures


def main() -> int:
    """Measure and print; 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=5000)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--profile", action="store_true", help="where the event loop spends time")
    parser.add_argument("--child", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.quick:
        options.runs, options.rounds = 400, 1
    if options.child:
        print(json.dumps(one_round(options.runs, options.child, profile=options.profile)))
        return 0
    OUT.mkdir(exist_ok=True)
    rounds = []
    for _ in range(options.rounds):
        with tempfile.TemporaryDirectory(dir=OUT) as folder:
            command = module("cached", "--runs", str(options.runs), "--child", folder)
            command += ["--profile"] if options.profile else []
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
        rounds.append(json.loads(done.stdout))
    rows, figures = summary(options.runs, rounds)
    for row in rows:
        print(f"{row.what}: {row.measured}" + (f" (target {row.target})" if row.target else ""))
    return finish("cached", rows, **figures)


if __name__ == "__main__":
    sys.exit(main())
