"""ICC(1,1): the table of Shrout and Fleiss, analysis of variance by scipy, coverage, odd input."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from agenteval.stats import icc

FOLDER = Path(__file__).resolve().parents[3] / "shared/reference/stats/prometheus"
# Shrout and Fleiss 1979, table 2: six targets, four judges
TARGETS = [[9, 2, 5, 8], [6, 1, 3, 2], [8, 4, 6, 8], [7, 1, 2, 6], [10, 5, 6, 9], [6, 2, 4, 7]]


def test_shrout_and_fleiss() -> None:
    """The coefficient as printed there; the ends as the R package psych prints them."""
    got = icc(TARGETS)
    assert tuple(f"{v:.2f}" for v in (got.mean, got.low, got.high)) == ("0.17", "-0.13", "0.72")
    assert (got.n, got.n_clusters, got.se, got.reason) == (24, 6, None, None)


ratings = st.integers(2, 4).flatmap(
    lambda k: st.lists(st.lists(st.integers(1, 6), min_size=k, max_size=k), min_size=2, max_size=8)
)


@given(ratings)
def test_equals_one_way_analysis_of_variance(table: list[list[int]]) -> None:
    data = np.array(table, dtype=float)
    if (np.ptp(data, axis=1) == 0).all():
        return
    ratio = float(stats.f_oneway(*data).statistic)  # units as groups
    got = icc(data)
    assert got.mean == pytest.approx((ratio - 1) / (ratio + data.shape[1] - 1), abs=1e-9)


def test_coverage() -> None:
    """30 units with SD 1, 4 raters, errors with SD 0.8."""
    rng, truth, hits = np.random.default_rng(17), 1 / 1.64, 0
    for _ in range(1000):
        got = icc(rng.normal(size=(30, 1)) + 0.8 * rng.normal(size=(30, 4)))
        assert got.low is not None
        assert got.high is not None
        hits += got.low <= truth <= got.high
    assert 0.925 <= hits / 1000 <= 0.975


@pytest.mark.parametrize(
    ("table", "reason"),
    [
        (np.empty((0, 2)), "no ratings"),
        ([[math.nan] * 2] * 3, "no ratings"),
        ([[1], [2]], "one rater"),
        ([[1, 2]], "one unit"),
        ([[1, 2], [3, math.nan], [3, 3]], "needs complete data: 1 of 3 units have missing ratings"),
        ([[0.1, 0.1], [0.1, 0.1]], "no variation"),
    ],
)
def test_undefined(table: list[list[float]], reason: str) -> None:
    got = icc(table)
    assert (got.mean, got.low, got.high, got.reason) == (None, None, None, reason)


def test_repeats_that_never_differ() -> None:
    got = icc([[1, 1, 1], [2, 2, 2], [4, 4, 4]])
    assert (got.mean, got.low, got.high) == (1, 1, 1)
    assert got.reason == "no variation within units"


def test_units_that_do_not_differ() -> None:
    got = icc([[1, 2], [2, 1], [1, 2]])
    assert got.mean is not None
    assert got.mean < 0
    assert (got.low, got.reason) == (None, "no variation between units: no interval")
