"""Charts of planning trials: success by number of actions and by topic.

Figures 8 and 9 of arXiv 2404.17833 (curves over the number of actions), with intervals, counts and
the success of random orders.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from agenteval.analysis.system_pairs import by_system
from agenteval.errors import InputError
from agenteval.planning.capability import Bound
from agenteval.planning.tallies import SuccessTally
from agenteval.reporting import charts
from agenteval.reporting.charts import Series
from agenteval.reporting.style import n_label
from agenteval.stats import Interval
from agenteval.text import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_TOPICS = 60
_THRESHOLD = 0.2


def success_by_actions(rates: Sequence[SuccessTally], bounds: Sequence[Bound] = ()) -> Figure:
    """Success against number of actions, a line per system; its capability bound is in the legend.
    Dashed is the threshold of 20%, dotted what random orders would reach (mean over all trials).

    Raises InputError without any rate, and for more systems than can be told apart.
    """
    known = _known(rates)
    places = sorted({t.place for t in known})
    legend = dict.fromkeys((t.system for t in known), "")
    for bound in bounds:
        least = "at least " if bound.found.below is None else ""
        last = bound.found.last
        legend[bound.system] = ", no bound" if last is None else f", bound {least}{last}"
    series = []
    for system, some in by_system(known).items():
        own = sorted(some, key=lambda t: t.place)
        series.append(
            Series(
                system, [t.rate for t in own], system + legend[system], at=[t.place for t in own]
            )
        )
    ticks, guesses = {}, []
    for place in places:
        own = [t for t in known if t.place == place]
        cases = {t.rate.n_clusters or t.rate.n for t in own}
        low, high = min(cases), max(cases)
        ticks[place] = f"{place:g}\n{low:,}" + ("" if low == high else f"–{high:,}")
        trials = sum(t.rate.n for t in own)
        guesses.append(
            sum((np.nan if t.guess is None else t.guess) * t.rate.n / trials for t in own)
        )
    return charts.lines(
        {"": series},
        title="Success by number of actions",
        ticks=ticks,
        x="number of actions; below it, cases per system",
        level=_THRESHOLD,
        level_name="20%",
        y="share of plans that are right\nbands: 95%",
        guess=None if np.isnan(guesses).all() else (places, guesses),
    )


def _known(rates: Sequence[SuccessTally]) -> list[SuccessTally]:
    known = [t for t in rates if t.rate.mean is not None]
    if not known:
        raise InputError("there is no verdict to draw")
    return known


def _in_rows(rows: Sequence[str], values: Mapping[str, Mapping[str, Interval]]) -> list[Series]:
    return [Series(name, [own.get(row) for row in rows]) for name, own in values.items()]


def success_by_topic(rates: Sequence[SuccessTally]) -> Figure:
    """Success by topic, the least successful on top; beyond 60 topics those with the most success
    are left out and counted. Raises InputError without any rate."""
    known = _known(rates)
    totals: dict[str, tuple[int, int]] = {}
    for t in known:
        passes, n = totals.get(t.group, (0, 0))
        totals[t.group] = passes + t.passes, n + t.rate.n
    ordered = sorted(totals, key=lambda g: (totals[g][0] / totals[g][1], g))
    topics, rest = ordered[:_MOST_TOPICS], len(ordered) - _MOST_TOPICS
    notes = [f"each mark: {n_label([t.rate for t in known if t.group in topics], 'trial')}"]
    notes += [f"not shown: {plural(rest, 'topic')} with more success"] if rest > 0 else []
    series = _in_rows(
        topics, {system: {t.group: t.rate for t in own} for system, own in by_system(known).items()}
    )
    return charts.rows(
        topics,
        {"": series},
        title="Success by topic",
        notes=notes,
        x="share of plans that are right; whiskers: 95%",
    )
