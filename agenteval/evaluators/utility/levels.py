"""Accepted values as critics write them: lists, mappings, numbers, ranges, booleans, text."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from agenteval.evaluators.utility.labels import fold
from agenteval.evaluators.utility.scale_order import is_not_applicable

_RANGE_TEXT = re.compile(
    r"^(?:list\()?(?:range)?\s*[(\[]?\s*(-?\d+(?:\.\d+)?)\s*(?:,|-|–|to|\.\.+)\s*"
    r"(-?\d+(?:\.\d+)?)\s*[)\]]*(?:\s*(?:scale|points?))?$", re.I
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
            return
        if fold(label) in {fold(known) for known in self.labels}:
            self.notes.append(f"the value {label!r} stood twice")
            return
        self.labels.append(label)
        if meaning.strip():
            self.meanings[label] = " ".join(meaning.split())


def read_levels(value: Any) -> Levels:
    """The accepted values in `value`. Raises ValueError, saying why, when it holds none."""
    levels = Levels()
    if isinstance(value, dict):
        _from_mapping(value, levels)
    elif isinstance(value, list):
        _from_list(value, levels)
    elif isinstance(value, str):
        _from_text(value, levels)
    else:
        raise ValueError(f"its accepted values are {value!r}, not a list")
    if not levels.labels and levels.bounds is None:
        raise ValueError("it has no accepted values")
    return levels


def _from_list(items: list[Any], levels: Levels) -> None:
    if len(items) == 1 and isinstance(items[0], dict | list) and not _label_of(items[0]):
        inner = read_levels(items[0])
        levels.__dict__.update(inner.__dict__)
        return
    if _is_run(items):
        levels.bounds = (float(items[0]), float(items[-1]))
        return
    for item in items:
        _add_item(item, levels)


def _is_run(items: list[Any]) -> bool:
    """Whole numbers in equal steps, more than anyone grades by: 0, 1, ... 100."""
    if len(items) <= _MOST_LEVELS or not all(type(i) is int for i in items):
        return False
    return len({b - a for a, b in pairwise(items)}) == 1


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
    for key in _LABEL_KEYS:
        if isinstance(item.get(key), str | int | float):
            return str(item[key])
    return None


def _text_of(item: dict[str, Any]) -> str:
    return next((item[k] for k in _TEXT_KEYS if isinstance(item.get(k), str)), "")


def _from_mapping(value: dict[str, Any], levels: Levels) -> None:
    bounds = value.get("range", [value.get("min"), value.get("max")])
    if isinstance(bounds, list) and len(bounds) == 2 and all(_is_number(b) for b in bounds):
        levels.bounds = (float(bounds[0]), float(bounds[1]))
        return
    pairs = list(value.items())
    if len(pairs) > 1 and all(_is_number(v) for _, v in pairs):  # label -> points
        if [v for _, v in pairs] != sorted(v for _, v in pairs):
            levels.notes.append("ordered by the points it gives")
        pairs = [(k, "") for k, _ in sorted(pairs, key=lambda p: float(p[1]))]
    for key, meaning in pairs:
        levels.add(*_pair(str(key), meaning))


def _pair(key: str, meaning: Any) -> tuple[str, str]:
    """Label and meaning; a numbered key with a short text is one numbered label."""
    if isinstance(meaning, dict):
        own = _label_of(meaning)
        text = _text_of(meaning)
        return (f"{key} - {own}" if own and re.fullmatch(r"\d+", key) else key), text
    text = meaning if isinstance(meaning, str) else ""
    if re.fullmatch(r"\d+", key.strip()) and 0 < len(text) <= 40:
        return f"{key.strip()} - {text.strip()}", ""
    return key, text


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _from_text(text: str, levels: Levels) -> None:
    text = text.strip()
    if match := _RANGE_TEXT.match(text):
        low, high = float(match.group(1)), float(match.group(2))
        levels.bounds = (low, high - 1 if "range" in text.lower() else high)
        return
    text = text.strip("[](){}")
    for separator in _SEPARATORS:
        parts = [p.strip(" '\"-*•") for p in re.split(separator, text)]
        if len(parts) > 1:
            for part in parts:
                levels.add(part)
            return
    raise ValueError(f"its accepted values are the text {text[:60]!r}, not a list")
