"""Strict JSON: refuses what two programs could read differently, and names the place.

A file holds one document or one value per line; the content decides which.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from itertools import chain
from pathlib import Path
from typing import Any, BinaryIO

from agenteval.errors import InputError
from agenteval.files import LARGE, LINE, LINES, byte_lines, decoded, read_text
from agenteval.models.jsonish import is_deeper

# Anything above these bounds is an InputError, never cut silently.
MOST_DEPTH = 64  # nested objects and arrays
MOST_VALUES = 4_000_000  # in one document or line; a value takes about 200 bytes of memory
MOST_KEYS = 100_000  # in one object
_HAND_WRITTEN = 16 * 2**20  # bytes

# Surrogates can enter only through an escape: raw ones are not valid UTF-8.
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
_NOT_BLANK = re.compile(r"\S|\Z")
SURROGATES_REPLACED = "lone surrogates (half characters) were replaced by U+FFFD"


@dataclass
class Notes:
    """Warnings of one reading: each text once, with its first place and the number of places."""

    _seen: dict[str, tuple[str, int]] = field(default_factory=dict)

    def add(self, text: str, place: str) -> None:
        """Record that `text` applies at `place`."""
        first, count = self._seen.get(text, (place, 0))
        self._seen[text] = (first, count + 1)

    def lines(self) -> list[str]:
        """Return one line per text: the first place, the text, how many more places."""
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

    `name` is the file for messages, `line` the line number when the text is one line of it. Half
    characters are replaced with a note; without `notes` they are an error. Unless numbers must be
    `finite`, NaN and infinities become `NotFinite`.
    Raises InputError for broken JSON, repeated keys, NaN or infinities, integers too long to read,
    and above the bounds.
    """
    place = name if line is None else f"{name}:{line}"
    refuse_too_many(text, place)
    infinite = False

    def number(digits: str) -> float | NotFinite:
        nonlocal infinite
        value = float(digits)
        if math.isfinite(value):
            return value
        infinite = True
        return NotFinite(digits)

    decoder = json.JSONDecoder(object_pairs_hook=_object, parse_constant=number, parse_float=number)
    try:
        value = decoder.decode(text)
    except json.JSONDecodeError as error:
        column = error.colno if line is None else error.pos + 1  # a line end is not a new line
        at = f"{name}:{line or error.lineno}:{column}"
        raise InputError(f"broken JSON: {error.msg}", at) from None
    except RecursionError:
        raise InputError(f"nested deeper than {MOST_DEPTH} levels", place) from None
    except ValueError as error:  # repeated key; an integer of thousands of digits
        raise InputError(str(error), place) from None
    if finite and infinite:
        path, digits = next(_not_finite(value))
        raise InputError(f"{digits} is no JSON number (key {path})", place)
    if text.count("[") + text.count("{") > MOST_DEPTH and is_deeper(value, MOST_DEPTH):
        raise InputError(f"nested deeper than {MOST_DEPTH} levels", place)
    value, halves = whole_characters(text, value, place)
    if halves and notes is None:
        raise InputError("half a character (a lone surrogate, \\ud800 to \\udfff)", place)
    for _ in range(halves if notes else 0):
        notes.add(SURROGATES_REPLACED, place)  # type: ignore[union-attr]
    return value


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    if len(pairs) > MOST_KEYS:
        raise ValueError(f"more than {MOST_KEYS:,} keys in one object")
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                raise ValueError(_twice(key))
            seen.add(key)
    return result


def _twice(key: str) -> str:
    return f"the key {key if len(key) <= 80 else key[:77] + '...'!r} occurs twice in one object"


def _not_finite(value: Any) -> Iterator[tuple[str, str]]:
    """Yield path and text of every number that is not finite, in the order of the text."""
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:
        path, item = stack.pop()
        if isinstance(item, NotFinite):
            yield path or "(top level)", str(item)
        if isinstance(item, dict):
            stack.extend((f"{path}.{k}" if path else k, v) for k, v in reversed(item.items()))
        elif isinstance(item, list):
            stack.extend((f"{path}[{i}]", v) for i, v in reversed(list(enumerate(item))))


def whole_characters(text: str, value: Any, place: str = "") -> tuple[Any, int]:
    """Replace half characters by U+FFFD in the value of a JSON text, in place.

    Returns the value and the number of texts that had some. Raises InputError where two keys
    become one.
    """
    if not _SURROGATE_ESCAPE.search(text):
        return value, 0
    halves = 0
    top = [value]
    stack: list[Any] = [top]
    while stack:  # not recursive: traces nest deeper than Python's stack
        node = stack.pop()
        if isinstance(node, dict):
            pairs = [(_SURROGATE.sub("\ufffd", key), item) for key, item in node.items()]
            halves += sum(new != old for (new, _), old in zip(pairs, node, strict=True))
            size = len(node)
            node.clear()
            node.update(pairs)
            if len(node) < size:
                raise InputError(_twice(next(k for k in node if "\ufffd" in k)), place)
        for key, item in list(node.items() if isinstance(node, dict) else enumerate(node)):
            if isinstance(item, str):
                node[key] = _SURROGATE.sub("\ufffd", item)
                halves += node[key] != item
            elif isinstance(item, (dict, list)):
                stack.append(item)
    return top[0], halves


def refuse_too_many(text: str, place: str) -> None:
    """Raise InputError when a text holds more than MOST_VALUES values of JSON.

    Three bytes of JSON ("[],") take seventy of memory, so the size of a text bounds little.
    """

    def too_many(text: str) -> bool:  # each value is the first of all or of a list, or follows , :
        return sum(text.count(mark) for mark in "[{,:") >= MOST_VALUES

    if len(text) > MOST_VALUES and too_many(text) and too_many(_STRING.sub("", text)):
        raise InputError(f"more than {MOST_VALUES:,} values in one JSON text", place)


def decode_line(text: str, place: str) -> Any:
    """Return the value of one line of JSON at `place` (FILE:LINE). Raises InputError."""
    file, _, line = place.rpartition(":")
    return decode(text, file, int(line)) if line.isdigit() else decode(text, place)


def read_json(path: Path) -> Any:
    """Return the value of a JSON file that people write, at most 16 MB, with or without BOM.

    Raises InputError naming file, line and column, or the key.
    """
    return decode(read_text(path, _HAND_WRITTEN), str(path))


def decode_arguments(text: str) -> Any:
    """Return the arguments of a tool call: their JSON value, or the text when it is not JSON."""
    try:
        return decode(text, "arguments", notes=Notes())
    except InputError:
        return text


# ---- files ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Item:
    """One JSON value and its location. `line` is None for a whole document. `cut_off` means that
    cells are missing at the end of a row."""

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
    """Yield the values of an open file in order, without blank lines.

    With `lines`, every line is a value, or values follow one another over several lines each;
    otherwise the content decides. `by` decodes one text. `most_line` bounds the bytes of a line,
    and of a document where it is more than LARGE.
    Raises InputError, with file, line and column or byte offset, for anything that is not UTF-8,
    not JSON, and above the bounds.
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
    """Return whether a line that is not a value opens one that goes on in the lines after it."""
    start = line.strip()
    return start in (b"[", b"{") or (start[:1] in (b"[", b"{") and not _is_value(following))


def _spread(text: str, name: str, notes: Notes, by: Decode) -> Iterator[Item]:
    """Yield the values of a text that follow one another; a single one is a document."""
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
    """Return whether the line alone is a JSON object or array, as in JSON lines."""
    try:
        return isinstance(json.loads(line), (dict, list))
    except (ValueError, RecursionError):
        return False
