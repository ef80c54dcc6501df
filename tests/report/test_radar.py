"""Radar: polygons, bands, whiskers, names at the spokes."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from agenteval.errors import InputError
from agenteval.report.plots import radar
from agenteval.stats.scores import score_table

T3 = 3.182446305284263  # 97.5 % point of t with 3 degrees of freedom


def polygons(ax):
    return {
        str(line.get_label()): line.get_ydata() for line in ax.lines if len(line.get_ydata()) > 1
    }


def test_polygons_are_the_means_and_closed(small):
    found = polygons(radar(small))
    assert found["a (n = 4 cases)"] == pytest.approx([0.5, 0.5, 0.5, 0.5])
    b = found["b (n = 4 cases)"]
    assert b[:2] == pytest.approx([0.5, 1.0])
    assert np.isnan(b[2])  # c3: opened, not zero
    assert b[3] == pytest.approx(0.5)


def test_whiskers_on_the_spokes_are_the_intervals(small):
    ax = radar(small)
    first = next(c for c in ax.collections if isinstance(c, LineCollection))
    ends = [(s[0][1], s[1][1]) for s in first.get_segments()]
    se = np.sqrt((0.3**2 + 0.1**2) * 2 / 3 / 4)  # .2 .4 .6 .8 around .5
    assert ends[0] == pytest.approx((0.5 - T3 * se, 0.5 + T3 * se))
    assert ends[1] == (0, 1)  # 0 0 1 1: 0.5 +- 0.92, clipped to the scale
    assert ends[2] == pytest.approx((0.5, 0.5))


def test_scale_and_missing_values_in_words(small, words):
    ax = radar(small)
    assert ax.get_ylim() == (0, 1)
    assert "b: no values on c3" in words(ax)


def test_spokes_run_clockwise_from_the_top_in_the_order_of_the_table(small):
    ax = radar(small)
    assert list(ax.get_xticks()) == pytest.approx([0, 2 * np.pi / 3, 4 * np.pi / 3])
    assert (ax.get_theta_direction(), ax.get_theta_offset()) == (-1, pytest.approx(np.pi / 2))
    assert [t.get_text() for t in ax.texts] == ["c1", "c2", "c3"]


@pytest.mark.parametrize("count", [3, 5, 9, 12])
def test_names_are_apart(count, overlapping):
    table = score_table(
        {
            "run": f"r{k}",
            "criterion": f"criterion {i} with a long name",
            "value": 0.5,
            "system": "s",
        }
        for i in range(count)
        for k in range(2)
    )
    assert overlapping(radar(table).texts) == []


def test_forty_names_follow_their_spokes_inside_the_figure(forty):
    ax = radar(forty)
    figure = ax.get_figure(root=True)
    figure.canvas.draw()
    turns = [t.get_rotation() for t in ax.texts]
    assert turns[:2] == pytest.approx([90, 81])  # 360 / 40 degrees apart
    assert all("\n" not in t.get_text() for t in ax.texts)
    frame = figure.bbox
    for text in ax.texts:
        box = text.get_window_extent(figure.canvas.get_renderer())
        assert frame.x0 <= box.x0
        assert box.x1 <= frame.x1
        assert frame.y0 <= box.y0
        assert box.y1 <= frame.y1


def test_fewer_than_three_criteria_are_refused(small):
    two = small.where(small.criterion.codes < 2)
    with pytest.raises(InputError, match="at least 3 criteria; the table has 2"):
        radar(two)


def test_plain_axes_are_refused_polar_ones_used(small):
    with pytest.raises(InputError, match="needs polar axes, not rectilinear"):
        radar(small, ax=Figure().add_subplot())
    ax = Figure().add_subplot(projection="polar")
    assert radar(small, ax=ax) is ax


def test_one_case_has_a_hollow_mark_and_no_interval(words):
    table = score_table(
        {"run": "r", "criterion": f"c{i}", "value": 0.5, "system": "s"} for i in range(3)
    )
    ax = radar(table)
    assert "hollow: no interval" in words(ax)
    hollow = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    assert len(hollow) == 1
    assert list(hollow[0].get_ydata()) == [0.5] * 3
    assert "s (n = 1 case)" in words(ax)
