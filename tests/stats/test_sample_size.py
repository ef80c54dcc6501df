"""Planning: hand-computed sizes, inverses of each other, power by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import strategies as st
from scipy import stats

from agenteval.stats import cases_for_difference, smallest_difference

variances = st.floats(0.01, 5)


def test_difference_by_hand() -> None:
    # (1.959964 + .841621)^2 = 7.848880; times (1 + 2 * .5 / 2) / .5^2 = 47.09
    assert cases_for_difference(1, 0.5, 2, 0.5) == 48
    assert cases_for_difference(1, 0.5, 2, -0.5) == 48
    assert smallest_difference(1, 0.5, 2, 48) == pytest.approx(math.sqrt(7.848880 * 1.5 / 48))
    assert smallest_difference(1, 0.5, 2, 1) is None


def test_power_is_what_was_asked_for() -> None:
    cases = cases_for_difference(1, 0.6, 3, 0.4)
    rng = np.random.default_rng(2)
    true = 0.4 + rng.normal(size=(4000, cases))
    noise = rng.normal(size=(4000, cases, 2, 3)).mean(3) * math.sqrt(0.6)
    p = stats.ttest_1samp(true + noise[..., 0] - noise[..., 1], 0, axis=1).pvalue
    assert np.mean(p < 0.05) == pytest.approx(0.8, abs=0.03)


@pytest.mark.parametrize(
    ("given", "message"),
    [((-1, 0, 5, 1), "variances"), ((1, 1, 0, 1), "repeats"), ((1, 1, 1, 0), "difference")],
)
def test_bad_input(given: tuple[float, float, int, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        cases_for_difference(*given)
