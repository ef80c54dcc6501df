"""Exports: results as a flat file, replies as a recording, a whole store into another one."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sqlalchemy import Connection, Table, delete, func, insert, inspect, literal_column, select
from sqlalchemy.exc import SQLAlchemyError

from agenteval.errors import InputError
from agenteval.files import replacing
from agenteval.records import Source, canonical_json
from agenteval.records.export import EXPORT_COLUMNS, write_rows
from agenteval.store import schema
from agenteval.store.connect import reading, store_error, writing
from agenteval.store.rows import decode
from agenteval.store.store import Store

_TYPES = {"success": bool, "value": float, "repeat": int, "seed": int, "tries": int}
_CHUNK = 5000  # rows held in memory at a time
_COPIED = 2000  # the same with their long texts


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
    ((count,),) = store.fetch(query)
    return int(count)


def _rows(store: Store, source_keys: set[str] | None, *, copies: bool) -> Iterator[dict[str, Any]]:
    r, items, criteria = schema.results.c, schema.items.alias(), schema.items.alias()
    sources, keys = schema.sources, ("variant", "criterion_key", "source_key", "repeat")
    query = (
        select(
            r.item_key.label("run_key"),
            *(r[name] for name in (*keys, "status", "label", "value", "tries", "detail")),
            items.c.id.label("run_id"),
            *(items.c[name] for name in ("task", "case_key", "success")),
            func.coalesce(items.c.system, sources.c.name).label("system"),
            criteria.c.id.label("criterion_id"),
            sources.c.record,
            sources.c.evaluator,
            sources.c.name.label("model"),
        )
        .join(items, items.c.item_key == r.item_key)
        .join(sources, sources.c.source_key == r.source_key)
        .join(criteria, criteria.c.item_key == r.criterion_key)
        .order_by(r.source_key, items.c.id, r.item_key, r.variant)
        .order_by(criteria.c.id, r.criterion_key, r.repeat)
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
    """Return how a judge was prompted, "" for the plain way; parts are joined by commas.

    "reversed scale", "wording b", "reworded" and "injection probe" are the questions of `verify
    --probes`. "one per call" is an option of `quantify`; "datamark" was one in earlier versions.
    """
    parts = ["one per call"] if source.parameters.get("one_per_call") is True else []
    parts += ["datamark"] if source.parameters.get("datamark") else []
    return ", ".join([*parts, *_probed(source)])


def is_probe(source: Source) -> bool:
    """Return whether the source only examines the judge and says nothing about the runs."""
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


# ---- replies as a recording that `replay:FILE` reads ---------------------------------------------


@dataclass
class ExportedReplies:
    """Number of replies written, and of those without a request."""

    written: int = 0
    without_request: int = 0


def export_replies(store: Store, path: Path, model: str | None = None) -> ExportedReplies:
    """Write the replies of all models, or of `model`, to a JSON-lines file; return their numbers.

    Each line names the request by its hash, and the run, repeat and role it was sent for. Raises
    InputError when there is nothing to write, when two models (or one model with other parameters)
    replied differently to the same request, and when the file cannot be written.
    """
    exported = ExportedReplies()
    answered: dict[str, tuple[str, str]] = {}  # hash of the reply, and who gave it
    with replacing(path) as temporary, temporary.open("w", encoding="utf-8") as stream:
        for reply in _stored_replies(store):
            request = reply.pop("request", None)
            if not isinstance(request, dict):
                exported.without_request += 1
                continue
            name, address = request.pop("model"), request.pop("address")
            if model not in (None, name):
                continue
            content = canonical_json([reply["text"], reply["tool_calls"]])
            digest = hashlib.sha256(content.encode("utf-8", "surrogatepass")).hexdigest()
            provider = f"{name} at {address}"
            first, other = answered.setdefault(request["key"], (digest, provider))
            if (first, other) != (digest, provider):
                if first != digest:
                    advice = "choose one with --model" if model is None else "use separate stores"
                    problem = f"{other} and {provider} replied differently to the same request"
                    raise InputError(f"{problem}; {advice}", "--replies")
                continue
            stream.write(json.dumps({**request, "reply": reply}, ensure_ascii=True) + "\n")
            exported.written += 1
        if not exported.written:
            nothing = "no reply is stored" if model is None else f"no reply of {model} is stored"
            if exported.without_request:
                nothing = "the replies were stored by an earlier version, without their requests"
            raise InputError(nothing, store.shown)
    return exported


def _stored_replies(store: Store) -> Iterator[dict[str, Any]]:
    query = select(schema.replies).order_by(schema.replies.c.key)
    with reading(store.engine) as connection:
        for row in connection.execution_options(yield_per=1000).execute(query):
            yield decode(row.reply, f"the reply {row.key[:12]}")


# ---- a whole store: from a file to PostgreSQL, back, or to another file --------------------------


def counts(store: Store) -> dict[str, int]:
    """Rows of every table by its name."""
    with reading(store.engine) as connection:
        return {table.name: _count(connection, table) for table in schema.metadata.sorted_tables}


def copy_store(
    source: Store, target: Store, told: Callable[[str, int], None] = lambda table, rows: None
) -> dict[str, int]:
    """Copy all rows or none; return the number of rows by table.

    `told` is called after each table. Raises InputError for a target that is not empty, and
    StoreError when reading or writing fails.
    """
    tables = [table for table in schema.metadata.sorted_tables if table is not schema.meta]
    copied: dict[str, int] = {}
    try:
        with source.snapshot(), writing(target.engine) as into:
            for table in tables:
                if _count(into, table):
                    raise InputError("is not empty; copy into a new store", target.shown)
            # the secret too, so that repeated requests find their replies
            into.execute(delete(schema.meta).where(schema.meta.c.key == "secret"))
            into.execute(insert(schema.meta), {"key": "secret", "value": source.secret})
            with reading(source.engine) as out:
                for table in tables:
                    if not inspect(out).has_table(table.name):  # of version 0.1
                        continue
                    copied[table.name] = _copy(out, into, table)
                    told(table.name, copied[table.name])
    except SQLAlchemyError as error:
        raise store_error(error, target.engine) from error
    return copied


def _copy(out: Connection, into: Connection, table: Table) -> int:
    query = select(table)
    if table is schema.items:  # rows with equal times keep their insertion order
        query = query.order_by(literal_column("items.rowid"))
    count = 0
    rows = out.execution_options(yield_per=_COPIED).execute(query)
    for part in rows.partitions():
        into.execute(insert(table), [dict(row._mapping) for row in part])
        count += len(part)
    return count


def _count(connection: Connection, table: Table) -> int:
    if not inspect(connection).has_table(table.name):
        return 0
    return int(connection.execute(select(func.count()).select_from(table)).scalar_one())
