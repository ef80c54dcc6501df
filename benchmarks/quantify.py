"""Throughput and CPU of `quantify` beside the bare openai client and the AutoGen path.

    python benchmarks/quantify.py [--runs 3000] [--concurrency 64] [--latency 0.1] [--rounds 3]

A loopback server answers every request after `--latency` seconds with the same valid reply. One
call judges one run on six criteria, so a call makes six cells. Sides, each in a fresh process, one
after the other, round by round:

bare           openai.AsyncOpenAI and nothing else: the request bodies are made before the clock
               starts, the replies are thrown away
quantify       what `agenteval quantify` runs: prompts rendered, replies read, cells, calls and
               replies in a store on disk, each call durable before it counts
autogen_bare   autogen-ext's OpenAIChatCompletionClient and nothing else, on the same prompts
autogen        as quantify, through that client

Before the clock starts each side makes `--concurrency` calls that do not count, so that imports and
connections are not measured. It ends with 1 when a cell is missing, a request was sent twice, the
bodies of bare and quantify differ, or the target is missed; the target (quantify at least 0.85 of
bare in calls per second) is judged at concurrency 64 and latency 0.1 alone.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from agenteval.testing import Child, spawn

sys.path.insert(0, str(Path(__file__).parent))
from sides import CRITERIA, SIDES, fixed_reply

TARGET, TARGET_CONCURRENCY, TARGET_LATENCY = 0.85, 64, 0.1
NONCE = "[0-9a-f]{24}"  # differs from store to store: left out when bodies are compared
OTHER_BODIES = "bare and quantify did not send the same bodies"
OUT = Path(__file__).parent / "out"


@dataclass
class Rounds:
    """What the sides measured, one entry per round, and what was wrong."""

    seconds: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    cpu: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    loop_cpu: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    server_cpu: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    peak_mb: dict[str, list[float]] = field(default_factory=lambda: defaultdict(list))
    cells: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    wrong: list[str] = field(default_factory=list)


def run_side(
    side: str, server: Child, runs: int, concurrency: int, *, profile: bool = False
) -> tuple[dict[str, Any], dict[str, Any]]:
    """One side in a new process; what it measured, and the server's counters for it."""
    server.reset()
    script = str(Path(__file__).with_name("sides.py"))
    with tempfile.TemporaryDirectory(dir=OUT) as folder:
        command = [sys.executable, script, side, server.base_url, "--folder", folder]
        command += ["--runs", str(runs), "--concurrency", str(concurrency)]
        command += ["--profile"] if profile else []
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    return json.loads(done.stdout), server.stats()


def measure(options: argparse.Namespace, server: Child, side: str, rounds: Rounds) -> None:
    """Add one round of one side to `rounds`, with what was wrong."""
    profile = options.profile and side == "quantify"
    got, stats = run_side(side, server, options.runs, options.concurrency, profile=profile)
    sent = options.runs + options.concurrency  # those before the clock started included
    if stats["outcomes"] != {"ok": sent} or stats["identities"] != sent:
        rounds.wrong.append(f"{side}: wanted {sent} different requests, got {stats['outcomes']}")
    if got["cells"] not in (None, options.runs * CRITERIA):
        rounds.wrong.append(f"{side}: {got['cells']} cells stored of {options.runs * CRITERIA}")
    rounds.server_cpu[side].append(stats["cpu_seconds"] / sent)
    for name in ("seconds", "cpu", "loop_cpu", "peak_mb", "cells"):
        getattr(rounds, name)[side].append(got[name])


def same_bodies(script: str) -> bool:
    """Whether bare and quantify send the same bodies, nonces apart.

    Asked of a server of its own: taking the nonces out costs more than the answer.
    """
    with spawn("--script", script, "--ignore-regex", NONCE) as server:
        asked = [
            set(run_side(side, server, runs=8, concurrency=4)[1]["per_request"])
            for side in ("bare", "quantify")
        ]
    return len(asked[0]) == 12 and asked[0] == asked[1]


def summary(options: argparse.Namespace, rounds: Rounds) -> dict[str, Any]:
    """The line of JSON: medians over the rounds; ratios are taken within each round."""
    n, median = options.runs, statistics.median
    sides = {}
    for side, seconds in rounds.seconds.items():
        bare = rounds.seconds["bare"]
        stored = [c for c in rounds.cells[side] if c is not None]
        sides[side] = {
            "calls_per_s": round(n / median(seconds), 1),
            "cells_per_s": round(n * CRITERIA / median(seconds), 1) if stored else None,
            "ratio": round(median(b / s for b, s in zip(bare, seconds, strict=True)), 3),
            "ratios": [round(b / s, 3) for b, s in zip(bare, seconds, strict=True)],
            "cpu_ms_per_call": round(1000 * median(rounds.cpu[side]) / n, 3),
            "cpu_ratio": round(median(rounds.cpu[side]) / median(rounds.cpu["bare"]), 3),
            "loop_cpu_ms_per_call": round(1000 * median(rounds.loop_cpu[side]) / n, 3),
            "server_cpu_ms_per_call": round(1000 * median(rounds.server_cpu[side]), 3),
            "peak_rss_mb": round(max(rounds.peak_mb[side]), 1),
            "cells_committed": min(stored) if stored else None,
        }
    judged = (options.concurrency, options.latency) == (TARGET_CONCURRENCY, TARGET_LATENCY)
    ratio = sides["quantify"]["ratio"]
    return {
        "benchmark": "quantify",
        "runs": n,
        "criteria": CRITERIA,
        "cells": n * CRITERIA,
        "concurrency": options.concurrency,
        "latency_s": options.latency,
        "rounds": options.rounds,
        "load": round(os.getloadavg()[0], 1),
        "cores": os.cpu_count(),
        "same_bodies": OTHER_BODIES not in rounds.wrong,
        "target_ratio": TARGET,
        "met": ratio >= TARGET if judged else None,
        "sides": sides,
        "wrong": rounds.wrong,
    }


def show(result: dict[str, Any]) -> None:
    """The table, and the JSON line below it."""
    console = Console(width=110)
    table = Table(
        title=f"quantify: {result['runs']} calls, {result['concurrency']} in flight, "
        f"{result['latency_s']:g} s latency, {result['rounds']} rounds",
        caption=f"1 call = 1 run on {CRITERIA} criteria = {CRITERIA} cells. Ratio: calls per "
        "second over bare in the same round, median. CPU: of the client process; loop: of its "
        "event loop's thread; MB: peak memory.",
    )
    table.add_column("side")
    heads = "calls/s", "cells/s", "ratio", "CPU ms/call", "CPU ratio", "loop ms", "MB", "committed"
    for head in heads:
        table.add_column(head, justify="right")
    for name, side in result["sides"].items():
        row = [f"{side['calls_per_s']:,.0f}", _count(side["cells_per_s"]), f"{side['ratio']:.3f}"]
        row += [f"{side[k]:.2f}" for k in ("cpu_ms_per_call", "cpu_ratio", "loop_cpu_ms_per_call")]
        row += [f"{side['peak_rss_mb']:,.0f}", _count(side["cells_committed"])]
        table.add_row(name, *row)
    console.print(table)
    if result["load"] > result["cores"] + 2:
        console.print(f"load {result['load']} on {result['cores']} cores: other work slowed this")
    verdict = {True: "met", False: "MISSED", None: "not judged at these settings"}
    console.print(f"target: quantify at least {TARGET} of bare: {verdict[result['met']]}")
    print(json.dumps(result))


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def main() -> int:
    """Run all sides round by round; the exit code is 1 for what the module's text names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=3000)
    parser.add_argument("--concurrency", type=int, default=TARGET_CONCURRENCY)
    parser.add_argument("--latency", type=float, default=TARGET_LATENCY, help="seconds")
    parser.add_argument("--rounds", type=int, default=3)
    only = "fewer sides (bare and quantify are always run)"
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES), help=only)
    parser.add_argument("--profile", action="store_true", help="profile quantify (slows it down)")
    options = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    rounds = Rounds()
    with tempfile.TemporaryDirectory(dir=OUT) as folder:
        script = Path(folder) / "script.json"
        script.write_text(json.dumps({"answers": [{"match": "", "replies": [fixed_reply()]}]}))
        if not same_bodies(str(script)):
            rounds.wrong.append(OTHER_BODIES)
        with spawn("--script", str(script), "--latency", str(options.latency)) as server:
            for _ in range(options.rounds):
                for side in SIDES:
                    if side in ("bare", "quantify", *options.sides):
                        measure(options, server, side, rounds)
    result = summary(options, rounds)
    show(result)
    for line in rounds.wrong:
        print(f"WRONG: {line}", file=sys.stderr)
    return 1 if rounds.wrong or result["met"] is False else 0


if __name__ == "__main__":
    sys.exit(main())
