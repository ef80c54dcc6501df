"""Charts of planning tests: what is drawn where, what is said, nothing cut or covered."""

from __future__ import annotations

import pytest
from matplotlib.text import Text

from agenteval.errors import InputError
from agenteval.evaluators.planning.capability import bounds
from agenteval.evaluators.planning.contrasts import Contrast, difference
from agenteval.evaluators.planning.tallies import Part, Shares, Tally
from agenteval.report.planning_charts import (
    form_points,
    share_bars,
    success_by_actions,
    success_by_topic,
)
from agenteval.stats import Interval, proportion_interval


def tally(system, group, passes, cases, *, guess=None, place=None):
    spot = float(group) if place is None else place
    return Tally(system, str(group), spot, proportion_interval(passes, cases), passes, 0, guess)


@pytest.fixture
def falling():
    """Two systems over 2 to 4 actions; b falls below 20 % at 4, a never."""
    return [
        tally("a", 2, 19, 20, guess=0.5), tally("a", 3, 48, 60, guess=0.25),
        tally("a", 4, 60, 120, guess=0.1),
        tally("b", 2, 10, 20, guess=0.5), tally("b", 3, 18, 60, guess=0.25),
        tally("b", 4, 12, 100, guess=0.1),
    ]  # fmt: skip


def line_of(ax, colour):
    return next(x for x in ax.lines if x.get_color() == colour and len(x.get_xdata()) == 3)


def inside(drawn):
    """Texts of a figure that do not fit into it, after drawing."""
    figure = drawn.get_figure(root=True)
    figure.canvas.draw()
    renderer = figure.canvas.get_renderer()
    width, height = figure.canvas.get_width_height()
    out = []
    for ax in figure.axes:
        low, high = ax.get_xlim()
        ticks = zip(ax.get_xticks(), ax.get_xticklabels(), strict=True)
        drawn_ones = [label for at, label in ticks if low <= at <= high]  # others are not drawn
        title = next(t for t in ax.findobj(Text) if t.get_text() == ax.get_title("left"))
        for text in [*drawn_ones, *ax.get_yticklabels(), title, ax.xaxis.label, ax.yaxis.label,
                     *ax.texts]:  # fmt: skip
            box = text.get_window_extent(renderer)
            fits = box.x0 > -1 and box.x1 < width + 1 and box.y0 > -1 and box.y1 < height + 1
            if text.get_text() and not fits:
                out.append(text.get_text())
    return out


def test_curves_show_rates_with_their_bands_and_the_bound_in_words(falling, words):
    (ax,) = success_by_actions(falling, bounds(falling)).axes
    assert list(line_of(ax, "#0072B2").get_ydata()) == [0.95, 0.8, 0.5]
    assert list(line_of(ax, "#D55E00").get_ydata()) == [0.5, 0.3, 0.12]
    assert words(ax)[:3] == ["a, bound at least 4", "b, bound 3", "20 %"]
    known = proportion_interval(48, 60)
    ends = {round(float(y), 9) for y in ax.collections[0].get_paths()[0].vertices[:, 1]}
    assert {round(known.low, 9), round(known.high, 9)} <= ends
    assert inside(ax) == []


def test_guessing_is_a_curve_over_all_systems(falling, words):
    uneven = [*falling[:5], tally("b", 4, 12, 120, guess=0.3)]
    (ax,) = success_by_actions(uneven).axes
    guess = next(x for x in ax.lines if x.get_marker() == ".")
    assert list(guess.get_ydata()) == pytest.approx([0.5, 0.25, 0.2])
    assert "random orders" in words(ax)
    unknown = [tally("a", 2, 3, 4), tally("a", 3, 3, 4)]
    assert "random orders" not in words(success_by_actions(unknown))


def test_cases_stand_below_the_numbers_of_actions(falling):
    (ax,) = success_by_actions(falling).axes
    assert [t.get_text() for t in ax.get_xticklabels()] == ["2\n20", "3\n60", "4\n100–120"]


def test_a_number_without_a_verdict_is_no_point(falling):
    nothing = Interval(None, None, None, None, 0, None, "none", "no values")
    (ax,) = success_by_actions([*falling, Tally("a", "5", 5.0, nothing, 0, 300, None)]).axes
    assert len(ax.get_xticks()) == 3


def shares(system, counts):
    total = sum(counts.values())
    return Shares(
        system, total,
        tuple(Part(k, n, proportion_interval(n, total)) for k, n in counts.items()),
    )  # fmt: skip


def test_shares_fill_the_bar(words):
    rows = [
        shares("a", {"timeout": 1, "act_error": 0, "order_error": 3}),
        shares("b" * 60, {"timeout": 0, "act_error": 0, "order_error": 2}),
        shares("none", {"timeout": 0, "act_error": 0, "order_error": 0}),
    ]
    ax = share_bars(rows, "Types of errors", "error")
    first = [p for p in ax.patches if abs(p.get_y() + p.get_height() / 2) < 1e-9]
    assert [(p.get_x(), p.get_width()) for p in first] == [(0.0, 0.25), (0.25, 0.75)]
    assert words(ax) == ["timeout", "order error"]  # what nobody has is left out
    assert len(ax.get_yticks()) == 2  # a system without errors has no bar
    texts = [t.get_text() for t in ax.texts]
    assert texts == ["25 %", "75 %", "4", "100 %", "2"]
    assert inside(ax) == []


def test_a_sliver_has_no_words_and_nothing_overlaps(overlapping):
    ax = share_bars([shares("a", {"x": 1, "y": 5, "z": 94})], "t", "error")
    assert [t.get_text() for t in ax.texts] == ["94 %", "100"]
    full = share_bars([shares("a", dict.fromkeys("pqrst", 20))], "t", "error")
    assert overlapping(list(full.texts)) == []


def contrast(system, form, yes, no, within):
    a, b = tally(system, form, *yes, place=0.0), tally(system, form, *no, place=1.0)
    inner = Interval(within, within - 0.1, within + 0.1, None, 9, 9, "m")
    return Contrast(system, form, a, b, difference(a.rate, b.rate), inner)


def test_the_points_are_differences_within_equal_numbers_of_actions(words):
    rows = [
        contrast("a", "relative succ", (10, 40), (30, 60), -0.125),
        contrast("a", "fronted pair prec", (20, 40), (20, 40), 0.05),
        contrast("a", "plural", (20, 40), (0, 0), 0.0),
    ]
    (ax,) = form_points(rows).axes
    names = [t.get_text() for t in ax.get_yticklabels()]
    assert names == ["fronted pair prec (40 : 40)", "relative succ (40 : 60)"]  # plural: one side
    marks = next(x for x in ax.lines if x.get_marker() == "o")
    assert list(marks.get_xdata()) == [0.05, -0.125]
    assert any("not the form's own effect" in w for w in words(ax))
    assert inside(ax) == []


def test_seven_systems_and_sixteen_forms_stay_apart(overlapping):
    rows = [
        contrast(f"system {s}", f"fronted preposition {f:02d}", (20, 40), (10 + s, 40), 0.01 * f)
        for s in range(7)
        for f in range(16)
    ]
    (ax,) = form_points(rows).axes
    assert overlapping(list(ax.get_yticklabels())) == []
    assert inside(ax) == []


def test_fifty_topics_are_sorted_and_apart(overlapping):
    topics = [f"Very Long Profession Name {i:02d}" for i in range(50)]
    rows = [
        tally(s, topic, (i * 7 + j) % 11, 10 + j, place=0.0)
        for j, s in enumerate("ab")
        for i, topic in enumerate(topics)
    ]
    (ax,) = success_by_topic(rows).axes
    names = [t.get_text() for t in ax.get_yticklabels()]
    pooled = {g: sum(r.passes for r in rows if r.group == g) for g in topics}
    assert [pooled[n] for n in names] == sorted(pooled.values())
    assert ax.yaxis_inverted()  # the least successful on top
    assert overlapping(list(ax.get_yticklabels())) == []
    assert inside(ax) == []


def test_topics_beyond_sixty_are_counted(words):
    rows = [tally("a", f"t{i:02d}", i % 10, 10, place=0.0) for i in range(65)]
    (ax,) = success_by_topic(rows).axes
    assert len(ax.get_yticks()) == 60
    assert "not shown: 5 topics with more success" in words(ax)


def test_what_cannot_be_drawn_is_refused():
    nothing = Interval(None, None, None, None, 0, None, "none", "no values")
    gone = Tally("a", "2", 2.0, nothing, 0, 3, None)
    many = [tally(str(i), 2, 1, 2) for i in range(8)]
    for draw in (success_by_actions, success_by_topic):
        with pytest.raises(InputError, match="no verdict"):
            draw([gone])
        with pytest.raises(InputError, match="8 series"):
            draw(many)
    with pytest.raises(InputError, match="no errors"):
        share_bars([], "t", "error")
    with pytest.raises(InputError, match="no clause form"):
        form_points([contrast("a", "f", (1, 2), (0, 0), 0.0)])
