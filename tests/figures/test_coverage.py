"""Coverage bars and the cost panel."""

from __future__ import annotations

import math

import pytest
from matplotlib.container import BarContainer, ErrorbarContainer

from agenteval.errors import InputError
from agenteval.figures import cost_panel, coverage_and_cost, coverage_bars
from agenteval.records import Usage
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
    """(left, width) per criterion, by label."""
    return {
        c.get_label(): [(p.get_x(), p.get_width()) for p in c.patches]
        for c in ax.containers
        if isinstance(c, BarContainer)
    }


def test_stacks_are_shares_by_status():
    assert stacks(coverage_bars(table())) == {
        "rated (4)": [(0, 0.75), (0, 0.25)],
        "not applicable (1)": [(0.75, 0.25), (0.25, 0)],
        "unscored: parse (1)": [(1, 0), (0.25, 0.25)],
        "error: timeout (2)": [(1, 0), (0.5, 0.5)],
    }


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
    labels = [t.get_text() for t in coverage_bars(table()).get_yticklabels()]
    assert labels == ["c1 (n = 4)", "c2 (n = 4)"]


def test_one_case_has_no_whisker(words):
    ax = coverage_bars(score_table([{"run": "r", "criterion": "c", "value": 0.5}]))
    assert "without whisker: no interval (1 case)" in words(ax)
    assert stacks(ax) == {"rated (1)": [(0, 1)]}


def test_a_status_of_another_tool_is_shown_by_its_name():
    rows = [{"run": "r", "criterion": "c", "status": "unscored:sleepy", "value": None}]
    assert stacks(coverage_bars(score_table(rows))) == {"unscored:sleepy (1)": [(0, 1)]}


def test_cost_says_unknown_for_what_nobody_reported():
    usage = Usage(requests=1200, prompt_tokens=34567, cost=1.5)
    text = [t.get_text() for t in cost_panel(usage).texts]
    assert text == ["requests", "1,200", "tokens read", "34,567", "tokens written", "unknown",
                    "cost", "1.5"]  # fmt: skip
    assert cost_panel(None).texts[0].get_text() == "not recorded"


def test_no_cost_is_not_an_unknown_cost():
    assert [t.get_text() for t in cost_panel(Usage(cost=0.0)).texts][-1] == "0"


def test_both_panels_and_one_legend(words):
    figure = coverage_and_cost(table(), Usage(requests=8))
    assert len(figure.axes) == 2
    assert "rated (4)" in words(figure)


def test_forty_names_are_apart(forty, overlapping):
    assert overlapping(coverage_bars(forty).get_yticklabels()) == []


def test_an_empty_table_is_refused():
    with pytest.raises(InputError, match="no ratings"):
        coverage_bars(score_table([]))
