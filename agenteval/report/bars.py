"""Charts of groups side by side: bars, boxes, stacked shares. See `charts`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from agenteval.errors import InputError
from agenteval.report.marks import (
    QUARTERS,
    Floats,
    Series,
    Value,
    arrays,
    group_axis,
    hollow,
    inches_of,
    lies,
    lone,
    marks,
    none_word,
    styles,
    value_axis,
    whiskers,
)
from agenteval.report.style import (
    INK,
    LOOKS,
    WIDTH,
    Look,
    axes_or_new,
    drawing,
    finish_axes,
    legend,
    looks,
    note,
    plain,
    wrapped,
)

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

VALUE = "mean value, 0 worst to 1 best"
_WHISKER_WORDS = "whiskers: 95 % interval over cases"
_SHARES = (QUARTERS[0], ["0", "25 %", "50 %", "75 %", "100 %"])
_LEAST_BOX = 5  # values for a box; fewer are drawn as points
_LEAST_WORD = 0.055  # share of a bar from which its per cent fit into it


def bars(
    groups: Sequence[str],
    series: Sequence[Series],
    *,
    title: str,
    notes: Sequence[str] = (),
    ax: Axes | None = None,
) -> Axes:
    """Bars from 0 to the mean with whiskers over the interval, side by side in every group.

    Values lie in [0, 1]. A mean without an interval is a hollow point, no value the word "none".
    Bars lie where groups are many or their names long. Raises InputError for more looks than can
    be told apart.
    """
    style = styles(series, "series")
    inches = WIDTH - 0.8 if ax is None else inches_of(ax)
    lying = lies(groups, len(series), inches)
    with drawing():
        axes = axes_or_new(ax, 0.9 + len(groups) * (0.12 * len(series) + 0.13) if lying else 2.9)
        width = 0.84 / len(series)
        handles: list[Artist] = []
        for i, one in enumerate(series):
            at = np.arange(len(groups)) - 0.42 + width * (i + 0.5)
            handles.append(_bar_series(axes, one, style[one.name], (at, width), lying=lying))
        group_axis(axes, groups, inches, lying=lying)
        value_axis(
            axes, f"{VALUE}; {_WHISKER_WORDS}" if lying else f"{VALUE}\n{_WHISKER_WORDS}", lying
        )
        finish_axes(axes)
        axes.set_title(title)
        legend(axes, [*handles, *lone(series), *map(note, notes)], own=ax is None)
    return axes


def _bar_series(
    ax: Axes, one: Series, look: Look, place: tuple[Floats, float], *, lying: bool
) -> Artist:
    from matplotlib.patches import Patch

    (at, width), (mean, low, _) = place, arrays(one.values)
    surface: dict[str, Any] = {
        "facecolor": look.light() if one.pale else look.colour,
        "edgecolor": look.colour if one.pale else "white",  # of the hatch, too
        "hatch": look.hatch,
        "linewidth": 0.6,
    }
    whole = ~np.isnan(low)
    draw = ax.barh if lying else ax.bar
    draw(at[whole], mean[whole], width * 0.94, label=one.words, **surface)
    whiskers(ax, at, one.values, INK, lying=lying, cap=min(2.2, 9 * width))
    hollow(ax, at, one.values, look, lying=lying)
    for spot in at[np.isnan(mean)]:
        none_word(ax, float(spot), lying=lying)
    return Patch(label=one.words, **surface)


def boxes(  # noqa: PLR0913  each is a part of the chart
    groups: Sequence[str],
    series: Mapping[str, Sequence[Sequence[float]]],
    *,
    title: str,
    means: Mapping[str, Sequence[Value]] | None = None,
    style: Mapping[str, Look] | None = None,
    labels: Mapping[str, str] | None = None,
    notes: Sequence[str] = (),
    ax: Axes | None = None,
) -> Axes:
    """A box for each group and series: quartiles (numpy's linear percentiles), median, and
    whiskers to the least and the greatest value; fewer than five values are points.

    `means` are drawn beside the boxes as diamonds with their 95 % interval, `labels` are the texts
    of the legend. Values lie in [0, 1]. Raises InputError for more series than looks.
    """
    from matplotlib.lines import Line2D
    from matplotlib.patches import Patch

    look_of = style or looks(list(series), "series")
    inches = WIDTH - 0.8 if ax is None else inches_of(ax)
    lying = lies(groups, 4, inches)
    with drawing():
        axes = axes_or_new(ax, 1.0 + 0.25 * len(groups) * len(series) if lying else 3.0)
        handles: list[Artist] = []
        for i, (name, values) in enumerate(series.items()):
            look, centre = look_of[name], (i - (len(series) - 1) / 2) * 0.44
            for k, some in enumerate(values):
                _one_box(axes, k + centre, some, look, lying=lying)
                if means and some:
                    at, own = np.array([k + centre + 0.12]), [means[name][k]]
                    marks(axes, at, own, Look(INK, "", "d", ""), lying=lying, size=3)
            handles.append(
                Patch(
                    facecolor=look.light(0.5),
                    edgecolor=look.colour,
                    hatch=look.hatch,
                    label=plain((labels or {}).get(name, name)),
                )
            )
        group_axis(axes, groups, inches, lying=lying)
        value_axis(axes, VALUE, lying)
        finish_axes(axes)
        axes.set_title(title)
        if means:
            handles.append(Line2D([], [], marker="d", color=INK, markersize=3,
                                  label="mean, 95 % interval over cases"))  # fmt: skip
        sizes = [len(some) for values in series.values() for some in values if some]
        if max(sizes, default=0) >= _LEAST_BOX:
            handles.append(note("box: quartiles and median; whiskers: least and greatest"))
        if min(sizes, default=_LEAST_BOX) < _LEAST_BOX:
            handles.append(note(f"fewer than {_LEAST_BOX} values: points instead of a box"))
        legend(axes, [*handles, *map(note, notes)], own=ax is None)
    return axes


def _one_box(ax: Axes, at: float, values: Sequence[float], look: Look, *, lying: bool) -> None:
    if not values:
        none_word(ax, at, lying=lying)
    elif len(values) >= _LEAST_BOX:
        made = ax.boxplot(
            [list(values)], positions=[at - 0.05], widths=0.2, whis=(0, 100),
            orientation="horizontal" if lying else "vertical", patch_artist=True,
            manage_ticks=False, medianprops={"color": INK, "linewidth": 1.4},
            boxprops={"edgecolor": look.colour, "facecolor": look.light(0.5), "linewidth": 0.9},
            whiskerprops={"color": look.colour}, capprops={"color": look.colour},
        )  # fmt: skip
        for box in made["boxes"]:
            box.set(hatch=look.hatch)
    else:
        places = np.full(len(values), at - 0.05)
        points = (values, places) if lying else (places, values)
        ax.plot(*points, linestyle="none", marker=look.marker, color=look.colour,
                markerfacecolor=look.light(0.5), markersize=4)  # fmt: skip


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
    texts of the legend. Raises InputError where nothing is counted or labels are too many.
    """
    from matplotlib.patches import Patch

    filled = {name: row for name, row in rows.items() if sum(row.values())}
    if not filled:
        raise InputError("nothing was counted")
    order = list(dict.fromkeys(label for row in rows.values() for label in row))
    present = [k for k in order if any(row.get(k) for row in filled.values())]
    if surfaces is None:
        style = looks(order if len(order) <= len(LOOKS) else present, "labels")
        surface = {k: _pale(style[k]) for k in present}
    else:
        surface = {k: {"facecolor": surfaces[k][0], "hatch": surfaces[k][1], "edgecolor": INK,
                       "linewidth": 0.5} for k in present}  # fmt: skip
    with drawing():
        axes = axes_or_new(ax, 0.75 + 0.36 * len(filled))
        for y, row in enumerate(filled.values()):
            left, total = 0.0, sum(row.values())
            for label in (k for k in present if row.get(k)):
                share = row[label] / total
                axes.barh(y, share, 0.62, left=left, label=label, **surface[label])
                if share >= _LEAST_WORD and rated is None:
                    box = {"facecolor": "white", "edgecolor": "none", "alpha": 0.82, "pad": 1.0}
                    axes.text(left + share / 2, y, f"{100 * share:.0f} %", ha="center",
                              va="center", fontsize=7, bbox=box)  # fmt: skip
                left += share
            axes.text(1.01, y, f"{total:,}", va="center", fontsize=7.5)
        if rated is not None:
            whole = [rated[name] for name in filled]
            whiskers(axes, np.arange(len(filled), dtype=np.float64), whole, "black", lying=True,
                      cap=2.5)  # fmt: skip
        axes.set_yticks(range(len(filled)), [wrapped(name, 24, lines=2) for name in filled])
        axes.set_ylim(len(filled) - 0.5, -0.5)
        axes.set_xlim(0, 1.08)
        axes.set_xticks(*_SHARES)
        axes.spines["bottom"].set_bounds(0, 1)
        axes.set_xlabel(x)
        axes.set_title(title)
        finish_axes(axes)
        handles: list[Artist] = [
            Patch(label=plain((labels or {}).get(k, k.replace("_", " "))), **surface[k])
            for k in present
        ]
        legend(axes, [*handles, *map(note, notes)], own=ax is None)
    return axes


def _pale(look: Look) -> dict[str, Any]:
    return {"facecolor": look.light(0.45), "edgecolor": look.colour, "hatch": look.hatch,
            "linewidth": 0.7}  # fmt: skip
