"""How often a regression gate fails, with several corrections for several criteria.

    python -m benchmarks.gates [--draws 4000] [--seed 1]

Simulated: nine criteria of five levels on 40 pairs, correlated by case (0.3), the differences with
a standard deviation of about 0.28, and a tenth row, success, in which no pair differs.
The gate tests every row against -0.05 by sign flips, one-sided, and fails at 0.05. Compared: no
correction; Holm; Hochberg; gatekeeping (the mean over the criteria first, then Holm); step-down max
T (Westfall and Young), which knows the correlation and is the most that can be had; the gate of
`agenteval compare`, which is Holm and asks for a difference from 0 too (two-sided, Holm); and that
before (two-sided tests, the whole 95% interval below -0.05, Holm over all ten rows).

Worlds: A against A; every criterion worse by exactly the margin, where the gate must not fail
either; one criterion worse by 0.2; all worse by 0.2. Target: the gate fails A against A in at most
5 %, and finds the one criterion as often as Hochberg does.
"""

from __future__ import annotations

import argparse
import sys

import numpy as np
from numpy.typing import NDArray

from agenteval.stats.vectors import normal_quantile
from benchmarks.outcome import Row, finish

Floats = NDArray[np.float64]
Mask = NDArray[np.bool_]
CRITERIA, PAIRS, MARGIN, ALPHA, FLIPS = 9, 40, 0.05, 0.05, 2000
WORLDS = {
    "A against A": np.zeros(CRITERIA),
    "all at the margin": np.full(CRITERIA, -MARGIN),
    "one worse by 0.2": np.array([-0.2] + [0.0] * (CRITERIA - 1)),
    "all worse by 0.2": np.full(CRITERIA, -0.2),
}


def differences(drops: Floats, draws: int, rng: np.random.Generator) -> Floats:
    """Differences (draws, criteria, pairs) in quarters of the scale, with these means."""
    shape = (draws, len(drops), PAIRS)
    case = rng.normal(0, 1, (draws, 1, PAIRS))
    noise = 0.25 * (np.sqrt(0.3) * case + np.sqrt(0.7) * rng.normal(0, 1, shape))
    wanted = drops[None, :, None] + noise
    lower = np.floor(wanted * 4)  # rounded at random, so that the means stay exact
    steps = lower + (rng.random(shape) < wanted * 4 - lower)
    return np.asarray(np.clip(steps / 4, -1, 1), dtype=np.float64)


def lower_tails(d: Floats, signs: Floats) -> tuple[Floats, Floats]:
    """p (draws, rows) of each row by sign flips, and the studentized flips (draws, rows, flips)
    with the observed ones first."""
    sums = np.concatenate([d.sum(axis=2, keepdims=True), d @ signs], axis=2)
    sums /= np.sqrt((d**2).sum(axis=2, keepdims=True)) + 1e-12
    return (sums <= sums[:, :, :1] + 1e-9).mean(axis=2), sums


def rejected(p: Floats) -> Mask:
    """The rows (draws, rows) that Holm rejects."""
    order = np.argsort(p, axis=1)
    steps = np.take_along_axis(p, order, axis=1) * np.arange(p.shape[1], 0, -1)
    found = np.empty_like(p)
    np.put_along_axis(found, order, np.maximum.accumulate(steps, axis=1), axis=1)
    return found <= ALPHA


def hochberg(p: Floats) -> Mask:
    """Whether Hochberg rejects any row of a draw."""
    return np.asarray((np.sort(p, axis=1) <= ALPHA / np.arange(p.shape[1], 0, -1)).any(axis=1))


def failures(drops: Floats, draws: int, rng: np.random.Generator) -> dict[str, float]:
    """Share of draws in which the gate fails, by procedure."""
    failed: dict[str, list[Mask]] = {}
    signs = np.asarray(rng.integers(0, 2, (PAIRS, FLIPS)) * 2.0 - 1, dtype=np.float64)
    for _ in range(draws // 200):
        d = differences(drops, 200, rng)
        p, flips = lower_tails(d + MARGIN, signs)
        of_mean = np.asarray(d.mean(axis=1, keepdims=True) + MARGIN, dtype=np.float64)
        mean_p, _ = lower_tails(of_mean, signs)
        from_0, _ = lower_tails(d, signs)
        least = flips.min(axis=1)  # over rows: the first step of max T is what decides
        half = normal_quantile(0.975) * d.std(axis=2, ddof=1) / np.sqrt(PAIRS)
        whole = (d.mean(axis=2) + half < -MARGIN) & (2 * p * (CRITERIA + 1) <= ALPHA)
        for name, outcome in {
            "no correction": (p <= ALPHA).any(axis=1),
            "Holm": rejected(p).any(axis=1),
            "Hochberg": hochberg(p),
            "gatekeeping": (mean_p[:, 0] <= ALPHA) & rejected(p).any(axis=1),
            "gate": (rejected(p) & rejected(2 * from_0)).any(axis=1),
            "max T": (least <= least[:, :1] + 1e-9).mean(axis=1) <= ALPHA,
            "before": whole.any(axis=1),
        }.items():
            failed.setdefault(name, []).append(outcome)
    return {name: float(np.concatenate(some).mean()) for name, some in failed.items()}


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--draws", type=int, default=4000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    rows, found = [], {}
    for world, drops in WORLDS.items():
        shares = failures(drops, options.draws, np.random.default_rng(options.seed))
        found[world] = shares
        print(f"{world}: " + ", ".join(f"{k} {v:.3f}" for k, v in shares.items()), flush=True)
    slack = 3 * np.sqrt(0.05 * 0.95 / options.draws)
    for world, shares in found.items():
        target, met = "", True
        if world in ("A against A", "all at the margin"):
            target, met = "gate <= 0.05", bool(shares["gate"] <= 0.05 + slack)
        elif world == "one worse by 0.2":
            target, met = "gate >= Hochberg - 0.02", shares["gate"] >= shares["Hochberg"] - 0.02
        listed = "; ".join(f"{k} {v:.3f}" for k, v in shares.items())
        rows.append(Row(f"gate fails, 9 criteria, 40 pairs, {world}", listed, target, met))
    return finish("gates", rows)


if __name__ == "__main__":
    sys.exit(main())
