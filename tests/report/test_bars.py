"""Success and failed bars: heights, whiskers, counts, what is said of empty groups."""

from __future__ import annotations

import math

import numpy as np
import pytest
from matplotlib.figure import Figure

from agenteval.errors import InputError
from agenteval.report.plots import success_bars
from agenteval.stats.scores import score_table

T1 = 12.706204736432095  # 97.5 % point of t with 1 degree of freedom
T3 = 3.182446305284263  # with 3


def bars_of(ax):
    """Heights per series, in the order drawn."""
    from matplotlib.container import BarContainer

    return {
        c.get_label(): [p.get_height() for p in c.patches]
        for c in ax.containers
        if isinstance(c, BarContainer)
    }


def whiskers_of(ax):
    """Lower and upper ends of every whisker, per series, upright bars."""
    from matplotlib.container import ErrorbarContainer

    return [
        [(s[0][1], s[1][1]) for s in c.lines[2][0].get_segments()]
        for c in ax.containers
        if isinstance(c, ErrorbarContainer)
    ]


def test_heights_are_the_means_of_the_groups(small):
    bars = bars_of(success_bars(small))
    assert list(bars) == [
        "a, success (n = 2 cases)", "a, failed (n = 2 cases)", "b, success (n = 4 cases)"
    ]  # fmt: skip
    assert bars["a, success (n = 2 cases)"] == pytest.approx([0.3, 0.0, 0.5])
    assert bars["a, failed (n = 2 cases)"] == pytest.approx([0.7, 1.0, 0.5])
    assert bars["b, success (n = 4 cases)"] == pytest.approx([0.5, 1.0])  # c3 has no values


def test_whiskers_are_95_percent_t_intervals_clipped_to_the_scale(small):
    success, failed, other = whiskers_of(success_bars(small))
    half = T1 * 0.1  # values .2 and .4: standard error .1
    assert success[0] == pytest.approx((max(0.3 - half, 0), min(0.3 + half, 1)))
    assert failed[1] == pytest.approx((1.0, 1.0))  # no variation
    se = math.sqrt(((0.5**2) * 2 / 3) / 4)  # values 1 .5 .5 0 around .5
    assert other[0] == pytest.approx((max(0.5 - T3 * se, 0), min(0.5 + T3 * se, 1)))


def test_what_is_empty_is_said_and_not_drawn(small, words):
    ax = success_bars(small)
    assert "b, failed: no cases" in words(ax)
    assert [t.get_text() for t in ax.texts] == ["none"]  # b on c3
    assert not any("b, failed" in label for label in bars_of(ax))


def test_one_case_is_a_hollow_point_with_a_note(words):
    rows = [
        {"run": str(i), "criterion": "c", "value": v, "success": s, "system": "a"}
        for i, (v, s) in enumerate([(0.25, True), (0.5, True), (0.75, False)])
    ]
    ax = success_bars(score_table(rows))
    bars = bars_of(ax)
    assert bars["a, failed (n = 1 case)"] == []
    lone = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    assert [list(line.get_ydata()) for line in lone] == [[0.75]]
    assert "hollow: no interval" in words(ax)


def test_unknown_success_is_one_bar_or_counted_in_words(small, words):
    rows = [{"run": str(i), "criterion": "c", "value": i / 4, "system": "a"} for i in range(3)]
    ax = success_bars(score_table(rows))
    assert bars_of(ax) == {"a, success unknown (n = 3 cases)": [pytest.approx(0.25)]}
    rows += [{"run": "x", "criterion": "c", "value": 1.0, "system": "a", "success": True}]
    rows += [{"run": "y", "criterion": "c", "value": 0.0, "system": "a", "success": True}]
    ax = success_bars(score_table(rows))
    assert bars_of(ax) == {"a, success (n = 2 cases)": [pytest.approx(0.5)]}
    assert "not shown: 3 runs of unknown success" in words(ax)
    assert "a, failed: no cases" in words(ax)


def test_counts_are_ranges_where_criteria_differ():
    rows = [
        {"run": str(i), "criterion": c, "value": 0.5 if c == "c1" or i else None, "system": "a",
         "success": True, "repeat": r}
        for i in range(3) for c in ("c1", "c2") for r in range(2)
    ]  # fmt: skip
    assert list(bars_of(success_bars(score_table(rows)))) == [
        "a, success (n = 2 to 3 cases, 4 to 6 ratings)"
    ]


def test_forty_criteria_lie_and_their_names_are_apart(forty, overlapping):
    ax = success_bars(forty)
    assert ax.get_yticklabels()[0].get_text() == "criterion-00"
    assert "\n" in ax.get_yticklabels()[1].get_text()  # wrapped
    assert ax.yaxis_inverted()  # the first criterion on top
    assert overlapping(ax.get_yticklabels()) == []


def test_upright_names_are_apart(small, overlapping):
    ax = success_bars(small)
    assert [t.get_text() for t in ax.get_xticklabels()] == ["c1", "c2", "c3"]
    assert overlapping(ax.get_xticklabels()) == []


def test_perturbed_ratings_are_left_out(small):
    rows = [
        {"run": str(i), "criterion": "c", "value": 1.0, "success": True, "system": "a"}
        for i in range(2)
    ] + [
        {"run": str(i), "criterion": "c", "value": 0.0, "success": True, "system": "a",
         "variant": "pad::1"}
        for i in range(2)
    ]  # fmt: skip
    assert bars_of(success_bars(score_table(rows))) == {"a, success (n = 2 cases)": [1.0]}


def test_draws_into_the_axes_given(small):
    ax = Figure().add_subplot()
    assert success_bars(small, ax=ax) is ax
    assert ax.get_legend() is not None


@pytest.mark.parametrize("without", [{"value": None}, {"value": 0.0, "status": "degenerate"}])
def test_a_criterion_without_any_value_is_named(words, without):
    rows = [
        {"run": str(i), "criterion": c, "value": 0.5, "label": "red", "success": True,
         "system": "a", **(without if c == "colour" else {})}
        for i in range(2) for c in ("c", "colour")
    ]  # fmt: skip
    ax = success_bars(score_table(rows))
    assert [t.get_text() for t in ax.get_xticklabels()] == ["c"]
    assert "without values: colour" in words(ax)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no ratings of original runs"),
        ([{"run": "r", "criterion": "c", "value": None, "status": "error:timeout"}],
         "the table has 0"),
        ([{"run": str(i), "criterion": "c", "value": 0.5, "system": str(i)} for i in range(8)],
         "8 systems in one figure: at most 7"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused_in_one_line(rows, message):
    with pytest.raises(InputError, match=message) as caught:
        success_bars(score_table(rows))
    assert "\n" not in str(caught.value)


def test_nan_never_reaches_an_artist(small):
    ax = success_bars(small)
    assert all(np.isfinite(h) for values in bars_of(ax).values() for h in values)


def test_the_legend_in_the_callers_axes_is_beneath_them(small):
    figure = Figure(layout="constrained")
    ax = success_bars(small, ax=figure.add_subplot())
    figure.draw_without_rendering()
    assert ax.get_legend().get_window_extent().y1 < ax.get_window_extent().y0


def test_bars_lie_where_the_callers_axes_are_narrow():
    rows = [
        {"run": str(i), "criterion": f"completeness{c}", "value": i / 4, "success": True}
        for c in "abcd"
        for i in range(3)
    ]
    table = score_table(rows)
    wide, narrow = Figure(figsize=(9, 4)).add_subplot(), Figure(figsize=(3, 4)).add_subplot()
    assert not success_bars(table, ax=wide).yaxis_inverted()
    assert success_bars(table, ax=narrow).yaxis_inverted()
