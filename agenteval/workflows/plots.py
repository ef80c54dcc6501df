"""Chart of workflow sessions and turns: rates by domain and format.

The comparison of arXiv 2406.14884 (domains × formats), with intervals and counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from agenteval.errors import InputError
from agenteval.reporting import charts
from agenteval.reporting.charts import Series
from agenteval.reporting.style import LOOKS, plain
from agenteval.reporting.text import listed
from agenteval.stats import Interval
from agenteval.workflows.scenario import EVERY_FORMAT
from agenteval.workflows.tallies import Tallies

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_PANELS = 4
_ALL = "all domains"
_SHARE_OF = {"sessions": "successful sessions", "single turns": "correct due calls"}
_COUNTED = {"sessions": "sessions with a verdict", "single turns": "decided calls"}

# Agent, format and domain → the rate, and how many it is a share of.
_Rates = dict[tuple[str, str, str], tuple[Interval, int]]


def format_points(tallies: Tallies, level: str = "") -> Figure:
    """Draw the rate of each format in each domain, one panel per agent, for "sessions", "turns" or
    both.

    Rates have 95% intervals: the share of successful sessions, or of correct due calls at single
    turns, as in the tables. The denominator is on the right. Each level has at most four panels:
    agents run in more formats come first, then those with more trials, then by name; the others
    are listed. If all agents were run in one format only, a panel has up to seven agents side by
    side. Raises InputError when there are no rates.
    """
    levels = {"sessions": _session_rates(tallies), "single turns": _turn_rates(tallies)}
    names = {"sessions": ["sessions"], "turns": ["single turns"]}.get(level, list(levels))
    drawn = {name: levels[name] for name in names if levels[name]}
    if not drawn:
        raise InputError("there are no rates to draw")
    keys = [key for rates in drawn.values() for key in rates]
    domains = sorted({domain for *_, domain in keys}, key=lambda d: (d != _ALL, d))
    if len(domains) == 2:
        domains = domains[:1]
    panels: dict[str, list[Series]] = {}
    omitted: list[str] = []
    for name, rates in drawn.items():
        agents, formats = _agents(rates), _in_order(format for _, format, _ in rates)
        side_by_side = len(formats) == 1 and len(agents) > 1
        most = len(LOOKS) if side_by_side else _MOST_PANELS
        omitted += agents[most:]
        if side_by_side:
            title = f"{name}, procedure told as {formats[0].replace('_', ' ')}"
            panels[title] = [
                _series(a, rates, [(a, formats[0], d) for d in domains]) for a in agents[:most]
            ]
            continue
        for a in agents[:most]:
            panels[f"{a}, {name}"] = [
                _series(f, rates, [(a, f, d) for d in domains])
                for f in formats
                if any((a, f, d) in rates for d in domains)
            ]
    notes = [f"whiskers: 95%; at the right: {' or '.join(_COUNTED[k] for k in drawn)}"]
    if omitted:
        notes.append(f"not shown: {listed([plain(a) for a in omitted])}")
    in_series = any(series.name in EVERY_FORMAT for panel in panels.values() for series in panel)
    several = len({format for _, format, _ in keys}) > 1
    shown = "Formats" if in_series and several else "Systems"
    return charts.rows(
        ["one domain" if domains == [_ALL] else domain for domain in domains],
        panels,
        title=shown if len(domains) == 1 else f"{shown} by domain",
        x="share of " + " or of ".join(_SHARE_OF[k] for k in drawn),
        notes=notes,
    )


def _in_order(formats: Iterable[str]) -> list[str]:
    present = set(formats)
    return [format for format in EVERY_FORMAT if format in present]


def _series(name: str, rates: _Rates, keys: Sequence[tuple[str, str, str]]) -> Series:
    """Return the rates of these keys; a format has the same look in every chart."""
    points = [rates.get(key) for key in keys]
    return Series(
        name,
        [point[0] if point else None for point in points],
        name.replace("_", " "),
        look=LOOKS[list(EVERY_FORMAT).index(name)] if name in EVERY_FORMAT else None,
        counts=[point[1] if point else 0 for point in points],
    )


def _agents(rates: _Rates) -> list[str]:
    """Return those in more formats first, then those with more in their rates, then by name."""
    formats: defaultdict[str, set[str]] = defaultdict(set)
    total: Counter[str] = Counter()
    for (agent, format, _), (_, n) in rates.items():
        formats[agent].add(format)
        total[agent] += n
    return sorted(formats, key=lambda agent: (-len(formats[agent]), -total[agent], agent))


def _session_rates(tallies: Tallies) -> _Rates:
    return {
        (t.agent, t.format, t.group or _ALL): (t.success, t.success.n)
        for by in ("domain", "")
        for t in tallies.sessions_by(by)
        if t.success.mean is not None
    }


def _turn_rates(tallies: Tallies) -> _Rates:
    return {
        (t.agent, t.format, t.group or _ALL): (t.recall, t.due_calls)
        for by in ("domain", "")
        for t in tallies.turns_by(by)
        if t.recall.mean is not None
    }
