"""Figures of workflow campaigns: formats of the procedure by domain, their differences, causes.

The comparison of arXiv 2406.14884 (domains × formats), with intervals and counts.
"""

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
from agenteval.evaluators.workflows.scenario import FORMATS
from agenteval.figures.marks import Floats, arrays, away
from agenteval.figures.saving import save
from agenteval.figures.style import (
    INK,
    LOOKS,
    QUIET,
    WIDTH,
    Look,
    axes_or_new,
    beneath,
    drawing,
    fix_ticks,
    legend,
    light_grid,
    looks,
    new_figure,
    note,
    value_axis,
)
from agenteval.figures.text import listed, plain, plural, wrapped
from agenteval.files import replacing
from agenteval.stats import Interval

if TYPE_CHECKING:
    from matplotlib.artist import Artist
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 4
MOST_PAIRS = 40
_ALL_DOMAINS = "all domains"
_SPREAD = 0.72  # of the distance between two rows is used by their marks


@dataclass(frozen=True)
class _Mark:
    """A rate of one format in one domain; `n` is what it is a share of."""

    format: str
    domain: str
    rate: Interval
    n: int


@dataclass(frozen=True)
class _Panel:
    """All marks of one agent at one level."""

    agent: str
    level: str
    marks: tuple[_Mark, ...]


def format_comparison(
    results: Sequence[SessionResult] | Sequence[TurnResult], *, ax: Axes | None = None
) -> Figure:
    """The figure with the rate of each format in each domain, a panel for each agent.

    Rates with 95 % intervals: of sessions the share of successes, of single turns the share of due
    calls that are right, as in the tables. Beside each mark stands what it is a share of. At most
    four agents have a panel: those tried in more formats first, then by name; others are named.
    With `ax` the one panel is drawn there.

    Raises InputError without any rate, and for `ax` with several agents.
    """
    return _compared([_panels(results)], ax)


def _compared(levels: Sequence[Sequence[_Panel]], ax: Axes | None = None) -> Figure:
    chosen = [p for panels in levels for p in panels[:MOST_PANELS]]
    if not chosen:
        raise InputError("there is no rate to draw")
    if ax is not None and len(chosen) > 1:
        raise InputError(f"{len(chosen)} agents need a panel each: draw them without `ax`")
    names = [p.agent for panels in levels for p in panels[MOST_PANELS:]]
    with drawing():
        figure, cells = _cells(chosen, ax)
        for panel, cell in zip(chosen, cells, strict=True):
            _draw_panel(cell, panel)
        _bare_where_told(chosen, cells)
        handles, notes = _comparison_legend(chosen, names)
        if ax is None:
            figure.supxlabel("\n".join(notes), x=0.01, ha="left", fontsize=7.5, linespacing=1.4)
            figure.legend(
                handles=handles, loc="outside upper right", ncols=len(handles), handlelength=0.8,
                columnspacing=1.1, borderpad=0.1, handletextpad=0.4,
            )  # fmt: skip
        else:
            beneath(ax, [*handles, *map(note, notes)])
    return figure


def _panels(results: Sequence[SessionResult] | Sequence[TurnResult]) -> list[_Panel]:
    """A panel for each agent with a rate, those with more formats first."""
    marks: dict[tuple[str, str], list[_Mark]] = {}
    who = {r.system: (r.agent, r.format) for r in results}
    for system, domain, rate, n, level in _rates(results):
        agent, format = who[system]
        if rate.mean is not None:
            marks.setdefault((agent, level), []).append(_Mark(format, domain, rate, n))
    made = [_Panel(agent, level, tuple(own)) for (agent, level), own in marks.items()]
    return sorted(made, key=lambda p: (-len({m.format for m in p.marks}), p.agent))


def _rates(
    results: Sequence[SessionResult] | Sequence[TurnResult],
) -> list[tuple[str, str, Interval, int, str]]:
    """(system, domain, rate, n, level) by domain, and over all of them where there are several."""
    sessions = [r for r in results if isinstance(r, SessionResult)]
    turns = [r for r in results if isinstance(r, TurnResult)]
    several = len({r.case.domain for r in results}) > 1
    groups = [tallies.GROUPS["domain"], *([None] if several else [])]
    found = []
    for group in groups:
        for t in tallies.session_tallies(sessions, group) if sessions else ():
            place = t.group if group else _ALL_DOMAINS
            found.append((t.system, place, t.success, t.success.n, "sessions"))
        for system, name, table in tallies.turn_tallies(turns, group) if turns else ():
            place, tool = (name if group else _ALL_DOMAINS), table.tool
            n = tool.gold - tool.undecided
            found.append((system, place, tool.recall.known, n, "single turns"))
    return found


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
    figure.suptitle("Formats by domain", x=0.01, ha="left", fontsize=9.5)
    return figure, cells[: len(panels)]


def _height(panel: _Panel) -> float:
    formats, domains = len({m.format for m in panel.marks}), len(_domains(panel))
    return 0.85 + domains * max(0.13 * formats + 0.12, 0.3)


def _domains(panel: _Panel) -> list[str]:
    """By name, all of them together at the top."""
    return sorted({m.domain for m in panel.marks}, key=lambda d: (d != _ALL_DOMAINS, d))


def _bare_where_told(panels: Sequence[_Panel], cells: Sequence[Axes]) -> None:
    """No names at the right where the panel at the left has the same ones."""
    for i in range(1, len(panels), 2):
        if _domains(panels[i]) == _domains(panels[i - 1]):
            cells[i].tick_params(axis="y", labelleft=False)


def _draw_panel(ax: Axes, panel: _Panel) -> None:
    domains = _domains(panel)
    formats = _formats([panel])
    style = looks(FORMATS, "formats")
    step = _SPREAD / len(formats)
    for i, format in enumerate(formats):
        own = [m for m in panel.marks if m.format == format]
        at = np.array([domains.index(m.domain) - _SPREAD / 2 + step * (i + 0.5) for m in own])
        _points(ax, at, [m.rate for m in own], style[format])
        for y, mark in zip(at, own, strict=True):
            ax.text(1.05, y, f"{mark.n:,}", va="center", fontsize=6.5, color="#555555")
    ax.set_yticks(range(len(domains)), [_domain_name(d) for d in domains])
    ax.set_ylim(len(domains) - 0.5, -0.5)
    for y in range(1, len(domains)):
        ax.axhline(y - 0.5, color="#d9d9d9", linewidth=0.5, zorder=0)
    value_axis(ax, horizontal=True, label=_axis_words(panel.level))
    ax.set_xlim(-0.03, 1.16)
    ax.spines["bottom"].set_bounds(0, 1)
    ax.set_title(wrapped(panel.agent, 40, lines=2), fontsize=8.5)
    fix_ticks(ax)


def _domain_name(domain: str) -> str:
    return wrapped(domain.replace("&", " & "), 18, lines=3)


def _axis_words(level: str) -> str:
    return "sessions that succeed" if level == "sessions" else "due calls that are right"


def _formats(panels: Sequence[_Panel]) -> list[str]:
    found = {m.format for p in panels for m in p.marks}
    return [f for f in FORMATS if f in found]


def _comparison_legend(
    panels: Sequence[_Panel], others: Sequence[str]
) -> tuple[list[Artist], list[str]]:
    """Samples of the formats, and what must be said."""
    style = looks(FORMATS, "formats")
    handles = [_dot(style[f], f.replace("_", " ")) for f in _formats(panels)]
    levels = {p.level for p in panels}
    what = {"sessions": "sessions with a verdict", "single turns": "decided calls"}
    counted = " or ".join(what[k] for k in what if k in levels)
    notes = [f"whiskers: 95 %; at the right: {counted}"]
    if any(m.rate.low is None for p in panels for m in p.marks):
        notes.append("hollow: no interval")
    if others:
        notes.append(f"not drawn: {listed([wrapped(n, 30, lines=1) for n in others])}")
    return handles, notes


def format_differences(
    pairs: Sequence[tallies.FormatPair], *, ax: Axes | None = None, what: str = "success"
) -> Axes:
    """Paired differences of formats, first less second, with 95 % intervals: a row for each pair.

    At the right stand the tasks that both have a verdict on. `what` names the rate. Beyond 40
    pairs the others are counted. Raises InputError without any difference.
    """
    known = [p for p in pairs if p.difference.mean is not None]
    if not known:
        raise InputError("no agent was tried in two formats on the same tasks")
    known.sort(key=lambda p: (p.agent, *_in_order(p)))
    rows = known[:MOST_PAIRS]
    several = len({p.agent for p in known}) > 1
    with drawing():
        axes = axes_or_new(ax, 0.85 + len(rows) * (0.32 if several else 0.24))
        axes.axvline(0, color=QUIET, linewidth=0.9, linestyle=(0, (4, 3)), zorder=0.5)
        _points(axes, np.arange(len(rows), dtype=np.float64), [p.difference for p in rows],
                LOOKS[0])  # fmt: skip
        for y, pair in enumerate(rows):
            axes.text(1.01, y, f"{pair.tasks:,}", va="center", fontsize=6.5, color="#555555",
                      transform=axes.get_yaxis_transform())  # fmt: skip
        axes.set_yticks(range(len(rows)), [_pair_name(p, several) for p in rows])
        axes.set_ylim(len(rows) - 0.4, -0.6)
        _symmetric(axes, rows)
        light_grid(axes.xaxis)
        axes.set_xlabel(f"{what} with the first less {what} with the second")
        axes.set_title("Formats compared on the same tasks")
        fix_ticks(axes)
        handles: list[Artist] = [note("whiskers: 95 %; at the right: tasks with both")]
        if any(p.difference.low is None for p in rows):
            handles.append(note("hollow: no interval"))
        if rest := len(known) - len(rows):
            handles.append(note(f"not drawn: {plural(rest, 'pair')}"))
        legend(axes, handles, own=ax is None)
    return axes


def _in_order(pair: tallies.FormatPair) -> tuple[int, int]:
    names: Sequence[str] = FORMATS
    return names.index(pair.first), names.index(pair.second)


def _pair_name(pair: tallies.FormatPair, several: bool) -> str:
    name = f"{pair.first} − {pair.second}".replace("_", " ")
    return f"{wrapped(pair.agent, 36, lines=1)}\n{name}" if several else name


def _symmetric(ax: Axes, rows: Sequence[tallies.FormatPair]) -> None:
    """Zero in the middle, and no more width than the intervals need."""
    from matplotlib.ticker import MaxNLocator

    ends = [abs(e) for p in rows for e in (p.difference.mean, p.difference.low, p.difference.high)
            if e is not None]  # fmt: skip
    far = min(max(1.08 * max(ends), 0.25), 1.02)  # small differences shall look small
    ax.set_xlim(-far, far)
    ax.xaxis.set_major_locator(MaxNLocator(6, steps=[1, 2, 2.5, 5, 10]))
    ax.xaxis.set_major_formatter(lambda x, _: f"{x:+.3g}".replace("-", "−") if x else "0")


def cause_bars(results: Sequence[SessionResult], *, ax: Axes | None = None) -> Axes:
    """Shares of the causes of failed sessions, a bar for each system.

    Raises InputError where no session failed.
    """
    from agenteval.evaluators.planning.tallies import Part, Shares
    from agenteval.figures.planning import share_bars
    from agenteval.stats import proportion_interval

    found = sorted(tallies.causes(results), key=lambda c: c.system)
    rows = [
        Shares(
            c.system,
            c.failed,
            tuple(Part(k, n, proportion_interval(n, c.failed)) for k, n in c.counts.items()),
        )
        for c in found
    ]
    return share_bars(rows, "Why sessions failed, by system", "failed session", ax=ax)


def save_formats(
    sessions: Sequence[SessionResult], turns: Sequence[TurnResult], path: str | Path
) -> None:
    """Write the comparison of formats as .png, .svg or .pdf: panels of sessions, then of turns.

    Raises InputError for another suffix, for a path that cannot be written, and without any rate.
    """
    target = Path(path)
    suffix = target.suffix.lower()
    if suffix not in (".png", ".svg", ".pdf"):
        raise InputError(
            f"figures are written as .png, .svg or .pdf, not {target.suffix!r}", str(path)
        )
    figure = _compared([_panels(sessions), _panels(turns)])
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


def _points(ax: Axes, at: Floats, cells: Sequence[Interval], look: Look) -> None:
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


def _dot(look: Look, label: str) -> Artist:
    from matplotlib.lines import Line2D

    style: dict[str, Any] = {"linestyle": "none", "marker": look.marker, "color": look.colour}
    return Line2D([], [], label=plain(label), markeredgecolor=look.colour or INK, **style)
