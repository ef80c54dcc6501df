"""From a critic's reply to typed criteria, whatever shape the model chose.

Shapes read: a list of objects, a mapping of names to objects, either of them wrapped once, code
fences, Python literals, prose around, several objects one after another. One criterion that
cannot be read is named among the problems and loses none of the others.
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
from agenteval.utility.levels import _HIGHEST, _LOWEST, _schema, read_levels
from agenteval.utility.scale_order import Stated, settle, settle_range

OPERATORS = (
    "drop_sentences",
    "drop_words",
    "drop_answer",
    "drop_middle",
    "shuffle_sentences",
    "truncate",
    "swap_numbers",
    "pad",
)

_KEYS = {
    "name": ("name", "criterion", "title", "criterionname", "metric", "dimension", "id"),
    "description": ("description", "desc", "definition", "explanation", "details", "question"),
    "levels": (
        "acceptedvalues",
        "acceptedvalue",
        "values",
        "levels",
        "scalevalues",
        "options",
        "ratings",
        "grades",
        "possiblevalues",
        "allowedvalues",
        "labels",
        "rubric",
        "scoring",
        "ratingscale",
        "possiblescores",
        "scores",
        "likertscale",
        "measurement",
        "rating",
    ),
    "range": ("range", "numericrange", "scorerange", "valuerange"),
    "parts": ("subcriteria", "subcriterion", "children", "components", "parts"),
    "hint": ("hint", "guidance", "whattolookat", "evidence"),
    "allow_na": ("allowna", "notapplicable", "na"),
}
_WRAPPERS = (
    "criteria",
    "evaluationcriteria",
    "rubric",
    "items",
    "dimensions",
    "metrics",
    "result",
    "results",
    "output",
    "data",
    "response",
    "evaluation",
)
_ORDERS: dict[Stated, tuple[str, ...]] = {
    "worst_to_best": ("worst_to_best", "ascending", "worst_first", "low_to_high"),
    "best_to_worst": ("best_to_worst", "descending", "best_first", "high_to_low"),
}
_SCALES = (
    "",
    "ordinal",
    "nominal",
    "categorical",
    "binary",
    "numeric",
    "likert",
    "interval",
    "ratio",
    "continuous",
    "discrete",
)
# What may stand beside criteria and is none.
_ABOUT = (
    "task",
    "name",
    "title",
    "description",
    "note",
    "notes",
    "version",
    "schema",
    "id",
    "example",
    "explanation",
    "summary",
    "count",
    "order",
    "type",
)
_MAX_DEPTH = 4
_DIRECTIONS = get_args(Direction)
# Strings, and between them what is code and not JSON: numbers as keys, calls, comprehensions.
_CODE = re.compile(
    r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\''
    r"|(?P<before>[{,]\s*)(?P<key>-?\d+(?:\.\d+)?|True|False)(?=\s*:)"
    r"|(?P<code>(?:(?:np|numpy)(?:\.\w+)+|range|list|tuple|set)\((?:[^()\"\n]|\([^()\"\n]*\))*\)(?:\.tolist\(\))?"
    r"|\[[^\[\]\"{}\n]{1,80}\sfor\s+\w+\s+in\s[^\[\]\"{}\n]{1,80}\])"
)

# Levels on one line: bracketed, or bare up to the end of the line or of the object.
_LEVELS_AT = re.compile(
    r'(?P<key>"(?:accepted_?values|levels|scale|values|range|options)"\s*:\s*)'
    r'(?P<levels>\[[^\[\]{}\n]+(?:\]|(?=\}))|(?=[^\s"\[{(])[^\n{}\[\]]*?(?=,?\s*(?:[\n}]|,\s*"\w+"\s*:))'
    r'|\{[\d\s,]+\}|"[^"\n]*"(?=\s*(?:or|\|))[^\n}]*)',
    re.I,
)


@dataclass
class CriticReading:
    """The criteria that could be read, one line for each thing changed or lost, and the rung.

    `rung` is the step of the reply ladder, None when a value and not a text was read.
    """

    criteria: list[Criterion] = field(default_factory=list)
    problems: list[str] = field(default_factory=list)
    rung: str | None = None


def read_criteria(value_or_text: Any) -> CriticReading:
    """Criteria of a reply (text) or of a value already parsed (list or mapping).

    Raises ReplyError, with the first reason, when not one criterion can be read.
    """
    if isinstance(value_or_text, str):
        text = _CODE.sub(_quoted, value_or_text)
        value, rung = _parse_with_bare_levels(text)
        if text != value_or_text and rung in ("json", "fenced", "buried"):
            rung = "loose"
    else:
        value, rung = value_or_text, None
    entries = list(_entries(value))
    reading = CriticReading(rung=rung)
    if rung == "salvaged" and entries:
        lost, _ = entries.pop()  # the text ended in it: half a scale is another scale
        reading.problems.append(f"the reply broke off in {lost or 'a criterion'!r}, left out")
    _read_all(entries, reading.criteria, reading.problems)
    if not reading.criteria:
        reason = reading.problems[0] if reading.problems else "the reply holds no criteria"
        raise ReplyError(f"no criterion can be read: {reason}")
    return reading


def _quoted(piece: re.Match[str]) -> str:
    """Numbers as keys, and numbers written as code, as strings that JSON can hold."""
    if piece["code"]:
        return '"' + piece["code"] + '"'
    return f'{piece["before"]}"{piece["key"]}"' if piece["key"] else piece.group()


def _parse_with_bare_levels(text: str) -> tuple[Any, str]:
    """As `_parse`; levels that are no value (`[1, 2, ...]`, `0-100`) are taken as text, so that
    they cost their own criterion and not the reply. Raises ReplyError."""
    patched = _LEVELS_AT.sub(_as_text, text)
    try:
        value, rung = _parse(text)
    except ReplyError:
        if patched == text:
            raise
        value, rung = None, ""
    if patched == text or rung in ("json", "fenced"):
        return value, rung
    instead, _ = _parse(patched)
    if len(list(_entries(instead))) > len(list(_entries(value))):
        return instead, "loose"
    return value, rung


def _as_text(piece: re.Match[str]) -> str:
    """The key with its levels, these in quotation marks unless they are a value."""
    written = piece["levels"].strip()
    try:
        value = ast.literal_eval(re.sub(r"\b(?:null|true|false)\b", "None", written))
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        value = ...
    is_value = not isinstance(value, set) and ... not in (
        value if isinstance(value, list) else [value]
    )
    return piece.group() if is_value else piece["key"] + json.dumps(written)


def _parse(text: str) -> tuple[Any, str]:
    """The value in the text with most criteria; single ones in a row are taken together."""
    seen: list[tuple[int, Any]] = []

    def note(value: Any) -> bool:
        if count := len(list(_entries(value))):
            seen.append((count, value))
        return False

    try:
        parse_reply(text, note, last_counts=False, doubled=True)
    except ReplyError:
        if not seen:
            raise
    most = max(count for count, _ in seen)
    if most == 1:
        singles: dict[str, Any] = {}  # of one name the one met first, the last in the text
        for _, value in seen:
            name, raw = next(_entries(value))
            singles.setdefault(slug(name or str(raw)), {"name": name, **raw})
        if len(singles) > 1:
            return list(reversed(singles.values())), "buried"
    parsed = parse_reply(
        text, lambda v: len(list(_entries(v))) == most, last_counts=False, doubled=True
    )
    return parsed.value, parsed.rung


def _entries(value: Any, depth: int = 0) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, object) of everything in the value that looks like a criterion."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        yield from _with_unreadable(
            [
                (
                    str(_field(item, "name") or "") if isinstance(item, dict) else "",
                    item,
                    list(_entries(item, depth + 1)),
                )
                for item in value
            ]
        )
    elif isinstance(value, dict):
        name = _field(value, "name")
        if isinstance(name, str) and name.strip() and _looks_like_criterion(value):
            yield name.strip(), value
            return
        wrapped = next(
            (
                v
                for k, v in value.items()
                if _key(k) in _WRAPPERS
                and isinstance(v, list | dict)
                and any(_entries(v, depth + 1))
            ),
            None,
        )
        if wrapped is not None:
            yield from _entries(wrapped, depth + 1)
            return
        yield from _with_unreadable(
            [
                (str(name), item, list(_named(str(name), item, depth)))
                for name, item in value.items()
            ]
        )


def _with_unreadable(
    members: Sequence[tuple[str, Any, list[tuple[str, dict[str, Any]]]]],
) -> Iterator[tuple[str, dict[str, Any]]]:
    """The criteria of each member; one beside them that holds none is not passed over silently."""
    some = any(entries for _, _, entries in members)
    for name, item, entries in members:
        yield from entries
        if some and not entries and name.strip() and _key(name) not in _ABOUT:
            yield name.strip(), item if isinstance(item, dict) else {"accepted_values": item}


def _named(name: str, item: Any, depth: int) -> Iterator[tuple[str, dict[str, Any]]]:
    """A member of a mapping of names to criteria; `{"clarity": ["poor", "good"]}` is one, too."""
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


def _field(raw: dict[str, Any], what: str) -> Any:
    """The first alias of a field that is there and not null; aliases in order of preference."""
    by_key = {_key(k): v for k, v in raw.items()}
    return next((by_key[k] for k in _KEYS[what] if by_key.get(k) is not None), None)


def _levels_in(raw: dict[str, Any]) -> Any:
    """Its levels, also where they stand as a range, as the fields of a schema ("minimum"), or
    under `scale`, where that is not the name of a kind of scale."""
    written, scale, ends = _field(raw, "levels"), raw.get("scale"), _field(raw, "range")
    if written is None and ends is not None:
        return {"range": ends}
    if written is None and (isinstance(scale, list | dict) or _key(scale or "") not in _SCALES):
        return scale
    schema = {key: raw[key] for key in ("type", *_LOWEST, *_HIGHEST) if key in raw}
    return written if written is not None or not _schema(schema) else schema


def _looks_like_criterion(raw: dict[str, Any]) -> bool:
    levels = _levels_in(raw)
    holds_criteria = isinstance(levels, dict | list) and any(_entries(levels, _MAX_DEPTH - 1))
    return (levels is not None and not holds_criteria) or bool(_field(raw, "parts"))


def _read_all(
    entries: Sequence[tuple[str, dict[str, Any]]],
    into: list[Criterion],
    problems: list[str],
    depth: int = 0,
) -> None:
    for name, raw in entries:
        notes: list[str] = []
        try:
            into.append(_read_one(name, raw, notes, depth))
        except ValidationError as error:
            notes = [str(error.errors()[0]["msg"]).removeprefix("Value error, ")]
        except ValueError as error:
            notes = [f"left out: {error}"]
        problems.extend(f"{_title(name)}: {note}" for note in notes)


def _read_one(name: str, raw: dict[str, Any], notes: list[str], depth: int) -> Criterion:
    """One criterion. Raises ValueError with the reason when it has no usable scale."""
    if any(isinstance(value, Doubled) for value in raw.values()):
        raise ValueError("it stands twice with different content")
    description, hint = _field(raw, "description"), _field(raw, "hint")
    shown = _title(name)
    fields: dict[str, Any] = {
        "id": slug(shown),
        "name": shown,
        "description": " ".join(description.split()) if isinstance(description, str) else "",
        "hint": " ".join(hint.split()) if isinstance(hint, str) and hint.strip() else None,
        "allow_na": _field(raw, "allow_na") is True,
        "expect": _expected(raw.get("expect")),
    }
    if parts := _parts(raw, notes, depth):
        aggregation = "min" if raw.get("aggregation") == "min" else "mean"
        return Criterion(**fields, sub_criteria=parts, aggregation=aggregation)
    written = _levels_in(raw)
    if written is None:
        raise ValueError("it has no accepted values")
    levels = read_levels(written)
    notes.extend(levels.notes)
    fields["allow_na"] = fields["allow_na"] or levels.allow_na
    meanings = "; ".join(f"{label}: {text}" for label, text in levels.meanings.items())
    fields["hint"] = "; ".join(text for text in (fields["hint"], meanings) if text) or None
    order = re.sub(r"[^a-z]+", "_", str(raw.get("order")).lower()).strip("_")
    stated = next((way for way, names in _ORDERS.items() if order in names), None)
    kind = _key(raw.get("scale", raw.get("type")) or "")
    bounds = levels.bounds or (_two_numbers(levels.labels) if kind == "numeric" else None)
    if bounds is not None:
        if bounds[0] == bounds[1]:
            raise ValueError("its range has no extent")
        about = f"{fields['description']} {levels.written}"
        settled = settle_range(bounds, stated, name, about)
        fields["numeric_range"] = bounds[::-1] if settled.turned else bounds
    elif len(levels.labels) < 2:
        raise ValueError(
            f"it has {len(levels.labels)} accepted value(s); a scale needs at least two"
        )
    else:
        kinds = kind in ("nominal", "categorical")
        settled = settle(
            levels.labels,
            stated,
            name,
            kinds=kinds,
            description=fields["description"],
            meanings=levels.meanings,
        )
        fields["accepted_values"] = settled.values
    if settled.note:
        notes.append(settled.note)
    return Criterion(
        **fields, scale=settled.scale, order=settled.order, order_reason=settled.reason
    )


def _title(name: str) -> str:
    """A name for people: snake_case becomes words."""
    name = " ".join(name.replace("_", " ").split())
    return name[:1].upper() + name[1:]


def _expected(value: Any) -> dict[str, Any]:
    """Expected directions for the operators that are known; anything else is left out."""
    stated = {
        operator: said.get("direction") if isinstance(said, dict) else said
        for operator, said in (value if isinstance(value, dict) else {}).items()
    }
    return {op: said for op, said in stated.items() if op in OPERATORS and said in _DIRECTIONS}


def _parts(raw: dict[str, Any], notes: list[str], depth: int) -> tuple[Criterion, ...]:
    """Sub-criteria, as a list or a mapping of names, with ids that differ."""
    written = _field(raw, "parts")
    if not written or depth >= _MAX_DEPTH:
        return ()
    parts: list[Criterion] = []
    _read_all(list(_entries(written)), parts, notes, depth + 1)
    if not parts:
        notes.append("none of its sub-criteria can be read")
    named: dict[str, Criterion] = {}
    for part in parts:
        own, number = part.id, 2
        while own in named:
            own, number = f"{part.id}-{number}", number + 1
        named[own] = part if own == part.id else part.model_copy(update={"id": own})
    return tuple(named.values())


def _two_numbers(labels: Sequence[str]) -> tuple[float, float] | None:
    try:
        low, high = map(float, labels)
    except ValueError:
        return None
    return (low, high) if low != high else None


# ---------------------------------------------------------------- harmless to show

NAME, DESCRIPTION, LEVEL, HINT = 120, 1000, 300, 3000  # characters that are shown to a judge
MOST = 40  # criteria, and parts of a criterion


def tamed(criteria: Sequence[Criterion], problems: list[str]) -> list[Criterion]:
    """What a model proposed, bounded in length and harmless as text for the models that follow.

    A critic that saw the work of a system may repeat what stands in it, and its words become part
    of the prompt of every later judge. Texts are cut to a length, kept on one line and neutralised;
    what was cut or left out is added to `problems`. A criterion whose levels are the same after the
    cut is left out: half a level is another level.
    """
    kept: list[Criterion] = []
    for criterion in criteria[:MOST]:
        texts = {
            "name": _cut(criterion.name, NAME),
            "description": _cut(criterion.description, DESCRIPTION),
            "hint": None if criterion.hint is None else _cut(criterion.hint, HINT),
        }
        levels = tuple(_cut(value, LEVEL) for value in criterion.accepted_values)
        name = texts["name"]
        if len({level.casefold() for level in levels}) < len(levels) or not all(levels):
            why = f"its levels cannot be told apart when cut to {LEVEL}"
            problems.append(f"{name}: left out: {why}")
            continue
        limits = [
            (criterion.name, NAME),
            (criterion.description, DESCRIPTION),
            (criterion.hint or "", HINT),
        ]
        limits += [(level, LEVEL) for level in criterion.accepted_values]
        if any(len(text) > most for text, most in limits):
            problems.append(f"{name}: texts were cut: too long to be shown")
        parts = tuple(tamed(criterion.sub_criteria, problems))
        if parts or not criterion.sub_criteria:
            changes = {**texts, "accepted_values": levels, "sub_criteria": parts}
            kept.append(criterion.model_copy(update=changes))
    if len(criteria) > MOST:
        problems.append(f"{len(criteria) - MOST} criteria beyond the first {MOST} were left out")
    return kept


def _cut(text: str, most: int) -> str:
    shown = one_line(text)
    return shown if len(shown) <= most else shown[: most - 2].rstrip() + " …"
