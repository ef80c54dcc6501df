"""A reader for JSON as models write it: one linear pass, no evaluation, bounded depth.

Beyond JSON it accepts single quotes, Python's True, False and None, trailing commas, comments,
tuples, `range(a, b)` and `list(range(a, b))`, and text that breaks off. A broken-off value is
dropped whole: half a label is not a label.
"""

from __future__ import annotations

import math
import re
from dataclasses import dataclass
from typing import Any

_SPACE = re.compile(r"\s*")
_COMMENTS = re.compile(r"(?:\s|//[^\n]*|#[^\n]*|/\*.{0,100}?\*/)*", re.S)
_TOKEN = re.compile(r"[-+.\w]*")  # a number or a word, taken whole: 1/2, 007 and 5O are neither
_NUMBER = re.compile(r"-?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.A)
_STRICT_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.A)
_BOUNDS = r"range\(\s*(-?\d{1,9})\s*(?:,\s*(-?\d{1,9})\s*)?\)"
_RANGE = re.compile(rf"{_BOUNDS}|list\(\s*{_BOUNDS}\s*\)", re.A)
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_STRINGS = {
    '"': re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"', re.S),
    "'": re.compile(r"'([^'\\]*+(?:\\.[^'\\]*+)*+)'", re.S),
}
# A pair of surrogates, any other code, any other sign. LaTeX such as \( or \sqrt is common: an
# unknown escape stands for itself.
_ESCAPE = re.compile(
    r"\\(?:u([dD][89abAB][\da-fA-F]{2})\\u([dD][c-fC-F][\da-fA-F]{2})|u([\da-fA-F]{4})|(.))", re.S
)
_ESCAPES = {"n": "\n", "t": "\t", "r": "\r", "b": "\b", "f": "\f", "/": "/", "\\": "\\",
            '"': '"', "'": "'", "\n": ""}  # fmt: skip
_STRICT_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[\da-fA-F]{4})')
_CONTROL = re.compile(r"[\x00-\x1f]")
_CLOSE = {"{": "}", "[": "]", "(": ")"}

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


@dataclass(frozen=True, slots=True)
class Scan:
    """One value read. `end` is the offset behind it; `cut` says that the text broke off within it,
    `loose` that something in it is no JSON."""

    value: Any
    end: int
    cut: bool = False
    loose: bool = False


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
    def __init__(self, text: str, doubled: bool) -> None:
        self.text = text
        self.doubled = doubled
        self.cut = self.begun = self.loose = False

    def skip(self, at: int) -> int:
        """Behind space and comments."""
        space = _matched(_SPACE, self.text, at)
        end = at + len(space)
        self.loose |= bool(space.strip(" \t\r\n"))
        if self.text[end : end + 1] in ("/", "#"):
            behind = end + len(_matched(_COMMENTS, self.text, end))
            self.loose |= behind > end
            return behind
        return end

    def peek(self, at: int) -> str:
        if at >= len(self.text):
            raise _CutOff
        return self.text[at]

    def value(self, at: int, depth: int) -> tuple[Any, int]:
        at = self.skip(at)
        char = self.peek(at)
        if char in _CLOSE:
            if depth > MAX_DEPTH:
                raise NotJsonish(f"nested deeper than {MAX_DEPTH}", at)
            return self.container(at, depth, _CLOSE[char])
        return self.string(at) if char in _STRINGS else self.atom(at)

    def container(self, at: int, depth: int, close: str) -> tuple[Any, int]:
        """Members until `close`. Where the text ends first, the complete members are kept."""
        self.loose |= close == ")"
        members: list[tuple[str, Any]] = []
        at, done = at + 1, False
        while not done:
            try:
                at, done = self.member(at, depth, close, members)
            except _CutOff:
                self.cut = done = True
                at = len(self.text)
        if close != "}":
            return [value for _, value in members], at
        made = to_object(members, at, doubled=self.doubled)
        self.loose |= any(isinstance(item, Doubled) for item in made.values())
        return made, at

    def member(
        self, at: int, depth: int, close: str, members: list[tuple[str, Any]]
    ) -> tuple[int, bool]:
        """Take in the next member, if there is one; the offset behind it and its comma, and whether
        the container is closed."""
        at = self.skip(at)
        if self.peek(at) == close:
            self.loose |= bool(members)  # a trailing comma
            return at + 1, True
        key = ""
        if close == "}":
            key, at = self.key(at)
        was_cut = self.cut
        value, at = self.value(at, depth + 1)
        # A member that itself broke off is kept only as far as it is complete.
        if was_cut or not self.cut or value not in ({}, []):
            members.append((key, value))
        at = self.skip(at)
        char = self.peek(at)
        if char not in (",", close):
            raise NotJsonish(f"expected ',' or '{close}' at offset {at}", at)
        return at + 1, char == close

    def key(self, at: int) -> tuple[str, int]:
        if self.peek(at) not in _STRINGS:
            raise NotJsonish(f"expected a quoted key at offset {at}", at)
        key, at = self.string(at)
        at = self.skip(at)
        if self.peek(at) != ":":
            raise NotJsonish(f"expected ':' at offset {at}", at)
        self.begun = True
        return key, at + 1

    def string(self, at: int) -> tuple[str, int]:
        match = _STRINGS[self.text[at]].match(self.text, at)
        if match is None:
            raise _CutOff
        inner = match[1]
        self.loose |= match[0][0] == "'" or _CONTROL.search(inner) is not None
        if "\\" in inner:
            self.loose |= "\\" in _STRICT_ESCAPE.sub("", inner)
            inner = _ESCAPE.sub(_unescaped, inner)
        return inner, match.end()

    def atom(self, at: int) -> tuple[Any, int]:
        token = _matched(_TOKEN, self.text, at)
        end = at + len(token)
        if token in ("range", "list"):
            return self.range(at)
        if end == len(self.text):
            raise _CutOff  # more may have followed
        if token in _WORDS:
            self.loose |= token[0].isupper()
            return _WORDS[token], end
        if _NUMBER.fullmatch(token):
            self.loose |= _STRICT_NUMBER.fullmatch(token) is None
            return number(token, at), end
        raise NotJsonish(f"no value at offset {at}", at)

    def range(self, at: int) -> tuple[Any, int]:
        match = _RANGE.match(self.text, at)
        if match is None:
            if len(self.text) - at < 60 and ")" not in self.text[at:]:
                raise _CutOff
            raise NotJsonish(f"no value at offset {at}", at)
        self.loose = True
        bounds = [int(group) for group in match.groups() if group is not None]
        low, high = bounds if len(bounds) == 2 else (0, bounds[0])
        return {"range": [low, high - 1]}, match.end()


def _matched(pattern: re.Pattern[str], text: str, at: int) -> str:
    match = pattern.match(text, at)
    return match.group() if match else ""


def _unescaped(escape: re.Match[str]) -> str:
    high, low, code, sign = escape.groups()
    if high:
        return chr(0x10000 + ((int(high, 16) - 0xD800) << 10) + int(low, 16) - 0xDC00)
    if code:
        return "\ufffd" if 0xD800 <= int(code, 16) < 0xE000 else chr(int(code, 16))
    return _ESCAPES.get(sign, "\\" + sign)


def number(text: str, at: int = 0) -> int | float:
    """The number a text spells. Raises NotJsonish beyond what a float holds: 1e999, 400 digits."""
    try:
        value = float(text) if re.search(r"[.eE]", text) else int(text)
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


def is_deeper(value: Any, most: int) -> bool:
    """Whether a value has more than `most` levels of objects and arrays."""
    level = [value]
    for _ in range(most + 1):
        level = [item for item in level if isinstance(item, (dict, list))]
        if not level:
            return False
        level = [c for item in level for c in (item.values() if isinstance(item, dict) else item)]
    return True
