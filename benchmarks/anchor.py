"""Looks at a frozen judge: python -m benchmarks.anchor [--years 2000] [--draws 200] [--quick].

Simulated judges rate 60 runs on nine criteria of five levels (or three, of which nearly all runs
get the best) five times; then 20 of the runs a week, in turn, with the defaults of `agenteval
anchor`. `noise` is the standard deviation of a reply before it is rounded to a level, as a share of
the scale. Counted are years of 52 looks in which any criterion is said to have changed although no
judge does (*target*: at most 5%), and how often a change of one criterion of nine, from the first
look or from a random week on, is found within 60 answers (*target*: a drop or rise of 0.1 at noise
.05 and .10 in 90%; at .15 it is shown and not judged: with this error rate even a z test with known
noise of the right 60 answers would find it in 80%). Beside them: the betting confidence sequence
(`stats.sequential`) of the differences from the first look on, and a t test a week at 5%, corrected
for the criteria. Takes about 10 minutes.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.stats import ttest_1samp

from agenteval.stats.drift import find_drift
from agenteval.stats.sequential import confidence_sequence
from benchmarks.outcome import Row, finish
from benchmarks.verdicts.__main__ import upper

RUNS, REPEATS, SAMPLE, CRITERIA, LOOKS, YEAR = 60, 5, 20, 9, 52, 0.05
PASS = RUNS // SAMPLE  # looks that take every run once
Floats = NDArray[np.float64]


@dataclass(frozen=True)
class Judge:
    """Noise of replies, number of levels, and the range of true qualities."""

    noise: float
    levels: int = 5
    qualities: tuple[float, float] = (0.2, 0.8)

    def rate(self, quality: Floats, rng: np.random.Generator) -> Floats:
        """Return ratings of qualities: with noise, on the levels."""
        steps = self.levels - 1
        noisy = quality + rng.normal(0, self.noise, quality.shape)
        return np.asarray(np.clip(np.floor(noisy * steps + 0.5), 0, steps) / steps)


@dataclass(frozen=True)
class Draw:
    """Frozen scores (criteria, runs, repeats), and those of the looks, NaN where not asked."""

    frozen: Floats
    new: Floats


def draw(
    judge: Judge, looks: int, rng: np.random.Generator, shift: float = 0.0, since: int = 0
) -> Draw:
    """Simulate a judge that does not change, on all criteria, or one whose criterion moves by
    `shift` from look `since` on."""
    quality = rng.uniform(*judge.qualities, (1 if shift else CRITERIA, RUNS))
    frozen = judge.rate(np.repeat(quality[:, :, None], REPEATS, axis=2), rng)
    new = np.full((len(quality), RUNS, looks), np.nan)
    for look in range(looks):
        asked = (np.arange(SAMPLE) + SAMPLE * look) % RUNS
        new[:, asked, look] = judge.rate(quality[:, asked] + shift * (look >= since), rng)
    return Draw(frozen, new)


def alarms(drawn: Draw, looks: range) -> Iterator[int]:
    """Yield the look of every drift shown, in order."""
    alpha, cases = YEAR / LOOKS / CRITERIA, np.arange(RUNS)
    for look in looks:
        seen = drawn.new[:, :, : look + 1]
        far = np.maximum(
            deviations(drawn.frozen, seen), deviations(drawn.frozen, seen[..., -PASS:])
        )
        for c in np.flatnonzero(far > 2.9):  # find_drift shows nothing below 3
            frozen, new = drawn.frozen[c], seen[c]
            if find_drift(frozen, new, cases, recent=PASS, alpha=alpha).shown:
                yield look


def deviations(frozen: Floats, new: Floats) -> Floats:
    """Return by criterion how many standard deviations of an exchange the difference is."""
    repeats, times = frozen.shape[2], (~np.isnan(new)).sum(axis=2)
    total = repeats + times
    late = np.nansum(new, axis=2)
    mean = (frozen.sum(axis=2) + late) / total
    square = ((frozen**2).sum(axis=2) + np.nansum(new**2, axis=2)) / total
    few = np.minimum(repeats, times)
    with np.errstate(divide="ignore", invalid="ignore"):
        weight = np.where(times > 0, 1 / repeats + 1 / times, 0.0)
        away = np.where(times > 0, weight * (late - times * mean), 0.0).sum(axis=1)
        spread = few * (total - few) / (total - 1) * np.maximum(square - mean**2, 0)
        return np.asarray(np.abs(away) / np.sqrt((weight**2 * spread).sum(axis=1) + 1e-12))


def false_years(judge: Judge, years: int) -> int:
    """Return in how many years without a change any criterion is said to have changed."""
    count = 0
    for year in range(years):
        rng = np.random.default_rng([1, year, round(judge.noise * 100), judge.levels])
        drawn = draw(judge, LOOKS, rng)
        count += next(alarms(drawn, range(LOOKS)), None) is not None
    return count


@dataclass(frozen=True)
class Found:
    """Shares of draws in which the change was found, and in which the interval holds it."""

    within: float
    weeks: float
    covered: float


def found(judge: Judge, shift: float, draws: int, *, later: bool) -> Found:
    """Return how often a change of the first criterion is found within 60 answers."""
    hits, covered, weeks = 0, 0, list[int]()
    for number in range(draws):
        rng = np.random.default_rng(
            [2, number, round(judge.noise * 100), round(shift * 1000) + 999]
        )
        since = int(rng.integers(PASS, 40)) if later else 0
        drawn = draw(judge, since + 12, rng, shift, since)
        weeks.append(next(alarms(drawn, range(since, since + 12)), since + 12) - since + 1)
        hits += weeks[-1] <= PASS
        seen = drawn.new[0, :, : since + PASS]
        alpha = YEAR / LOOKS / CRITERIA
        at = find_drift(drawn.frozen[0], seen, np.arange(RUNS), recent=PASS, alpha=alpha)
        low, high = at.interval.low, at.interval.high
        covered += at.looks > PASS or (
            low is not None and high is not None and low <= shift <= high
        )
    return Found(hits / draws, float(np.median(weeks)), covered / draws)


def others(judge: Judge, shift: float, draws: int, looks: int) -> tuple[float, float]:
    """Return how often a betting confidence sequence and weekly t tests find a change of the first
    criterion (with `shift` 0: of any criterion, in a year)."""
    bets = tests = 0
    for number in range(draws):
        rng = np.random.default_rng([3, number, round(judge.noise * 100)])
        drawn = draw(judge, looks, rng, shift)
        differences = drawn.new - drawn.frozen.mean(axis=2, keepdims=True)
        bet = test = False
        for c in range(len(differences)):
            weeks = [column[~np.isnan(column)] for column in differences[c].T]
            every = np.concatenate(weeks)
            level = 1 - YEAR / CRITERIA
            interval = confidence_sequence((every + 1) / 2, level=level)
            bet |= not (interval.low or 0.0) <= 0.5 <= (interval.high or 0.0)
            ps = [ttest_1samp(week, 0).pvalue if week.std() else 1.0 for week in weeks]
            test |= bool(min(ps) <= YEAR / CRITERIA)
        bets, tests = bets + bet, tests + test
    return bets / draws, tests / draws


def main() -> int:
    """Print a line for each figure; 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--years", type=int, default=2000)
    parser.add_argument("--draws", type=int, default=200)
    parser.add_argument("--quick", action="store_true", help="50 years and 100 draws")
    options = parser.parse_args()
    years, draws = (50, 100) if options.quick else (options.years, options.draws)
    rows = list[Row]()

    def row(what: str, measured: str, target: str | None = None, met: bool | None = None) -> None:
        rows.append(Row(what, measured, target, met if not options.quick else None))
        print(f"{what}: {measured}", flush=True)

    judges = {f"noise {noise:.2f}": Judge(noise) for noise in (0.05, 0.10, 0.15)}
    steady = Judge(0.10, levels=3, qualities=(0.7, 1.1))
    for name, judge in {**judges, "noise 0.10, nearly always the best of three": steady}.items():
        count = false_years(judge, years)
        share = f"{count} of {years:,} ({count / years:.1%}, at most {upper(count, years):.1%})"
        row(f"{name}: years with a false alarm", share, "<= 5%", count / years <= YEAR)
    for name, judge in judges.items():
        for shift in (-0.05, -0.1, 0.1, -0.2):
            for later in (False, True):
                result = found(judge, shift, draws, later=later)
                judged = abs(shift) == 0.1 and judge.noise <= 0.10
                row(
                    f"{name}: {shift:+g} from {'a random week' if later else 'the first look'} on,"
                    " found within 60 answers",
                    f"{result.within:.1%} (median {math.ceil(result.weeks)} looks, interval holds "
                    f"it in {result.covered:.1%})",
                    ">= 90%" if judged else None,
                    result.within >= 0.9 if judged else None,
                )
    few = max(20, draws // 4)
    for name, judge in judges.items():
        bets, _ = others(judge, -0.1, draws, PASS)
        wrong, tests = others(judge, 0.0, few, LOOKS)
        row(f"{name}: -0.1 found in 60 answers by betting on the differences", f"{bets:.1%}")
        row(f"{name}: years with a false alarm, by betting", f"{wrong:.1%} of {few}")
        row(f"{name}: years with a false alarm, by weekly t tests", f"{tests:.1%} of {few}")
    return finish("anchor", rows, years=years, draws=draws)


if __name__ == "__main__":
    sys.exit(main())
