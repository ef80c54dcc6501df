"""Charts of planning trials: success by number of actions and by topic.

Figures 8 and 9 of arXiv 2404.17833 (curves over the number of actions), with intervals, counts and
the success of random orders.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from agenteval.analysis.system_pairs import by_system
from agenteval.errors import InputError
from agenteval.planning.capability import THRESHOLD, Bound
from agenteval.planning.rates import SuccessRate
from agenteval.reporting import charts
from agenteval.reporting.charts import Series
from agenteval.reporting.style import n_label
from agenteval.text import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MAX_TOPICS = 60


def success_by_actions(rates: Sequence[SuccessRate], bounds: Sequence[Bound] = ()) -> Figure:
    """Draw success against number of actions, a line per system with its bound in the legend.

    The threshold of 20% is dashed, the success of random orders (mean over all trials) dotted.
    Raises InputError without any rate, and for more systems than can be told apart.
    """
    graded = _graded(rates)
    legend = {
        b.system: ", no bound"
        if b.bound is None
        else f", bound {'at least ' if b.below is None else ''}{b.bound}"
        for b in bounds
    }
    series = []
    for system, rows in by_system(graded).items():
        rows.sort(key=lambda r: r.place)
        label = system + legend.get(system, "")
        series.append(Series(system, [r.success for r in rows], label, at=[r.place for r in rows]))
    ticks, guesses = {}, []
    for place in sorted({r.place for r in graded}):
        rows = [r for r in graded if r.place == place]
        cases = {r.cases or r.trials for r in rows}
        low, high = min(cases), max(cases)
        ticks[place] = f"{place:g}\n{low:,}" + ("" if low == high else f"–{high:,}")
        trials = sum(r.trials for r in rows)
        guesses.append(
            sum((np.nan if r.guess is None else r.guess) * r.trials / trials for r in rows)
        )
    random_orders = None
    if not np.isnan(guesses).all():
        random_orders = charts.ReferenceCurve(list(ticks), guesses, "random orders")
    return charts.lines(
        {"": series},
        title="Success by number of actions",
        ticks=ticks,
        x="number of actions; below it, cases per system",
        level=(THRESHOLD, "20%"),
        y="share of plans that are right\nbands: 95%",
        reference=random_orders,
    )


def success_by_topic(rates: Sequence[SuccessRate]) -> Figure:
    """Draw success by topic, the least successful on top.

    Beyond 60 topics those with the most success are left out and counted. Raises InputError
    without any rate.
    """
    graded = _graded(rates)
    totals: dict[str, tuple[int, int]] = {}
    for r in graded:
        right, trials = totals.get(r.group, (0, 0))
        totals[r.group] = right + r.right, trials + r.trials
    ordered = sorted(totals, key=lambda g: (totals[g][0] / totals[g][1], g))
    topics, hidden = ordered[:_MAX_TOPICS], len(ordered) - _MAX_TOPICS
    notes = [f"each mark: {n_label([r.success for r in graded if r.group in topics], 'trial')}"]
    if hidden > 0:
        notes.append(f"not shown: {plural(hidden, 'topic')} with higher success")
    series = []
    for system, rows in by_system(graded).items():
        by_group = {r.group: r.success for r in rows}
        series.append(Series(system, [by_group.get(topic) for topic in topics]))
    return charts.rows(
        topics,
        {"": series},
        title="Success by topic",
        notes=notes,
        x="share of correct plans; whiskers: 95%",
    )


def _graded(rates: Sequence[SuccessRate]) -> list[SuccessRate]:
    graded = [r for r in rates if r.success.mean is not None]
    if not graded:
        raise InputError("there are no verdicts to draw")
    return graded
