"""Correlation map: numbers against scipy, cells, what is undefined."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from agenteval.errors import InputError
from agenteval.report.plots import correlation_map, correlations
from agenteval.stats.scores import score_table

RNG = np.random.default_rng(11)
VALUES = RNG.integers(0, 5, size=(3, 12, 2)) / 4  # criteria × runs × repeats


def table(values=VALUES, names=("c1", "c2", "c3")):
    return score_table(
        {"run": f"r{k}", "criterion": names[i], "repeat": r,
         "value": None if np.isnan(v) else float(v)}
        for i, block in enumerate(values) for k, line in enumerate(block)
        for r, v in enumerate(line)
    )  # fmt: skip


def cells(ax):
    return {tuple(int(p) for p in t.get_position()): t.get_text() for t in ax.texts}


def test_correlations_are_scipys_over_means_of_runs():
    means = VALUES.mean(axis=2)
    rho, n = correlations(table(), ["c1", "c2", "c3"])
    for i in range(3):
        for j in range(i):
            assert rho[i, j] == pytest.approx(spearmanr(means[i], means[j]).statistic)
    assert (rho == rho.T).all()
    assert (n == 12).all()


def test_missing_runs_are_left_out_by_pair():
    values = VALUES.copy()
    values[0, :4] = np.nan
    values[1, 11] = np.nan
    rho, n = correlations(table(values), ["c1", "c2", "c3"])
    means = values.mean(axis=2)
    assert n.tolist() == [[8, 7, 8], [7, 11, 11], [8, 11, 12]]
    assert rho[1, 0] == pytest.approx(spearmanr(means[0, 4:11], means[1, 4:11]).statistic)


def test_constant_criteria_and_two_runs_are_undefined(words):
    values = VALUES.copy()
    values[2] = 0.5
    ax = correlation_map(table(values))
    assert cells(ax)[0, 2] == cells(ax)[1, 2] == "–"
    assert any(text.startswith("–: undefined") for text in words(ax))
    assert np.isnan(correlations(table(VALUES[:, :2]), ["c1", "c2", "c3"])[0]).all()


def test_cells_hold_the_numbers_of_the_lower_half():
    means = VALUES.mean(axis=2)
    rho = spearmanr(means[0], means[1]).statistic
    ax = correlation_map(table())
    assert float(cells(ax)[0, 1]) == pytest.approx(rho, abs=0.005)
    assert set(cells(ax)) == {(0, 1), (0, 2), (1, 2)}
    assert np.asarray(ax.images[0].get_array())[1, 0] == pytest.approx(rho)
    assert ax.get_title(loc="left").endswith("n = 12 runs")


def test_counts_are_written_where_they_differ(words):
    values = VALUES.copy()
    values[0, :4] = np.nan
    ax = correlation_map(table(values))
    assert cells(ax)[0, 0] == "8"
    assert cells(ax)[1, 0] == "8"
    assert cells(ax)[2, 1] == "12"
    assert ax.get_title(loc="left").endswith("n = 8 to 12 runs")
    assert "lower half: ρ; upper half: runs rated on both; diagonal: runs rated" in words(ax)


@pytest.mark.parametrize(("sign", "text"), [(1, "1.00"), (-1, "-1.00")])
def test_perfect_correlations(sign, text):
    line = np.arange(5)[:, None] / 4
    ax = correlation_map(table(np.array([line, line if sign > 0 else 1 - line]), ("a", "b")))
    assert cells(ax)[0, 1] == text


def test_more_criteria_than_fit_in_print_are_apart(forty, overlapping):
    ax = correlation_map(forty.where(forty.criterion.codes < 16))
    assert ax.get_figure(root=True).get_figwidth() > 9
    assert overlapping(ax.get_yticklabels()) == []
    assert overlapping([t for t in ax.texts if t.get_position()[1] == 15]) == []


def test_one_criterion_is_refused():
    with pytest.raises(InputError, match="at least 2 criteria; the table has 1"):
        correlation_map(table(VALUES[:1], ("c",)))
