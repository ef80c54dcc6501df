"""Read existing ratings, by people or other tools, from files and logs into a ScoreTable."""

from __future__ import annotations

import difflib
import json
import logging
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache, lru_cache
from itertools import chain
from pathlib import Path
from typing import Any, get_args

from agenteval.errors import InputError
from agenteval.readers.fields import is_missing, number_of, snake, verdict
from agenteval.readers.logs import is_log, log_samples, scored_rows, split_table
from agenteval.readers.problems import shown
from agenteval.readers.public_logs import public_ratings
from agenteval.readers.samples import rating_rows
from agenteval.readers.strict_json import Item, Notes
from agenteval.readers.table_files import file_items
from agenteval.records import Criterion, canonical_json
from agenteval.records.export import EXPORT_COLUMNS
from agenteval.records.score import FailureStatus, ScoreStatus
from agenteval.stats.scores import ORIGINAL, ScoreTable, TableBuilder

_COLUMNS = (
    *("run", "case", "system", "criterion", "repeat", "label", "value", "status", "success"),
    "variant",
)
_KNOWN = {name: name for name in (*_COLUMNS, "rater")} | {
    "run_id": "run",
    "case_id": "case",
    "case_key": "case",
    "criterion_id": "criterion",
}
_SUGGESTED = {"repetition": "repeat", "repetitions": "repeat", "rep": "repeat"}
_ALIKE = 0.8  # ratio of equal letters (difflib): one or two typos in a word
_LONGEST = 40  # maximum characters of a possibly misspelled field name
_STATUSES = (*get_args(ScoreStatus), *get_args(FailureStatus))
_ROUNDING = 0.005  # tolerated difference between a value and the value of its label

_log = logging.getLogger(__name__)


def read_scores(
    path: str | Path, criteria: Sequence[Criterion] = (), *, rater: str | None = None
) -> ScoreTable:
    """Read ratings from a CSV or Parquet file, JSONL, or a log of another tool (see `score_rows`).

    Fields: run and criterion are required, and label or value unless the status explains why there
    is none; case (default: the run), system, repeat (default 0), status (default "scored"),
    success, variant (default "original"). A value is a number in [0, 1]; a label is looked up in
    the criterion's accepted values, so `criteria` are required when there are only labels. If a
    value contradicts its label and the criteria define it, the label counts; one warning in the log
    counts these rows. Rows without a label yet are skipped. With `rater`, only rows of that rater
    are read. Case, spacing and hyphens in field names are ignored, as are other fields; the log
    warns about possibly misspelled ones.

    Criteria of a log that are not in `criteria`, or have labels without a value, are skipped with a
    warning.

    Raises InputError with file and line for an unusable row; nothing is guessed.
    """
    file, by_id = Path(path), {c.id: c for c in criteria}
    builder = TableBuilder()
    seen: dict[tuple[Any, ...], str] = {}
    about: dict[str | None, tuple[Any, ...]] = {}
    contradictions: list[str] = []
    unlabelled = 0
    scales = _numeric_scales(file, by_id)
    for where, row in score_rows(file, by_id):
        if rater is not None and row.get("rater") != rater:
            continue
        if waits_for_label(row):
            unlabelled += 1
            continue
        if str(row.get("criterion")) in scales and is_missing(row.get("label")):
            row |= {"label": row.get("value"), "value": None}
        rating = _read(row, by_id, where)
        texts = rating.texts
        if rating.contradiction:
            contradictions.append(f"{where}: {rating.contradiction}")
        run, *key = (texts[name] for name in ("run", "criterion", "variant"))
        if (first := seen.get((run, *key, rating.repeat))) is not None:
            what = f"on {key[0]!r} (repeat {rating.repeat}, {key[1]})"
            raise InputError(f"run {run!r} is rated twice {what}; first at {first}", where)
        seen[run, *key, rating.repeat] = where
        facts = (texts["case"], texts["system"], rating.success)
        if about.setdefault(run, facts) != facts:
            problem = "has another case, system or success than in an earlier line"
            raise InputError(f"run {run!r} {problem}", where)
        builder.add(texts, repeat=rating.repeat, success=rating.success, value=rating.value)
    if not seen:
        among = f" of rater {rater!r}" if rater is not None else ""
        among += f" ({unlabelled} rows have no label yet)" if unlabelled else ""
        raise InputError(f"there are no ratings{among} in this file", str(file))
    if contradictions:
        _log.warning(
            f"{file}: {len(contradictions)} of {len(seen)} ratings have a value that contradicts "
            f"their label; the label and the criteria count (first: {contradictions[0]})"
        )
    return builder.table()


def _numeric_scales(file: Path, by_id: Mapping[str, Criterion]) -> set[str]:
    """Return criteria rated on their own numeric scale, with a `value` outside 0 to 1."""
    if is_log(file) or all(c.numeric_range == (0.0, 1.0) for c in by_id.values()):
        return set()
    outside: set[str] = set()
    for _, row in score_rows(file, by_id):
        number, criterion = number_of(row.get("value")), by_id.get(str(row.get("criterion")))
        if number is not None and not 0 <= number <= 1 and criterion is not None:
            outside |= {criterion.id} if _on_scale(row["value"], criterion) else set()
    return outside


def waits_for_label(row: Mapping[str, Any]) -> bool:
    """Return whether a row is from an annotation sheet and has no label yet."""
    return bool(row.get("sample")) and all(
        row.get(field) in (None, "") for field in ("label", "value", "status")
    )


def score_rows(
    file: Path, by_id: Mapping[str, Criterion] | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield location and fields of every rating in a file, known fields under their usual names.

    Reads tables and JSON with a row per rating, or a column per scorer (ragas, mlflow), and logs of
    inspect and promptfoo. With `by_id` (criteria by id, possibly empty), unusable ratings of a log
    or scorer column are skipped with a warning. Raises InputError.
    """
    notes = Notes()
    samples = log_samples(file, notes)
    items = _objects(split_table(file) or file_items(file, notes, finite=False))
    first = None if samples else next(items, None)
    if first is not None:
        items = chain([first], items)
        fields = set(_columns(tuple(first.value)).fields.values())
        if "criterion" not in fields:
            all_criteria = (by_id or {}).values()
            id_of_name = {snake(name): c.id for c in all_criteria for name in (c.name, c.id)}
            samples = scored_rows(items, id_of_name, file.stem)
        missing = " and ".join(sorted({"run", "criterion"} - fields))
        if missing and samples is None:
            problem = f"there is no column {missing}; known columns: {', '.join(_COLUMNS)}"
            raise InputError(problem, first.place)
    if samples is not None:
        rows = rating_rows(samples, str(file))
        yield from rows if by_id is None else _usable(list(rows), by_id, notes, str(file))
    else:
        warned: set[str] = set()
        for item in items:
            texts = _columns(tuple(item.value)).warnings
            for text in texts if warned.isdisjoint(texts) else ():
                _warn_once(f"{item.place}: {text}")
            warned.update(texts)
            yield item.place, _fields_of(item)
    for text in notes.lines():
        _warn_once(text)


@cache
def _warn_once(message: str) -> None:
    _log.warning("%s", message)


def _objects(items: Iterable[Item]) -> Iterator[Item]:
    for item in items:
        many = isinstance(item.value, list)
        for i, value in enumerate(item.value if many else [item.value]):
            part = Item(value, f"{item.place}[{i}]", i + 1) if many else item
            if not isinstance(value, dict):
                raise InputError("this is not a JSON object", part.place)
            yield from (replace(part, value=row) for row in public_ratings(value))


def _fields_of(item: Item) -> dict[str, Any]:
    """Return the non-blank fields of a rating by their usual names.

    An empty label and value are kept, to mark a missing rating. Raises InputError, including for
    two names of a field with different values.
    """
    fields = _columns(tuple(item.value)).fields
    row: dict[str, Any] = {}
    for key, value in item.value.items():
        name = fields.get(key, key)
        if row.setdefault(name, value) != value:
            raise InputError(f"the column {name} occurs twice, with different values", item.place)
    if item.cut_off:
        if is_missing(row.get("run")) or is_missing(row.get("criterion")):
            raise InputError("the row is cut off", item.place)
        row |= {"status": "unscored:missing", "label": None, "value": None}
    return {k: v for k, v in row.items() if v not in (None, "") or k in ("label", "value")}


def _usable(
    rows: list[tuple[str, dict[str, Any]]], by_id: Mapping[str, Criterion], notes: Notes, name: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield the rows of a log that fit in a table. Raises InputError if there are none."""
    unusable: dict[str, str] = {}
    for _, row in rows:
        criterion, label = row["criterion"], row.get("label")
        if by_id and criterion not in by_id:
            unusable[criterion] = "is not among the criteria"
        elif not by_id and label is not None and "value" not in row:
            problem = f"has {label!r}, of which no value is known: criteria with its levels or its "
            unusable.setdefault(criterion, problem + "numeric_range tell (--criteria)")
        elif by_id and label is not None and _on_scale(label, by_id[criterion]):
            row.pop("value", None)  # 1 may be the worst value of a scale from 1 to 5
    warnings = [f"criterion {name!r} is left out: it {why}" for name, why in unusable.items()]
    if all(row["criterion"] in unusable for _, row in rows):
        raise InputError("; ".join(warnings), name)
    for text in warnings:
        notes.add(text, name)
    yield from ((where, row) for where, row in rows if row["criterion"] not in unusable)


@dataclass(frozen=True)
class _Columns:
    """The fields named by columns, and warnings about names."""

    fields: dict[str, str]
    warnings: list[str]


@lru_cache(maxsize=256)
def _columns(names: tuple[str, ...]) -> _Columns:
    """Return the fields of `names`, ignoring case, spacing and hyphens.

    The exact name wins over other spellings, with a warning. An unknown name similar to a missing
    one causes a warning; all others are ignored.
    """
    fields = {name: _KNOWN[name] for name in names if name in _KNOWN}
    exact = set(fields.values())
    warnings = []
    for name in names:
        other = _KNOWN.get(snake(name)) if name not in fields and len(name) <= _LONGEST else None
        if other is not None and other in exact:
            warnings.append(f"column {name!r} is not read; {other!r} is")
        elif other is not None:
            fields[name] = other
    present = set(fields.values())
    for name in names:
        plain = snake(name)
        if name in fields or len(name) > _LONGEST or plain in EXPORT_COLUMNS or plain in _KNOWN:
            continue
        alike = difflib.get_close_matches(plain, _KNOWN, n=1, cutoff=_ALIKE)
        similar = _SUGGESTED.get(plain) or next(iter(alike), None)
        if similar is not None and _KNOWN[similar] not in present:
            warnings.append(f"column {name!r} is not read; did you mean {similar!r}?")
    return _Columns(fields, warnings)


# ---- one rating ----------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Rating:
    """One row of a ScoreTable; `contradiction` describes how its value contradicts its label."""

    texts: dict[str, str | None]
    repeat: int
    success: bool | None
    value: float | None
    contradiction: str


def _read(row: Mapping[str, Any], by_id: Mapping[str, Criterion], where: str) -> _Rating:
    run, criterion = _text(row, "run", where), _text(row, "criterion", where)
    if run is None or criterion is None:
        raise InputError("every row needs run and criterion", where)
    if by_id and criterion not in by_id:
        listed = ", ".join(sorted(by_id))
        raise InputError(f"criterion {criterion!r} is not among the criteria: {listed}", where)
    status = _text(row, "status", where) or "scored"
    label = _label(_text(row, "label", where), by_id.get(criterion))
    value, contradiction = _value(row, label, by_id.get(criterion), where), ""
    if status == "scored" and value is not None and label is not None and criterion in by_id:
        expected = _value_of_label(row, label, value, by_id[criterion])
        if expected is None or abs(expected - value) > _ROUNDING:
            shown_value = "no value" if expected is None else f"{expected:.3g}"
            contradiction = f"{label!r} has {shown_value} on {criterion}, not {value:.3g}"
            value = expected
    if status not in _STATUSES:
        raise InputError(f"status {status!r} is not one of: {', '.join(_STATUSES)}", where)
    if status == "scored" and value is None and label is None:
        status = "unscored:missing"
    if status == "unscored:missing" and not {"label", "value", "status"} & row.keys():
        raise InputError("a rating needs a label or a value, or a status that says why not", where)
    if status != "scored" and value is not None and (":" in status or status == "not_applicable"):
        raise InputError(f"status {status!r} and a value exclude each other", where)
    probabilities = _probabilities(row)
    texts = {
        "run": run,
        "case": _text(row, "case", where) or run,
        "system": _text(row, "system", where),
        "criterion": criterion,
        "variant": _text(row, "variant", where) or ORIGINAL,
        "status": status,
        "label": label,
        "probabilities": None if probabilities is None else canonical_json(probabilities),
    }
    repeat = str(row.get("repeat", 0))
    if re.fullmatch(r"\s*\d{1,5}\s*", repeat) is None:
        raise InputError(f"repeat {row['repeat']!r} is not an integer of at least 0", where)
    success = verdict(row.get("success"), "success", where)
    return _Rating(texts, int(repeat), success, value, contradiction)


def _text(row: Mapping[str, Any], field: str, where: str) -> str | None:
    value = row.get(field)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InputError(f"{field} is not a text", where)
    return str(value)


def _value(
    row: Mapping[str, Any], label: str | None, criterion: Criterion | None, where: str
) -> float | None:
    value = row.get("value")
    if not is_missing(value):
        number = number_of(value)
        if number is None or not 0 <= number <= 1:
            problem = f"value {shown(value)} is not a number from 0 (worst) to 1 (best)"
            raise InputError(problem, where)
        return number
    if label is None:
        return None
    if criterion is None:
        problem = "a label without a value: say which criteria these are (--criteria)"
        raise InputError(problem, where)
    if criterion.numeric_range is not None:
        return _in_range(label, criterion, where)
    if criterion.accepted_values and label not in criterion.accepted_values:
        allowed = ", ".join(map(repr, criterion.accepted_values))
        raise InputError(f"{label!r} is not an accepted value of {criterion.id}: {allowed}", where)
    return criterion.value_of(label) if criterion.accepted_values else None


def _label(label: str | None, criterion: Criterion | None) -> str | None:
    """Return the accepted value for a label, None for a missing one, or the label itself.

    The label may be another spelling of a number or, with two values, of yes and no.
    """
    values = () if criterion is None else criterion.accepted_values
    if label is None or label in values:
        return label
    if is_missing(label):
        return None

    def meaning(text: str) -> Any:
        number = number_of(text)
        digits = any(map(str.isdigit, text))
        return number if number is not None and (digits or len(values) == 2) else text.casefold()

    same = [value for value in values if meaning(value.strip()) == meaning(label.strip())]
    return same[0] if len(same) == 1 else label


def _on_scale(label: Any, criterion: Criterion) -> bool:
    is_level = _label(str(label), criterion) in criterion.accepted_values
    return is_level or criterion.numeric_range is not None


def _in_range(label: str, criterion: Criterion, where: str) -> float | None:
    """Return the value of a number on a numeric scale, or None without an order."""
    try:
        number = number_of(label)
        value = criterion.value_of(label if number is None else f"{number:.12g}")
    except ValueError:
        value = math.nan
    if value is not None and not 0 <= value <= 1:
        worst, best = criterion.numeric_range or (0, 1)
        raise InputError(
            f"{label!r} is not a number from {worst:g} to {best:g}, the range of {criterion.id}",
            where,
        )
    return value


def _value_of_label(
    row: Mapping[str, Any], label: str, value: float, criterion: Criterion
) -> float | None:
    """Return the value of a label, or None without an order.

    Returns `value` if it is computed from the text or parts instead of the label.
    """
    probabilities = _probabilities(row)
    computed = probabilities is None and row.get("evidence") not in (None, "", {}, "{}")
    if computed or criterion.sub_criteria:
        return value if criterion.ordered else None
    try:
        if probabilities:
            return criterion.expected_value(probabilities)
        return criterion.value_of(label)
    except (ValueError, TypeError, AttributeError):  # a label from a different scale
        return value


def _probabilities(row: Mapping[str, Any]) -> dict[str, Any] | None:
    value = row.get("probabilities")
    try:
        value = json.loads(value) if isinstance(value, str) else value
    except ValueError:
        return None
    numbers = value.values() if isinstance(value, dict) else ()
    valid = numbers and all(type(p) in (int, float) and 0 <= p <= 1 for p in numbers)
    return value if valid else None
