"""Charts of workflows: rates, intervals and counts where they belong, files as asked."""

from __future__ import annotations

import math

import matplotlib.colors
import pytest

from agenteval.errors import InputError
from agenteval.evaluators.workflows.results import (
    CaseInfo,
    SessionResult,
    SessionVerdict,
    TurnResult,
)
from agenteval.evaluators.workflows.session import Prediction, SessionLog
from agenteval.evaluators.workflows.tallies import FormatPair, Tallies
from agenteval.evaluators.workflows.turn_score import TurnVerdict
from agenteval.report.style import save
from agenteval.report.workflow_charts import cause_bars, format_differences, format_points
from agenteval.stats import Interval

BLUE, GREEN = "#0072B2", "#009E73"  # of text and flowchart, whatever else is there


def case(domain, task, level="session"):
    id = task if level == "session" else f"{task}:1"
    return CaseInfo(
        level=level, id=id, task=task, role="r", domain=domain, scenarios=("s",)
    )  # fmt: skip


def session(domain, task, success, *, format="text", agent="a", cause=None):
    verdict = SessionVerdict(
        success=success, decided_by="state", right=0, gold=0, generated=0, conforms=True,
        cause=cause,
    )  # fmt: skip
    log = SessionLog(ended="user", turns=1)
    return SessionResult(
        case(domain, task), f"{agent} · {format}", agent, format, {}, 0, log, verdict
    )


def sessions(domain, passed, in_all, **more):
    return [session(domain, f"{domain}{i}", i < passed, **more) for i in range(in_all)]


def turn(task, right, format="text"):
    verdict = TurnVerdict(
        session=task, turn=1, form="call", gold_call=True, call="right" if right else "wrong"
    )
    return TurnResult(
        case("A", task, "turn"), f"a · {format}", "a", format, {}, 0, Prediction(form="call"),
        verdict,
    )  # fmt: skip


@pytest.fixture
def two():
    """Success: A text 3/4, flowchart 4/4; B text 1/4, flowchart 2/4."""
    return [
        *sessions("A", 3, 4), *sessions("A", 4, 4, format="flowchart"),
        *sessions("B", 1, 4), *sessions("B", 2, 4, format="flowchart"),
    ]  # fmt: skip


def wilson(passed, n, z=1.959963984540054):
    """Wilson (1927), as in every textbook."""
    p = passed / n
    middle, half = p + z * z / (2 * n), z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n))
    return (middle - half) / (1 + z * z / n), (middle + half) / (1 + z * z / n)


def marks(ax, colour):
    """The means of the marks of a colour, from top to bottom."""
    found = [
        (float(y), float(x))
        for line in ax.lines
        if line.get_color() == colour and line.get_linestyle() == "None"
        and line.get_marker() not in ("|", "_")
        for x, y in zip(line.get_xdata(), line.get_ydata(), strict=True)
    ]  # fmt: skip
    return [x for _, x in sorted(found)]


def whiskers(ax, colour):
    """(low, high) of the whiskers of a colour, from top to bottom."""
    found = []
    for container in ax.containers:
        (bars,) = container.lines[2]
        if matplotlib.colors.same_color(bars.get_color()[0], colour):
            found += [(float(s[0][1]), float(s[0][0]), float(s[1][0])) for s in bars.get_segments()]
    return [row[1:] for row in sorted(found)]


def rows_of(ax):
    return [t.get_text() for t in ax.get_yticklabels()]


def test_rates_by_domain_and_over_all_of_them_with_intervals_and_counts(two, words):
    figure = format_points(Tallies(two))
    (ax,) = figure.axes
    assert rows_of(ax) == ["all domains", "A", "B"]
    for colour, counts in ((BLUE, [(4, 8), (3, 4), (1, 4)]), (GREEN, [(6, 8), (4, 4), (2, 4)])):
        assert marks(ax, colour) == pytest.approx([k / n for k, n in counts])
        wanted = [wilson(k, n) for k, n in counts]
        for drawn, ends in zip(whiskers(ax, colour), wanted, strict=True):
            assert drawn == pytest.approx(ends)
    assert sorted(t.get_text() for t in ax.texts) == ["4", "4", "4", "4", "8", "8"]
    assert words(ax)[:2] == ["text", "flowchart"]
    assert any("sessions with a verdict" in text for text in words(ax))


def test_of_single_turns_the_due_calls_that_are_right():
    results = [turn(f"t{i}", i < 15) for i in range(20)]
    (ax,) = format_points(Tallies(turns=results)).axes
    assert marks(ax, BLUE) == [0.75]  # one domain: no row for all
    assert ax.get_xlabel() == "share of due calls that are right"


def test_what_nobody_could_decide_is_in_no_rate(two):
    more = [session("A", "lost", None), session("C", "lost too", None)]
    (ax,) = format_points(Tallies([*two, *more])).axes
    assert rows_of(ax) == ["all domains", "A", "B"]
    assert marks(ax, BLUE)[0] == 0.5


def test_beyond_four_agents_those_with_fewer_formats_are_named(two, words):
    alone = [r for name in "zyxw" for r in sessions("A", 1, 2, agent=name)]
    figure = format_points(Tallies([*alone, *two]))
    assert [ax.get_title("left").split(",")[0] for ax in figure.axes] == ["a", "w", "x", "y"]
    assert "not drawn: z" in words(figure.axes[0])


def test_agents_in_one_format_stand_side_by_side_in_one_panel(words):
    results = [*sessions("A", 1, 4, agent="x_1"), *sessions("B", 2, 4, agent="x_1"),
               *sessions("A", 3, 4, agent="y"), *sessions("B", 4, 4, agent="y")]  # fmt: skip
    (ax,) = format_points(Tallies(results)).axes
    assert words(ax)[:2] == ["x 1", "y"] or words(ax)[:2] == ["x_1", "y"]
    assert rows_of(ax) == ["all domains", "A", "B"]
    assert marks(ax, BLUE) == [3 / 8, 1 / 4, 2 / 4]  # the first look
    assert marks(ax, "#D55E00") == [7 / 8, 3 / 4, 1.0]  # the second
    many = [r for i in range(9) for d in "AB" for r in sessions(d, 1, 2 + i, agent=f"a{i}")]
    drawn = words(format_points(Tallies(many)).axes[0])
    assert drawn[:7] == [f"a{i}" for i in range(8, 1, -1)]
    assert "not drawn: a1 and a0" in drawn


def test_in_a_single_domain_agents_are_the_rows():
    results = [r for i in range(9) for r in sessions("A", i, 9, agent=f"a{i}")]
    (ax,) = format_points(Tallies([*results, session("C", "lost", None, agent="a1")])).axes
    assert rows_of(ax) == [f"a{i}" for i in range(9)]
    assert marks(ax, BLUE) == [i / 9 for i in range(9)]


def pair(agent, names, difference, tasks=9):
    return FormatPair(agent, *names, tasks, 0, difference, 0.5, 0.5, None)


def test_differences_stand_on_one_scale_with_zero_in_the_middle(words):
    spread = Interval(0.4, 0.2, 0.6, None, 9, 9, "m")
    alone = Interval(-0.1, None, None, None, 1, 1, "m", "one task")
    (ax,) = format_differences(
        [pair("b", ("text", "none"), spread), pair("a", ("code", "none"), alone, 1),
         pair("a", ("text", "code"), spread)]
    ).axes  # fmt: skip
    assert rows_of(ax) == ["a: text − code", "a: code − none", "b: text − none"]
    assert whiskers(ax, BLUE) == [pytest.approx((0.2, 0.6))] * 2
    hollow = next(x for x in ax.lines if x.get_markerfacecolor() == "white")
    assert (list(hollow.get_xdata()), list(hollow.get_ydata())) == ([-0.1], [1.0])
    assert [t.get_text() for t in ax.texts] == ["9", "1", "9"]
    low, high = ax.get_xlim()
    assert -low == high == pytest.approx(0.648)
    assert "hollow: no interval" in words(ax)


def test_causes_fill_the_bar_of_their_system(words):
    failed = [session("A", f"t{i}", False, cause=c)
              for i, c in enumerate(["missing_step", "tool_use", "tool_use", "other"])]  # fmt: skip
    ax = cause_bars(Tallies([*failed, session("A", "fine", True)]))
    assert [(p.get_x(), p.get_width()) for p in ax.patches] == [
        (0.0, 0.25), (0.25, 0.5), (0.75, 0.25),
    ]  # fmt: skip
    assert words(ax) == ["missing step", "tool use", "other"]


def test_nothing_to_draw_is_said():
    for draw, nothing in ((format_points, Tallies()), (format_differences, []),
                          (cause_bars, Tallies())):  # fmt: skip
        with pytest.raises(InputError, match=r"no .* to draw|no agent was tried"):
            draw(nothing)
    with pytest.raises(InputError, match="no rate"):
        format_points(Tallies([session("A", "t", None)]))


def test_files_are_what_their_ending_says_and_a_pdf_has_no_date(two, tmp_path):
    begins = {"a.png": b"\x89PNG", "a.svg": b"<?xml", "a.PDF": b"%PDF", "b.pdf": b"%PDF"}
    for name, start in begins.items():
        save(format_points(Tallies(two, [turn("t", True)])), tmp_path / name)
        assert (tmp_path / name).read_bytes().startswith(start)
    assert (tmp_path / "a.PDF").read_bytes() == (tmp_path / "b.pdf").read_bytes()
