"""Tables of rubrics: satisfied items by system and by item."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from agenteval.analysis.means import ALL, Rating
from agenteval.analysis.rubrics import RatedItem, items_of
from agenteval.records import RUBRIC, Criterion
from agenteval.records.table import Table, column, table_of
from agenteval.stats import Interval, mean_interval
from agenteval.text import plural

_FORMULA = (
    "total: weights of the met items (of faults: subtracted) over the sum of the positive weights, "
    "within 0 to 1"
)


@dataclass(frozen=True)
class _RubricTotalRow:
    system: str = column("system")
    total: Interval = column("total\n[95 %]", "number", "mean over ratings; interval over cases")
    runs: int = column("runs", "count")
    satisfied: Interval = column("items satisfied\n[95 %]", "share", "interval over cases")
    items: int = column("items", "count", "rated items of all runs and repeats")
    cannot_tell: int = column("cannot\ntell", "count", "items that the judge could not tell")
    missing: int = column("no\nanswer", "count", "items of totals that are missing")


@dataclass(frozen=True)
class _RubricItemRow:
    case: str = column("case", hidden=True)
    run: str = column("run", "text", "the first run with this item")
    item: str = column("item")
    statement: str = column("statement")
    weight: float | None = column("weight", "number")
    met: float | None = column("true of", "share", "ratings in which the statement is true")
    ratings: int = column("ratings", "count")
    cannot_tell: int = column("cannot\ntell", "count")


Rated = tuple[Rating, RatedItem]


def rubric_tables(ratings: Sequence[Rating], criteria: Sequence[Criterion]) -> Iterator[Table]:
    """Yield a table of totals and satisfied items by system and one of all items; none without
    rubrics. `criteria` holds the rubrics of the runs."""
    rubrics = {c.sha256: c for c in criteria if c.id == RUBRIC}
    rated: list[Rated] = [
        (rating, item)
        for rating in ratings
        if rating.criterion_key in rubrics
        for item in items_of(
            rubrics[rating.criterion_key], rating.status, rating.value, rating.evidence
        )
    ]
    if not rated:
        return
    systems = sorted({rating.system for rating, _ in rated})
    rows = [_system_row(s, [pair for pair in rated if pair[0].system == s]) for s in systems]
    if len(systems) > 1:
        rows.append(_system_row(ALL, rated))
    notes = [_FORMULA]
    if unsure := sum(row.cannot_tell for row in rows[: len(systems)]):
        partial = {id(r) for r, i in rated if i.status == "not_applicable" and r.value is not None}
        notes.append(
            f"{plural(unsure, 'item')} the judge could not tell: left out of both sums of "
            f"{plural(len(partial), 'total')}"
        )
    if lost := sum(row.missing for row in rows[: len(systems)]):
        notes.append(f"{plural(lost, 'item')} without an answer: their totals are missing, not 0")
    yield table_of(_RubricTotalRow, "rubrics", "rubrics of the runs", rows, notes=notes)
    yield table_of(
        _RubricItemRow,
        "rubric_items",
        "items of the rubrics",
        _item_rows(rated),
        group="run",
        detail=True,
    )


def _system_row(system: str, rated: Sequence[Rated]) -> _RubricTotalRow:
    totals = {id(r): r for r, _ in rated if r.value is not None}.values()
    satisfied = [(item.value, r.case) for r, item in rated if item.value is not None]
    return _RubricTotalRow(
        system=system,
        total=mean_interval(
            [r.value for r in totals if r.value is not None],
            [r.case for r in totals],
            bounds=(0.0, 1.0),
        ),
        runs=len({r.run_key for r, _ in rated}),
        satisfied=mean_interval(
            [value for value, _ in satisfied], [case for _, case in satisfied], bounds=(0.0, 1.0)
        ),
        items=len(rated),
        cannot_tell=sum(item.status == "not_applicable" for _, item in rated),
        missing=sum(":" in item.status for _, item in rated),
    )


def _item_rows(rated: Sequence[Rated]) -> Iterator[_RubricItemRow]:
    groups: defaultdict[tuple[str, str], list[Rated]] = defaultdict(list)
    for rating, item in rated:
        groups[rating.case, item.item.id + item.item.description].append((rating, item))
    for (case, _), group in groups.items():
        rating, first = group[0]
        met = [item.met for _, item in group if item.met is not None]
        yield _RubricItemRow(
            case=case,
            run=rating.run_id,
            item=first.item.id,
            statement=first.item.description,
            weight=first.item.weight,
            met=sum(met) / len(met) if met else None,
            ratings=len(met),
            cannot_tell=sum(item.status == "not_applicable" for _, item in group),
        )
