"""Rubrics of runs in tables: their totals as one criterion, their items pooled as another.

Items of different runs have little in common but their scale: an item is satisfied (1) if the run
has what it asks for, or lacks the fault it names, else 0; levels between count as such.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from agenteval.records import RUBRIC, Criterion

ITEMS = "rubric-items"
# what perturbations should do; `drop_item` takes away what an item asks for
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
    """Return the criteria as tables show them: the rubrics of all runs as their total, followed by
    their items where `items` is true."""
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
        """How far the statement itself is true."""
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
        else:  # the number of a judge in Python
            yield RatedItem(item, status, float(str(label)), label)


def item_run(run: str, item: Criterion) -> str:
    """Return the name under which an item of a run is rated in pooled tables."""
    return f"{run}#{item.id}"
