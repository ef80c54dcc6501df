"""Read JSON files: strictly, and leniently for traces.

Strict JSON refuses input that two programs could read differently, and reports the location.

A file holds one document or one value per line; the content decides which.
"""

from __future__ import annotations

import json
import math
import re
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from agenteval.errors import InputError
from agenteval.files import LARGE, LINE, LINES, byte_lines, decoded, read_text
from agenteval.models.jsonish import JsonDialect, is_deeper, scan

MOST_DEPTH = 64  # levels of objects and arrays
_HAND_WRITTEN = 16 * 2**20  # bytes

_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
# A surrogate pair, a lone surrogate, and any other escape
_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB]..\\u[dD][c-fC-F]..|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)", re.DOTALL
)
_NOT_BLANK = re.compile(r"\S|\Z")


@dataclass
class Notes:
    """Warnings of one reading: each text once, with its first location and a count."""

    _seen: dict[str, tuple[str, int]] = field(default_factory=dict)

    def add(self, text: str, place: str) -> None:
        """Record that `text` applies at `place`."""
        first, count = self._seen.get(text, (place, 0))
        self._seen[text] = (first, count + 1)

    def lines(self) -> list[str]:
        """Return one line per text: first location, text, and number of other locations."""
        return [
            f"{first}: {text}" + (f" (and {count - 1} more)" if count > 1 else "")
            for text, (first, count) in self._seen.items()
        ]


class NotFinite(str):
    """NaN or an infinity, as written."""


def decode(
    text: str,
    name: str,
    line: int | None = None,
    notes: Notes | None = None,
    *,
    finite: bool = True,
) -> Any:
    """Return the JSON value of a text.

    `name` is the file for messages, `line` the line number if the text is one line of it. Lone
    surrogates are replaced with a note; without `notes`, they are an error. Unless numbers must be
    `finite`, NaN and infinities become `NotFinite`. Raises InputError for broken JSON, duplicate
    keys, NaN or infinities, too long integers, and too deep nesting.
    """
    place = name if line is None else f"{name}:{line}"

    def number(digits: str) -> float | NotFinite:
        value = float(digits)
        if math.isfinite(value):
            return value
        if finite:
            first = line or text.count("\n", 0, text.find(digits)) + 1
            raise InputError(f"{digits} is not a JSON number", f"{name}:{first}")
        return NotFinite(digits)

    clean = _whole_characters(text, place, notes)
    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=number, parse_float=number)
    try:
        value = decoder.decode(clean)
    except json.JSONDecodeError as error:
        column = error.colno if line is None else error.pos + 1  # a single line of the file
        at = f"{name}:{line or error.lineno}:{column}"
        raise InputError(f"broken JSON: {error.msg}", at) from None
    except RecursionError:
        raise InputError(f"nested deeper than {MOST_DEPTH} levels", place) from None
    except ValueError as error:  # a duplicate key, or an integer with thousands of digits
        raise InputError(str(error), place) from None
    if text.count("[") + text.count("{") > MOST_DEPTH and is_deeper(value, MOST_DEPTH):
        raise InputError(f"nested deeper than {MOST_DEPTH} levels", place)
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        counts = Counter(key for key, _ in pairs)
        key = next(key for key in counts if counts[key] > 1)
        raise ValueError(f"the key {key[:80]!r} occurs twice in one object")
    return result


def _whole_characters(text: str, place: str, notes: Notes | None) -> str:
    """Replace lone surrogates, which UTF-8 cannot encode, by U+FFFD in a JSON text.

    They can occur only as escapes. Raises InputError without `notes`.
    """
    if not _SURROGATE_ESCAPE.search(text):
        return text

    def without_half(match: re.Match[str]) -> str:
        if match[1] is None:
            return match[0]
        if notes is None:
            raise InputError("a lone surrogate (\\ud800 to \\udfff)", place)
        notes.add("lone surrogates were replaced by U+FFFD", place)
        return "\\ufffd"

    return _ESCAPE.sub(without_half, text)


def decode_line(text: str, place: str) -> Any:
    """Decode one line of JSON at `place` (FILE:LINE). Raises InputError."""
    file, _, line = place.rpartition(":")
    return decode(text, file, int(line)) if line.isdigit() else decode(text, place)


def read_json(path: Path) -> Any:
    """Read a JSON file written by people, at most 16 MB, with or without BOM.

    Raises InputError with file, line and column, or the key.
    """
    return decode(read_text(path, _HAND_WRITTEN), str(path))


def json_or_none(text: str) -> Any:
    """Decode JSON, with null for NaN; returns None for invalid JSON."""
    try:
        text = _whole_characters(text, "", Notes())
        return json.loads(text, parse_constant=lambda _: None, parse_float=_finite_or_none)
    except (ValueError, RecursionError):
        return None


def _finite_or_none(text: str) -> float | None:
    value = float(text)
    return value if math.isfinite(value) else None


def decode_arguments(text: str) -> Any:
    """Decode the arguments of a tool call; returns the text if it is not JSON."""
    try:
        return decode(text, "arguments", notes=Notes())
    except InputError:
        return text


# ---- files ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Item:
    """One JSON value and its location. `line` is None for a whole document. With `cut_off`, cells
    are missing at the end of a row."""

    value: Any
    place: str
    line: int | None
    cut_off: bool = False


Decode = Callable[[str, str, int | None, Notes], Any]


def read_items(
    stream: BinaryIO,
    name: str,
    notes: Notes,
    *,
    lines: bool,
    by: Decode = decode,
    most_line: int | None = None,
) -> Iterator[Item]:
    """Yield the values of an open file in order, skipping blank lines.

    With `lines`, every line is a value, or each value spans several lines; otherwise the content
    decides. `by` decodes one text. `most_line` limits the bytes of a line, and of a document if it
    exceeds LARGE. Raises InputError, with file, line and column or byte offset, for invalid UTF-8
    or JSON, and above the limits.
    """
    longest = most_line or LINE
    largest = max(LARGE, longest)
    rows = (row for row in byte_lines(stream, name, longest, LINES) if row[2].strip())
    first = next(rows, None)
    if first is None:
        return
    alone = _is_value(first[2])
    second = next(rows, None) if lines or alone else None
    spread = lines and not alone and _is_opening(first[2], second[2] if second else b"")
    if not spread and (lines or second is not None):
        for number, offset, data in chain([first], [second] if second else [], rows):
            if len(data) > longest:
                raise InputError(f"line longer than {longest:,} bytes", f"{name}:{number}")
            text = decoded(data, name, line=number, offset=offset)
            yield Item(by(text, name, number, notes), f"{name}:{number}", number)
        return
    number, offset, data = first
    if second:
        data = data.rstrip(b"\n") + b"\n" * (second[0] - number) + second[2]
    data += stream.read(max(0, largest + 4 - len(data)))
    if offset + len(data) > largest + 3:
        problem = f"a JSON document larger than {largest:,} bytes; JSON lines may be larger"
        raise InputError(problem, name)
    # Line numbers of errors count from the start of the file, so blank lines are put back.
    text = "\n" * (number - 1) + decoded(data, name, line=number, offset=offset)
    yield from (
        _spread(text, name, notes, by)
        if spread
        else [Item(by(text, name, None, notes), name, None)]
    )


def _is_opening(line: bytes, following: bytes) -> bool:
    """Return whether a line starts a value that continues on the following lines."""
    start = line.strip()
    return start in (b"[", b"{") or (start[:1] in (b"[", b"{") and not _is_value(following))


def _spread(text: str, name: str, notes: Notes, by: Decode) -> Iterator[Item]:
    """Yield consecutive values of a text; a single value is a document."""
    decoder, line, first = json.JSONDecoder(), 1, True
    end, start = 0, _blank_end(text, 0)
    while start < len(text):
        line += text.count("\n", end, start)
        try:
            end = decoder.raw_decode(text, start)[1]
        except (ValueError, RecursionError):
            end = len(text)  # `by` reports the error
        following = _blank_end(text, end)
        if first and following == len(text):
            yield Item(by(text, name, None, notes), name, None)
        else:
            yield Item(by(text[start:end], name, line, notes), f"{name}:{line}", line)
        line += text.count("\n", start, end)
        start, first = following, False


def _blank_end(text: str, at: int) -> int:
    match = _NOT_BLANK.search(text, at)
    return match.start() if match else len(text)


def _is_value(line: bytes) -> bool:
    try:
        return isinstance(json.loads(line), (dict, list))
    except (ValueError, RecursionError):
        return False


# ---- traces --------------------------------------------------------------------------------------


class LooseDecoder:
    """Leniently decodes texts of one trace file: trailing commas, NaN, any depth, cut-off texts.

    Every correction causes a warning. If strict parsing fails, `models.jsonish` scans the text:
    span trees may nest deeper than Python's stack, and complete spans are kept if the text is cut
    off or stops being JSON. `keep` returns whether a list under a key contains spans. `broken` is
    the first error that stopped the reading.
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

        Of a cut-off text, the complete values are returned: an empty list if a line has none.
        Raises InputError, with line and column, for a document without a complete value.
        """
        place = name if line is None else f"{name}:{line}"
        text = _whole_characters(text, place, notes)
        self._nulls = self._repeated = 0
        try:
            value = self._json.decode(text)
        except (ValueError, RecursionError):  # broken, nested too deep, or an endless integer
            self._repeated = 0
            value = self._loosely(text, name, line, notes)
        if self._nulls:
            notes.add("NaN or an infinite number was read as null", place)
        if self._repeated:
            notes.add("a key occurs twice in one object; the last value counts", place)
        return value

    def _loosely(self, text: str, name: str, line: int | None, notes: Notes) -> Any:
        text = text.rstrip()  # so that the end of a line is not reported as the start of the next
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
                    notes.add("a trailing comma was ignored", place)
                if result.dialect:
                    what = "not strict JSON (quotes, comments, Python literals), read leniently"
                    notes.add(what, place)
        if broken is not None:
            row, column = text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at)
            position = f"{name}:{line or row}:{column}"
            self.broken = self.broken or InputError(f"broken JSON: {broken}", position)
            complete = any(values)
            if not complete and line is None:
                raise InputError(f"broken JSON: {broken}", position)
            effect = "only the part before it was read" if complete else "the line was skipped"
            notes.add(f"broken JSON ({broken}): {effect}", position)
            if not complete:
                return []
        return values[0] if len(values) == 1 else values

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result = dict(pairs)
        self._repeated += len(result) != len(pairs)
        return result

    def _float(self, text: str) -> float | None:
        value = _finite_or_none(text)
        self._nulls += value is None
        return value
