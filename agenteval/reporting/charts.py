"""Kinds of charts on plain values: radar, heatmap, lines, rows (bars, marks or boxes), shares.

Each draws into `ax`; without it, into a new figure of print width (16 cm) that belongs to no
window. `style.save` and `style.svg` write it. matplotlib is loaded when the first chart is drawn. A
mean without an interval is hollow; what is unknown is a gap or the word "none", never a zero. All
raise InputError for more series than can be distinguished.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
from numpy.typing import NDArray

from agenteval.errors import InputError
from agenteval.records.table import Estimate
from agenteval.reporting.style import (
    INK,
    LOOKS,
    WIDTH,
    SeriesStyle,
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
    """Values of one kind, one for each row, spoke or place; None where there is none.

    `label` is its text in the legend (else the name), `pale` marks the lighter one of a pair,
    `look` replaces the next free look. `at` are the places of `lines` (0, 1, … if empty), `counts`
    the numbers that `rows` writes at the right, `spread` the values of the boxes of `rows`.
    """

    name: str
    values: Sequence[Value]
    label: str = ""
    pale: bool = False
    look: SeriesStyle | None = None
    at: Sequence[float] = ()
    counts: Sequence[int] = ()
    spread: Sequence[Sequence[float]] = ()

    @property
    def words(self) -> str:
        """The text of the legend."""
        return plain(self.label or self.name)


def _looks(series: Iterable[Series]) -> dict[str, tuple[Series, SeriesStyle]]:
    """Return each series once, with a look that is the same wherever its name comes again."""
    once: dict[str, Series] = {}
    for entry in series:
        once.setdefault(entry.name, entry)
    free = looks([name for name, entry in once.items() if entry.look is None], "series")
    return {name: (entry, entry.look or free[name]) for name, entry in once.items()}


def _arrays(values: Sequence[Value]) -> Floats:
    """Return means, lower and upper ends as rows, (3, n); NaN for what is unknown."""
    rows = []
    for value in values:
        mean = value.value if isinstance(value, Estimate) else value.mean if value else None
        ends = (value.low, value.high) if value else (None, None)
        rows.append((mean, *ends) if None not in (mean, *ends) else (mean, None, None))
    return np.array(rows, dtype=np.float64).reshape(-1, 3).T


def _estimates(  # noqa: PLR0913  each is a part of the chart
    ax: Axes,
    at: Floats,
    values: Sequence[Value],
    look: SeriesStyle,
    *,
    marks: float = 0.0,
    cap: float | None = 1.8,
    ink: str = "",
    upright: bool = False,
) -> None:
    """Draw means with whiskers at their places, hollow marks for means without an interval.

    `marks` is the size of filled marks, 0 for none; `cap` that of the caps of whiskers, None for no
    whiskers; `ink` their colour, if it is not that of the series.
    """
    mean, low, high = _arrays(values)
    complete, lone = ~np.isnan(low), np.isnan(low) & ~np.isnan(mean)
    colour = ink or look.colour

    def draw(where: NDArray[np.bool_], size: float, **style: Any) -> None:
        places = (at[where], mean[where]) if upright else (mean[where], at[where])
        mark: dict[str, Any] = {"linestyle": "none", "marker": look.marker, "markersize": size}
        ax.plot(*places, color=look.colour, **mark, **style)

    if marks:
        draw(complete, marks)
    if cap is not None:
        ends = np.maximum([mean - low, high - mean], 0)[:, complete]
        style: dict[str, Any] = {"fmt": "none", "ecolor": colour, "elinewidth": 0.9, "capsize": cap}
        if upright:
            ax.errorbar(at[complete], mean[complete], yerr=ends, **style)
        else:
            ax.errorbar(mean[complete], at[complete], xerr=ends, **style)
    if look.marker and lone.any():
        draw(lone, marks or 4.5, markerfacecolor="white", zorder=3, clip_on=False)


def _hollow_legend(series: Iterable[Series]) -> list[Artist]:
    """Return the legend entry that explains hollow marks, if the chart has any."""
    from matplotlib.lines import Line2D

    columns = [_arrays(entry.values) for entry in series]
    if not any((np.isnan(low) & ~np.isnan(mean)).any() for mean, low, _ in columns):
        return []
    style: dict[str, Any] = {"markerfacecolor": "white", "markeredgecolor": INK}
    return [Line2D([], [], linestyle="none", marker="o", label="hollow: no interval", **style)]


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
        for i, (entry, look) in enumerate(style.values()):
            mean, low, high = _arrays([*entry.values, entry.values[0]])
            axes.fill_between(angles, low, high, color=look.colour, alpha=0.13, linewidth=0)
            line: dict[str, Any] = {"linestyle": look.line, "marker": look.marker}
            handles += axes.plot(angles, mean, color=look.colour, label=entry.words, **line)
            ends = np.column_stack([angles, low, high])[:-1]
            ends = ends[~np.isnan(ends).any(axis=1)]
            shift = (i - (len(series) - 1) / 2) * min(0.03, 0.5 / len(spokes))
            axes.vlines(ends[:, 0] + shift, ends[:, 1], ends[:, 2], color=look.colour, linewidth=1)
            _estimates(axes, angles[:-1], entry.values, look, cap=None, upright=True)
        if ax is None:
            figure_of(axes).suptitle(title, x=0.01, ha="left", fontsize=9.5)
        else:
            axes.set_title(title, pad=24, loc="center")
        legend(axes, [*handles, *_hollow_legend(series)], notes, own=ax is None)
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
        turn: dict[str, Any] = {"rotation": degrees, "rotation_mode": "anchor"}
        axes.text(angle, 1.06, text, ha=across, va=upright, fontsize=8, **turn)


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

    A dash is NaN. `counts` are on the diagonal and in the upper half. Beyond 11 names the figure
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
        turn: dict[str, Any] = {"rotation": 40, "va": "top", "rotation_mode": "anchor"}
        turn |= {"rotation": 90, "va": "center"} if grows else {}
        axes.set_xticks(places, [wrapped(n, 24, lines=1) for n in names], ha="right", **turn)
        axes.set_yticks(places, [wrapped(n, 24, lines=2) for n in names])
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_ticks(np.arange(size + 1) - 0.5, minor=True)
        axes.grid(which="minor", color="white", linewidth=1.5)
        axes.spines[:].set_visible(False)
        finish_axes(axes)
        axes.tick_params(length=0)
        if counts is None:  # the first row and the last column are empty
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


@dataclass(frozen=True)
class ReferenceCurve:
    """A curve for comparison, with its name in the legend."""

    places: Sequence[float]
    values: Sequence[float]
    name: str


def lines(  # noqa: PLR0913  each is a part of the chart
    panels: Mapping[str, Sequence[Series]],
    *,
    title: str,
    x: str,
    y: str,
    ticks: Mapping[float, str] | None = None,
    level: tuple[float, str] | None = None,
    limits: tuple[float, float] | None = (0.0, 1.02),
    spread: bool = False,
    reference: ReferenceCurve | None = None,
    notes: Sequence[str] = (),
    ax: Axes | None = None,
) -> Figure:
    """Means joined by lines with their intervals as bands and whiskers, a panel for each key.

    Bands that are a `spread` and not an uncertainty have no whiskers. `level` is the value and name
    ("" for none) of a dashed line across, `reference` a dotted curve, such as the success of random
    answers. One panel can be drawn into `ax`.
    """
    from matplotlib.lines import Line2D

    every = [entry for some in panels.values() for entry in some]
    style = _looks(every)
    with drawing():
        height = 3.1 if len(panels) < 3 else 1.9
        figure, cells = _panels(list(panels), (title, x, y), height, ax)
        for axes, some in zip(cells, panels.values(), strict=True):
            if level is not None:
                axes.axhline(level[0], zorder=0.5, **_LEVEL)
            for i, entry in enumerate(some):
                shift = (i - (len(some) - 1) / 2) * 0.012
                _line(axes, entry, style[entry.name][1], shift, spread=spread)
            if reference is not None:
                places = reference.places, reference.values
                axes.plot(*places, marker=".", markersize=3, zorder=1, **_GUESS)
            if limits is not None:
                axes.set_ylim(*limits)
                axes.set_yticks(*QUARTERS)
            if ticks is not None:
                axes.set_xticks(list(ticks), list(ticks.values()))
        finish_axes(*cells, grid="y")
        handles: list[Artist] = []
        for entry, look in style.values():
            line: dict[str, Any] = {"linestyle": look.line, "marker": look.marker}
            handles.append(Line2D([], [], color=look.colour, label=entry.words, **line))
        if level is not None and level[1]:
            handles.append(Line2D([], [], label=level[1], **_LEVEL))
        if reference is not None:
            handles.append(Line2D([], [], label=reference.name, marker=".", **_GUESS))
        handles += [] if spread else _hollow_legend(every)
        legend(cells[0], handles, notes, own=ax is None)
    return figure


def _line(ax: Axes, entry: Series, look: SeriesStyle, shift: float, *, spread: bool) -> None:
    places = np.array(entry.at or range(len(entry.values)), dtype=np.float64)
    at = places + shift * (float(np.ptp(places)) if len(places) > 1 else 1.0)
    mean, low, high = _arrays(entry.values)
    ax.fill_between(at, low, high, color=look.colour, alpha=0.14, linewidth=0)
    style: dict[str, Any] = {"linestyle": look.line, "marker": look.marker, "markersize": 4}
    ax.plot(at, mean, color=look.colour, markevery=max(1, len(at) // 12), **style)
    if not spread:
        cap = 2.0 if len(at) <= 20 else None
        _estimates(ax, at, entry.values, look, cap=cap, upright=True)


def rows(  # noqa: PLR0913  each is a part of the chart
    names: Sequence[str],
    panels: Mapping[str, Sequence[Series]],
    *,
    title: str,
    x: str,
    kind: Literal["marks", "bars", "boxes"] = "marks",
    limits: tuple[float, float] | None = (0.0, 1.0),
    level: float | None = None,
    notes: Sequence[str] = (),
    columns: int = 2,
    ax: Axes | None = None,
) -> Figure:
    """Marks, bars from 0 or boxes, with horizontal whiskers: a row for each name, a panel for each
    key, in `columns` side by side.

    Values of a series are in the order of `names`. Without `limits` the axis is symmetric around
    0, for differences. `level` is a dashed line. A box shows quartiles (numpy's linear
    percentiles), median, least and greatest value of `spread`, fewer than five values as points;
    below it the mean is a diamond.
    """
    from matplotlib.lines import Line2D

    every = [entry for some in panels.values() for entry in some]
    style, most = _looks(every), max(len(some) for some in panels.values())
    with drawing():
        labels = [wrapped(name, 38, lines=2) for name in names]
        least = 0.33 if any("\n" in label for label in labels) else 0.22
        needed = 0.25 * most if kind == "boxes" else 0.09 + 0.12 * most
        height = 0.95 + len(names) * max(needed, least)
        figure, cells = _panels(list(panels), (title, x, ""), height, ax, columns=columns)
        for axes, some in zip(cells, panels.values(), strict=True):
            if level is not None:
                axes.axvline(level, zorder=0.5, **_LEVEL)
            width = {"marks": 0.74, "bars": 0.84, "boxes": 0.88}[kind] / max(len(some), 1)
            for i, entry in enumerate(some):
                at = np.arange(len(entry.values)) + (i - (len(some) - 1) / 2) * width
                look = style[entry.name][1]
                if kind == "bars":
                    _bars(axes, at, width, entry, look)
                elif kind == "boxes":
                    _boxes(axes, at, entry, look)
                else:
                    _estimates(axes, at, entry.values, look, marks=4)
                for y, number in zip(at, entry.counts, strict=False):
                    if number:
                        place = axes.get_yaxis_transform()
                        axes.text(1.01, y, f"{number:,}", transform=place, **_SMALL)
            for edge in range(1, len(labels)):
                axes.axhline(edge - 0.5, color="#e3e3e3", linewidth=0.5, zorder=0)
            axes.set_yticks(range(len(labels)), labels, fontsize=8 if len(labels) <= 25 else 7)
            axes.set_ylim(len(labels) - 0.4, -0.6)  # the first one on top
            _value_axis(axes, [v for entry in some for v in entry.values], limits)
        finish_axes(*cells, grid="x")
        handles = _row_legend(style.values(), kind) if kind != "marks" or most > 1 else []
        if kind == "boxes":
            mean: dict[str, Any] = {"marker": "d", "color": INK, "markersize": 3}
            handles.append(Line2D([], [], label="mean, 95% interval over cases", **mean))
            sizes = [len(some) for entry in every for some in entry.spread if some]
            box = "box: quartiles and median; whiskers: least and greatest"
            points = f"fewer than {_LEAST_BOX} values: points instead of a box"
            explained = [box] * (max(sizes, default=0) >= _LEAST_BOX)
            explained += [points] * (min(sizes, default=_LEAST_BOX) < _LEAST_BOX)
            notes = [*explained, *notes]
        else:
            handles += _hollow_legend(every)
        legend(cells[0], handles, notes, own=ax is None)
    return figure


def _row_legend(style: Iterable[tuple[Series, SeriesStyle]], kind: str) -> list[Artist]:
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    handles: list[Artist] = []
    for entry, look in style:
        if kind == "marks":
            mark: dict[str, Any] = {"color": look.colour, "marker": look.marker}
            handles.append(Line2D([], [], linestyle="none", label=entry.words, **mark))
        else:
            surface = _box_surface(look) if kind == "boxes" else _surface(look, pale=entry.pale)
            handles.append(Patch(label=entry.words, hatch=look.hatch, **surface))
    return handles


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


def _surface(look: SeriesStyle, *, pale: bool) -> dict[str, Any]:
    """Return the fill of a bar; its edge has the colour of the hatch."""
    edge = look.colour if pale else "white"
    return {"facecolor": look.light() if pale else look.colour, "edgecolor": edge, "linewidth": 0.6}


def _box_surface(look: SeriesStyle) -> dict[str, Any]:
    return {"facecolor": look.light(0.5), "edgecolor": look.colour}


def _bars(ax: Axes, at: Floats, width: float, entry: Series, look: SeriesStyle) -> None:
    mean, low, _ = _arrays(entry.values)
    complete = ~np.isnan(low)
    surface = _surface(look, pale=entry.pale) | {"hatch": look.hatch}
    ax.barh(at[complete], mean[complete], width * 0.94, label=entry.words, **surface)
    _estimates(ax, at, entry.values, look, cap=min(2.2, 9 * width), ink=INK)
    for spot in at[np.isnan(mean)]:
        ax.text(0.008, spot, "none", **_SMALL)


def _boxes(ax: Axes, at: Floats, entry: Series, look: SeriesStyle) -> None:
    for spot, values in zip(at, entry.spread, strict=True):
        if not values:
            ax.text(0.008, spot, "none", **_SMALL)
        elif len(values) < _LEAST_BOX:
            places = np.full(len(values), spot - 0.05)
            style: dict[str, Any] = {"marker": look.marker, "markersize": 4, "linestyle": "none"}
            ax.plot(values, places, color=look.colour, markerfacecolor=look.light(0.5), **style)
        else:
            drawn = ax.boxplot(
                [list(values)],
                positions=[spot - 0.05],
                widths=0.2,
                whis=(0, 100),
                orientation="horizontal",
                patch_artist=True,
                manage_ticks=False,
                medianprops={"color": INK, "linewidth": 1.4},
                boxprops={**_box_surface(look), "linewidth": 0.9},
                whiskerprops={"color": look.colour},
                capprops={"color": look.colour},
            )
            drawn["boxes"][0].set(hatch=look.hatch)
    _estimates(ax, at + 0.12, entry.values, SeriesStyle(INK, "", "d", ""), marks=3)


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
        surface = {
            k: _surface(style[k], pale=True)
            | {"facecolor": style[k].light(0.45), "hatch": style[k].hatch}
            for k in present
        }
    else:
        edge = {"edgecolor": INK, "linewidth": 0.5}
        surface = {
            k: {"facecolor": surfaces[k][0], "hatch": surfaces[k][1], **edge} for k in present
        }
    with drawing():
        axes = axes_or_new(ax, 0.75 + 0.36 * len(filled))
        box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.82, "pad": 1.0}
        for y, row in enumerate(filled.values()):
            start, total = 0.0, sum(row.values())
            for label in (k for k in present if row.get(k)):
                share = row[label] / total
                axes.barh(y, share, 0.62, left=start, label=label, **surface[label])
                if share >= _LEAST_WORD and rated is None:
                    middle, text = start + share / 2, f"{100 * share:.0f}%"
                    axes.text(middle, y, text, ha="center", va="center", fontsize=7, bbox=box)
                start += share
            axes.text(1.01, y, f"{total:,}", va="center", fontsize=7.5)
        if rated is not None:
            values = [rated[name] for name in filled]
            no_marks = SeriesStyle("black", "", "", "")
            _estimates(axes, np.arange(float(len(filled))), values, no_marks, cap=2.5)
        axes.set_yticks(range(len(filled)), [wrapped(name, 24, lines=2) for name in filled])
        axes.set_ylim(len(filled) - 0.5, -0.5)
        axes.set_xlim(0, 1.08)
        axes.set_xticks(QUARTERS[0], ["0", "25%", "50%", "75%", "100%"])
        axes.spines["bottom"].set_bounds(0, 1)
        axes.set_xlabel(x)
        axes.set_title(title)
        finish_axes(axes)
        words = {k: plain((labels or {}).get(k, k.replace("_", " "))) for k in present}
        handles = [Patch(label=words[k], **surface[k]) for k in present]
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


def share_bars(rows: Mapping[str, Mapping[str, int]], title: str, each: str) -> Axes:
    """Draw shares of exclusive labels by system, one bar per system; `each` names what is counted
    ("error"). Raises InputError when there is nothing to count."""
    if not any(sum(row.values()) for row in rows.values()):
        raise InputError(f"no {each}s to draw")
    words = f"share of a system's {each}s; at the end: their number"
    return shares(rows, title=title, x=words)
