"""Are judges that are called trustworthy good? python -m benchmarks.verifier [--seeds 3].

69 simulated judges (benchmarks/verifier/judges.py, on a grid fixed before any verdict was looked
at) rate runs of two tasks, their damaged copies and controls, twice. The truth of a judge is the
balanced accuracy of its mean score against success on 4,000 other runs, with the threshold that is
best on 4,000 more; it is good from 0.8 on. Counted by number of runs: the share of good judges
among those that `verify` calls trustworthy (*target*: 0.95), and the share called trustworthy among
good ones; the same for naive rules on the same ratings. "Trustworthy except" and "as one score" do
not count as trustworthy. Intervals are Clopper and
Pearson's with the effective number of independent verdicts, judges as clusters (Korn & Graubard,
Survey Methodology 24, 1998).
"""

from __future__ import annotations

import argparse
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Sequence
from itertools import product

import numpy as np
from rich.console import Console
from rich.table import Table
from scipy.stats import beta

from benchmarks.outcome import Row, finish
from benchmarks.verdicts.kinds import VERDICTS
from benchmarks.verifier.judges import judges
from benchmarks.verifier.rules import Judged, judge_once

TASKS = ("math", "household")
GOOD, LEAST = 0.8, 0.95
Pick = Callable[[Judged], bool]


def share(judged: Iterable[Judged], hit: Pick) -> str:
    """Return a share with its 95% interval over judges, and the numbers of verdicts and judges."""
    clusters = defaultdict[str, list[bool]](list)
    for one in judged:
        clusters[one.judge].append(hit(one))
    hits, sizes = (np.array([f(c) for c in clusters.values()], dtype=float) for f in (sum, len))
    n = int(sizes.sum())
    if not n:
        return "none"
    p, count = float(hits.sum() / n), len(sizes)
    independent: float = min(n, count)
    if 0 < p < 1 and count > 1:
        variance = float(((hits - p * sizes) ** 2).sum()) / n**2
        independent = min(n, p * (1 - p) / variance) if variance else n
    interval = clopper_pearson(p * independent, independent)
    return f"{p:.3f} [{interval[0]:.2f}, {interval[1]:.2f}] ({n} on {count})"


def clopper_pearson(hits: float, n: float) -> tuple[float, float]:
    """Return the 95% interval of a share, for numbers that need not be whole."""
    low = float(beta.ppf(0.025, hits, n - hits + 1)) if hits > 0 else 0.0
    return low, float(beta.ppf(0.975, hits + 1, n - hits)) if hits < n else 1.0


def figures(judged: Sequence[Judged], rule: str) -> dict[str, str]:
    """Return the shares of one rule, by what they are shares of."""
    trusted = [j for j in judged if j.trusted.get(rule)]
    good = [j for j in judged if j.truth >= GOOD and rule in j.trusted]
    return {
        "good, of the trusted": share(trusted, lambda j: j.truth >= GOOD),
        "0.7 or more, of the trusted": share(trusted, lambda j: j.truth >= 0.7),
        "trusted, of the good": share(good, lambda j: j.trusted[rule]),
        "trusted, of the good and faultless": share(
            (j for j in good if j.faultless), lambda j: j.trusted[rule]
        ),
    }


def precision(judged: Sequence[Judged], rule: str) -> float | None:
    """Return the share of good judges among the trusted; None where none is trusted."""
    good = [j.truth >= GOOD for j in judged if j.trusted.get(rule)]
    return sum(good) / len(good) if good else None


def show(judged: Sequence[Judged], rules: Sequence[str], runs: int) -> None:
    """Print the figures of all rules for one number of runs."""
    table = Table(title=f"{runs} runs: share [95%] (verdicts on judges)")
    shares = {rule: figures(judged, rule) for rule in rules}
    for head in ("rule", *shares["verify"]):
        table.add_column(head)
    for rule, by_head in shares.items():
        table.add_row(rule, *by_head.values())
    Console(width=180).print(table)


def show_families(judged: Sequence[Judged]) -> None:
    """Print the verdicts by family and truth."""
    table = Table(title="verdicts of verify by family, all numbers of runs")
    table.add_column("family")
    for head in ("truth", *VERDICTS):
        table.add_column(head, justify="right")
    groups = defaultdict[tuple[str, bool], Counter[str]](Counter)
    for one in judged:
        groups[one.family, one.truth >= GOOD][one.verdict] += 1
    for (family, good), counts in groups.items():
        numbers = (f"{counts[v]}" if counts[v] else "·" for v in VERDICTS)
        table.add_row(family, f">= {GOOD}" if good else f"< {GOOD}", *numbers)
    Console(width=120).print(table)


def main() -> int:
    """Simulate and print; 1 when the target is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--runs", type=int, nargs="+", default=[20, 40, 60, 120])
    parser.add_argument("--judges", nargs="+", help="only judges whose names contain one of these")
    parser.add_argument("--quick", action="store_true", help="one seed, 60 runs")
    options = parser.parse_args()
    seeds, sizes = (1, [60]) if options.quick else (options.seeds, options.runs)
    began, judged = time.perf_counter(), list[Judged]()
    for judge in judges():
        if options.judges and not any(part in judge.name for part in options.judges):
            continue
        judged += [
            judge_once(judge, task, runs, seed)
            for task, runs, seed in product(TASKS, sizes, range(seeds))
        ]
        print(f"{judge.name}: {time.perf_counter() - began:.0f} s", file=sys.stderr, flush=True)
    rows, rules = list[Row](), list({rule: None for j in judged for rule in j.trusted})
    for runs in sizes:
        part = [j for j in judged if j.runs == runs]
        show(part, rules, runs)
        for rule in rules:
            least = precision(part, rule)
            judged_here = rule == "verify" and not options.quick
            for what, measured in figures(part, rule).items():
                goal = f">= {LEAST}" if rule == "verify" and what.startswith("good") else None
                met = least is not None and least >= LEAST if goal and judged_here else None
                rows.append(Row(f"{runs} runs, {rule}: {what}", measured, goal, met))
    show_families(judged)
    return finish("verifier", rows, judges=len(judges()), seeds=seeds)


if __name__ == "__main__":
    sys.exit(main())
