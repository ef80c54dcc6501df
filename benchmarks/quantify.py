"""Throughput and CPU of `quantify` beside the bare openai client and bare aiohttp.

    python -m benchmarks.quantify [--runs 2400] [--concurrency 64 256] [--latency 0.1] [--rounds 3]

A loopback endpoint in its own process answers every request after `--latency` seconds with the same
valid reply. One call judges one run on six criteria, so a call makes six cells. Sides, each in a
fresh process, one after the other, round by round:

bare           openai.AsyncOpenAI and nothing else: the request bodies are made before the clock
               starts, the replies are thrown away
aiohttp        aiohttp in its place: the least that a call can cost in Python
quantify       what `agenteval quantify` runs: prompts rendered, replies read, cells, calls and
               replies in a store on disk, each call durable before it counts

With n times 64 in flight there are n/2 times as many calls, since filling and draining take
longer. Before the clock starts each side makes as many calls as are in flight that do not count,
so that imports and connections are not measured. It ends
with 1 when a cell is missing, a request was sent twice, the bodies of bare and quantify differ, or
a target is missed. Targets, judged at latency 0.1 and these numbers in flight alone: quantify makes
at least 0.95 (64) and twice (256) bare's calls per second, and spends no more CPU on a call than
bare. The other sides are shown beside and not judged.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from agenteval.testing import spawn
from benchmarks.endpoint import Endpoint, endpoint
from benchmarks.folders import OUT, module
from benchmarks.outcome import Row, finish
from benchmarks.sides import CRITERIA, SIDES, fixed_reply

TARGETS, TARGET_LATENCY = {64: 0.95, 256: 2.0}, 0.1  # by requests in flight
TARGET_CPU_MS = 0.0  # of quantify above bare, per call
NONCE = "[0-9a-f]{24}"  # differs from store to store: left out when bodies are compared
OTHER_BODIES = "bare and quantify did not send the same bodies"


@dataclass(frozen=True)
class Setting:
    """One number in flight, and how much is asked there."""

    runs: int
    concurrency: int
    latency: float
    rounds: int
    sides: tuple[str, ...]
    profile: bool = False


def run_side(
    side: str, url: str, runs: int, concurrency: int, *, profile: bool = False
) -> dict[str, Any]:
    """What one side measured in a new process."""
    with tempfile.TemporaryDirectory(dir=OUT) as folder:
        command = module("sides", side, url, "--folder", folder)
        command += ["--runs", str(runs), "--concurrency", str(concurrency)]
        command += ["--profile"] if profile else []
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    measured: dict[str, Any] = json.loads(done.stdout)
    return measured


def measure(setting: Setting, server: Endpoint, side: str, wrong: list[str]) -> dict[str, Any]:
    """One round of one side; what is wrong with it goes to `wrong`."""
    profile = setting.profile and side == "quantify"
    server.counted()  # what came before is not this side's
    got = run_side(side, server.base_url, setting.runs, setting.concurrency, profile=profile)
    stats = server.counted()
    sent = setting.runs + setting.concurrency  # those before the clock started included
    if not stats["requests"] == stats["different"] == sent:
        wrong.append(
            f"{side}: wanted {sent} different requests, got {stats['different']} in "
            f"{stats['requests']}"
        )
    if got["cells"] not in (None, setting.runs * CRITERIA):
        wrong.append(f"{side}: {got['cells']} cells stored of {setting.runs * CRITERIA}")
    return {**got, "server_cpu": stats["cpu_seconds"] / sent}


def same_bodies(script: str) -> bool:
    """Whether bare and quantify send the same bodies, nonces apart.

    Asked of the scripted server, which takes the nonces out.
    """
    asked = []
    for side in ("bare", "quantify"):
        with spawn("--script", script, "--ignore-regex", NONCE) as server:
            run_side(side, server.base_url, runs=8, concurrency=4)
            asked.append(set(server.stats()["per_request"]))
    return len(asked[0]) == 12 and asked[0] == asked[1]


def summary(
    setting: Setting, rounds: dict[str, list[dict[str, Any]]], wrong: list[str]
) -> dict[str, Any]:
    """The line of JSON: medians over the rounds; ratios are taken within each round."""
    n = setting.runs

    def median(side: str, name: str) -> float:
        return float(statistics.median(measured[name] for measured in rounds[side]))

    sides: dict[str, dict[str, Any]] = {}
    for side, measured in rounds.items():
        ratios = [
            bare["seconds"] / this["seconds"]
            for bare, this in zip(rounds["bare"], measured, strict=True)
        ]
        stored = [m["cells"] for m in measured if m["cells"] is not None]
        seconds = median(side, "seconds")
        sides[side] = {
            "calls_per_s": round(n / seconds, 1),
            "cells_per_s": round(n * CRITERIA / seconds, 1) if stored else None,
            "ratio": round(statistics.median(ratios), 3),
            "ratios": [round(ratio, 3) for ratio in ratios],
            "cpu_ms_per_call": round(1000 * median(side, "cpu") / n, 3),
            "cpu_ratio": round(median(side, "cpu") / median("bare", "cpu"), 3),
            "loop_cpu_ms_per_call": round(1000 * median(side, "loop_cpu") / n, 3),
            "server_cpu_ms_per_call": round(1000 * median(side, "server_cpu"), 3),
            "peak_rss_mb": round(max(m["peak_mb"] for m in measured), 1),
            "cells_committed": min(stored) if stored else None,
        }
    target = TARGETS.get(setting.concurrency) if setting.latency == TARGET_LATENCY else None
    ratio = sides["quantify"]["ratio"]
    above = sides["quantify"]["cpu_ms_per_call"] - sides["bare"]["cpu_ms_per_call"]
    return {
        "runs": n,
        "criteria": CRITERIA,
        "cells": n * CRITERIA,
        "concurrency": setting.concurrency,
        "latency_s": setting.latency,
        "rounds": setting.rounds,
        "load": round(os.getloadavg()[0], 1),
        "cores": os.cpu_count(),
        "same_bodies": OTHER_BODIES not in wrong,
        "target_ratio": target,
        "cpu_ms_above_bare": round(above, 3),
        "met": None if target is None else ratio >= target and above <= TARGET_CPU_MS,
        "sides": sides,
        "wrong": wrong,
    }


def show(result: dict[str, Any]) -> None:
    """The table of one setting."""
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
    console.print(
        f"target: quantify at least {result['target_ratio'] or min(TARGETS.values())} of bare, at "
        f"most {TARGET_CPU_MS} ms of CPU a call above it: {verdict[result['met']]}"
    )


def rows_of(results: Sequence[dict[str, Any]]) -> list[Row]:
    """What is compared with a target at each setting, and whether all went as it must."""
    rows = []
    for found in results:
        where = f"{found['concurrency']} in flight, {found['latency_s']:g} s latency"
        ratio, target = found["sides"]["quantify"]["ratio"], found["target_ratio"]
        above, speed = found["cpu_ms_above_bare"], found["sides"]["quantify"]["calls_per_s"]
        rows += [
            Row(
                f"calls per second of quantify over the bare client, {where}",
                f"{ratio:.2f} ({speed:,.0f} calls/s)",
                None if target is None else f">= {target}",
                None if target is None else ratio >= target,
            ),
            Row(
                f"CPU per call above the bare client, {where}",
                f"{above:+.2f} ms",
                None if target is None else f"<= {TARGET_CPU_MS} ms",
                None if target is None else above <= TARGET_CPU_MS,
            ),
        ]
    wrong = [text for found in results for text in found["wrong"]]
    rows.append(
        Row("cells missing, requests sent twice, other bodies", f"{len(wrong)}", "0", not wrong)
    )
    return rows


def _count(value: float | None) -> str:
    return "-" if value is None else f"{value:,.0f}"


def main() -> int:
    """Run all sides round by round; the exit code is 1 for what the module's text names."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--runs", type=int, default=2400, help="calls at the first setting")
    parser.add_argument("--concurrency", type=int, nargs="+", default=list(TARGETS))
    parser.add_argument("--latency", type=float, default=TARGET_LATENCY, help="seconds")
    parser.add_argument("--rounds", type=int, default=3)
    only = "fewer sides (bare and quantify are always run)"
    parser.add_argument("--sides", nargs="+", choices=SIDES, default=list(SIDES), help=only)
    parser.add_argument("--profile", action="store_true", help="profile quantify (slows it down)")
    options = parser.parse_args()
    OUT.mkdir(exist_ok=True)
    results = []
    with tempfile.TemporaryDirectory(dir=OUT) as folder:
        script = Path(folder) / "script.json"
        script.write_text(json.dumps({"answers": [{"match": "", "replies": [fixed_reply()]}]}))
        same = same_bodies(str(script))
        for setting in settings(options):
            results.append(run_setting(setting, same))
            show(results[-1])
    for line in (text for found in results for text in found["wrong"]):
        print(f"WRONG: {line}", file=sys.stderr)
    return finish("quantify", rows_of(results), **results[0], others=results[1:])


def settings(options: argparse.Namespace) -> list[Setting]:
    """Return what is measured at each number in flight."""
    first = options.concurrency[0]
    sides = tuple(s for s in SIDES if s in ("bare", "quantify", *options.sides))
    return [
        Setting(
            runs=max(options.runs, options.runs * n // (2 * first)),
            concurrency=n,
            latency=options.latency,
            rounds=options.rounds,
            sides=sides,
            profile=options.profile,
        )
        for n in options.concurrency
    ]


def run_setting(setting: Setting, same: bool) -> dict[str, Any]:
    """All sides round by round over one endpoint."""
    wrong = [] if same else [OTHER_BODIES]
    rounds: dict[str, list[dict[str, Any]]] = {side: [] for side in setting.sides}
    with endpoint(fixed_reply(), setting.latency) as server:
        for _ in range(setting.rounds):
            for side in setting.sides:
                rounds[side].append(measure(setting, server, side, wrong))
    return summary(setting, rounds, wrong)


if __name__ == "__main__":
    sys.exit(main())
