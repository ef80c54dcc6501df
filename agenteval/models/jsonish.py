"""The scanner for text that is JSON or nearly: one linear pass, no evaluation, no recursion.

Beyond JSON it accepts single and typographic quotes, bare names as keys, Python's True, False and
None, trailing commas, comments, tuples, `range(a, b)` and `list(range(a, b))`, and text that breaks
off. A truncated value is dropped entirely: half a label is not a label.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_SPACE = re.compile(r"\s*+(?:(?://[^\n]*|#[^\n]*|/\*.{0,100}?\*/)\s*+)*", re.S)
_TOKEN = re.compile(r"[-+.\w]*")  # a complete number or word: 1/2, 007 and 5O are neither
_NUMBER = re.compile(r"-?(?:(?:0|[1-9]\d*)(?:\.\d*)?|\.\d+)(?:[eE][+-]?\d+)?", re.A)
_STRICT_NUMBER = re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?(?:[eE][+-]?\d+)?", re.A)
_BOUNDS = r"range\(\s*(-?\d{1,9})\s*(?:,\s*(-?\d{1,9})\s*)?\)"
_RANGE = re.compile(rf"{_BOUNDS}|list\(\s*{_BOUNDS}\s*\)", re.A)
_WORDS = {"true": True, "false": False, "null": None, "True": True, "False": False, "None": None}
_STRINGS = {
    '"': re.compile(r'"([^"\\]*+(?:\\.[^"\\]*+)*+)"', re.S),
    "'": re.compile(r"'([^'\\]*+(?:\\.[^'\\]*+)*+)'", re.S),
    "“": re.compile(r"“([^“”\\]*+(?:\\.[^“”\\]*+)*+)”", re.S),
}
_NAME = re.compile(r"[A-Za-z_][\w-]{0,60}(?=\s{0,20}:)")  # a key without quotes
# A pair of surrogates, any other code, any other sign. LaTeX such as \( or \sqrt is common: an
# unknown escape stands for itself.
_ESCAPE = re.compile(
    r"\\(?:u([dD][89abAB][\da-fA-F]{2})\\u([dD][c-fC-F][\da-fA-F]{2})|u([\da-fA-F]{4})|(.))", re.S
)
_ESCAPES = {
    "n": "\n",
    "t": "\t",
    "r": "\r",
    "b": "\b",
    "f": "\f",
    "/": "/",
    "\\": "\\",
    '"': '"',
    "'": "'",
    "\n": "",
}
_STRICT_ESCAPE = re.compile(r'\\(?:["\\/bfnrt]|u[\da-fA-F]{4})')
_CONTROL = re.compile(r"[\x00-\x1f]")
_INFINITE = ("NaN", "Infinity", "-Infinity")
_CLOSE = {"{": "}", "[": "]", "(": ")"}

MAX_DEPTH = 64


class NotJsonish(ValueError):
    """The text at this place is not a value. `at` is the offset where that became clear.

    `begun` says whether a key of an object had been read by then, with its colon.
    """

    def __init__(self, message: str, at: int = 0) -> None:
        super().__init__(message)
        self.at = at
        self.begun = False


@dataclass(frozen=True, slots=True)
class Doubled:
    """The different values of a key that an object has more than once, in order."""

    values: tuple[Any, ...]


class _CutOff(Exception):
    """The text ended inside a value."""


@dataclass(frozen=True, slots=True)
class Scan:
    """One parsed value, between the offsets `start` and `end`.

    `cut` says whether the text ended within it. `dialect` means that
    something in it is not JSON, apart from trailing `commas` and `nulls`, the numbers read as null.
    `broken` is the reason why parsing stopped at `end`.
    """

    value: Any
    start: int
    end: int
    cut: bool = False
    dialect: bool = False
    commas: int = 0
    nulls: int = 0
    broken: str | None = None

    @property
    def loose(self) -> bool:
        """Whether something in it is not JSON."""
        return self.dialect or self.commas > 0


@dataclass(slots=True)
class _Open:
    """An object or list whose end has not been reached. `name` is its key, if it has one."""

    close: str
    name: str
    key: str = ""
    members: list[tuple[str, Any]] = field(default_factory=list)


@dataclass(frozen=True)
class JsonDialect:
    """How a scan treats what is not JSON.

    `objects` makes an object of its pairs. `deepest` bounds the nesting. Numbers that are not
    `finite` end the scan, or are read as null. `keep` gets the key of a container that broke off
    ("" in a list, None for the outermost) and its complete members, and says whether they are kept;
    if nothing is, the value is None.
    """

    objects: Callable[[list[tuple[str, Any]]], dict[str, Any]]
    deepest: float = MAX_DEPTH
    finite: bool = True
    keep: Callable[[str | None, Any], bool] = lambda _, value: value not in ({}, [])


def scan(text: str, start: int, dialect: JsonDialect | None = None) -> Scan:
    """Read the object or list that starts at `start`.

    Raises NotJsonish where the text is not a value and numbers must be finite; else the scan says
    in `broken` why it ended.
    """
    return _Reader(text, dialect or _REPLIES).read(start)


class _Reader:
    def __init__(self, text: str, dialect: JsonDialect) -> None:
        self.text = text
        self.dialect = dialect
        self.stack: list[_Open] = []
        self.value: Any = None
        self.begun = self.loose = self.bare = False
        self.commas = self.nulls = 0

    def read(self, start: int) -> Scan:
        at, broken, cut = start, None, False
        try:
            at = self.opened(self.text[at], at)
            while self.stack:
                at = self.member(at)
        except _CutOff:
            cut, at = True, len(self.text)
            if self.bare and self.dialect.finite:  # words of prose behind a brace look like this
                raise NotJsonish("an object with unquoted keys breaks off", at) from None
        except NotJsonish as error:
            error.begun = self.begun
            if self.dialect.finite:
                raise
            broken, at = str(error), error.at
        accepted = False
        while self.stack:
            container = self.stack.pop()
            value = self.made(container, at)
            accepted = accepted or self.dialect.keep(container.name if self.stack else None, value)
            if accepted and self.stack:
                self.stack[-1].members.append((self.stack[-1].key, value))
            self.value = value if accepted else None
        return Scan(self.value, start, at, cut, self.loose, self.commas, self.nulls, broken)

    def member(self, at: int) -> int:
        """Take in the next member of the innermost container, or its end; the offset behind it,
        its comma and the containers that end with it."""
        at = self.skip(at)
        container = self.stack[-1]
        value: Any
        if self.peek(at) == container.close:
            self.commas += bool(container.members)  # a trailing comma
            value, at = self.closed(at)
        else:
            if container.close == "}":
                container.key, at = self.key(at)
                at = self.skip(at)
            char = self.peek(at)
            if char in _CLOSE:
                return self.opened(char, at)
            value, at = self.string(at) if char in _STRINGS else self.atom(at)
        while self.stack:
            container = self.stack[-1]
            container.members.append((container.key, value))
            at = self.skip(at)
            char = self.peek(at)
            if char == ",":
                return at + 1
            if char != container.close:
                raise NotJsonish(f"expected ',' or '{container.close}'", at)
            value, at = self.closed(at)
        self.value = value
        return at

    def opened(self, char: str, at: int) -> int:
        if len(self.stack) >= self.dialect.deepest:
            raise NotJsonish(f"nested deeper than {self.dialect.deepest}", at)
        self.loose |= char == "("
        in_object = bool(self.stack) and self.stack[-1].close == "}"
        self.stack.append(_Open(_CLOSE[char], self.stack[-1].key if in_object else ""))
        return at + 1

    def closed(self, at: int) -> tuple[Any, int]:
        """The innermost container, which ends here, and the offset behind it."""
        return self.made(self.stack.pop(), at + 1), at + 1

    def made(self, container: _Open, at: int) -> Any:
        if container.close != "}":
            return [value for _, value in container.members]
        try:
            record = self.dialect.objects(container.members)
        except NotJsonish as error:
            error.at, self.begun = at, True
            raise
        self.loose |= any(isinstance(value, Doubled) for value in record.values())
        return record

    def skip(self, at: int) -> int:
        """Behind space and comments."""
        skipped = _matched(_SPACE, self.text, at)
        self.loose |= bool(skipped.strip(" \t\r\n"))
        return at + len(skipped)

    def peek(self, at: int) -> str:
        if at >= len(self.text):
            raise _CutOff
        return self.text[at]

    def key(self, at: int) -> tuple[str, int]:
        if self.peek(at) in _STRINGS:
            key, at = self.string(at)
        elif key := _matched(_NAME, self.text, at):
            self.bare = self.loose = True
            at += len(key)
        else:
            raise NotJsonish("expected a quoted key", at)
        at = self.skip(at)
        if self.peek(at) != ":":
            raise NotJsonish("expected ':'", at)
        self.begun = True
        return key, at + 1

    def string(self, at: int) -> tuple[str, int]:
        match = _STRINGS[self.text[at]].match(self.text, at)
        if match is None:
            raise _CutOff
        inner = match[1]
        self.loose |= match[0][0] != '"' or _CONTROL.search(inner) is not None
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
        spelled = _NUMBER.fullmatch(token)
        if spelled:
            self.loose |= _STRICT_NUMBER.fullmatch(token) is None
            try:
                return number(token, at), end
            except NotJsonish:
                if self.dialect.finite:
                    raise
        if spelled or (token in _INFINITE and not self.dialect.finite):
            self.nulls += 1
            return None, end
        raise NotJsonish("not a value", at)

    def range(self, at: int) -> tuple[Any, int]:
        match = _RANGE.match(self.text, at)
        if match is None:
            if len(self.text) - at < 60 and ")" not in self.text[at:]:
                raise _CutOff
            raise NotJsonish("not a value", at)
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
    """Return the number in a text. Raises NotJsonish beyond the range of a float: 1e999, 400
    digits."""
    try:
        value = float(text) if re.search(r"[.eE]", text) else int(text)
        if math.isfinite(float(value)):
            return value
    except (ValueError, OverflowError):
        pass
    raise NotJsonish("a number beyond what a float holds", at)


def to_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """dict of the pairs; a key with one value twice has that value.

    Raises NotJsonish when a key has two different values.
    """
    result = doubled_object(pairs)
    for key, value in result.items():
        if isinstance(value, Doubled):
            raise NotJsonish(f"the key {key!r} stands twice with different values")
    return result


def doubled_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """Like `to_object`, but a key with different values gets a `Doubled`."""
    result = dict(pairs)
    if len(result) == len(pairs):
        return result
    values: dict[str, dict[str, Any]] = {}
    for key, value in pairs:
        values.setdefault(key, {})[repr(value)] = value  # true is not 1, nor is 1.0
    doubled = {k: Doubled(tuple(v.values())) for k, v in values.items() if len(v) > 1}
    return result | doubled


def is_deeper(value: Any, most: int) -> bool:
    """Whether a value has more than `most` levels of objects and arrays."""
    level = [value]
    for _ in range(most + 1):
        level = [item for item in level if isinstance(item, (dict, list))]
        if not level:
            return False
        level = [c for item in level for c in (item.values() if isinstance(item, dict) else item)]
    return True


_REPLIES = JsonDialect(to_object)
