"""Curves of distinct criteria."""

from __future__ import annotations

import pytest

from agenteval.errors import InputError
from agenteval.report.plots import unique_curves
from agenteval.stats import UniqueCurve

HIGH = UniqueCurve((1, 2, 3), (2.0, 3.5, 5.0), (1.0, 3.0, 5.0), (3.0, 4.0, 5.0))
LOW = UniqueCurve((1, 2, 3), (1.0, 1.5, 2.0), (1.0, 1.0, 2.0), (1.0, 2.0, 2.0))


def test_lines_and_bands_are_the_curves():
    ax = unique_curves({"critic": {1.0: HIGH}, "other": {1.0: LOW}}).axes[0]
    first, second = ax.lines
    assert list(first.get_ydata()) == [2.0, 3.5, 5.0]
    assert list(first.get_xdata()) == pytest.approx([1, 2, 3], abs=0.05)
    assert list(second.get_ydata()) == [1.0, 1.5, 2.0]
    band = {round(float(y), 9) for _, y in ax.collections[0].get_paths()[0].vertices}
    assert band == {1.0, 3.0, 4.0, 5.0}
    assert ax.get_ylim()[0] == 0
    assert ax.get_xlim()[0] == 0


def test_grid_has_a_panel_per_tau_and_a_line_per_mode(words):
    short = UniqueCurve((1,), (2.0,), (2.0,), (2.0,))
    figure = unique_curves({"task only": {1.0: HIGH, 0.7: LOW}, "with runs": {1.0: short}})
    assert [a.get_title(loc="left") for a in figure.axes] == ["τ = 1, equal names", "τ = 0.7"]
    assert [len(a.lines) for a in figure.axes] == [2, 1]
    assert words(figure) == ["task only (n = 3 sets)", "with runs (n = 1 set)"]


def test_nothing_is_refused_and_so_are_more_curves_than_looks():
    with pytest.raises(InputError, match="no curves"):
        unique_curves({})
    with pytest.raises(InputError, match="at most 7"):
        unique_curves({str(i): {1.0: LOW} for i in range(8)})
