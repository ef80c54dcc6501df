"""Intervals of bounded means: exact where nearly all values are the same, t elsewhere."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from agenteval.stats.bounded import bounded_interval


def test_without_variation_the_rule_of_no_events() -> None:
    """Each of 20 cases ties: with 97.5 % at most 1 - .025^(1/20) of all cases do not."""
    most = 1 - 0.025 ** (1 / 20)
    found = bounded_interval(np.zeros(20), (-1.0, 1.0))
    assert (found.mean, found.low, found.high) == pytest.approx((0, -most, most))
    quarter = bounded_interval(np.full(20, 0.25), (-1.0, 1.0))
    assert quarter.low == pytest.approx(0.25 - most * 1.25)
    assert quarter.high == pytest.approx(0.25 + most * 0.75)


def test_few_differing_values_by_scipys_beta() -> None:
    values = np.array([0.0] * 36 + [-0.5] * 3 + [1.0])
    found = bounded_interval(values, (-1.0, 1.0))
    below, above = (stats.binomtest(k, 40).proportion_ci(0.95, method="exact").high for k in (3, 1))
    assert (found.low, found.high) == pytest.approx((-below, above))
    assert found.mean == pytest.approx(-0.5 / 40)


def test_enough_differing_values_are_a_t_interval() -> None:
    values = np.array([0.0] * 10 + [0.25, -0.5, 0.25, 0.5, -0.25, 1.0])
    found = bounded_interval(values, (-1.0, 1.0))
    expected = stats.ttest_1samp(values, 0).confidence_interval(0.95)
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


def test_yes_and_no_are_clopper_pearson() -> None:
    found = bounded_interval(np.array([1.0] * 17 + [0.0] * 3), (0.0, 1.0))
    expected = stats.binomtest(17, 20).proportion_ci(0.95, method="exact")
    assert (found.low, found.high) == pytest.approx((expected.low, expected.high))


@pytest.mark.parametrize("values", [[], [0.5]])
def test_fewer_than_two_values_have_no_interval(values: list[float]) -> None:
    found = bounded_interval(np.array(values), (0.0, 1.0))
    assert found.low is None
    assert found.reason


@pytest.mark.parametrize("loss", [0.02, 0.05, 0.1])
def test_rare_losses_are_covered_where_a_t_interval_is_not(loss: float) -> None:
    """1,000 samples of 20 cases that lose everything now and then; seeded."""
    rng = np.random.default_rng(5)
    samples = -(rng.random((1000, 20)) < loss).astype(float)
    found = [bounded_interval(sample, (-1.0, 1.0)) for sample in samples]
    covered = [f.low <= -loss <= f.high for f in found if f.low is not None and f.high is not None]
    assert len(covered) == 1000
    assert np.mean(covered) >= 0.95
