"""Curves of distinct criteria."""

from __future__ import annotations

import pytest

from agenteval.errors import InputError
from agenteval.figures import unique_curve_grid, unique_curves
from agenteval.stats import UniqueCurve

HIGH = UniqueCurve((1, 2, 3), (2.0, 3.5, 5.0), (1.0, 3.0, 5.0), (3.0, 4.0, 5.0))
LOW = UniqueCurve((1, 2, 3), (1.0, 1.5, 2.0), (1.0, 1.0, 2.0), (1.0, 2.0, 2.0))


def test_lines_and_bands_are_the_curves():
    ax = unique_curves({0.7: LOW, 1.0: HIGH})
    first, second = ax.lines
    assert (list(first.get_xdata()), list(first.get_ydata())) == ([1, 2, 3], [2.0, 3.5, 5.0])
    assert list(second.get_ydata()) == [1.0, 1.5, 2.0]
    band = {tuple(point) for point in ax.collections[0].get_paths()[0].vertices}
    assert {(1, 1.0), (2, 3.0), (3, 5.0), (1, 3.0), (2, 4.0)} <= band


def test_labels_say_tau_and_n(words):
    assert words(unique_curves({0.7: LOW, 1.0: HIGH})) == [
        "τ = 1, equal names (n = 3 sets)", "τ = 0.7 (n = 3 sets)"
    ]  # fmt: skip


def test_counts_start_at_zero():
    ax = unique_curves({1.0: HIGH})
    assert ax.get_ylim()[0] == 0
    assert ax.get_xlim()[0] == 0


def test_grid_has_a_panel_per_tau_and_a_line_per_mode(words):
    short = UniqueCurve((1,), (2.0,), (2.0,), (2.0,))
    figure = unique_curve_grid({"task only": {1.0: HIGH, 0.7: LOW}, "with runs": {1.0: short}})
    assert [a.get_title(loc="left") for a in figure.axes] == ["τ = 1, equal names", "τ = 0.7"]
    assert [len(a.lines) for a in figure.axes] == [2, 1]
    assert words(figure) == ["task only (n = 3 sets)", "with runs (n = 1 set)"]


@pytest.mark.parametrize("draw", [unique_curves, unique_curve_grid])
def test_nothing_is_refused(draw):
    with pytest.raises(InputError, match="no curves"):
        draw({})


def test_more_curves_than_looks_are_refused():
    with pytest.raises(InputError, match="8 curves in one figure: at most 7"):
        unique_curves({i / 10: LOW for i in range(1, 9)})
