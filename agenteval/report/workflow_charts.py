"""Charts of workflows: rates of formats and agents by domain, paired differences, causes.

The comparison of arXiv 2406.14884 (domains × formats), with intervals and counts.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from agenteval.errors import InputError
from agenteval.evaluators.workflows import tallies
from agenteval.evaluators.workflows.results import SessionResult, TurnResult
from agenteval.evaluators.workflows.scenario import FORMATS
from agenteval.evaluators.workflows.tallies import Tallies
from agenteval.records.table import Estimate
from agenteval.report import bars, charts
from agenteval.report.marks import Series
from agenteval.report.style import LOOKS, listed
from agenteval.stats import Interval
from agenteval.text import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

MOST_PANELS = 4
MOST_ROWS = 20
MOST_PAIRS = 40
_ALL = "all domains"
_ORDER: list[str] = list(FORMATS)


@dataclass(frozen=True)
class _Rate:
    """The rate of an agent with a format in a domain; `n` is what it is a share of."""

    agent: str
    format: str
    domain: str
    rate: Interval
    n: int


def format_points(known: Tallies, level: str = "") -> Figure:
    """The rate of each format in each domain, a panel for each agent; of "sessions" or "turns",
    else of both.

    Rates with 95 % intervals: of sessions the share of successes, of single turns the share of due
    calls that are right, as in the tables. At the right stands what they are a share of. At most
    four agents of a level have a panel: those tried in more formats first, then those with more in
    their rates, then by name; others are named. Where all were tried in one format only, a panel
    has up to seven agents side by side, in a single domain up to twenty. Raises InputError without
    any rate.
    """
    by_level = {"sessions": _session_rates(known), "single turns": _turn_rates(known)}
    wanted = {"sessions": ["sessions"], "turns": ["single turns"]}.get(level, list(by_level))
    found = {name: by_level[name] for name in wanted if by_level[name]}
    if not found:
        raise InputError("there is no rate to draw")
    rates = [one for some in found.values() for one in some]
    domains = sorted({r.domain for r in rates}, key=lambda d: (d != _ALL, d))
    if len(domains) == 2:
        domains = domains[:1]
    by_agent = len(domains) == 1 and len({r.format for r in rates}) == 1
    rows = _agents(rates)[:MOST_ROWS] if by_agent else domains
    panels: dict[str, list[Series]] = {}
    left_out: list[str] = []
    for name, some in found.items():
        if by_agent:
            panels[name] = [_series(rates[0].format, rows, some, lambda r: r.agent)]
            left_out += [a for a in _agents(some) if a not in rows]
            continue
        made, rest = _panels(name, some, domains)
        panels |= made
        left_out += rest
    what = {"sessions": "sessions that succeed", "single turns": "due calls that are right"}
    counted = {"sessions": "sessions with a verdict", "single turns": "decided calls"}
    notes = [f"whiskers: 95 %; at the right: {' or '.join(counted[k] for k in found)}"]
    if left_out:
        notes.append(f"not drawn: {listed(left_out)}")
    formats = any(one.name in FORMATS for some in panels.values() for one in some)
    shown = "Formats" if formats and len(_formats(rates)) > 1 else "Systems"
    return charts.points(
        ["one domain" if row == _ALL and len(rows) == 1 else row for row in rows], panels,
        title=shown if by_agent or len(domains) == 1 else f"{shown} by domain",
        x="share of " + " or of ".join(what[k] for k in found), notes=notes,
    )  # fmt: skip


def _panels(
    level: str, rates: Sequence[_Rate], domains: Sequence[str]
) -> tuple[dict[str, list[Series]], list[str]]:
    """Panels of a level by their title, and the agents that have none."""
    agents, formats = _agents(rates), _formats(rates)
    if len(formats) == 1 and len(agents) > 1:
        drawn = agents[: len(LOOKS)]
        title = f"{level}, procedure told as {formats[0].replace('_', ' ')}"
        made = {
            title: [
                _series(a, domains, [r for r in rates if r.agent == a], lambda r: r.domain)
                for a in drawn
            ]
        }
        return made, agents[len(LOOKS) :]
    made = {}
    for agent in agents[:MOST_PANELS]:
        own = [r for r in rates if r.agent == agent]
        made[f"{agent}, {level}"] = [
            _series(f, domains, [r for r in own if r.format == f], lambda r: r.domain)
            for f in _formats(own)
        ]
    return made, agents[MOST_PANELS:]


def _series(
    name: str, rows: Sequence[str], rates: Sequence[_Rate], key: Callable[[_Rate], str]
) -> Series:
    by_row = {key(r): r for r in rates}
    own = [by_row.get(row) for row in rows]
    look = LOOKS[_ORDER.index(name)] if name in FORMATS else None
    values = [Estimate.of(r.rate) if r else None for r in own]
    return Series(name, values, name.replace("_", " "), look=look,
                  counts=[r.n if r else 0 for r in own])  # fmt: skip


def _agents(rates: Sequence[_Rate]) -> list[str]:
    """Those in more formats first, then those with more in their rates, then by name."""

    def place(agent: str) -> tuple[int, int, str]:
        own = [r for r in rates if r.agent == agent]
        return -len({r.format for r in own}), -sum(r.n for r in own), agent

    return sorted({r.agent for r in rates}, key=place)


def _formats(rates: Sequence[_Rate]) -> list[str]:
    found = {r.format for r in rates}
    return [f for f in FORMATS if f in found]


def _session_rates(known: Tallies) -> list[_Rate]:
    who = {r.system: r for r in known.sessions}
    rates = []
    for group in ("domain", ""):
        for t in known.sessions_by(group):
            of: SessionResult = who[t.system]
            domain = t.group if group else _ALL
            rates.append(_Rate(of.agent, of.format, domain, t.success, t.success.n))
    return [one for one in rates if one.rate.mean is not None]


def _turn_rates(known: Tallies) -> list[_Rate]:
    who = {r.system: r for r in known.turns}
    rates = []
    for group in ("domain", ""):
        for system, name, table in known.turns_by(group):
            of: TurnResult = who[system]
            n = table.tool.gold - table.tool.undecided
            domain = name if group else _ALL
            rates.append(_Rate(of.agent, of.format, domain, table.tool.recall.known, n))
    return [one for one in rates if one.rate.mean is not None]


def format_differences(pairs: Sequence[tallies.FormatPair], what: str = "success") -> Figure:
    """Paired differences of formats, first less second, with 95 % intervals, at the right the
    tasks that both have a verdict on. `what` names the rate. Beyond 40 pairs the others are
    counted. Raises InputError without any difference."""
    known = [p for p in pairs if p.difference.mean is not None]
    if not known:
        raise InputError("no agent was tried in two formats on the same tasks")
    known.sort(key=lambda p: (p.agent, _ORDER.index(p.first), _ORDER.index(p.second)))
    some, rest = known[:MOST_PAIRS], len(known) - MOST_PAIRS
    several = len({p.agent for p in known}) > 1
    rows = [
        (f"{p.agent}: " if several else "") + f"{p.first} − {p.second}".replace("_", " ")
        for p in some
    ]
    series = Series(
        "difference", [Estimate.of(p.difference) for p in some], counts=[p.tasks for p in some]
    )
    notes = ["whiskers: 95 %; at the right: tasks with both"]
    notes += [f"not drawn: {plural(rest, 'pair')}"] if rest > 0 else []
    return charts.points(
        rows, {"": [series]}, title="Formats compared on the same tasks", limits=None, level=0.0,
        x=f"{what} with the first less {what} with the second", notes=notes,
    )  # fmt: skip


def cause_bars(known: Tallies) -> Axes:
    """Shares of the causes of failed sessions, a bar for each system.

    Raises InputError where no session failed.
    """
    if not known.causes:
        raise InputError("there are no failed sessions to draw")
    rows = {c.system: dict(c.counts) for c in sorted(known.causes, key=lambda c: c.system)}
    words = "share of a system's failed sessions; at the end: their number"
    return bars.shares(rows, title="Why sessions failed, by system", x=words)
