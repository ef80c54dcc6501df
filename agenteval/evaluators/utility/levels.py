"""Accepted values as critics write them: lists, mappings, numbers, ranges, booleans, text."""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

from agenteval.evaluators.utility.labels import fold
from agenteval.evaluators.utility.scale_order import is_not_applicable

_RANGE_TEXT = re.compile(
    r"^[(\[]?\s*(-?\d+(?:\.\d+)?)\s*%?\s*(?:,|-|–|to|\.\.+)\s*"
    r"(-?\d+(?:\.\d+)?)\s*%?\s*[)\]]?(?:\s*(?:scale|points?|percent))?$", re.I
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
    if len(items) == 1 and isinstance(items[0], str) and _is_range(items[0]):
        _from_text(items[0], levels)  # ["0-100%"]
        return
    for item in items:
        _add_item(item, levels)


def _is_range(text: str) -> bool:
    return _RANGE_TEXT.match(text.strip()) is not None or numbers_of(text) is not None


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
        levels.bounds = (float(match.group(1)), float(match.group(2)))
        return
    if numbers := numbers_of(text):
        levels.bounds = (numbers[0], numbers[-1])
        return
    if _CODE.search(text):
        raise ValueError(f"its accepted values are the code {text[:60]!r}")
    text = text.strip("[](){}")
    for separator in _SEPARATORS:
        parts = [p.strip(" '\"-*•") for p in re.split(separator, text)]
        if len(parts) > 1:
            for part in parts:
                levels.add(part)
            return
    raise ValueError(f"its accepted values are the text {text[:60]!r}, not a list")


# ---------------------------------------------------------------- numbers written as code

_CODE = re.compile(r"^\[?(?:np\.|numpy\.|range\(|list\()|\sfor\s+\w+\s+in\s")
_MOST_NUMBERS = 10_001
_OPERATORS: dict[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add, ast.Sub: operator.sub, ast.Mult: operator.mul, ast.Div: operator.truediv,
}  # fmt: skip


def numbers_of(code: str) -> list[float] | None:
    """The numbers that a Python expression lists, in equal steps: `np.arange(0, 1.1, 0.1)`.

    Read, never run: range, arange, linspace, list and tuple of them, and one comprehension over
    them with arithmetic. None for anything else.
    """
    if "(" not in code or len(code) > 200:
        return None
    try:
        value = _read_code(ast.parse(code.strip(), mode="eval").body, {})
    except (SyntaxError, ValueError, TypeError, ArithmeticError, RecursionError, MemoryError):
        return None
    if not isinstance(value, list) or not len(value) >= 2 or not all(map(math.isfinite, value)):
        return None
    numbers = [round(float(number), 9) for number in value]
    steps = {round(b - a, 6) for a, b in pairwise(numbers)}
    return numbers if len(steps) == 1 and steps != {0.0} else None


def _read_code(node: ast.expr, names: Mapping[str, float]) -> Any:
    """A number or a list of numbers. Raises ValueError for what is neither."""
    match node:
        case ast.Constant(value=int() | float() as number) if not isinstance(number, bool):
            return number
        case ast.Name(id=name) if name in names:
            return names[name]
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_read_code(operand, names)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in _OPERATORS:
            return _OPERATORS[type(sign)](_number(left, names), _number(right, names))
        case ast.List(elts=[ast.Call() as inner]):
            return _read_code(inner, names)
        case ast.ListComp(elt=each, generators=[ast.comprehension(
            target=ast.Name(id=name), iter=numbers, ifs=[]
        )]):  # fmt: skip
            return [_number(each, {**names, name: n}) for n in _read_code(numbers, names)]
        case ast.Call(func=ast.Attribute(value=ast.Call() as inner, attr="tolist")):
            return _read_code(inner, names)
        case ast.Call(func=function, args=args):
            name = function.attr if isinstance(function, ast.Attribute) else ast.unparse(function)
            if name in ("list", "tuple", "array", "str", "float", "int", "round") and args:
                return _read_code(args[0], names)
            return _run_of(name, [_number(arg, names) for arg in args])
    raise ValueError("no list of numbers")


def _number(node: ast.expr, names: Mapping[str, float]) -> float:
    value = _read_code(node, names)
    if isinstance(value, list):
        raise ValueError("a list where a number is needed")
    return float(value)


def _run_of(function: str, args: list[float]) -> list[float]:
    """What range, arange or linspace give."""
    if function == "linspace" and 2 <= len(args) <= 3:
        count = int(args[2]) if len(args) == 3 else 50
        start, step = args[0], (args[1] - args[0]) / (count - 1)
    elif function in ("range", "arange") and 1 <= len(args) <= 3:
        start, end = (0.0, args[0]) if len(args) == 1 else (args[0], args[1])
        step = args[2] if len(args) == 3 else 1.0
        count = math.ceil(round((end - start) / step, 9))
    else:
        raise ValueError(f"{function} is not read")
    if not 0 < count <= _MOST_NUMBERS:
        raise ValueError("too many numbers")
    return [start + step * k for k in range(count)]
