"""Dose-response: the change of the ratings against the share of the text that was perturbed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from agenteval.errors import InputError
from agenteval.figures.groups import criteria_of, originals
from agenteval.figures.marks import line, sample
from agenteval.figures.perturbed import copies, operators_with_shares, paired_change
from agenteval.figures.style import (
    QUIET,
    axes_or_new,
    drawing,
    fix_ticks,
    grid,
    legend,
    light_grid,
    looks,
    note,
    outside,
)
from agenteval.figures.text import n_label, plain, wrapped
from agenteval.stats import Interval
from agenteval.stats.scores import ScoreTable

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


def dose_response(table: ScoreTable, operator: str, *, ax: Axes | None = None) -> Axes:
    """Mean change of the value (copy minus original, paired by run) against the share perturbed.

    One line per criterion with 95 % intervals over cases; points of different criteria are moved
    aside a little so that their whiskers can be told apart. The grey line is no change.

    Raises InputError when the operator has no copies with a share, and for more criteria than
    looks (`dose_grid` draws a panel each).
    """
    shares = _shares(table, operator)
    criteria = criteria_of(originals(table)).drawn
    style = looks(criteria, "criteria")
    cells = {c: _changes(table.of(criterion=c), operator, shares) for c in criteria}
    step = 0.012 * max(shares[-1], 0.2)
    handles: list[Artist] = []
    with drawing():
        axes = axes_or_new(ax, 3.0)
        _frame(axes, shares)
        for i, (name, row) in enumerate(cells.items()):
            label = f"{plain(name)} ({n_label(row, 'run')})"
            if not any(cell.n for cell in row):
                handles.append(note(label))
                continue
            shift = (i - (len(cells) - 1) / 2) * step
            line(axes, np.array(shares) + shift, row, style[name])
            handles.append(sample(style[name], label))
        axes.set_title(f"{plain(operator)}: change of the rating, 95 % intervals over cases")
        axes.set_xlabel("share perturbed")
        axes.set_ylabel("copy minus original")
        if any(c.n and c.low is None for row in cells.values() for c in row):
            handles.append(note("hollow marks: no interval (1 case)"))
        legend(axes, handles, own=ax is None)
    return axes


def dose_grid(table: ScoreTable) -> Figure:
    """`dose_response` with a panel per criterion and a line per operator; n in the legend.

    Raises InputError when no operator has copies with a share, or more have them than looks.
    """
    shares = operators_with_shares(table)
    if not shares:
        raise InputError("there are no perturbed copies with a share")
    criteria = criteria_of(originals(table)).drawn
    style = looks(list(shares), "operators")
    counted: dict[str, list[Interval]] = {op: [] for op in shares}
    with drawing():
        title = "Change of the rating by share perturbed, 95 % intervals over cases"
        figure, panels = grid(len(criteria), title, "share perturbed", "copy minus original")
        for ax, name in zip(panels, criteria, strict=True):
            _frame(ax, sorted({s for each in shares.values() for s in each}))
            ax.set_title(wrapped(name, 26, lines=2), fontsize=8.5)
            for i, (operator, own) in enumerate(shares.items()):
                row = _changes(table.of(criterion=name), operator, own)
                counted[operator] += row
                shift = (i - (len(shares) - 1) / 2) * 0.02 * max(own[-1], 0.2)
                if any(c.n for c in row):
                    line(ax, np.array(own) + shift, row, style[operator])
        handles = [
            sample(style[op], f"{plain(op)} ({n_label(counted[op], 'run')})") for op in shares
        ]
        outside(figure, handles)
    return figure


def _shares(table: ScoreTable, operator: str) -> Sequence[float]:
    found = operators_with_shares(table)
    if operator not in found:
        known = ", ".join(found) or "none"
        raise InputError(f"no copies with a share by {operator!r}; operators with shares: {known}")
    return found[operator]


def _changes(table: ScoreTable, operator: str, shares: Sequence[float]) -> list[Interval]:
    before = table.of(variant="original")
    return [paired_change(before, copies(table, operator, s)) for s in shares]


def _frame(ax: Axes, shares: Sequence[float]) -> None:
    ax.axhline(0, color=QUIET, linewidth=0.9, zorder=0.5)
    ax.set_xlim(0, shares[-1] * 1.12)
    ax.set_xticks(list(shares), [f"{s:.0%}".replace("%", " %") for s in shares])
    light_grid(ax.yaxis)
    fix_ticks(ax)
