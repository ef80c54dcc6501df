"""Read typed criteria from a critic's reply, in any of the shapes that models produce.

Accepted shapes: a list of objects, a mapping of names to objects, either of them wrapped once, in
code fences, as Python literals, within prose, or as several objects in a row. A criterion that
cannot be read is listed in the problems and does not affect the others.
"""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, get_args

from pydantic import ValidationError

from agenteval.errors import ReplyError
from agenteval.models.jsonish import Doubled
from agenteval.models.prompts import one_line
from agenteval.models.reply import parse_reply
from agenteval.records import Criterion, Direction, slug
from agenteval.utility.labels import reply_words, words
from agenteval.utility.levels import HIGHEST_KEYS, LOWEST_KEYS, levels_in_schema, read_levels
from agenteval.utility.scale_order import Stated, settle, settle_range

CRITIC_OPERATORS = words(
    "drop_sentences drop_words drop_answer drop_middle shuffle_sentences truncate swap_numbers pad"
)
NAME, DESCRIPTION, LEVEL, HINT = 120, 1000, 300, 3000  # maximum characters shown to a judge
MOST = 40  # criteria in a list, and parts of a criterion

_KEYS = reply_words("critic fields")
_WORDS = reply_words("critic")
_ORDERS: dict[str, Stated] = {
    **dict.fromkeys(_WORDS["worst first"], "worst_to_best"),
    **dict.fromkeys(_WORDS["best first"], "best_to_worst"),
}
_MAX_DEPTH = 4
_DIRECTIONS = get_args(Direction)
# Strings, and code between them that is not JSON: numbers as keys, calls, comprehensions.
_CODE = re.compile(
    r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\''
    r"|(?P<before>[{,]\s*)(?P<key>-?\d+(?:\.\d+)?|True|False)(?=\s*:)"
    r"|(?P<code>(?:(?:np|numpy)(?:\.\w+)+|range|list|tuple|set)\((?:[^()\"\n]|\([^()\"\n]*\))*\)(?:\.tolist\(\))?"
    r"|\[[^\[\]\"{}\n]{1,80}\sfor\s+\w+\s+in\s[^\[\]\"{}\n]{1,80}\])"
)
# Levels on one line: in brackets, or up to the end of the line or object.
_LEVELS_AT = re.compile(
    r'(?P<key>"(?:accepted_?values|levels|scale|values|range|options)"\s*:\s*)'
    r'(?P<levels>\[[^\[\]{}\n]+(?:\]|(?=\}))|(?=[^\s"\[{(])[^\n{}\[\]]*?(?=,?\s*(?:[\n}]|,\s*"\w+"\s*:))'
    r'|\{[\d\s,]+\}|"[^"\n]*"(?=\s*(?:or|\|))[^\n}]*)',
    re.I,
)

_Entry = tuple[str, dict[str, Any]]  # name and object of a possible criterion


@dataclass
class CriticReading:
    """The criteria that could be read, and one problem for each change or loss.

    `rung` is the parsing step that succeeded, None if the input was already parsed.
    """

    criteria: list[Criterion] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    rung: str | None = None


def read_criteria(value_or_text: Any) -> CriticReading:
    """Read the criteria of a reply (text) or of a parsed value (list or mapping).

    Raises ReplyError with the first problem if no criterion can be read.
    """
    value, reading = value_or_text, CriticReading()
    if isinstance(value, str):
        text = _CODE.sub(_quoted_code, value)
        value, reading.rung = _parse_with_bare_levels(text)
        if text != value_or_text and reading.rung in ("json", "fenced", "buried"):
            reading.rung = "loose"
    entries = list(_entries(value))
    if reading.rung == "salvaged" and entries:
        lost, _ = entries.pop()  # the text broke off here; half a scale is a different scale
        reading.problems.append(f"the reply broke off in {lost or 'a criterion'!r}, left out")
    reading.criteria = _read_all(entries, reading.problems)
    if not reading.criteria:
        reason = reading.problems[0] if reading.problems else "the reply holds no criteria"
        raise ReplyError(f"no criterion can be read: {reason}")
    return reading


# ---------------------------------------------------------------- from text to a value


def _quoted_code(match: re.Match[str]) -> str:
    """Quote numeric keys and code, so that the text is valid JSON."""
    if match["code"]:
        return f'"{match["code"]}"'
    return f'{match["before"]}"{match["key"]}"' if match["key"] else match.group()


def _parse_with_bare_levels(text: str) -> tuple[Any, str]:
    """Like `_parse`, but read malformed levels (`[1, 2, ...]`, `0-100`) as text, so that they
    invalidate their criterion and not the reply. Raises ReplyError."""
    patched = _LEVELS_AT.sub(_levels_as_text, text)
    try:
        value, rung = _parse(text)
    except ReplyError:
        if patched == text:
            raise
        value, rung = None, ""
    if patched == text or rung in ("json", "fenced"):
        return value, rung
    instead, _ = _parse(patched)
    more = len(list(_entries(instead))) > len(list(_entries(value)))
    return (instead, "loose") if more else (value, rung)


def _levels_as_text(match: re.Match[str]) -> str:
    """Return the key with its levels; levels that are not a literal are quoted."""
    levels = match["levels"].strip()
    try:
        value = ast.literal_eval(re.sub(r"\b(?:null|true|false)\b", "None", levels))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = ...
    items = value if isinstance(value, list) else [value]
    if isinstance(value, set) or ... in items:
        return match["key"] + json.dumps(levels)
    return match.group()


def _parse(text: str) -> tuple[Any, str]:
    """Return the value with the most criteria; consecutive single criteria are joined."""
    seen: list[list[_Entry]] = []

    def note(value: Any) -> bool:
        if entries := list(_entries(value)):
            seen.append(entries)
        return False

    try:
        parse_reply(text, note, last_counts=False, doubled=True)
    except ReplyError:
        if not seen:
            raise
    most = max(map(len, seen))
    if most == 1:
        singles: dict[str, Any] = {}  # by name; the last in the text is seen first and wins
        for ((name, raw),) in seen:
            singles.setdefault(slug(name or str(raw)), {"name": name, **raw})
        if len(singles) > 1:
            return list(reversed(singles.values())), "buried"
    parsed = parse_reply(
        text, lambda v: len(list(_entries(v))) == most, last_counts=False, doubled=True
    )
    return parsed.value, parsed.rung


# ---------------------------------------------------------------- from a value to entries


def _entries(value: Any, depth: int = 0) -> Iterator[_Entry]:
    """Yield (name, object) for everything in the value that looks like a criterion."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        yield from _with_unreadable(
            (
                str(_field(item, "name") or "") if isinstance(item, dict) else "",
                item,
                list(_entries(item, depth + 1)),
            )
            for item in value
        )
    elif isinstance(value, dict):
        name = _field(value, "name")
        if isinstance(name, str) and name.strip() and _looks_like_criterion(value):
            yield name.strip(), value
            return
        wrapped = (
            v
            for k, v in value.items()
            if _key(k) in _WORDS["wrappers"] and isinstance(v, list | dict)
        )
        if inner := next(filter(None, (list(_entries(v, depth + 1)) for v in wrapped)), None):
            yield from inner
            return
        yield from _with_unreadable(
            (str(name), item, list(_named(str(name), item, depth))) for name, item in value.items()
        )


def _with_unreadable(members: Iterator[tuple[str, Any, list[_Entry]]]) -> Iterator[_Entry]:
    """Yield the criteria of each member, and members without criteria, so that none is lost."""
    listed = list(members)
    some = any(entries for _, _, entries in listed)
    for name, item, entries in listed:
        yield from entries
        if some and not entries and name.strip() and _key(name) not in _WORDS["beside"]:
            yield name.strip(), item if isinstance(item, dict) else {"accepted_values": item}


def _named(name: str, item: Any, depth: int) -> Iterator[_Entry]:
    """Yield the criteria of one key; `{"clarity": ["poor", "good"]}` is also a criterion."""
    if isinstance(item, Doubled) and any(any(_named(name, v, depth)) for v in item.values):
        yield name, {"accepted_values": item}
    elif isinstance(item, dict) and (_looks_like_criterion(item) or _field(item, "description")):
        yield name, item
    elif isinstance(item, list) and len(item) > 1 and all(isinstance(i, str) for i in item):
        if _key(name) not in _KEYS["levels"]:  # the levels of a criterion without a name
            yield name, {"accepted_values": item}
    elif isinstance(item, dict | list):
        yield from _entries(item, depth + 1)


def _key(name: Any) -> str:
    return re.sub(r"[^a-z0-9]", "", str(name).lower())


def _field(raw: dict[str, Any], name: str) -> Any:
    """Return the value of the first alias of a field that is present and not null."""
    by_key = {_key(k): v for k, v in raw.items()}
    return next((by_key[k] for k in _KEYS[name] if by_key.get(k) is not None), None)


def _levels_of(raw: dict[str, Any]) -> Any:
    """Return the levels: a list, a range, schema fields ("minimum"), or the value of `scale` unless
    that names a kind of scale."""
    levels, scale, ends = _field(raw, "levels"), raw.get("scale"), _field(raw, "range")
    if levels is not None:
        return levels
    if ends is not None:
        return {"range": ends}
    if isinstance(scale, list | dict) or _key(scale or "") not in ("", *_WORDS["scales"]):
        return scale
    schema = {key: raw[key] for key in ("type", *LOWEST_KEYS, *HIGHEST_KEYS) if key in raw}
    return schema if levels_in_schema(schema) else None


def _looks_like_criterion(raw: dict[str, Any]) -> bool:
    levels = _levels_of(raw)
    holds_criteria = isinstance(levels, dict | list) and any(_entries(levels, _MAX_DEPTH - 1))
    return (levels is not None and not holds_criteria) or bool(_field(raw, "parts"))


# ---------------------------------------------------------------- from entries to criteria


def _read_all(entries: Sequence[_Entry], problems: list[str], depth: int = 0) -> list[Criterion]:
    criteria = []
    for name, raw in entries:
        notes: list[str] = []
        try:
            criteria.append(_read_one(name, raw, notes, depth))
        except ValidationError as error:
            notes = [str(error.errors()[0]["msg"]).removeprefix("Value error, ")]
        except ValueError as error:
            notes = [f"left out: {error}"]
        problems.extend(f"{_title(name)}: {note}" for note in notes)
    return criteria


def _read_one(name: str, raw: dict[str, Any], notes: list[str], depth: int) -> Criterion:
    """Return one criterion. Raises ValueError with the reason if it has no usable scale."""
    if any(isinstance(value, Doubled) for value in raw.values()):
        raise ValueError("it stands twice with different content")
    description, hint = (
        " ".join(text.split()) if isinstance(text, str) else ""
        for text in (_field(raw, "description"), _field(raw, "hint"))
    )
    title = _title(name)
    fields: dict[str, Any] = {
        "id": slug(title),
        "name": title,
        "description": description,
        "hint": hint or None,
        "allow_na": _field(raw, "allow_na") is True,
        "expect": _expected(raw.get("expect")),
    }
    if parts := _parts(raw, notes, depth):
        aggregation = "min" if raw.get("aggregation") == "min" else "mean"
        return Criterion(**fields, sub_criteria=parts, aggregation=aggregation)
    written = _levels_of(raw)
    if written is None:
        raise ValueError("it has no accepted values")
    levels = read_levels(written)
    notes.extend(levels.notes)
    fields["allow_na"] = fields["allow_na"] or levels.allow_na
    meanings = "; ".join(f"{label}: {text}" for label, text in levels.meanings.items())
    fields["hint"] = "; ".join(filter(None, (hint, meanings))) or None
    stated = _ORDERS.get(re.sub(r"[^a-z]+", "_", str(raw.get("order")).lower()).strip("_"))
    kind = _key(raw.get("scale", raw.get("type")) or "")
    bounds = levels.bounds or (_two_numbers(levels.labels) if kind == "numeric" else None)
    if bounds is not None:
        if bounds[0] == bounds[1]:
            raise ValueError("its range has no extent")
        settled = settle_range(bounds, stated, name, f"{description} {levels.written}")
        fields["numeric_range"] = bounds[::-1] if settled.turned else bounds
    elif len(levels.labels) < 2:
        count = len(levels.labels)
        raise ValueError(f"it has {count} accepted value(s); a scale needs at least two")
    else:
        settled = settle(
            levels.labels,
            stated,
            name,
            kinds=kind in ("nominal", "categorical"),
            description=description,
            meanings=levels.meanings,
        )
        fields["accepted_values"] = settled.values
    if settled.note:
        notes.append(settled.note)
    return Criterion(
        **fields, scale=settled.scale, order=settled.order, order_reason=settled.reason
    )


def _title(name: str) -> str:
    """Return a readable name: snake_case becomes words."""
    name = " ".join(name.replace("_", " ").split())
    return name[:1].upper() + name[1:]


def _expected(stated: Any) -> dict[str, Any]:
    """Return the expected directions of known operators."""
    expected = {}
    for operator, entry in (stated if isinstance(stated, dict) else {}).items():
        direction = entry.get("direction") if isinstance(entry, dict) else entry
        if operator in CRITIC_OPERATORS and direction in _DIRECTIONS:
            expected[operator] = direction
    return expected


def _parts(raw: dict[str, Any], notes: list[str], depth: int) -> tuple[Criterion, ...]:
    """Read sub-criteria from a list or a mapping of names; their ids are unique."""
    written = _field(raw, "parts")
    if not written or depth >= _MAX_DEPTH:
        return ()
    parts = _read_all(list(_entries(written)), notes, depth + 1)
    if not parts:
        notes.append("none of its sub-criteria can be read")
    return tuple(with_unique_ids(parts))


def with_unique_ids(
    criteria: Sequence[Criterion], reserved: frozenset[str] = frozenset()
) -> list[Criterion]:
    """Make duplicate ids unique with the next free number: clarity, clarity-2, clarity-3.

    A numbered id is never one of `reserved`.
    """
    unique: dict[str, Criterion] = {}
    for criterion in criteria:
        name, number = criterion.id, 2
        while name in unique or (name in reserved and name != criterion.id):
            name, number = f"{criterion.id}-{number}", number + 1
        renamed = name != criterion.id
        unique[name] = criterion.model_copy(update={"id": name}) if renamed else criterion
    return list(unique.values())


def _two_numbers(labels: Sequence[str]) -> tuple[float, float] | None:
    try:
        low, high = map(float, labels)
    except ValueError:
        return None
    return (low, high) if low != high else None


# ---------------------------------------------------------------- sanitizing


def sanitized(criteria: Sequence[Criterion], problems: list[str]) -> list[Criterion]:
    """Limit the length of proposed texts and make them safe to show to later judges.

    A critic that saw a system's work may quote it, and its words become part of every later
    judge's prompt. Texts are truncated, put on one line and neutralised; changes are added to
    `problems`. A criterion is dropped if two of its levels are equal after truncation.
    """
    safe: list[Criterion] = []
    limits = {"name": NAME, "description": DESCRIPTION, "hint": HINT}
    for criterion in criteria[:MOST]:
        texts = {key: text for key in limits if (text := getattr(criterion, key)) is not None}
        changes: dict[str, Any] = {key: _cut(text, limits[key]) for key, text in texts.items()}
        levels = tuple(_cut(value, LEVEL) for value in criterion.accepted_values)
        if len({level.casefold() for level in levels}) < len(levels) or not all(levels):
            why = f"its levels are not distinct after truncation to {LEVEL} characters"
            problems.append(f"{changes['name']}: left out: {why}")
            continue
        long = any(len(text) > limits[key] for key, text in texts.items())
        if long or any(len(level) > LEVEL for level in criterion.accepted_values):
            problems.append(f"{changes['name']}: long texts were shortened")
        parts = tuple(sanitized(criterion.sub_criteria, problems))
        if parts or not criterion.sub_criteria:
            changes |= {"accepted_values": levels, "sub_criteria": parts}
            safe.append(criterion.model_copy(update=changes))
    if len(criteria) > MOST:
        problems.append(f"{len(criteria) - MOST} criteria beyond the first {MOST} were dropped")
    return safe


def _cut(text: str, most: int) -> str:
    shown = one_line(text)
    return shown if len(shown) <= most else shown[: most - 2].rstrip() + " …"
