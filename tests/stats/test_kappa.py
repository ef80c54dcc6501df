"""Kappas and AC1: published tables, scikit-learn, definitions over pairs, odd input."""

from __future__ import annotations

import itertools
import math
import warnings
from pathlib import Path
from typing import Any, get_args

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binomtest
from sklearn.metrics import cohen_kappa_score

from agenteval.stats import Bootstrap, Kappa, cohen_kappa, gwet_ac2
from agenteval.stats.kappa import Weights

FOLDER = Path(__file__).resolve().parents[3] / "shared/reference/stats"
reference = pytest.mark.skipif(not FOLDER.exists(), reason="reference data not present")
nan = math.nan


def how(**options: Any) -> Bootstrap:
    return Bootstrap(np.random.default_rng(1), **options)


def by_cells(table: list[list[int]]) -> list[list[float]]:
    """Units of two raters from a contingency table."""
    return [
        [float(i), float(j)]
        for i, row in enumerate(table)
        for j, m in enumerate(row)
        for _ in range(m)
    ]


def test_natural_pairs_judged_in_both_orders() -> None:
    # 100 units, margins 42 and 44 of class 1, 6 unlike: the only table with kappa .877651
    got = by_cells([[40, 2], [4, 54]])
    assert cohen_kappa(got).coefficient.mean == pytest.approx(0.877651, abs=2e-6)
    ac1 = gwet_ac2(got, weights="none")
    assert ac1.coefficient.mean == pytest.approx(0.882307, abs=2e-6)
    assert ac1.agreement.mean == 0.94
    assert ac1.agreement.method == "Wilson"


@pytest.mark.parametrize("level", [0.8, 0.99])
def test_raw_agreement_has_the_level_asked_for(level: float) -> None:
    got = cohen_kappa(by_cells([[40, 2], [4, 54]]), bootstrap=how(level=level)).agreement
    expected = binomtest(94, 100).proportion_ci(level, method="wilson")
    assert (got.low, got.high) == pytest.approx((expected.low, expected.high), abs=1e-9)


def test_the_paradox() -> None:
    # 118 of 125 agree, one class rare: kappa is low, AC1 is not. By hand: p_o = .944,
    # p_e = (122 * 121 + 3 * 4) / 125^2 = .945536; pi = 243/250, AC1 p_e = 2 * .972 * .028 = .054432
    table = by_cells([[118, 4], [3, 0]])
    kappa, ac1 = cohen_kappa(table), gwet_ac2(table, weights="none")
    assert kappa.coefficient.mean == pytest.approx((0.944 - 0.945536) / (1 - 0.945536), abs=1e-9)
    assert ac1.coefficient.mean == pytest.approx((0.944 - 0.054432) / (1 - 0.054432), abs=1e-9)
    assert kappa.agreement == ac1.agreement


code = st.integers(0, 3).map(float)
couples = st.lists(st.tuples(code, code), min_size=1, max_size=20)


@given(couples, st.sampled_from(get_args(Weights)))
def test_cohen_equals_scikit_learn(pairs: list[tuple[float, float]], weights: Weights) -> None:
    first, second = zip(*pairs, strict=True)
    got = cohen_kappa(pairs, weights=weights, categories=range(4)).coefficient
    if len(set(first) | set(second)) == 1:
        assert (got.mean, got.reason) == (None, "no variation")
        return
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        known = cohen_kappa_score(
            first, second, labels=[0, 1, 2, 3], weights=None if weights == "none" else weights
        )
    assert got.mean == pytest.approx(known, abs=1e-9)


tables = st.integers(2, 4).flatmap(
    lambda k: st.lists(
        st.lists(st.one_of(code, st.just(nan)), min_size=k, max_size=k), min_size=1, max_size=9
    )
)


@given(tables)
def test_ac1_equals_the_definition(table: list[list[float]]) -> None:
    got = gwet_ac2(table, weights="none", categories=range(4)).coefficient.mean
    units = [[v for v in row if not math.isnan(v)] for row in table]
    units = [u for u in units if u]
    pairs = [[a == b for a, b in itertools.combinations(u, 2)] for u in units if len(u) > 1]
    if not pairs:
        assert got is None
        return
    observed = float(np.mean([np.mean(p) for p in pairs]))
    share = [float(np.mean([u.count(c) / len(u) for u in units])) for c in range(4)]
    chance = sum(p * (1 - p) for p in share) / 3
    assert got == pytest.approx((observed - chance) / (1 - chance), abs=1e-9)


def test_unused_levels_count_for_distances_and_chance() -> None:
    table = [[0, 0], [0, 3], [3, 3], [1, 1], [1, 3], [0, 0]]
    near, far = (
        cohen_kappa(table, weights="linear"),
        cohen_kappa(table, weights="linear", categories=[0, 1, 2, 3]),
    )
    assert near.coefficient.mean != pytest.approx(far.coefficient.mean, abs=0.01)
    few, many = (gwet_ac2(table, weights="none", categories=c) for c in ([0, 1, 3], range(10)))
    assert (few.coefficient.mean or 0) < (many.coefficient.mean or 0)  # less agreement by chance


def test_bootstrap_interval_of_kappa_is_near_the_delta_method() -> None:
    # simplest large-sample error of kappa at two classes of one half each: sqrt(1 - k^2) / sqrt(n)
    table = by_cells([[80, 20], [20, 80]])
    got = cohen_kappa(table, bootstrap=how(resamples=4000)).coefficient
    assert got.mean == pytest.approx(0.6)
    assert got.se == pytest.approx(math.sqrt((1 - 0.36) / 200), rel=0.05)
    assert (got.low, got.high) == pytest.approx((0.6 - 0.111, 0.6 + 0.111), abs=0.015)
    assert (got.n, got.n_clusters) == (200, None)


def test_clusters_are_resampled_and_counted() -> None:
    table = by_cells([[8, 2], [2, 8]]) * 10
    names = [i for _ in range(10) for i in range(20)]  # ten copies of twenty cases
    once = cohen_kappa(by_cells([[8, 2], [2, 8]]), bootstrap=how()).coefficient
    for measure in (cohen_kappa, gwet_ac2):
        got: Kappa = measure(table, clusters=names, bootstrap=how())  # type: ignore[operator]
        assert got.coefficient.n_clusters == got.agreement.n_clusters == 20
        assert got.coefficient.se == pytest.approx(once.se, rel=0.15)


@pytest.mark.parametrize("measure", [cohen_kappa, gwet_ac2])
def test_undefined(measure: Any) -> None:
    for table in ([[nan, nan]] * 3, np.empty((0, 2))):
        got = measure(table, bootstrap=how())
        assert (got.coefficient.mean, got.coefficient.reason) == (None, "no unit with two ratings")
        assert got.agreement.mean is None
    constant = measure([[2, 2]] * 6, bootstrap=how())
    assert (constant.coefficient.mean, constant.coefficient.reason) == (None, "no variation")
    assert constant.agreement.mean == 1  # raw agreement stands beside it
    single = measure([[0, 1]], bootstrap=how())
    assert (single.coefficient.low, single.agreement.mean) == (None, 0)


def test_constant_ratings_of_a_longer_scale() -> None:
    assert gwet_ac2([[2, 2]] * 6, categories=[1, 2, 3]).coefficient.mean == 1
    assert cohen_kappa([[2, 2]] * 6, categories=[1, 2, 3]).coefficient.reason == "no variation"
