"""Export of all results as one flat file: JSON Lines, CSV or Parquet."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from agenteval.records import Source
from agenteval.records.export import EXPORT_COLUMNS, write_rows
from agenteval.store import schema
from agenteval.store.connect import reading
from agenteval.store.rows import decode
from agenteval.store.store import Store

_TYPES = {"success": bool, "value": float, "repeat": int, "seed": int, "tries": int}
_CHUNK = 5000  # rows held in memory at a time


def export_cells(
    store: Store,
    path: Path,
    *,
    source_key: str | None = None,
    probes: bool = True,
    copies: bool = False,
) -> int:
    """Write the results on original runs, with run and judge, to a file; return the number of rows.

    With `copies`, results on perturbed copies are included, distinguished by `variant`.
    `source_key` selects one judge; without `probes`, sources of probes are excluded (see
    `is_probe`). `way` is how a judge was prompted (see `way_of`). The format follows the suffix
    (see `write_rows`). Rows are ordered by judge, run, variant, criterion and repeat. Raises
    InputError for another suffix, for Parquet without pyarrow, or when the file cannot be written.
    """
    keys = None if source_key is None else {source_key}
    if keys is None and not probes:
        keys = {key for key, source in store.sources(trials=True) if not is_probe(source)}
    types = {name: _TYPES.get(name, str) for name in EXPORT_COLUMNS}
    return write_rows(path, _rows(store, keys, copies=copies), types)


def results_on_copies(store: Store, source_keys: Iterable[str]) -> int:
    """Return the number of results of these judges on perturbed copies."""
    c = schema.results.c
    query = (
        select(func.count())
        .select_from(schema.results)
        .where(c.source_key.in_(list(source_keys)), c.variant != "original")
    )
    with reading(store.engine) as connection:
        return int(connection.execute(query).scalar_one())


def _rows(store: Store, source_keys: set[str] | None, *, copies: bool) -> Iterator[dict[str, Any]]:
    r, items, criteria = schema.results.c, schema.items.alias(), schema.items.alias()
    sources = schema.sources
    query = (
        select(
            r.item_key.label("run_key"),
            r.variant,
            r.criterion_key,
            r.source_key,
            r.repeat,
            r.status,
            r.label,
            r.value,
            r.tries,
            r.detail,
            items.c.id.label("run_id"),
            items.c.task,
            func.coalesce(items.c.system, sources.c.name).label("system"),
            items.c.case_key,
            items.c.success,
            criteria.c.id.label("criterion_id"),
            sources.c.record,
            sources.c.evaluator,
            sources.c.name.label("model"),
        )
        .join(items, items.c.item_key == r.item_key)
        .join(sources, sources.c.source_key == r.source_key)
        .join(criteria, criteria.c.item_key == r.criterion_key)
        .order_by(
            r.source_key,
            items.c.id,
            r.item_key,
            r.variant,
            criteria.c.id,
            r.criterion_key,
            r.repeat,
        )
    )
    ways: dict[str, str] = {}
    if source_keys is not None:
        query = query.where(r.source_key.in_(sorted(source_keys)))
    if not copies:
        query = query.where(r.variant == "original")
    with reading(store.engine) as connection:
        for row in connection.execution_options(yield_per=_CHUNK).execute(query):
            detail = decode(row.detail, f"the result of run {row.run_key[:12]}")
            source = decode(row.record, f"the source {row.source_key[:12]}")
            if row.source_key not in ways:
                ways[row.source_key] = way_of(Source.model_validate(source))
            merged = {
                **row._mapping,
                **detail,
                "seed": source.get("seed"),
                "way": ways[row.source_key],
                "success": None if row.success is None else bool(row.success),
            }
            yield {name: merged.get(name) for name in EXPORT_COLUMNS}


def way_of(source: Source) -> str:
    """How a judge was asked, "" for the plain way; several parts are joined by commas.

    "reversed scale", "wording b", "reworded" and "injection probe" are the questions of `verify
    --probes`. "one per call" is an option of `quantify`; "datamark" was one in earlier versions.
    """
    parts = ["one per call"] if source.parameters.get("one_per_call") is True else []
    parts += ["datamark"] if source.parameters.get("datamark") else []
    return ", ".join([*parts, *_probed(source)])


def is_probe(source: Source) -> bool:
    """Whether it was asked to examine the judge: its ratings say nothing more about the runs."""
    return bool(_probed(source))


def _probed(source: Source) -> list[str]:
    parameters = source.parameters
    parts = ["reversed scale"] if parameters.get("reversed_scale") is True else []
    if (wording := parameters.get("wording", "a")) != "a":
        parts.append(f"wording {wording}")
    parts += ["reworded"] if parameters.get("reworded") is True else []
    if probe := parameters.get("probe"):
        parts.append(f"{str(probe).partition('/')[0]} probe")
    return parts
