"""Planning: hand-computed sizes, inverses of each other, power by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from agenteval.stats import (
    cases_for_difference,
    cases_for_half_width,
    difference_variance,
    half_width,
    repeats_for_half_width,
    smallest_difference,
)

variances = st.floats(0.01, 5)


def test_half_width_by_hand() -> None:
    # t(.975, 3 df) = 3.182446, se = sqrt((3 + 2 / 2) / 4) = 1
    assert half_width(3, 2, 4, 2) == pytest.approx(3.182446, abs=1e-6)
    assert half_width(3, 2, 1, 2) is None


@given(variances, variances, st.integers(1, 10), st.floats(0.05, 2))
def test_cases_are_the_smallest_that_do(
    between: float, within: float, repeats: int, target: float
) -> None:
    cases = cases_for_half_width(between, within, repeats, target)
    assert cases is not None
    reached = half_width(between, within, cases, repeats)
    assert reached is not None
    assert reached <= target
    if cases > 2:
        before = half_width(between, within, cases - 1, repeats)
        assert before is not None
        assert before > target


def test_repeats_cannot_replace_cases() -> None:
    # 20 cases: t(19) = 2.093024, infinite repeats leave 2.093 * sqrt(1 / 20) = .468
    assert repeats_for_half_width(1, 2, 20, 0.46) is None
    enough = repeats_for_half_width(1, 2, 20, 0.5)
    assert enough == math.ceil(2 / (20 * (0.5 / 2.0930241) ** 2 - 1))
    assert repeats_for_half_width(1, 2, 1, 10) is None
    assert repeats_for_half_width(0, 0, 5, 0.1) == 1


def test_difference_by_hand() -> None:
    # (1.959964 + .841621)^2 = 7.848880; times (1 + 2 * .5 / 2) / .5^2 = 47.09
    assert cases_for_difference(1, 0.5, 2, 0.5) == 48
    assert cases_for_difference(1, 0.5, 2, -0.5) == 48
    assert smallest_difference(1, 0.5, 2, 48) == pytest.approx(math.sqrt(7.848880 * 1.5 / 48))
    assert smallest_difference(1, 0.5, 2, 1) is None


@given(variances, variances, st.integers(1, 10), st.floats(0.05, 2))
def test_the_two_questions_are_inverse(
    between: float, within: float, repeats: int, difference: float
) -> None:
    cases = max(2, cases_for_difference(between, within, repeats, difference))
    least = smallest_difference(between, within, repeats, cases)
    assert least is not None
    assert least <= difference * (1 + 1e-9)


def test_power_is_what_was_asked_for() -> None:
    cases = cases_for_difference(1, 0.6, 3, 0.4)
    rng = np.random.default_rng(2)
    true = 0.4 + rng.normal(size=(4000, cases))
    noise = rng.normal(size=(4000, cases, 2, 3)).mean(3) * math.sqrt(0.6)
    p = stats.ttest_1samp(true + noise[..., 0] - noise[..., 1], 0, axis=1).pvalue
    assert np.mean(p < 0.05) == pytest.approx(0.8, abs=0.03)


def test_difference_variance() -> None:
    assert difference_variance(1.2, 0.3, 0.6, 3) == pytest.approx(0.9)
    assert difference_variance(0.1, 0.3, 0.6, 3) == 0


def test_bad_input() -> None:
    with pytest.raises(ValueError, match="variances"):
        half_width(-1, 0, 5, 1)
    with pytest.raises(ValueError, match="repeats"):
        half_width(1, 1, 5, 0)
    with pytest.raises(ValueError, match="cases"):
        half_width(1, 1, 0, 1)
    with pytest.raises(ValueError, match="target"):
        cases_for_half_width(1, 1, 1, 0)
    with pytest.raises(ValueError, match="difference"):
        cases_for_difference(1, 1, 1, 0)
    with pytest.raises(ValueError, match="level"):
        cases_for_difference(1, 1, 1, 1, power=1)
