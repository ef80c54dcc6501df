"""How many judgements could be made, why others could not, and what they cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agenteval.errors import InputError
from agenteval.figures.groups import clusters
from agenteval.figures.marks import away
from agenteval.figures.style import (
    INK,
    WIDTH,
    axes_or_new,
    drawing,
    fix_ticks,
    legend,
    new_figure,
    note,
    outside,
)
from agenteval.figures.text import plain, wrapped
from agenteval.records.run import Usage
from agenteval.stats import Interval, mean_interval
from agenteval.stats.scores import ScoreTable

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Status: words, colour, hatch. Answers first, then what is missing from the judge, then from the
# machinery; each family has its colours, hatches tell them apart in grey.
_STATUS = {
    "scored": ("rated", "#0072B2", ""),
    "degenerate": ("degenerate answer, worst level", "#9fd0ee", "---"),
    "not_applicable": ("not applicable", "#dddddd", ""),
    "unscored:parse": ("unscored: parse", "#E69F00", ""),
    "unscored:missing": ("unscored: missing", "#f4cf80", "///"),
    "unscored:off_scale": ("unscored: off scale", "#F0E442", "..."),
    "unscored:refusal": ("unscored: refusal", "#f8f1a0", "xxx"),
    "unscored:unsupported": ("unscored: unsupported", "#e9cfa0", "\\\\\\"),
    "unscored:too_long": ("unscored: too long", "#fbe7c4", "+++"),
    "error:infrastructure": ("error: infrastructure", "#D55E00", ""),
    "error:timeout": ("error: timeout", "#e89a63", "///"),
    "error:budget": ("error: budget", "#f3c9ab", "..."),
    "error:judge": ("error: judge", "#b23a00", "xxx"),
}
_OTHER = ("#CC79A7", "xxx")


@dataclass(frozen=True)
class Coverage:
    """Judgements of one criterion by status, and the share rated with its interval."""

    criterion: str
    counts: dict[str, int]
    rated: Interval

    @property
    def total(self) -> int:
        """All judgements that were asked for."""
        return sum(self.counts.values())


def coverage_of(table: ScoreTable) -> list[Coverage]:
    """Per criterion the judgements by status; the share rated with cases as clusters.

    Rated is what has the status "scored". Raises InputError for an empty table.
    """
    if not len(table):
        raise InputError("there are no ratings to draw")
    result = []
    for name in table.present("criterion"):
        own = table.of(criterion=name)
        rated: NDArray[np.bool_] = own.status.codes == own.status.code("scored")
        share = mean_interval(
            rated.astype(float).tolist(), clusters(own).tolist(), bounds=(0.0, 1.0)
        )
        result.append(Coverage(name, own.statuses(), share))
    return result


def coverage_bars(table: ScoreTable, *, ax: Axes | None = None) -> Axes:
    """One lying bar per criterion, its judgements by status as shares of all that were asked for.

    The whisker at the end of the rated part is its 95 % interval with cases as units; counts
    stand in the names and in the legend. All variants and repeats of the table are counted.
    Raises InputError for an empty table.
    """
    rows = coverage_of(table)
    with drawing():
        axes = axes_or_new(ax, 0.9 + 0.29 * len(rows))
        handles = _stack(axes, rows)
        axes.set_title("Judgements by status")
        legend(axes, handles, own=ax is None)
    return axes


def cost_panel(usage: Usage | None, *, ax: Axes | None = None) -> Axes:
    """Requests, tokens and cost in words and numbers; what nobody reported is "unknown"."""
    with drawing():
        axes = axes_or_new(ax, 1.5)
        axes.set_axis_off()
        axes.set_title("Cost")
        lines = _amounts(usage)
        for i, (name, amount) in enumerate(lines):
            top = (0, 1 - 0.25 * i)
            axes.annotate(name, top, xycoords="axes fraction", va="top", fontsize=7,
                          color="#555555")  # fmt: skip
            axes.annotate(amount, top, xytext=(0, -9), textcoords="offset points",
                          xycoords="axes fraction", va="top", fontsize=9)  # fmt: skip
    return axes


def coverage_and_cost(table: ScoreTable, usage: Usage | None) -> Figure:
    """`coverage_bars` with `cost_panel` beside it. Raises InputError for an empty table."""
    rows = coverage_of(table)
    with drawing():
        figure = new_figure(WIDTH, max(0.9 + 0.29 * len(rows), 2.1))
        left, right = figure.subplots(1, 2, width_ratios=(4.2, 1))
        handles = _stack(left, rows)
        left.set_title("Judgements by status")
        cost_panel(usage, ax=right)
        outside(figure, handles)
    return figure


def _amounts(usage: Usage | None) -> list[tuple[str, str]]:
    def said(number: float | None, form: str = ",") -> str:
        return "unknown" if number is None else format(number, form)

    if usage is None:
        return [("not recorded", "")]
    return [
        ("requests", said(usage.requests)),
        ("tokens read", said(usage.prompt_tokens)),
        ("tokens written", said(usage.completion_tokens)),
        ("cost", said(usage.cost, ",.4g")),
    ]


def _stack(ax: Axes, rows: Sequence[Coverage]) -> list[Artist]:
    from matplotlib.patches import Patch

    present = {status for row in rows for status in row.counts}
    order = [s for s in _STATUS if s in present] + sorted(present - set(_STATUS))
    places = np.arange(len(rows))
    left = np.zeros(len(rows))
    handles: list[Artist] = []
    for status in order:
        words, colour, hatch = _STATUS.get(status, (plain(status), *_OTHER))
        counts = np.array([row.counts.get(status, 0) for row in rows])
        width = counts / np.array([row.total for row in rows])
        label = f"{words} ({int(counts.sum()):,})"
        ax.barh(places, width, 0.68, left=left, facecolor=colour, hatch=hatch, edgecolor=INK,
                linewidth=0.5, label=label)  # fmt: skip
        left += width
        handles.append(Patch(facecolor=colour, hatch=hatch, edgecolor=INK, label=label))
    bound = [i for i, row in enumerate(rows) if row.rated.low is not None]
    cells = [rows[i].rated for i in bound]
    if cells:
        ax.errorbar([c.mean for c in cells if c.mean is not None], bound, xerr=away(cells),
                    fmt="none", ecolor="black", elinewidth=1.1, capsize=2.5)  # fmt: skip
    if len(bound) < len(rows):
        handles.append(note("without whisker: no interval (1 case)"))
    ax.set_yticks(places, [f"{wrapped(r.criterion, 24, lines=2)} (n = {r.total:,})" for r in rows])
    ax.set_ylim(len(rows) - 0.5, -0.5)
    ax.set_xlim(0, 1)
    ax.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
    ax.set_xlabel("share of all judgements (whiskers: share rated, 95 %)")
    fix_ticks(ax)
    return handles
