"""Read accepted values in any form: lists, mappings, numbers, ranges, booleans, text."""

from __future__ import annotations

import math
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from operator import add, mul, sub, truediv
from typing import Any

from agenteval.utility.labels import fold
from agenteval.utility.scale_words import is_not_applicable

LOWEST_KEYS, HIGHEST_KEYS = ("min", "minimum", "from", "start"), ("max", "maximum", "to", "end")
_NUMBER = r"-?\d+(?:\.\d+)?"
# Words around the two numbers of a range: "an integer from 1 (worst) to 5 (best)".
_AROUND = (
    r"(?:(?:an?|the|any|on|of|in|from|between|whole|positive|integers?|ints?|floats?|decimals?|real"
    r"|numbers?|numeric(?:al)?|scores?|ratings?|rated|scales?|ranges?|ranging|percentages?|percent"
    r"|likert|values?|points?|stars?|inclusive|best|worst|lowest|highest|low|high|poor|excellent"
    r"|perfect|being)\b|[\s%:()\[\]=])*"
)
_RANGE_TEXT = re.compile(
    rf"{_AROUND}({_NUMBER}){_AROUND}(?:-|–|\bto\b|\band\b|\.\.+){_AROUND}({_NUMBER}){_AROUND}"
    rf"|[(\[]?\s*({_NUMBER})\s*,\s*({_NUMBER})\s*[)\]]?",
    re.I,
)
_REMARK = re.compile(r"[,;(]?\s*\b(?:where|with)\b", re.I)  # "1-5, where 5 is the best"
_OPEN_ENDS = ("...", "…", "etc", "etc.", "and so on")
_SEPARATORS = (r"\s*\n\s*[-*•]?\s*", r"\s*;\s*", r"\s*\|\s*", r"\s*,\s*", r"\s*/\s*", r"\s+or\s+")
_LABEL_KEYS = ("label", "value", "level", "name", "grade", "rating", "score")
_TEXT_KEYS = ("description", "explanation", "meaning", "definition", "desc")
_SCHEMA_KEYS = ("levels", "values", "accepted_values", "enum", "options", "scale", "labels")
_SHORT = 40  # maximum characters of a text that is joined to a numbered label
_MOST_LEVELS = 12  # more consecutive integers are a numeric scale


@dataclass
class ReplyLevels:
    """Labels in their original order, their meanings, and whether "not applicable" was among them.

    A numeric scale has `bounds` (first and last number) instead of labels, and `written` is the
    surrounding text, which may say which end is the best.
    """

    labels: list[str] = field(default_factory=list)
    meanings: dict[str, str] = field(default_factory=dict)
    allow_na: bool = False
    bounds: tuple[float, float] | None = None
    written: str = ""
    notes: list[str] = field(default_factory=list)

    def add(self, label: str, meaning: str = "") -> None:
        """Add a label. N/A sets `allow_na`; a duplicate is noted and dropped."""
        label = " ".join(label.split())
        if not label:
            return
        if is_not_applicable(label):
            self.allow_na = True
            self.notes.append(f"{label!r} is not a level; read as allow_na")
        elif fold(label) in map(fold, self.labels):
            self.notes.append(f"the value {label!r} occurs twice")
        else:
            self.labels.append(label)
            if meaning.strip():
                self.meanings[label] = " ".join(meaning.split())


def read_levels(value: Any) -> ReplyLevels:
    """Read the accepted values in `value`. Raises ValueError with the reason if there are none."""
    levels = ReplyLevels()
    if isinstance(value, dict):
        if (inner := levels_in_schema(value)) is not None:
            return read_levels(inner)
        _from_mapping(value, levels)
    elif isinstance(value, list):
        single = value[0] if len(value) == 1 else None
        if isinstance(single, str) or (isinstance(single, dict | list) and not _label_of(single)):
            return read_levels(single)  # ["0-100%"], ["Yes/No"], [["poor", "good"]]
        if _open_ended(value):
            return read_levels(", ".join(map(str, value)))
        numbers = len(value) > _MOST_LEVELS and all(type(item) is int for item in value)
        if numbers and len({b - a for a, b in pairwise(value)}) == 1:
            levels.bounds = (float(value[0]), float(value[-1]))
        else:
            for item in value:
                _add_item(item, levels)
    elif isinstance(value, str):
        _from_text(value.strip(), levels)
    else:
        raise ValueError(f"its accepted values are {value!r}, not a list")
    if not levels.labels and levels.bounds is None:
        raise ValueError("it has no accepted values")
    return levels


def levels_in_schema(value: dict[str, Any]) -> Any:
    """Return the levels in a schema-like mapping: `{"levels": [...]}`, `{"type": "boolean"}`,
    `{"type": "integer", "minimum": 1, "maximum": 5}`. None if the mapping itself has the levels."""
    keyed = {str(key).strip().casefold(): item for key, item in value.items()}
    low, high = (
        next((keyed[key] for key in keys if key in keyed), None)
        for keys in (LOWEST_KEYS, HIGHEST_KEYS)
    )
    ends = keyed.get("range") if low is None and high is None else [low, high]
    pair = ends if isinstance(ends, list) and len(ends) == 2 else []
    if pair and all(re.fullmatch(_NUMBER, f"{end}") for end in pair):
        return f"{pair[0]} to {pair[1]}"
    if isinstance(ends, dict | str):
        return ends
    listed = (keyed[key] for key in _SCHEMA_KEYS if isinstance(keyed.get(key), list | dict | str))
    boolean = str(keyed.get("type")).casefold() in ("bool", "boolean")
    return next(listed, ["No", "Yes"] if boolean else None)


def _open_ended(items: Sequence[Any]) -> bool:
    return any(isinstance(item, str) and item.strip() in _OPEN_ENDS for item in items)


def _add_item(item: Any, levels: ReplyLevels) -> None:
    if item is None or isinstance(item, list):
        raise ValueError(f"{item!r} is no level")
    if not isinstance(item, dict):
        levels.add(str(item))
    elif (label := _label_of(item)) is not None:
        levels.add(label, _text_of(item))
    elif len(item) == 1:
        ((key, meaning),) = item.items()
        levels.add(*_label_and_meaning(key, meaning, short=len(str(meaning)) <= _SHORT))
    else:
        raise ValueError(f"the level {str(item)[:60]!r} has no label")


def _label_of(item: Any) -> str | None:
    keys = _LABEL_KEYS if isinstance(item, dict) else ()
    return next((str(item[k]) for k in keys if isinstance(item.get(k), str | int | float)), None)


def _text_of(item: dict[str, Any]) -> str:
    return next((item[k] for k in _TEXT_KEYS if isinstance(item.get(k), str)), "")


def _from_mapping(value: dict[str, Any], levels: ReplyLevels) -> None:
    pairs = list(value.items())
    points = [v for v in value.values() if isinstance(v, int | float) and not isinstance(v, bool)]
    if len(pairs) > 1 and len(points) == len(pairs):
        by_points = sorted(pairs, key=lambda pair: float(pair[1]))
        if by_points != pairs:
            levels.notes.append("ordered by the points of its levels")
        pairs = [(key, "") for key, _ in by_points]
    short = all(len(text) <= _SHORT for _, text in pairs if isinstance(text, str))
    for key, meaning in pairs:
        levels.add(*_label_and_meaning(key, meaning, short=short))


def _label_and_meaning(key: Any, meaning: Any, *, short: bool) -> tuple[str, str]:
    """Return label and meaning; if all texts are short, a numbered key is joined to its text."""
    key = str(key)
    if isinstance(meaning, dict):
        label = _label_of(meaning)
        numbered = label and re.fullmatch(r"\d+", key)
        return (f"{key} - {label}" if numbered else key), _text_of(meaning)
    text = meaning if isinstance(meaning, str) else ""
    if re.fullmatch(r"\d+", key.strip()) and text and short:
        return f"{key.strip()} - {text.strip()}", ""
    return key, text


def _from_text(text: str, levels: ReplyLevels) -> None:
    if is_not_applicable(text):
        raise ValueError("it has no accepted values")
    levels.bounds = _bounds(text)
    if levels.bounds is not None:
        levels.written = text
        return
    if re.search(r"^\[?(?:np\.|numpy\.|range\(|list\()|\sfor\s+\w+\s+in\s", text):
        raise ValueError(f"its accepted values are the code {text[:60]!r}")
    listed = re.fullmatch(rf"{_AROUND}[(\[]?\s*({_NUMBER}(?:\s*,.+))", text.strip("[](){} "), re.I)
    content = (listed[1] if listed else text).strip("[](){}")
    for separator in _SEPARATORS:
        parts = [part.strip(" '\"-*•") for part in re.split(separator, content)]
        if len(parts) > 1:
            break
    else:
        raise ValueError(f"its accepted values are the text {content[:60]!r}, not a list")
    if not _open_ended(parts):
        for part in parts:
            levels.add(part)
    elif re.fullmatch(_NUMBER, parts[0]) and re.fullmatch(_NUMBER, parts[-1]):
        levels.bounds = (float(parts[0]), float(parts[-1]))
    else:
        raise ValueError(f"its accepted values {content[:60]!r} have no end")


# ---------------------------------------------------------------- ranges, also written as code

_ARGUMENTS = r"(?P<name>range|arange|linspace)\((?P<args>[-\d.,\s]{1,60})\)"
_RUN = rf"(?:list\(|tuple\(|(?:np|numpy)\.array\(|\[)?(?:np\.|numpy\.)?{_ARGUMENTS}[)\]]?"
_RUN_CODE = re.compile(rf"{_RUN}(?:\.tolist\(\))?")
_EACH_CODE = re.compile(  # [x*0.1 for x in range(11)]
    r"\[(?:(?:str|int|float|round)\()?(?P<item>[a-z_]\w*)"
    r"(?:\s*(?P<sign>[-+*/])\s*(?P<by>\d+(?:\.\d+)?))?(?:,\s*\d+)?\)?"
    rf"\s+for\s+(?P=item)\s+in\s+{_RUN}\]"
)


def _bounds(text: str) -> tuple[float, float] | None:
    """Return the first and last number of a range in words, or of Python code that lists numbers in
    equal steps (parsed, never executed). None for anything else."""
    if match := _RANGE_TEXT.fullmatch(_REMARK.split(text, maxsplit=1)[0].strip()):
        low, high = (float(number) for number in match.groups() if number is not None)
        return low, high
    each = _EACH_CODE.fullmatch(text)
    code = each or _RUN_CODE.fullmatch(text)
    try:
        ends = code and _ends_of(code["name"], [float(n) for n in code["args"].split(",")])
    except ValueError:
        return None
    if not ends or each is None or each["by"] is None:
        return ends or None
    by = float(each["by"])
    if each["sign"] in "*/" and not by:
        return None
    change = {"+": add, "-": sub, "*": mul, "/": truediv}[each["sign"]]
    return round(change(ends[0], by), 9), round(change(ends[1], by), 9)


def _ends_of(function: str, args: list[float]) -> tuple[float, float] | None:
    """Return the first and last number of range, arange or linspace; None if fewer than two."""
    if function == "linspace":
        count = args[2] if len(args) == 3 else 50
        return (args[0], args[1]) if 2 <= len(args) <= 3 and count >= 2 else None
    if len(args) > 3:
        return None
    start, stop = (0.0, args[0]) if len(args) == 1 else args[:2]
    step = args[2] if len(args) == 3 else 1.0
    count = math.ceil(round((stop - start) / step, 9)) if step else 0
    return (start, round(start + step * (count - 1), 9)) if count >= 2 else None
