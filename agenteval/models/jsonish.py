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

_SPACE = re.compile(r"\s*")
_COMMENTS = re.compile(r"(?:\s|//[^\n]*|#[^\n]*|/\*.{0,100}?\*/)*", re.S)
_TOKEN = re.compile(r"[-+.\w]*")  # a number or a word, taken whole: 1/2, 007 and 5O are neither
_NUMBER = re.compile(r"-?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.A)
_BOUNDS = r"range\(\s*(-?\d{1,9})\s*(?:,\s*(-?\d{1,9})\s*)?\)"
_RANGE = re.compile(rf"{_BOUNDS}|list\(\s*{_BOUNDS}\s*\)", re.A)
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_PLAIN = {'"': re.compile(r'[^"\\]+'), "'": re.compile(r"[^'\\]+")}
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\",
            '"': '"', "'": "'", "\n": ""}  # fmt: skip
_HEX = re.compile(r"[0-9a-fA-F]{4}")
_JSON_ESCAPES = frozenset('"\\/bfnrt')
_CLOSE = {"{": "}", "[": "]", "(": ")"}
_FLOAT = re.compile(r"[.eE]")
_STRICT_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.A)
_CONTROL = re.compile(r"[\x00-\x1f]")

MAX_DEPTH = 64


class NotJsonish(ValueError):
    """The text at this place is no value. `at` is the offset where that became clear.

    `begun` says whether a key of an object had been read by then, with its colon.
    """

    def __init__(self, message: str, at: int = 0) -> None:
        super().__init__(message)
        self.at = at
        self.begun = False


@dataclass(frozen=True, slots=True)
class Doubled:
    """What stands under a key that an object has more than once: its different values in order."""

    values: tuple[Any, ...]


class _CutOff(Exception):
    """The text ended inside a value."""


@dataclass
class Scan:
    """One value read. `end` is the offset behind it; `loose` names what JSON does not allow."""

    value: Any
    end: int
    cut: bool = False
    loose: set[str] = field(default_factory=set)


def scan(text: str, start: int, *, doubled: bool = False) -> Scan:
    """Read the object or list that starts at `start`. Raises NotJsonish.

    `doubled` as in `to_object`.
    """
    reader = _Reader(text, doubled)
    try:
        value, end = reader.value(start, 1)
    except NotJsonish as error:
        error.begun = reader.begun
        raise
    return Scan(value, end, reader.cut, reader.loose)


class _Reader:
    def __init__(self, text: str, doubled: bool = False) -> None:
        self.text = text
        self.doubled = doubled
        self.cut = False
        self.begun = False
        self.loose: set[str] = set()

    def skip(self, at: int) -> int:
        """Behind space and comments."""
        space = _matched(_SPACE, self.text, at)
        end = at + len(space)
        if space.strip(" \t\r\n"):
            self.loose.add("space")
        if self.text[end : end + 1] in ("/", "#"):
            behind = end + len(_matched(_COMMENTS, self.text, end))
            if behind > end:
                self.loose.add("comment")
            return behind
        return end

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        at = self.skip(at)
        char = self.peek(at)
        if char in "{[(":
            if depth > MAX_DEPTH:
                raise NotJsonish(f"nested deeper than {MAX_DEPTH}", at)
            return self.container(at, depth, _CLOSE[char])
        return self.string(at) if char in "\"'" else self.atom(at)

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
            if done and close != "}":
                return items, at
            if done:
                value = to_object(pairs, at, doubled=self.doubled)
                if any(isinstance(item, Doubled) for item in value.values()):
                    self.loose.add("doubled key")
                return value, at

    def member(
        self, at: int, depth: int, close: str, pairs: list[tuple[str, Any]], items: list[Any]
    ) -> tuple[int, bool]:
        at = self.skip(at)
        if self.peek(at) == close:
            if pairs or items:
                self.loose.add("trailing comma")
            return at + 1, True
        key = None
        if close == "}":
            key, at = self.key(at)
        was_cut = self.cut
        value, at = self.value(at, depth + 1)
        # A member that itself broke off is kept only as far as it is complete.
        if not (self.cut and not was_cut and value in ({}, [])):
            if key is None:
                items.append(value)
            else:
                pairs.append((key, value))
        at = self.skip(at)
        char = self.peek(at)
        if char == ",":
            return at + 1, False
        if char == close:
            return at + 1, True
        raise NotJsonish(f"expected ',' or '{close}' at offset {at}", at)

    def key(self, at: int) -> tuple[str, int]:
        if self.peek(at) not in "\"'":
            raise NotJsonish(f"expected a quoted key at offset {at}", at)
        key, at = self.string(at)
        at = self.skip(at)
        if self.peek(at) != ":":
            raise NotJsonish(f"expected ':' at offset {at}", at)
        self.begun = True
        return key, at + 1

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
        while (char := self.peek(at)) != quote:
            if char == "\\":
                piece, at = self.escape(at)
            else:
                piece = _matched(_PLAIN[quote], self.text, at)
                at += len(piece)
                if _CONTROL.search(piece):
                    self.loose.add("control character in a string")
            parts.append(piece)
        return "".join(parts), at + 1

    def escape(self, at: int) -> tuple[str, int]:
        char = self.peek(at + 1)
        match = _HEX.match(self.text, at + 2) if char == "u" else None
        if match is None:
            # LaTeX such as \( or \sqrt is common: an unknown escape stands for itself
            if char not in _JSON_ESCAPES:
                self.loose.add("escape")
            return _ESCAPES.get(char, "\\" + char), at + 2
        code = int(match.group(), 16)
        at += 6
        low = _HEX.match(self.text, at + 2) if self.text.startswith("\\u", at) else None
        if 0xD800 <= code < 0xDC00 and low and 0xDC00 <= int(low.group(), 16) < 0xE000:
            code = 0x10000 + ((code - 0xD800) << 10) + (int(low.group(), 16) - 0xDC00)
            at += 6
        return ("\ufffd" if 0xD800 <= code < 0xE000 else chr(code)), at

    def atom(self, at: int) -> tuple[Any, int]:
        token = _matched(_TOKEN, self.text, at)
        end = at + len(token)
        if token in ("range", "list"):
            return self.range(at)
        if end == len(self.text):
            raise _CutOff  # more may have followed
        if token in _WORDS:
            if token[0].isupper():
                self.loose.add("python")
            return _WORDS[token], end
        if _NUMBER.fullmatch(token):
            if not _STRICT_NUMBER.fullmatch(token):
                self.loose.add("number")
            return number(token, at), end
        raise NotJsonish(f"no value at offset {at}", at)

    def range(self, at: int) -> tuple[Any, int]:
        match = _RANGE.match(self.text, at)
        if match is None:
            if len(self.text) - at < 60 and ")" not in self.text[at:]:
                raise _CutOff
            raise NotJsonish(f"no value at offset {at}", at)
        self.loose.add("python")
        bounds = [int(group) for group in match.groups() if group is not None]
        low, high = bounds if len(bounds) == 2 else (0, bounds[0])
        return {"range": [low, high - 1]}, match.end()


def _matched(pattern: re.Pattern[str], text: str, at: int) -> str:
    found = pattern.match(text, at)
    return found.group() if found else ""


def number(text: str, at: int = 0) -> int | float:
    """The number a text spells. Raises NotJsonish beyond what a float holds: 1e999, 400 digits."""
    try:
        value = float(text) if _FLOAT.search(text) else int(text)
        if math.isfinite(float(value)):
            return value
    except (ValueError, OverflowError):
        pass
    raise NotJsonish("a number beyond what a float holds", at)


def to_object(
    pairs: list[tuple[str, Any]], at: int = 0, *, doubled: bool = False
) -> dict[str, Any]:
    """dict of the pairs; a key with one value twice has that value.

    With two different values it has them as `Doubled` where `doubled` allows it; else NotJsonish.
    """
    result = dict(pairs)
    if len(result) == len(pairs):
        return result
    values: dict[str, dict[str, Any]] = {}
    for key, value in pairs:
        values.setdefault(key, {})[repr(value)] = value  # true is not 1, nor is 1.0
    for key, different in values.items():
        if len(different) > 1 and not doubled:
            raise NotJsonish(f"the key {key!r} stands twice with different values", at)
        if len(different) > 1:
            result[key] = Doubled(tuple(different.values()))
    return result
