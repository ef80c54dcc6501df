"""Charts of planning tests: success by number of actions, shares of labels, forms, topics.

Figures 8 and 9 of arXiv 2404.17833 (curves over the number of actions), with what they lack:
intervals, the level of guessing, and the numbers of cases.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from agenteval.errors import InputError
from agenteval.evaluators.planning.capability import Bound
from agenteval.evaluators.planning.contrasts import Contrast
from agenteval.evaluators.planning.tallies import Shares, Tally
from agenteval.report import bars, charts
from agenteval.report.marks import Series
from agenteval.report.style import n_label
from agenteval.text import plural

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MOST_TOPICS = 60
_THRESHOLD = 0.2


def success_by_actions(rates: Sequence[Tally], found: Sequence[Bound] = ()) -> Figure:
    """Success against number of actions, a line per system; its capability bound is in the legend.
    Dashed is the threshold of 20 %, dotted what random orders would reach (mean over all trials).

    Raises InputError without any rate, and for more systems than can be told apart.
    """
    known = _known(rates)
    sentence = {b.system: _bound(b) for b in found}
    places = sorted({t.place for t in known})
    series = []
    for system in dict.fromkeys(t.system for t in known):
        own = sorted((t for t in known if t.system == system), key=lambda t: t.place)
        series.append(Series(system, [t.rate for t in own], system + sentence.get(system, ""),
                             at=[t.place for t in own]))  # fmt: skip
    ticks = {}
    for place in places:
        cases = {t.rate.n_clusters or t.rate.n for t in known if t.place == place}
        low, high = min(cases), max(cases)
        ticks[place] = f"{place:g}\n{low:,}" + ("" if low == high else f"–{high:,}")
    guessed = [_guess([t for t in known if t.place == place]) for place in places]
    return charts.lines(
        {"": series}, title="Success by number of actions", ticks=ticks,
        x="number of actions; below it, cases per system", levels={_THRESHOLD: "20 %"},
        y="share of plans that are right\nbands: 95 %",
        guess=(places, guessed) if not np.isnan(guessed).all() else None,
    )  # fmt: skip


def _known(rates: Sequence[Tally]) -> list[Tally]:
    known = [t for t in rates if t.rate.mean is not None]
    if not known:
        raise InputError("there is no verdict to draw")
    return known


def _bound(bound: Bound) -> str:
    if bound.found.last is None:
        return ", no bound"
    return f", bound {'at least ' if bound.found.below is None else ''}{bound.found.last}"


def _guess(rates: Sequence[Tally]) -> float:
    """Success of random orders over all trials; NaN where it is unknown for some."""
    guesses = [(t.guess, t.rate.n) for t in rates if t.guess is not None]
    trials = sum(n for _, n in guesses)
    return sum(g * n for g, n in guesses) / trials if len(guesses) == len(rates) else np.nan


def share_bars(rows: Sequence[Shares], title: str, each: str) -> Axes:
    """Shares of exclusive labels, one bar per system; `each` names what is counted ("error").

    Raises InputError where nothing is counted.
    """
    if not any(r.total for r in rows):
        raise InputError(f"there are no {each}s to draw")
    counts = {r.system: {p.label: p.count for p in r.parts} for r in rows}
    words = f"share of a system's {each}s; at the end: their number"
    return bars.shares(counts, title=title, x=words)


def form_points(contrasts: Sequence[Contrast]) -> Figure:
    """Difference of success by clause form, with less without, within equal numbers of actions.

    A form that all cases hold, or none, is left out. Raises InputError without any difference.
    """
    known = [c for c in contrasts if c.difference.mean is not None]
    if not known:
        raise InputError("no clause form is in some cases and missing in others")
    forms = sorted({c.form for c in known})
    rows = []
    for form in forms:
        own = [c for c in known if c.form == form]
        yes, no = sum(c.holding.rate.n for c in own), sum(c.others.rate.n for c in own)
        rows.append(f"{form} ({yes:,} : {no:,})")
    series = [
        Series(system, [by_name[f].within if f in by_name else None for f in forms])
        for system in dict.fromkeys(c.system for c in known)
        for by_name in [{c.form: c for c in known if c.system == system}]
    ]
    return charts.points(
        rows, {"": series}, title="Difference of success by clause form", level=0.0, limits=None,
        x="success with the form less without it, within equal numbers of actions",
        notes=["forms overlap in a case: a difference is not the form's own effect"],
    )  # fmt: skip


def success_by_topic(rates: Sequence[Tally]) -> Figure:
    """Success by topic, the least successful on top; beyond 60 topics those with the most success
    are left out and counted. Raises InputError without any rate."""
    known = _known(rates)
    totals: dict[str, list[int]] = {}
    for t in known:
        passes, n = totals.setdefault(t.group, [0, 0])
        totals[t.group] = [passes + t.passes, n + t.rate.n]
    ordered = sorted(totals, key=lambda g: (totals[g][0] / totals[g][1], g))
    topics, rest = ordered[:_MOST_TOPICS], len(ordered) - _MOST_TOPICS
    series = [
        Series(system, [by_name[g].rate if g in by_name else None for g in topics])
        for system in dict.fromkeys(t.system for t in known)
        for by_name in [{t.group: t for t in known if t.system == system}]
    ]
    notes = [f"each mark: {n_label([t.rate for t in known if t.group in topics], 'trial')}"]
    notes += [f"not shown: {plural(rest, 'topic')} with more success"] if rest > 0 else []
    return charts.points(
        topics, {"": series}, title="Success by topic", notes=notes,
        x="share of plans that are right; whiskers: 95 %",
    )  # fmt: skip
