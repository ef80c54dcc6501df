"""A reader for JSON as models write it: one linear pass, no evaluation, bounded depth.

Beyond JSON it accepts single quotes, Python's True, False and None, trailing commas, tuples,
`range(a, b)` and `list(range(a, b))`, and text that breaks off. A broken-off value is dropped
whole: half a label is not a label.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass, field
from typing import Any

_SPACE = re.compile(r"(?:\s|//[^\n]*|#[^\n]*|/\*.*?\*/)*", re.S)
_NUMBER = re.compile(r"-?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
_RANGE = re.compile(r"(?:list\(\s*)?range\(\s*(-?\d{1,9})\s*(?:,\s*(-?\d{1,9})\s*)?\)\s*\)?")
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_WORD = re.compile(r"[A-Za-z]+")
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\",
            '"': '"', "'": "'", "\n": ""}  # fmt: skip
_HEX = re.compile(r"[0-9a-fA-F]{4}")

MAX_DEPTH = 64


class NotJsonish(ValueError):
    """The text at this place is no value."""


class _CutOff(Exception):
    """The text ended inside a value."""


@dataclass
class Scan:
    """One value read. `end` is the offset behind it; `loose` names what JSON does not allow."""

    value: Any
    end: int
    cut: bool = False
    loose: set[str] = field(default_factory=set)


def scan(text: str, start: int) -> Scan:
    """Read the object or list that starts at `start`. Raises NotJsonish."""
    reader = _Reader(text)
    try:
        value, end = reader.value(start, 0)
    except _CutOff:  # not even the outermost bracket could be kept
        raise NotJsonish("the text ends inside the first value") from None
    return Scan(value, end, reader.cut, reader.loose)


class _Reader:
    def __init__(self, text: str) -> None:
        self.text = text
        self.cut = False
        self.loose: set[str] = set()

    def skip(self, at: int) -> int:
        match = _SPACE.match(self.text, at)
        return match.end() if match else at

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        at = self.skip(at)
        if at >= len(self.text):
            raise _CutOff
        if depth > MAX_DEPTH:
            raise NotJsonish(f"nested deeper than {MAX_DEPTH}")
        char = self.text[at]
        if char == "{":
            return self.container(at, depth, "}")
        if char in "[(":
            return self.container(at, depth, "]" if char == "[" else ")")
        if char in "\"'":
            return self.string(at)
        return self.atom(at)

    def container(self, at: int, depth: int, close: str) -> tuple[Any, int]:
        """Members until `close`. Where the text ends first, the complete members are kept."""
        if close == ")":
            self.loose.add("python")
        pairs: list[tuple[str, Any]] = []
        items: list[Any] = []
        at += 1
        while True:
            try:
                at, done = self.member(at, depth, close, pairs, items)
            except _CutOff:
                self.cut = True
                done, at = True, len(self.text)
            if done:
                return (to_object(pairs) if close == "}" else items), at

    def member(
        self, at: int, depth: int, close: str, pairs: list[tuple[str, Any]], items: list[Any]
    ) -> tuple[int, bool]:
        at = self.skip(at)
        if self.peek(at) == close:
            if pairs or items:
                self.loose.add("trailing comma")
            return at + 1, True
        if close == "}":
            at = self.pair(at, depth, pairs)
        else:
            was_cut = self.cut
            value, at = self.value(at, depth + 1)
            # A member that itself broke off is kept only as far as it is complete.
            if not (self.cut and not was_cut and value in ({}, [])):
                items.append(value)
        at = self.skip(at)
        char = self.peek(at)
        if char == ",":
            return at + 1, False
        if char == close:
            return at + 1, True
        raise NotJsonish(f"expected ',' or '{close}' at offset {at}")

    def pair(self, at: int, depth: int, pairs: list[tuple[str, Any]]) -> int:
        if self.peek(at) not in "\"'":
            raise NotJsonish(f"expected a quoted key at offset {at}")
        key, at = self.string(at)
        at = self.skip(at)
        if self.peek(at) != ":":
            raise NotJsonish(f"expected ':' at offset {at}")
        was_cut = self.cut
        value, at = self.value(at + 1, depth + 1)
        if not (self.cut and not was_cut and value in ({}, [])):
            pairs.append((key, value))
        return at

    def peek(self, at: int) -> str:
        if at >= len(self.text):
            raise _CutOff
        return self.text[at]

    def string(self, at: int) -> tuple[str, int]:
        quote = self.text[at]
        if quote == "'":
            self.loose.add("single quotes")
        parts: list[str] = []
        at += 1
        while True:
            char = self.peek(at)
            if char == quote:
                return "".join(parts), at + 1
            if char == "\\":
                piece, at = self.escape(at)
                parts.append(piece)
            else:
                end = at + 1
                while end < len(self.text) and self.text[end] not in ("\\", quote):
                    end += 1
                if "\n" in self.text[at:end]:
                    self.loose.add("line break in a string")
                parts.append(self.text[at:end])
                at = end

    def escape(self, at: int) -> tuple[str, int]:
        char = self.peek(at + 1)
        if char != "u":
            # LaTeX such as \( or \sqrt is common: an unknown escape stands for itself
            return _ESCAPES.get(char, "\\" + char), at + 2
        match = _HEX.match(self.text, at + 2)
        if not match:
            return "\\u", at + 2
        code = int(match.group(), 16)
        at += 6
        low = _HEX.match(self.text, at + 2) if self.text.startswith("\\u", at) else None
        if 0xD800 <= code < 0xDC00 and low and 0xDC00 <= int(low.group(), 16) < 0xE000:
            code = 0x10000 + ((code - 0xD800) << 10) + (int(low.group(), 16) - 0xDC00)
            at += 6
        return ("\ufffd" if 0xD800 <= code < 0xE000 else chr(code)), at

    def atom(self, at: int) -> tuple[Any, int]:
        if match := _RANGE.match(self.text, at):
            self.loose.add("python")
            low, high = match.group(1), match.group(2)
            bounds = (0, int(low)) if high is None else (int(low), int(high))
            return {"range": [bounds[0], bounds[1] - 1]}, match.end()
        if match := _NUMBER.match(self.text, at):
            if match.end() == len(self.text):
                raise _CutOff  # more digits may have followed
            return _number(match.group()), match.end()
        word = _WORD.match(self.text, at)
        if word and word.end() == len(self.text):
            raise _CutOff
        if word and word.group() in _WORDS:
            if word.group()[0].isupper():
                self.loose.add("python")
            return _WORDS[word.group()], word.end()
        raise NotJsonish(f"no value at offset {at}")


def _number(text: str) -> int | float:
    if len(text) > 400:
        raise NotJsonish("a number of more than 400 characters")
    try:
        return int(text)
    except ValueError:
        number = float(text)
    if not math.isfinite(number):
        raise NotJsonish("a number beyond what a float holds")
    return number


def to_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """dict of the pairs. Raises NotJsonish when one key stands with two different values."""
    result: dict[str, Any] = {}
    for key, value in pairs:
        if key in result and result[key] != value:
            raise NotJsonish(f"the key {key!r} stands twice with different values")
        result[key] = value
    return result
