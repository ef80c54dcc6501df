"""Radar of systems over criteria: the paper's figures 3a and 4a."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from agenteval.figures.groups import criteria_of, interval, originals, systems
from agenteval.figures.marks import Floats, arrays, hollow
from agenteval.figures.style import Look, axes_or_new, drawing, legend, looks, note
from agenteval.figures.text import listed, n_label, plain, wrapped
from agenteval.stats import Interval
from agenteval.stats.scores import ScoreTable

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_MOST_LEVEL = 12  # names beyond this many are turned along their spoke


def radar(table: ScoreTable, *, ax: Axes | None = None) -> Axes:
    """Mean value of every system on every criterion, one spoke per criterion from 0 to 1.

    The axes of figure 3a of arXiv 2402.09015, with the 95 % interval over cases as a band and as
    whiskers on the spokes, which are shifted a little so that systems do not hide each other.
    Only original runs are shown. A missing mean opens the polygon and is named in the legend.
    The area of a polygon depends on the order of the criteria and means nothing.

    Raises InputError for fewer than three criteria with values, for more systems than looks, and
    for axes that are not polar.
    """
    part = originals(table)
    criteria = criteria_of(part, least=3)
    found = systems(part)
    style = looks(list(found), "systems")
    cells = {s: [interval(t.of(criterion=c)) for c in criteria.drawn] for s, t in found.items()}
    with drawing():
        axes = axes_or_new(ax, 4.6 if len(criteria.drawn) <= _MOST_LEVEL else 6.2, polar=True)
        _spokes(axes, criteria.drawn)
        handles: list[Artist] = []
        for i, (system, row) in enumerate(cells.items()):
            shift = (i - (len(cells) - 1) / 2) * min(0.03, 0.5 / len(criteria.drawn))
            label = f"{plain(system)} ({n_label(row)})"
            if not any(cell.n for cell in row):
                handles.append(note(label))
                continue
            handles.append(_polygon(axes, row, style[system], shift, label))
        handles += [note(text) for text in _missing(cells, criteria.drawn)]
        if criteria.empty:
            handles.append(note(f"without values: {listed(criteria.empty)}"))
        title = "Mean ratings by system, 0 worst to 1 best; 95 % intervals over cases"
        if ax is None:
            figure = axes.get_figure(root=True)
            assert figure is not None
            figure.suptitle(title, x=0.01, ha="left", fontsize=9.5)
        else:
            axes.set_title(title, pad=24, loc="center")
        legend(axes, handles, own=ax is None)
    return axes


def _spokes(ax: Axes, criteria: Sequence[str]) -> None:
    from matplotlib.projections.polar import PolarAxes

    assert isinstance(ax, PolarAxes)
    ax.set_theta_zero_location("N")
    ax.set_theta_direction(-1)
    angles = _angles(len(criteria))
    ax.set_xticks(angles, [""] * len(criteria))
    ax.set_ylim(0, 1)
    ax.set_yticks([0.25, 0.5, 0.75, 1], ["0.25", "0.5", "0.75", "1"])
    ax.set_rlabel_position(math.degrees(angles[1]) / 2)
    ax.tick_params(axis="y", labelsize=7, colors="#666666")
    ax.grid(True)
    ax.spines["polar"].set_visible(False)
    turned = len(criteria) > _MOST_LEVEL
    for angle, name in zip(angles, criteria, strict=True):
        _spoke_name(ax, float(angle), name, turned)


def _spoke_name(ax: Axes, angle: float, name: str, turned: bool) -> None:
    right, up = math.sin(angle), math.cos(angle)  # clockwise from the top
    across = "center" if abs(right) < 0.2 else "left" if right > 0 else "right"
    upright = "center" if abs(up) < 0.35 else "bottom" if up > 0 else "top"
    degrees = 0.0
    if turned:
        degrees = 90 - math.degrees(angle)
        across, upright = "left", "center"
        if right < -1e-9:
            degrees, across = degrees + 180, "right"
    text = wrapped(name, 22 if turned else 18, lines=1 if turned else 3)
    ax.text(angle, 1.06, text, ha=across, va=upright, rotation=degrees,
            rotation_mode="anchor", fontsize=8, gid="spoke")  # fmt: skip


def _angles(count: int) -> Floats:
    return np.arange(count) * 2 * np.pi / count


def _polygon(ax: Axes, row: Sequence[Interval], look: Look, shift: float, label: str) -> Artist:
    closed = [*row, row[0]]
    angles = np.append(_angles(len(row)), 2 * np.pi)
    mean, low, high = arrays(closed)
    ax.fill_between(angles, low, high, color=look.colour, alpha=0.13, linewidth=0)
    (line,) = ax.plot(
        angles, mean, color=look.colour, linestyle=look.line, marker=look.marker, label=label
    )
    bound = ~np.isnan(low[:-1])
    at = angles[:-1][bound] + shift
    ax.vlines(at, low[:-1][bound], high[:-1][bound], color=look.colour, linewidth=1.0)
    hollow(ax, angles[:-1], row, look)
    return line


def _missing(cells: dict[str, list[Interval]], criteria: Sequence[str]) -> list[str]:
    words = []
    for system, row in cells.items():
        filled = any(cell.n for cell in row)
        empty = [c for c, cell in zip(criteria, row, strict=True) if not cell.n]
        if empty and filled:
            words.append(f"{plain(system)}: no values on {listed(empty)}")
    if any(cell.n and cell.low is None for row in cells.values() for cell in row):
        words.append("hollow marks: no interval (1 case)")
    return words
