"""What few labels and early stops are worth, and whether their intervals and tests hold.

    python -m benchmarks.few_labels [--draws 4000] [--looks 10000] [--seed 1]

Labels: PandaLM's recorded pairs where the reference data are at hand:
1,000 runs drawn with replacement, of which 100 are labelled; the truth is the mean label of all.
Simulated: five levels, a judge .08 too kind with errors of its own, four systems to a case. Judge
alone, people alone and the corrected mean (`stats.ppi`), 95 % intervals. Target: people and
corrected cover .94 (with 30 labels of strata .93: see results).

Early stops: two systems on 100 or 200 cases, five levels, differences of 0 to .3 of the scale.
`look_level` after every case, from 20 cases on, with `hopeless`; beside it the t test on all cases,
at .05. Judges that differ (.2 and .3): calls saved; all: decisions that the early stop changes.
False alarms at a difference of 0, looking after every case. The always-valid interval by betting
(`confidence_sequence`): share of paths that ever leave the truth out.
"""

from __future__ import annotations

import argparse
import csv
import sys
from collections import Counter

import numpy as np
from numpy.typing import NDArray

from agenteval.stats.ppi import ppi_mean
from agenteval.stats.sequential import confidence_sequence, is_futile, look_level, normalized_sum
from benchmarks.folders import ROOT
from benchmarks.outcome import Row, finish

Floats = NDArray[np.float64]
PANDALM = ROOT.parent / "shared/reference/stats/pandalm/labels.csv"
FROM = 20  # cases before the first look
NAMES = ("judge alone", "people alone", "corrected")


def pandalm() -> tuple[Floats, Floats]:
    """Majority label and the judge's of each pair that it gave one for: 1 the first is better, 0
    the second, .5 neither."""
    value = {"0": 0.5, "Tie": 0.5, "1": 1.0, "2": 0.0}
    with PANDALM.open() as file:
        rows = [row for row in csv.DictReader(file) if row["gpt35_raw"] in value]
    people = [Counter(row[f"a{i}"] for i in (1, 2, 3)).most_common(1)[0][0] for row in rows]
    return (
        np.array([value[label] for label in people]),
        np.array([value[row["gpt35_raw"]] for row in rows]),
    )


def five_levels(quality: Floats) -> Floats:
    """Values in [0, 1] in steps of a quarter."""
    return np.asarray(np.clip(np.round(quality * 4) / 4, 0, 1), dtype=np.float64)


def population(cases: int, systems: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Labels and ratings (cases, systems); the judge also errs by case, the same for systems."""
    case = rng.normal(0, 0.25, (cases, 1))
    quality = 0.6 + case + np.linspace(-0.1, 0.1, systems) + rng.normal(0, 0.15, (cases, systems))
    label = five_levels(quality + rng.normal(0, 0.1, quality.shape))
    return label, five_levels(quality + 0.08 + 0.3 * case + rng.normal(0, 0.15, quality.shape))


def stratified(ratings: Floats, n: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Whether drawn, and weights, of equal numbers from quarters of the judge's scale."""
    band = np.minimum((ratings * 4).astype(int), 3)
    bands = sorted(np.unique(band), key=lambda b: int((band == b).sum()))
    drawn, weights, left = np.zeros(len(ratings), bool), np.ones(len(ratings)), n
    for number, one in enumerate(bands):
        own = np.flatnonzero(band == one)
        take = min(len(own), left // (len(bands) - number))
        left -= take
        drawn[rng.choice(own, take, replace=False)] = True
        weights[own] = len(own) / take
    return drawn, weights


def covered(
    systems: int, n: int, draws: int, rng: np.random.Generator, *, strata: bool = False
) -> tuple[Floats, Floats, float]:
    """Coverage and width of the three means, and what `n` labels were worth; PandaLM's pairs for
    `systems` 0."""
    if systems:
        truth = float(population(400_000, systems, rng)[0].mean())
    else:
        people, judge = pandalm()
        truth = float(people.mean())
    hits, widths, worth = np.zeros(3), np.zeros(3), 0.0
    for _ in range(draws):
        if systems:
            label, rating = (x.ravel() for x in population(1000 // systems, systems, rng))
        else:
            chosen = rng.integers(0, len(people), 1000)
            label, rating = people[chosen], judge[chosen]
        weights = np.ones(1000)
        if strata:
            drawn, weights = stratified(rating, n, rng)
        else:
            drawn = np.zeros(1000, bool)
            drawn[rng.choice(1000, n, replace=False)] = True
        cases = np.repeat(np.arange(1000 // systems), systems).tolist() if systems else None
        mean = ppi_mean(rating, np.where(drawn, label, np.nan), cases, weights=weights)
        for i, one in enumerate((mean.judge, mean.people, mean.corrected)):
            low, high = one.low or 0.0, one.high or 0.0
            hits[i] += low <= truth <= high
            widths[i] += high - low
        worth += (mean.worth or 0.0) / n
    return hits / draws, widths / draws, worth / draws


def differences(cases: int, apart: float, paths: int, rng: np.random.Generator) -> Floats:
    """(paths, cases) of B minus A."""
    base = rng.normal(0.6, 0.25, (paths, cases))
    a, b = (five_levels(base + shift + rng.normal(0, 0.2, base.shape)) for shift in (0.0, apart))
    return b - a


def decide(path: Floats) -> tuple[int, int]:
    """Cases used, and the decision (1, -1, 0) of looks after every case from 20 on."""
    planned = len(path)
    for n in range(FROM, planned + 1):
        z = normalized_sum(path[:n])
        if abs(z) >= _z(n, planned):
            return n, int(np.sign(z))
        if n < planned and is_futile(path[:n], planned):
            return n, 0
    return planned, 0


_LEVELS: dict[tuple[int, int], float] = {}


def _z(n: int, planned: int) -> float:
    from scipy.special import ndtri

    if (n, planned) not in _LEVELS:
        tail = (1 - look_level(n, planned)) / 2
        _LEVELS[n, planned] = -float(ndtri(tail))
    return _LEVELS[n, planned]


def on_all(path: Floats) -> int:
    """The decision of a t test on all cases."""
    from scipy.special import stdtrit

    n = len(path)
    t = path.mean() / (path.std(ddof=1) / n**0.5)
    return int(np.sign(t)) if abs(t) > stdtrit(n - 1, 0.975) else 0


def labels(draws: int, rng: np.random.Generator) -> list[Row]:
    """Coverage of the three means."""
    rows = []
    settings = [
        ("PandaLM, 100 labels of 1,000 pairs", 0, 100, False, 0.94),
        ("simulated, 100 labels", 1, 100, False, 0.94),
        ("four systems to a case, 100 labels", 4, 100, False, 0.94),
        ("30 labels", 1, 30, False, 0.94),
        ("four systems, 30 labels", 4, 30, False, 0.94),
        ("strata by the judge's value, 100 labels", 1, 100, True, 0.94),
        ("strata, four systems, 100 labels", 4, 100, True, 0.94),
        ("strata, 30 labels", 1, 30, True, 0.93),
    ]
    for name, systems, n, strata, least in settings:
        if not systems and not PANDALM.is_file():
            continue
        hits, widths, worth = covered(systems, n, draws, rng, strata=strata)
        told = "; ".join(
            f"{who} {hit:.3f} (width {width:.3f})"
            for who, hit, width in zip(NAMES, hits, widths, strict=True)
        )
        slack = 2 * (0.05 * 0.95 / draws) ** 0.5
        rows.append(
            Row(
                f"{name}: coverage of 95 % intervals",
                f"{told}; a label is worth {worth:.2f}",
                f"people and corrected >= {least:g}",
                bool(hits[1:].min() >= least - slack),
            )
        )
    return rows


def stops(looks: int, rng: np.random.Generator) -> list[Row]:
    """Calls saved, decisions changed, false alarms."""
    saved, changed, alarms, text = [], [], [], []
    for cases in (100, 200):
        for apart in (0.0, 0.1, 0.2, 0.3):
            paths = looks if apart == 0 and cases == 100 else looks // 5
            used, early, late = np.zeros(paths), np.zeros(paths), np.zeros(paths)
            for i, path in enumerate(differences(cases, apart, paths, rng)):
                used[i], early[i] = decide(path)
                late[i] = on_all(path)
            factor, other = float(cases / used.mean()), float((early != late).mean())
            text.append(
                f"{cases} cases, {apart:g} apart: {factor:.1f} × fewer, {other:.1%} changed"
            )
            changed.append(other)
            if apart >= 0.2:
                saved.append(factor)
            if apart == 0:
                alarms.append(float((early != 0).mean()))
    mean = float(np.mean(changed))
    return [
        Row(
            "early stops: cases that judges of systems .2 and .3 apart need, of all planned",
            f"{np.mean(saved):.1f} × fewer on average ({'; '.join(text)})",
            ">= 2 × fewer",
            bool(np.mean(saved) >= 2),
        ),
        Row(
            "early stops: decisions other than the t test on all cases",
            f"{mean:.2%}",
            "<= 1 %",
            mean <= 0.01,
        ),
        Row(
            f"early stops: false alarms, looking after every case ({looks:,} paths)",
            f"{alarms[0]:.4f} (100 cases), {alarms[1]:.4f} (200)",
            "<= .05",
            max(alarms) <= 0.05 + 2 * (0.05 * 0.95 / (looks // 5)) ** 0.5,
        ),
    ]


def betting(paths: int, rng: np.random.Generator) -> Row:
    """Share of paths of 200 values whose running intervals ever leave the truth out."""
    misses = []
    levels, share = np.array([0, 0.25, 0.5, 0.75, 1]), np.array([0.05, 0.1, 0.2, 0.3, 0.35])
    truths = {"yes or no, .9": 0.9, "yes or no, .5": 0.5, "five levels": float(levels @ share)}
    for name, truth in truths.items():
        out = 0
        for _ in range(paths):
            values = (
                rng.choice(levels, 200, p=share)
                if name == "five levels"
                else (rng.random(200) < truth).astype(float)
            )
            interval = confidence_sequence(values)
            out += not (interval.low or 0.0) <= truth <= (interval.high or 1.0)
        misses.append(f"{name} {out / paths:.3f}")
    worst = max(float(one.rpartition(" ")[2]) for one in misses)
    return Row(
        f"always-valid intervals: share of {paths:,} paths that ever miss",
        ", ".join(misses),
        "<= .05",
        worst <= 0.05,
    )


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--looks", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    rng = np.random.default_rng(asked.seed)
    rows = labels(asked.draws, rng)
    rows += stops(asked.looks, rng)
    rows.append(betting(asked.looks // 5, rng))
    for row in rows:
        print(f"{row.what}: {row.measured} [{row.target}]")
    return finish("few_labels", rows)


if __name__ == "__main__":
    sys.exit(main())
