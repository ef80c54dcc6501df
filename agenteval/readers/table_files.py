"""Tables as files: CSV, TSV, Parquet and Arrow, and which column is which field of a run."""

from __future__ import annotations

import csv
import io
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from typing import Any, BinaryIO

from agenteval.errors import InputError
from agenteval.files import decoded, opened
from agenteval.readers.fields import FIELDS, field_of, snake, verdict
from agenteval.readers.strict_json import Item, Notes

TYPED = (
    ".parquet",
    ".arrow",
)  # columns have types: Parquet, and the files of Hugging Face datasets
SUFFIXES = (".csv", ".tsv", *TYPED)
MAPPED = ("input", "output", "success", "id", "system", "task", "reference", "messages")
_DELIMITERS = ",;\t|"
_KNOWN = 3  # rank from which a name is one that tools use
_LONG = 20  # characters on average of a column that holds texts

# Words in the names of columns, for a guess; the names that tools use are known without (`fields`).
_WORDS = {
    "output": "output answer reply response bot assistant agent completion antwort ausgabe",
    "input": "input question message request query prompt customer user mail problem frage anfrage "
             "kunde eingabe",
    "success": "success successful resolved solved correct passed ok helpful erfolg gelöst richtig",
    "id": "id nr no number key nummer",
    "system": "system version model variant release",
    "reference": "reference expected gold truth target erwartet soll",
}  # fmt: skip


def table_items(stream: BinaryIO, name: str) -> Iterator[Item]:
    """The rows of a table with a head line, as objects of texts; a blank cell is null.

    UTF-8, with or without a byte order mark; columns are parted by comma, semicolon, tab or bar,
    whichever the head line holds most of. Raises InputError, naming file and line, for a head line
    with a name that is empty or stands twice, a row with more cells, and what is no CSV. Values of
    Parquet and Arrow files keep their types; dates and the like become texts, NaN is null.
    """
    if name.lower().endswith(TYPED):
        yield from _typed_items(stream, name)
        return
    text = decoded(stream.read(), name).removeprefix("\ufeff")
    if "\0" in text:
        raise InputError(
            "a NUL character", f"{name}:{text[: text.index(chr(0))].count(chr(10)) + 1}"
        )
    head_line = re.sub(r'"[^"]*"', "", text.partition("\n")[0])
    delimiter = max(_DELIMITERS, key=head_line.count)
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter, strict=True)
    try:
        head = [cell.strip() for cell in next(reader, [])]
        for column, times in Counter(head).items():
            if not column or times > 1:
                what = f"the column {column!r} stands twice" if column else "a column has no name"
                raise InputError(f"{what} in the head line", f"{name}:1")
        line = reader.line_num + 1
        for cells in reader:
            place, line = f"{name}:{line}", reader.line_num + 1
            if len(cells) > len(head):
                raise InputError(
                    f"{len(cells)} cells, and the head line names {len(head)} columns", place
                )
            if any(map(str.strip, cells)):
                filled = [cell if cell.strip() else None for cell in cells]
                row = dict(zip_longest(head, filled))
                yield Item(row, place, int(place.rpartition(":")[2]))
    except csv.Error as error:
        raise InputError(f"is not CSV ({error})", f"{name}:{reader.line_num}") from None


def table_file(path: Path) -> Iterator[Item]:
    """The rows of a table at a path. Raises InputError."""
    with opened(path) as stream:
        yield from table_items(stream, str(path))


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
    """A value as JSON could hold it."""
    if isinstance(value, dict):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else str(value)
    return value if value is None or isinstance(value, (str, bool, int, float)) else str(value)


def read_mapping(pairs: Sequence[str]) -> dict[str, str]:
    """`["input=customer_message,output=reply"]` as columns by field. Raises InputError."""
    mapping: dict[str, str] = {}
    for pair in (part for text in pairs for part in text.split(",")):
        name, sign, column = (part.strip() for part in pair.partition("="))
        if not sign or not column or name not in MAPPED:
            raise InputError(
                f"{pair!r}: write FIELD=COLUMN with a field of {', '.join(MAPPED)}", "--map"
            )
        if mapping.setdefault(name, column) != column:
            raise InputError(f"{name} is mapped twice", "--map")
    return mapping


def mapped(record: Any, mapping: Mapping[str, str]) -> Any:
    """The record with its columns under the names of fields. What stood there under such a name
    keeps a place of its own (`output (unmapped)`)."""
    if not mapping or not isinstance(record, dict):
        return record
    columns = {column: name for name, column in mapping.items()}
    taken = {key: f"{key} (unmapped)" for key in record if key in mapping and key not in columns}
    return {columns.get(key) or taken.get(key, key): value for key, value in record.items()}


def check_mapping(
    record: Any, mapping: Mapping[str, str], place: str, notes: Notes | None = None
) -> None:
    """Raise InputError for a column of the mapping that the first record has not. With `notes`,
    where the mapping is the task's and the file may be another, only what a run needs is demanded;
    of the rest there is a warning."""
    if not mapping or not isinstance(record, dict):
        return
    for name, column in mapping.items():
        if column in record:
            continue
        problem = f"there is no column {column!r} for {name}; there are {', '.join([*record][:20])}"
        if notes is None or name in ("input", "output", "messages"):
            raise InputError(problem, place)
        notes.add(problem, place)


def guess_mapping(records: Sequence[Mapping[str, Any]]) -> dict[str, str]:
    """Columns by field, as names and contents suggest; no more than is plain.

    A name that tools use counts most, then words in the name, then what the column holds: texts for
    input and output (of two such columns without a telling name the first is the input), verdicts
    for success, different values for ids. Raises InputError where no column can be the output, and
    where two columns can be the input, or the output, equally well.
    """
    columns = list(dict.fromkeys(key for record in records for key in record))
    values = {key: [r[key] for r in records if r.get(key) not in (None, "")] for key in columns}
    found: dict[str, str] = {}
    for name in ("success", "id", "system", "reference", "output", "input"):
        ranked = sorted(
            (
                (score, _average(values[key]) >= _LONG, -at, key)
                for at, key in enumerate(columns)
                if key not in found.values()
                and (score := _named(key, name))
                and (
                    _holds(values[key], name, len(records))
                    or (name in ("input", "output") and score >= _KNOWN)
                )
            ),
            reverse=True,
        )
        if name in ("input", "output") and len(ranked) > 1 and ranked[0][:2] == ranked[1][:2]:
            raise InputError(
                f"{ranked[0][3]} or {ranked[1][3]}: which is the {name}? Say --map {name}=COLUMN"
            )
        if ranked:
            found[name] = ranked[0][3]
    texts = [key for key in columns
             if key not in found.values() and _average(values[key]) >= _LONG]  # fmt: skip
    for name in ("input", "output"):
        if name not in found and len(texts) == ("input" not in found) + ("output" not in found):
            found[name] = texts.pop(0)
    if "output" not in found and not any((field_of(c) or ("",))[0] == "messages" for c in columns):
        raise InputError(
            f"which column is what the system answered? There are {', '.join(columns[:20])}; "
            "say --map output=COLUMN,input=COLUMN"
        )
    return {name: found[name] for name in MAPPED if name in found}


def _named(key: str, name: str) -> int:
    """From `_KNOWN` on for a name that tools use for the field, the usual ones more; 1 or 2 for as
    many words that suggest it; 0 for others."""
    known = field_of(key)
    if known is not None:
        return _KNOWN + len(FIELDS[name]) - known[1] if FIELDS[known[0]] is FIELDS[name] else 0
    words = re.split(r"[\W_]+", snake(key))
    return min(2, sum(word in _WORDS[name].split() for word in words))


def _holds(values: Sequence[Any], name: str, rows: int) -> bool:
    """Whether what a column holds can be this field."""
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


def is_table(path: Path) -> bool:
    """Whether a file is read as a table, by its name."""
    return path.suffix.lower() in SUFFIXES
