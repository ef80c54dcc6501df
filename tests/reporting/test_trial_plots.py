"""Charts of trials: rates, intervals and counts where they belong, nothing cut or covered."""

from __future__ import annotations

import math

import matplotlib.colors
import pytest
from matplotlib.text import Text

from agenteval.errors import InputError
from agenteval.planning.capability import bounds
from agenteval.planning.page import success_by_actions, success_by_topic
from agenteval.planning.rates import SuccessRate
from agenteval.reporting.charts import share_bars
from agenteval.stats import Interval, proportion_interval
from agenteval.workflows.page import format_points
from agenteval.workflows.results import (
    CaseInfo,
    SessionResult,
    SessionVerdict,
)
from agenteval.workflows.session import SessionLog
from agenteval.workflows.tallies import Tallies

BLUE, ORANGE, GREEN = "#0072B2", "#D55E00", "#009E73"
NOTHING = Interval(None, None, None, None, 0, None, "none", "no values")


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
        for text in [
            *drawn_ones,
            *ax.get_yticklabels(),
            title,
            ax.xaxis.label,
            ax.yaxis.label,
            *ax.texts,
        ]:
            box = text.get_window_extent(renderer)
            fits = box.x0 > -1 and box.x1 < width + 1 and box.y0 > -1 and box.y1 < height + 1
            if text.get_text() and not fits:
                out.append(text.get_text())
    return out


def rows_of(ax):
    return [t.get_text() for t in ax.get_yticklabels()]


def marks(ax, colour):
    """The means of the marks of a colour, from top to bottom."""
    spots = [
        (float(y), float(x))
        for line in ax.lines
        if line.get_color() == colour
        and line.get_linestyle() == "None"
        and line.get_marker() not in ("|", "_")
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    ]
    return [x for _, x in sorted(spots)]


def whiskers(ax, colour):
    """(low, high) of the whiskers of a colour, from top to bottom."""
    ends = []
    for container in ax.containers:
        (bars,) = container.lines[2]
        if matplotlib.colors.same_color(bars.get_color()[0], colour):
            ends += [(float(s[0][1]), float(s[0][0]), float(s[1][0])) for s in bars.get_segments()]
    return [row[1:] for row in sorted(ends)]


# Planning


def tally(system, group, passes, cases, *, guess=None, place=None):
    spot = float(group) if place is None else place
    rate = proportion_interval(passes, cases)
    return SuccessRate(system, rate, passes, cases, cases, 0, guess, str(group), spot)


@pytest.fixture
def falling():
    """Two systems over 2 to 4 actions; b falls below 20 % at 4, a never."""
    return [
        tally("a", 2, 19, 20, guess=0.5),
        tally("a", 3, 48, 60, guess=0.25),
        tally("a", 4, 60, 120, guess=0.1),
        tally("b", 2, 10, 20, guess=0.5),
        tally("b", 3, 18, 60, guess=0.25),
        tally("b", 4, 12, 100, guess=0.1),
    ]


def line_of(ax, colour):
    return next(x for x in ax.lines if x.get_color() == colour and len(x.get_xdata()) == 3)


def test_curves_show_rates_with_their_bands_and_the_bound_in_words(falling, words):
    unknown = SuccessRate("a", NOTHING, 0, 0, 0, 300, None, "5", 5.0)  # no point
    (ax,) = success_by_actions([*falling, unknown], bounds(falling)).axes
    assert list(line_of(ax, BLUE).get_ydata()) == [0.95, 0.8, 0.5]
    assert list(line_of(ax, ORANGE).get_ydata()) == [0.5, 0.3, 0.12]
    assert words(ax)[:3] == ["a, bound at least 4", "b, bound 3", "20%"]
    known = proportion_interval(48, 60)
    ends = {round(float(y), 9) for y in ax.collections[0].get_paths()[0].vertices[:, 1]}
    assert {round(known.low, 9), round(known.high, 9)} <= ends
    assert [t.get_text() for t in ax.get_xticklabels()] == ["2\n20", "3\n60", "4\n100–120"]
    assert inside(ax) == []


def test_shares_fill_the_bar(words, overlapping):
    rows = {
        "a": {"timeout": 1, "act_error": 0, "order_error": 3},
        "b" * 60: {"timeout": 0, "act_error": 0, "order_error": 2},
        "none": {"timeout": 0, "act_error": 0, "order_error": 0},
    }
    ax = share_bars(rows, "Types of errors", "error")
    first = [p for p in ax.patches if abs(p.get_y() + p.get_height() / 2) < 1e-9]
    assert [(p.get_x(), p.get_width()) for p in first] == [(0.0, 0.25), (0.25, 0.75)]
    assert words(ax) == ["timeout", "order error"]  # what nobody has is left out
    assert len(ax.get_yticks()) == 2  # a system without errors has no bar
    assert [t.get_text() for t in ax.texts] == ["25%", "75%", "4", "100%", "2"]
    assert inside(ax) == []
    sliver = share_bars({"a": {"x": 1, "y": 5, "z": 94}}, "t", "error")
    assert [t.get_text() for t in sliver.texts] == ["94%", "100"]
    full = share_bars({"a": dict.fromkeys("pqrst", 20)}, "t", "error")
    assert overlapping(list(full.texts)) == []


def test_what_cannot_be_drawn_is_refused():
    gone = SuccessRate("a", NOTHING, 0, 0, 0, 3, None, "2", 2.0)
    for draw in (success_by_actions, success_by_topic):
        with pytest.raises(InputError, match="no verdict"):
            draw([gone])
        with pytest.raises(InputError, match="8 series"):
            draw([tally(str(i), 2, 1, 2) for i in range(8)])
    for draw, nothing in (
        (lambda _: share_bars({}, "t", "error"), None),
        (format_points, Tallies()),
        (format_points, Tallies([session("A", "t", None)])),
    ):
        with pytest.raises(InputError, match=r"no .* to draw"):
            draw(nothing)


# Workflows: blue and green are of text and flowchart, whatever else is there


def session(domain, task, success, *, format="text", agent="a"):
    case = CaseInfo(level="session", id=task, task=task, role="r", domain=domain, scenarios=("s",))
    verdict = SessionVerdict(
        success=success, decided_by="state", right=0, gold=0, generated=0, conforms=True
    )
    log = SessionLog(ended="user", turns=1)
    return SessionResult(case, f"{agent} · {format}", agent, format, {}, 0, log, verdict)


def sessions(domain, passed, in_all, **more):
    return [session(domain, f"{domain}{i}", i < passed, **more) for i in range(in_all)]


@pytest.fixture
def two():
    """Success: A text 3/4, flowchart 4/4; B text 1/4, flowchart 2/4."""
    return [
        *sessions("A", 3, 4),
        *sessions("A", 4, 4, format="flowchart"),
        *sessions("B", 1, 4),
        *sessions("B", 2, 4, format="flowchart"),
    ]


def wilson(passed, n, z=1.959963984540054):
    """Wilson (1927), as in every textbook."""
    p = passed / n
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


def test_rates_by_domain_and_over_all_of_them_with_intervals_and_counts(two, words):
    undecided = [session("A", "lost", None), session("C", "lost too", None)]  # in no rate
    (ax,) = format_points(Tallies([*two, *undecided])).axes
    assert rows_of(ax) == ["all domains", "A", "B"]
    for colour, counts in ((BLUE, [(4, 8), (3, 4), (1, 4)]), (GREEN, [(6, 8), (4, 4), (2, 4)])):
        assert marks(ax, colour) == pytest.approx([k / n for k, n in counts])
        wanted = [wilson(k, n) for k, n in counts]
        for drawn, ends in zip(whiskers(ax, colour), wanted, strict=True):
            assert drawn == pytest.approx(ends)
    assert sorted(t.get_text() for t in ax.texts) == ["4", "4", "4", "4", "8", "8"]
    assert words(ax)[:2] == ["text", "flowchart"]
    assert any("sessions with a verdict" in text for text in words(ax))


def test_agents_in_one_format_stand_side_by_side_in_one_panel(words):
    results = [
        *sessions("A", 1, 4, agent="x_1"),
        *sessions("B", 2, 4, agent="x_1"),
        *sessions("A", 3, 4, agent="y"),
        *sessions("B", 4, 4, agent="y"),
    ]
    (ax,) = format_points(Tallies(results)).axes
    assert words(ax)[:2] == ["x 1", "y"]
    assert rows_of(ax) == ["all domains", "A", "B"]
    assert marks(ax, BLUE) == [3 / 8, 1 / 4, 2 / 4]  # the first look
    assert marks(ax, ORANGE) == [7 / 8, 3 / 4, 1.0]  # the second
    many = [r for i in range(9) for d in "AB" for r in sessions(d, 1, 2 + i, agent=f"a{i}")]
    drawn = words(format_points(Tallies(many)).axes[0])
    assert drawn[:7] == [f"a{i}" for i in range(8, 1, -1)]
    assert "not shown: a1 and a0" in drawn
