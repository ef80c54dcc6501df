"""Box plots over repeats: how far the judge's repeats move a mean, beside what cases leave open."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from agenteval.figures.grouped import lies_down
from agenteval.figures.groups import by_success, criteria_of, interval, originals, unlabelled_runs
from agenteval.figures.marks import away, criterion_axis, none_word, room
from agenteval.figures.repeats import LOOK_OF, per_repeat
from agenteval.figures.style import (
    INK,
    VALUE,
    Look,
    axes_or_new,
    drawing,
    fix_ticks,
    legend,
    note,
    value_axis,
)
from agenteval.figures.text import listed, n_label, span
from agenteval.stats import Interval
from agenteval.stats.scores import ScoreTable
from agenteval.text import plural

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

LEAST = 5  # repeats for a box; fewer are drawn as points


@dataclass(frozen=True)
class Spread:
    """The mean of a group at every repeat that has values, and the interval over its cases."""

    means: tuple[float, ...]
    overall: Interval


def spread(rows: ScoreTable) -> Spread:
    """What a box shows of the ratings of one criterion and group."""
    _, cells = per_repeat(rows)
    return Spread(tuple(c.mean for c in cells if c.mean is not None), interval(rows))


def repeat_boxes(table: ScoreTable, *, ax: Axes | None = None) -> Axes:
    """Per criterion the spread over repeats of the mean of successful and of failed runs.

    The axes of figure 7 of arXiv 2402.09015: one value per repeat, the mean over the group's
    runs. The box spans the quartiles (numpy's linear percentiles), the line is the median,
    whiskers reach the least and the greatest repeat. Fewer than five repeats are drawn as points.
    Beside each box stands the mean over everything with its 95 % interval over cases, since
    repeats that agree say nothing about other cases. Only original runs are shown.

    Raises InputError without values of original runs.
    """
    part = originals(table)
    criteria = criteria_of(part)
    groups = by_success(part)
    cells = {
        g: [spread(rows.of(criterion=c)) for c in criteria.drawn] for g, rows in groups.items()
    }
    lying = lies_down(criteria.drawn, 4, inches := room(ax))
    handles: list[Artist] = []
    with drawing():
        height = 1.0 + 0.25 * len(criteria.drawn) * len(groups) if lying else 3.0
        axes = axes_or_new(ax, height)
        for i, (group, row) in enumerate(cells.items()):
            counts = n_label([s.overall for s in row])
            if not any(s.means for s in row):
                handles.append(note(f"{group}: no cases"))
                continue
            centre = (i - (len(groups) - 1) / 2) * 0.44
            for k, one in enumerate(row):
                _draw_one(axes, k + centre, one, LOOK_OF[group], lying)
            repeats = span((len(s.means) for s in row), "repeat")
            handles.append(_swatch(group, f"{group} ({repeats}; {counts})"))
        criterion_axis(axes, criteria.drawn, lying, inches)
        value_axis(axes, horizontal=lying, label=VALUE)
        fix_ticks(axes)
        axes.set_title("Means over repeats of the judge")
        legend(axes, handles + _explained(cells, part, criteria.empty), own=ax is None)
    return axes


def _draw_one(ax: Axes, at: float, one: Spread, look: Look, lying: bool) -> None:
    if not one.means:
        none_word(ax, at, lying)
        return
    if len(one.means) >= LEAST:
        made = ax.boxplot(
            [list(one.means)], positions=[at - 0.05], widths=0.2, whis=(0, 100),
            orientation="horizontal" if lying else "vertical", patch_artist=True,
            manage_ticks=False, medianprops={"color": INK, "linewidth": 1.4},
            boxprops={"edgecolor": look.colour, "facecolor": look.light(0.5), "linewidth": 0.9},
            whiskerprops={"color": look.colour}, capprops={"color": look.colour},
        )  # fmt: skip
        for box in made["boxes"]:
            box.set(hatch=look.hatch)
    else:
        places = np.full(len(one.means), at - 0.05)
        points = (one.means, places) if lying else (places, one.means)
        ax.plot(*points, linestyle="none", marker=look.marker, color=look.colour,
                markerfacecolor=look.light(0.5), markersize=4)  # fmt: skip
    _case_interval(ax, at + 0.12, one.overall, lying)


def _case_interval(ax: Axes, at: float, found: Interval, lying: bool) -> None:
    assert found.mean is not None
    points = ([found.mean], [at]) if lying else ([at], [found.mean])
    if found.low is None:
        ax.plot(*points, marker="d", linestyle="none", color=INK, markerfacecolor="white",
                markersize=3.5)  # fmt: skip
        return
    whiskers = away([found])
    ax.errorbar(
        *points, xerr=whiskers if lying else None, yerr=None if lying else whiskers, fmt="d",
        color=INK, markersize=3, elinewidth=0.9, capsize=1.8,
    )  # fmt: skip


def _swatch(group: str, label: str) -> Artist:
    from matplotlib.patches import Patch

    look = LOOK_OF[group]
    return Patch(facecolor=look.light(0.5), edgecolor=look.colour, hatch=look.hatch, label=label)


def _explained(
    cells: dict[str, list[Spread]], part: ScoreTable, empty: tuple[str, ...]
) -> list[Artist]:
    from matplotlib.lines import Line2D

    every = [s for row in cells.values() for s in row if s.means]
    handles: list[Artist] = [
        Line2D([], [], marker="d", color=INK, markersize=3, label="mean, 95 % interval over cases")
    ]
    if any(len(s.means) >= LEAST for s in every):
        handles.append(note("box: quartiles and median over repeats; whiskers: all repeats"))
    if any(len(s.means) < LEAST for s in every):
        handles.append(note(f"fewer than {LEAST} repeats: points instead of a box"))
    if any(s.overall.low is None for s in every):
        handles.append(note("hollow diamond: no interval (1 case)"))
    if missing := unlabelled_runs(part):
        handles.append(note(f"not shown: {plural(missing, 'run')} of unknown success"))
    if empty:
        handles.append(note(f"without values: {listed(empty)}"))
    return handles
