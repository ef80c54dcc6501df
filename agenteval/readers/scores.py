"""Ratings made elsewhere, by people or other tools: files of them, and logs, to a ScoreTable."""

from __future__ import annotations

import difflib
import json
import logging
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
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
    "run",
    "case",
    "system",
    "criterion",
    "repeat",
    "label",
    "value",
    "status",
    "success",
    "variant",
)
_KNOWN = {
    **{name: name for name in (*_COLUMNS, "rater")},
    "run_id": "run",
    "case_id": "case",
    "case_key": "case",
    "criterion_id": "criterion",
}
_MEANT = {"repetition": "repeat", "repetitions": "repeat", "rep": "repeat"}
_ALIKE = 0.8  # share of equal letters (difflib): one or two slips in a word
_LONGEST = 40  # characters of a name that is looked at
_STATUSES = (*get_args(ScoreStatus), *get_args(FailureStatus))
_ROUNDING = 0.005  # by which a value may differ from that of its label

_log = logging.getLogger(__name__)


def read_scores(
    path: str | Path, criteria: Sequence[Criterion] = (), *, rater: str | None = None
) -> ScoreTable:
    """Ratings of a CSV or Parquet file, of JSONL, or of a log of another tool (see `score_rows`).

    Fields: run and criterion are needed, and label or value unless the status says why there is
    none; case (default: the run), system, repeat (default 0), status (default "scored"), success,
    variant (default "original"). A value is a number in [0, 1]; a label is looked up in the
    criterion's accepted values, so `criteria` must be given when there are only labels. Where a
    value contradicts its label beside the criteria that define it, the label counts; one warning
    in the log says how many do. Rows of a sample that have no label yet are left alone. With
    `rater` only rows of that rater are read. Case, spacing and hyphens in the names of fields do
    not matter. Other fields are left alone; one whose name is almost that of a field which is
    missing is told of in the log.

    Of a log, criteria that are not among those given, and without them those of which a label has
    no value, are left out with a warning.

    Raises InputError naming file and line for a row that cannot be used: nothing is guessed.
    """
    file = Path(path)
    known = {c.id: c for c in criteria}
    builder = TableBuilder()
    seen: dict[tuple[Any, ...], str] = {}
    about: dict[str | None, tuple[Any, ...]] = {}
    against: list[str] = []
    unlabelled = 0
    scales = _own_scales(file, known)
    for where, row in score_rows(file, known):
        if rater is not None and row.get("rater") != rater:
            continue
        if waits_for_label(row):
            unlabelled += 1
            continue
        if str(row.get("criterion")) in scales and is_missing(row.get("label")):
            row |= {"label": row.get("value"), "value": None}
        texts, repeat, success, value = _read(row, known, where, against)
        key = (texts["run"], texts["criterion"], texts["variant"], repeat)
        if key in seen:
            raise InputError(
                f"run {key[0]!r} is rated twice on {key[1]!r} (repeat {repeat}, {key[2]}); "
                f"first at {seen[key]}",
                where,
            )
        seen[key] = where
        facts = (texts["case"], texts["system"], success)
        if about.setdefault(texts["run"], facts) != facts:
            raise InputError(
                f"run {texts['run']!r} has another case, system or success than in an earlier line",
                where,
            )
        builder.add(texts, repeat=repeat, success=success, value=value)
    if not seen:
        among = f" of rater {rater!r}" if rater is not None else ""
        among += f" ({unlabelled} rows wait for a label)" if unlabelled else ""
        raise InputError(f"there are no ratings{among} in this file", str(file))
    if against:
        _log.warning(
            "%s: %d of %d ratings have a value that contradicts their label; the label and the "
            "criteria count (first: %s)",
            file,
            len(against),
            len(seen),
            against[0],
        )
    return builder.table()


def _own_scales(file: Path, known: Mapping[str, Criterion]) -> set[str]:
    """Criteria that are rated by numbers of their own scale: a `value` lies outside 0 to 1."""
    if is_log(file) or all(c.numeric_range == (0.0, 1.0) for c in known.values()):
        return set()
    outside: set[str] = set()
    for _, row in score_rows(file, known):
        number, criterion = number_of(row.get("value")), known.get(str(row.get("criterion")))
        if number is not None and not 0 <= number <= 1 and criterion is not None:
            outside |= {criterion.id} if _on_scale(row["value"], criterion) else set()
    return outside


def waits_for_label(row: Mapping[str, Any]) -> bool:
    """Whether a row is of a sheet that people are filling in, and has no label yet."""
    return bool(row.get("sample")) and all(
        row.get(field) in (None, "") for field in ("label", "value", "status")
    )


def score_rows(
    file: Path, known: Mapping[str, Criterion] | None = None
) -> Iterator[tuple[str, dict[str, Any]]]:
    """Place and fields of every rating of a file, known fields by their own names.

    Read are tables (CSV, Parquet, Arrow) and JSON (lines or an array) with a row for each rating,
    or with a column for each scorer, as ragas and mlflow write them; logs of inspect and promptfoo.
    With `known` criteria (perhaps none), what of a log or of such columns cannot be used beside
    them is left out with a warning. Raises InputError.
    """
    notes = Notes()
    samples = log_samples(file, notes)
    items = _objects(split_table(file) or file_items(file, notes, finite=False))
    first = None if samples else next(items, None)
    if first is not None:
        items = chain([first], items)
        fields = set(_columns(tuple(first.value))[0].values())
        if "criterion" not in fields:
            wanted = {snake(name): c.id for c in (known or {}).values() for name in (c.name, c.id)}
            samples = scored_rows(items, wanted, file.stem)
        missing = " and ".join(sorted({"run", "criterion"} - fields))
        if missing and samples is None:
            problem = f"there is no column {missing}; known columns: {', '.join(_COLUMNS)}"
            raise InputError(problem, first.place)
    if samples is not None:
        rows = rating_rows(samples, str(file))
        yield from rows if known is None else _usable(list(rows), known, notes, str(file))
    else:
        yield from ((item.place, _fields_of(item)) for item in items)
    for text in notes.lines():
        _warn_once(text)


def _objects(items: Iterable[Item]) -> Iterator[Item]:
    """The objects of a file, those in arrays one by one. Raises InputError for another value."""
    for item in items:
        many = isinstance(item.value, list)
        for i, value in enumerate(item.value if many else [item.value]):
            part = Item(value, f"{item.place}[{i}]", i + 1) if many else item
            if not isinstance(value, dict):
                raise InputError("this is not a JSON object", part.place)
            yield from (replace(part, value=row) for row in public_ratings(value))


def _fields_of(item: Item) -> dict[str, Any]:
    """The fields of a rating by their own names, without blank ones; what stands for no label and
    no value stays, so that its rating is missing. Raises InputError."""
    row = _renamed(item.value, item.place)
    if item.cut_off:
        if is_missing(row.get("run")) or is_missing(row.get("criterion")):
            raise InputError("the row is cut off", item.place)
        row |= {"status": "unscored:missing", "label": None, "value": None}
    return {k: v for k, v in row.items() if v not in (None, "") or k in ("label", "value")}


def _usable(
    rows: list[tuple[str, dict[str, Any]]], known: Mapping[str, Criterion], notes: Notes, name: str
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The rows of a log that a table can hold. Raises InputError where there is none."""
    left: dict[str, str] = {}
    for _, row in rows:
        criterion, label = row["criterion"], row.get("label")
        if known and criterion not in known:
            left[criterion] = "is not among the criteria"
        elif not known and label is not None and "value" not in row:
            left.setdefault(
                criterion,
                f"has {label!r}, of which no value is known: criteria with its levels or its "
                "numeric_range tell (--criteria)",
            )
        elif known and label is not None and _on_scale(label, known[criterion]):
            row.pop("value", None)  # a 1 may be the worst of 1 to 5
    told = [f"criterion {name!r} is left out: it {why}" for name, why in left.items()]
    if all(row["criterion"] in left for _, row in rows):
        raise InputError("; ".join(told), name)
    for text in told:
        notes.add(text, name)
    yield from ((where, row) for where, row in rows if row["criterion"] not in left)


@lru_cache(maxsize=256)
def _columns(names: tuple[str, ...]) -> tuple[dict[str, str], tuple[str, ...]]:
    """The fields that `names` stand for, without regard to case, spacing or hyphens, and warnings.

    The known name wins over other spellings of it, which are told of. A name that is not known,
    but almost one that is missing, is told of as well; all others are left alone in silence.
    """
    fields = {name: _KNOWN[name] for name in names if name in _KNOWN}
    exact = set(fields.values())
    notes = []
    for name in names:
        meant = _KNOWN.get(snake(name)) if name not in fields and len(name) <= _LONGEST else None
        if meant is not None and meant in exact:
            notes.append(f"column {name!r} is not read; {meant!r} is")
        elif meant is not None:
            fields[name] = meant
    present = set(fields.values())
    for name in names:
        plain = snake(name)
        if name in fields or len(name) > _LONGEST or plain in EXPORT_COLUMNS or plain in _KNOWN:
            continue
        alike = difflib.get_close_matches(plain, _KNOWN, n=1, cutoff=_ALIKE)
        near = _MEANT.get(plain) or next(iter(alike), None)
        if near is not None and _KNOWN[near] not in present:
            notes.append(f"column {name!r} is not read; did you mean {near!r}?")
    return fields, tuple(notes)


def _renamed(row: dict[str, Any], where: str) -> dict[str, Any]:
    """The fields of a row that are known, by their own names, and all others as they are.

    Raises InputError when two names of one field hold different values.
    """
    fields, warnings = _columns(tuple(row))
    for text in warnings:
        _warn_once(text, where)
    result: dict[str, Any] = {}
    for key, value in row.items():
        name = fields.get(key, key)
        if result.setdefault(name, value) != value:
            raise InputError(f"the column {name} stands twice, with different values", where)
    return result


_warned: set[tuple[str, str]] = set()


def _warn_once(text: str, where: str = "") -> None:
    """A file is read once for each of its raters; what was said of it already is not repeated."""
    if (key := (where.rpartition(":")[0], text)) not in _warned:
        _warned.add(key)
        _log.warning("%s%s", f"{where}: " if where else "", text)


def _read(
    row: Mapping[str, Any], known: Mapping[str, Criterion], where: str, against: list[str]
) -> tuple[dict[str, str | None], int, bool | None, float | None]:
    run, criterion = _text(row, "run", where), _text(row, "criterion", where)
    if run is None or criterion is None:
        raise InputError("run and criterion are needed in every row", where)
    if known and criterion not in known:
        raise InputError(
            f"criterion {criterion!r} is not among the criteria: {', '.join(sorted(known))}", where
        )
    status = _text(row, "status", where) or "scored"
    label = _label(_text(row, "label", where), known.get(criterion))
    value = _value(row, label, known.get(criterion), where)
    if status == "scored" and value is not None and label is not None and criterion in known:
        meant = _meant(row, label, value, known[criterion])
        if meant is None or abs(meant - value) > _ROUNDING:
            own = "no value" if meant is None else f"{meant:.3g}"
            against.append(f"{where}: {label!r} has {own} on {criterion}, not {value:.3g}")
            value = meant
    if status not in _STATUSES:
        raise InputError(f"status {status!r} is none of: {', '.join(_STATUSES)}", where)
    if status == "scored" and value is None and label is None:
        status = "unscored:missing"
    if status == "unscored:missing" and not {"label", "value", "status"} & row.keys():
        raise InputError("a rating needs a label or a value, or a status that says why not", where)
    if status != "scored" and value is not None and (":" in status or status == "not_applicable"):
        raise InputError(f"status {status!r} and a value exclude each other", where)
    masses = _masses(row)
    texts = {
        "run": run,
        "case": _text(row, "case", where) or run,
        "system": _text(row, "system", where),
        "criterion": criterion,
        "variant": _text(row, "variant", where) or ORIGINAL,
        "status": status,
        "label": label,
        "probabilities": None if masses is None else canonical_json(masses),
    }
    return texts, _repeat(row, where), _success(row, where), value


def _text(row: Mapping[str, Any], field: str, where: str) -> str | None:
    value = row.get(field)
    if value is None or value == "":
        return None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise InputError(f"{field} is no text", where)
    return str(value)


def _value(
    row: Mapping[str, Any], label: str | None, criterion: Criterion | None, where: str
) -> float | None:
    given = row.get("value")
    if not is_missing(given):
        number = number_of(given)
        if number is None or not 0 <= number <= 1:
            raise InputError(
                f"value {shown(given)} is not a number from 0 (worst) to 1 (best)", where
            )
        return number
    if label is None:
        return None
    if criterion is None:
        raise InputError(
            "a label without a value: say which criteria these are (--criteria)", where
        )
    if criterion.numeric_range is not None:
        return _in_range(label, criterion, where)
    if criterion.accepted_values and label not in criterion.accepted_values:
        allowed = ", ".join(map(repr, criterion.accepted_values))
        raise InputError(f"{label!r} is not an accepted value of {criterion.id}: {allowed}", where)
    return criterion.value_of(label) if criterion.accepted_values else None


def _label(label: str | None, criterion: Criterion | None) -> str | None:
    """The accepted value that a label is, perhaps as another spelling of a number or, of two
    values, of yes and no; None for what stands for no value. Others are given back as they are."""
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
    """Whether a label is, or should be, on the scale of the criterion: of numbers, or a level."""
    is_level = _label(str(label), criterion) in criterion.accepted_values
    return is_level or criterion.numeric_range is not None


def _in_range(label: str, criterion: Criterion, where: str) -> float | None:
    """The value of a number on a numeric scale; None where it has no order."""
    try:
        number = number_of(label)
        value = criterion.value_of(label if number is None else f"{number:.12g}")
    except ValueError:
        value = math.nan
    if value is not None and not 0 <= value <= 1:
        worst, best = criterion.numeric_range or (0, 1)
        raise InputError(
            f"{label!r} is no number from {worst:g} to {best:g}, the range of {criterion.id}", where
        )
    return value


def _meant(row: Mapping[str, Any], label: str, value: float, criterion: Criterion) -> float | None:
    """The value that a label has, None without an order. A value that was not read off the label,
    computed from the text or from parts, is its own."""
    masses = _masses(row)
    computed = masses is None and row.get("evidence") not in (None, "", {}, "{}")
    if computed or criterion.sub_criteria:
        return value if criterion.ordered else None
    try:
        return criterion.expected_value(masses) if masses else criterion.value_of(label)
    except (ValueError, TypeError, AttributeError):  # another's label: nothing to contradict
        return value


def _masses(row: Mapping[str, Any]) -> dict[str, Any] | None:
    """The probabilities of the levels, as an object or its JSON; None for anything else."""
    masses = row.get("probabilities")
    try:
        masses = json.loads(masses) if isinstance(masses, str) else masses
    except ValueError:
        return None
    numbers = masses.values() if isinstance(masses, dict) else ()
    good = numbers and all(type(p) in (int, float) and 0 <= p <= 1 for p in numbers)
    return masses if good else None


def _repeat(row: Mapping[str, Any], where: str) -> int:
    given = row.get("repeat", 0)
    try:
        number = int(str(given))
    except ValueError:
        number = -1
    if isinstance(given, bool) or not 0 <= number < 100_000:
        raise InputError(f"repeat {given!r} is not a whole number from 0", where)
    return number


def _success(row: Mapping[str, Any], where: str) -> bool | None:
    given = row.get("success")
    return verdict(given, "success", where)
