"""Verdicts on simulated judges: python -m benchmarks.verdicts [--seeds 200] [--runs 20 40 60].

Each kind of judge (benchmarks/verdicts/kinds.py) states which verdicts are right before anything is
simulated. `--seeds` judges of every kind rate runs of two tasks, their copies and controls; the
table shows how often the verifier gives which verdict. Goals, at 60 runs and 2 repeats: the good
judge with noise of SD .10 is trusted in at least 90% of the simulations, a kind that must not be
trusted in at most 5% (upper 95% bound of Clopper and Pearson, one-sided, at every number of runs).
Ends with 1 when a goal is missed.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter
from itertools import product

from rich.console import Console
from rich.table import Table
from scipy.stats import beta

from benchmarks.outcome import Row, finish
from benchmarks.verdicts.kinds import EXCEPT, KINDS, LIMITED, TRUSTED, VERDICTS
from benchmarks.verdicts.simulate import simulate, truth
from benchmarks.verdicts.world import Design

TASKS = ("math", "household")
MOST_FALSE, LEAST_TRUE = 0.05, 0.90
ENOUGH = 60  # seeds from which 0 false verdicts have an upper bound below MOST_FALSE
GOOD = "good, SD .10"


def upper(count: int, n: int) -> float:
    """Upper end of a one-sided 95% interval of a share (Clopper and Pearson)."""
    return 1.0 if count == n else float(beta.ppf(0.95, count + 1, n - count))


def show(
    counts: dict[str, Counter[str]], task: str, design: Design, seeds: int, seconds: float
) -> None:
    """One table: kinds by verdicts, and the bound of what must not happen."""
    how = "shared cases" if design.shared else "a case each"
    table = Table(
        title=f"{task}: {design.runs} runs ({how}, {design.copied:.0%} copied) x {design.repeats} "
        f"repeats, {seeds} judges of each kind, {seconds:.0f} s"
    )
    for head in ("kind", "right verdicts", *VERDICTS, "right", "trusted at most"):
        table.add_column(head, justify="left" if head in ("kind", "right verdicts") else "right")
    for kind in (truth(k, task) for k in KINDS if k.name in counts):
        found = counts[kind.name]
        right = sum(found[v] for v in kind.allowed)
        wanted = "any" if len(kind.allowed) == len(VERDICTS) else " / ".join(kind.allowed)
        table.add_row(
            kind.name,
            wanted,
            *(f"{found[v]}" if found[v] else "·" for v in VERDICTS),
            f"{right / seeds:.1%}",
            f"{upper(_trusted(found), seeds):.1%}" if kind.must_not else "",
        )
    Console(width=180).print(table)


def _trusted(found: Counter[str]) -> int:
    """Judgements that a gate could have let pass: trust, whole or as one score."""
    return found[TRUSTED] + found[EXCEPT] + found[LIMITED]


def main() -> int:
    """Simulate and print; 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--runs", type=int, nargs="+", default=[20, 40, 60])
    parser.add_argument("--tasks", nargs="+", default=list(TASKS), choices=TASKS)
    parser.add_argument(
        "--kinds", nargs="+", default=[""], help="only kinds whose names contain one of these"
    )
    parser.add_argument("--copied", type=float, default=1.0, help="share of runs with copies")
    parser.add_argument("--shared", action="store_true", help="three systems on the same cases")
    parser.add_argument("--repeats", type=int, default=2)
    options = parser.parse_args()
    kinds = [k for k in KINDS if any(name in k.name for name in options.kinds)]
    start, rows, everything = time.perf_counter(), list[Row](), {}
    for task, runs in product(options.tasks, options.runs):
        where = f"{task}, {runs} runs"
        design = Design(runs, options.repeats, options.copied, options.shared)
        began = time.perf_counter()
        counts = dict[str, Counter[str]]()
        for kind in kinds:
            found = simulate(kind, task, design, range(options.seeds))
            counts[kind.name] = found
            line = ", ".join(f"{n} {v}" for v, n in found.most_common())
            print(f"{where}: {kind.name}: {line}", file=sys.stderr, flush=True)
            if kind.must_not:
                bound = upper(_trusted(found), options.seeds)
                measured, target, met = f"at most {bound:.1%}", "<= 5%", bound <= MOST_FALSE
            elif kind.name == GOOD and runs >= 60:
                share = found[TRUSTED] / options.seeds
                measured, target, met = f"{share:.1%}", ">= 90%", share >= LEAST_TRUE
            else:
                continue
            judged = options.seeds >= ENOUGH
            rows.append(
                Row(f"{kind.name}, trusted ({where})", measured, target, met if judged else None)
            )
        show(counts, task, design, options.seeds, time.perf_counter() - began)
        everything[where] = {name: dict(c) for name, c in counts.items()}
    return finish(
        "verdicts",
        rows,
        seeds=options.seeds,
        counts=everything,
        seconds=round(time.perf_counter() - start, 1),
    )


if __name__ == "__main__":
    sys.exit(main())
