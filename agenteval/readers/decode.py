"""Strict JSON: what two programs could read differently is refused, and the place is named."""

from __future__ import annotations

import json
import math
import re
from pathlib import Path
from typing import Any

from agenteval.errors import InputError
from agenteval.files import read_text
from agenteval.readers.limits import DEFAULT_LIMITS, HAND_WRITTEN, Limits, Notes

# Surrogates can enter only through an escape: raw ones are no valid UTF-8.
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")
_STRING = re.compile(r'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
SURROGATES_REPLACED = "lone surrogates (half characters) were replaced by U+FFFD"


class _DuplicateKeyError(ValueError):
    """A key occurs twice in one object; which value counts would be a guess."""


class _Refused:
    """Stands for NaN or an infinity until the key that holds it is found."""

    def __init__(self, text: str) -> None:
        self.text = text


class Decoder:
    """Decodes JSON texts of one file. Not safe for use by several threads at once."""

    def __init__(self, limits: Limits, notes: Notes) -> None:
        self._limits = limits
        self._notes = notes
        self._refused = False
        self._json = json.JSONDecoder(
            object_pairs_hook=self._object,
            parse_constant=self._refuse,
            parse_float=self._float,
        )

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(pairs) > self._limits.max_keys:
            raise ValueError(f"more than {self._limits.max_keys:,} keys in one object")
        return _unique(pairs)

    def _refuse(self, text: str) -> Any:
        self._refused = True
        return _Refused(text)

    def _float(self, text: str) -> Any:
        value = float(text)
        return value if math.isfinite(value) else self._refuse(text)

    def decode(self, text: str, name: str, line: int | None = None) -> Any:
        """The value of `text`.

        `name` is the file for messages, `line` the line number when `text` is one line of it.
        Raises InputError for broken JSON, repeated keys, NaN or infinities, nesting above
        `max_depth`, more than `max_values` values, integers too long to read.
        """
        place = name if line is None else f"{name}:{line}"
        self._refused = False
        refuse_too_many(text, place, self._limits)
        try:
            value = self._json.decode(text)
        except json.JSONDecodeError as error:
            column = error.colno if line is None else error.pos + 1  # a line end is no new line
            at = f"{name}:{line or error.lineno}:{column}"
            raise InputError(f"broken JSON: {error.msg}", at) from None
        except RecursionError:
            raise InputError(self._too_deep(), place) from None
        except ValueError as error:  # repeated key; an integer of thousands of digits
            raise InputError(str(error), place) from None
        if text.count("[") + text.count("{") > self._limits.max_depth:
            self._check_depth(value, place)
        if self._refused:
            path, number = _find_refused(value)
            raise InputError(f"{number} is no JSON number (key {path})", place)
        if _SURROGATE_ESCAPE.search(text):
            value = self._without_surrogates(value, place)
        return value

    def _too_deep(self) -> str:
        return f"nested deeper than {self._limits.max_depth} levels"

    def _check_depth(self, value: Any, place: str) -> None:
        stack = [(value, 1)]
        while stack:
            item, depth = stack.pop()
            if not isinstance(item, (dict, list)):
                continue
            if depth > self._limits.max_depth:
                raise InputError(self._too_deep(), place)
            children = item.values() if isinstance(item, dict) else item
            stack.extend((c, depth + 1) for c in children if isinstance(c, (dict, list)))

    def _without_surrogates(self, value: Any, place: str) -> Any:
        if isinstance(value, str):
            clean = _SURROGATE.sub("\ufffd", value)
            if clean != value:
                self._notes.add(SURROGATES_REPLACED, place)
            return clean
        if isinstance(value, list):
            return [self._without_surrogates(item, place) for item in value]
        if isinstance(value, dict):
            pairs = [
                (self._without_surrogates(k, place), self._without_surrogates(v, place))
                for k, v in value.items()
            ]
            try:
                return _unique(pairs)
            except _DuplicateKeyError as error:
                raise InputError(str(error), place) from None
        return value


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    result = dict(pairs)
    if len(result) != len(pairs):
        seen: set[str] = set()
        for key, _ in pairs:
            if key in seen:
                shown = key if len(key) <= 80 else key[:77] + "..."
                raise _DuplicateKeyError(f"the key {shown!r} occurs twice in one object")
            seen.add(key)
    return result


def _find_refused(value: Any) -> tuple[str, str]:
    """Path and text of the first refused number; the caller knows that there is one."""
    stack: list[tuple[str, Any]] = [("", value)]
    while stack:
        path, item = stack.pop()
        if isinstance(item, _Refused):
            return path or "(top level)", item.text
        if isinstance(item, dict):
            stack.extend((f"{path}.{k}" if path else k, v) for k, v in reversed(item.items()))
        elif isinstance(item, list):
            stack.extend((f"{path}[{i}]", v) for i, v in reversed(list(enumerate(item))))
    raise AssertionError("no refused number in the value")


def refuse_too_many(text: str, place: str, limits: Limits) -> None:
    """Raise InputError when a text holds more than `max_values` values of JSON.

    Three bytes of JSON ("[],") take seventy of memory, so the size of a text bounds little.
    """
    if len(text) <= limits.max_values or _openings(text) <= limits.max_values:
        return
    if _openings(_STRING.sub("", text)) > limits.max_values:
        raise InputError(f"more than {limits.max_values:,} values in one JSON text", place)


def _openings(text: str) -> int:
    """At least the number of values: each is the first of all or of a list, or follows , or : ."""
    return 1 + sum(text.count(mark) for mark in "[{,:")


def decode_text(text: str, where: str) -> Any:
    """The value of a whole JSON text that people write, as strict as `Decoder`.

    Half characters are refused, not replaced: what people write shall stay as it is.
    Raises InputError naming `where` with line and column, or the key.
    """
    return _decode(text, where, None, HAND_WRITTEN)


def decode_line(text: str, place: str) -> Any:
    """The value of one line of JSON. `place` is FILE:LINE. Raises InputError as `decode_text`."""
    file, _, line = place.rpartition(":")
    number = int(line) if line.isdigit() else None
    return _decode(text, place if number is None else file, number, DEFAULT_LIMITS)


def _decode(text: str, name: str, line: int | None, limits: Limits) -> Any:
    notes = Notes()
    value = Decoder(limits, notes).decode(text, name, line)
    if notes.lines():
        place = name if line is None else f"{name}:{line}"
        raise InputError("half a character (a lone surrogate, \\ud800 to \\udfff)", place)
    return value


def read_json(path: Path) -> Any:
    """The value of a JSON file that people write (`limits.HAND_WRITTEN`), with or without BOM.

    Raises InputError naming file, line and column, or the key.
    """
    return decode_text(read_text(path, HAND_WRITTEN.max_document_bytes), str(path))


def decode_arguments(text: str) -> Any:
    """Arguments of a tool call: their JSON value, or the raw text when it is not valid JSON."""
    try:
        return Decoder(Limits(), Notes()).decode(text, "arguments")
    except InputError:
        return text
