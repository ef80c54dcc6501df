"""From a critic's reply to typed criteria, whatever shape the model chose.

Shapes read: a list of objects, a mapping of names to objects, either of them wrapped once, code
fences, Python literals, prose around, several objects one after another. One criterion that
cannot be read is named among the problems and loses none of the others.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, get_args

from pydantic import ValidationError

from agenteval.errors import ReplyError
from agenteval.evaluators.utility.levels import Levels, read_levels
from agenteval.evaluators.utility.scale_order import Stated, settle, settle_range
from agenteval.models.jsonish import Doubled
from agenteval.models.reply import parse_reply
from agenteval.records import Criterion, Direction, slug

OPERATORS = ("drop_sentences", "drop_words", "drop_answer", "drop_middle", "shuffle_sentences",
             "truncate", "swap_numbers", "pad")  # fmt: skip

_KEYS = {
    "name": ("name", "criterion", "title", "criterionname", "metric", "dimension", "id"),
    "description": ("description", "desc", "definition", "explanation", "details", "question"),
    "levels": ("acceptedvalues", "acceptedvalue", "values", "levels", "scalevalues", "options",
               "ratings", "grades", "possiblevalues", "allowedvalues", "labels", "rubric", "range",
               "numericrange"),
    "parts": ("subcriteria", "subcriterion", "children", "components", "parts"),
    "hint": ("hint", "guidance", "whattolookat", "evidence"),
    "allow_na": ("allowna", "notapplicable", "na"),
}  # fmt: skip
_WRAPPERS = ("criteria", "evaluationcriteria", "rubric", "items", "dimensions", "metrics", "result",
             "results", "output", "data", "response", "evaluation")  # fmt: skip
_BEST_FIRST = ("best_to_worst", "descending", "best_first", "high_to_low")
_WORST_FIRST = ("worst_to_best", "ascending", "worst_first", "low_to_high")
_MAX_DEPTH = 4
# Strings, and between them what is code and not JSON: numbers as keys, calls, comprehensions.
_CODE = re.compile(
    r'"(?:[^"\\]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\''
    r"|(?P<before>[{,]\s*)(?P<key>-?\d+(?:\.\d+)?|True|False)(?=\s*:)"
    r"|(?P<code>(?:(?:np|numpy)(?:\.\w+)+|range|list|tuple|set)\((?:[^()\"\n]|\([^()\"\n]*\))*\)(?:\.tolist\(\))?"
    r"|\[[^\[\]\"{}\n]{1,80}\sfor\s+\w+\s+in\s[^\[\]\"{}\n]{1,80}\])"
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
        value, rung = _parse(text)
        if text != value_or_text and rung in ("json", "fenced", "buried"):
            rung = "loose"
    else:
        value, rung = value_or_text, None
    entries = list(_entries(value))
    reading = CriticReading(rung=rung)
    if rung == "salvaged" and entries:
        lost, _ = entries.pop()  # the text ended in it: half a scale is another scale
        reading.problems.append(f"the reply broke off in {lost or 'a criterion'!r}, left out")
    _read_all(entries, reading.criteria, reading.problems, depth=0)
    if not reading.criteria:
        reason = reading.problems[0] if reading.problems else "the reply holds no criteria"
        raise ReplyError(f"no criterion can be read: {reason}")
    return reading


def _quoted(piece: re.Match[str]) -> str:
    """Numbers as keys, and numbers written as code, as strings that JSON can hold."""
    if piece["code"]:
        return '"' + piece["code"] + '"'
    return f'{piece["before"]}"{piece["key"]}"' if piece["key"] else piece.group()


def _parse(text: str) -> tuple[Any, str]:
    """The value in the text with most criteria; single ones in a row are taken together."""
    seen: list[tuple[int, Any]] = []

    def note(value: Any) -> bool:
        if (count := sum(1 for _ in _entries(value))) > 0:
            seen.append((count, value))
        return False

    try:
        parse_reply(text, note, last_counts=False, doubled=True)
    except ReplyError as error:
        if not seen:
            raise
        most = max(count for count, _ in seen)
        singles = _distinct([v for _, v in seen]) if most == 1 else []
        if len(singles) > 1:
            return list(reversed(singles)), "buried"
        wanted: Callable[[Any], bool] = lambda v: sum(1 for _ in _entries(v)) == most  # noqa: E731
        try:
            parsed = parse_reply(text, wanted, last_counts=False, doubled=True)
        except ReplyError:  # cannot be: `most` was counted on the same values
            raise error from None
        return parsed.value, parsed.rung
    raise AssertionError("note() accepts nothing")


def _distinct(values: list[Any]) -> list[Any]:
    """Values whose criteria have different names, the one met first (the last in the text)."""
    kept: dict[str, Any] = {}
    for value in values:
        name, raw = next(_entries(value))
        kept.setdefault(slug(name or str(raw)), {"name": name, **raw})
    return list(kept.values())


def _entries(value: Any, depth: int = 0) -> Iterator[tuple[str, dict[str, Any]]]:
    """(name, object) of everything in the value that looks like a criterion."""
    if depth > _MAX_DEPTH:
        return
    if isinstance(value, list):
        for item in value:
            yield from _entries(item, depth + 1)
    elif isinstance(value, dict):
        if _looks_like_criterion(value) and (name := _name_of(value)):
            yield name, value
            return
        wrapped = next((v for k, v in value.items() if _key(k) in _WRAPPERS
                        and isinstance(v, list | dict) and any(_entries(v, depth + 1))),
                       None)  # fmt: skip
        if wrapped is not None:
            yield from _entries(wrapped, depth + 1)
            return
        for name, item in value.items():
            yield from _named(str(name), item, depth)


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


def _looks_like_criterion(raw: dict[str, Any]) -> bool:
    found = _field(raw, "levels")
    if found is None and isinstance(raw.get("scale"), list | dict):
        found = raw["scale"]
    holds_criteria = isinstance(found, dict | list) and any(_entries(found, _MAX_DEPTH - 1))
    return (found is not None and not holds_criteria) or bool(_field(raw, "parts"))


def _name_of(raw: dict[str, Any]) -> str | None:
    name = _field(raw, "name")
    return name.strip() if isinstance(name, str) and name.strip() else None


def _read_all(
    entries: list[tuple[str, dict[str, Any]]],
    into: list[Criterion],
    problems: list[str],
    depth: int,
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
    shared = _shared(name, raw)
    parts = _parts(raw, notes, depth)
    if parts:
        aggregation = "min" if raw.get("aggregation") == "min" else "mean"
        return Criterion(**shared, sub_criteria=tuple(parts), aggregation=aggregation)
    found = _field(raw, "levels")
    if found is None and isinstance(raw.get("scale"), list | dict):
        found = raw["scale"]
    if found is None:
        raise ValueError("it has no accepted values")
    levels = read_levels(found)
    notes.extend(levels.notes)
    shared["allow_na"] = bool(shared["allow_na"]) or levels.allow_na
    kind = _key(raw.get("scale", raw.get("type")) or "")
    if bounds := _bounds(levels, kind):
        settled = settle_range(bounds, _stated_order(raw), name)
        shared["numeric_range"] = bounds[::-1] if settled.turned else bounds
    elif len(levels.labels) < 2:
        raise ValueError(
            f"it has {len(levels.labels)} accepted value(s); a scale needs at least two"
        )
    else:
        kinds = kind in ("nominal", "categorical")
        settled = settle(levels.labels, _stated_order(raw), name, kinds=kinds)
        shared["accepted_values"] = settled.values
    if settled.note:
        notes.append(settled.note)
    meanings = "; ".join(f"{label}: {text}" for label, text in levels.meanings.items())
    shared["hint"] = "; ".join(t for t in (shared["hint"], meanings) if t) or None
    return Criterion(
        **shared, scale=settled.scale, order=settled.order, order_reason=settled.reason
    )


def _shared(name: str, raw: dict[str, Any]) -> dict[str, Any]:
    description, hint = _field(raw, "description"), _field(raw, "hint")
    shown = _title(name)
    return {
        "id": slug(shown),
        "name": shown,
        "description": " ".join(description.split()) if isinstance(description, str) else "",
        "hint": " ".join(hint.split()) if isinstance(hint, str) and hint.strip() else None,
        "allow_na": _field(raw, "allow_na") is True,
        "expect": _expect(raw.get("expect")),
    }


def _title(name: str) -> str:
    """A name for people: snake_case becomes words."""
    name = " ".join(name.replace("_", " ").split())
    return name[:1].upper() + name[1:]


def _expect(value: Any) -> dict[str, Direction]:
    """Expected directions for the operators that are known; anything else is left out."""
    if not isinstance(value, dict):
        return {}
    allowed: tuple[Direction, ...] = get_args(Direction)
    found: dict[str, Direction] = {}
    for operator, said in value.items():
        said = said.get("direction") if isinstance(said, dict) else said
        for direction in allowed:
            if operator in OPERATORS and said == direction:
                found[operator] = direction
    return found


def _parts(raw: dict[str, Any], notes: list[str], depth: int) -> list[Criterion]:
    """Sub-criteria, as a list or a mapping of names, with ids that differ."""
    found = _field(raw, "parts")
    if not found or depth >= _MAX_DEPTH:
        return []
    parts: list[Criterion] = []
    _read_all(list(_entries(found)), parts, notes, depth + 1)
    if not parts:
        notes.append("none of its sub-criteria can be read")
    ids: set[str] = set()
    for at, part in enumerate(parts):
        number, own = 2, part.id
        while own in ids:
            own, number = f"{part.id}-{number}", number + 1
        ids.add(own)
        parts[at] = part if own == part.id else part.model_copy(update={"id": own})
    return parts


def _stated_order(raw: dict[str, Any]) -> Stated | None:
    order = re.sub(r"[^a-z]+", "_", str(raw.get("order")).lower()).strip("_")
    if order in _WORST_FIRST:
        return "worst_to_best"
    return "best_to_worst" if order in _BEST_FIRST else None


def _bounds(levels: Levels, stated: str) -> tuple[float, float] | None:
    if levels.bounds is not None:
        if levels.bounds[0] == levels.bounds[1]:
            raise ValueError("its range has no extent")
        return levels.bounds
    if stated != "numeric" or len(levels.labels) != 2:
        return None
    try:
        low, high = (float(label) for label in levels.labels)
    except ValueError:
        return None
    return (low, high) if low != high else None
