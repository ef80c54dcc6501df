"""Distinct criteria against the number of critic runs: the paper's figure 5."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from agenteval.errors import InputError
from agenteval.figures.marks import sample
from agenteval.figures.style import (
    Look,
    axes_or_new,
    drawing,
    fix_ticks,
    grid,
    legend,
    light_grid,
    looks,
    outside,
)
from agenteval.figures.text import plain, span
from agenteval.stats import UniqueCurve
from agenteval.text import plural

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_TITLE = "Distinct criteria in M sets, exact mean and 95 % of resampled draws"
_COUNT = "distinct criteria"


def unique_curves(curves: Mapping[float, UniqueCurve], *, ax: Axes | None = None) -> Axes:
    """One curve per merging threshold τ: x the number of sets M, y distinct criteria.

    The line is the exact mean over draws of M sets, the band the central 95 % of single draws
    (`stats.unique_curve`), so it is a spread and not the uncertainty of the mean. τ = 1 merges
    nothing but equal names. The legend states n, the number of sets.

    Raises InputError without curves and for more of them than looks.
    """
    _some(curves)
    ordered = {_tau(t): curves[t] for t in sorted(curves, reverse=True)}
    with drawing():
        axes = axes_or_new(ax, 3.1)
        handles = _draw(axes, ordered, looks(list(ordered), "curves"), counted=True)
        axes.set_xlabel("sets of criteria, M")
        axes.set_ylabel(_COUNT)
        axes.set_title(_TITLE)
        fix_ticks(axes)
        legend(axes, handles, own=ax is None)
    return axes


def unique_curve_grid(modes: Mapping[str, Mapping[float, UniqueCurve]]) -> Figure:
    """A panel per τ, a line per mode (for instance what the critic was shown), as in figure 5.

    Raises InputError without curves and for more modes than looks.
    """
    _some(modes)
    taus = sorted({t for found in modes.values() for t in found}, reverse=True)
    _some(taus)
    style = looks(list(modes), "modes")
    with drawing():
        figure, panels = grid(len(taus), _TITLE, "sets of criteria, M", _COUNT)
        for ax, tau in zip(panels, taus, strict=True):
            _draw(ax, {m: c[tau] for m, c in modes.items() if tau in c}, style, counted=False)
            ax.set_title(_tau(tau))
        fix_ticks(*panels)
        handles = [
            sample(style[m], f"{plain(m)} (n = {span((len(c.m) for c in found.values()), 'set')})")
            for m, found in modes.items()
        ]
        outside(figure, handles)
    return figure


def _some(given: object) -> None:
    if not given:
        raise InputError("there are no curves to draw")


def _tau(tau: float) -> str:
    return "τ = 1, equal names" if tau == 1 else f"τ = {tau:g}"


def _draw(
    ax: Axes, curves: Mapping[str, UniqueCurve], style: Mapping[str, Look], *, counted: bool
) -> list[Artist]:
    from matplotlib.ticker import MaxNLocator

    handles = []
    for i, (name, curve) in enumerate(curves.items()):
        look = style[name]
        every = max(1, len(curve.m) // 8)
        ax.fill_between(curve.m, curve.low, curve.high, color=look.colour, alpha=0.16, linewidth=0)
        ax.plot(
            curve.m, curve.mean, color=look.colour, linestyle=look.line, marker=look.marker,
            markevery=(min(i, len(curve.m) - 1), every), markersize=4,
        )  # fmt: skip
        label = f"{plain(name)} (n = {plural(len(curve.m), 'set')})" if counted else plain(name)
        handles.append(sample(look, label))
    ax.set_ylim(bottom=0)
    ax.set_xlim(left=0)
    light_grid(ax.yaxis)
    ax.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    return handles
