"""Success and failed bars by system: the paper's figures 3b and 4b."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agenteval.figures.grouped import Series, draw_groups, lone_point, swatch
from agenteval.figures.groups import (
    by_success,
    criteria_of,
    interval,
    originals,
    systems,
    unlabelled_runs,
)
from agenteval.figures.style import drawing, legend, looks, note
from agenteval.figures.text import listed, n_label, plain
from agenteval.stats.scores import ScoreTable
from agenteval.text import plural

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes


def success_bars(table: ScoreTable, *, ax: Axes | None = None) -> Axes:
    """Mean value per criterion: a dark bar for successful, a pale one for failed runs per system.

    The axes of figure 3b of arXiv 2402.09015. Only original runs are shown. Whiskers are 95 %
    intervals with cases as units (`stats.mean_interval`); n of every kind of bar stands in the
    legend, as a range where criteria differ. A kind without any value has no bars and a line in
    the legend; one case gives a hollow point without an interval. Bars lie when criteria are
    many or their names long. Where success is unknown throughout there is one bar per system.

    Raises InputError without values of original runs, or for more systems than looks.
    """
    part = originals(table)
    criteria = criteria_of(part)
    found = systems(part)
    style = looks(list(found), "systems")
    series: list[Series] = []
    words: list[str] = []
    for system, rows in found.items():
        groups = by_success(part)  # the same groups for every system, although one may be empty
        for group in groups:
            own = by_success(rows).get(group, rows.where(rows.success > 1))
            cells = {c: interval(own.of(criterion=c)) for c in criteria.drawn}
            counts = n_label(list(cells.values()))
            label = f"{plain(system)}, {group} ({counts})"
            if not any(cell.n for cell in cells.values()):
                words.append(f"{plain(system)}, {group}: {counts}")
                continue
            series.append(Series(label, style[system], group == "failed", cells))
    if missing := unlabelled_runs(part):
        words.append(f"not shown: {plural(missing, 'run')} of unknown success")
    if criteria.empty:
        words.append(f"without values: {listed(criteria.empty)}")
    if not series:  # all values belong to runs of unknown success, others have none
        series = [_everyone(part, criteria.drawn)]
    with drawing():
        axes = draw_groups(ax, criteria.drawn, series)
        axes.set_title("Ratings of successful and failed runs by system")
        handles: list[Artist] = [*map(swatch, series), *lone_point(series), *map(note, words)]
        legend(axes, handles, own=ax is None)
    return axes


def _everyone(part: ScoreTable, criteria: tuple[str, ...]) -> Series:
    cells = {c: interval(part.of(criterion=c)) for c in criteria}
    label = f"all runs, success unknown ({n_label(list(cells.values()))})"
    return Series(label, next(iter(looks(["all"], "").values())), False, cells)
