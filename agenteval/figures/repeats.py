"""Repeats of the judge: bands run by run and boxes over repeats, the paper's figures 6 and 7."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from agenteval.figures.groups import (
    by_success,
    criteria_of,
    interval,
    originals,
    unlabelled_runs,
)
from agenteval.figures.marks import Floats, arrays, line, sample
from agenteval.figures.style import (
    FAILED,
    SUCCESS,
    UNKNOWN,
    VALUE,
    Look,
    axes_or_new,
    drawing,
    fix_ticks,
    grid,
    legend,
    note,
    outside,
    value_axis,
)
from agenteval.figures.text import n_label, plain, wrapped
from agenteval.stats import Interval
from agenteval.stats.scores import ScoreTable
from agenteval.text import plural

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

LOOK_OF = {"success": SUCCESS, "failed": FAILED, "success unknown": UNKNOWN}


def repeat_bands(table: ScoreTable, criterion: str, *, ax: Axes | None = None) -> Axes:
    """Mean of successful and of failed runs at every repeat of the judge, for one criterion.

    The axes of figure 6 of arXiv 2402.09015: x the repeat (counted from 0, as in the table), y
    the group's mean with its 95 % interval over cases as a band and whiskers. All systems of the
    table are pooled; only original runs are shown. A repeat without values leaves a gap.

    Raises InputError when the criterion has no values on original runs.
    """
    part = _one(originals(table), criterion)
    with drawing():
        axes = axes_or_new(ax, 2.8)
        handles = _bands(axes, part)
        axes.set_title(f"{plain(criterion)}: mean at every repeat, 95 % intervals over cases")
        axes.set_xlabel("repeat of the judge")
        value_axis(axes, horizontal=False, label=VALUE)
        fix_ticks(axes)
        legend(axes, handles, own=ax is None)
    return axes


def repeat_grid(table: ScoreTable) -> Figure:
    """`repeat_bands` of every criterion with values, a small panel each; n in the legend.

    The counts of the legend are ranges over all criteria. Raises InputError without values.
    """
    part = originals(table)
    criteria = criteria_of(part).drawn
    with drawing():
        title = "Means at every repeat, 95 % intervals over cases"
        figure, panels = grid(len(criteria), title, "repeat of the judge", "mean value, 0 to 1")
        for axes, name in zip(panels, criteria, strict=True):
            _bands(axes, part.of(criterion=name))
            axes.set_title(wrapped(name, 26, lines=2), fontsize=8.5)
            value_axis(axes, horizontal=False, label=axes.get_ylabel())
        fix_ticks(*panels)
        handles = [
            _sample(group, n_label([interval(rows.of(criterion=c)) for c in criteria]), len(rows))
            for group, rows in by_success(part).items()
        ]
        outside(figure, handles + _unlabelled(part))
    return figure


def _one(part: ScoreTable, criterion: str) -> ScoreTable:
    own = part.of(criterion=criterion)
    criteria_of(own)  # raises when there is nothing to draw
    return own


def _sample(group: str, counts: str, rows: int) -> Artist:
    if not rows:
        return note(f"{group}: no cases")
    return sample(LOOK_OF[group], f"{group} ({counts})")


def _unlabelled(part: ScoreTable) -> list[Artist]:
    missing = unlabelled_runs(part)
    return [note(f"not shown: {plural(missing, 'run')} of unknown success")] if missing else []


def per_repeat(rows: ScoreTable) -> tuple[list[int], list[Interval]]:
    """Repeats 0..last and the interval of each; one without values has an interval of n = 0."""
    last = int(rows.repeat.max(initial=-1))
    numbers = list(range(last + 1))
    return numbers, [interval(rows.where(rows.repeat == k)) for k in numbers]


def _bands(ax: Axes, part: ScoreTable) -> list[Artist]:
    handles: list[Artist] = []
    groups = by_success(part)
    for i, (group, rows) in enumerate(groups.items()):
        numbers, cells = per_repeat(rows)
        handles.append(_sample(group, n_label(cells), sum(c.n for c in cells)))
        shift = (i - (len(groups) - 1) / 2) * 0.08
        _band(ax, np.array(numbers) + shift, cells, LOOK_OF[group])
    last = int(part.repeat.max(initial=0))
    step = max(1, -(-last // 10))
    ax.set_xticks(range(0, last + 1, step))
    ax.set_xlim(-0.4, last + 0.4)
    return handles + _unlabelled(part)


def _band(ax: Axes, at: Floats, cells: Sequence[Interval], look: Look) -> None:
    _, low, high = arrays(cells)
    ax.fill_between(at, low, high, color=look.colour, alpha=0.16, linewidth=0)
    line(ax, at, cells, look, size=2.5 if len(cells) > 20 else 4)
    if any(c.n and c.low is None for c in cells):
        ax.annotate("hollow: no interval (1 case)", (0.99, 0.02), xycoords="axes fraction",
                    ha="right", va="bottom", fontsize=7, color="#555555")  # fmt: skip
