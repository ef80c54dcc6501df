"""Curves of distinct criteria."""

from __future__ import annotations

import pytest

from agenteval.errors import InputError
from agenteval.report.plots import unique_curves
from agenteval.stats import UniqueCurve

HIGH = UniqueCurve((1, 2, 3), (2.0, 3.5, 5.0), (1.0, 3.0, 5.0), (3.0, 4.0, 5.0))
LOW = UniqueCurve((1, 2, 3), (1.0, 1.5, 2.0), (1.0, 1.0, 2.0), (1.0, 2.0, 2.0))


def test_lines_and_bands_are_the_curves(words):
    ax = unique_curves({0.7: LOW, 1.0: HIGH})
    first, second = ax.lines
    assert list(first.get_ydata()) == [2.0, 3.5, 5.0]
    assert list(first.get_xdata()) == pytest.approx([1, 2, 3], abs=0.05)
    assert list(second.get_ydata()) == [1.0, 1.5, 2.0]
    band = {round(float(y), 9) for _, y in ax.collections[0].get_paths()[0].vertices}
    assert band == {1.0, 3.0, 4.0, 5.0}
    assert (ax.get_xlim()[0], ax.get_ylim()[0]) == (0, 0)
    assert words(ax) == ["τ = 1, equal names (n = 3 sets)", "τ = 0.7 (n = 3 sets)"]


def test_nothing_is_refused_and_so_are_more_curves_than_looks():
    with pytest.raises(InputError, match="no curves"):
        unique_curves({})
    with pytest.raises(InputError, match="at most 7"):
        unique_curves({i / 10: LOW for i in range(1, 9)})
