"""Queries on the texts that a judge has judged, and on the words it gave with its results."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from sqlalchemy import func, select

from agenteval.store import schema
from agenteval.store.connect import dialect_of, reading
from agenteval.store.rows import decode

if TYPE_CHECKING:
    from agenteval.store.store import Store

_CHUNK = 400  # keys in one query
_RAW = 4_000  # characters of a reply that could not be used


@dataclass(frozen=True)
class JudgedText:
    """A text that a judge has judged: an original (`origin` None) or a perturbed copy.

    `length` counts the characters of its trajectory, `used` is when it was last registered.
    """

    run_key: str
    run_id: str
    task: str
    variant: str
    origin: str | None
    system: str
    length: int
    used: float


@dataclass(frozen=True)
class StoredWords:
    """The words stored with a result; `raw` is the reply of a failure."""

    run_key: str
    variant: str
    criterion_key: str
    repeat: int
    explanation: str = ""
    evidence: Mapping[str, object] = field(default_factory=dict)
    raw: str = ""


def judged_texts(store: Store, source_key: str) -> list[JudgedText]:
    """Return every text that a source has judged, the one registered last at the end."""
    r, c = schema.items.c, schema.results.c
    pairs = select(c.item_key, c.variant).where(c.source_key == source_key).distinct().subquery()
    text = dialect_of(store.engine).json_text(r.body, "trajectory")
    query = (
        select(
            r.item_key, r.id, r.task, pairs.c.variant, r.origin, r.system, func.length(text), r.used
        )
        .join(pairs, pairs.c.item_key == r.item_key)
        .order_by(r.used, r.item_key, pairs.c.variant)
    )
    with reading(store.engine) as connection:
        return [JudgedText(*row) for row in connection.execute(query)]


def judged_cells(store: Store, source_key: str) -> dict[str, int]:
    """Return how many results a source has on each criterion, by content hash."""
    c = schema.results.c
    query = select(c.criterion_key, func.count()).where(c.source_key == source_key)
    with reading(store.engine) as connection:
        rows = connection.execute(query.group_by(c.criterion_key)).all()
    return {key: int(count) for key, count in rows}


def stored_words(
    store: Store, source_key: str, run_keys: Sequence[str], criteria: Collection[str]
) -> Iterator[StoredWords]:
    """Yield the words of a source on these texts and criteria (content hashes)."""
    c, calls = schema.results.c, schema.calls.c
    query = (
        select(c.item_key, c.variant, c.criterion_key, c.repeat, c.status, c.detail, calls.record)
        .join(schema.calls, calls.call_id == c.call_id)
        .where(c.source_key == source_key)
    )
    with reading(store.engine) as connection:
        for start in range(0, len(run_keys), _CHUNK):
            rows = query.where(c.item_key.in_(run_keys[start : start + _CHUNK]))
            for row in connection.execute(rows):
                if row.criterion_key not in criteria:
                    continue
                detail = decode(row.detail, f"the result of run {row.item_key[:12]}")
                evidence = detail.get("evidence") or {}
                if detail.get("probabilities"):
                    evidence = {"probabilities": detail["probabilities"], **evidence}
                raw = json.loads(row.record).get("raw") if ":" in row.status else None
                yield StoredWords(
                    row.item_key,
                    row.variant,
                    row.criterion_key,
                    row.repeat,
                    str(detail.get("explanation") or detail.get("message") or ""),
                    evidence,
                    (raw or "")[: _RAW + 1],
                )
