"""Ties by rounding are ties; nothing else moves, whatever the size of the numbers."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from agenteval.stats.vectors import round_near_ties

FLOATS = st.floats(allow_nan=False, allow_infinity=False)


def test_a_third_that_came_about_in_two_ways_is_a_tie() -> None:
    found = round_near_ties(np.array([1 / 3, 1 - 2 / 3, 0.5]))
    assert found[0] == found[1]
    assert found.tolist() == pytest.approx([1 / 3, 1 / 3, 0.5], abs=1e-12)


@given(st.lists(FLOATS, max_size=6))
@example([2.2250738585e-313])  # its share of 1e-12 is below the smallest number there is
@example([5e-324, -5e-324])
@example([1.7976931348623157e308, -1.0])
def test_nothing_moves_by_more_than_the_tolerance(values: list[float]) -> None:
    data = np.array(values, dtype=np.float64)
    found = round_near_ties(data)
    assert np.isfinite(found).all()
    largest = np.abs(data).max(initial=0.0)
    assert (np.abs(found - data) <= largest * 1e-12).all()
    assert (np.sign(found) * np.sign(data) >= 0).all()
