"""Charts of workflow sessions and turns: rates by domain and format, differences of formats.

The comparison of arXiv 2406.14884 (domains × formats), with intervals and counts.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from agenteval.analysis.system_pairs import Pair
from agenteval.errors import InputError
from agenteval.records.table import Estimate
from agenteval.reporting import charts
from agenteval.reporting.charts import Series
from agenteval.reporting.style import LOOKS, plain
from agenteval.reporting.text import listed
from agenteval.stats import Interval
from agenteval.text import plural
from agenteval.workflows.scenario import EVERY_FORMAT
from agenteval.workflows.tallies import Tallies

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_PANELS = 4
_MOST_ROWS = 20
_MOST_PAIRS = 40
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
    side, or up to twenty in a single domain. Raises InputError when there are no rates.
    """
    levels = {"sessions": _session_rates(tallies), "single turns": _turn_rates(tallies)}
    level_names = {"sessions": ["sessions"], "turns": ["single turns"]}.get(level, list(levels))
    drawn = {name: levels[name] for name in level_names if levels[name]}
    if not drawn:
        raise InputError("there are no rates to draw")
    keys = [key for rates in drawn.values() for key in rates]
    formats = _in_order(format for _, format, _ in keys)
    domains = sorted({domain for *_, domain in keys}, key=lambda d: (d != _ALL, d))
    if len(domains) == 2:
        domains = domains[:1]
    by_agent = len(domains) == 1 and len(formats) == 1
    rows = _agents(*drawn.values())[:_MOST_ROWS] if by_agent else domains
    panels: dict[str, list[Series]] = {}
    left_out: list[str] = []
    for name, rates in drawn.items():
        agents, tried = _agents(rates), _in_order(format for _, format, _ in rates)
        first = tried[0]
        if by_agent:
            panels[name] = [_series(first, rates, [(a, first, domains[0]) for a in rows])]
            left_out += [a for a in agents if a not in rows]
        elif len(tried) == 1 and len(agents) > 1:
            panels[f"{name}, procedure told as {first.replace('_', ' ')}"] = [
                _series(a, rates, [(a, first, d) for d in rows]) for a in agents[: len(LOOKS)]
            ]
            left_out += agents[len(LOOKS) :]
        else:
            for a in agents[:_MOST_PANELS]:
                panels[f"{a}, {name}"] = [
                    _series(f, rates, [(a, f, d) for d in rows])
                    for f in tried
                    if any((a, f, d) in rates for d in rows)
                ]
            left_out += agents[_MOST_PANELS:]
    notes = [f"whiskers: 95%; at the right: {' or '.join(_COUNTED[k] for k in drawn)}"]
    if left_out:
        notes.append(f"not shown: {listed([plain(a) for a in left_out])}")
    in_series = any(series.name in EVERY_FORMAT for some in panels.values() for series in some)
    shown = "Formats" if in_series and len(formats) > 1 else "Systems"
    return charts.rows(
        ["one domain" if row == _ALL and len(rows) == 1 else row for row in rows],
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
    look = LOOKS[list(EVERY_FORMAT).index(name)] if name in EVERY_FORMAT else None
    return Series(
        name,
        [point[0] if point else None for point in points],
        name.replace("_", " "),
        look=look,
        counts=[point[1] if point else 0 for point in points],
    )


def _agents(*levels: _Rates) -> list[str]:
    """Return those in more formats first, then those with more in their rates, then by name."""
    formats: defaultdict[str, set[str]] = defaultdict(set)
    total: Counter[str] = Counter()
    for rates in levels:
        for (agent, format, _), (_, n) in rates.items():
            formats[agent].add(format)
            total[agent] += n
    return sorted(formats, key=lambda agent: (-len(formats[agent]), -total[agent], agent))


def _session_rates(tallies: Tallies) -> _Rates:
    return {
        (t.agent, t.format, t.group if by else _ALL): (t.success, t.success.n)
        for by in ("domain", "")
        for t in tallies.sessions_by(by)
        if t.success.mean is not None
    }


def _turn_rates(tallies: Tallies) -> _Rates:
    return {
        (t.agent, t.format, t.group if by else _ALL): (t.recall, t.due_calls)
        for by in ("domain", "")
        for t in tallies.turns_by(by)
        if t.recall.mean is not None
    }


def format_differences(pairs: Sequence[Pair], what: str = "success") -> Figure:
    """Draw paired differences of formats, first less second, with 95% intervals.

    On the right are the tasks that both have a verdict on. `what` names the rate. Beyond 40 pairs
    the others are counted. Raises InputError without any difference.
    """
    estimated = [p for p in pairs if p.difference.mean is not None]
    if not estimated:
        raise InputError("no agent was run in two formats on the same tasks")
    order: list[str] = list(EVERY_FORMAT)
    estimated.sort(key=lambda p: (p.agent, order.index(p.first), order.index(p.second)))
    drawn, more = estimated[:_MOST_PAIRS], len(estimated) - _MOST_PAIRS
    several = len({p.agent for p in estimated}) > 1
    names = [
        (f"{p.agent}: " if several else "") + f"{p.first} − {p.second}".replace("_", " ")
        for p in drawn
    ]
    estimates = [Estimate.of(p.difference) for p in drawn]
    notes = ["whiskers: 95%; at the right: tasks with both"]
    notes += [f"not shown: {plural(more, 'pair')}"] if more > 0 else []
    return charts.rows(
        names,
        {"": [Series("difference", estimates, counts=[p.tasks for p in drawn])]},
        title="Formats compared on the same tasks",
        limits=None,
        level=0.0,
        x=f"{what} with the first minus {what} with the second",
        notes=notes,
    )
