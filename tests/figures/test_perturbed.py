"""Original against perturbed ratings, and the change against the dose."""

from __future__ import annotations

import math

import numpy as np
import pytest
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.figure import Figure

from agenteval.errors import InputError
from agenteval.figures import dose_grid, dose_response, perturbation_bars
from agenteval.figures.perturbed import chosen_shares, paired_change, variants_of
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


def test_names_of_variants_are_read():
    found = variants_of(score_table(rows()))
    assert {(v.operator, v.share) for v in found} == {
        ("drop_sentences", 0.1), ("drop_sentences", 0.25), ("drop_sentences", 0.5), ("pad", None)
    }  # fmt: skip
    assert chosen_shares(score_table(rows())) == {"drop_sentences": 0.25, "pad": None}
    assert chosen_shares(score_table(rows()), 0.45) == {"drop_sentences": 0.5, "pad": None}


@pytest.mark.parametrize("name", ["drop:much:7", "drop:0:7", "drop:1.5:7", "drop:nan:7"])
def test_a_share_that_is_none_is_refused(name):
    with pytest.raises(InputError, match="the share must be a number"):
        variants_of(score_table([rating(0, 0.5, name)]))


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


def test_the_change_is_paired_by_run_and_counts_a_run_once():
    table = score_table(rows())
    change = paired_change(table.of(variant="original"), table.of(variant="drop_sentences:0.25:7"))
    differences = np.array([-0.25, -0.25, 0.0])
    assert change.mean == pytest.approx(differences.mean())
    half = T2 * differences.std(ddof=1) / math.sqrt(3)
    assert (change.low, change.high) == pytest.approx(
        (differences.mean() - half, differences.mean() + half)
    )
    again = [rating(0, 1.0, repeat=r) for r in (1, 2, 3)]  # more repeats weigh no more
    more = score_table([*rows(), *again, rating(9, 1.0)])  # 9 has no copy
    assert paired_change(
        more.of(variant="original"), more.of(variant="drop_sentences:0.25:7")
    ).mean == pytest.approx(differences.mean())


def test_dose_response_draws_the_mean_change_with_intervals():
    ax = dose_response(score_table(rows()), "drop_sentences")
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
    ax = dose_response(score_table(first + extra), "drop")
    assert words(ax) == ["c (n = 2 cases, 3 runs)"]


def test_a_criterion_without_copies_is_said_and_not_drawn_as_zero(words):
    table = score_table([*rows(), rating(0, 0.5, criterion="other")])
    ax = dose_response(table, "drop_sentences")
    assert "other (no cases)" in words(ax)
    assert len([one for one in ax.lines if one.get_marker() in ("o", "s")]) == 1


def test_too_many_lines_and_unknown_operators_are_refused():
    many = score_table([r for i in range(8) for r in rows(f"c{i}")])
    with pytest.raises(InputError, match="8 criteria in one figure: at most 7"):
        dose_response(many, "drop_sentences")
    with pytest.raises(InputError, match="'pad'; operators with shares: drop_sentences"):
        dose_response(many, "pad")
    assert len(dose_grid(many).axes) == 8


def test_grid_draws_the_same_numbers(words):
    figure = dose_grid(score_table(rows("c1") + rows("c2")))
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
        dose_grid(table)


def test_they_draw_into_the_axes_given():
    one, two = Figure().subplots(1, 2)
    table = score_table(rows())
    assert perturbation_bars(table, ax=one) is one
    assert dose_response(table, "drop_sentences", ax=two) is two
