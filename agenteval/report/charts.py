"""The kinds of charts on plain values: radar, heatmap, lines, rows of bars or marks, boxes, shares.

Each takes `ax=` to draw into axes of the caller; without it a new figure of print width (16 cm) is
made, which belongs to no window. `style.save` and `style.svg` write it. matplotlib is loaded when
the first one is drawn. A mean without an interval is hollow, what is unknown is a gap or the word
"none", never a zero. All raise InputError for more series than can be told apart.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from agenteval.errors import InputError
from agenteval.records.table import Estimate
from agenteval.report.style import (
    INK,
    LOOKS,
    WIDTH,
    Look,
    axes_or_new,
    drawing,
    figure_of,
    finish_axes,
    legend,
    looks,
    new_figure,
    plain,
    wrapped,
)
from agenteval.stats import Interval

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

Floats = NDArray[np.floating[Any]]
Value = Interval | Estimate | None
QUARTERS = ([0, 0.25, 0.5, 0.75, 1], ["0", "0.25", "0.5", "0.75", "1"])
_LEVEL: dict[str, Any] = {"color": "#8c8c8c", "linewidth": 0.9, "linestyle": (0, (4, 3))}
_GUESS: dict[str, Any] = {"color": "#555555", "linewidth": 0.9, "linestyle": (0, (1, 1.5))}
_SMALL: dict[str, Any] = {"fontsize": 6.5, "color": "#555555", "va": "center"}
_MOST_LEVEL = 12  # names around a radar beyond which they are turned along their spoke
_PRINTED = 11  # rows of a heatmap that fit in print width; above, the figure grows
_LEAST_BOX = 5  # values for a box; fewer are drawn as points
_LEAST_WORD = 0.055  # share of a bar from which its per cent fit into it


@dataclass(frozen=True)
class Series:
    """Values of one kind, one for each row, spoke or place; None or without a mean for none.

    `label` is what the legend says (the name if empty), `pale` the lighter one of a pair, `look`
    an own look. `at` are the places of `lines` (0, 1, … if empty), `counts` what `rows` writes
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


def _looks(series: Iterable[Series]) -> dict[str, tuple[Series, Look]]:
    """Each series once, with a look that is the same wherever its name comes again."""
    once = {entry.name: entry for entry in reversed(list(series))}
    once = dict(reversed(once.items()))
    own = looks([name for name, entry in once.items() if entry.look is None], "series")
    return {name: (entry, entry.look or own[name]) for name, entry in once.items()}


def _arrays(values: Sequence[Value]) -> tuple[Floats, Floats, Floats]:
    """Means, lower and upper ends (n,) each, NaN for what is not known."""
    rows = []
    for value in values:
        mean = value.value if isinstance(value, Estimate) else value.mean if value else None
        ends = (value.low, value.high) if value else (None, None)
        rows.append((mean, *ends) if None not in ends else (mean, None, None))
    made = np.array(rows, dtype=np.float64).reshape(-1, 3)
    return made[:, 0], made[:, 1], made[:, 2]


def _whiskers(
    ax: Axes, at: Floats, values: Sequence[Value], colour: str, cap: float, *, lying: bool = True
) -> None:
    mean, low, high = _arrays(values)
    whole = ~np.isnan(low) & ~np.isnan(mean)
    away = np.maximum(np.vstack([mean - low, high - mean]), 0)[:, whole]
    spots = (mean[whole], at[whole]) if lying else (at[whole], mean[whole])
    ends: dict[str, Any] = {"xerr" if lying else "yerr": away}
    ax.errorbar(*spots, **ends, fmt="none", ecolor=colour, elinewidth=0.9, capsize=cap)


def _hollow(
    ax: Axes, at: Floats, values: Sequence[Value], look: Look, *, lying: bool = True,
    size: float = 4.5,
) -> None:  # fmt: skip
    """Hollow marks over the means that have no interval."""
    mean, low, _ = _arrays(values)
    lone = np.isnan(low) & ~np.isnan(mean)
    if lone.any():
        spots = (mean[lone], at[lone]) if lying else (at[lone], mean[lone])
        ax.plot(*spots, linestyle="none", marker=look.marker, color=look.colour,
                markerfacecolor="white", markersize=size, zorder=3, clip_on=False)  # fmt: skip


def _marks(ax: Axes, at: Floats, values: Sequence[Value], look: Look, size: float = 4) -> None:
    """Marks with lying whiskers, hollow where there is no interval."""
    mean, low, _ = _arrays(values)
    whole = ~np.isnan(low)
    ax.plot(mean[whole], at[whole], linestyle="none", marker=look.marker, color=look.colour,
            markersize=size)  # fmt: skip
    _whiskers(ax, at, values, look.colour, 1.8)
    _hollow(ax, at, values, look, size=size)


def _lone(series: Iterable[Series]) -> list[Artist]:
    """Legend entry that explains hollow points, when the chart has one."""
    from matplotlib.lines import Line2D

    for entry in series:
        mean, low, _ = _arrays(entry.values)
        if (np.isnan(low) & ~np.isnan(mean)).any():
            return [Line2D([], [], linestyle="none", marker="o", markerfacecolor="white",
                           markeredgecolor=INK, label="hollow: no interval")]  # fmt: skip
    return []


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
    InputError for axes that are not polar.
    """
    style = _looks(series)
    with drawing():
        axes = axes_or_new(ax, 4.6 if len(spokes) <= _MOST_LEVEL else 6.2, polar=True)
        _spokes(axes, spokes)
        angles = np.append(np.arange(len(spokes)) * 2 * np.pi / len(spokes), 2 * np.pi)
        handles: list[Artist] = []
        for i, (one, look) in enumerate(style.values()):
            mean, low, high = _arrays([*one.values, one.values[0]])
            axes.fill_between(angles, low, high, color=look.colour, alpha=0.13, linewidth=0)
            handles += axes.plot(angles, mean, color=look.colour, linestyle=look.line,
                                 marker=look.marker, label=one.words)  # fmt: skip
            bound = ~np.isnan(low[:-1])
            shift = (i - (len(series) - 1) / 2) * min(0.03, 0.5 / len(spokes))
            axes.vlines(angles[:-1][bound] + shift, low[:-1][bound], high[:-1][bound],
                        color=look.colour, linewidth=1.0)  # fmt: skip
            _hollow(axes, angles[:-1], one.values, look, lying=False)
        if ax is None:
            figure_of(axes).suptitle(title, x=0.01, ha="left", fontsize=9.5)
        else:
            axes.set_title(title, pad=24, loc="center")
        legend(axes, [*handles, *_lone(series)], notes, own=ax is None)
    return axes


def _spokes(axes: Any, names: Sequence[str]) -> None:
    """The scale of polar axes and the names around them."""
    axes.set_theta_zero_location("N")
    axes.set_theta_direction(-1)
    axes.set_xticks(np.arange(len(names)) * 2 * np.pi / len(names), [""] * len(names))
    axes.set_ylim(0, 1)
    axes.set_yticks(QUARTERS[0][1:], QUARTERS[1][1:])
    axes.set_rlabel_position(180 / len(names))
    axes.tick_params(axis="y", labelsize=7, colors="#666666")
    axes.grid(True)
    axes.spines["polar"].set_visible(False)
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
        axes.text(angle, 1.06, text, ha=across, va=upright, rotation=degrees,
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

    size, colours, grows = len(names), colormaps["PuOr_r"], len(names) > _PRINTED
    with drawing():
        if ax is None and grows:
            axes = new_figure(0.46 * size + 2.2, 0.46 * size + 1.4).add_subplot()
        else:
            axes = axes_or_new(ax, min(WIDTH, 2.2 + 0.4 * size))
        lower = np.where(np.tri(size, k=-1, dtype=bool), values, np.nan)
        image = axes.imshow(lower, cmap=colours, vmin=-1, vmax=1, aspect="auto")
        centred: dict[str, Any] = {"ha": "center", "va": "center"}
        for i, j in np.argwhere(np.tri(size, dtype=bool)).tolist():
            if counts is not None:
                axes.text(i, j, f"{counts[j, i]:,}", fontsize=6.5, color="#666666", **centred)
            if j < i:
                number = float(values[i, j])
                text = "–" if np.isnan(number) else f"{number:.2f}".replace("-0.00", "0.00")
                axes.text(j, i, text, fontsize=8, color=_ink(colours, number), **centred)
        places = list(range(size))
        axes.set_xticks(
            places, [wrapped(n, 24, lines=1) for n in names], rotation=90 if grows else 40,
            ha="right", va="center" if grows else "top", rotation_mode="anchor",
        )  # fmt: skip
        axes.set_yticks(places, [wrapped(n, 24, lines=2) for n in names])
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_ticks(np.arange(size + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=1.5)
        axes.spines[:].set_visible(False)
        finish_axes(axes)
        axes.tick_params(length=0)
        if counts is None:  # the first row and the last column have nothing to say
            axes.set_xlim(-0.5, size - 1.5)
            axes.set_ylim(size - 0.5, 0.5)
        bar = axes.figure.colorbar(image, ax=axes, fraction=0.04, pad=0.02)
        bar.set_label(scale)
        bar.ax.tick_params(labelsize=7, width=0.7, length=2)
        axes.set_title(title)
        if ax is None:
            legend(axes, [], notes)
    return axes


def _ink(colours: Any, value: float) -> str:
    """White or dark, whichever contrasts more with the cell (WCAG 2.1, relative luminance)."""
    if np.isnan(value):
        return INK
    parts = np.array(colours((value + 1) / 2)[:3])
    linear = np.where(parts <= 0.03928, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)
    return "white" if float(linear @ (0.2126, 0.7152, 0.0722)) < 0.179 else INK


def lines(  # noqa: PLR0913  each is a part of the chart
    panels: Mapping[str, Sequence[Series]],
    *,
    title: str,
    x: str,
    y: str,
    ticks: Mapping[float, str] | None = None,
    level: float | None = None,
    level_name: str = "",
    limits: tuple[float, float] | None = (0.0, 1.02),
    spread: bool = False,
    guess: tuple[Sequence[float], Sequence[float]] | None = None,
    guess_name: str = "random orders",
    notes: Sequence[str] = (),
    ax: Axes | None = None,
) -> Figure:
    """Means joined by lines with their intervals as bands and whiskers, a panel for each key.

    Bands that are a `spread` and no uncertainty stand alone. `level` is a dashed line across,
    `guess` places and values of a dotted line for comparison, such as what random answers reach.
    One panel can be drawn into `ax`.
    """
    from matplotlib.lines import Line2D

    every = [entry for some in panels.values() for entry in some]
    style = _looks(every)
    with drawing():
        height = 3.1 if len(panels) < 3 else 1.9
        figure, cells = _panels(list(panels), (title, x, y), height, ax)
        for axes, some in zip(cells, panels.values(), strict=True):
            if level is not None:
                axes.axhline(level, zorder=0.5, **_LEVEL)
            for i, entry in enumerate(some):
                shift = (i - (len(some) - 1) / 2) * 0.012
                _line(axes, entry, style[entry.name][1], shift, spread=spread)
            if guess is not None:
                axes.plot(*guess, marker=".", markersize=3, zorder=1, **_GUESS)
            if limits is not None:
                axes.set_ylim(*limits)
                axes.set_yticks(*QUARTERS)
            if ticks is not None:
                axes.set_xticks(list(ticks), list(ticks.values()))
        finish_axes(*cells, grid="y")
        handles: list[Artist] = [
            Line2D([], [], color=look.colour, linestyle=look.line, marker=look.marker,
                   label=entry.words)
            for entry, look in style.values()
        ]  # fmt: skip
        if level_name:
            handles.append(Line2D([], [], label=level_name, **_LEVEL))
        if guess is not None:
            handles.append(Line2D([], [], label=guess_name, marker=".", **_GUESS))
        legend(cells[0], [*handles, *([] if spread else _lone(every))], notes, own=ax is None)
    return figure


def _line(ax: Axes, one: Series, look: Look, shift: float, *, spread: bool) -> None:
    places = np.array(one.at or range(len(one.values)), dtype=np.float64)
    at = places + shift * (float(np.ptp(places)) if len(places) > 1 else 1.0)
    mean, low, high = _arrays(one.values)
    ax.fill_between(at, low, high, color=look.colour, alpha=0.14, linewidth=0)
    ax.plot(at, mean, color=look.colour, linestyle=look.line, marker=look.marker, markersize=4,
            markevery=max(1, len(at) // 12))  # fmt: skip
    if not spread:
        if len(at) <= 20:
            _whiskers(ax, at, one.values, look.colour, 2, lying=False)
        _hollow(ax, at, one.values, look, lying=False)


def rows(  # noqa: PLR0913  each is a part of the chart
    names: Sequence[str],
    panels: Mapping[str, Sequence[Series]],
    *,
    title: str,
    x: str,
    bars: bool = False,
    limits: tuple[float, float] | None = (0.0, 1.0),
    level: float | None = None,
    notes: Sequence[str] = (),
    columns: int = 2,
    ax: Axes | None = None,
) -> Figure:
    """Marks, or `bars` from 0, with lying whiskers; a row for each name, a panel for each key,
    `columns` of them beside one another.

    Values of a series stand in the order of `names`. Without `limits` the axis is symmetric around
    0, for differences. `level` is a dashed line.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    every = [entry for some in panels.values() for entry in some]
    style, most = _looks(every), max(len(some) for some in panels.values())
    with drawing():
        labels, least = _row_names(names)
        height = 0.9 + len(names) * max(0.09 + 0.12 * most, least)
        figure, cells = _panels(list(panels), (title, x, ""), height, ax, columns=columns)
        for axes, some in zip(cells, panels.values(), strict=True):
            if level is not None:
                axes.axvline(level, zorder=0.5, **_LEVEL)
            width = (0.84 if bars else 0.74) / len(some)
            for i, entry in enumerate(some):
                at = np.arange(len(entry.values)) + (i - (len(some) - 1) / 2) * width
                look = style[entry.name][1]
                if bars:
                    _bars(axes, at, width, entry, look)
                else:
                    _marks(axes, at, entry.values, look)
                for y, number in zip(at, entry.counts, strict=False):
                    if number:
                        axes.text(1.01, y, f"{number:,}", transform=axes.get_yaxis_transform(),
                                  **_SMALL)  # fmt: skip
            _row_axis(axes, labels)
            _value_axis(axes, [v for entry in some for v in entry.values], limits)
        finish_axes(*cells, grid="x")
        handles: list[Artist] = [
            Patch(label=entry.words, **_surface(look, pale=entry.pale)) if bars
            else Line2D([], [], linestyle="none", color=look.colour, marker=look.marker,
                        label=entry.words)
            for entry, look in style.values() if bars or most > 1
        ]  # fmt: skip
        legend(cells[0], [*handles, *_lone(every)], notes, own=ax is None)
    return figure


def _row_names(names: Sequence[str]) -> tuple[list[str], float]:
    """Names at the left of rows, and the inches that a row needs for them at least."""
    labels = [wrapped(name, 38, lines=2) for name in names]
    return labels, 0.33 if any("\n" in label for label in labels) else 0.22


def _row_axis(ax: Axes, labels: Sequence[str]) -> None:
    """The names, the first one on top, and faint lines between them."""
    for edge in range(1, len(labels)):
        ax.axhline(edge - 0.5, color="#e3e3e3", linewidth=0.5, zorder=0)
    ax.set_yticks(range(len(labels)), labels, fontsize=8 if len(labels) <= 25 else 7)
    ax.set_ylim(len(labels) - 0.4, -0.6)


def _value_axis(ax: Axes, values: Sequence[Value], limits: tuple[float, float] | None) -> None:
    if limits is not None:
        room = 0.03 * (limits[1] - limits[0])
        ax.set_xlim(limits[0] - room, limits[1] + room)
        if limits == (0, 1):
            ax.set_xticks(*QUARTERS)
        return
    from matplotlib.ticker import MaxNLocator

    ends = np.abs(np.concatenate(_arrays(values)))
    far = min(max(1.08 * float(np.nanmax(ends, initial=0)), 0.25), 1.02)  # small ones look small
    ax.set_xlim(-far, far)
    ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    ax.xaxis.set_major_formatter(lambda v, _: f"{v:+.3g}".replace("-", "−") if v else "0")


def _surface(look: Look, *, pale: bool) -> dict[str, Any]:
    """How a bar is filled; its edge is the colour of the hatch, too."""
    return {"facecolor": look.light() if pale else look.colour, "linewidth": 0.6,
            "edgecolor": look.colour if pale else "white", "hatch": look.hatch}  # fmt: skip


def _bars(ax: Axes, at: Floats, width: float, one: Series, look: Look) -> None:
    mean, low, _ = _arrays(one.values)
    whole = ~np.isnan(low)
    ax.barh(at[whole], mean[whole], width * 0.94, label=one.words,
            **_surface(look, pale=one.pale))  # fmt: skip
    _whiskers(ax, at, one.values, INK, min(2.2, 9 * width))
    _hollow(ax, at, one.values, look)
    for spot in at[np.isnan(mean)]:
        ax.text(0.008, spot, "none", **_SMALL)


def boxes(
    names: Sequence[str],
    series: Mapping[str, tuple[Look, Sequence[Sequence[float]], Sequence[Value]]],
    *,
    title: str,
    x: str,
    notes: Sequence[str] = (),
    ax: Axes | None = None,
) -> Axes:
    """A lying box for each row and series: quartiles (numpy's linear percentiles), median, and
    whiskers to the least and the greatest value; fewer than five values are points.

    `series` are by the text of their legend: look, values in [0, 1] by row, and the means that are
    drawn below the boxes as diamonds with their 95% interval.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    with drawing():
        labels, least = _row_names(names)
        axes = axes_or_new(ax, 1.0 + len(names) * max(0.25 * len(series), least))
        handles: list[Artist] = []
        for i, (name, (look, values, means)) in enumerate(series.items()):
            centre = (i - (len(series) - 1) / 2) * 0.44
            fill: dict[str, Any] = {"facecolor": look.light(0.5), "edgecolor": look.colour}
            for k, some in enumerate(values):
                at = k + centre
                if not some:
                    axes.text(0.008, at, "none", **_SMALL)
                    continue
                if len(some) >= _LEAST_BOX:
                    (box,) = axes.boxplot(
                        [list(some)], positions=[at - 0.05], widths=0.2, whis=(0, 100),
                        orientation="horizontal", patch_artist=True, manage_ticks=False,
                        medianprops={"color": INK, "linewidth": 1.4},
                        boxprops={**fill, "linewidth": 0.9},
                        whiskerprops={"color": look.colour}, capprops={"color": look.colour},
                    )["boxes"]  # fmt: skip
                    box.set(hatch=look.hatch)
                else:
                    axes.plot(some, np.full(len(some), at - 0.05), linestyle="none",
                              marker=look.marker, color=look.colour,
                              markerfacecolor=look.light(0.5), markersize=4)  # fmt: skip
                _marks(axes, np.array([at + 0.12]), [means[k]], Look(INK, "", "d", ""), 3)
            handles.append(Patch(label=plain(name), hatch=look.hatch, **fill))
        _row_axis(axes, labels)
        _value_axis(axes, (), (0.0, 1.0))
        axes.set_xlabel(x)
        axes.set_title(title)
        finish_axes(axes, grid="x")
        handles.append(Line2D([], [], marker="d", color=INK, markersize=3,
                              label="mean, 95% interval over cases"))  # fmt: skip
        sizes = [len(some) for _, values, _ in series.values() for some in values if some]
        explained = []
        if max(sizes, default=0) >= _LEAST_BOX:
            explained.append("box: quartiles and median; whiskers: least and greatest")
        if min(sizes, default=_LEAST_BOX) < _LEAST_BOX:
            explained.append(f"fewer than {_LEAST_BOX} values: points instead of a box")
        legend(axes, handles, [*explained, *notes], own=ax is None)
    return axes


def shares(  # noqa: PLR0913  each is a part of the chart
    rows: Mapping[str, Mapping[str, int]],
    *,
    title: str,
    x: str,
    rated: Mapping[str, Value] | None = None,
    surfaces: Mapping[str, tuple[str, str]] | None = None,
    labels: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    ax: Axes | None = None,
) -> Axes:
    """Counts of exclusive labels as shares that fill a bar, one bar for each row, its sum at the
    end. Labels keep their order and look; those that no row has are left out.

    `rated` are intervals drawn as whiskers, `surfaces` colour and hatch by label, `labels` the
    texts of the legend. Raises InputError where nothing is counted.
    """
    from matplotlib.patches import Patch

    filled = {name: row for name, row in rows.items() if sum(row.values())}
    if not filled:
        raise InputError("nothing was counted")
    order = list(dict.fromkeys(label for row in rows.values() for label in row))
    present = [k for k in order if any(row.get(k) for row in filled.values())]
    if surfaces is None:
        style = looks(order if len(order) <= len(LOOKS) else present, "labels")
        surface = {k: {**_surface(style[k], pale=True), "facecolor": style[k].light(0.45)}
                   for k in present}  # fmt: skip
    else:
        surface = {k: {"facecolor": surfaces[k][0], "hatch": surfaces[k][1], "edgecolor": INK,
                       "linewidth": 0.5} for k in present}  # fmt: skip
    with drawing():
        axes = axes_or_new(ax, 0.75 + 0.36 * len(filled))
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.82, "pad": 1.0}
        for y, row in enumerate(filled.values()):
            left, total = 0.0, sum(row.values())
            for label in (k for k in present if row.get(k)):
                share = row[label] / total
                axes.barh(y, share, 0.62, left=left, label=label, **surface[label])
                if share >= _LEAST_WORD and rated is None:
                    axes.text(left + share / 2, y, f"{100 * share:.0f}%", ha="center",
                              va="center", fontsize=7, bbox=box)  # fmt: skip
                left += share
            axes.text(1.01, y, f"{total:,}", va="center", fontsize=7.5)
        if rated is not None:
            _whiskers(axes, np.arange(float(len(filled))), [rated[n] for n in filled], "black", 2.5)
        axes.set_yticks(range(len(filled)), [wrapped(name, 24, lines=2) for name in filled])
        axes.set_ylim(len(filled) - 0.5, -0.5)
        axes.set_xlim(0, 1.08)
        axes.set_xticks(QUARTERS[0], ["0", "25%", "50%", "75%", "100%"])
        axes.spines["bottom"].set_bounds(0, 1)
        axes.set_xlabel(x)
        axes.set_title(title)
        finish_axes(axes)
        handles = [Patch(label=plain((labels or {}).get(k, k.replace("_", " "))), **surface[k])
                   for k in present]  # fmt: skip
        legend(axes, handles, notes, own=ax is None)
    return axes


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
        axes.set(title=title, xlabel=x, ylabel=y)
        return figure_of(axes), [axes]
    if ax is not None:
        raise InputError(f"{len(names)} panels: draw them without `ax`")
    columns = min(len(names), columns)
    lines_ = -(-len(names) // columns)
    figure = new_figure(WIDTH, height * lines_ + 0.5)
    grid = figure.subplots(lines_, columns, sharex=True, sharey=True, squeeze=False)
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
        axes.set_title(wrapped(name, 26 if columns > 2 else 32, lines=2), fontsize=8.5)
    return figure, cells[: len(names)]
