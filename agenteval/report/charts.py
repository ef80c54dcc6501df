"""Charts on plain values: radar, heatmap, lines, points; bars, boxes and shares are in `bars`.

Each takes `ax=` to draw into axes of the caller; without it a new figure of print width (16 cm) is
made, which belongs to no window. `style.save` and `style.svg` write it. matplotlib is loaded when
the first one is drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from agenteval.errors import InputError
from agenteval.report.marks import (
    LEVEL,
    QUARTERS,
    Floats,
    Series,
    Value,
    arrays,
    hollow,
    lone,
    marks,
    styles,
    whiskers,
)
from agenteval.report.style import (
    INK,
    WIDTH,
    Look,
    axes_or_new,
    drawing,
    figure_of,
    finish_axes,
    legend,
    light_grid,
    new_figure,
    note,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_LEVEL = 12  # names around a radar beyond which they are turned along their spoke
_GUESS: dict[str, Any] = {"color": "#555555", "linewidth": 0.9, "linestyle": (0, (1, 1.5))}
_PRINTED = 11  # rows of a heatmap that fit in print width; above, the figure grows


def radar(
    spokes: Sequence[str],
    series: Sequence[Series],
    *,
    title: str,
    notes: Sequence[str] = (),
    ax: Axes | None = None,
) -> Axes:
    """A polygon of means for each series, one spoke per name from 0 to 1, clockwise from the top.

    The interval is a band and, shifted a little, whiskers on the spokes. A missing mean opens the
    polygon. The area of a polygon depends on the order of the spokes and means nothing. Raises
    InputError for axes that are not polar and for more series than looks.
    """
    style = styles(series, "series")
    with drawing():
        axes = axes_or_new(ax, 4.6 if len(spokes) <= _MOST_LEVEL else 6.2, polar=True)
        _spokes(axes, spokes)
        angles = np.append(np.arange(len(spokes)) * 2 * np.pi / len(spokes), 2 * np.pi)
        handles: list[Artist] = []
        for i, one in enumerate(series):
            look, closed = style[one.name], [*one.values, one.values[0]]
            mean, low, high = arrays(closed)
            axes.fill_between(angles, low, high, color=look.colour, alpha=0.13, linewidth=0)
            (line,) = axes.plot(angles, mean, color=look.colour, linestyle=look.line,
                                marker=look.marker, label=one.words)  # fmt: skip
            bound = ~np.isnan(low[:-1])
            shift = (i - (len(series) - 1) / 2) * min(0.03, 0.5 / len(spokes))
            axes.vlines(angles[:-1][bound] + shift, low[:-1][bound], high[:-1][bound],
                        color=look.colour, linewidth=1.0)  # fmt: skip
            hollow(axes, angles[:-1], one.values, look, lying=False)
            handles.append(line)
        if ax is None:
            figure_of(axes).suptitle(title, x=0.01, ha="left", fontsize=9.5)
        else:
            axes.set_title(title, pad=24, loc="center")
        legend(axes, [*handles, *lone(series), *map(note, notes)], own=ax is None)
    return axes


def _spokes(ax: Axes, names: Sequence[str]) -> None:
    from matplotlib.projections.polar import PolarAxes

    assert isinstance(ax, PolarAxes)
    ax.set_theta_zero_location("N")
    ax.set_theta_direction(-1)
    ax.set_xticks(np.arange(len(names)) * 2 * np.pi / len(names), [""] * len(names))
    ax.set_ylim(0, 1)
    ax.set_yticks(QUARTERS[0][1:], QUARTERS[1][1:])
    ax.set_rlabel_position(180 / len(names))
    ax.tick_params(axis="y", labelsize=7, colors="#666666")
    ax.grid(True)
    ax.spines["polar"].set_visible(False)
    turned = len(names) > _MOST_LEVEL
    for i, name in enumerate(names):
        angle = 2 * math.pi * i / len(names)
        right, up = math.sin(angle), math.cos(angle)
        across = "center" if abs(right) < 0.2 else "left" if right > 0 else "right"
        upright = "center" if abs(up) < 0.35 else "bottom" if up > 0 else "top"
        degrees = 0.0
        if turned:
            degrees, across, upright = 90 - math.degrees(angle), "left", "center"
            if right < -1e-9:
                degrees, across = degrees + 180, "right"
        text = wrapped(name, 22 if turned else 18, lines=1 if turned else 3)
        ax.text(angle, 1.06, text, ha=across, va=upright, rotation=degrees,
                rotation_mode="anchor", fontsize=8)  # fmt: skip


def heatmap(  # noqa: PLR0913  each is a part of the chart
    names: Sequence[str],
    values: Floats,
    *,
    title: str,
    scale: str,
    counts: NDArray[np.int64] | None = None,
    notes: Sequence[str] = (),
    ax: Axes | None = None,
) -> Axes:
    """A symmetric matrix of values in [-1, 1], its lower half as coloured cells with numbers.

    A dash is NaN. `counts` stand on the diagonal and in the upper half. Beyond 11 names the figure
    grows so that numbers stay readable. `scale` names the colours.
    """
    from matplotlib import colormaps

    size, colours = len(names), colormaps["PuOr_r"]
    with drawing():
        if ax is None and size > _PRINTED:
            axes = new_figure(0.46 * size + 2.2, 0.46 * size + 1.4).add_subplot()
        else:
            axes = axes_or_new(ax, min(WIDTH, 2.2 + 0.4 * size))
        lower = np.where(np.tri(size, k=-1, dtype=bool), values, np.nan)
        image = axes.imshow(lower, cmap=colours, vmin=-1, vmax=1, aspect="auto")
        for i in range(size):
            for j in range(i + 1 if counts is not None else i):
                if counts is not None:
                    axes.text(i, j, f"{counts[j, i]:,}", ha="center", va="center", fontsize=6.5,
                              color="#666666")  # fmt: skip
                if j < i:
                    number = float(values[i, j])
                    axes.text(j, i, _correlation(number), ha="center", va="center", fontsize=8,
                              color=_ink(colours, number))  # fmt: skip
        _matrix_axes(axes, names, lower_only=counts is None)
        bar = axes.figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02)
        bar.set_label(scale)
        bar.ax.tick_params(labelsize=7, width=0.7, length=2)
        axes.set_title(title)
        if ax is None:
            legend(axes, [note(text) for text in notes], own=True)
    return axes


def _ink(colours: Any, value: float) -> str:
    """White or dark, whichever contrasts more with the cell (WCAG 2.1, relative luminance)."""
    if np.isnan(value):
        return INK
    parts = np.array(colours((value + 1) / 2)[:3])
    linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return "white" if float(linear @ (0.2126, 0.7152, 0.0722)) < 0.179 else INK


def _correlation(value: float) -> str:
    """Two decimals, without the zero before the point and without a negative zero."""
    if np.isnan(value):
        return "–"
    text = f"{value + 0.0:.2f}".replace("-0.00", "0.00")
    return text if text.lstrip("-").startswith("1") else text.replace("0.", ".", 1)


def _matrix_axes(ax: Axes, names: Sequence[str], *, lower_only: bool) -> None:
    places, steep = list(range(len(names))), len(names) > _PRINTED
    ax.set_xticks(
        places, [wrapped(n, 24, lines=1) for n in names], rotation=90 if steep else 40,
        ha="right", va="center" if steep else "top", rotation_mode="anchor",
    )  # fmt: skip
    ax.set_yticks(places, [wrapped(n, 24, lines=2) for n in names])
    for axis in (ax.xaxis, ax.yaxis):
        axis.set_ticks(np.arange(len(names) + 1) - 0.5, minor=True)
    ax.grid(which="minor", color="white", linewidth=1.5)
    ax.spines[:].set_visible(False)
    finish_axes(ax)
    ax.tick_params(length=0)
    if lower_only:  # the first row and the last column have nothing to say
        ax.set_xlim(-0.5, len(names) - 1.5)
        ax.set_ylim(len(names) - 0.5, 0.5)


def lines(  # noqa: PLR0913  each is a part of the chart
    panels: Mapping[str, Sequence[Series]],
    *,
    title: str,
    x: str,
    y: str,
    ticks: Mapping[float, str] | None = None,
    levels: Mapping[float, str] | None = None,
    limits: tuple[float, float] | None = (0.0, 1.02),
    spread: bool = False,
    guess: tuple[Sequence[float], Sequence[float]] | None = None,
    notes: Sequence[str] = (),
    ax: Axes | None = None,
) -> Figure:
    """Means joined by lines with their intervals as bands and whiskers, a panel for each key.

    A series looks the same in all panels; what is not known is a gap, a mean without interval
    hollow. Bands that are a `spread` and no uncertainty stand alone. `levels` are dashed lines
    across with their names ("" for none), `guess` places and values of a dotted line that random
    answers would reach. One panel can be drawn into `ax`. Raises InputError for
    more series than looks.
    """
    from matplotlib.lines import Line2D

    style = styles([one for some in panels.values() for one in some], "series")
    with drawing():
        figure, cells = _panels(list(panels), (title, x, y), 3.1, ax)
        for axes, some in zip(cells, panels.values(), strict=True):
            for level in levels or ():
                axes.axhline(level, zorder=0.5, **LEVEL)
            for i, one in enumerate(some):
                _line(axes, one, style[one.name], (i - (len(some) - 1) / 2) * 0.012, spread)
            if guess is not None:
                axes.plot(*guess, marker=".", markersize=3, zorder=1, **_GUESS)
            if limits is not None:
                axes.set_ylim(*limits)
                axes.set_yticks(*QUARTERS)
            if ticks is not None:
                axes.set_xticks(list(ticks), list(ticks.values()))
            light_grid(axes, "y")
        finish_axes(*cells)
        handles: list[Artist] = [
            Line2D([], [], color=style[one.name].colour, linestyle=style[one.name].line,
                   marker=style[one.name].marker, label=one.words)
            for one in _once(panels)
        ]  # fmt: skip
        handles += [Line2D([], [], label=name, **LEVEL) for name in (levels or {}).values()
                    if name]  # fmt: skip
        if guess is not None:
            handles.append(Line2D([], [], label="random orders", marker=".", **_GUESS))
        if not spread:
            handles += lone([one for some in panels.values() for one in some])
        legend(cells[0], [*handles, *map(note, notes)], own=ax is None)
    return figure


def _line(ax: Axes, one: Series, look: Look, shift: float, spread: bool) -> None:
    places = np.array(one.at or range(len(one.values)), dtype=np.float64)
    reach = float(np.ptp(places)) if len(places) > 1 else 1.0
    at = places + shift * reach
    mean, low, high = arrays(one.values)
    every = max(1, len(at) // 12)
    ax.fill_between(at, low, high, color=look.colour, alpha=0.14, linewidth=0)
    ax.plot(at, mean, color=look.colour, linestyle=look.line, marker=look.marker, markersize=4,
            markevery=every)  # fmt: skip
    if spread:
        return
    if len(at) <= 20:
        whiskers(ax, at, one.values, look.colour, lying=False, cap=2)
    hollow(ax, at, one.values, look, lying=False)


def points(  # noqa: PLR0913  each is a part of the chart
    rows: Sequence[str],
    panels: Mapping[str, Sequence[Series]],
    *,
    title: str,
    x: str,
    limits: tuple[float, float] | None = (0.0, 1.0),
    level: float | None = None,
    notes: Sequence[str] = (),
    ax: Axes | None = None,
) -> Figure:
    """Marks with lying whiskers, a row for each name and a panel for each key.

    Values of a series stand in the order of `rows`. Without `limits` the axis is symmetric around
    0, for differences. `level` is a dashed line. Raises InputError for more series than looks.
    """
    from matplotlib.lines import Line2D

    style = styles([one for some in panels.values() for one in some], "series")
    most = max(len(some) for some in panels.values())
    with drawing():
        names = [wrapped(row, 38, lines=2) for row in rows]
        folded = any("\n" in name for name in names)
        height = 0.9 + len(rows) * max(0.09 + 0.12 * most, 0.33 if folded else 0.22)
        figure, cells = _panels(list(panels), (title, x, ""), height, ax, columns=2)
        for axes, some in zip(cells, panels.values(), strict=True):
            if level is not None:
                axes.axvline(level, zorder=0.5, **LEVEL)
            for i, one in enumerate(some):
                at = np.arange(len(one.values)) + (i - (len(some) - 1) / 2) * 0.74 / len(some)
                marks(axes, at, one.values, style[one.name], lying=True)
                for y, number in zip(at, one.counts, strict=False):
                    if number:
                        axes.text(
                            1.01, y, f"{number:,}", va="center", fontsize=6.5, color="#555555",
                            transform=axes.get_yaxis_transform(),
                        )  # fmt: skip
            for edge in range(1, len(rows)):
                axes.axhline(edge - 0.5, color="#e3e3e3", linewidth=0.5, zorder=0)
            axes.set_yticks(range(len(rows)), names, fontsize=8 if len(rows) <= 25 else 7)
            axes.set_ylim(len(rows) - 0.4, -0.6)
            _point_axis(axes, [v for one in some for v in one.values], limits)
            light_grid(axes, "x")
        finish_axes(*cells)
        handles: list[Artist] = [
            Line2D([], [], linestyle="none", color=style[one.name].colour,
                   marker=style[one.name].marker, label=one.words)
            for one in _once(panels)
        ] if most > 1 else []  # fmt: skip
        handles += lone([one for some in panels.values() for one in some])
        legend(cells[0], [*handles, *map(note, notes)], own=ax is None)
    return figure


def _point_axis(ax: Axes, values: Sequence[Value], limits: tuple[float, float] | None) -> None:
    if limits is not None:
        room = 0.03 * (limits[1] - limits[0])
        ax.set_xlim(limits[0] - room, limits[1] + room)
        return
    from matplotlib.ticker import MaxNLocator

    ends = np.abs(np.concatenate(arrays(values)))
    far = min(max(1.08 * float(np.nanmax(ends, initial=0)), 0.25), 1.02)  # small ones look small
    ax.set_xlim(-far, far)
    ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    ax.xaxis.set_major_formatter(lambda v, _: f"{v:+.3g}".replace("-", "−") if v else "0")


def _once(panels: Mapping[str, Sequence[Series]]) -> list[Series]:
    """Each series once, for the legend."""
    found: dict[str, Series] = {}
    for one in (one for some in panels.values() for one in some):
        found.setdefault(one.name, one)
    return list(found.values())


def _panels(
    names: Sequence[str],
    words: tuple[str, str, str],
    height: float,
    ax: Axes | None,
    columns: int = 3,
) -> tuple[Figure, list[Axes]]:
    """A figure with axes for each name that share their scales; `words` are title and labels.

    One alone has its title above it and is as high as said, of several each is.
    """
    title, x, y = words
    if len(names) == 1:
        axes = axes_or_new(ax, height)
        axes.set_title(title)
        axes.set_xlabel(x)
        axes.set_ylabel(y)
        return figure_of(axes), [axes]
    if ax is not None:
        raise InputError(f"{len(names)} panels: draw them without `ax`")
    columns = min(len(names), columns)
    rows = -(-len(names) // columns)
    figure = new_figure(WIDTH, (height if columns == 2 else 1.9) * rows + 0.5)
    grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
    cells = list(grid.flat)
    for unused in cells[len(names) :]:
        unused.remove()
    for lowest in cells[max(len(names) - columns, 0) : len(names)]:  # also above a gap
        lowest.tick_params(labelbottom=True)
        lowest.set_xlabel(x)
    for start in cells[: len(names) : columns]:
        start.set_ylabel(y)
    figure.suptitle(title, x=0.01, ha="left", fontsize=9.5)
    for axes, name in zip(cells, names, strict=False):
        axes.set_title(wrapped(name, 26 if columns > 2 else 40, lines=2), fontsize=8.5)
    return figure, cells[: len(names)]
