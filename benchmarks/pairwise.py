"""Pairwise judging: coverage of its intervals, and verdicts on judges with known faults.

    python -m benchmarks.pairwise [--experiments 2000] [--seeds 50] [--cases 60] [--seed 1]

Coverage (nominal .95): win rates and position bias of 5 to 50 cases, over chances of wins, losses,
ties and flips from one-sided to even; Bradley-Terry strengths of three systems on 6 to 50 cases,
whose wins depend on the case, where an interval is given. Each line is the lowest of its grid.
Verdicts: the judges of `tests/support/pair_judges.py` on `--cases` cases of two systems.

Targets: coverage .94; a good judge trusted, each other judge not trustworthy, in .95 of the seeds.
The exit code is 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import sys
from collections import Counter
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

import agenteval
from agenteval.stats.bradley_terry import bradley_terry, strength_intervals
from agenteval.stats.interval import Interval
from agenteval.stats.vectors import Floats
from agenteval.utility.pairwise.pairs import PairOutcome, position_bias, win_rate
from benchmarks.outcome import Row, finish
from tests.support.pair_judges import pair_judges
from tests.support.world import WorldOptions, make_runs

TARGET, VERDICTS = 0.94, 0.95
# chances of a win, a loss, a tie, and a flip to the first or to the second position
CHANCES = [
    (0.95, 0.05, 0, 0, 0),
    (0.9, 0.05, 0.05, 0, 0),
    (0.7, 0.2, 0.05, 0.05, 0),
    (0.7, 0, 0.3, 0, 0),
    (0.3, 0.3, 0.2, 0.1, 0.1),
    (0.05, 0.05, 0.8, 0.1, 0),
    (0.2, 0.1, 0.1, 0.6, 0),
    (0.02, 0.02, 0.06, 0.9, 0),
]
ANSWERS = [(1.0, 1.0), (0.0, 0.0), (0.5, 0.5), (1.0, 0.0), (0.0, 1.0)]  # A first, A second
STRENGTHS = [(0.0, 0.0, 0.0), (1.0, 0.0, -1.0), (2.0, 0.0, -2.0)]


@cache
def _figures(counts: tuple[int, ...]) -> tuple[Interval, Interval]:
    outcomes = [
        PairOutcome(f"{kind}-{i}", "r", "a", "b", "c", *ANSWERS[kind])
        for kind, n in enumerate(counts)
        for i in range(n)
    ]
    return win_rate(outcomes), position_bias(outcomes)


def _covers(interval: Interval, truth: float) -> bool:
    assert interval.low is not None
    assert interval.high is not None
    return interval.low - 1e-12 <= truth <= interval.high + 1e-12


def rates(experiments: int, rng: np.random.Generator) -> list[Row]:
    """Return the lowest coverage of win rates and of position bias."""
    covered: dict[str, list[float]] = {"win rate": [], "position bias": []}
    for chances in CHANCES:
        scores = [0.5 if a != b else a for a, b in ANSWERS]
        biases = [(a - b) / 2 for a, b in ANSWERS]
        truths = [float(np.dot(chances, values)) for values in (scores, biases)]
        for n in (5, 6, 8, 10, 15, 20, 50):
            drawn = [tuple(x) for x in rng.multinomial(n, chances, size=experiments).tolist()]
            for i, name in enumerate(covered):
                hits = [_covers(_figures(counts)[i], truths[i]) for counts in drawn]
                covered[name].append(float(np.mean(hits)))
    return [_coverage(name, min(values)) for name, values in covered.items()]


def _coverage(name: str, value: float) -> Row:
    return Row(f"lowest coverage, {name}", f"{value:.3f}", f"≥ {TARGET}", value >= TARGET)


def _wins(n: int, strengths: Floats, rng: np.random.Generator) -> Floats:
    """Wins (n, k, k) of cases on which the systems are better or worse than usual."""
    k = len(strengths)
    usual = strengths + rng.normal(0, 1, (n, k))
    wins = np.zeros((n, k, k))
    for i in range(k):
        for j in range(i + 1, k):
            chance = 1 / (1 + np.exp(usual[:, j] - usual[:, i]))
            wins[:, i, j] = np.where(rng.random(n) < 0.2, 0.5, rng.random(n) < chance)
            wins[:, j, i] = 1 - wins[:, i, j]
    return wins


def strengths(experiments: int, rng: np.random.Generator) -> list[Row]:
    """Return the lowest coverage of the strengths where they have an interval."""
    lowest = 1.0
    for given in STRENGTHS:
        truth = bradley_terry(_wins(200_000, np.array(given), rng).sum(axis=0))
        for n in (6, 10, 20, 50):
            hits = []
            for _ in range(experiments):
                intervals = strength_intervals(_wins(n, np.array(given), rng))
                if intervals[0].low is not None:
                    hits.append([_covers(i, t) for i, t in zip(intervals, truth, strict=True)])
            lowest = min(lowest, *np.mean(hits, axis=0).tolist())
    return [_coverage("strengths, where they have an interval", lowest)]


def verdicts(seeds: int, cases: int) -> list[Row]:
    """Return how often each judge gets its verdict."""
    counts: dict[str, Counter[str]] = {}
    options = WorldOptions(skills={"old": 0.0, "new": 0.8})
    for seed in range(seeds):
        runs = make_runs(cases, np.random.default_rng(seed), options)
        for name, judge in pair_judges(seed).items():
            with TemporaryDirectory() as folder:
                report = agenteval.prefer(
                    runs=runs, judge=judge, version=name, store=Path(folder) / "s.db", verify=True
                )
            assert report.judge is not None
            counts.setdefault(name, Counter())[report.judge.verdict] += 1
    rows = []
    for name, found in counts.items():
        expected = "trustworthy" if name == "good" else "not trustworthy"
        share = found[expected] / seeds
        others = ", ".join(f"{n} {verdict}" for verdict, n in found.items() if verdict != expected)
        measured = f"{found[expected]} of {seeds}" + (f" ({others})" if others else "")
        rows.append(Row(f"{name} judge: {expected}", measured, f"≥ {VERDICTS}", share >= VERDICTS))
    return rows


def main() -> int:
    """Run all parts; returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--experiments", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=50)
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    rng = np.random.default_rng(given.seed)
    rows = rates(given.experiments, rng)
    rows += strengths(given.experiments, rng)
    rows += verdicts(given.seeds, given.cases)
    for row in rows:
        print(f"{row.what}: {row.measured}" + (f" (target {row.target})" if row.target else ""))
    return finish("pairwise", rows)


if __name__ == "__main__":
    sys.exit(main())
