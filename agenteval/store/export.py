"""All results as one flat file: JSON lines, CSV or Parquet."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sqlalchemy import select

from agenteval.errors import InputError
from agenteval.files import write_atomically
from agenteval.store import schema
from agenteval.store.store import Store

COLUMNS = (
    "run_id", "task", "system", "case_key", "success", "variant", "criterion_id", "repeat",
    "status", "label", "value", "explanation", "message", "rung", "match", "evidence",
    "evaluator", "model", "seed", "tries", "run_key", "criterion_key", "source_key",
)  # fmt: skip
# A cell that starts so is run as a formula by spreadsheet programs.
_FORMULA = re.compile(r"^[=+\-@\t\r]")


def export_cells(store: Store, path: Path, *, source_key: str | None = None) -> int:
    """Write every result, with its run and judge, to a file; returns the number of rows.

    The form follows the suffix: .jsonl (or .ndjson), .csv, .parquet. The file appears whole or
    not at all. In CSV a text that a spreadsheet would run as a formula gets an apostrophe.
    Raises InputError for another suffix, or for Parquet without pyarrow.
    """
    rows = list(_rows(store, source_key))
    writers = {".jsonl": _jsonl, ".ndjson": _jsonl, ".csv": _csv}
    suffix = path.suffix.lower()
    if suffix == ".parquet":
        _parquet(path, rows)
    elif suffix in writers:
        write_atomically(path, writers[suffix](rows))
    else:
        raise InputError("write to a file ending in .jsonl, .csv or .parquet", str(path))
    return len(rows)


def _rows(store: Store, source_key: str | None) -> Iterator[dict[str, Any]]:
    cells, runs, sources = schema.cells, schema.runs, schema.sources
    query = (
        select(
            cells,
            runs.c.run_id, runs.c.task, runs.c.system, runs.c.case_key, runs.c.success,
            schema.criteria.c.criterion_id, sources.c.record, sources.c.evaluator, sources.c.model,
        )
        .join(runs, runs.c.run_key == cells.c.run_key)
        .join(sources, sources.c.source_key == cells.c.source_key)
        .join(schema.criteria, schema.criteria.c.criterion_key == cells.c.criterion_key)
        .order_by(
            cells.c.source_key, runs.c.run_id, cells.c.variant,
            schema.criteria.c.criterion_id, cells.c.repeat,
        )
    )  # fmt: skip
    if source_key is not None:
        query = query.where(cells.c.source_key == source_key)
    with store.engine.connect() as connection:
        for row in connection.execute(query):
            detail = json.loads(row.detail)
            merged = {**row._mapping, **detail, "seed": json.loads(row.record)["seed"]}
            merged["success"] = None if row.success is None else bool(row.success)
            yield {name: merged.get(name) for name in COLUMNS}


def _jsonl(rows: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(r, ensure_ascii=False, allow_nan=False) + "\n" for r in rows)


def _csv(rows: list[dict[str, Any]]) -> str:
    buffer = io.StringIO()
    writer = csv.DictWriter(buffer, COLUMNS, lineterminator="\n")
    writer.writeheader()
    writer.writerows({k: _csv_cell(v) for k, v in row.items()} for row in rows)
    return buffer.getvalue()


def _csv_cell(value: Any) -> Any:
    text = _flat(value)
    return f"'{text}" if isinstance(text, str) and _FORMULA.match(text) else text


def _flat(value: Any) -> Any:
    return json.dumps(value, ensure_ascii=False) if isinstance(value, dict | list) else value


def _parquet(path: Path, rows: list[dict[str, Any]]) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError(
            "Parquet needs pyarrow: pip install 'agenteval[parquet]'", str(path)
        ) from None
    table = pyarrow.table({name: [_flat(r[name]) for r in rows] for name in COLUMNS})
    temporary = path.with_name(f".{path.name}.partial")
    try:
        pyarrow.parquet.write_table(table, temporary)
        temporary.replace(path)
    except OSError as error:
        raise InputError(f"cannot write ({error.strerror or error})", str(path)) from error
    finally:
        temporary.unlink(missing_ok=True)
