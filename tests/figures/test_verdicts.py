"""Map of the criteria, and the placing of names."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.collections import LineCollection
from matplotlib.figure import Figure

from agenteval.errors import InputError
from agenteval.figures import CriterionPoint, Estimate, criteria_map
from agenteval.figures.placing import Box, around, place

VERDICTS = ("keep", "repair", "drop", "undecided")


def points(count, seed=2):
    rng = np.random.default_rng(seed)
    return [
        CriterionPoint(
            f"criterion {i}",
            Estimate(a, a - 0.1, a + 0.05),
            Estimate(d, d - 0.1, d + 0.1),
            VERDICTS[i % 4],
            60,
        )
        for i, (a, d) in enumerate(zip(rng.uniform(0.1, 0.9, count), rng.uniform(0.2, 0.9, count),
                                       strict=True))
    ]  # fmt: skip


def marks(ax):
    return {
        (float(line.get_xdata()[0]), float(line.get_ydata()[0])): line.get_marker()
        for line in ax.lines
        if len(line.get_xdata()) == 1
    }


def test_marks_stand_at_agreement_and_discrimination_with_the_verdict():
    found = marks(criteria_map(points(8)))
    assert found == {
        (p.agreement.value, p.discrimination.value): {
            "keep": "o", "repair": "^", "drop": "X", "undecided": "s"
        }[p.verdict]
        for p in points(8)
    }  # fmt: skip


def test_crosses_are_the_intervals():
    (point,) = points(1)
    ax = criteria_map([point])
    segments = [c.get_segments()[0].tolist() for c in ax.collections
                if isinstance(c, LineCollection)]  # fmt: skip
    a, d = point.agreement, point.discrimination
    assert segments == [
        [[a.low, d.value], [a.high, d.value]],
        [[a.value, d.low], [a.value, d.high]],
    ]


@pytest.mark.parametrize("count", [1, 6, 12, 18])
def test_names_are_beside_their_marks_and_apart(count, overlapping):
    ax = criteria_map(points(count))
    assert {t.get_text() for t in ax.texts} == {f"criterion {i}" for i in range(count)}
    assert overlapping(ax.texts) == []


def test_saving_does_not_move_the_names(overlapping):
    ax = criteria_map(points(18))
    figure = ax.get_figure(root=True)
    before = ax.get_window_extent().bounds
    figure.canvas.draw()
    assert ax.get_window_extent().bounds == pytest.approx(before, abs=0.5)


def test_forty_criteria_get_numbers_and_a_key(words):
    ax = criteria_map(points(40))
    assert {t.get_text() for t in ax.texts} == {str(i + 1) for i in range(40)}
    assert "1  criterion 0" in words(ax)
    assert "40  criterion 39" in words(ax)


def test_names_without_room_become_numbers(words):
    same = [
        CriterionPoint("a name of some length " * 4, Estimate(0.5), Estimate(0.5), "keep", 9)
        for _ in range(17)
    ]
    ax = criteria_map(same)
    assert {t.get_text() for t in ax.texts} == {str(i + 1) for i in range(17)}
    assert sum("a name of some" in text for text in words(ax)) == 17


def test_unknown_numbers_have_no_place_and_are_listed(words):
    given_ = [
        *points(2),
        CriterionPoint("blind", Estimate(0.5), None, "undecided", 60),
        CriterionPoint("single", None, Estimate(0.8), "undecided", 60),
    ]
    ax = criteria_map(given_)
    assert len(marks(ax)) == 2
    assert "not placed, discrimination unknown: blind" in words(ax)
    assert "not placed, agreement unknown: single" in words(ax)
    assert "undecided (2)" in words(ax)


def test_missing_intervals_and_n_are_said(words):
    mixed = [
        CriterionPoint("a", Estimate(0.5), Estimate(0.7), "keep", 40),
        CriterionPoint("b", Estimate(0.6, 0.5, 0.7), Estimate(0.8, 0.7, 0.9), "keep", 60),
    ]
    ax = criteria_map(mixed)
    assert "without a line: no interval" in words(ax)
    assert ax.get_title(loc="left").endswith("n = 40 to 60 cases")


def test_nothing_placed_still_gives_axes_and_words(words):
    ax = criteria_map([CriterionPoint("blind", None, None, "undecided", 3)])
    assert marks(ax) == {}
    assert "not placed, agreement unknown: blind" in words(ax)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        ([], "no criteria"),
        ([CriterionPoint("a", None, None, "fine", 1)], "verdict 'fine' of 'a'"),
        ([CriterionPoint("a", Estimate(1.2), None, "keep", 1)], "above 1"),
        ([CriterionPoint("a", Estimate(float("nan")), None, "keep", 1)], "is nan"),
        ([CriterionPoint("a", None, Estimate(-0.1), "keep", 1)], "AUC of 'a'"),
    ],
)
def test_bad_points_are_refused(bad, message):
    with pytest.raises(InputError, match=message):
        criteria_map(bad)


def test_draws_into_the_axes_given():
    ax = Figure(figsize=(6, 5)).add_subplot()
    assert criteria_map(points(5), ax=ax) is ax
    assert len(ax.texts) == 5


FRAME = Box(0, 0, 400, 300)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(
        st.tuples(st.floats(20, 380), st.floats(20, 280), st.floats(10, 90), st.floats(8, 20)),
        min_size=1,
        max_size=14,
    )
)
def test_placed_boxes_never_touch_each_other_marks_or_the_frame(given_):
    at = [(x, y) for x, y, _, _ in given_]
    sizes = [(w, h) for _, _, w, h in given_]
    boxes = place(at, sizes, FRAME)
    if boxes is None:  # allowed only where it is crowded
        assert len(given_) > 2
        return
    assert len(boxes) == len(given_)
    for (w, h), box in zip(sizes, boxes, strict=True):
        assert box.right - box.left == pytest.approx(w)
        assert box.top - box.bottom == pytest.approx(h)
        assert box.inside(FRAME)
    assert all(a.overlap(b) == 0 for a, b in itertools.combinations(boxes, 2))
    assert all(box.overlap(around(x, y)) == 0 for box in boxes for x, y in at)


def test_lines_are_avoided_where_there_is_room():
    wall = Box(200, 149.5, 400, 150.5)
    (box,) = place([(200.0, 150.0)], [(60.0, 10.0)], FRAME, [wall])
    assert box.overlap(wall) == 0


def test_no_room_is_said():
    assert place([(5.0, 5.0)], [(60.0, 10.0)], Box(0, 0, 20, 20)) is None
