"""All results as one flat file: JSON lines, CSV or Parquet."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator
from itertools import islice
from pathlib import Path
from typing import Any

from sqlalchemy import func, select

from agenteval.errors import InputError
from agenteval.files import replacing
from agenteval.records import Source
from agenteval.store import schema
from agenteval.store.connect import reading
from agenteval.store.rows import decode, text
from agenteval.store.store import Store
from agenteval.store.ways import is_probe, way_of

COLUMNS = (
    "run_id", "task", "system", "case_key", "success", "variant", "criterion_id", "repeat",
    "status", "label", "value", "probabilities", "explanation", "message", "rung", "match",
    "evidence", "evaluator", "model", "seed", "tries", "run_key", "criterion_key", "source_key",
    "way",
)  # fmt: skip
_INTEGERS = {"repeat", "seed", "tries"}
# A cell that starts so is run as a formula by spreadsheet programs (OWASP, CSV injection); some
# importers first trim blanks and what cannot be seen.
_FORMULA = re.compile(
    "^(?:[\t\r\n]|[\\s\x00-\x1f\x7f-\xa0\u200b-\u200f\u2028-\u202f\u2060\ufeff]*[=+\\-@＝＋－＠|])"
)
_CHUNK = 5000  # rows held in memory at a time

Rows = Iterable[dict[str, Any]]


def export_cells(
    store: Store,
    path: Path,
    *,
    source_key: str | None = None,
    probes: bool = True,
    copies: bool = False,
) -> int:
    """Write the results on the runs as they are, with run and judge, to a file; returns the number
    of rows.

    With `copies`, those on perturbed copies too: `variant` tells them apart. `source_key` takes one
    judge; without `probes` the judges are left out that were asked to be examined (see `is_probe`).
    `way` says how a judge was asked (see `way_of`).

    The form follows the suffix: .jsonl (or .ndjson), .csv, .parquet. The file appears whole or
    not at all. In CSV a text that a spreadsheet would run as a formula gets an apostrophe; in CSV
    and Parquet, `probabilities` and `evidence` are JSON texts. Rows are ordered by judge, run,
    variant, criterion and repeat. Raises InputError for another suffix, for Parquet without
    pyarrow, or when the file cannot be written.
    """
    writers = {".jsonl": _jsonl, ".ndjson": _jsonl, ".csv": _csv, ".parquet": _parquet}
    write = writers.get(path.suffix.lower())
    if write is None:
        raise InputError("write to a file ending in .jsonl, .csv or .parquet", str(path))
    keys = None if source_key is None else {source_key}
    if keys is None and not probes:
        keys = {key for key, source in store.sources(trials=True) if not is_probe(source)}
    count = 0

    def counted() -> Iterator[dict[str, Any]]:
        nonlocal count
        for row in _rows(store, keys, copies=copies):
            count += 1
            yield row

    with replacing(path) as temporary:
        write(temporary, counted())
    return count


def results_on_copies(store: Store, source_keys: Iterable[str]) -> int:
    """How many results of these judges are on perturbed copies."""
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
            r.item_key.label("run_key"), r.variant, r.criterion_key, r.source_key, r.repeat,
            r.status, r.label, r.value, r.tries, r.detail, items.c.id.label("run_id"),
            items.c.task, func.coalesce(items.c.system, sources.c.name).label("system"),
            items.c.case_key, items.c.success, criteria.c.id.label("criterion_id"),
            sources.c.record, sources.c.evaluator, sources.c.name.label("model"),
        )
        .join(items, items.c.item_key == r.item_key)
        .join(sources, sources.c.source_key == r.source_key)
        .join(criteria, criteria.c.item_key == r.criterion_key)
        .order_by(
            r.source_key, items.c.id, r.item_key, r.variant,
            criteria.c.id, r.criterion_key, r.repeat,
        )
    )  # fmt: skip
    ways: dict[str, str] = {}
    if source_keys is not None:
        query = query.where(r.source_key.in_(sorted(source_keys)))
    if not copies:
        query = query.where(r.variant == "original")
    with reading(store.engine) as connection:
        for row in connection.execution_options(yield_per=_CHUNK).execute(query):
            detail = decode(row.detail, f"the result of run {row.run_key[:12]}")
            source = decode(row.record, f"the source {row.source_key[:12]}")
            merged = {**row._mapping, **detail, "seed": source.get("seed")}
            if row.source_key not in ways:
                ways[row.source_key] = way_of(Source.model_validate(source))
            merged["way"] = ways[row.source_key]
            merged["success"] = None if row.success is None else bool(row.success)
            yield {name: merged.get(name) for name in COLUMNS}


def _jsonl(path: Path, rows: Rows) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in rows:
            line = json.dumps(row, ensure_ascii=False, allow_nan=False)
            if text(line) != line:  # half a character: only its escape is valid UTF-8
                line = json.dumps(row, allow_nan=False)
            file.write(line + "\n")


def _csv(path: Path, rows: Rows) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        # RFC 4180; and with another line end, Python leaves a lone carriage return unquoted.
        writer = csv.DictWriter(file, COLUMNS, lineterminator="\r\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: _csv_cell(value) for name, value in row.items()})


def _csv_cell(value: Any) -> Any:
    flat = _flat(value)
    return f"'{flat}" if isinstance(flat, str) and _FORMULA.match(flat) else flat


def _flat(value: Any) -> Any:
    if isinstance(value, dict | list):
        return json.dumps(value, allow_nan=False)
    return text(value) if isinstance(value, str) else value


def _parquet(path: Path, rows: Rows) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError("Parquet needs pyarrow: pip install 'agenteval[parquet]'") from None
    # Said, not guessed: a column that happens to be empty keeps its type.
    kinds = {"success": pyarrow.bool_(), "value": pyarrow.float64()}
    schema = pyarrow.schema(
        [(n, pyarrow.int64() if n in _INTEGERS else kinds.get(n, pyarrow.string()))
         for n in COLUMNS]
    )  # fmt: skip
    left = iter(rows)
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        while chunk := list(islice(left, _CHUNK)):
            columns = {name: [_flat(row[name]) for row in chunk] for name in COLUMNS}
            writer.write_table(pyarrow.table(columns, schema=schema))
