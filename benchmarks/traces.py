"""Long traces: reading, condensing, detecting and locating at growing sizes.

    python -m benchmarks.traces [--tokens 500000 1500000 5000000] [--rounds 2] [--seed 1]

The generator (tests.support.long_trace) writes one trace of each size; four bytes are a token.
Each stage runs in a process of its own, whose peak memory is printed; what it needs from the stages
before is made there first and not timed. Seconds are CPU seconds, the best of some rounds. The
judge of the locator is scripted: it reads the prompts of an 8k window and reports the replies that
state another figure than the tool before, so what it finds can be counted against what was planted.
The growth exponent is the slope of log seconds over log bytes. Condensing is measured without a
budget, which is the most work; the ratio at the default budget stands beside it.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import re
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from agenteval.evaluators.traces.condense import LEGEND, Options, condense
from agenteval.evaluators.traces.detectors import detect
from agenteval.evaluators.traces.locator import Locator
from agenteval.evaluators.traces.locator_prompt import LocatorOptions
from agenteval.evaluators.traces.pieces import Condensed
from agenteval.evaluators.traces.taxonomy import built_in
from agenteval.models.client import Client
from agenteval.models.wire import Request
from agenteval.readers.traces import read_traces
from agenteval.records import Run
from agenteval.testing.scripted import ScriptedTransport
from benchmarks.folders import module
from benchmarks.outcome import Row, finish
from tests.support.long_trace import LongTrace, write

STAGES = ("read", "condense", "detect", "locate")
EXPONENT = 1.15
MEGABYTES = 1000.0
ALL = Options(budget=None)
_BLOCK = re.compile(r"<<BEGIN (S\d+) [^\n]*>>\n(.*?)\n<<END \1", re.DOTALL)
_SAID = re.compile(r"Entry \d+-(\d+) gives the year (\d+)\.")


def judge(request: Request) -> str:
    """The reply of a judge that finds every misquoted figure it is shown."""
    user = str(request.messages[-1]["content"])
    found = [
        {
            "span": index,
            "evidence": said[0],
            "description": f"the tool said {said[1]}",
            "category": "Tool Output Misinterpretation",
            "impact": "HIGH",
            "confidence": 1.0,
        }
        for index, text in _BLOCK.findall(user)
        for said in _SAID.finditer(text)
        if said[1] != said[2]
    ]
    return json.dumps({"findings": found, "summary": "read"})


def stage_read(path: Path) -> Callable[[], dict[str, Any]]:
    """Read the file."""
    return lambda: {"spans": len(read_traces(path).runs[0].spans)}


def stage_condense(path: Path) -> Callable[[], dict[str, Any]]:
    """Condense the trace without a budget."""
    run = one(path)

    def work() -> dict[str, Any]:
        condensed = condense(run, ALL)
        return {"pieces": len(condensed.pieces), "left": condensed.tokens}

    return work


def stage_detect(path: Path) -> Callable[[], dict[str, Any]]:
    """Run every rule."""
    run = one(path)
    return lambda: {"findings": len(detect(run, built_in()))}


def stage_locate(path: Path) -> Callable[[], dict[str, Any]]:
    """Ask the scripted judge about all of the condensed trace, 8k tokens at a time."""
    run = one(path)
    condensed = condense(run, ALL)
    client = Client(ScriptedTransport(judge))
    options = LocatorOptions(grades=False)
    locator = Locator(client, built_in(), options, legend=LEGEND)

    def work() -> dict[str, Any]:
        located = asyncio.run(locator.examine(run, condensed))
        spans = {finding.span for finding in located.findings.findings}
        return {"calls": located.calls, "failed": located.failed, "found": sorted(spans)}

    return work


def one(path: Path) -> Run:
    """The trace of a file."""
    return read_traces(path).runs[0]


def measure(stage: str, path: Path) -> None:
    """Print CPU seconds, peak memory and results of one stage, as JSON."""
    work = globals()[f"stage_{stage}"](path)
    start = time.process_time()
    result = work()
    seconds = time.process_time() - start
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"seconds": seconds, "peak_mb": round(peak, 1), **result}))


def child(stage: str, path: Path, rounds: int) -> dict[str, Any]:
    """The fastest of some runs of `measure` in new processes."""
    command = module("traces", "--measure", stage, str(path))
    found: list[dict[str, Any]] = []
    for _ in range(rounds):
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found.append(json.loads(done.stdout))
    return min(found, key=lambda row: float(row["seconds"]))


def size_up(tokens: int, seed: int, rounds: int) -> dict[str, Any]:
    """Everything about one size."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "trace.json"
        made = LongTrace(tokens, seed)
        with path.open("w", encoding="utf-8") as file:
            spans = write(made, file)
        row: dict[str, Any] = {"bytes": path.stat().st_size, "spans": spans}
        row |= {stage: child(stage, path, rounds) for stage in STAGES}
        run = one(path)
        default, full = condense(run), condense(run, ALL)
    row["file_tokens"] = row["bytes"] // 4
    row["ratio"], row["ratio_default"] = full.ratio, default.ratio
    row["source_tokens"], row["tokens_default"] = full.source_tokens, default.tokens
    row["facts"], row["facts_kept"] = len(made.facts), kept(made, default)
    wrong = {fact.reply_span for fact in made.facts if fact.contradicted}
    row["planted"], found = len(wrong), set(row["locate"].pop("found"))
    row["located"], row["not_planted"] = len(wrong & found), len(found - wrong)
    return row


def kept(made: LongTrace, condensed: Condensed) -> int:
    """Facts whose sentence of the tool and of the reply both survive in their spans."""
    texts = {piece.span: piece.text for piece in condensed.pieces}
    return sum(
        fact.output_text in texts[fact.output_span] and fact.reply_text in texts[fact.reply_span]
        for fact in made.facts
    )


def show(rows: list[dict[str, Any]], exponents: dict[str, float]) -> None:
    """Print the two tables."""
    console = Console(width=120)
    table = Table(title="CPU seconds and peak memory (MB) by size of the trace")
    for head in ("tokens", "MB", "spans", *STAGES):
        table.add_column(head, justify="right")
    for row in rows:
        cells = [f"{row[s]['seconds']:.2f} s {row[s]['peak_mb']:.0f}" for s in STAGES]
        size = [f"{row['file_tokens']:,}", f"{row['bytes'] / 1e6:.1f}", f"{row['spans']:,}"]
        table.add_row(*size, *cells)
    if exponents:
        table.add_row("growth", "", "", *(f"{exponents[s]:.2f}" for s in STAGES))
    console.print(table)
    table = Table(title="condensed and located")
    heads = ("tokens", "of the run", "ratio", "at default", "facts kept", "calls", "planted found")
    for head in heads:
        table.add_column(head, justify="right")
    for row in rows:
        table.add_row(
            f"{row['file_tokens']:,}", f"{row['source_tokens']:,}", f"{row['ratio']:.3f}",
            f"{row['ratio_default']:.3f}", f"{row['facts_kept']} of {row['facts']}",
            f"{row['locate']['calls']:,}",
            f"{row['located']} of {row['planted']}, {row['not_planted']} others",
        )  # fmt: skip
    console.print(table)


def wrong_with(rows: list[dict[str, Any]], exponents: dict[str, float]) -> list[str]:
    """What misses its target."""
    found = [f"{s} grows as size^{e:.2f}" for s, e in exponents.items() if e >= EXPONENT]
    for row in rows:
        size = f"at {row['file_tokens']:,} tokens"
        found += [
            f"{stage} takes {row[stage]['peak_mb']} MB {size}"
            for stage in STAGES
            if row[stage]["peak_mb"] >= MEGABYTES
        ]
        if row["located"] < row["planted"] or row["not_planted"] or row["locate"]["failed"]:
            found.append(f"located {row['located']} of {row['planted']} {size}")
        if row["facts_kept"] < row["facts"]:
            found.append(f"{row['facts'] - row['facts_kept']} facts are cut away {size}")
    return found


def main() -> int:
    """Measure and print; 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--tokens", type=int, nargs="+", default=[500_000, 1_500_000, 5_000_000])
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--measure", nargs=2, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.measure:
        measure(options.measure[0], Path(options.measure[1]))
        return 0
    rows = [size_up(tokens, options.seed, options.rounds) for tokens in sorted(options.tokens)]
    exponents: dict[str, float] = {}
    if len(rows) > 1:
        x = np.log([row["bytes"] for row in rows])
        for stage in STAGES:
            y = np.log([row[stage]["seconds"] for row in rows])
            exponents[stage] = round(float(np.polyfit(x, y, 1)[0]), 3)
    show(rows, exponents)
    wrong = wrong_with(rows, exponents)
    print("targets: " + ("missed: " + "; ".join(wrong) if wrong else "met"))
    table = figures(rows, exponents)
    return finish("traces", table, sizes=rows, growth=exponents, wrong=wrong)


def figures(rows: list[dict[str, Any]], exponents: dict[str, float]) -> list[Row]:
    """The targets over all sizes and stages."""
    peak = max(row[stage]["peak_mb"] for row in rows for stage in STAGES)
    kept_, facts, located, planted, others, failed = (
        sum(values) for values in zip(*(
            (row["facts_kept"], row["facts"], row["located"], row["planted"], row["not_planted"],
             row["locate"]["failed"]) for row in rows
        ), strict=True)
    )  # fmt: skip
    found = [
        Row("most memory of a stage", f"{peak:,.0f} MB", f"< {MEGABYTES:,} MB", peak < MEGABYTES),
        Row("planted sentences that survive condensing", f"{kept_}", f"{facts}", kept_ >= facts),
        Row("misquoted figures located, and others", f"{located}, {others} others, {failed} failed",
            f"{planted}, 0, 0", located >= planted and not others and not failed),
    ]  # fmt: skip
    if exponents:
        most = max(exponents.values())
        found.append(Row("CPU grows as size to the power", f"{most:.2f}", f"< {EXPONENT:g}",
                         most < EXPONENT))  # fmt: skip
    return found


if __name__ == "__main__":
    sys.exit(main())
