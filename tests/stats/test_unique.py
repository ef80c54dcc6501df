"""The curve of distinct criteria: exact expectation and resamples."""

from __future__ import annotations

import itertools
import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.stats import expected_unique, unique_curve

set_lists = st.lists(st.lists(st.integers(0, 8), max_size=6), min_size=1, max_size=7)


def counts_of(sets: list[list[int]]) -> list[int]:
    return [sum(name in s for s in sets) for name in sorted({n for s in sets for n in s})]


def brute(sets: list[list[int]]) -> list[float]:
    """Mean number of distinct names over all subsets of each size."""
    curve = []
    for size in range(1, len(sets) + 1):
        draws = list(itertools.combinations(sets, size))
        curve.append(float(Fraction(sum(len(set().union(*d)) for d in draws), len(draws))))
    return curve


@given(set_lists)
def test_expectation_equals_all_subsets(sets: list[list[int]]) -> None:
    assert expected_unique(counts_of(sets), len(sets)) == pytest.approx(brute(sets), abs=1e-9)


def test_expectation_is_exact_for_many_sets() -> None:
    n_sets, counts = 10_000, [1, 7, 5_000, 9_999, 10_000]
    curve = expected_unique(counts, n_sets)
    for m in (1, 2, 50, 4_999, 5_001, 9_999, 10_000):
        total = math.comb(n_sets, m)
        exact = sum(1 - Fraction(math.comb(n_sets - n, m), total) for n in counts)
        assert curve[m - 1] == pytest.approx(float(exact), rel=1e-11)


def _zipf(n: int) -> np.ndarray:
    weight = 1 / np.arange(1, n + 1)
    return np.asarray(weight / weight.sum())


@settings(deadline=None)
@given(set_lists, st.integers(0, 100))
def test_curve_rises_and_ends_at_everything(sets: list[list[int]], seed: int) -> None:
    curve = unique_curve(sets, resamples=9, rng=np.random.default_rng(seed))
    assert curve.m == tuple(range(1, len(sets) + 1))
    everything = len({c for s in sets for c in s})
    assert curve.mean[-1] == curve.low[-1] == curve.high[-1] == everything
    for band in (curve.mean, curve.low, curve.high):
        assert all(a <= b for a, b in itertools.pairwise(band))


def test_band_holds_the_percentiles_of_the_draws() -> None:
    # one set of 10, nine sets that repeat one of its members: at M = 1 the draw is 10 or 1
    sets = [list(range(10)), *([[0]] * 9)]
    curve = unique_curve(sets, resamples=2000, rng=np.random.default_rng(1))
    assert (curve.low[0], curve.high[0]) == (1, 10)
    assert curve.mean[0] == pytest.approx(1.9)
