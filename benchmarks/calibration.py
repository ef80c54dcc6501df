"""Coverage of the 95 % intervals of calibration: judges that are too sure, right, and too unsure.

`python -m benchmarks.calibration [--draws 1000] [--cases 100] [--runs 2]`. A label of four levels
is drawn from probabilities that differ from run to run, more so between cases; the judge says these
probabilities at a temperature of .5 (too sure), 1 (calibrated: the true error is 0) or 2. What
`agree` finds in `--cases` × `--runs` runs is compared with the same figure of the population, from
a million runs with their true probabilities and the same bins: the expected calibration error of
the likeliest level by tenths of its probability, that of the judge's value by its nearest level,
and the Brier score. The last line is JSON; the target: every interval covers in .93 of the draws.
"""

from __future__ import annotations

import argparse
import json
import sys

import numpy as np
from numpy.typing import NDArray
from scipy.special import softmax

from agenteval.analysis.labelled_means import Calibration, calibrations
from agenteval.records import Criterion
from agenteval.stats.scores import ScoreTable, score_table
from benchmarks.outcome import Row, finish

LEVELS = ("poor", "fair", "good", "very good")
GRADE = Criterion(name="grade", accepted_values=LEVELS)
TEMPERATURES = (0.5, 1.0, 2.0)
FIGURES = {
    "level_error": "error of the likeliest level",
    "error": "error of the value",
    "brier": "Brier score",
}
TARGET = 0.93
Floats = NDArray[np.float64]


def population(
    rng: np.random.Generator, cases: int, runs: int, heat: float
) -> tuple[Floats, Floats]:
    """True probabilities of the labels, and those that the judge says: (cases × runs, levels)."""
    of_case = rng.normal(0, 1.2, (cases, 1, len(LEVELS)))
    scores = (of_case + rng.normal(0, 1.2, (cases, runs, len(LEVELS)))).reshape(-1, len(LEVELS))
    return softmax(scores, axis=1), softmax(scores / heat, axis=1)


def truth(heat: float, size: int = 1_000_000) -> dict[str, float]:
    """The figures of the population."""
    real, said = population(np.random.default_rng(99), size, 1, heat)
    rank = np.arange(len(LEVELS)) / (len(LEVELS) - 1)
    likely, right = said.max(axis=1), real[np.arange(size), said.argmax(axis=1)]

    def error(gaps: Floats, bins: NDArray[np.intp]) -> float:
        return float(np.abs(np.bincount(bins, gaps)).sum() / size)

    value = said @ rank
    return {
        "level_error": error(likely - right, np.minimum((likely * 10).astype(np.intp), 9)),
        "error": error(value - real @ rank, np.abs(value[:, None] - rank).argmin(axis=1)),
        "brier": float(((said**2).sum(axis=1) - 2 * (said * real).sum(axis=1) + 1).mean()),
    }


def examined(rng: np.random.Generator, cases: int, runs: int, heat: float) -> Calibration:
    """What `agree` finds in one draw."""
    real, said = population(rng, cases, runs, heat)
    label = (rng.random(len(real))[:, None] > real.cumsum(axis=1)).sum(axis=1).clip(0, 3)

    def table(by_judge: bool) -> ScoreTable:
        rows = []
        for i, masses in enumerate(said):
            own = dict(zip(LEVELS, masses.tolist(), strict=True))
            level = LEVELS[masses.argmax() if by_judge else label[i]]
            rows.append(
                {
                    "run": f"r{i}",
                    "case": f"c{i // runs}",
                    "criterion": "grade",
                    "label": level,
                    "value": GRADE.expected_value(own) if by_judge else GRADE.value_of(level),
                    "probabilities": json.dumps(own) if by_judge else None,
                }
            )
        return score_table(rows)

    (found,) = calibrations(table(True), table(False), [GRADE])
    return found


def coverage(draws: int, cases: int, runs: int, heat: float) -> dict[str, tuple[float, float]]:
    """Per figure the share of intervals that hold the true value, and their mean width."""
    real, hits = truth(heat), dict.fromkeys(FIGURES, 0)
    width = dict.fromkeys(FIGURES, 0.0)
    for draw in range(draws):
        found = examined(np.random.default_rng([draw, round(heat * 10)]), cases, runs, heat)
        for name in FIGURES:
            interval = getattr(found, name)
            hits[name] += interval.low - 1e-9 <= real[name] <= interval.high + 1e-9
            width[name] += interval.high - interval.low
    return {name: (hits[name] / draws, width[name] / draws) for name in FIGURES}


def main() -> int:
    """Print a line per temperature and figure; 1 when one covers too rarely."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--draws", type=int, default=1000)
    parser.add_argument("--cases", type=int, default=100)
    parser.add_argument("--runs", type=int, default=2, help="of each case")
    options = parser.parse_args()
    rows = []
    for heat in TEMPERATURES:
        real = truth(heat)
        for name, (share, width) in coverage(
            options.draws, options.cases, options.runs, heat
        ).items():
            print(
                f"temperature {heat:g}, {FIGURES[name]}: true {real[name]:.3f}, "
                f"coverage {share:.3f}, mean width {width:.3f}"
            )
            rows.append(
                Row(
                    f"calibration, judge of temperature {heat:g}: coverage of the {FIGURES[name]}",
                    f"{share:.3f}",
                    f">= {TARGET:g}",
                    share >= TARGET,
                )
            )
    return finish("calibration", rows, draws=options.draws, cases=options.cases)


if __name__ == "__main__":
    sys.exit(main())
