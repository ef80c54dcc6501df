"""Rates of formats of the procedure by domain, and of agents side by side."""

from __future__ import annotations

import io
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from agenteval.errors import InputError
from agenteval.evaluators.workflows import tallies
from agenteval.evaluators.workflows.results import SessionResult, TurnResult
from agenteval.evaluators.workflows.scenario import FORMATS, Format
from agenteval.evaluators.workflows.tallies import Tallies
from agenteval.figures.marks import Floats, arrays, away
from agenteval.figures.saving import save
from agenteval.figures.style import (
    INK,
    LOOKS,
    WIDTH,
    Look,
    beneath,
    drawing,
    fix_ticks,
    looks,
    new_figure,
    note,
    value_axis,
)
from agenteval.figures.text import listed, plain, wrapped
from agenteval.files import replacing
from agenteval.stats import Interval

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 4
_ALL_DOMAINS = "all domains"
_Found = tuple[SessionResult | TurnResult, str, Interval, int]  # a trial of it, row, rate, n
MOST_ROWS = 20
_LEGEND = 96  # characters beside each other above the panels
_SPREAD = 0.72  # of the distance between two rows is used by their marks


@dataclass(frozen=True)
class _Mark:
    """A rate in one row, drawn as one of the series; `n` is what it is a share of."""

    series: str
    row: str
    rate: Interval
    n: int


@dataclass(frozen=True)
class _Panel:
    """Marks of one level: of one agent with its formats as series, or of several agents with one
    format. `style` has the look of each series, in their order; `others` are not drawn."""

    title: str
    level: str
    marks: tuple[_Mark, ...]
    style: dict[str, Look]
    others: tuple[str, ...] = ()
    by_agent: bool = False  # rows are agents, of a single domain


def format_comparison(
    results: Sequence[SessionResult] | Sequence[TurnResult],
    *,
    ax: Axes | None = None,
    counted: Tallies | None = None,
) -> Figure:
    """The figure with the rate of each format in each domain, a panel for each agent.

    Rates with 95 % intervals: of sessions the share of successes, of single turns the share of due
    calls that are right, as in the tables. Beside each mark stands what it is a share of. At most
    four agents have a panel: those tried in more formats first, then those with more trials in
    rates, then by name; others are named. Where all were tried in one format only, one panel has up
    to seven agents side by side, in a single domain up to twenty. With `ax` the one panel is drawn
    there. `counted` are the tallies of these results, where somebody has them already.

    Raises InputError without any rate, and for `ax` with several panels.
    """
    return compared([panels_of(results, counted)], ax)


def compared(levels: Sequence[Sequence[_Panel]], ax: Axes | None = None) -> Figure:
    chosen = [p for panels in levels for p in panels[:MOST_PANELS]]
    if not chosen:
        raise InputError("there is no rate to draw")
    if ax is not None and len(chosen) > 1:
        raise InputError(f"{len(chosen)} agents need a panel each: draw them without `ax`")
    names = [n for p in chosen for n in p.others]
    names += [p.title for panels in levels for p in panels[MOST_PANELS:]]
    with drawing():
        figure, cells = _cells(chosen, ax)
        for panel, cell in zip(chosen, cells, strict=True):
            _draw_panel(cell, panel)
        _bare_where_told(chosen, cells)
        handles, notes = _comparison_legend(chosen, list(dict.fromkeys(names)))
        if ax is not None:
            beneath(ax, [*handles, *map(note, notes)])
            return figure
        figure.supxlabel("\n".join(notes), x=0.01, ha="left", fontsize=7.5, linespacing=1.4)
        if handles:
            figure.legend(
                handles=handles, loc="outside upper right", handlelength=0.8, columnspacing=1.1,
                ncols=_legend_columns(handles), borderpad=0.1, handletextpad=0.4,
            )  # fmt: skip
    return figure


def _legend_columns(handles: Sequence[Artist]) -> int:
    longest = max(len(str(h.get_label())) for h in handles)
    return max(min(len(handles), _LEGEND // (longest + 5)), 1)


def panels_of(
    results: Sequence[SessionResult] | Sequence[TurnResult], counted: Tallies | None
) -> list[_Panel]:
    """A panel for each agent with a rate, those with more formats first; one for all agents where
    there is but one format."""
    found = _rates(results, counted)
    formats = _formats({r.format for r, _, _, _ in found})
    agents = _by_agent(found)
    if len(formats) == 1 and len(agents) > 1:
        return [_side_by_side(agents, formats[0], results)]
    style = looks(FORMATS, "formats")
    return [
        _Panel(
            agent,
            _level(results),
            tuple(_Mark(r.format, row, rate, n) for r, row, rate, n in _rows(own)),
            {f: style[f] for f in _formats({r.format for r, _, _, _ in own})},
        )
        for agent, own in agents.items()
    ]


def _by_agent(found: Sequence[_Found]) -> dict[str, list[_Found]]:
    """Those in more formats first, then those with more in their rates, then by name."""
    agents: dict[str, list[_Found]] = {}
    for one in found:
        agents.setdefault(one[0].agent, []).append(one)

    def place(item: tuple[str, list[_Found]]) -> tuple[int, int, str]:
        agent, own = item
        return -len({r.format for r, _, _, _ in own}), -sum(n for _, _, _, n in own), agent

    return dict(sorted(agents.items(), key=place))


def _side_by_side(
    agents: dict[str, list[_Found]],
    format: str,
    results: Sequence[SessionResult] | Sequence[TurnResult],
) -> _Panel:
    """One panel: a colour for each agent, or in a single domain a row."""
    title = f"procedure told as {format.replace('_', ' ')}"
    alone = len({row for own in agents.values() for _, row, _, _ in own if row != _ALL_DOMAINS}) < 2
    most = MOST_ROWS if alone else len(LOOKS)
    kept, others = list(agents)[:most], tuple(list(agents)[most:])
    if alone:
        marks = tuple(_Mark(format, a, *one[2:]) for a in kept for one in _rows(agents[a]))
        return _Panel(title, _level(results), marks, {format: LOOKS[0]}, others, by_agent=True)
    marks = tuple(_Mark(a, *one[1:]) for a in kept for one in agents[a])
    return _Panel(title, _level(results), marks, looks(kept, "agents"), others)


def _rows(own: list[_Found]) -> list[_Found]:
    """Without the row for all domains where there is but one."""
    several = len({row for _, row, _, _ in own if row != _ALL_DOMAINS}) > 1
    return [one for one in own if several or one[1] != _ALL_DOMAINS]


def _level(results: Sequence[SessionResult] | Sequence[TurnResult]) -> str:
    return "sessions" if isinstance(results[0], SessionResult) else "single turns"


def _rates(
    results: Sequence[SessionResult] | Sequence[TurnResult], counted: Tallies | None
) -> list[_Found]:
    """The rates that are known, by domain and over all domains."""
    sessions = [r for r in results if isinstance(r, SessionResult)]
    turns = [r for r in results if isinstance(r, TurnResult)]
    who = {r.system: r for r in results}
    found: list[_Found] = []
    known = counted or Tallies(turns=turns)
    for group in ("domain", ""):
        for system, name, own in tallies.groups_of(sessions, tallies.GROUPS.get(group)):
            rate = tallies.success_rate(own)
            found.append((who[system], name if group else _ALL_DOMAINS, rate, rate.n))
        for system, name, table in known.turns_by(group) if turns else ():
            row, tool = (name if group else _ALL_DOMAINS), table.tool
            found.append((who[system], row, tool.recall.known, tool.gold - tool.undecided))
    return [one for one in found if one[2].mean is not None]


def _cells(panels: Sequence[_Panel], ax: Axes | None) -> tuple[Figure, list[Axes]]:
    if ax is not None:
        figure = ax.get_figure(root=True)
        assert figure is not None
        return figure, [ax]
    columns = min(len(panels), 2)
    rows = -(-len(panels) // columns)
    tallest = max(_height(p) for p in panels)
    figure = new_figure(WIDTH, rows * tallest + 0.55)
    cells = list(figure.subplots(rows, columns, squeeze=False).flat)
    for unused in cells[len(panels) :]:
        unused.remove()
    figure.suptitle(_heading(panels), x=0.01, ha="left", fontsize=9.5)
    return figure, cells[: len(panels)]


def _heading(panels: Sequence[_Panel]) -> str:
    several = any(_ALL_DOMAINS in {m.row for m in p.marks} for p in panels)
    formats = any(set(p.style) <= set(FORMATS) and len(p.style) > 1 for p in panels)
    what = "Formats" if formats else "Systems" if len(panels) == 1 else "Rates"
    return f"{what} by domain" if several else what


def _height(panel: _Panel) -> float:
    series, rows = len(panel.style), len(_names(panel))
    return 0.85 + rows * max(0.13 * series + 0.12, 0.3)


def _names(panel: _Panel) -> list[str]:
    """Agents as they come, domains by name, all of them together at the top."""
    rows = list(dict.fromkeys(m.row for m in panel.marks))
    if panel.by_agent:
        return rows
    return sorted(rows, key=lambda d: (d != _ALL_DOMAINS, d))


def _bare_where_told(panels: Sequence[_Panel], cells: Sequence[Axes]) -> None:
    """No names at the right where the panel at the left has the same ones."""
    for i in range(1, len(panels), 2):
        if _names(panels[i]) == _names(panels[i - 1]):
            cells[i].tick_params(axis="y", labelleft=False)


def _draw_panel(ax: Axes, panel: _Panel) -> None:
    names = _names(panel)
    step = _SPREAD / len(panel.style)
    for i, (series, look) in enumerate(panel.style.items()):
        own = [m for m in panel.marks if m.series == series]
        at = np.array([names.index(m.row) - _SPREAD / 2 + step * (i + 0.5) for m in own])
        points(ax, at, [m.rate for m in own], look)
        for y, mark in zip(at, own, strict=True):
            ax.text(1.05, y, f"{mark.n:,}", va="center", fontsize=6.5, color="#555555")
    width = 34 if panel.by_agent else 18
    ax.set_yticks(range(len(names)), [_row_name(n, width) for n in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    for y in range(1, len(names)):
        ax.axhline(y - 0.5, color="#d9d9d9", linewidth=0.5, zorder=0)
    value_axis(ax, horizontal=True, label=_axis_words(panel.level))
    ax.set_xlim(-0.03, 1.16)
    ax.spines["bottom"].set_bounds(0, 1)
    ax.set_title(wrapped(panel.title, 40, lines=2), fontsize=8.5)
    fix_ticks(ax)


def _row_name(name: str, width: int) -> str:
    return wrapped(name.replace("&", " & "), width, lines=3)


def _axis_words(level: str) -> str:
    return "sessions that succeed" if level == "sessions" else "due calls that are right"


def _formats(found: set[Format]) -> list[Format]:
    return [f for f in FORMATS if f in found]


def _comparison_legend(
    panels: Sequence[_Panel], others: Sequence[str]
) -> tuple[list[Artist], list[str]]:
    """Samples of the series, and what must be said."""
    styles: dict[str, Look] = {}
    for panel in panels:
        if not panel.by_agent:
            styles |= panel.style
    order: Sequence[str] = FORMATS
    names = sorted(styles, key=lambda n: order.index(n) if n in order else len(order))
    handles = [
        dot(styles[n], wrapped(n.replace("_", " ") if n in FORMATS else n, 44, lines=1))
        for n in names
    ]
    levels = {p.level for p in panels}
    what = {"sessions": "sessions with a verdict", "single turns": "decided calls"}
    counted = " or ".join(what[k] for k in what if k in levels)
    notes = [f"whiskers: 95 %; at the right: {counted}"]
    if any(m.rate.low is None for p in panels for m in p.marks):
        notes.append("hollow: no interval")
    if others:
        notes.append(f"not drawn: {listed([wrapped(n, 30, lines=1) for n in others])}")
    return handles, notes


def check_ending(path: str | Path) -> None:
    """Raises InputError for a file that is neither .png nor .svg nor .pdf by its name."""
    suffix = Path(path).suffix
    if suffix.lower() not in (".png", ".svg", ".pdf"):
        raise InputError(f"figures are written as .png, .svg or .pdf, not {suffix!r}", str(path))


def save_formats(
    sessions: Sequence[SessionResult],
    turns: Sequence[TurnResult],
    path: str | Path,
    *,
    counted: Tallies | None = None,
) -> None:
    """Write the comparison of formats as .png, .svg or .pdf: panels of sessions, then of turns.

    Raises InputError for another suffix, for a path that cannot be written, and without any rate.
    """
    check_ending(path)
    target = Path(path)
    suffix = target.suffix.lower()
    figure = compared([panels_of(level, counted) for level in (sessions, turns) if level])
    if suffix != ".pdf":
        save(figure, target)
        return
    buffer = io.BytesIO()
    with drawing():  # without date and version: the same data give the same bytes
        figure.savefig(
            buffer,
            format="pdf",
            metadata={"Creator": "agenteval", "Producer": None, "CreationDate": None},
        )
    with replacing(target) as temporary:
        temporary.write_bytes(buffer.getvalue())


def points(ax: Axes, at: Floats, cells: Sequence[Interval], look: Look) -> None:
    """Marks with lying whiskers; hollow where there is no interval, or one without width."""
    mean, low, high = arrays(cells)
    whole = ~np.isnan(low) & (low < high)
    if whole.any():
        ax.errorbar(
            mean[whole], at[whole], xerr=away(cells)[:, whole], fmt=look.marker, markersize=4.2,
            color=look.colour, elinewidth=0.9, capsize=1.8,
        )  # fmt: skip
    if not whole.all():
        ax.plot(
            mean[~whole], at[~whole], linestyle="none", marker=look.marker, markersize=4.2,
            markerfacecolor="white", markeredgecolor=look.colour,
        )  # fmt: skip


def dot(look: Look, label: str) -> Artist:
    """A sample for a legend."""
    from matplotlib.lines import Line2D

    style: dict[str, Any] = {"linestyle": "none", "marker": look.marker, "color": look.colour}
    return Line2D([], [], label=plain(label), markeredgecolor=look.colour or INK, **style)
