"""Mann-Whitney against all divisions into groups and against scipy."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from agenteval.stats import mann_whitney
from agenteval.stats.vectors import Alternative

small = st.lists(st.integers(0, 3), min_size=1, max_size=5)
SIDES: list[Alternative] = ["two-sided", "greater", "less"]


def u_of(first: list[int], second: list[int]) -> float:
    return sum((a > b) + 0.5 * (a == b) for a in first for b in second)


@given(small, small)
def test_exact_counts_all_divisions(first: list[int], second: list[int]) -> None:
    pooled, m = first + second, len(first)
    seen = u_of(first, second)
    values = []
    for chosen in itertools.combinations(range(len(pooled)), m):
        rest = [pooled[i] for i in range(len(pooled)) if i not in chosen]
        values.append(u_of([pooled[i] for i in chosen], rest))
    less = sum(v <= seen for v in values) / len(values)
    greater = sum(v >= seen for v in values) / len(values)
    expected = {"less": less, "greater": greater, "two-sided": min(1, 2 * min(less, greater))}
    for side in SIDES:
        got = mann_whitney(first, second, alternative=side)
        assert got.u == seen
        assert got.p == pytest.approx(expected[side], abs=1e-12)


@pytest.mark.parametrize("side", SIDES)
def test_without_ties_equals_scipy_exact(side: Alternative) -> None:
    rng = np.random.default_rng(2)
    a, b = rng.normal(0.5, 1, 24), rng.normal(0, 1, 31)
    truth = stats.mannwhitneyu(a, b, alternative=side, method="exact")
    got = mann_whitney(a, b, alternative=side)
    assert (got.u, got.p) == pytest.approx((truth.statistic, truth.pvalue), rel=1e-9)


@pytest.mark.parametrize("side", SIDES)
def test_asymptotic_equals_scipy(side: Alternative) -> None:
    rng = np.random.default_rng(3)
    a, b = rng.integers(1, 6, 90), rng.integers(0, 5, 75)
    truth = stats.mannwhitneyu(a, b, alternative=side, method="asymptotic")
    got = mann_whitney(a.tolist(), b.tolist(), alternative=side)
    assert got.p == pytest.approx(truth.pvalue, rel=1e-9)
    assert "normal" in got.method


def test_small_groups_and_constants() -> None:
    nothing = mann_whitney([], [1.0])
    assert (nothing.p, nothing.u, nothing.reason) == (None, None, "a group is empty")
    equal = mann_whitney([1, 1, 1, 1], [1, 1, 1, 1])
    assert (equal.p, equal.reason) == (1.0, "all values are equal")
    few = mann_whitney([5, 6], [1, 2])
    assert few.p == pytest.approx(2 / math.comb(4, 2))
    assert few.reason is not None
    assert "too few" in few.reason
    # 3 + 3 reaches 1 / 20 one-sided, which is .05
    assert mann_whitney([4, 5, 6], [1, 2, 3], alternative="greater").reason is None
