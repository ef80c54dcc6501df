"""JSON of traces, read forgivingly where it is not strict: trailing commas, NaN, text that breaks
off, any depth. Every correction is a warning.

Where the strict parse fails, `models.jsonish` scans the text: span trees nest deeper than Python's
stack, and complete spans are kept where the text ends too early or stops being JSON.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

from agenteval.errors import InputError
from agenteval.models.jsonish import Dialect, scan
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


class LooseDecoder:
    """Decodes the texts of one file of traces. `keep` tells the keys of lists of spans; `broken`
    is what stopped the reading first, if anything did."""

    def __init__(self, keep: Callable[[str], bool]) -> None:
        self.broken: InputError | None = None
        self._dialect = Dialect(
            self._object,
            deepest=math.inf,
            finite=False,
            keep=lambda key, value: isinstance(value, list) and (key is None or keep(key)),
        )
        self._refused = self._repeated = 0
        self._json = json.JSONDecoder(
            object_pairs_hook=self._object, parse_constant=self._refuse, parse_float=self._float
        )

    def decode(self, text: str, name: str, line: int | None, notes: Notes) -> Any:
        """The value of a text; several become a list. What was complete where the text breaks off.

        A line of which nothing is complete is an empty list; a document is an InputError that names
        line and column, and so is one of too many values.
        """
        place = name if line is None else f"{name}:{line}"
        refuse_too_many(text, place)
        self._refused = self._repeated = 0
        try:
            value = self._json.decode(text)
        except (ValueError, RecursionError):  # broken, nested too deep, or an endless integer
            self._repeated = 0
            value = self._loosely(text, name, line, notes)
        if self._refused:
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
        while broken is None and (at := _behind_space(text, at)) < len(text):
            if text[at] not in "{[":
                broken = "neither an object nor an array"
                break
            found = scan(text, at, self._dialect)
            at, broken = found.end, found.broken
            if found.cut:
                broken = "the text ends inside a value"
            if broken is None or found.value is not None:
                values.append(found.value)
            self._refused += found.nulls
            if found.commas:
                notes.add(TRAILING_COMMA, place)
            if found.dialect:
                notes.add(NOT_STRICT, place)
        if broken is not None:
            row = text.count("\n", 0, at) + 1
            column = at - text.rfind("\n", 0, at)
            position = f"{name}:{line or row}:{column}"
            error = InputError(f"broken JSON: {broken}", position)
            self.broken = self.broken or error
            if not any(values):
                if line is None:
                    raise error
                notes.add(f"broken JSON ({broken}): the line was passed over", position)
                return []
            notes.add(f"broken JSON ({broken}): only what stands before was read", position)
        return values[0] if len(values) == 1 else values

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        self._repeated += len(made) != len(pairs)
        return made

    def _refuse(self, text: str) -> None:
        self._refused += 1

    def _float(self, text: str) -> float | None:
        value = float(text)
        if math.isfinite(value):
            return value
        self._refused += 1
        return None


def _behind_space(text: str, at: int) -> int:
    while text[at : at + 1].isspace():
        at += 1
    return at
