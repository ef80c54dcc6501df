"""A long run against a faulty endpoint: nothing lost, nothing paid twice, nothing unbounded.

    python -m benchmarks.soak [--quick]

100,000 cells (5,000 runs × 10 repeats × 2 criteria = 50,000 calls; `--quick` 2,000
cells in 500 calls) go
through `make_plan` and `execute` with the judge of `agenteval quantify` and a store on disk. The
endpoint is the loopback server in a process of its own: about 10 % of the requests meet a fault
(429 and 5xx, resets, half bodies, broken JSON, slow drip, length, refusal, filter, prose in place
of JSON; some runs fail for ever), latencies are lognormal, and above 32 requests in flight it
answers 429, while the judge may have 64. Faults and answers are functions of (request, repeat,
attempt, seed).

Counted, with targets: cells in the store against cells planned (all, none lost); identities that
the server answered well more than once (none); attempts per request (at most those of the
RetryPolicy); memory of this process at the end against a tenth of the work (at most 50 MB more);
CPU per request; of the time after the first 10 seconds, while there is work for all, the mean of
requests in flight against the ceiling (at least 80 %) and the share of 429s (at most 2 %, the
scripted ones included). A resume plans what failed for the infrastructure, and nothing else. A
second run of a part of it, on a fresh store and with another concurrency, exports the same bytes
(the message of cells that were never answered left out: their last attempt may meet the ceiling).
A client that is not let run for longer than its timeout pays for replies twice: run this while the
machine has nothing else to do.
The figures of time and load need more seconds than `--quick` takes and are not judged there.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from agenteval.models.client import RetryPolicy
from agenteval.testing import spawn
from benchmarks.folders import OUT
from benchmarks.outcome import Row, finish
from benchmarks.sides import Job
from benchmarks.soak.run import Judged, Size, Watch, export, items, judge_all, script

NONCE = "[0-9a-f]{24}"  # a function of the store's secret; no part of a request's identity
FULL = Size(5000, 10, 2, 64, 32, "lognormal:0.12:0.5", 30.0, drips=True, again=500)
QUICK = Size(50, 10, 4, 16, 8, "lognormal:0.02:0.5", 60.0, drips=False, again=25)
MOST_GROWTH, MOST_CPU, LEAST_USE, MOST_429 = 50.0, 5.0, 0.8, 0.02


def run(size: Size, folder: Path) -> tuple[list[Row], dict[str, Any]]:
    """Both runs; the rows and what else is to be told."""
    rules = folder / "script.json"
    rules.write_text(json.dumps(script(size)), encoding="utf-8")
    all_runs = items(size.runs)
    part = all_runs[-size.again :]
    with spawn("--script", str(rules), "--ignore-regex", NONCE) as server:
        job = Job("quantify", server.base_url, size.runs, size.concurrency, folder)
        watch = Watch(server, size.calls)
        with watch:
            judged = asyncio.run(judge_all(job, size, all_runs, folder / "first.db", watch))
        stats = server.stats()
        server.reset()
        other = Job("quantify", server.base_url, size.again, size.concurrency // 2, folder)
        asyncio.run(judge_all(other, size, part, folder / "second.db"))
    same = export(folder / "first.db", part) == export(folder / "second.db", part)
    rows = [*_counted(size, judged, stats), *_load(size, watch, stats)]
    rows.append(
        Row(
            f"tables of a second run ({size.again} runs)",
            "equal" if same else "DIFFER",
            "byte by byte",
            same,
        )
    )
    about = {
        "cells": size.cells,
        "calls": size.calls,
        "requests": stats["requests"],
        "outcomes": stats["outcomes"],
        "statuses": stats["statuses"],
        "results": judged.statuses,
        "seconds": round(watch.seconds, 1),
        "load": round(os.getloadavg()[0], 1),
        "memory_mb": {k: round(v, 1) for k, v in watch.memory.items()},
    }
    return rows, about


def _counted(size: Size, judged: Judged, stats: dict[str, Any]) -> list[Row]:
    stored = sum(judged.statuses.values())
    lost = size.cells - stored + judged.ended.left_out
    unnamed = [s for s in judged.statuses if s != "scored" and ":" not in s]
    most = max(asked for asked, _ in stats["per_request"].values())
    allowed = RetryPolicy().attempts
    faults = sum(n for kind, n in stats["outcomes"].items() if kind not in ("ok", "rejected"))
    share = faults / (stats["requests"] - stats["outcomes"].get("rejected", 0))
    failed = {k: v for k, v in sorted(judged.statuses.items()) if k != "scored"}
    named = ", ".join(f"{k} {v}" for k, v in failed.items())
    return [
        Row("cells stored", f"{stored} of {size.cells}", "all", stored == judged.planned),
        Row("cells lost", str(lost), "0", lost == 0 and judged.ended.stopped is None),
        Row("cells scored", str(judged.statuses.get("scored", 0))),
        Row("failures", named or "none", "each with a name", not unnamed),
        Row(
            "requests with a fault",
            f"{share:.1%}",
            "about 10 %",
            0.08 <= share <= 0.15 if size is FULL else None,
        ),
        Row("answered well twice", str(stats["answered_again"]), "0", stats["answered_again"] == 0),
        Row(
            "attempts per request",
            f"at most {most}",
            f"at most {allowed}",
            most <= allowed and judged.wrong_attempts == 0,
        ),
        Row(
            "calls a resume makes",
            str(judged.open_again),
            f"{judged.broken_units}: what failed for the infrastructure",
            judged.open_again == judged.broken_units,
        ),
    ]


def _load(size: Size, watch: Watch, stats: dict[str, Any]) -> list[Row]:
    growth = watch.memory["end"] - watch.memory["tenth"]
    per_request = 1000 * watch.cpu / stats["requests"]
    judged = size is FULL
    rows = [
        Row("peak memory", f"{max(watch.memory.values()):.0f} MB"),
        Row(
            "memory from 10 % to the end",
            f"{growth:+.1f} MB",
            f"at most {MOST_GROWTH:g} MB",
            growth <= MOST_GROWTH,
        ),
        Row(
            "CPU per request",
            f"{per_request:.2f} ms, {watch.cpu / watch.seconds:.0%} busy",
            f"at most {MOST_CPU:g} ms",
            per_request <= MOST_CPU if judged else None,
        ),
    ]
    seen = watch.loaded(2 * size.concurrency)
    if seen is None:
        return [*rows, Row("ceiling used, 429s", "the run was too short to say")]
    first, last = seen
    spent = last["elapsed_seconds"] - first["elapsed_seconds"]
    use = (last["in_flight_seconds"] - first["in_flight_seconds"]) / spent / size.ceiling
    many = last["statuses"].get("429", 0) - first["statuses"].get("429", 0)
    share = many / (last["requests"] - first["requests"])
    return [
        *rows,
        Row(
            f"ceiling of {size.ceiling} used",
            f"{use:.1%}",
            "at least 80 %",
            use >= LEAST_USE if judged else None,
        ),
        Row(
            "429s after 10 s",
            f"{share:.2%} of requests",
            "at most 2 %",
            share <= MOST_429 if judged else None,
        ),
    ]


def show(rows: list[Row], about: dict[str, Any]) -> None:
    """The table, and what the server sent."""
    console = Console(width=110)
    table = Table(
        title=f"soak: {about['cells']} cells in {about['calls']} calls, "
        f"{about['requests']} requests, {about['seconds']} s"
    )
    for head in ("what", "measured", "target", ""):
        table.add_column(head, overflow="fold")
    words = {True: "met", False: "MISSED", None: ""}
    for row in rows:
        table.add_row(row.what, row.measured, row.target or "", words[row.met])
    console.print(table)
    kinds = ", ".join(f"{k} {n}" for k, n in sorted(about["outcomes"].items()))
    console.print(f"outcomes at the server: {kinds}")


def main() -> int:
    """Run it; the exit code is 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a fiftieth of the cells")
    size = QUICK if parser.parse_args().quick else FULL
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=OUT) as folder:
        rows, about = run(size, Path(folder))
    show(rows, about)
    return finish("soak", rows, **about)


if __name__ == "__main__":
    sys.exit(main())
