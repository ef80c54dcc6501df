"""Accepted values as critics write them: lists, mappings, numbers, ranges, booleans, text."""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from itertools import pairwise
from operator import add, mul, sub, truediv
from typing import Any

from agenteval.evaluators.utility.labels import fold
from agenteval.evaluators.utility.scale_words import is_not_applicable

_RANGE_TEXT = re.compile(
    r"[(\[]?\s*(-?\d+(?:\.\d+)?)\s*%?\s*(?:,|-|–|to|\.\.+)\s*"
    r"(-?\d+(?:\.\d+)?)\s*%?\s*[)\]]?(?:\s*(?:scale|points?|percent))?", re.I
)  # fmt: skip
_SEPARATORS = (r"\s*\n\s*[-*•]?\s*", r"\s*;\s*", r"\s*\|\s*", r"\s*,\s*", r"\s*/\s*")
_LABEL_KEYS = ("label", "value", "level", "name", "grade", "rating", "score")
_TEXT_KEYS = ("description", "explanation", "meaning", "definition", "desc")
_MOST_LEVELS = 12  # a longer run of whole numbers is a numeric scale


@dataclass
class Levels:
    """Labels in the order written, what each means, and whether "not applicable" was among them.

    `bounds` is set instead of labels for a numeric scale: least and greatest number.
    """

    labels: list[str] = field(default_factory=list)
    meanings: dict[str, str] = field(default_factory=dict)
    allow_na: bool = False
    bounds: tuple[float, float] | None = None
    notes: list[str] = field(default_factory=list)

    def add(self, label: str, meaning: str = "") -> None:
        """Take one label: N/A becomes `allow_na`, a repeated one is noted and left out."""
        label = " ".join(label.split())
        if not label:
            return
        if is_not_applicable(label):
            self.allow_na = True
            self.notes.append(f"{label!r} is no level; it may be answered where it cannot apply")
        elif fold(label) in {fold(known) for known in self.labels}:
            self.notes.append(f"the value {label!r} stood twice")
        else:
            self.labels.append(label)
            if meaning.strip():
                self.meanings[label] = " ".join(meaning.split())


def read_levels(value: Any) -> Levels:
    """The accepted values in `value`. Raises ValueError, saying why, when it holds none."""
    levels = Levels()
    if isinstance(value, dict):
        _from_mapping(value, levels)
    elif isinstance(value, list):
        if len(value) == 1 and isinstance(value[0], dict | list) and not _label_of(value[0]):
            return read_levels(value[0])
        if len(value) > _MOST_LEVELS and all(type(i) is int for i in value) and _even(value):
            levels.bounds = (float(value[0]), float(value[-1]))
        elif len(value) == 1 and isinstance(value[0], str) and _bounds(value[0]):
            levels.bounds = _bounds(value[0])  # ["0-100%"]
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


def _even(numbers: list[int]) -> bool:
    return len({b - a for a, b in pairwise(numbers)}) == 1


def _add_item(item: Any, levels: Levels) -> None:
    if isinstance(item, dict):
        label = _label_of(item)
        if label is not None:
            levels.add(label, _text_of(item))
        elif len(item) == 1:
            ((key, meaning),) = item.items()
            levels.add(*_pair(str(key), meaning))
        else:
            raise ValueError(f"the level {str(item)[:60]!r} has no label")
    elif item is None or isinstance(item, list):
        raise ValueError(f"{item!r} is no level")
    else:
        levels.add(str(item))


def _label_of(item: Any) -> str | None:
    if not isinstance(item, dict):
        return None
    return next(
        (str(item[k]) for k in _LABEL_KEYS if isinstance(item.get(k), str | int | float)), None
    )


def _text_of(item: dict[str, Any]) -> str:
    return next((item[k] for k in _TEXT_KEYS if isinstance(item.get(k), str)), "")


def _from_mapping(value: dict[str, Any], levels: Levels) -> None:
    bounds = value.get("range", [value.get("min"), value.get("max")])
    if isinstance(bounds, list) and len(bounds) == 2 and all(map(_is_number, bounds)):
        levels.bounds = (float(bounds[0]), float(bounds[1]))
        return
    pairs = list(value.items())
    if len(pairs) > 1 and all(_is_number(points) for _, points in pairs):
        by_points = sorted(pairs, key=lambda pair: float(pair[1]))
        if by_points != pairs:
            levels.notes.append("ordered by the points it gives")
        pairs = [(key, "") for key, _ in by_points]
    for key, meaning in pairs:
        levels.add(*_pair(str(key), meaning))


def _pair(key: str, meaning: Any) -> tuple[str, str]:
    """Label and meaning; a numbered key with a short text is one numbered label."""
    if isinstance(meaning, dict):
        own = _label_of(meaning)
        return (f"{key} - {own}" if own and re.fullmatch(r"\d+", key) else key), _text_of(meaning)
    text = meaning if isinstance(meaning, str) else ""
    if re.fullmatch(r"\d+", key.strip()) and 0 < len(text) <= 40:
        return f"{key.strip()} - {text.strip()}", ""
    return key, text


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _from_text(text: str, levels: Levels) -> None:
    levels.bounds = _bounds(text)
    if levels.bounds is not None:
        return
    if re.search(r"^\[?(?:np\.|numpy\.|range\(|list\()|\sfor\s+\w+\s+in\s", text):
        raise ValueError(f"its accepted values are the code {text[:60]!r}")
    bare = text.strip("[](){}")
    for separator in _SEPARATORS:
        parts = [part.strip(" '\"-*•") for part in re.split(separator, bare)]
        if len(parts) > 1:
            for part in parts:
                levels.add(part)
            return
    raise ValueError(f"its accepted values are the text {bare[:60]!r}, not a list")


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
    """First and last number of a range in words or of Python code that lists numbers in equal
    steps; the code is read and never run. None for anything else."""
    text = text.strip()
    if match := _RANGE_TEXT.fullmatch(text):
        return float(match[1]), float(match[2])
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
    """First and last of what range, arange or linspace give; None for less than two numbers."""
    if function == "linspace":
        count = args[2] if len(args) == 3 else 50
        return (args[0], args[1]) if 2 <= len(args) <= 3 and count >= 2 else None
    if not 1 <= len(args) <= 3:
        return None
    start, stop = (0.0, args[0]) if len(args) == 1 else args[:2]
    step = args[2] if len(args) == 3 else 1.0
    count = math.ceil(round((stop - start) / step, 9)) if step else 0
    return (start, round(start + step * (count - 1), 9)) if count >= 2 else None
