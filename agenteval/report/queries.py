"""What a report reads of the store beside the ratings: long texts, words of the judge, dates."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy import func, select

from agenteval.report.material import CellName, RunTexts, Said
from agenteval.store import Store, schema
from agenteval.store.connect import reading
from agenteval.store.rows import decode

_CHUNK = 400  # keys in one query
_RAW = 4_000  # characters of a reply that could not be used


@dataclass(frozen=True)
class Judged:
    """A text that the judge has judged: an original (`origin` None) or a perturbed copy."""

    run_key: str
    run_id: str
    task: str
    variant: str
    origin: str | None
    system: str
    length: int
    used: float


def judged_texts(store: Store, source_key: str) -> list[Judged]:
    """Every text of a source, the one registered last at the end."""
    r, c = schema.items.c, schema.results.c
    pairs = select(c.item_key, c.variant).where(c.source_key == source_key).distinct().subquery()
    query = (
        select(r.item_key, r.id, r.task, pairs.c.variant, r.origin,
               r.system, func.length(func.json_extract(r.body, "$.trajectory")), r.used)
        .join(pairs, pairs.c.item_key == r.item_key)
        .order_by(r.used, r.item_key, pairs.c.variant)
    )  # fmt: skip
    with reading(store.engine) as connection:
        return [Judged(*row) for row in connection.execute(query)]


@dataclass(frozen=True)
class StoredTexts:
    """Texts of the runs of one source. `originals` and `copies` are those that count."""

    store: Store
    source_key: str
    originals: Mapping[str, str]  # run id → run key
    copies: Mapping[str, Mapping[str, str]]  # run id → variant → run key
    criteria: Mapping[str, str]  # criterion key → id

    def of(self, runs: Sequence[str]) -> dict[str, RunTexts]:
        """Texts by run id. Raises StoreError for a damaged store."""
        wanted = [r for r in runs if r in self.originals]
        keys = {self.originals[r]: r for r in wanted}
        keys |= {key: r for r in wanted for key in self.copies.get(r, {}).values()}
        texts = dict(self.store.bodies(keys))
        said: dict[str, dict[CellName, Said]] = {r: {} for r in wanted}
        for run_key, name, words in self._said(list(keys)):
            said[keys[run_key]][name] = words
        found = {}
        for run in wanted:
            own = texts[self.originals[run]]
            copies = {v: texts[k]["trajectory"] for v, k in self.copies.get(run, {}).items()}
            found[run] = RunTexts(
                own["problem"], own["trajectory"], own["reference_shown"], copies, said[run]
            )
        return found

    def judged(self) -> Iterator[tuple[str, tuple[str, str]]]:
        """Run id, problem and trajectory of every original. Raises StoreError as `of`."""
        runs = {key: run for run, key in self.originals.items()}
        for key, body in self.store.bodies(runs):
            yield runs[key], (body["problem"], body["trajectory"])

    def _said(self, keys: Sequence[str]) -> Iterator[tuple[str, CellName, Said]]:
        c, calls = schema.results.c, schema.calls.c
        query = select(
            c.item_key, c.variant, c.criterion_key, c.repeat, c.status, c.detail, calls.record
        ).join(schema.calls, calls.call_id == c.call_id)
        with reading(self.store.engine) as connection:
            for part in _chunks(keys):
                rows = query.where(c.source_key == self.source_key, c.item_key.in_(part))
                for row in connection.execute(rows):
                    if row.criterion_key in self.criteria:
                        name = (row.variant, self.criteria[row.criterion_key], row.repeat)
                        yield row.item_key, name, _words(row)


def _words(row: Any) -> Said:
    detail = decode(row.detail, f"the result of run {row.item_key[:12]}")
    explanation = detail.get("explanation") or detail.get("message") or ""
    evidence = detail.get("evidence") or {}
    raw = ""
    if ":" in row.status:
        raw = str(json.loads(row.record).get("raw") or "")[: _RAW + 1]
    if detail.get("probabilities"):
        evidence = {"probabilities": detail["probabilities"], **evidence}
    return Said(str(explanation), evidence, raw)


def _chunks(keys: Sequence[str]) -> Iterator[Sequence[str]]:
    for start in range(0, len(keys), _CHUNK):
        yield keys[start : start + _CHUNK]
