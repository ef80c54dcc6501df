"""Coverage bars and the cost panel."""

from __future__ import annotations

import math

import pytest
from matplotlib.container import BarContainer, ErrorbarContainer

from agenteval.errors import InputError
from agenteval.report.plots import coverage_bars
from agenteval.stats.scores import score_table

T9 = 2.2621571627409915  # 97.5 % point of t with 9 degrees of freedom
STATUS = {
    "c1": ["scored", "scored", "scored", "not_applicable"],
    "c2": ["scored", "unscored:parse", "error:timeout", "error:timeout"],
}


def table():
    return score_table(
        {"run": str(i), "criterion": c, "status": s, "value": 0.5 if s == "scored" else None}
        for c, row in STATUS.items()
        for i, s in enumerate(row)
    )


def stacks(ax):
    """(left, width) of the pieces, row by row, by status."""
    found = {}
    for container in ax.containers:
        if isinstance(container, BarContainer):
            (piece,) = container.patches
            found.setdefault(container.get_label(), []).append((piece.get_x(), piece.get_width()))
    return found


def test_stacks_are_shares_by_status(words):
    ax = coverage_bars(table())
    assert stacks(ax) == {
        "scored": [(0, 0.75), (0, 0.25)],
        "not_applicable": [(0.75, 0.25)],
        "unscored:parse": [(0.25, 0.25)],
        "error:timeout": [(0.5, 0.5)],
    }
    assert words(ax) == ["rated (4)", "not applicable (1)", "unscored: parse (1)",
                         "error: timeout (2)"]  # fmt: skip


def whiskers_of(ax):
    (whiskers,) = (c for c in ax.containers if isinstance(c, ErrorbarContainer))
    return [(s[0][0], s[1][0]) for s in whiskers.lines[2][0].get_segments()]


def test_whiskers_are_intervals_of_the_share_rated():
    rows = [
        {"run": str(i), "criterion": "c", "value": 0.5 if i < 5 else None,
         "status": "scored" if i < 5 else "not_applicable"}
        for i in range(10)
    ]  # fmt: skip
    half = T9 * math.sqrt(10 * 0.25 / 9) / math.sqrt(10)
    (ends,) = whiskers_of(coverage_bars(score_table(rows)))
    assert ends == pytest.approx((0.5 - half, 0.5 + half))


def test_whiskers_end_at_the_scale():
    assert whiskers_of(coverage_bars(table())) == [(0, 1), (0, 1)]  # .75 and .25 +- .80


def test_names_count_all_judgements():
    ax = coverage_bars(table())
    assert [t.get_text() for t in ax.get_yticklabels()] == ["c1", "c2"]
    assert [t.get_text() for t in ax.texts] == ["4", "4"]


def test_one_case_has_no_whisker(words):
    ax = coverage_bars(score_table([{"run": "r", "criterion": "c", "value": 0.5}]))
    assert "without whisker: no interval (1 case)" in words(ax)
    assert stacks(ax) == {"scored": [(0, 1)]}


def test_a_status_of_another_tool_is_shown_by_its_name(words):
    rows = [{"run": "r", "criterion": "c", "status": "unscored:sleepy", "value": None}]
    ax = coverage_bars(score_table(rows))
    assert stacks(ax) == {"unscored:sleepy": [(0, 1)]}
    assert "unscored:sleepy (1)" in words(ax)


def test_forty_names_are_apart(forty, overlapping):
    assert overlapping(coverage_bars(forty).get_yticklabels()) == []


def test_an_empty_table_is_refused():
    with pytest.raises(InputError, match="no ratings"):
        coverage_bars(score_table([]))
