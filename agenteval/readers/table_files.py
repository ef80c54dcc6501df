"""Read tables (CSV, TSV, Parquet, Arrow), and map their columns to fields of a run."""

from __future__ import annotations

import codecs
import csv
import io
import math
import re
import sys
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO

from agenteval.errors import InputError
from agenteval.files import LINE, decoded, opened
from agenteval.readers.fields import FIELDS, field_of, snake, verdict
from agenteval.readers.strict_json import Item, Notes, decode, read_items

TYPED = (".parquet", ".arrow")  # columns have types; Hugging Face datasets are Arrow files
SUFFIXES = (".csv", ".tsv", *TYPED)
_JSON = (".json", ".traj", ".jsonl", ".ndjson")
_WORKBOOKS = (".xlsx", ".xls", ".xlsm", ".ods")
_HEAD = 4096  # bytes
MAPPED = ("input", "output", "success", "id", "system", "task", "reference", "messages")
_DELIMITERS = ",;\t|"
_KNOWN = 3  # lowest rank of a name used by tools
_LONG = 20  # average characters in a column of texts

# Words in column names for guessing, in addition to the names used by tools (`fields`)
_WORDS = {
    "output": "output answer reply response bot assistant agent completion antwort ausgabe",
    "input": "input question message request query prompt customer user mail problem frage anfrage "
    "kunde eingabe",
    "success": "success successful resolved solved closed correct passed ok helpful erfolg gelöst "
    "richtig",
    "id": "id nr no number key nummer",
    "system": "system version model variant release",
    "reference": "reference expected gold truth target erwartet soll",
}


def file_items(path: Path, notes: Notes, *, finite: bool = True) -> Iterator[Item]:
    """Yield the values of a file: rows of a table, JSON lines, or one JSON document.

    "-" is standard input. The suffix decides the format, or the content for unknown suffixes.
    Unless numbers must be `finite`, NaN becomes a string. Raises InputError with file and line.
    """
    piped, suffix = str(path) == "-", path.suffix.lower()
    name = "standard input" if piped else str(path)
    with nullcontext(sys.stdin.buffer) if piped else opened(path, name) as stream:
        try:
            if suffix in _WORKBOOKS:
                raise InputError("this is a workbook: save the sheet as CSV", name)
            if suffix in SUFFIXES or (suffix not in _JSON and _begins_as_table(stream)):
                yield from table_items(stream, name, notes)
            else:
                by = partial(decode, finite=finite)
                yield from read_items(stream, name, notes, lines=suffix in _JSON[2:], by=by)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", name) from None


def _begins_as_table(stream: BinaryIO) -> bool:
    """Return whether the first line of a peekable stream has columns and is not JSON."""
    peek = getattr(stream, "peek", None)
    head: bytes = peek(_HEAD)[:_HEAD] if peek is not None else b""
    line = head.removeprefix(b"\xef\xbb\xbf").lstrip().partition(b"\n")[0]
    return line[:1] not in b"{[" and any(mark.encode() in line for mark in _DELIMITERS)


def table_items(stream: BinaryIO, name: str, notes: Notes) -> Iterator[Item]:
    """Yield the rows of a table with a header as objects of strings; blank cells are null.

    The encoding is UTF-8, UTF-16 or, with a warning, Windows-1252. The separator is the most
    frequent one in the header, unless a first line such as `sep=;` states it. A row with too few
    cells, or with quotes still open at the end of the file, is `cut_off`. Raises InputError, with
    file and line, for a filled column without a name, a duplicate name, a row with too many cells,
    and invalid CSV. Values of Parquet and Arrow files keep their types; dates become strings, NaN
    null.
    """
    if name.lower().endswith(TYPED):
        yield from _typed_items(stream, name)
        return
    text = _table_text(stream.read(), name, notes)
    head: list[str] | None = None
    for item in _filled_rows(text, name):
        cells, place, cut_off = item.value, item.place, item.cut_off
        if head is None:
            head = _head(cells, place)
            continue
        if any(map(str.strip, cells[len(head) :])):
            problem = f"{len(cells)} cells, but the header has {len(head)} columns"
            raise InputError(problem, place)
        if cut_off or len(cells) < len(head):
            cells, cut_off = cells[:-1], True  # the last cell may be incomplete
        filled = [cell if cell.strip() else None for cell in cells[: len(head)]]
        row = dict(zip_longest(head, filled))
        if row.pop("", None) is not None:
            raise InputError("a cell in a column without a name", place)
        yield Item(row, place, item.line, cut_off)


def _filled_rows(text: str, name: str) -> Iterator[Item]:
    """Yield the cells of non-blank rows, `cut_off` if the file ends inside quotes.

    Raises InputError for invalid CSV.
    """
    if "\0" in text:
        line = text[: text.index("\0")].count("\n") + 1
        raise InputError("a NUL character", f"{name}:{line}")
    stated = re.match(r'"?sep=(.)"?[,;\t|]*\r?\n', text)
    body = text[stated.end() :] if stated else text
    head_line = re.sub(r'"[^"]*"', "", body.lstrip("\r\n").partition("\n")[0])
    delimiter = stated[1] if stated else max(_DELIMITERS, key=head_line.count)
    csv.field_size_limit(LINE)
    reader = csv.reader(io.StringIO(body, newline=""), delimiter=delimiter, strict=True)
    skipped = bool(stated)  # lines before the body
    done = 0  # lines of the body before the current row
    try:
        for cells in reader:
            if any(map(str.strip, cells)):
                line = skipped + done + 1
                yield Item(cells, f"{name}:{line}", line)
            done = reader.line_num
    except csv.Error as error:
        line = skipped + done + 1
        if not done or "unexpected end" not in str(error) or body.count("\n") > done:
            raise InputError(f"is not CSV ({error})", f"{name}:{line}") from None
        last = next(csv.reader([body.rpartition("\n")[2]], delimiter=delimiter))
        yield Item(last, f"{name}:{line}", line, cut_off=True)


def _head(cells: list[str], place: str) -> list[str]:
    names = [cell.strip() for cell in cells]
    while not names[-1]:
        names.pop()
    if not names[0] and "index" not in names and len(names) > 1:
        names[0] = "index"
    for column, times in Counter(filter(None, names)).items():
        if times > 1:
            raise InputError(f"the column {column!r} occurs twice in the header", place)
    return names


def _table_text(data: bytes, name: str, notes: Notes) -> str:
    """Decode a table in one of the encodings used by spreadsheets. Raises InputError."""
    wide = "utf-16-le" if data[1:4:2] == b"\0\0" else ""
    wide = "utf-16-be" if data[0:3:2] == b"\0\0" else wide
    if data[:2] in (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE):
        wide = "utf-16"
    try:
        return (data.decode(wide) if wide else decoded(data, name)).removeprefix("\ufeff")
    except UnicodeDecodeError as error:
        raise InputError(f"broken UTF-16 ({error.reason})", name) from None
    except InputError as error:
        try:
            if 0 in data or "not UTF-8" not in str(error):
                raise
            text = data.decode("cp1252")
        except UnicodeDecodeError:
            raise error from None
        notes.add(
            "not UTF-8; read as Windows-1252, check its special characters", error.where or name
        )
        return text


def _typed_items(stream: BinaryIO, name: str) -> Iterator[Item]:
    try:
        import pyarrow
        import pyarrow.parquet
    except ImportError:
        raise InputError("needs pyarrow: pip install 'agenteval[parquet]'", name) from None
    try:
        if name.lower().endswith(".parquet"):
            batches = pyarrow.parquet.ParquetFile(stream).iter_batches(1000)
        elif stream.read(6) == b"ARROW1":
            table = pyarrow.ipc.open_file(stream)
            batches = (table.get_batch(i) for i in range(table.num_record_batches))
        else:
            stream.seek(0)
            batches = pyarrow.ipc.open_stream(stream)
        rows = (row for batch in batches for row in batch.to_pylist())
        for line, row in enumerate(rows, start=1):
            yield Item(_plain(row), f"{name}:{line}", line)
    except (pyarrow.ArrowException, OSError) as error:
        raise InputError(f"cannot be read ({' '.join(str(error).split())[:200]})", name) from None


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value if value is None or isinstance(value, (str, bool, int, float)) else str(value)


def read_mapping(pairs: Sequence[str]) -> dict[str, str]:
    """Parse `["input=customer_message,output=reply"]` to columns by field. Raises InputError."""
    mapping: dict[str, str] = {}
    for pair in ",".join(pairs).split(",") if pairs else ():
        name, _, column = (part.strip() for part in pair.partition("="))
        if not column or name not in MAPPED:
            problem = f"{pair!r}: write FIELD=COLUMN with a field of {', '.join(MAPPED)}"
            raise InputError(problem, "--map")
        if mapping.setdefault(name, column) != column:
            raise InputError(f"{name} is mapped twice", "--map")
    return mapping


def mapped(record: Any, mapping: Mapping[str, str]) -> Any:
    """Return the record with its columns renamed to fields.

    A column that already has the name of a field is renamed (`output (unmapped)`).
    """
    if not mapping or not isinstance(record, dict):
        return record
    columns = {column: name for name, column in mapping.items()}
    renamed = {key: f"{key} (unmapped)" for key in record if key in mapping and key not in columns}
    return {columns.get(key) or renamed.get(key, key): value for key, value in record.items()}


@dataclass(frozen=True)
class ColumnMap:
    """Columns by field: the user's, and those of the task for other fields."""

    by_user: Mapping[str, str]
    of_task: Mapping[str, str]

    def of(self, record: Any, place: str, notes: Notes) -> dict[str, str]:
        """Return the column of each field for the records of a file, given the first record.

        Raises InputError for a missing column; for columns of the task, this is only a warning
        unless the field is input, output or messages.
        """
        mapping = {**self.of_task, **self.by_user}
        if not isinstance(record, dict):
            return mapping
        for name, column in mapping.items():
            if column in record:
                continue
            listed = ", ".join([*record][:20])
            problem = f"there is no column {column!r} for {name}; columns: {listed}"
            if name in self.by_user or name in ("input", "output", "messages"):
                raise InputError(problem, place)
            notes.add(problem, place)
        return mapping


def guess_mapping(
    records: Sequence[Mapping[str, Any]], stated: Mapping[str, str] | None = None
) -> dict[str, str]:
    """Return columns by field: those `stated`, and others with clear names and contents.

    A name used by tools counts most, then words in the name, then the values: texts for input and
    output (of two text columns without a clear name, the first is the input), verdicts for success,
    distinct values for ids. Raises InputError if no column can be the output, and if two columns
    are equally likely to be the input or the output.
    """
    columns = list(dict.fromkeys(key for record in records for key in record))
    values = {key: [r[key] for r in records if r.get(key) not in (None, "")] for key in columns}
    guess = dict(stated or {})
    for name in ("success", "id", "system", "reference", "output", "input"):
        is_text, ranked = name in ("input", "output"), []
        for at, key in enumerate(columns):
            score = 0 if key in guess.values() else _named(key, name)
            trusted = is_text and score >= _KNOWN
            if score and (trusted or _holds(values[key], name, len(records))):
                ranked.append((score, _average(values[key]) >= _LONG, -at, key))
        if not ranked or name in guess:
            continue
        best, *next_best = sorted(ranked, reverse=True)
        if is_text and next_best and best[:2] == next_best[0][:2]:
            columns_meant = f"{best[3]} or {next_best[0][3]}"
            raise InputError(f"{columns_meant}: which is the {name}? Use --map {name}=COLUMN")
        guess[name] = best[3]
    texts = [key for key in columns if key not in guess.values() and _average(values[key]) >= _LONG]
    missing = [name for name in ("input", "output") if name not in guess]
    if len(texts) == len(missing):
        guess |= zip(missing, texts, strict=True)
    talks = any((field_of(column) or ("",))[0] == "messages" for column in columns)
    if not {"output", "messages"} & guess.keys() and not talks:
        problem = f"which column has the answers of the system? Columns: {', '.join(columns[:20])}"
        raise InputError(f"{problem}; use --map output=COLUMN,input=COLUMN")
    return {name: guess[name] for name in MAPPED if name in guess}


def _named(key: str, name: str) -> int:
    """Rate a column name for a field: `_KNOWN` or more for names used by tools (more for common
    ones), else the number of suggestive words, at most 2."""
    hit = field_of(key)
    if hit is not None:
        return _KNOWN + len(FIELDS[name]) - hit[1] if FIELDS[hit[0]] is FIELDS[name] else 0
    words = re.split(r"[\W_]+", snake(key))
    return min(2, sum(word in _WORDS[name].split() for word in words))


def _holds(values: Sequence[Any], name: str, rows: int) -> bool:
    if not values:
        return False
    if name == "success":
        try:
            return all(verdict(value, name, "") is not None for value in values)
        except InputError:
            return False
    if name == "id":
        return len(values) == rows == len({str(value) for value in values})
    if name in ("input", "output"):
        return all(isinstance(value, str) for value in values) and len(set(values)) > 1
    return name != "system" or len({str(value) for value in values}) <= max(1, rows // 2)


def _average(values: Sequence[Any]) -> float:
    return sum(len(v) for v in values if isinstance(v, str)) / len(values) if values else 0.0
