"""Rank correlation and first component: scipy, scikit-learn, missing ratings, coverage."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from agenteval.stats import correlation_matrix, first_component, spearman

several = st.lists(st.tuples(st.integers(0, 4), st.integers(0, 4)), min_size=3, max_size=30)


@given(several)
def test_equals_scipy_with_ties(pairs: list[tuple[int, int]]) -> None:
    a, b = [x for x, _ in pairs], [y for _, y in pairs]
    got = spearman(a, b)
    if len(set(a)) == 1 or len(set(b)) == 1:
        assert (got.mean, got.reason) == (None, "no variation in one of the two")
        return
    assert got.mean is not None
    assert got.mean == pytest.approx(stats.spearmanr(a, b).statistic, abs=1e-12)
    assert spearman(b, a).mean == got.mean
    assert spearman([math.exp(v) for v in a], [-v for v in b]).mean == pytest.approx(-got.mean)
    if got.low is not None and got.high is not None:
        assert -1 <= got.low < got.mean < got.high <= 1


@pytest.mark.parametrize("rho", [0.0, 0.5, 0.8])
def test_coverage(rho: float) -> None:
    rng = np.random.default_rng(4)
    truth = 6 / math.pi * math.asin(rho / 2)  # Spearman's rho of a normal pair
    hit = 0
    for _ in range(1500):
        x, y = rng.normal(size=(2, 30))
        got = spearman(x, rho * x + math.sqrt(1 - rho**2) * y)
        assert got.low is not None
        assert got.high is not None
        hit += got.low <= truth <= got.high
    assert hit / 1500 >= 0.93


def test_small_and_bad() -> None:
    assert spearman([1, 2], [1, 2]).reason == "fewer than three pairs"
    assert spearman([], []).mean is None
    short = spearman([1, 2, 3], [1, 3, 2])
    assert (short.mean, short.low) == pytest.approx((0.5, None))
    perfect = spearman(range(12), range(12))
    assert (perfect.mean, perfect.low, perfect.reason) == (1, None, "perfect order: no interval")
    with pytest.raises(ValueError, match="do not match"):
        spearman([1], [1, 2])
    with pytest.raises(ValueError, match="finite"):
        spearman([1, math.nan], [1, 2])


def test_matrix_uses_the_rows_that_both_have() -> None:
    nan = math.nan
    table = np.array([[1, 2, 5], [2, 1, 5], [3, 4, 5], [4, nan, 5], [nan, 5, 5], [0, 0, 5.0]])
    got = correlation_matrix(table)
    assert got.n == ((5, 4, 5), (4, 5, 5), (5, 5, 6))
    truth = stats.spearmanr([1, 2, 3, 0], [2, 1, 4, 0]).statistic
    assert got.rho[0][1] == got.rho[1][0] == pytest.approx(truth)
    assert (got.rho[0][0], got.rho[0][2], got.rho[2][2]) == pytest.approx((1, None, None))
    plain = correlation_matrix(table, kind="pearson")
    assert plain.rho[0][1] == pytest.approx(np.corrcoef([1, 2, 3, 0], [2, 1, 4, 0])[0, 1])
    assert correlation_matrix(np.empty((0, 2))).rho == ((None, None), (None, None))


def test_first_component_equals_scikit_learn() -> None:
    from sklearn.decomposition import PCA

    rng = np.random.default_rng(0)
    factor = rng.normal(size=(40, 1))
    table = factor * [1, 2, 0.5, 1] + rng.normal(size=(40, 4))
    scaled = (table - table.mean(0)) / table.std(0)
    got = first_component(table)
    assert got.share == pytest.approx(PCA().fit(scaled).explained_variance_ratio_[0])
    assert (got.rows, got.columns) == (40, (0, 1, 2, 3))


def test_first_component_at_the_ends() -> None:
    line = np.arange(6.0)
    assert first_component(np.column_stack([line, -line, 2 * line])).share == pytest.approx(1)
    square = np.array([[1, 1], [1, -1], [-1, 1], [-1, -1.0]])
    assert first_component(square).share == pytest.approx(0.5)
    constant = first_component(np.column_stack([line, np.ones(6)]))
    assert (constant.share, constant.columns) == (None, (0,))
    assert constant.reason == "1 columns vary: at least 2 needed"
    holes = square.copy()
    holes[:2, 0] = math.nan
    assert first_component(holes).reason == "2 rows are complete: at least 3 needed"
    rng = np.random.default_rng(1)
    shares = [first_component(rng.normal(size=(20, 6))).share or 0 for _ in range(300)]
    assert np.mean(shares) == pytest.approx(0.30, abs=0.015)  # as the docstring says
