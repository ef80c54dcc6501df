"""Statistics of many stored scores: seconds and peak memory.

    python -m benchmarks.statistics_scale [--scores 1000000] [--quick]

A store is filled with scores of 10 criteria, 5 repeats and 3 systems on as many cases as it takes,
originals and one perturbed copy each; then one new process loads it into columns, computes every
statistic of `agenteval verify`, and prints what that took. Target: 1,000,000 scores within 60
seconds and 1 GB. Ends with 1 when it is missed.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from benchmarks.folders import module
from benchmarks.outcome import Row, finish

CRITERIA, REPEATS, SYSTEMS = 10, 5, 3
SECONDS, GIGABYTES = 60, 1.0
VARIANT = "drop_sentences:0.25:0"


def fill(path: Path, scores: int) -> None:
    """Write a store with about `scores` scores, through its own tables."""
    from agenteval.records import Criterion, Run, Source, View
    from agenteval.store import Store
    from agenteval.store.schema import calls, results

    rng = np.random.default_rng(0)
    runs = scores // (CRITERIA * REPEATS * 2)
    criteria = [
        Criterion(name=f"Quality {i}", accepted_values=("0", "1", "2", "3", "4"),
                  expect={"drop_sentences": "lower"})
        for i in range(CRITERIA)
    ]  # fmt: skip
    source = Source(evaluator="benchmark", version=1, model="none")
    items = []
    for i in range(runs):
        case = i // SYSTEMS
        good = bool(rng.integers(2))
        run = Run(id=f"run-{i}", task="t", system=f"s{i % SYSTEMS}", input=f"Problem {case}",
                  output=f"Solution {i}", success=good)  # fmt: skip
        view = View(run_id=run.id, problem=run.input, trajectory=run.output)
        items += [(run, view), (run, view.model_copy(
            update={"trajectory": "", "origin": view.sha256}))]  # fmt: skip
    with Store(path) as store:
        store.register(items, criteria, source)
        with store.engine.begin() as connection:
            for start in range(0, len(items), 2000):
                call_rows, result_rows = [], []
                for number, (run, view) in enumerate(items[start : start + 2000], start):
                    level = rng.integers(0, 4, CRITERIA) + bool(run.success)
                    level = np.maximum(level - (view.origin is not None), 0)
                    for repeat in range(REPEATS):
                        call_id = f"{number}-{repeat}"
                        key = {"item_key": view.sha256, "source_key": source.sha256,
                               "variant": VARIANT if view.origin else "original",
                               "repeat": repeat, "call_id": call_id}  # fmt: skip
                        call_rows.append({**key, "record": "{}", "requests": 1})
                        noise = np.clip(level + rng.integers(-1, 2, CRITERIA), 0, 4)
                        result_rows += [
                            {**key, "criterion_key": c.sha256, "status": "scored",
                             "label": str(n), "value": int(n) / 4, "detail": "{}",
                             "tries": 1, "attempt": 0}
                            for c, n in zip(criteria, noise, strict=True)
                        ]  # fmt: skip
                connection.execute(calls.insert(), call_rows)
                connection.execute(results.insert(), result_rows)


def compute(path: Path) -> dict[str, float]:
    """Load and verify; seconds of both, number of scores, peak memory in GB."""
    from agenteval.evaluators.utility.verify import verify
    from agenteval.store import Store
    from agenteval.trust.scores import scores_from_store

    start = time.perf_counter()
    with Store(path, create=False) as store:
        ((key, _),) = store.sources()
        criteria = store.criteria_of(key)
        originals = {k for k, run in store.runs().items() if run["origin"] is None}
        table = scores_from_store(store, key, criteria=set(criteria), runs=originals)
    loaded = time.perf_counter()
    verify(table, list(criteria.values()))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return {
        "scores": len(table),
        "load_s": round(loaded - start, 1),
        "verify_s": round(time.perf_counter() - loaded, 1),
        "peak_gb": round(peak / (2**30 if sys.platform == "darwin" else 2**20), 2),
    }


def main() -> int:
    """Fill, then compute in a process of its own; 1 when the target is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--scores", type=int, default=1_000_000)
    parser.add_argument("--quick", action="store_true", help="20,000 scores")
    parser.add_argument("--compute", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.compute:
        print(json.dumps(compute(options.compute)))
        return 0
    asked = 20_000 if options.quick else options.scores
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "store.db"
        start = time.perf_counter()
        fill(path, asked)
        print(f"store of {path.stat().st_size / 2**20:,.0f} MB filled in "
              f"{time.perf_counter() - start:.0f} s")  # fmt: skip
        command = module("statistics_scale", "--compute", str(path))
        done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found = json.loads(done.stdout)
    seconds = found["load_s"] + found["verify_s"]
    met = seconds <= SECONDS and found["peak_gb"] <= GIGABYTES
    print(f"{found['scores']:,} scores: {found['load_s']} s to load, {found['verify_s']} s to "
          f"verify, {found['peak_gb']} GB; target {SECONDS} s, {GIGABYTES:g} GB: "
          f"{'met' if met else 'MISSED'}")  # fmt: skip
    rows = [
        Row("scores loaded and verified", f"{found['scores']:,}", f"{asked:,}",
            found["scores"] == asked),
        Row(f"seconds for {found['scores']:,} scores",
            f"{seconds:.1f} s ({found['load_s']} to load, {found['verify_s']} to verify)",
            f"<= {SECONDS} s", seconds <= SECONDS),
        Row("peak memory", f"{found['peak_gb']} GB", f"<= {GIGABYTES:g} GB",
            found["peak_gb"] <= GIGABYTES),
    ]  # fmt: skip
    return finish("statistics_scale", rows, **found, met=met)


if __name__ == "__main__":
    sys.exit(main())
