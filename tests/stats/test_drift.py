"""Drift of a judge: the exchange test by brute force, its error rates, and windows."""

from __future__ import annotations

from itertools import combinations, product

import numpy as np
import pytest

from agenteval.stats.drift import exchange_p, find_drift
from benchmarks.anchor import Judge, false_years, found

NAN = float("nan")


def by_enumeration(frozen: np.ndarray, new: np.ndarray, cases: list[int]) -> float:
    """Twice the smaller tail over all ways to exchange scores within runs."""
    ways, observed = [], 0.0
    for old, late, case in zip(frozen, new, cases, strict=True):
        late, weight = late[~np.isnan(late)], 1 / cases.count(case)
        values = np.concatenate([late, old])
        ways.append(
            [
                weight * (values[list(chosen)].mean() - np.delete(values, chosen).mean())
                for chosen in combinations(range(len(values)), len(late))
            ]
        )
        observed += ways[-1][0]
    totals = np.array([sum(way) for way in product(*ways)])
    return min(1.0, 2 * min((totals <= observed + 1e-9).mean(), (totals >= observed - 1e-9).mean()))


@pytest.mark.parametrize("seed", range(6))
def test_p_is_that_of_all_exchanges(seed: int) -> None:
    rng = np.random.default_rng(seed)
    frozen = rng.integers(0, 5, (6, 3)) / 4
    new = np.where(rng.random((6, 2)) < 0.3, NAN, frozen.min() - 2 + rng.integers(0, 2, (6, 2)) / 4)
    new[:, 0] = frozen[:, 0] - (1 + seed % 2)
    cases = [0, 0, 1, 2, 3, 4]
    assert exchange_p(frozen, new, np.array(cases)) == pytest.approx(
        by_enumeration(frozen, new, cases), rel=1e-6
    )


def test_nothing_to_compare_and_nothing_that_differs_are_no_drift() -> None:
    cases, frozen = np.arange(30), np.full((30, 2), 0.5)
    same = find_drift(frozen, np.full((30, 1), 0.5), cases, recent=1, alpha=1e-4)
    assert (same.shown, same.p, same.interval.mean) == (False, 1.0, 0.0)
    assert same.interval.low is not None
    assert same.interval.low < -0.1  # 30 equal answers do not prove that nothing has changed
    nothing = find_drift(frozen, np.full((30, 1), NAN), cases, recent=1, alpha=1e-4)
    assert (nothing.shown, nothing.interval.n, nothing.interval.low) == (False, 0, None)


def test_a_late_change_is_seen_in_the_last_looks_and_a_small_one_in_all() -> None:
    rng = np.random.default_rng(1)
    frozen, cases = rng.normal(0.5, 0.05, (60, 5)), np.arange(60)
    looks = rng.normal(0.5, 0.05, (60, 12))
    late = looks - 0.06 * (np.arange(12) >= 9)
    drift = find_drift(frozen, late, cases, recent=3, alpha=1e-4)
    assert (drift.shown, drift.looks) == (True, 3)
    assert drift.interval.low is not None
    assert drift.interval.high is not None
    assert drift.interval.low < -0.06 < drift.interval.high < 0
    small = find_drift(frozen, looks + 0.02, cases, recent=1, alpha=1e-4)
    assert (small.shown, small.looks) == (True, 12)


def test_error_rates_of_simulated_judges() -> None:
    assert false_years(Judge(0.10), 25) <= 4  # 5% of years; more than 4 of 25 has p < .01
    assert found(Judge(0.05), -0.1, 30, later=True).within >= 0.9
    assert found(Judge(0.10), 0.2, 30, later=False).within >= 0.9
