"""Groups of bars with intervals, upright or lying: what two figures have in common."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from agenteval.figures.marks import Floats, arrays, away, criterion_axis, letters, none_word, room
from agenteval.figures.style import INK, Look, axes_or_new, fix_ticks, value_axis
from agenteval.figures.text import longest_word
from agenteval.stats import Interval

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

_MOST_UPRIGHT = 9  # criteria; more of them lie on their side, one below the other
_MOST_BARS = 54
_SPREAD = 0.84  # of the distance between two criteria is filled with bars


@dataclass(frozen=True)
class Series:
    """Bars of one kind: an interval for every criterion, `light` for the pale one of a pair."""

    label: str
    look: Look
    light: bool
    cells: Mapping[str, Interval]


def lies_down(criteria: Sequence[str], bars: int, inches: float) -> bool:
    """Whether the bars lie: too many, or names that do not fit under a group of bars."""
    too_many = len(criteria) > _MOST_UPRIGHT or len(criteria) * bars > _MOST_BARS
    return too_many or longest_word(criteria) > letters(len(criteria), inches)


def draw_groups(ax: Axes | None, criteria: Sequence[str], series: Sequence[Series]) -> Axes:
    """Bars from 0 to the mean with whiskers over the interval, side by side per criterion.

    A mean without an interval (one case) is a hollow point, not a bar. No values: the word
    "none" where the bar would stand.
    """
    inches = room(ax)
    lying = lies_down(criteria, len(series), inches)
    height = 0.9 + len(criteria) * (0.12 * len(series) + 0.13) if lying else 2.9
    ax = axes_or_new(ax, height)
    width = _SPREAD / len(series)
    for i, one in enumerate(series):
        at: Floats = np.arange(len(criteria), dtype=np.float64) - _SPREAD / 2 + width * (i + 0.5)
        _draw_series(ax, [one.cells[c] for c in criteria], (at, width), one, lying)
    criterion_axis(ax, criteria, lying, inches)
    value_axis(ax, horizontal=lying)
    fix_ticks(ax)
    return ax


def _draw_series(
    ax: Axes, cells: Sequence[Interval], place: tuple[Floats, float], one: Series, lying: bool
) -> None:
    at, width = place
    mean, low, _ = arrays(cells)
    whole, single = ~np.isnan(low), np.isnan(low) & ~np.isnan(mean)
    draw = ax.barh if lying else ax.bar
    draw(at[whole], mean[whole], width * 0.94, label=one.label, **_surface(one))
    points = (mean[whole], at[whole]) if lying else (at[whole], mean[whole])
    whiskers = away(cells)[:, whole]
    ax.errorbar(
        *points, xerr=whiskers if lying else None, yerr=None if lying else whiskers, fmt="none",
        ecolor=INK, elinewidth=0.9, capsize=min(2.2, 9 * width),
    )  # fmt: skip
    if single.any():
        alone = (mean[single], at[single]) if lying else (at[single], mean[single])
        ax.plot(
            *alone, linestyle="none", marker=one.look.marker, markerfacecolor="white",
            markeredgecolor=one.look.colour, markersize=4.5, zorder=3, clip_on=False,
        )  # fmt: skip
    for spot in at[np.isnan(mean)]:
        none_word(ax, float(spot), lying)


def _surface(one: Series) -> dict[str, Any]:
    return {
        "facecolor": one.look.light() if one.light else one.look.colour,
        "edgecolor": one.look.colour if one.light else "white",  # of the hatch, too
        "hatch": one.look.hatch,
        "linewidth": 0.6,
    }


def swatch(one: Series) -> Artist:
    """The legend's sample of a kind of bar."""
    from matplotlib.patches import Patch

    return Patch(label=one.label, **_surface(one))


def lone_point(series: Sequence[Series]) -> list[Artist]:
    """Legend entry that explains hollow points, when the figure has one."""
    from matplotlib.lines import Line2D

    lone = any(c.mean is not None and c.low is None for s in series for c in s.cells.values())
    if not lone:
        return []
    return [
        Line2D([], [], linestyle="none", marker="o", markerfacecolor="white",
               markeredgecolor=INK, markersize=4.5, label="no interval (1 case)")
    ]  # fmt: skip
