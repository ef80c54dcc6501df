"""Strict JSON: what two programs could read differently is refused, and the place is named."""

from __future__ import annotations

import json
import math
import re
from typing import Any

from agenteval.errors import InputError
from agenteval.readers.limits import Limits, Notes

# Surrogates can enter only through an escape: raw ones are no valid UTF-8.
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_SURROGATE = re.compile("[\ud800-\udfff]")
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
            object_pairs_hook=_unique,
            parse_constant=self._refuse,
            parse_float=self._float,
        )

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
        `max_depth`, integers too long to read.
        """
        place = name if line is None else f"{name}:{line}"
        self._refused = False
        try:
            value = self._json.decode(text)
        except json.JSONDecodeError as error:
            at = f"{name}:{line or error.lineno}:{error.colno}"
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
            stack.extend((child, depth + 1) for child in children)

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
                raise _DuplicateKeyError(f"the key {key!r} occurs twice in one object")
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


def decode_arguments(text: str) -> Any:
    """Arguments of a tool call: their JSON value, or the raw text when it is not valid JSON."""
    try:
        return Decoder(Limits(), Notes()).decode(text, "arguments")
    except InputError:
        return text
