"""Bands run by run and boxes over repeats."""

from __future__ import annotations

import numpy as np
import pytest
from matplotlib.container import ErrorbarContainer
from matplotlib.figure import Figure

from agenteval.errors import InputError
from agenteval.report.plots import repeat_boxes, repeat_lines
from agenteval.stats.scores import score_table

T1 = 12.706204736432095  # 97.5 % point of t with 1 degree of freedom
RNG = np.random.default_rng(5)
VALUES = RNG.integers(0, 5, size=(6, 4)) / 4  # repeats × cases; cases 0, 1 succeed


def table(values=VALUES, criteria=("c",)):
    return score_table(
        {"run": f"r{k}", "criterion": c, "value": None if np.isnan(v) else float(v), "repeat": r,
         "success": k < 2, "system": "s", "status": "error:timeout" if np.isnan(v) else "scored"}
        for c in criteria for r, line in enumerate(values) for k, v in enumerate(line)
    )  # fmt: skip


def lines_of(ax):
    return [line for line in ax.lines if line.get_linestyle() not in ("None", "none")]


def test_lines_are_the_group_means_of_every_repeat():
    (ax,) = repeat_lines(table()).axes
    success, failed = lines_of(ax)
    assert success.get_ydata() == pytest.approx(VALUES[:, :2].mean(axis=1))
    assert failed.get_ydata() == pytest.approx(VALUES[:, 2:].mean(axis=1))
    assert np.round(success.get_xdata()) == pytest.approx(np.arange(6))


def test_band_and_whiskers_are_the_interval_over_cases():
    (ax,) = repeat_lines(table()).axes
    whiskers = next(c for c in ax.containers if isinstance(c, ErrorbarContainer))
    for r, segment in enumerate(whiskers.lines[2][0].get_segments()):
        pair = VALUES[r, :2]
        half = T1 * abs(pair[0] - pair[1]) / 2  # standard error of two values
        expected = np.clip([pair.mean() - half, pair.mean() + half], 0, 1)
        assert segment[:, 1] == pytest.approx(expected)
    band = ax.collections[0].get_paths()[0].vertices[:, 1]
    assert set(np.round(segment[:, 1], 9)) <= set(np.round(band, 9))


def test_a_repeat_without_values_is_a_gap():
    values = VALUES.copy()
    values[2, :2] = np.nan
    success, failed = lines_of(repeat_lines(table(values)).axes[0])
    assert np.flatnonzero(np.isnan(success.get_ydata())).tolist() == [2]
    assert not np.isnan(failed.get_ydata()).any()


def test_one_repeat_of_one_case_is_a_hollow_point(words):
    (ax,) = repeat_lines(table(VALUES[:1, :1])).axes
    assert "hollow: no interval" in words(ax)
    assert "failed: no cases" in words(ax)


def test_counts_in_the_legend(words):
    assert words(repeat_lines(table())) == [
        "success (n = 2 cases, 12 ratings)", "failed (n = 2 cases, 12 ratings)"
    ]  # fmt: skip


def test_an_unknown_criterion_is_refused():
    with pytest.raises(InputError, match="no ratings of original runs"):
        repeat_lines(table().of(criterion="other"))


def test_grid_has_a_panel_per_criterion():
    figure = repeat_lines(table(criteria=("c1", "c2", "c3", "c4")))
    assert [a.get_title(loc="left") for a in figure.axes] == ["c1", "c2", "c3", "c4"]
    for ax in figure.axes:
        assert lines_of(ax)[0].get_ydata() == pytest.approx(VALUES[:, :2].mean(axis=1))


def boxes_of(ax):
    """Per box: median, lower and upper edge, ends of the whiskers."""
    medians = [
        line for line in ax.lines if line.get_linewidth() == 1.4 and len(line.get_ydata()) == 2
    ]
    return [m.get_ydata()[0] for m in medians]


def test_boxes_have_the_quartiles_of_the_means_over_repeats():
    ax = repeat_boxes(table())
    for group, box, median in zip(
        (VALUES[:, :2], VALUES[:, 2:]), ax.patches, boxes_of(ax), strict=True
    ):
        means = group.mean(axis=1)
        edges = box.get_path().vertices[:, 1]
        assert median == pytest.approx(np.percentile(means, 50))
        assert edges.min() == pytest.approx(np.percentile(means, 25))
        assert edges.max() == pytest.approx(np.percentile(means, 75))


def test_boxes_carry_the_interval_over_cases():
    ax = repeat_boxes(table())
    whiskers = [c for c in ax.containers if isinstance(c, ErrorbarContainer)]
    by_case = VALUES[:, :2].mean(axis=0)  # six repeats each: means of cases are enough
    half = T1 * abs(by_case[0] - by_case[1]) / 2
    expected = np.clip([by_case.mean() - half, by_case.mean() + half], 0, 1)
    assert whiskers[0].lines[2][0].get_segments()[0][:, 1] == pytest.approx(expected)


def test_few_repeats_are_points(words):
    few = VALUES[:4]
    ax = repeat_boxes(table(few))
    assert ax.patches == [] or len(ax.patches) == 0
    points = [line for line in ax.lines if line.get_marker() == "o"]
    assert points[0].get_ydata() == pytest.approx(few[:, :2].mean(axis=1))
    assert "fewer than 5 values: points instead of a box" in words(ax)
    assert "success (4 repeats; n = 2 cases, 8 ratings)" in words(ax)


def test_an_empty_group_is_said(words):
    ax = repeat_boxes(table(VALUES[:, :2]))
    assert "failed: no cases" in words(ax)
    assert len(ax.patches) == 1


def test_forty_criteria_lie_apart(forty, overlapping):
    ax = repeat_boxes(forty)
    assert overlapping(ax.get_yticklabels()) == []
    assert len(ax.get_yticks()) == 40


def test_they_draw_into_the_axes_given():
    figure = Figure()
    one, two = figure.subplots(1, 2)
    assert repeat_lines(table(), ax=one) is figure
    assert repeat_boxes(table(), ax=two) is two
