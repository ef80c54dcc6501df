"""A returned value against a constant, tolerant of spelling: true is "true", 3 is "3"."""

from __future__ import annotations

import math
import operator
import re
from typing import Any

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d(?::\d\d)?)?|\d\d:\d\d(?::\d\d)?", re.ASCII)
_ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def compare(returned: Any, op: str, value: str | float | bool) -> bool | None:
    """Whether `returned op value` holds, None when order has no meaning for the two.

    Words are compared without regard to case and runs of blanks. Numbers are ordered, and so are
    ISO dates and times, as text; nothing else is.
    """
    left, right = plain(returned), plain(value)
    if op in ("=", "!="):
        return bool(left == right) == (op == "=")
    if isinstance(left, float) and isinstance(right, float):
        return bool(_ORDER[op](left, right))
    if isinstance(left, str) and isinstance(right, str):
        before, after = (text.replace("t", " ") for text in (left, right))
        if (
            _DATE.fullmatch(before)
            and _DATE.fullmatch(after)
            and (":" in before[:3]) == (":" in after[:3])
        ):
            return bool(_ORDER[op](before, after))
    return None


def plain(value: Any) -> Any:
    """One spelling for all that count as equal: numbers as float, words in lower case.

    Truth values become "true" and "false"; lists, objects and null stay what they are, and equal
    no constant.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return _finite(value)
    if not isinstance(value, str):
        return value
    text = " ".join(value.split())
    number = _finite(text) if len(text) < 400 and _NUMBER.fullmatch(text) else None
    return text.casefold() if number is None else number


def _finite(value: int | float | str) -> float | None:
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None
