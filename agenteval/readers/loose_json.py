"""JSON of traces, read leniently: trailing commas, NaN, text that breaks off, any depth.

Every correction is a warning. Where the strict parse fails, `models.jsonish` scans the text: span
trees nest deeper than Python's stack, and complete spans are kept where the text ends too early or
stops being JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from agenteval.errors import InputError
from agenteval.models.jsonish import JsonDialect, scan
from agenteval.readers.strict_json import (
    SURROGATES_REPLACED,
    Notes,
    refuse_too_many,
    whole_characters,
)

NOT_FINITE = "NaN or an infinite number was read as null"
NOT_STRICT = "not strict JSON (quotes, comments, Python's words), read as meant"
TRAILING_COMMA = "a trailing comma was passed over"
REPEATED_KEY = "a key stands twice in one object; the last value counts"


def json_or_none(text: str) -> Any:
    """Return the JSON value of a text, with null for NaN; None when it is not JSON."""
    try:
        value = json.loads(text, parse_constant=lambda _: None, parse_float=finite_or_none)
        return whole_characters(text, value)[0]
    except (ValueError, RecursionError):
        return None


def finite_or_none(text: str) -> float | None:
    """Return the number a text spells; None for an infinite one."""
    value = float(text)
    return value if math.isfinite(value) else None


class LooseDecoder:
    """Decodes the texts of one file of traces.

    `keep` says whether a list under this key holds spans. `broken` is the first error that stopped
    the reading.
    """

    def __init__(self, keep: Callable[[str], bool]) -> None:
        self.broken: InputError | None = None
        self._dialect = JsonDialect(
            self._object,
            deepest=math.inf,
            finite=False,
            keep=lambda key, value: isinstance(value, list) and (key is None or keep(key)),
        )
        self._nulls = self._repeated = 0
        self._json = json.JSONDecoder(
            object_pairs_hook=self._object, parse_constant=self._float, parse_float=self._float
        )

    def decode(self, text: str, name: str, line: int | None, notes: Notes) -> Any:
        """Return the value of a text, or a list of several values.

        Where the text breaks off, what was complete is returned. A line without a complete value is
        an empty list. Raises InputError, with line and column, for such a document, and for too
        many values.
        """
        place = name if line is None else f"{name}:{line}"
        refuse_too_many(text, place)
        self._nulls = self._repeated = 0
        try:
            value = self._json.decode(text)
        except (ValueError, RecursionError):  # broken, nested too deep, or an endless integer
            self._repeated = 0
            value = self._loosely(text, name, line, notes)
        if self._nulls:
            notes.add(NOT_FINITE, place)
        if self._repeated:
            notes.add(REPEATED_KEY, place)
        value, halves = whole_characters(text, value, place)
        for _ in range(halves):
            notes.add(SURROGATES_REPLACED, place)
        return value

    def _loosely(self, text: str, name: str, line: int | None, notes: Notes) -> Any:
        text = text.rstrip()  # so that the end of a line is not the beginning of the next
        place = name if line is None else f"{name}:{line}"
        values, at, broken = list[Any](), 0, None
        while broken is None and at < len(text):
            if text[at].isspace():
                at += 1
            elif text[at] not in "{[":
                broken = "neither an object nor an array"
            else:
                result = scan(text, at, self._dialect)
                at = result.end
                broken = "the text ends inside a value" if result.cut else result.broken
                if broken is None or result.value is not None:
                    values.append(result.value)
                self._nulls += result.nulls
                if result.commas:
                    notes.add(TRAILING_COMMA, place)
                if result.dialect:
                    notes.add(NOT_STRICT, place)
        if broken is not None:
            row, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
            position = f"{name}:{line or row}:{column}"
            self.broken = self.broken or InputError(f"broken JSON: {broken}", position)
            complete = any(values)
            if not complete and line is None:
                raise InputError(f"broken JSON: {broken}", position)
            effect = "only what stands before was read" if complete else "the line was passed over"
            notes.add(f"broken JSON ({broken}): {effect}", position)
            if not complete:
                return []
        return values[0] if len(values) == 1 else values

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        self._repeated += len(result) != len(pairs)
        return result

    def _float(self, text: str) -> float | None:
        value = finite_or_none(text)
        self._nulls += value is None
        return value
