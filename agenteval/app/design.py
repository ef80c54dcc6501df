"""Plan cases and repeats before the first call, with their cost and precision."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from agenteval.analysis.spread import WIDEST, cases_for_width, design_table, spreads
from agenteval.app.agreement import judge_table
from agenteval.app.options import Ratings
from agenteval.errors import InputError
from agenteval.reporting.report import Report
from agenteval.store import Store
from agenteval.text import plural
from agenteval.utility.judging import Criteria


def design(
    cases: Sequence[int] = (25, 50, 100, 200),
    repeats: Sequence[int] = (1, 2, 3),
    *,
    width: float | None = None,
    systems: int = 1,
    price: float | None = None,
    scores: Ratings | None = None,
    store: str | Path | Store | None = None,
    judge: str | None = None,
    task: str | None = None,
    criteria: Criteria | None = None,
) -> Report:
    """Return the precision and cost of each number of cases and repeats, one row per pair.

    The spread of values is estimated from existing ratings, `scores` or a `store`, for the
    criterion with the least precise mean. Without ratings it is the largest possible for values in
    [0, 1] (half of them 0, half 1), and the effect of repeats is unknown. `price` is the cost of
    one call, which judges one run on all criteria; `systems` is the number of systems that answer
    every case. With `width`, a note has the number of cases needed for an interval of that width.

    Raises InputError for numbers that are not positive and for ratings that cannot be used.
    """
    if not cases or not repeats or min(*cases, *repeats, systems) < 1:
        raise InputError("numbers of cases, repeats and systems must be at least 1", "design")
    if width is not None and not 0 < width < 1:
        raise InputError(f"{width} is not a width between 0 and 1", "--width")
    between, within, interaction = WIDEST, None, None
    notes = [
        "no ratings to estimate the spread from: assuming the largest possible (half of the "
        "values 0, half 1)"
    ]
    if scores is not None or store is not None:
        name, table, criteria_list, notes = judge_table(scores, store, judge, task, criteria)
        results = spreads(table, criteria_list)
        if not results:
            where = str(scores) if isinstance(scores, str | Path) else "design"
            raise InputError(f"no criterion has values for two cases by {name}", where)
        widest = max(results, key=lambda s: s.between + (s.components.repeat or 0.0))
        between, within = widest.between, widest.components.repeat
        if widest.components.case_system is not None:
            interaction = 2 * widest.components.case_system
        notes.append(
            f"spread estimated from the ratings by {name} on {widest.criterion_id}, the "
            f"criterion with the least precise mean: standard deviation {between**0.5:.3f} "
            "between cases" + (f", {within**0.5:.3f} between repeats" if within is not None else "")
        )
    if within is None:
        repeats, within = repeats[:1], 0.0
        notes.append("the effect of repeats is unknown; it needs ratings of at least two repeats")
    if width is not None:
        notes += [
            f"an interval of width {width:g} needs {cases_for_width(width, between, within, k):,} "
            f"cases with {plural(k, 'repeat')}"
            for k in repeats
        ]
    table_ = design_table(
        between, within, cases, repeats, apart=interaction, systems=systems, price=price
    )
    return Report(title="", tables=(table_,), notes=tuple(notes))
