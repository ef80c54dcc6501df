"""Marks that several figures draw alike: lines with whiskers, samples, the word for nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from agenteval.figures.style import WIDTH, Look
from agenteval.figures.text import wrapped
from agenteval.stats import Interval

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

Floats = NDArray[np.float64]
_CHARACTER = 0.066  # inches, at 8 points


def arrays(cells: Sequence[Interval]) -> tuple[Floats, Floats, Floats]:
    """Means, lower and upper ends (n,) each, NaN for what is not known."""
    mean = [np.nan if c.mean is None else c.mean for c in cells]
    low = [np.nan if c.low is None else c.low for c in cells]
    high = [np.nan if c.high is None else c.high for c in cells]
    return np.array(mean), np.array(low), np.array(high)


def away(cells: Sequence[Interval]) -> Floats:
    """Lengths (2, n) of the whiskers below and above the means, for `errorbar`."""
    mean, low, high = arrays(cells)
    return np.maximum(np.vstack([mean - low, high - mean]), 0)


def room(ax: Axes | None) -> float:
    """Inches for names side by side: the width of the caller's axes, or that of a new figure's."""
    if ax is None:
        return WIDTH - 0.8
    figure = ax.get_figure(root=True)
    assert figure is not None
    return float(ax.get_window_extent().width / figure.dpi)


def letters(groups: int, inches: float) -> int:
    """Characters that fit side by side under each of so many groups."""
    return max(int(inches / groups / _CHARACTER), 6)


def criterion_axis(ax: Axes, criteria: Sequence[str], lying: bool, inches: float) -> None:
    """Names of the criteria at 0, 1, …: below, or at the left with the first one on top."""
    places = list(range(len(criteria)))
    if lying:
        ax.set_yticks(places, [wrapped(c, 26, lines=2) for c in criteria])
        ax.set_ylim(len(criteria) - 0.45, -0.55)
        return
    ax.set_xticks(places, [wrapped(c, letters(len(criteria), inches)) for c in criteria])
    ax.set_xlim(-0.55, len(criteria) - 0.45)


def line(ax: Axes, at: Floats, cells: Sequence[Interval], look: Look, *, size: float = 4) -> None:
    """Means joined by a line, with whiskers; hollow where there is no interval, a gap for none."""
    mean, low, _ = arrays(cells)
    whole = ~np.isnan(low)
    ax.errorbar(
        at[whole], mean[whole], yerr=away(cells)[:, whole], fmt="none", ecolor=look.colour,
        elinewidth=0.8, capsize=2,
    )  # fmt: skip
    ax.plot(at, mean, color=look.colour, linestyle=look.line, marker=look.marker, markersize=size)
    hollow(ax, at, cells, look)


def hollow(ax: Axes, at: Floats, cells: Sequence[Interval], look: Look) -> None:
    """Hollow marks over the means that have no interval."""
    mean, low, _ = arrays(cells)
    lone = np.isnan(low) & ~np.isnan(mean)
    if lone.any():
        ax.plot(
            at[lone], mean[lone], linestyle="none", marker=look.marker, color=look.colour,
            markerfacecolor="white", markersize=4.5, zorder=3, clip_on=False,
        )  # fmt: skip


def none_word(ax: Axes, at: float, lying: bool) -> None:
    """The word "none" where a bar or box would stand."""
    spot = (0.008, at) if lying else (at, 0.012)
    ax.text(
        *spot, "none", rotation=0 if lying else 90, fontsize=6.5, color="#555555",
        ha="left" if lying else "center", va="center" if lying else "bottom",
    )  # fmt: skip


def sample(look: Look, label: str) -> Artist:
    """The legend's sample of a line."""
    from matplotlib.lines import Line2D

    return Line2D([], [], color=look.colour, linestyle=look.line, marker=look.marker, label=label)
