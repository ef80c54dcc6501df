"""Rubrics of runs in tables: their totals as one criterion, their pooled items as another.

Items of different runs share only their scale: an item is satisfied (1) if the run meets its
requirement, or does not have its fault, else 0; intermediate levels have values in between.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agenteval.errors import InputError
from agenteval.records import RUBRIC, Criterion
from agenteval.stats.scores import NAMED, CodedColumn, ScoreTable, TableBuilder

ITEMS = "rubric-items"
DROP_ITEM = "drop_item"  # the perturbation that removes the part of a run that satisfies an item
# `expect` is the expected effect of perturbations
TOTAL_CRITERION = Criterion(
    id=RUBRIC,
    name="Rubric",
    description="Weighted total of the items of the run's rubric.",
    scale="numeric",
    numeric_range=(0.0, 1.0),
    expect={"drop_sentences": "lower", "truncate": "lower", "drop_item": "lower"},
)
ITEMS_CRITERION = Criterion(
    id=ITEMS,
    name="Rubric items",
    description="Items of all rubrics, each satisfied or not.",
    accepted_values=("not satisfied", "satisfied"),
    scale="binary",
    expect={"drop_item": "lower"},
)


def pooled(criteria: Iterable[Criterion], *, items: bool = True) -> list[Criterion]:
    """Return the criteria for tables: the rubrics of all runs become one total, followed by their
    items if `items` is true."""
    criteria = list(criteria)
    shown = [c for c in criteria if c.id != RUBRIC]
    if len(shown) < len(criteria):
        shown += [TOTAL_CRITERION, *([ITEMS_CRITERION] if items else [])]
    return shown


@dataclass(frozen=True, slots=True)
class RatedItem:
    """One item in one rating; `value` is 1 if it is satisfied, None without an answer."""

    item: Criterion
    status: str
    value: float | None
    label: str | None = None

    @property
    def met(self) -> float | None:
        """How far the item's statement is true."""
        negative = (self.item.weight or 0.0) < 0
        return None if self.value is None else 1 - self.value if negative else self.value


def items_of(
    rubric: Criterion, status: str, value: float | None, evidence: Mapping[str, Any]
) -> Iterator[RatedItem]:
    """Yield the items of one rating of a rubric; those of a failure have its status."""
    parts = evidence.get("parts")
    for path, item in rubric.leaves():
        if not isinstance(parts, Mapping):  # a failure, or the worst level by rule
            yield RatedItem(item, status, value if status != "scored" else None)
            continue
        label = parts.get(path)
        if label == item.na_label:
            yield RatedItem(item, "not_applicable", None, label)
            continue
        if label in item.accepted_values:
            yield RatedItem(item, status, item.value_of(label), label)
        else:  # the number returned by a Python judge
            yield RatedItem(item, status, float(str(label)), label)


def item_run(run: str, item: Criterion) -> str:
    """Return the run name of an item in pooled tables."""
    return f"{run}#{item.id}"


def item_criteria(rubrics: Mapping[str, Criterion]) -> list[Criterion]:
    """Return a criterion for each item that people may label, named like the item in its rubric
    (`rubric/3`), with the levels no and yes."""
    paths = {path for rubric in rubrics.values() for path, _ in rubric.leaves()}
    return [
        Criterion(id=path, name=path, accepted_values=("no", "yes"), scale="binary")
        for path in sorted(paths)
    ]


def pooled_labels(table: ScoreTable, rubrics: Mapping[str, Criterion]) -> ScoreTable:
    """Return human labels with items pooled like the judge's.

    A label says whether an item's statement is true, which is the worse value for a fault.
    `rubrics` are by run name. Raises InputError for an item that is not in the run's rubric.
    """
    prefix = f"{RUBRIC}/"
    if not any(name.startswith(prefix) for name in table.present("criterion")):
        return table
    builder = TableBuilder()
    for n in range(len(table)):
        names = {column: _name_at(getattr(table, column), n) for column in NAMED}
        value, success = float(table.value[n]), int(table.success[n])
        criterion, run = names["criterion"] or "", names["run"] or ""
        if criterion.startswith(prefix):
            items = dict(rubrics[run].leaves()) if run in rubrics else {}
            if criterion not in items:
                raise InputError(f"the rubric of run {run!r} has no item {criterion}", "--labels")
            item = items[criterion]
            value = 1 - value if (item.weight or 0.0) < 0 else value
            names |= {"criterion": ITEMS, "run": item_run(run, item), "label": None}
            success = -1
        builder.add(
            names,
            repeat=int(table.repeat[n]),
            success=None if success < 0 else bool(success),
            value=None if math.isnan(value) else value,
        )
    return builder.table()


def _name_at(column: CodedColumn, row: int) -> str | None:
    code = int(column.codes[row])
    return column.names[code] if code >= 0 else None
