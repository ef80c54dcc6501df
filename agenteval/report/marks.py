"""Series of values and the marks that charts draw alike: whiskers, hollow marks, axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from agenteval.records.table import Estimate
from agenteval.report.style import (
    INK,
    QUIET,
    Look,
    figure_of,
    light_grid,
    longest_word,
    looks,
    plain,
    wrapped,
)
from agenteval.stats import Interval

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

Floats = NDArray[np.floating[Any]]
Value = Interval | Estimate | None
QUARTERS = ([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
LEVEL: dict[str, Any] = {"color": QUIET, "linewidth": 0.9, "linestyle": (0, (4, 3))}
_MOST_UPRIGHT = 9  # groups; more of them lie on their side, one below the other
_MOST_BARS = 54
_CHARACTER = 0.066  # inches, at 8 points


@dataclass(frozen=True)
class Series:
    """Values of one kind, one for each group, row or point; None or without a mean for none.

    `label` is what the legend says (the name if empty), `pale` the lighter one of a pair, `look`
    an own look. `at` are the places of `lines` (0, 1, … if empty), `counts` what `points` writes
    at the right.
    """

    name: str
    values: Sequence[Value]
    label: str = ""
    pale: bool = False
    look: Look | None = None
    at: Sequence[float] = ()
    counts: Sequence[int] = ()

    @property
    def words(self) -> str:
        """The text of the legend."""
        return plain(self.label or self.name)


def styles(series: Sequence[Series], what: str) -> dict[str, Look]:
    """The look of every series by its name, the same wherever the name comes again."""
    given = {one.name: one.look for one in series if one.look is not None}
    rest = [name for name in dict.fromkeys(one.name for one in series) if name not in given]
    return {**looks(rest, what), **given}


def arrays(values: Sequence[Value]) -> tuple[Floats, Floats, Floats]:
    """Means, lower and upper ends (n,) each, NaN for what is not known."""
    rows = []
    for value in values:
        mean = value.value if isinstance(value, Estimate) else value.mean if value else None
        low, high = (value.low, value.high) if value else (None, None)
        whole = low is not None and high is not None
        rows.append((np.nan if mean is None else mean,
                     low if whole else np.nan, high if whole else np.nan))  # fmt: skip
    made = np.array(rows, dtype=np.float64).reshape(-1, 3)
    return made[:, 0], made[:, 1], made[:, 2]


def whiskers(
    ax: Axes, at: Floats, values: Sequence[Value], colour: str, *, lying: bool, cap: float
) -> None:
    mean, low, high = arrays(values)
    whole = ~np.isnan(low) & ~np.isnan(mean)
    away = np.maximum(np.vstack([mean - low, high - mean]), 0)[:, whole]
    spots = (mean[whole], at[whole]) if lying else (at[whole], mean[whole])
    ax.errorbar(
        *spots, xerr=away if lying else None, yerr=None if lying else away, fmt="none",
        ecolor=colour, elinewidth=0.9, capsize=cap,
    )  # fmt: skip


def hollow(
    ax: Axes, at: Floats, values: Sequence[Value], look: Look, *, lying: bool, size: float = 4.5
) -> None:
    """Hollow marks over the means that have no interval."""
    mean, low, _ = arrays(values)
    lone = np.isnan(low) & ~np.isnan(mean)
    if lone.any():
        spots = (mean[lone], at[lone]) if lying else (at[lone], mean[lone])
        ax.plot(*spots, linestyle="none", marker=look.marker, color=look.colour,
                markerfacecolor="white", markersize=size, zorder=3, clip_on=False)  # fmt: skip


def marks(
    ax: Axes, at: Floats, values: Sequence[Value], look: Look, *, lying: bool, size: float = 4
) -> None:
    """Marks with whiskers, hollow where there is no interval."""
    mean, low, _ = arrays(values)
    whole = ~np.isnan(low)
    spots = (mean[whole], at[whole]) if lying else (at[whole], mean[whole])
    ax.plot(*spots, linestyle="none", marker=look.marker, color=look.colour, markersize=size)
    whiskers(ax, at, values, look.colour, lying=lying, cap=1.8)
    hollow(ax, at, values, look, lying=lying, size=size)


def none_word(ax: Axes, at: float, *, lying: bool) -> None:
    """The word "none" where a bar or box would stand."""
    spot = (0.008, at) if lying else (at, 0.012)
    ax.text(
        *spot, "none", rotation=0 if lying else 90, fontsize=6.5, color="#555555",
        ha="left" if lying else "center", va="center" if lying else "bottom",
    )  # fmt: skip


def lone(series: Sequence[Series]) -> list[Artist]:
    """Legend entry that explains hollow points, when the chart has one."""
    from matplotlib.lines import Line2D

    for one in series:
        mean, low, _ = arrays(one.values)
        if (np.isnan(low) & ~np.isnan(mean)).any():
            return [Line2D([], [], linestyle="none", marker="o", markerfacecolor="white",
                           markeredgecolor=INK, markersize=4.5,
                           label="hollow: no interval")]  # fmt: skip
    return []


def inches_of(ax: Axes) -> float:
    return float(ax.get_window_extent().width / figure_of(ax).dpi)


def _letters(groups: int, inches: float) -> int:
    """Characters that fit side by side under each of so many groups."""
    return max(int(inches / groups / _CHARACTER), 6)


def lies(groups: Sequence[str], each: int, inches: float) -> bool:
    """Whether bars lie: too many, or names that do not fit under a group of bars."""
    if len(groups) > _MOST_UPRIGHT or len(groups) * each > _MOST_BARS:
        return True
    return longest_word(groups) > _letters(len(groups), inches)


def group_axis(ax: Axes, groups: Sequence[str], inches: float, *, lying: bool) -> None:
    """Names of the groups at 0, 1, …: below, or at the left with the first one on top."""
    places = list(range(len(groups)))
    if lying:
        ax.set_yticks(places, [wrapped(g, 26, lines=2) for g in groups])
        ax.set_ylim(len(groups) - 0.45, -0.55)
    else:
        ax.set_xticks(places, [wrapped(g, _letters(len(groups), inches)) for g in groups])
        ax.set_xlim(-0.55, len(groups) - 0.45)


def value_axis(ax: Axes, label: str, lying: bool) -> None:
    """Scale, grid and label of the axis that shows values in [0, 1]."""
    axis = ax.xaxis if lying else ax.yaxis
    (ax.set_xlim if lying else ax.set_ylim)(0, 1.02)
    axis.set_ticks(*QUARTERS)
    light_grid(ax, "x" if lying else "y")
    axis.set_label_text(label)
