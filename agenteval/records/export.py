"""Write rows to a flat file: JSON lines, CSV or Parquet."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from agenteval.errors import InputError
from agenteval.files import replacing
from agenteval.text import encodable

SUFFIXES = (".jsonl", ".ndjson", ".csv", ".parquet")
EXPORT_COLUMNS = (  # of `agenteval export`
    *("run_id", "task", "system", "case_key", "success", "variant", "criterion_id", "repeat"),
    *("status", "label", "value", "probabilities", "explanation", "message", "rung", "match"),
    *("evidence", "evaluator", "model", "seed", "tries", "run_key", "criterion_key", "source_key"),
    "way",
)

# Spreadsheet programs run a cell that starts like this as a formula (OWASP, CSV injection); some
# importers trim blanks and invisible characters first.
_FORMULA = re.compile(
    "^(?:[\t\r\n]|[\\s\x00-\x1f\x7f-\xa0\u200b-\u200f\u2028-\u202f\u2060\ufeff]*[=+\\-@＝＋－＠|])"
)
_CHUNK = 5000  # rows held in memory at a time

Rows = Iterable[Mapping[str, Any]]


def write_rows(path: Path, rows: Rows, columns: Mapping[str, type]) -> int:
    """Write rows to a file, in the format of its suffix, and return their number.

    `columns` has the columns in order, with the type of their values: str, int, float or bool. Rows
    may lack values. Nested values become JSON strings in CSV and Parquet. In CSV, a text that a
    spreadsheet would run as a formula gets an apostrophe. Rows are streamed, and the file is
    written completely or not at all. Raises InputError for other suffixes, for Parquet without
    pyarrow, and if the file cannot be written.
    """
    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise InputError("write to a file ending in .jsonl, .csv or .parquet", str(path))
    write = {".csv": _csv, ".parquet": _parquet}.get(suffix, _jsonl)
    count = 0

    def counted() -> Iterator[dict[str, Any]]:
        nonlocal count
        for row in rows:
            count += 1
            yield {name: row.get(name) for name in columns}

    with replacing(path) as temporary:
        write(temporary, counted(), columns)
    return count


def column_types(rows: Sequence[Mapping[str, Any]]) -> dict[str, type]:
    """Return the columns of rows with the common type of their values, or str if they differ."""
    columns: dict[str, type] = {}
    for name in dict.fromkeys(name for row in rows for name in row):
        kinds = {type(value) for row in rows if (value := row.get(name)) is not None}
        if kinds == {int, float}:
            kinds = {float}
        (kind,) = kinds if len(kinds) == 1 else (str,)
        columns[name] = kind if kind in (bool, int, float) else str
    return columns


def _jsonl(path: Path, rows: Rows, columns: Mapping[str, type]) -> None:
    with path.open("w", encoding="utf-8", newline="\n") as file:
        for row in rows:
            line = json.dumps(row, ensure_ascii=False, allow_nan=False)
            if encodable(line) != line:  # a lone surrogate: only its escape is valid UTF-8
                line = json.dumps(row, allow_nan=False)
            file.write(line + "\n")


def _csv(path: Path, rows: Rows, columns: Mapping[str, type]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        # RFC 4180. With another line end, Python would not quote a lone carriage return.
        writer = csv.DictWriter(file, list(columns), lineterminator="\r\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: _csv_cell(value) for name, value in row.items()})


def _csv_cell(value: Any) -> Any:
    flat = _flat(value)
    return f"'{flat}" if isinstance(flat, str) and _FORMULA.match(flat) else flat


def _flat(value: Any) -> Any:
    if isinstance(value, dict | list):
        return json.dumps(value, allow_nan=False)
    return encodable(value) if isinstance(value, str) else value


def _parquet(path: Path, rows: Rows, columns: Mapping[str, type]) -> None:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError("Parquet needs pyarrow: pip install 'agenteval[parquet]'") from None
    # Types are explicit, so that an empty column keeps its type.
    kinds = {
        bool: pyarrow.bool_(),
        int: pyarrow.int64(),
        float: pyarrow.float64(),
        str: pyarrow.string(),
    }
    schema = pyarrow.schema([(name, kinds[kind]) for name, kind in columns.items()])
    remaining = iter(rows)
    with pyarrow.parquet.ParquetWriter(path, schema) as writer:
        while chunk := list(islice(remaining, _CHUNK)):
            lists = {n: [_cell(row[n], kind) for row in chunk] for n, kind in columns.items()}
            writer.write_table(pyarrow.table(lists, schema=schema))


def _cell(value: Any, kind: type) -> Any:
    flat = _flat(value)
    return str(flat) if kind is str and flat is not None else flat
