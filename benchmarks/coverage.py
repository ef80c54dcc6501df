"""Coverage of the intervals: how often a 95 % interval holds the truth, on stated grids.

    python -m benchmarks.coverage [--experiments 4000] [--seed 1]

Means: 3 repeats per case, normal (between cases sd 1, within a case sd .5) or five levels (the
same, cut at -1.2, -.4, .4 and 1.2), `mean_interval` with the cases as clusters; a lenient judge
(the same, moved up by 1.5) and the bootstraps of the same means stand beside it without a target.
Shares: Wilson and Clopper-Pearson over p = .01, .02 ... .99, and over p = .1, .5, .9; the exact
coverage (a sum of binomial probabilities) stands beside the simulated one. AUC: 30 successes and
30 failures, normal and five-level scores. Alpha (interval) of 3 repeats: bootstraps, no target.

Targets: means with 20 cases or more .93; Wilson .925 on average over p and at .1, .5, .9 (at single
values of p it falls lower, which is printed); Clopper-Pearson .95 at every p; AUC .93. Lowest
values are judged on the exact coverage, the others on the simulated (standard error .0034 at
4,000 experiments). Bootstraps take a quarter of the experiments. With 5 and 10 cases the shortfall
is printed and not judged. The exit code is 1 when a target is missed.
"""

from __future__ import annotations

import argparse
import itertools
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from typing import get_args

import numpy as np
from numpy.typing import NDArray
from rich.console import Console
from rich.table import Table

from agenteval.stats import (
    Bootstrap,
    Interval,
    bootstrap_mean,
    krippendorff_alpha,
    mean_interval,
    proportion_interval,
)
from agenteval.stats.discrimination import discrimination
from agenteval.stats.proportion import ProportionMethod
from benchmarks.outcome import Row, finish

Floats = NDArray[np.float64]
CASES = (5, 10, 20, 30, 60)
REPEATS = 3
GRIDS = {".01 to .99": tuple(i / 100 for i in range(1, 100)), ".1 .5 .9": (0.1, 0.5, 0.9)}
LENIENT = "5 levels, lenient"
LEVELS = np.array([-1.2, -0.4, 0.4, 1.2])
TARGETS = {"mean": 0.93, "wilson": 0.925, "clopper-pearson": 0.95, "auc": 0.93}
JUDGED_FROM = 20  # cases
BOOTSTRAP = 500  # resamples within each experiment


@dataclass(frozen=True)
class Cell:
    """One line: what was covered how often, and whether that is judged and enough."""

    group: str
    name: str
    size: str
    coverage: float
    lowest: float | None
    exact_lowest: float | None
    target: float | None
    experiments: int
    by_lowest: bool = False

    @property
    def met(self) -> bool | None:
        """None where there is no target."""
        if self.target is None:
            return None
        judged = self.exact_lowest if self.by_lowest else self.coverage
        assert judged is not None
        return judged >= self.target - 1e-9


def holds(interval: Interval, truth: float) -> bool:
    """Whether the interval is there and contains the truth; none at all counts as a miss."""
    if interval.low is None or interval.high is None:
        return False
    return interval.low - 1e-12 <= truth <= interval.high + 1e-12


def normal(rng: np.random.Generator, cases: int) -> Floats:
    """(cases, repeats) normal values."""
    return rng.normal(size=(cases, 1)) + 0.5 * rng.normal(size=(cases, REPEATS))


def five_levels(rng: np.random.Generator, cases: int) -> Floats:
    """(cases, repeats) levels 0 to 4, symmetric."""
    return np.searchsorted(LEVELS, normal(rng, cases)).astype(np.float64)


def skewed(rng: np.random.Generator, cases: int) -> Floats:
    """(cases, repeats) levels 0 to 4 of a lenient judge, most at the top."""
    return np.searchsorted(LEVELS, normal(rng, cases) + 1.5).astype(np.float64)


def level_mean(shift: float) -> float:
    """Expected level: sum over cuts of P(latent + shift > cut), latent sd sqrt(1.25)."""
    from scipy.special import ndtr

    return float(ndtr((shift - LEVELS) / np.sqrt(1.25)).sum())


SOURCES: dict[str, tuple[Callable[[np.random.Generator, int], Floats], float]] = {
    "normal": (normal, 0.0),
    "5 levels": (five_levels, level_mean(0.0)),
    LENIENT: (skewed, level_mean(1.5)),
}


def mean_of(
    source: Callable[[np.random.Generator, int], Floats],
    method: str,
    cases: int,
    rng: np.random.Generator,
) -> Interval:
    """The interval of one experiment."""
    values, label = source(rng, cases).ravel(), np.repeat(np.arange(cases), REPEATS)
    if method == "t":
        return mean_interval(values.tolist(), label.tolist())
    return bootstrap_mean(values, label, how=Bootstrap(rng, resamples=BOOTSTRAP))


def means(experiments: int, seed: int) -> Iterable[Cell]:
    """Coverage of the mean over cases: t over clusters, and bootstraps beside it."""
    for method in ("t", "expanded"):
        for place, (name, (source, truth)) in enumerate(SOURCES.items()):
            for cases in CASES:
                rng = np.random.default_rng([seed, cases, place])
                number = experiments if method == "t" else -(-experiments // 4)
                hits = sum(holds(mean_of(source, method, cases, rng), truth) for _ in range(number))
                judged = method == "t" and cases >= JUDGED_FROM and name != LENIENT
                yield Cell(
                    "mean",
                    f"{name}, {method}",
                    f"{cases} cases",
                    hits / number,
                    None,
                    None,
                    TARGETS["mean"] if judged else None,
                    number,
                )


def shares(experiments: int, seed: int) -> Iterable[Cell]:
    """Coverage of a share, simulated and exact, average and lowest over the grids of p."""
    from scipy.stats import binom

    methods: tuple[ProportionMethod, ...] = get_args(ProportionMethod)
    for method in methods:
        for (name, grid), n in itertools.product(GRIDS.items(), (10, 30, 100)):
            rng = np.random.default_rng([seed, n])
            ends = [proportion_interval(k, n, method=method) for k in range(n + 1)]
            simulated, exact = [], []
            for p in grid:
                inside = np.array([holds(interval, p) for interval in ends])
                simulated.append(float(inside[rng.binomial(n, p, size=experiments)].mean()))
                exact.append(float(binom.pmf(np.arange(n + 1), n, p) @ inside))
            yield Cell(
                method,
                f"p {name}",
                f"n {n}",
                float(np.mean(simulated)),
                min(simulated),
                min(exact),
                TARGETS[method],
                experiments,
                by_lowest=method != "wilson" or len(grid) < 9,
            )


def areas(experiments: int, seed: int) -> Iterable[Cell]:
    """Coverage of the AUC, 30 successes and 30 failures; the truth from the distributions."""
    from scipy.special import ndtr

    cuts = np.concatenate([[-np.inf], LEVELS, [np.inf]])
    for shift in (0.0, 1.0, 2.0):
        for levels in (False, True):
            rng = np.random.default_rng([seed, 30, int(shift), levels])
            good, bad = np.diff(ndtr(cuts - shift)), np.diff(ndtr(cuts))
            truth = float(ndtr(shift / np.sqrt(2)))
            if levels:
                truth = float(good @ (np.cumsum(bad) - bad / 2))
            hits = 0
            for _ in range(experiments):
                scores = rng.normal(size=60) + np.repeat([shift, 0], 30)
                if levels:
                    scores = np.searchsorted(LEVELS, scores).astype(np.float64)
                hits += holds(discrimination(scores[:30], scores[30:]).auc, truth)
            data = f"{'5 levels' if levels else 'normal'}, true {truth:.3f}"
            yield Cell(
                "auc", data, "30 + 30", hits / experiments, None, None, TARGETS["auc"], experiments
            )


def alphas(experiments: int, seed: int) -> Iterable[Cell]:
    """Coverage of interval alpha, 3 repeats, 5 levels; the truth from 200,000 units. No target."""
    rng = np.random.default_rng([seed, 77])
    truth = krippendorff_alpha(five_levels(rng, 200_000), "interval").mean
    assert truth is not None
    number = -(-experiments // 4)
    for cases in (10, 20, 30, 60):
        hits = 0
        for _ in range(number):
            how = Bootstrap(rng, resamples=BOOTSTRAP)
            ratings = five_levels(rng, cases)
            hits += holds(krippendorff_alpha(ratings, "interval", bootstrap=how), truth)
        size = f"{cases} units"
        yield Cell("alpha", "5 levels, expanded", size, hits / number, None, None, None, number)


def show(cells: list[Cell]) -> Table:
    """The cells as a table."""
    table = Table("interval", "data", "size", title="coverage of 95 % intervals")
    for title in ("experiments", "coverage", "lowest over p", "exactly", "target", "met"):
        table.add_column(title, justify="right")
    for cell in cells:
        numbers = (cell.coverage, cell.lowest, cell.exact_lowest, cell.target)
        met = {True: "yes", False: "NO", None: ""}[cell.met]
        shown = ("" if v is None else f"{v:.4f}" for v in numbers)
        table.add_row(cell.group, cell.name, cell.size, str(cell.experiments), *shown, met)
    return table


def main() -> int:
    """Simulate and print; 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiments", type=int, default=4000, help="per cell")
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    start = time.perf_counter()
    groups = (means, shares, areas, alphas)
    cells = [cell for group in groups for cell in group(options.experiments, options.seed)]
    Console(width=120).print(show(cells))
    missed = [f"{c.group}, {c.name}, {c.size}" for c in cells if c.met is False]
    return finish(
        "coverage",
        figures(cells),
        experiments=options.experiments,
        seed=options.seed,
        cells=[asdict(c) | {"met": c.met} for c in cells],
        missed=missed,
        seconds=round(time.perf_counter() - start, 1),
    )


def figures(cells: list[Cell]) -> list[Row]:
    """The lowest judged coverage of each kind of interval."""
    rows = []
    for group in dict.fromkeys(c.group for c in cells):
        judged = [c for c in cells if c.group == group and c.target is not None]
        for target in sorted({c.target for c in judged if c.target is not None}):
            some = [c for c in judged if c.target == target]
            lowest = min((c.exact_lowest or 0.0) if c.by_lowest else c.coverage for c in some)
            rows.append(
                Row(
                    f"{group}: lowest coverage of 95 % intervals, {len(some)} settings",
                    f"{lowest:.4f}",
                    f">= {target:g}",
                    all(c.met for c in some),
                )
            )
    return rows


if __name__ == "__main__":
    sys.exit(main())
