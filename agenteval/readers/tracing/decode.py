"""Reading the JSON of traces: as strict JSON where it is, else forgivingly and with warnings."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from typing import Any, BinaryIO

from agenteval.errors import InputError
from agenteval.readers.decode import SURROGATES_REPLACED, refuse_too_many
from agenteval.readers.documents import Reader
from agenteval.readers.limits import DEFAULT_LIMITS, Limits, Notes
from agenteval.readers.tracing.flat import SURROGATE_ESCAPE, whole_characters
from agenteval.readers.tracing.loose import parse_loosely
from agenteval.readers.tracing.walk import keeps_spans

NOT_FINITE = "NaN or an infinite number was read as null"
TRAILING_COMMA = "a trailing comma was passed over"
REPEATED_KEY = "a key stands twice in one object; the last value counts"


class TraceReader(Reader):
    """Values of an open file of traces; a single line may be as large as a document."""

    def __init__(
        self, stream: BinaryIO, name: str, limits: Limits, notes: Notes, *, lines: bool
    ) -> None:
        longest = max(limits.max_line_bytes, limits.max_document_bytes)
        limits = replace(limits, max_line_bytes=longest)
        super().__init__(stream, name, limits, notes, lines=lines)
        self._decoder: Any = TraceDecoder(notes, limits)

    @property
    def broken(self) -> InputError | None:
        """What stopped the reading first, if anything did."""
        broken: InputError | None = self._decoder.broken
        return broken


class TraceDecoder:
    """Decodes texts of one file. Several values in one text become a list."""

    def __init__(self, notes: Notes, limits: Limits = DEFAULT_LIMITS) -> None:
        self._limits = limits
        self.broken: InputError | None = None
        self._notes = notes
        self._refused = 0
        self._repeated = 0
        self._json = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_constant=self._refuse,
            parse_float=self._float,
        )

    def decode(self, text: str, name: str, line: int | None = None) -> Any:
        """The value of a text; what was complete where the text breaks off.

        What was put right is a warning. A line of which nothing is complete is an empty list; a
        document is an InputError that names line and column, and so is one of too many values.
        """
        place = name if line is None else f"{name}:{line}"
        refuse_too_many(text, place, self._limits)
        self._refused = self._repeated = 0
        try:
            value = self._json.decode(text)
        except (ValueError, RecursionError):  # broken, nested too deep, or an endless integer
            self._refused = self._repeated = 0
            value = self._loosely(text, name, line)
        if self._refused:
            self._notes.add(NOT_FINITE, place)
        if self._repeated:
            self._notes.add(REPEATED_KEY, place)
        if SURROGATE_ESCAPE.search(text):
            value = whole_characters(value, lambda: self._notes.add(SURROGATES_REPLACED, place))
        return value

    def _loosely(self, text: str, name: str, line: int | None) -> Any:
        place = name if line is None else f"{name}:{line}"
        text = text.rstrip()  # so that the end of a line is not the beginning of the next
        found = parse_loosely(text, keeps_spans)
        self._refused = found.refused
        if found.trailing_commas:
            self._notes.add(TRAILING_COMMA, place)
        if found.broken is not None:
            row, column = _position(text, found.at)
            at = f"{name}:{line or row}:{column}"
            error = InputError(f"broken JSON: {found.broken}", at)
            self.broken = self.broken or error
            if not any(found.values):
                if line is None:
                    raise error
                self._notes.add(f"broken JSON ({found.broken}): the line was passed over", at)
                return []
            self._notes.add(f"broken JSON ({found.broken}): only what stands before was read", at)
        return found.values[0] if len(found.values) == 1 else found.values

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        self._repeated += len(made) != len(pairs)
        return made

    def _refuse(self, _: str) -> None:
        self._refused += 1

    def _float(self, text: str) -> float | None:
        value = float(text)
        if math.isfinite(value):
            return value
        self._refuse(text)
        return None


def _position(text: str, at: int) -> tuple[int, int]:
    """Line and column of an offset, from 1."""
    return text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
