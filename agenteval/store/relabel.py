"""Effect of a corrected order on stored results: values follow from labels, without new requests.

A label means the same wherever it is in a criterion's list, so the order is not part of the
criterion's hash, and ratings made with a reversed list remain valid. Their values are recomputed:
from the label, from probabilities, from the labels of parts; a degenerate answer gets the new worst
level. A value that its judge did not read off a label (one computed from the text) stays, and gets
the nearest label.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import Connection, bindparam, delete, select, update

from agenteval.records import Criterion
from agenteval.records.rubric import rubric_total
from agenteval.store import rows, schema


@dataclass(frozen=True, slots=True)
class Relabelled:
    """Stored ratings of a criterion that got other values; `dropped` must be judged again."""

    name: str
    ratings: int
    dropped: int
    reason: str

    @property
    def line(self) -> str:
        """A one-line description."""
        rejudged = f"; {self.dropped} must be judged again" if self.dropped else ""
        return f"relabelled {self.ratings:,} ratings of {self.name}: {self.reason}{rejudged}"


def same_order(a: Criterion, b: Criterion) -> bool:
    """Return whether two criteria with one content hash order their levels alike."""
    orders, other = (
        [(p, leaf.ordered, leaf.accepted_values if leaf.ordered else ()) for p, leaf in c.leaves()]
        for c in (a, b)
    )
    return orders == other


def relabel(connection: Connection, old: Criterion, new: Criterion, key: str) -> Relabelled:
    """Give every stored rating under `key` its value by `new`; they were stored under `old`.

    Ratings that cannot be recomputed are removed, so that they are judged again: parts without
    stored probabilities, and values of a judge that treated the order as unknown.
    """
    c = schema.results.c
    query = select(schema.results).where(c.criterion_key == key)
    same_cell = [c[name] == bindparam(f"of_{name}") for name in rows.CELL]
    change = update(schema.results).where(*same_cell)
    take_out = delete(schema.results).where(*same_cell)
    changed: list[dict[str, Any]] = []
    dropped: list[dict[str, Any]] = []
    for row in connection.execute(query).all():
        place = {f"of_{name}": getattr(row, name) for name in rows.CELL}
        try:
            relabelled = _remade(row, old, new)
        except (ValueError, TypeError, KeyError):
            dropped.append(place)
            continue
        if relabelled is not None:
            changed.append({**place, "label": relabelled[0], "value": relabelled[1]})
    for statement, values in ((change, changed), (take_out, dropped)):
        for chunk in rows.batched(values):
            connection.execute(statement, chunk)
    levels = next((leaf.accepted_values for _, leaf in new.leaves()), ())
    ends = f"{levels[0]!r} to {levels[-1]!r}" if levels else "worst to best"
    reason = new.order_reason or f"its values run from {ends}"
    return Relabelled(new.name, len(changed), len(dropped), reason)


def _remade(row: Any, old: Criterion, new: Criterion) -> tuple[str | None, float | None] | None:
    """Return label and value of a cell in the new order, None if nothing changes. Raises ValueError
    if they cannot be recomputed."""
    if row.status == "unscored:unsupported":
        raise ValueError("the order was unknown")
    if row.status in ("degenerate", "failed_run"):
        worst = new.accepted_values[0] if new.ordered and new.accepted_values else None
        return worst, 0.0 if new.ordered else None
    if row.status != "scored":
        return None
    detail = rows.decode(row.detail, f"the result of run {row.item_key[:12]}")
    if "members" in detail.get("evidence", {}):
        raise ValueError("it is recomputed from the results of the members")
    parts = detail.get("evidence", {}).get("parts")
    if isinstance(parts, dict):
        masses = detail["evidence"].get("probabilities", {})
        before = _of_parts(old, parts, masses)
        if before is None or not math.isclose(before, row.value, abs_tol=1e-9):
            raise ValueError("the value does not follow from the stored parts")
        return None, _of_parts(new, parts, masses)
    masses = detail.get("probabilities")
    before = _value(old, row.label, masses)
    if (
        (before is None) != (row.value is None)
        or (before is not None and not math.isclose(before, row.value, abs_tol=1e-9))
        or ("match" not in detail and "evidence" in detail)
    ):
        if row.value is None or not new.ordered or not new.accepted_values:
            raise ValueError("the value was not read off the label")
        top = len(new.accepted_values) - 1
        return new.accepted_values[math.floor(row.value * top + 0.5)], row.value
    return row.label, _value(new, row.label, masses)


def _value(leaf: Criterion, label: str | None, masses: Mapping[str, float] | None) -> float | None:
    if label is None:
        raise ValueError("no label")
    return leaf.expected_value(masses) if masses else leaf.value_of(label)


def _of_parts(
    criterion: Criterion, labels: Mapping[str, str | None], masses: Mapping[str, Any]
) -> float | None:
    """Mean or least value of the parts that apply; None if a part has no order."""
    values: list[float] = []
    met: list[float | None] = []
    for path, leaf in criterion.leaves():
        if labels[path] == leaf.na_label and leaf.allow_na:
            met.append(None)
            continue
        value = _value(leaf, labels[path], masses.get(path))
        if value is None:
            return None
        values.append(value)
        met.append(1 - value if (leaf.weight or 0) < 0 else value)
    if not values:
        raise ValueError("no part applies")
    if criterion.is_rubric:
        return rubric_total([part.weight or 0.0 for part in criterion.sub_criteria], met)
    return min(values) if criterion.aggregation == "min" else math.fsum(values) / len(values)


def corrected(
    connection: Connection, criteria: Iterable[Criterion]
) -> Sequence[tuple[Criterion, Criterion]]:
    """(stored, given) of the criteria that are stored with another order."""
    by_key = {criterion.sha256: criterion for criterion in criteria}
    c = schema.items.c
    query = select(c.item_key, c.body).where(c.item_key.in_(by_key))
    stored = [
        (rows.valid(Criterion, record, f"the criterion {key[:12]}"), by_key[key])
        for key, record in connection.execute(query)
    ]
    return [(old, new) for old, new in stored if not same_order(old, new)]
