"""The viewer on a store of 1,000,000 cells: seconds of every page, and memory of the server.

20,000 runs of two systems, ten criteria, three repeats, and two perturbed copies of every run are
written in bulk, with a queue of 30 runs that one rater has labelled; then `agenteval view --label`
is started as a process of its own and every page is asked for three times, of which the slowest
counts. How long the server reads before it can sort is reported; meanwhile a page says so. Targets:
1 s for a page, 200 MB for the server.

    python -m benchmarks.view [--quick] [--store FILE]
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from http.cookiejar import CookieJar
from pathlib import Path
from typing import Any

from sqlalchemy import insert

from agenteval.records import Criterion, Source
from agenteval.records.verification import Effect, JudgeVerdict, Verification, VerifiedSet
from agenteval.store import Store, rows, schema
from agenteval.store.browse import original_runs
from agenteval.store.connect import writing
from agenteval.store.experiments import Grid, StoredExperiment, begin, short
from agenteval.store.experiments import finish as finish_experiments
from agenteval.store.labels import HumanLabel, LabelQueue, Labels
from benchmarks.outcome import Row, finish

LEVELS = ("poor", "fair", "good")
CRITERIA = 10
REPEATS = 3
QUEUE = "bench"
VARIANTS = ("drop:0.5:s0", "whitespace:-:s0")
SECONDS, MEGABYTES = 1.0, 200.0
_TEXT = "The agent read the question, computed an intermediate result and checked it. " * 12


def criteria() -> list[Criterion]:
    """Return the criteria, three levels each."""
    return [
        Criterion(
            id=f"criterion_{i}",
            name=f"Criterion {i}",
            description="How good.",
            accepted_values=LEVELS,
        )
        for i in range(CRITERIA)
    ]


def _hash(*parts: object) -> str:
    return hashlib.sha256(repr(parts).encode()).hexdigest()


def _items(run: int) -> Iterator[dict[str, Any]]:
    case, system = divmod(run, 2)
    for variant in ("original", *VARIANTS):
        body = {"problem": f"Question {case}", "trajectory": f"{case} {system} {variant} {_TEXT}"}
        yield {
            "item_key": _hash("item", run, variant),
            "kind": "run",
            "id": f"case-{case:05}",
            "task": "bulk",
            "system": f"system {system}",
            "case_key": _hash("case", case),
            "success": (case + system) % 3 != 0,
            "origin": None if variant == "original" else _hash("item", run, "original"),
            "used": 1e9 + run,
            "body": rows.encode({**body, "reference_shown": False}),
        }


def _results(run: int, source: str, keys: list[str]) -> Iterator[tuple[dict[str, Any], list[Any]]]:
    """Yield every call on a run and its copies with its results; 1 in 50 results is a failure."""
    for variant in ("original", *VARIANTS):
        item = _hash("item", run, variant)
        for repeat in range(REPEATS if variant == "original" else 1):
            place = {"source_key": source, "item_key": item, "variant": variant, "repeat": repeat}
            call = {"call_id": _hash("call", item, repeat), **place, "requests": 1}
            call |= {"prompt_tokens": 900, "completion_tokens": 120, "cost": 0.001}
            results = []
            for i, key in enumerate(keys):
                chance = int(_hash(run // 2, variant, i, repeat)[:8], 16)
                level = (chance + run % 2) % len(LEVELS)
                failed = chance % 50 == 0
                result = {
                    **place,
                    "criterion_key": key,
                    "status": "unscored:parse" if failed else "scored",
                    "label": None if failed else LEVELS[level],
                    "value": None if failed else level / (len(LEVELS) - 1),
                    "tries": 1,
                    "attempt": 0,
                    "call_id": call["call_id"],
                    "detail": "{}" if failed else '{"explanation":"Because of the second step."}',
                }
                results.append(result)
            yield {**call, "record": '{"raw":"{}","attempts":1}'}, results


def write_store(path: Path, runs: int) -> int:
    """Write a store of this many runs; return the number of its cells."""
    cells = 0
    source = Source(evaluator="quantifier", version=1, model="bulk")
    measured = criteria()
    keys = [c.sha256 for c in measured]
    with Store(path) as store:
        store.register([], measured, source)
        for start in range(0, runs, 500):
            some = range(start, min(start + 500, runs))
            calls = [pair for run in some for pair in _results(run, source.sha256, keys)]
            results = [row for _, part in calls for row in part]
            with writing(store.engine) as connection:
                items = [item for run in some for item in _items(run)]
                connection.execute(insert(schema.items), items)
                connection.execute(insert(schema.calls), [call for call, _ in calls])
                connection.execute(insert(schema.results), results)
            cells += len(results)
        add_experiment(store, source, measured, runs)
    return cells


def add_experiment(store: Store, source: Source, measured: Sequence[Criterion], runs: int) -> None:
    """Store the experiment that the cells are of, and a verdict with an effect by criterion."""
    grids = tuple(
        Grid(
            short(_hash("item", run, variant) for run in range(runs)),
            REPEATS if variant == "original" else 1,
            variant,
            tuple(c.sha256 for c in measured),
        )
        for variant in ("original", *VARIANTS)
    )
    experiment = StoredExperiment(source.sha256, source.evaluator, source.model, "bulk", grids)
    begin(store, experiment)
    finish_experiments(store, source.sha256)
    effect = Effect(
        variant=VARIANTS[0],
        operator="drop",
        expected="lower",
        outcome="pass",
        reason="made up",
        estimate=0.2,
        low=0.1,
        high=0.3,
        n=runs,
    )
    verified = tuple(
        Verification(
            criterion_id=c.id,
            verdict="keep",
            reasons=("made up",),
            runs=runs,
            cases=runs // 2,
            repeats=REPEATS,
            effects=(effect,),
        )
        for c in measured
    )
    judge = JudgeVerdict(verdict="trustworthy", reasons=("made up for this benchmark",))
    store.save_verdict(source.sha256, "bulk", VerifiedSet(judge=judge, criteria=verified))


def add_queue(store: Store, source: Source) -> None:
    """Store a queue of 30 runs, labelled by one rater."""
    if QUEUE in Labels(store).queues():
        return
    originals = [run.key for run in original_runs(store)]
    items = tuple(originals[:: len(originals) // 30][:30])
    keys = tuple(criterion.sha256 for criterion in criteria())
    queue = LabelQueue(
        name=QUEUE,
        task="bulk",
        source_key=source.sha256,
        items=items,
        criteria=keys,
        weights=(len(originals) / len(items),) * len(items),
        sample=f"random {len(items)} of {len(originals)}, seed 0, 00000000",
    )
    Labels(store).add_queue(queue)
    label = HumanLabel(rater="ann", item_key="", label=LEVELS[1], value=0.5)
    places = [{"item_key": item, "criterion_key": key} for item in items for key in keys]
    Labels(store).add([label.model_copy(update=place) for place in places])


def _seconds_of_draw(opener: Any, base: str) -> float:
    """Return the seconds that a form for a new queue takes."""
    page = opener.open(f"{base}/label").read().decode()
    token = re.findall(r'name="form_token" value="(\w+)"', page)[-1]
    fields = {"form_token": token, "name": f"{time.time()}", "n": "30", "by": "value", "seed": "0"}
    data = urllib.parse.urlencode(fields).encode()
    start = time.perf_counter()
    opener.open(urllib.request.Request(f"{base}/label/queue", data, {"Origin": base})).read()
    return time.perf_counter() - start


def _opener(url: str) -> Any:
    opener = urllib.request.build_opener(urllib.request.HTTPCookieProcessor(CookieJar()))
    opener.open(url).read()
    return opener


def _memory(pid: int) -> float:
    """Return the largest resident memory of a process so far, in megabytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    (peak,) = re.findall(r"VmHWM:\s+(\d+) kB", status)
    return int(peak) / 1024


def pages(source: str) -> dict[str, str]:
    """Return the pages that are asked for, by name."""
    run, judge = _hash("item", 4, "original"), source[:12]
    return {
        "experiments": "/",
        "grid": f"/grid?judge={judge}",
        "grid, last page": f"/grid?judge={judge}&page=400",
        "grid, by a criterion": f"/grid?judge={judge}&sort=criterion_3",
        "grid, by disagreement": f"/grid?judge={judge}&sort=spread",
        "grid, by length": f"/grid?judge={judge}&sort=length",
        "grid, filtered": f"/grid?judge={judge}&system=system+1&success=no&status=failure",
        "grid, text": f"/grid?judge={judge}&text=case-00123",
        "run": f"/run?item={run}",
        "compare": f"/compare?judge={judge}&a=system+0&b=system+1&criterion=criterion_3",
        "trust": f"/trust?judge={judge}",
        "trials": "/trials",
        "label": "/label",
        "label, a run": f"/label/item?queue={QUEUE}&rater=bob",
        "label, results": f"/label/results?queue={QUEUE}",
        "criteria": "/criteria",
    }


def measure(path: Path, cells: int) -> list[Row]:
    """Start the viewer on a store and return a row for each page, and one for its memory."""
    command = [sys.executable, "-m", "agenteval", "view", str(path), "--no-open", "--label"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True)
    judged = cells >= 1_000_000
    found = []
    try:
        assert server.stdout is not None
        line = next(line for line in server.stdout if "http://" in line)
        (url,) = re.findall(r"http://\S+", line)
        time.sleep(1)
        opener, base = _opener(url), url.partition("/label?")[0]
        with Store(path, create=False) as store:
            ((source, record),) = store.sources()
            add_queue(store, record)
        start = time.perf_counter()
        while opener.open(f"{base}/grid").headers.get("refresh"):
            time.sleep(0.2)
        found.append(Row("results read for sorting", f"{time.perf_counter() - start:.1f} s"))
        for name, address in pages(source).items():
            seconds = []
            for _ in range(3):
                start = time.perf_counter()
                opener.open(base + address).read()
                seconds.append(time.perf_counter() - start)
            met = max(seconds) < SECONDS if judged else None
            found.append(Row(f"page {name}", f"{max(seconds):.2f} s", f"below {SECONDS:g} s", met))
        found.append(Row("a new queue, drawn by value", f"{_seconds_of_draw(opener, base):.2f} s"))
        for figure in ("effects", "points", "reliability"):
            start = time.perf_counter()
            opener.open(f"{base}/trust/figure?judge={source[:12]}&name={figure}").read()
            took = f"{time.perf_counter() - start:.2f} s"
            found.append(Row(f"figure {figure}, drawn for the first time", took))
        memory = _memory(server.pid)
        met = memory < MEGABYTES if judged else None
        found.append(Row("memory", f"{memory:.0f} MB", f"below {MEGABYTES:g} MB", met))
    finally:
        server.terminate()
        server.wait()
    return found


def main() -> int:
    """Run the benchmark; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="2,000 cells instead of 1,000,000")
    parser.add_argument("--store", type=Path, help="keep the store here, or use the one there")
    arguments = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        path = arguments.store or Path(folder) / "bulk.db"
        if path.exists():
            with Store(path, create=False) as store:
                cells = sum(1 for (source, _) in store.sources() for _ in store.cells(source))
        else:
            cells = write_store(path, 40 if arguments.quick else 20_000)
        print(json.dumps({"cells": cells, "megabytes": path.stat().st_size // 1_000_000}))
        return finish("view", measure(path, cells), cells=cells)


if __name__ == "__main__":
    raise SystemExit(main())
