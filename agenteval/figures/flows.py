"""Figures of workflow campaigns: formats of the procedure by domain, their differences, causes.

The comparison of arXiv 2406.14884 (domains × formats), with intervals and counts.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from agenteval.errors import InputError
from agenteval.evaluators.workflows import tallies
from agenteval.evaluators.workflows.results import SessionResult
from agenteval.evaluators.workflows.scenario import FORMATS
from agenteval.figures.flows_rates import (
    check_ending,
    format_comparison,
    points,
    save_formats,
)
from agenteval.figures.style import (
    LOOKS,
    QUIET,
    axes_or_new,
    drawing,
    fix_ticks,
    legend,
    light_grid,
    note,
)
from agenteval.figures.text import wrapped
from agenteval.text import plural

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

MOST_PAIRS = 40
__all__ = [
    "cause_bars", "check_ending", "format_comparison", "format_differences", "save_formats",
]  # fmt: skip


def format_differences(
    pairs: Sequence[tallies.FormatPair], *, ax: Axes | None = None, what: str = "success"
) -> Axes:
    """Paired differences of formats, first less second, with 95 % intervals: a row for each pair.

    At the right stand the tasks that both have a verdict on. `what` names the rate. Beyond 40
    pairs the others are counted. Raises InputError without any difference.
    """
    known = [p for p in pairs if p.difference.mean is not None]
    if not known:
        raise InputError("no agent was tried in two formats on the same tasks")
    known.sort(key=lambda p: (p.agent, *_in_order(p)))
    rows = known[:MOST_PAIRS]
    several = len({p.agent for p in known}) > 1
    with drawing():
        axes = axes_or_new(ax, 0.85 + len(rows) * (0.32 if several else 0.24))
        axes.axvline(0, color=QUIET, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0.5)
        points(axes, np.arange(len(rows), dtype=np.float64), [p.difference for p in rows],
                LOOKS[0])  # fmt: skip
        for y, pair in enumerate(rows):
            axes.text(1.01, y, f"{pair.tasks:,}", va="center", fontsize=6.5, color="#555555",
                      transform=axes.get_yaxis_transform())  # fmt: skip
        axes.set_yticks(range(len(rows)), [_pair_name(p, several) for p in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        _symmetric(axes, rows)
        light_grid(axes.xaxis)
        axes.set_xlabel(f"{what} with the first less {what} with the second")
        axes.set_title("Formats compared on the same tasks")
        fix_ticks(axes)
        handles: list[Artist] = [note("whiskers: 95 %; at the right: tasks with both")]
        if any(p.difference.low is None for p in rows):
            handles.append(note("hollow: no interval"))
        if rest := len(known) - len(rows):
            handles.append(note(f"not drawn: {plural(rest, 'pair')}"))
        legend(axes, handles, own=ax is None)
    return axes


def _in_order(pair: tallies.FormatPair) -> tuple[int, int]:
    names: Sequence[str] = FORMATS
    return names.index(pair.first), names.index(pair.second)


def _pair_name(pair: tallies.FormatPair, several: bool) -> str:
    name = f"{pair.first} − {pair.second}".replace("_", " ")
    return f"{wrapped(pair.agent, 36, lines=1)}\n{name}" if several else name


def _symmetric(ax: Axes, rows: Sequence[tallies.FormatPair]) -> None:
    """Zero in the middle, and no more width than the intervals need."""
    from matplotlib.ticker import MaxNLocator

    ends = [abs(e) for p in rows for e in (p.difference.mean, p.difference.low, p.difference.high)
            if e is not None]  # fmt: skip
    far = min(max(1.08 * max(ends), 0.25), 1.02)  # small differences shall look small
    ax.set_xlim(-far, far)
    ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:+.3g}".replace("-", "−") if x else "0")


def cause_bars(results: Sequence[SessionResult], *, ax: Axes | None = None) -> Axes:
    """Shares of the causes of failed sessions, a bar for each system.

    Raises InputError where no session failed.
    """
    from agenteval.evaluators.planning.tallies import Part, Shares
    from agenteval.figures.planning import share_bars
    from agenteval.stats import proportion_interval

    found = sorted(tallies.causes(results), key=lambda c: c.system)
    rows = [
        Shares(
            c.system,
            c.failed,
            tuple(Part(k, n, proportion_interval(n, c.failed)) for k, n in c.counts.items()),
        )
        for c in found
    ]
    return share_bars(rows, "Why sessions failed, by system", "failed session", ax=ax)
