"""Coverage of the 95 % interval of the AUC: 30 + 30 cases (and other sizes), 4,000 experiments.

`python -m benchmarks.auc_coverage [--experiments 4000] [--sizes 30,30 13,7]`. Ratings are normal,
or the same cut into five levels; failed cases spread as much as successes, or three times as much.
The last line is JSON: the rows, and whether every cell at 30 + 30 reaches .93.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Callable
from dataclasses import asdict, dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import brentq
from scipy.stats import norm

from agenteval.stats import discrimination
from benchmarks.outcome import Row, finish

AREAS = (0.5, 0.7, 0.9, 0.98)
SPREADS = (1.0, 3.0)
TARGET = 0.93
Draw = Callable[[np.random.Generator, int], NDArray[np.float64]]


@dataclass(frozen=True)
class Cell:
    """Share of intervals that hold the true AUC, and their mean width."""

    sizes: tuple[int, int]
    ratings: str
    auc: float
    spread_failed: float
    coverage: float
    width: float
    no_interval: int


def levels(centre: float, spread: float) -> NDArray[np.float64]:
    """Probabilities of five levels: a normal rating around `centre` rounded to 0..4."""
    edges = np.array([-np.inf, 0.5, 1.5, 2.5, 3.5, np.inf])
    return np.diff(norm.cdf(edges, centre, spread))


def area(success: NDArray[np.float64], failed: NDArray[np.float64]) -> float:
    """True AUC of two distributions over the same levels."""
    return float((success * (np.cumsum(failed) - failed / 2)).sum())


def populations(kind: str, auc: float, spread: float) -> tuple[Draw, Draw]:
    """How to draw ratings of successes and of failures with this true AUC."""
    if kind == "normal":
        shift = norm.ppf(auc) * math.sqrt(1 + spread**2)
        return lambda r, n: r.normal(shift, 1, n), lambda r, n: r.normal(0, spread, n)

    def off(gap: float) -> float:
        return area(levels(2 + gap / 2, 1), levels(2 - gap / 2, spread)) - auc

    gap = brentq(off, 0, 14)
    high, low = levels(2 + gap / 2, 1), levels(2 - gap / 2, spread)
    return (
        lambda r, n: r.choice(5, n, p=high).astype(float),
        lambda r, n: r.choice(5, n, p=low).astype(float),
    )


def measure(sizes: tuple[int, int], kind: str, auc: float, spread: float, experiments: int) -> Cell:
    """One cell; an experiment without an interval (all ratings equal) counts as not covered."""
    success, failed = populations(kind, auc, spread)
    rng = np.random.default_rng([*sizes, round(auc * 100), round(spread), kind == "normal"])
    hits, width, missing = 0, 0.0, 0
    for _ in range(experiments):
        got = discrimination(success(rng, sizes[0]), failed(rng, sizes[1])).auc
        if got.low is None or got.high is None:
            missing += 1
            continue
        hits += got.low <= auc + 1e-9 and auc - 1e-9 <= got.high
        width += got.high - got.low
    return Cell(
        sizes, kind, auc, spread, hits / experiments,
        width / max(experiments - missing, 1), missing,
    )  # fmt: skip


def pair(text: str) -> tuple[int, int]:
    """ "30,30" as two sizes."""
    first, second = text.split(",")
    return int(first), int(second)


def main() -> int:
    """Print a line per cell; 1 when a cell at 30 + 30 falls short."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--experiments", type=int, default=4000)
    parser.add_argument("--sizes", type=pair, nargs="+", default=[(30, 30)])
    options = parser.parse_args()
    cells = []
    for sizes in options.sizes:
        for kind in ("normal", "five levels"):
            for auc in AREAS:
                for spread in SPREADS:
                    cell = measure(sizes, kind, auc, spread, options.experiments)
                    cells.append(cell)
                    print(
                        f"{sizes[0]:3d} + {sizes[1]:<3d} {kind:12s} AUC {auc:<4g} failed spread"
                        f" x{spread:g}: coverage {cell.coverage:.4f}, width {cell.width:.3f}"
                        + (f", {cell.no_interval} without interval" if cell.no_interval else "")
                    )
    short = [c for c in cells if c.sizes == (30, 30) and c.coverage < TARGET]
    judged = [c.coverage for c in cells if c.sizes == (30, 30)]
    rows = []
    if judged:
        rows = [
            Row(f"AUC at 30 + 30: lowest coverage of 95 % intervals, {len(judged)} settings",
                f"{min(judged):.4f}", f">= {TARGET:g}", not short),
            Row("AUC at 30 + 30: mean coverage", f"{sum(judged) / len(judged):.4f}"),
        ]  # fmt: skip
    return finish(
        "auc_coverage", rows, experiments=options.experiments, target=TARGET, met=not short,
        cells=[asdict(c) for c in cells],
    )  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
