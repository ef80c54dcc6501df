"""Memory over a million cells: while they are judged, planned again, and put into the table.

    python -m benchmarks.cells_memory [--cells 1000000] [--quick]

Runs × 20 criteria × 5 repeats are judged by the judge of `agenteval quantify` over a transport
that answers at once, into a store on disk: what grows in memory is the program's own. Peak memory
is read when 10 % of the calls are stored and at the end. A second process plans the same
experiment on the full store (what a resume does first), a third makes the table of `agenteval
show`: it loads every rating and takes means and intervals. Each of these also says what it had
when only its inputs were in memory.

Targets: every cell stored; at most 50 MB more at the end than at 10 %; a resume within 50 MB above
its inputs; the table within 60 s and 1 GB.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from agenteval.engine import Experiment, Progress, pending
from agenteval.evaluators.utility.plan import Item, JudgeEvaluator
from agenteval.records import Criterion, Run, View
from agenteval.store import Store
from agenteval.trust.means import load_ratings, summarize
from benchmarks.folders import OUT, module
from benchmarks.instant import IN_FLIGHT, Instant, instant_judge, peak_mb, reply_text, scored
from benchmarks.outcome import Row, finish

CRITERIA, REPEATS = 20, 5
GROWTH_MB, TABLE_S, TABLE_MB = 50, 60, 1024
LEVELS = ("wrong", "weak", "fair", "good", "excellent")


def criteria() -> list[Criterion]:
    """Twenty criteria of five levels."""
    return [
        Criterion(name=f"Quality {i}", description=f"Side {i} of the work.", accepted_values=LEVELS)
        for i in range(CRITERIA)
    ]


def items(cells: int) -> list[Item]:
    """As many short runs as it takes, three systems on each case."""
    found = []
    for i in range(max(1, cells // (CRITERIA * REPEATS))):
        run = Run(
            id=f"run-{i}", task="math", system=f"s{i % 3}", success=i % 2 == 0,
            input=f"How much is {i // 3} times 7?", output=f"It is {i // 3 * 7}, I think.",
        )  # fmt: skip
        found.append((run, View(run_id=run.id, problem=run.input, trajectory=run.output)))
    return found


def judging(path: Path, cells: int) -> dict[str, Any]:
    """Judge all; peak memory with the inputs, at 10 % and at the end."""
    work, asked = items(cells), criteria()
    marks = {"inputs_mb": peak_mb()}
    with Store(path) as store:
        judge = instant_judge(store, Instant(reply_text(asked, "The third step says so.")))
        rated = JudgeEvaluator.of(judge, work, asked, REPEATS)
        plan = pending(rated, store)
        marks["planned_mb"] = peak_mb()
        tenth = max(1, len(plan.units) // 10)

        def note(progress: Progress) -> None:
            if progress.done == tenth:
                marks["tenth_mb"] = peak_mb()

        began = time.perf_counter()
        asyncio.run(Experiment(rated, store, concurrency=2 * IN_FLIGHT).run(note))
        marks |= {"seconds": time.perf_counter() - began, "end_mb": peak_mb()}
        return marks | {"cells": plan.cells, "scored": scored(store, judge)}


def resuming(path: Path, cells: int) -> dict[str, Any]:
    """Plan again on the full store; nothing may be open."""
    work, asked = items(cells), criteria()
    with Store(path, create=False) as store:
        judge = instant_judge(store, Instant(None))
        inputs, began = peak_mb(), time.perf_counter()
        rated = JudgeEvaluator.of(judge, work, asked, REPEATS)
        plan = pending(rated, store)
        seconds = time.perf_counter() - began
        return {
            "seconds": seconds, "inputs_mb": inputs, "end_mb": peak_mb(), "open": plan.open,
            "calls": len(plan.units),
        }  # fmt: skip


def tabling(path: Path, _: int) -> dict[str, Any]:
    """The table from everything stored."""
    with Store(path, create=False) as store:
        ((key, _source),) = store.sources()
        inputs, began = peak_mb(), time.perf_counter()
        ratings = load_ratings(store, key)
        rows = summarize(ratings, list(store.criteria_of(key).values()))
        seconds = time.perf_counter() - began
        return {
            "seconds": seconds, "inputs_mb": inputs, "end_mb": peak_mb(),
            "ratings": len(ratings), "rows": len(rows),
        }  # fmt: skip


STAGES = {"judging": judging, "resuming": resuming, "tabling": tabling}


def measure(cells: int) -> dict[str, dict[str, Any]]:
    """Every stage in a process of its own over one store."""
    OUT.mkdir(exist_ok=True)
    found = {}
    with tempfile.TemporaryDirectory(dir=OUT) as folder:
        for name in STAGES:
            command = module("cells_memory", "--cells", str(cells), "--stage", name)
            command += ["--store", str(Path(folder) / "store.db")]
            done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
            found[name] = json.loads(done.stdout)
    return found


def table(found: dict[str, dict[str, Any]]) -> list[Row]:
    """What was measured beside the targets."""
    judged, resumed, tabled = (found[name] for name in STAGES)
    growth = judged["end_mb"] - judged["tenth_mb"]
    above = resumed["end_mb"] - resumed["inputs_mb"]
    whole = judged["scored"] == judged["cells"] == tabled["ratings"] and not resumed["open"]
    in_time = tabled["seconds"] <= TABLE_S and tabled["end_mb"] <= TABLE_MB
    return [
        Row("cells stored, and read into the table", f"{tabled['ratings']:,}",
            f"{judged['cells']:,}", whole),
        Row("memory at the end above that at 10 % of the cells", f"{growth:.1f} MB",
            f"<= {GROWTH_MB} MB", growth <= GROWTH_MB),
        Row("planning a resume on the full store, above its inputs",
            f"{above:.1f} MB, {resumed['seconds']:.1f} s", f"<= {GROWTH_MB} MB",
            above <= GROWTH_MB),
        Row("table of all cells", f"{tabled['seconds']:.1f} s, {tabled['end_mb']:,.0f} MB",
            f"<= {TABLE_S} s, {TABLE_MB:,} MB", in_time),
        Row("judged, answers at once",
            f"{judged['cells'] / judged['seconds']:,.0f} cells/s, {judged['end_mb']:,.0f} MB"),
    ]  # fmt: skip


def main() -> int:
    """Measure and print; 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cells", type=int, default=1_000_000)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--stage", choices=STAGES, help=argparse.SUPPRESS)
    parser.add_argument("--store", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.stage:
        print(json.dumps(STAGES[options.stage](options.store, options.cells)))
        return 0
    found = measure(20_000 if options.quick else options.cells)
    rows = table(found)
    for row in rows:
        print(f"{row.what}: {row.measured}" + (f" (target {row.target})" if row.target else ""))
    return finish("cells_memory", rows, **found)


if __name__ == "__main__":
    sys.exit(main())
