"""Charts of ratings: drawn are their means and intervals, and what is missing is said."""

from __future__ import annotations

import math

import numpy as np
import pytest
from matplotlib.collections import LineCollection
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure
from scipy.stats import spearmanr

from agenteval.errors import InputError
from agenteval.records.verification import Check, Effect, SystemFigure, Verification
from agenteval.reporting.plots import (
    correlation_map,
    coverage_bars,
    dose_lines,
    effect_forest,
    judge_points,
    perturbation_bars,
    radar,
    repeat_boxes,
    repeat_lines,
    success_bars,
    unique_curves,
)
from agenteval.stats import UniqueCurve
from agenteval.stats.scores import score_table

# 97.5 % points of t with 1, 2, 3 and 9 degrees of freedom.
T1, T2, T3, T9 = 12.706204736432095, 4.302652729696142, 3.182446305284263, 2.2621571627409915


def bars_of(ax):
    """Lengths by series, in the order drawn."""
    return {
        c.get_label(): [p.get_width() for p in c.patches]
        for c in ax.containers
        if isinstance(c, BarContainer)
    }


def whiskers_of(ax, axis=0):
    """Lower and upper ends of every whisker, per series."""
    return [
        [(s[0][axis], s[1][axis]) for s in c.lines[2][0].get_segments()]
        for c in ax.containers
        if isinstance(c, ErrorbarContainer)
    ]


def names_of(ax):
    return [t.get_text() for t in ax.get_yticklabels()]


def ratings(*values, **more):
    """One run of one case for each value."""
    return [
        {"run": str(i), "criterion": "c", "value": v, "system": "a", **more}
        for i, v in enumerate(values)
    ]


# Bars of successful and failed runs


def test_bars_are_the_means_of_the_groups_and_whiskers_their_t_intervals(small, words):
    ax = success_bars(small)
    bars = bars_of(ax)
    assert list(bars) == [
        "a, success (n = 2 cases)",
        "a, failed (n = 2 cases)",
        "b, success (n = 4 cases)",
    ]
    assert bars["a, success (n = 2 cases)"] == pytest.approx([0.3, 0.0, 0.5])
    assert bars["a, failed (n = 2 cases)"] == pytest.approx([0.7, 1.0, 0.5])
    assert bars["b, success (n = 4 cases)"] == pytest.approx([0.5, 1.0])  # c3 has no values
    success, failed, other = whiskers_of(ax)
    half = T1 * 0.1  # values .2 and .4: standard error .1
    assert success[0] == pytest.approx((max(0.3 - half, 0), min(0.3 + half, 1)))
    assert failed[1] == pytest.approx((1.0, 1.0))  # no variation
    se = math.sqrt(((0.5**2) * 2 / 3) / 4)  # values 1 .5 .5 0 around .5
    assert other[0] == pytest.approx((max(0.5 - T3 * se, 0), min(0.5 + T3 * se, 1)))
    assert "b, failed: no cases" in words(ax)
    assert [t.get_text() for t in ax.texts] == ["none"]  # b on c3


def test_one_case_is_a_hollow_point_with_a_note(words):
    rows = [*ratings(0.25, 0.75, success=True), *ratings(0.5, success=False, run="x")]
    ax = success_bars(score_table(rows))
    assert bars_of(ax) == {"a, success (n = 2 cases)": [0.5], "a, failed (n = 1 case)": []}
    (hollow,) = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    assert list(hollow.get_xdata()) == [0.5]
    assert "hollow: no interval" in words(ax)


def test_unknown_success_is_one_bar_or_counted_in_words(words):
    unknown = ratings(0.0, 0.25, 0.5)
    ax = success_bars(score_table(unknown))
    assert bars_of(ax) == {"a, success unknown (n = 3 cases)": [pytest.approx(0.25)]}
    known = [row | {"run": f"x{row['run']}"} for row in ratings(1.0, 0.0, success=True)]
    ax = success_bars(score_table([*unknown, *known]))
    assert bars_of(ax) == {"a, success (n = 2 cases)": [pytest.approx(0.5)]}
    assert "not shown: 3 runs of unknown success" in words(ax)
    assert "a, failed: no cases" in words(ax)


@pytest.mark.parametrize("without", [{"value": None}, {"value": 0.0, "status": "degenerate"}])
def test_a_criterion_without_any_value_is_named(words, without):
    rows = ratings(0.5, 0.5, success=True)
    ax = success_bars(score_table(rows + [r | {"criterion": "colour"} | without for r in rows]))
    assert names_of(ax) == ["c"]
    assert "without values: colour" in words(ax)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([], "no ratings of original runs"),
        (ratings(None, status="error:timeout"), "the table has 0"),
        (
            [row | {"system": row["run"]} for row in ratings(*[0.5] * 8)],
            "8 systems in one figure: at most 7",
        ),
    ],
)
def test_what_cannot_be_drawn_is_refused_in_one_line(rows, message):
    with pytest.raises(InputError, match=message) as caught:
        success_bars(score_table(rows))
    assert "\n" not in str(caught.value)


def test_they_draw_into_the_axes_given(small):
    figure = Figure(figsize=(30, 6), layout="constrained")
    axes = iter(figure.subplots(1, 5))
    for draw in (success_bars, repeat_boxes, coverage_bars, correlation_map):
        ax = next(axes)
        assert draw(small, ax=ax) is ax
    assert repeat_lines(small.of(criterion="c1"), ax=next(axes)) is figure
    figure.draw_without_rendering()
    first = figure.axes[0]
    assert first.get_legend().get_window_extent().y1 < first.get_window_extent().y0
    with pytest.raises(InputError, match="needs polar axes, not rectilinear"):
        radar(small, ax=first)
    polar = Figure().add_subplot(projection="polar")
    assert radar(small, ax=polar) is polar


# Radar


def test_polygons_are_the_means_closed_and_opened_where_one_is_missing(small, words):
    ax = radar(small)
    lines = {str(x.get_label()): x.get_ydata() for x in ax.lines if len(x.get_ydata()) > 1}
    assert lines["a (n = 4 cases)"] == pytest.approx([0.5, 0.5, 0.5, 0.5])
    b = lines["b (n = 4 cases)"]
    assert [b[0], b[1], b[3]] == pytest.approx([0.5, 1.0, 0.5])
    assert np.isnan(b[2])  # c3
    assert "b: no values on c3" in words(ax)
    first = next(c for c in ax.collections if isinstance(c, LineCollection))
    ends = [(s[0][1], s[1][1]) for s in first.get_segments()]
    se = np.sqrt((0.3**2 + 0.1**2) * 2 / 3 / 4)  # .2 .4 .6 .8 around .5
    assert ends[0] == pytest.approx((0.5 - T3 * se, 0.5 + T3 * se))
    assert ends[1:] == [(0, 1), pytest.approx((0.5, 0.5))]  # 0 0 1 1: clipped to the scale


def test_forty_names_follow_their_spokes_inside_the_figure(forty):
    ax = radar(forty)
    figure = ax.get_figure(root=True)
    figure.canvas.draw()
    assert [t.get_rotation() for t in ax.texts[:2]] == pytest.approx([90, 81])  # 360 / 40 apart
    boxes = [t.get_window_extent(figure.canvas.get_renderer()) for t in ax.texts]
    frame = figure.bbox
    assert min(b.x0 for b in boxes) >= frame.x0
    assert max(b.x1 for b in boxes) <= frame.x1
    assert min(b.y0 for b in boxes) >= frame.y0
    assert max(b.y1 for b in boxes) <= frame.y1


def test_fewer_than_three_criteria_are_no_radar_and_one_has_no_correlation(small):
    with pytest.raises(InputError, match="at least 3 criteria; the table has 2"):
        radar(small.where(small.criterion.codes < 2))
    with pytest.raises(InputError, match="at least 2 criteria; the table has 1"):
        correlation_map(small.of(criterion="c1"))


# Correlation

VALUES = np.random.default_rng(11).integers(0, 5, size=(3, 12, 2)) / 4  # criteria, runs, repeats


def correlated(values=VALUES):
    return score_table(
        {
            "run": f"r{k}",
            "criterion": f"c{i}",
            "repeat": r,
            "value": None if np.isnan(v) else float(v),
        }
        for i, block in enumerate(values)
        for k, line in enumerate(block)
        for r, v in enumerate(line)
    )


def cells(ax):
    return {tuple(int(p) for p in t.get_position()): t.get_text() for t in ax.texts}


def test_cells_hold_scipys_correlation_of_the_means_of_runs():
    means = VALUES.mean(axis=2)
    ax = correlation_map(correlated())
    assert set(cells(ax)) == {(0, 1), (0, 2), (1, 2)}  # the lower half
    for j, i in cells(ax):
        rho = spearmanr(means[i], means[j]).statistic
        assert float(cells(ax)[j, i]) == pytest.approx(rho, abs=0.005)
        assert np.asarray(ax.images[0].get_array())[i, j] == pytest.approx(rho)
    assert ax.get_title(loc="left").endswith("n = 12 runs")


def test_constant_criteria_are_undefined_and_perfect_ones_one(words):
    values = VALUES.copy()
    values[2] = 0.5
    values[1] = 1 - values[0]
    ax = correlation_map(correlated(values))
    assert cells(ax) == {(0, 1): "-1.00", (0, 2): "–", (1, 2): "–"}
    assert any(text.startswith("–: undefined") for text in words(ax))


# Repeats

REPEATS = np.random.default_rng(5).integers(0, 5, size=(6, 4)) / 4  # × cases; 0, 1 succeed


def repeated(values=REPEATS, criteria=("c",)):
    return score_table(
        {
            "run": f"r{k}",
            "criterion": c,
            "value": None if np.isnan(v) else float(v),
            "repeat": r,
            "success": k < 2,
            "system": "s",
            "status": "error:timeout" if np.isnan(v) else "scored",
        }
        for c in criteria
        for r, line in enumerate(values)
        for k, v in enumerate(line)
    )


def lines_of(ax):
    return [line for line in ax.lines if line.get_linestyle() not in ("None", "none")]


def test_lines_are_the_group_means_of_every_repeat_with_their_intervals(words):
    figure = repeat_lines(repeated(criteria=("c1", "c2", "c3", "c4")))
    assert [a.get_title(loc="left") for a in figure.axes] == ["c1", "c2", "c3", "c4"]
    assert words(figure) == [
        "success (n = 2 cases, 12 ratings)",
        "failed (n = 2 cases, 12 ratings)",
    ]
    for ax in figure.axes:
        success, failed = lines_of(ax)
        assert success.get_ydata() == pytest.approx(REPEATS[:, :2].mean(axis=1))
        assert failed.get_ydata() == pytest.approx(REPEATS[:, 2:].mean(axis=1))
    band = set(np.round(ax.collections[0].get_paths()[0].vertices[:, 1], 9))
    for pair, ends in zip(REPEATS[:, :2], whiskers_of(ax, 1)[0], strict=True):
        half = T1 * abs(pair[0] - pair[1]) / 2  # standard error of two values
        expected = np.clip([pair.mean() - half, pair.mean() + half], 0, 1)
        assert ends == pytest.approx(expected)
        assert set(np.round(ends, 9)) <= band


def test_a_repeat_without_values_is_a_gap(words):
    values = REPEATS.copy()
    values[2, :2] = np.nan
    success, failed = lines_of(repeat_lines(repeated(values)).axes[0])
    assert np.flatnonzero(np.isnan(success.get_ydata())).tolist() == [2]
    assert not np.isnan(failed.get_ydata()).any()
    one = repeat_lines(repeated(REPEATS[:1, :1]))
    assert {"hollow: no interval", "failed: no cases"} <= set(words(one))


def test_boxes_have_the_quartiles_of_the_means_over_repeats_and_the_interval():
    ax = repeat_boxes(repeated())
    medians = [
        x.get_xdata()[0] for x in ax.lines if x.get_linewidth() == 1.4 and len(x.get_xdata()) == 2
    ]
    for group, box, median in zip(
        (REPEATS[:, :2], REPEATS[:, 2:]), ax.patches, medians, strict=True
    ):
        means = group.mean(axis=1)
        edges = box.get_path().vertices[:, 0]
        assert (edges.min(), median, edges.max()) == pytest.approx(
            np.percentile(means, (25, 50, 75))
        )
    by_case = REPEATS[:, :2].mean(axis=0)  # six repeats each: means of cases are enough
    half = T1 * abs(by_case[0] - by_case[1]) / 2
    expected = np.clip([by_case.mean() - half, by_case.mean() + half], 0, 1)
    assert whiskers_of(ax)[0][0] == pytest.approx(expected)


def test_few_repeats_are_points_and_an_empty_group_is_said(words):
    ax = repeat_boxes(repeated(REPEATS[:4, :2]))
    assert len(ax.patches) == 0
    points = next(line for line in ax.lines if line.get_marker() == "o")
    assert points.get_xdata() == pytest.approx(REPEATS[:4, :2].mean(axis=1))
    assert {
        "fewer than 5 values: points instead of a box",
        "failed: no cases",
        "success (4 repeats; n = 2 cases, 8 ratings)",
    } <= set(words(ax))


# Coverage

STATUS = {
    "c1": ["scored", "scored", "scored", "not_applicable"],
    "c2": ["scored", "unscored:parse", "error:timeout", "unscored:sleepy"],
}


def stacks(ax):
    """(left, width) of the pieces, row by row, by status."""
    pieces = {}
    for container in ax.containers:
        if isinstance(container, BarContainer):
            (piece,) = container.patches
            pieces.setdefault(container.get_label(), []).append((piece.get_x(), piece.get_width()))
    return pieces


def test_stacks_are_shares_by_status(words):
    ax = coverage_bars(
        score_table(
            {"run": str(i), "criterion": c, "status": s, "value": 0.5 if s == "scored" else None}
            for c, row in STATUS.items()
            for i, s in enumerate(row)
        )
    )
    assert stacks(ax) == {
        "scored": [(0, 0.75), (0, 0.25)],
        "not_applicable": [(0.75, 0.25)],
        "unscored:parse": [(0.25, 0.25)],
        "error:timeout": [(0.5, 0.25)],
        "unscored:sleepy": [(0.75, 0.25)],
    }
    assert words(ax) == [
        "rated (4)",
        "not applicable (1)",
        "unscored: parse (1)",
        "error: timeout (1)",
        "unscored:sleepy (1)",
    ]
    assert [t.get_text() for t in ax.texts] == ["4", "4"]
    assert whiskers_of(ax) == [[(0, 1), (0, 1)]]  # .75 and .25 +- .80


# Perturbed copies

ORIGINAL = (1.0, 0.75, 0.5)
DROPPED = {0.1: (1.0, 0.5, 0.5), 0.25: (0.75, 0.5, 0.5), 0.5: (0.5, 0.25, 0.0)}


def perturbed(criterion="c"):
    rows = ratings(*ORIGINAL) + ratings(*ORIGINAL, variant="pad::7")
    for share, values in DROPPED.items():
        rows += ratings(*values, variant=f"drop_sentences:{share}:7")
    return [row | {"criterion": criterion} for row in rows]


def test_bars_of_originals_that_have_copies_and_of_copies():
    alone = ratings(0.0, run="never perturbed")
    panels = panels_of(perturbation_bars(score_table([*perturbed(), *alone])))
    assert panels == {
        "pad, 3 cases": {"original": [0.75], "copy": [0.75]},
        "drop sentences 25%, 3 cases": {"original": [0.75], "copy": [pytest.approx(1.75 / 3)]},
    }
    other = panels_of(perturbation_bars(score_table(perturbed()), share=0.5))
    assert other["drop sentences 50%, 3 cases"]["copy"] == [pytest.approx(0.25)]


def panels_of(figure):
    """The bars of each panel by its title."""
    return {ax.get_title(loc="left"): bars_of(ax) for ax in figure.axes}


def test_systems_with_fewer_repeats_are_not_part_of_the_line(words):
    """System b is rated twice, a better one, a, once: its rating is no step between repeats."""
    rows = [
        {
            "run": f"{s}{k}",
            "case": f"k{k}",
            "criterion": "c",
            "value": value,
            "repeat": r,
            "success": True,
            "system": s,
        }
        for s, repeats, value in (("a", 1, 1.0), ("b", 2, 0.25))
        for r in range(repeats)
        for k in range(3)
    ]
    figure = repeat_lines(score_table(rows))
    assert lines_of(figure.axes[0])[0].get_ydata() == pytest.approx([0.25, 0.25])
    assert "not shown: 3 runs not rated at every repeat" in words(figure)


def test_dose_response_is_the_paired_change_with_intervals(words):
    figure = dose_lines(score_table(perturbed("c1") + perturbed("c2")))
    assert [a.get_title(loc="left") for a in figure.axes] == ["c1", "c2"]
    assert words(figure) == ["drop_sentences (n = 3 cases)"]
    for ax in figure.axes:
        line = next(one for one in ax.lines if one.get_marker() == "o")
        assert line.get_ydata() == pytest.approx([-0.25 / 3, -0.5 / 3, -0.5])
        assert line.get_xdata() == pytest.approx([0.1, 0.25, 0.5])
        ends = whiskers_of(ax, 1)[0]
        assert ends[2] == pytest.approx((-0.5, -0.5))  # the same change everywhere
        half = T2 * np.std([0, -0.25, 0], ddof=1) / math.sqrt(3)
        assert ends[0] == pytest.approx((-0.25 / 3 - half, -0.25 / 3 + half))


def test_without_copies_nothing_is_drawn():
    table = score_table(ratings(*ORIGINAL))
    with pytest.raises(InputError, match="no ratings of perturbed copies"):
        perturbation_bars(table)
    with pytest.raises(InputError, match="no perturbed copies with a share"):
        dose_lines(table)
    for name in ("drop:much:7", "drop:0:7", "drop:1.5:7", "drop:nan:7"):
        with pytest.raises(InputError, match="the share must be a number"):
            perturbation_bars(score_table(ratings(0.5) + ratings(0.5, variant=name)))


# Distinct criteria

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
    with pytest.raises(InputError, match="no curves"):
        unique_curves({})
    with pytest.raises(InputError, match="at most 7"):
        unique_curves({i / 10: LOW for i in range(1, 9)})


# ---- evidence of judges --------------------------------------------------------------------------


def verified(change: float) -> Verification:
    systems = tuple(
        SystemFigure(system=name, figure="change", estimate=e, low=e - 0.1, high=e + 0.1, n=20)
        for name, e in (("a", change), ("b", 0.0))
    )
    effect = Effect(
        variant="pad:0.25:0",
        operator="pad",
        expected="lower",
        outcome="pass",
        reason="",
        n=20,
        systems=systems,
    )
    checks = tuple(
        Check(name=name, outcome="pass", reason="", estimate=0.9, low=0.8, high=0.95)
        for name in ("agreement", "discrimination")
    )
    return Verification(
        criterion_id="c",
        verdict="keep",
        reasons=(),
        runs=20,
        cases=20,
        repeats=2,
        coverage=1.0,
        mean=0.5,
        checks=checks,
        effects=(effect,),
    )


def test_effects_of_judges_side_by_side() -> None:
    judges = {"good": [verified(0.3)], "biased": [verified(0.1)], "third": [verified(0.2)]}
    figure = effect_forest(judges, {"c": "Clarity"})
    assert [axes.get_title(loc="left") for axes in figure.axes] == list(judges)
    assert figure.axes[0].get_yticklabels()[0].get_text() == "Clarity: pad"
    assert {h.get_label() for h in figure.legends[0].legend_handles if h} >= {"a", "b"}
    points = judge_points(judges, {})
    assert len(points.axes) == 2
    assert "AUC" in points.axes[1].get_title(loc="left")
