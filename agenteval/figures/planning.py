"""Figures of planning campaigns: success by number of actions, errors, causes, forms, topics.

Figures 8 and 9 of arXiv 2404.17833 (curves over the number of actions), with what they lack:
intervals, the level of guessing, and the numbers of cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from agenteval.errors import InputError
from agenteval.figures.marks import Floats, arrays, away, sample
from agenteval.figures.style import (
    INK,
    LOOKS,
    QUIET,
    Look,
    axes_or_new,
    drawing,
    fix_ticks,
    legend,
    light_grid,
    looks,
    note,
    value_axis,
)
from agenteval.figures.text import n_label, plain, span, wrapped
from agenteval.stats import Interval

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes

    from agenteval.evaluators.planning.capability import Bound
    from agenteval.evaluators.planning.contrasts import Contrast
    from agenteval.evaluators.planning.tallies import Shares, Tally

MOST_TOPICS = 60
_THRESHOLD = 0.20
_LEVEL: dict[str, Any] = {"color": QUIET, "linewidth": 0.9, "linestyle": (0, (4, 3))}
_GUESS: dict[str, Any] = {"color": "#555555", "linewidth": 0.9, "linestyle": (0, (1, 1.5))}
_LEAST_WORD = 0.055  # share of a bar from which its per cent fit into it


def success_by_actions(
    tallies: Sequence[Tally],
    bounds: Sequence[Bound] = (),
    *,
    ax: Axes | None = None,
) -> Axes:
    """Success against number of actions, a line per system with its 95 % band.

    `tallies` are by number of actions (`place`). A system's capability bound gets a ring, if
    something was below the threshold. Lines: the threshold of 20 %, and the level that random
    orders would reach, the mean over all systems' trials. Below each number of actions stand its
    cases.

    Raises InputError without any rate, and for more systems than looks.
    """
    known = [t for t in tallies if t.rate.mean is not None]
    if not known:
        raise InputError("there is no verdict to draw")
    systems = list(dict.fromkeys(t.system for t in known))
    style = looks(systems, "systems")
    with drawing():
        axes = axes_or_new(ax, 3.3)
        handles: list[Artist] = []
        ringed = False
        for system in systems:
            own = sorted((t for t in known if t.system == system), key=lambda t: t.place)
            bound = next((b for b in bounds if b.system == system), None)
            _curve(axes, own, style[system])
            if bound and _ring(axes, own, style[system], bound):
                ringed = True
            handles.append(sample(style[system], plain(system) + _told(bound)))
        handles += _levels(axes, known)
        if ringed:
            handles.append(_ring_sample())
        _actions_axis(axes, known)
        value_axis(axes, horizontal=False, label="share of plans that are right\nbands: 95 %")
        axes.set_title("Success by number of actions")
        fix_ticks(axes)
        legend(axes, handles, own=ax is None)
    return axes


def _curve(ax: Axes, own: Sequence[Tally], look: Look) -> None:
    at = np.array([t.place for t in own])
    mean, low, high = arrays([t.rate for t in own])
    ax.fill_between(at, low, high, color=look.colour, alpha=0.14, linewidth=0)
    ax.plot(at, mean, color=look.colour, linestyle=look.line, marker=look.marker, clip_on=False)
    if len(own) == 1:  # a band of one point has no width
        ax.errorbar(at, mean, yerr=away([t.rate for t in own]), fmt="none", ecolor=look.colour,
                    elinewidth=0.9, capsize=2)  # fmt: skip


def _ring(ax: Axes, own: Sequence[Tally], look: Look, bound: Bound) -> bool:
    """Mark the bound, if it is one; says whether it did."""
    spots = [t for t in own if t.place == bound.found.last and bound.found.below is not None]
    for t in spots:
        ax.plot([t.place], arrays([t.rate])[0], linestyle="none", marker="o", markersize=12,
                markerfacecolor="none", markeredgecolor=look.colour, markeredgewidth=1.2,
                clip_on=False)  # fmt: skip
    return bool(spots)


def _told(bound: Bound | None) -> str:
    if bound is None:
        return ""
    if bound.found.last is None:
        return ", no bound"
    return f", bound {'at least ' if bound.found.below is None else ''}{bound.found.last}"


def _levels(ax: Axes, known: Sequence[Tally]) -> list[Artist]:
    """The threshold and the level of guessing."""
    from matplotlib.lines import Line2D

    ax.axhline(_THRESHOLD, zorder=0.5, **_LEVEL)
    handles: list[Artist] = [Line2D([], [], label="20 %", **_LEVEL)]
    places = sorted({t.place for t in known})
    level = []
    for place in places:
        here = [t for t in known if t.place == place]
        told = [(t.guess, t.rate.n) for t in here if t.guess is not None]
        trials = sum(n for _, n in told)
        level.append(sum(g * n for g, n in told) / trials if len(told) == len(here) else np.nan)
    if not np.isnan(level).all():
        ax.plot(places, level, marker=".", markersize=3, zorder=1, **_GUESS)
        handles.append(Line2D([], [], label="random orders", marker=".", markersize=3, **_GUESS))
    return handles


def _ring_sample() -> Artist:
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="none", marker="o", markersize=9, markerfacecolor="none",
                  markeredgecolor=INK, label="capability bound")  # fmt: skip


def _actions_axis(ax: Axes, known: Sequence[Tally]) -> None:
    places = sorted({t.place for t in known})
    names = []
    for place in places:
        cases = {t.rate.n_clusters or t.rate.n for t in known if t.place == place}
        low, high = min(cases), max(cases)
        names.append(f"{place:g}\n{low:,}" + ("" if low == high else f"–{high:,}"))
    ax.set_xticks(places, names)
    ax.set_xlim(places[0] - 0.35, places[-1] + 0.35)
    ax.set_xlabel("number of actions; below it, cases per system")


def share_bars(rows: Sequence[Shares], title: str, each: str, *, ax: Axes | None = None) -> Axes:
    """Shares of exclusive labels as bars that fill the width, one row per system.

    `each` names what is counted ("error"); its number stands at the end of the row. Labels that
    no system has are left out. Raises InputError where nothing is counted or labels are too many.
    """
    filled = [r for r in rows if r.total]
    if not filled:
        raise InputError(f"there are no {each}s to draw")
    labels = [p.label for p in filled[0].parts]
    found = {p.label for r in filled for p in r.parts if p.count}
    style = {k: v for k, v in _label_looks(labels, found).items() if k in found}
    with drawing():
        axes = axes_or_new(ax, 0.75 + 0.36 * len(filled))
        for y, row in enumerate(filled):
            left = 0.0
            for part in row.parts:
                if part.count:
                    left = _piece(axes, (left, y), part.count / row.total, style[part.label])
            axes.text(1.01, y, f"{row.total:,}", va="center", fontsize=7.5)
        axes.set_yticks(range(len(filled)), [wrapped(r.system, 24, lines=2) for r in filled])
        axes.set_ylim(len(filled) - 0.5, -0.5)
        axes.set_xlim(0, 1.08)
        axes.set_xticks([0, 0.25, 0.5, 0.75, 1], ["0", "25 %", "50 %", "75 %", "100 %"])
        axes.spines["bottom"].set_bounds(0, 1)
        axes.set_xlabel(f"share of a system's {each}s; at the end: their number")
        axes.set_title(title)
        fix_ticks(axes)
        legend(axes, [_swatch(style[k], _words(k)) for k in labels if k in style], own=ax is None)
    return axes


def _label_looks(labels: Sequence[str], found: set[str]) -> dict[str, Look]:
    """A label keeps its look whatever else is there, as long as looks suffice."""
    if len(labels) <= len(LOOKS):
        return looks(labels, "labels")
    return looks([k for k in labels if k in found], "labels")


def _piece(ax: Axes, at: tuple[float, float], share: float, look: Look) -> float:
    """One piece of a bar; returns where it ends."""
    left, y = at
    ax.barh(y, share, 0.62, left=left, facecolor=look.light(0.45), edgecolor=look.colour,
            hatch=look.hatch, linewidth=0.7)  # fmt: skip
    if share >= _LEAST_WORD:
        ax.text(left + share / 2, y, f"{100 * share:.0f} %", ha="center", va="center", fontsize=7,
                bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.82,
                      "pad": 1.0})  # fmt: skip
    return left + share


def _swatch(look: Look, label: str) -> Artist:
    from matplotlib.patches import Patch

    return Patch(facecolor=look.light(0.45), edgecolor=look.colour, hatch=look.hatch, label=label)


def _words(label: str) -> str:
    return plain(label.replace("_", " "))


def form_forest(contrasts: Sequence[Contrast], *, ax: Axes | None = None) -> Axes:
    """Difference of success by clause form, with - without, with 95 % intervals.

    Filled marks are the difference within equal numbers of actions, the hollow ones beside them
    the plain one. Forms stand in alphabetical order; one that all cases hold, or none, is left
    out. Raises InputError without any difference, and for more systems than looks.
    """
    known = [c for c in contrasts if c.difference.mean is not None]
    if not known:
        raise InputError("no clause form is in some cases and missing in others")
    systems = list(dict.fromkeys(c.system for c in known))
    forms = sorted({c.form for c in known})
    style = looks(systems, "systems")
    with drawing():
        axes = axes_or_new(ax, 0.9 + len(forms) * (0.13 + 0.13 * len(systems)))
        axes.axvline(0, **_LEVEL)
        for i, system in enumerate(systems):
            own = {c.form: c for c in known if c.system == system}
            rows = [(k, own[f]) for k, f in enumerate(forms) if f in own]
            shift = (i - (len(systems) - 1) / 2) * 0.8 / len(systems)
            at = np.array([k + shift for k, _ in rows])
            _points(axes, at, [c.within for _, c in rows], style[system])
            plain_ones, _, _ = arrays([c.difference for _, c in rows])
            axes.plot(plain_ones, at, linestyle="none", marker=style[system].marker, markersize=4,
                      markerfacecolor="none", markeredgecolor=style[system].colour)  # fmt: skip
        _rows_axis(axes, [_sides(f, known) for f in forms])
        axes.set_xlabel("success with the form less success without it")
        axes.set_title("Difference of success by clause form")
        fix_ticks(axes)
        light_grid(axes.xaxis)
        handles: list[Artist] = [sample(_dots(style[s]), plain(s)) for s in systems]
        handles.append(note("filled, with 95 %: within equal numbers of actions; hollow: plain"))
        handles.append(note("forms overlap in a case: a difference is not the form's own effect"))
        legend(axes, handles, own=ax is None)
    return axes


def _sides(form: str, known: Sequence[Contrast]) -> str:
    """The form with the numbers of trials that hold it and do not, of all systems."""
    own = [c for c in known if c.form == form]
    yes, no = sum(c.holding.rate.n for c in own), sum(c.others.rate.n for c in own)
    return f"{form} ({yes:,} : {no:,})"


def success_by_topic(tallies: Sequence[Tally], *, ax: Axes | None = None) -> Axes:
    """Success by topic with 95 % intervals, the least successful topic on top.

    Beyond 60 topics those with the most success are left out and counted. Raises InputError
    without any rate, and for more systems than looks.
    """
    known = [t for t in tallies if t.rate.mean is not None]
    if not known:
        raise InputError("there is no verdict to draw")
    systems = list(dict.fromkeys(t.system for t in known))
    style = looks(systems, "systems")
    totals: dict[str, list[int]] = {}
    for t in known:
        passes, n = totals.setdefault(t.group, [0, 0])
        totals[t.group] = [passes + t.passes, n + t.rate.n]
    ordered = sorted(totals, key=lambda g: (totals[g][0] / totals[g][1], g))
    topics = ordered[:MOST_TOPICS]
    with drawing():
        axes = axes_or_new(ax, 0.9 + len(topics) * (0.1 + 0.07 * len(systems)))
        for i, system in enumerate(systems):
            own = {t.group: t for t in known if t.system == system}
            rows = [(k, own[g].rate) for k, g in enumerate(topics) if g in own]
            shift = (i - (len(systems) - 1) / 2) * 0.7 / len(systems)
            at = np.array([k + shift for k, _ in rows])
            _points(axes, at, [rate for _, rate in rows], style[system])
        _rows_axis(axes, topics)
        value_axis(axes, horizontal=True, label="share of plans that are right; whiskers: 95 %")
        axes.set_xlim(-0.015, 1.02)  # room for marks at 0
        light_grid(axes.yaxis)
        axes.set_title("Success by topic")
        fix_ticks(axes)
        counts = n_label([t.rate for t in known if t.group in set(topics)], "trial")
        handles: list[Artist] = [sample(_dots(style[s]), plain(s)) for s in systems]
        handles.append(note(f"each mark: {counts}"))
        if rest := len(ordered) - len(topics):
            handles.append(note(f"not shown: {span([rest], 'topic')} with more success"))
        legend(axes, handles, own=ax is None)
    return axes


def _points(ax: Axes, at: Floats, cells: Sequence[Interval], look: Look) -> None:
    """Marks with lying whiskers; hollow where there is no interval."""
    mean, low, _ = arrays(cells)
    whole, lone = ~np.isnan(low), np.isnan(low) & ~np.isnan(mean)
    ax.errorbar(mean[whole], at[whole], xerr=away(cells)[:, whole], fmt=look.marker, markersize=4,
                color=look.colour, elinewidth=0.8, capsize=1.5)  # fmt: skip
    if lone.any():
        ax.plot(mean[lone], at[lone], linestyle="none", marker=look.marker, markersize=4,
                markerfacecolor="white", markeredgecolor=look.colour)  # fmt: skip


def _dots(look: Look) -> Look:
    return Look(look.colour, "none", look.marker, look.hatch)


def _rows_axis(ax: Axes, names: Sequence[str]) -> None:
    size = 8 if len(names) <= 25 else 7
    ax.set_yticks(range(len(names)), [wrapped(n, 44, lines=1) for n in names], fontsize=size)
    ax.set_ylim(len(names) - 0.4, -0.6)
