"""A long run against a faulty endpoint: nothing lost, nothing paid twice, nothing unbounded.

    python -m benchmarks.soak [--quick]

100,000 cells (5,000 runs × 10 repeats × 2 criteria = 50,000 calls; `--quick` 2,000
cells in 500 calls) go through the judge of `agenteval quantify` and a store on disk. The
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
import threading
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agenteval.models.client import RetryPolicy
from agenteval.testing import HEALING, ServerProcess, spawn
from benchmarks.folders import OUT, ROOT
from benchmarks.outcome import Row, finish
from benchmarks.sides import Job, criteria, items, openai_choice

if TYPE_CHECKING:
    from agenteval.engine import ExperimentResult, Pending
    from agenteval.engine.judging import RunJudge
    from agenteval.store import Store
    from agenteval.utility.evaluator import Item

WARM = 10.0  # seconds in which the ceiling may be searched for
NEVER = "error:infrastructure", "error:timeout"  # what a resume asks again


@dataclass(frozen=True)
class Size:
    """How much is run. Repeats give calls without more runs in memory."""

    runs: int
    repeats: int
    criteria: int
    concurrency: int
    ceiling: int
    latency: str
    timeout: float
    drips: bool
    again: int  # runs of the second run, on a store of its own: the last so many

    @property
    def calls(self) -> int:
        """Requests if none had to be repeated."""
        return self.runs * self.repeats

    @property
    def cells(self) -> int:
        """Results."""
        return self.calls * self.criteria


def script(size: Size) -> dict[str, Any]:
    """About 10 % faults, drawn by request and attempt; some runs fail for ever, by their number.

    A run ending in 13 is refused, in 29 answered with prose, in 41 filtered; 7 (and 777, 1777 …)
    meets status 500 each time; where there is time for it, the first attempt at 3 meets a reply
    that takes longer than the timeout.
    """
    plain: dict[str, Any] = {
        "status": 500,
        "body": None,
        "headers": {},
        "code": None,
        "seconds": 1.0,
        "usage": None,
    }
    healing = [{k: v for k, v in asdict(f).items() if v != plain.get(k)} for f in HEALING]
    drip: dict[str, Any] = {"kind": "slow_drip", "seconds": 2 * size.timeout}
    for_ever: list[dict[str, Any]] = [
        {"fault": {"kind": "refusal"}, "match": r"Copy \d*13\."},
        {"fault": {"kind": "content", "body": "It is hard to say."}, "match": r"Copy \d*29\."},
        {"fault": {"kind": "content_filter"}, "match": r"Copy \d*41\."},
        {"fault": {"kind": "status", "status": 500}, "match": r"Copy (7|\d*777)\."},
    ]
    if size.drips:
        for_ever.append({"fault": drip, "match": r"Copy 3\.", "first": 1})
    by_chance = [
        (healing, 0.045),
        ({"kind": "slow_drip", "seconds": 0.5}, 0.01),
        ({"kind": "length"}, 0.01),
        ({"kind": "content", "body": "```json\n{'label': "}, 0.005),
        ({"kind": "usage"}, 0.005),
        ({"kind": "content_type"}, 0.005),
        ({"kind": "refusal"}, 0.002),
    ]
    drawn = [{"fault": fault, "probability": p} for fault, p in by_chance]
    settings = {"latency": size.latency, "ceiling": size.ceiling, "seed": 8}
    return {"rules": for_ever + drawn, **settings}


@dataclass
class Watch:
    """Looks at the server twice a second, and at the memory of this process as work is done."""

    server: ServerProcess
    total: int
    done: int = 0
    memory: dict[str, float] = field(default_factory=dict)
    samples: list[tuple[float, int, dict[str, Any]]] = field(default_factory=list)
    _over: threading.Event = field(default_factory=threading.Event)

    def __enter__(self) -> Watch:
        self._began = time.monotonic()
        self._cpu = time.process_time()
        self._thread = threading.Thread(target=self._look)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self.seconds = time.monotonic() - self._began
        self.cpu = time.process_time() - self._cpu
        self.memory["end"] = resident_mb()

    def _look(self) -> None:
        while not self._over.wait(0.5):
            self.samples.append(
                (time.monotonic() - self._began, self.done, self.server.stats(keys=False))
            )

    def progress(self, done: int) -> None:
        """So many calls are done."""
        self.done = done
        for name, share in (("tenth", 0.1), ("half", 0.5)):
            if name not in self.memory and done >= share * self.total:
                self.memory[name] = resident_mb()

    def loaded(self, workers: int) -> tuple[dict[str, Any], dict[str, Any]] | None:
        """Two samples: after WARM, and the last with work for all workers left."""
        busy = [s for t, done, s in self.samples if t >= WARM and done <= self.total - workers]
        return (busy[0], busy[-1]) if len(busy) >= 10 else None


def resident_mb() -> float:
    """Memory of this process that is in RAM now, in MB."""
    pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


@dataclass(frozen=True)
class Judged:
    """One run over one store."""

    planned: int
    ended: ExperimentResult
    statuses: dict[str, int]
    open_again: int  # units that a resume would ask
    broken_units: int  # units with a cell that failed for the infrastructure
    wrong_attempts: int  # calls that took more attempts than the policy allows


async def judge_all(
    job: Job, size: Size, some: Sequence[Item], path: Path, watch: Watch | None = None
) -> Judged:
    """What `agenteval quantify` does, over the store at `path`."""
    from agenteval.engine import Experiment, pending
    from agenteval.models.factory import make_client
    from agenteval.models.limits import Limits
    from agenteval.readers.tasks import find_task
    from agenteval.store import Store
    from agenteval.utility.evaluator import JudgeEvaluator
    from agenteval.utility.quantifier import QuantifierOptions, chat_judge

    task, asked = find_task(str(ROOT / "tasks" / "math")).task, criteria()[: size.criteria]
    with Store(path) as store:
        limits = Limits(concurrency=job.concurrency, timeout=size.timeout)
        client = make_client(openai_choice(job), limits, store)
        evaluator = chat_judge(client, task, QuantifierOptions())
        rated = JudgeEvaluator.of(evaluator, some, asked, size.repeats)
        plan = pending(rated, store)
        ended = await Experiment(rated, store, concurrency=2 * job.concurrency).run(
            lambda progress: watch.progress(progress.done) if watch else None
        )
        await client.close()
        again = pending(rated, store)
        return _judged(plan, ended, again, store, evaluator, client.retry.attempts)


def _judged(
    plan: Pending[Item],
    ended: ExperimentResult,
    again: Pending[Item],
    store: Store,
    evaluator: RunJudge,
    attempts: int,
) -> Judged:
    from sqlalchemy import text

    statuses: dict[str, int] = {}
    broken = set()
    for (run, variant, _, repeat), state in store.states(evaluator.source.sha256):
        name = state.status if state.failed else "scored"
        statuses[name] = statuses.get(name, 0) + 1
        if state.status in NEVER:
            broken.add((run, variant, repeat))
    query = (
        "SELECT count(*) FROM calls WHERE json_extract(record, '$.attempts') > "
        ":most * (1 + coalesce(json_extract(record, '$.repaired'), 0))"
    )
    with store.engine.connect() as connection:
        over = int(connection.execute(text(query), {"most": attempts}).scalar_one())
    return Judged(plan.open, ended, statuses, len(again.units), len(broken), over)


def export(path: Path, runs: Sequence[Item]) -> str:
    """The exported table of a store, lines of other runs left out.

    So is what the last of all failed attempts at an unreachable cell met: whether that was the
    ceiling depends on who else was in flight.
    """
    from agenteval.store import Store
    from agenteval.store.export import export_cells

    wanted = {run.id for run, _ in runs}
    table = path.with_suffix(".jsonl")
    with Store(path, create=False) as store:
        export_cells(store, table)
    kept = []
    with table.open(encoding="utf-8", newline="") as lines:
        for line in lines:
            row = json.loads(line)
            if row["run_id"] in wanted:
                left_out = row["message"] if row["status"] in NEVER else ""
                kept.append(line.replace(json.dumps(left_out, ensure_ascii=False), '""'))
    return "".join(kept)


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


def main() -> int:
    """Run it; the exit code is 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="a fiftieth of the cells")
    size = QUICK if parser.parse_args().quick else FULL
    OUT.mkdir(exist_ok=True)
    with tempfile.TemporaryDirectory(dir=OUT) as folder:
        rows, about = run(size, Path(folder))
    for row in rows:
        target = f" (target {row.target})" if row.target else ""
        print(f"{row.what}: {row.measured}{target}")
    return finish("soak", rows, **about)


if __name__ == "__main__":
    sys.exit(main())
