"""Original against perturbed ratings, and the change against the dose."""

from __future__ import annotations

import math

import numpy as np
import pytest
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure

from agenteval.errors import InputError
from agenteval.report.perturbation_plots import dose_lines, perturbation_bars
from agenteval.stats.scores import score_table

T2 = 4.302652729696142  # 97.5 % point of t with 2 degrees of freedom
ORIGINAL = (1.0, 0.75, 0.5)
DROPPED = {0.1: (1.0, 0.5, 0.5), 0.25: (0.75, 0.5, 0.5), 0.5: (0.5, 0.25, 0.0)}


def rating(case, value, variant="original", repeat=0, criterion="c"):
    return {"run": f"run of {case}", "case": str(case), "criterion": criterion, "value": value,
            "variant": variant, "repeat": repeat}  # fmt: skip


def rows(criterion="c"):
    found = [rating(i, v, criterion=criterion) for i, v in enumerate(ORIGINAL)]
    for share, values in DROPPED.items():
        name = f"drop_sentences:{share}:7"
        found += [rating(i, v, name, criterion=criterion) for i, v in enumerate(values)]
    pads = [rating(i, v, "pad::7", criterion=criterion) for i, v in enumerate(ORIGINAL)]
    return found + pads


def bars_of(ax):
    return {
        c.get_label(): [p.get_height() for p in c.patches]
        for c in ax.containers
        if isinstance(c, BarContainer)
    }


def whiskers_of(ax):
    return [
        [(s[0][1], s[1][1]) for s in c.lines[2][0].get_segments()]
        for c in ax.containers
        if isinstance(c, ErrorbarContainer)
    ]


@pytest.mark.parametrize("name", ["drop:much:7", "drop:0:7", "drop:1.5:7", "drop:nan:7"])
def test_a_share_that_is_none_is_refused(name):
    with pytest.raises(InputError, match="the share must be a number"):
        perturbation_bars(score_table([rating(0, 0.5), rating(0, 0.5, name)]))


def test_bars_of_originals_and_copies():
    bars = bars_of(perturbation_bars(score_table(rows())))
    assert bars == {
        "original (n = 3 cases)": [pytest.approx(0.75)],
        "drop_sentences 25 % (n = 3 cases)": [pytest.approx(1.75 / 3)],
        "pad (n = 3 cases)": [pytest.approx(0.75)],
    }
    other = bars_of(perturbation_bars(score_table(rows()), share=0.5))
    assert other["drop_sentences 50 % (n = 3 cases)"] == [pytest.approx(0.25)]


def test_originals_without_a_copy_are_not_in_the_bar():
    alone = rating("never perturbed", 0.0)
    bars = bars_of(perturbation_bars(score_table([*rows(), alone])))
    assert bars["original (n = 3 cases)"] == [pytest.approx(0.75)]


def test_dose_response_draws_the_mean_change_with_intervals():
    ax = dose_lines(score_table(rows())).axes[0]
    line = next(one for one in ax.lines if one.get_marker() == "o")
    assert line.get_ydata() == pytest.approx([-0.25 / 3, -0.5 / 3, -0.5])
    assert line.get_xdata() == pytest.approx([0.1, 0.25, 0.5])
    differences = np.array([-0.5, -0.5, -0.5])
    assert differences.std() == 0
    ends = whiskers_of(ax)[0]
    assert ends[2] == pytest.approx((-0.5, -0.5))  # the same change everywhere
    half = T2 * np.std([0, -0.25, 0], ddof=1) / math.sqrt(3)
    assert ends[0] == pytest.approx((-0.25 / 3 - half, -0.25 / 3 + half))


def test_counts_of_a_dose_are_cases_and_runs(words):
    extra = [rating(0, 0.5) | {"run": "second"}, rating(0, 0.5, "drop:0.5:1") | {"run": "second"}]
    first = [rating(0, 0.5), rating(0, 0.25, "drop:0.5:1"), rating(1, 0.5),
             rating(1, 0.5, "drop:0.5:1")]  # fmt: skip
    ax = dose_lines(score_table(first + extra))
    assert words(ax) == ["drop (n = 2 cases, 3 runs)"]


def test_grid_draws_the_same_numbers(words):
    figure = dose_lines(score_table(rows("c1") + rows("c2")))
    assert [a.get_title(loc="left") for a in figure.axes] == ["c1", "c2"]
    for ax in figure.axes:
        line = next(one for one in ax.lines if one.get_marker() == "o")
        assert line.get_ydata() == pytest.approx([-0.25 / 3, -0.5 / 3, -0.5])
    assert words(figure) == ["drop_sentences (n = 3 cases)"]


def test_without_copies_nothing_is_drawn():
    table = score_table([rating(i, v) for i, v in enumerate(ORIGINAL)])
    with pytest.raises(InputError, match="no ratings of perturbed copies"):
        perturbation_bars(table)
    with pytest.raises(InputError, match="no perturbed copies with a share"):
        dose_lines(table)


def test_they_draw_into_the_axes_given():
    one, two = Figure().subplots(1, 2)
    table = score_table(rows())
    assert perturbation_bars(table, ax=one) is one
    assert dose_lines(table, ax=two) is two.figure
