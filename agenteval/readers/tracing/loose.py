"""A second, forgiving parse of JSON: trailing commas, text that breaks off, any depth.

It is written without recursion, because span trees nest deeper than Python's stack, and keeps what
was complete where the text ends too early or stops being JSON.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

_SPACE = re.compile(r"[ \t\n\r]*")
_STRING = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.S)
_ATOM = re.compile(r"-?[A-Za-z0-9.+-]+")
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,4000})(\.\d+)?([eE][+-]?\d+)?", re.A)
_WORDS = {"true": True, "false": False, "null": None}
_NOT_FINITE = {"NaN", "Infinity", "-Infinity"}
_CLOSE = {"{": "}", "[": "]"}


@dataclass
class Loose:
    """What a text holds: its values in order, and what was wrong.

    `broken` says what stopped the reading, at offset `at`; None when the text was read to its end.
    """

    values: list[Any] = field(default_factory=list)
    trailing_commas: int = 0
    refused: int = 0  # NaN and infinities, read as null
    broken: str | None = None
    at: int = 0


class _Broken(Exception):
    """Here the text is no JSON any more, or ends."""


@dataclass
class _Open:
    """A container that is not closed yet. `state` is what may come next."""

    value: Any
    name: str | None  # the key it stands under, None in a list or at the top
    key: str | None = None
    state: str = "first"  # first, key, colon, value, comma, after


def parse_loosely(text: str, keep: Callable[[str], bool]) -> Loose:
    """Read all JSON values of `text`, one after the other, in linear time.

    Where it breaks off, an object that is not complete is dropped, up to the next list whose key
    `keep` accepts: half a span is no span, but its elder siblings are whole.
    """
    return _Parser(text, keep).run()


class _Parser:
    def __init__(self, text: str, keep: Callable[[str], bool]) -> None:
        self.text = text
        self.keep = keep
        self.result = Loose()
        self.stack: list[_Open] = []
        self.at = 0

    def run(self) -> Loose:
        try:
            while True:
                self._skip()
                if self.at == len(self.text):
                    if self.stack:
                        raise _Broken("the text ends inside a value")
                    return self.result
                self._step()
        except _Broken as error:
            self.result.broken, self.result.at = str(error), self.at
            self._prune()
            return self.result

    def _skip(self) -> None:
        match = _SPACE.match(self.text, self.at)
        assert match is not None
        self.at = match.end()

    def _step(self) -> None:
        top = self.stack[-1] if self.stack else None
        char = self.text[self.at]
        if top is None:
            if char not in _CLOSE:
                raise _Broken("neither an object nor an array")
            self._value(char)
        elif char == _CLOSE["{" if isinstance(top.value, dict) else "["]:
            self._close(top)
        elif top.state == "after":
            if char != ",":
                raise _Broken("a comma is missing")
            top.state, self.at = "comma", self.at + 1
        elif top.state == "colon":
            if char != ":":
                raise _Broken("a colon is missing")
            top.state, self.at = "value", self.at + 1
        elif isinstance(top.value, dict) and top.state != "value":
            if char != '"':
                raise _Broken("a key is missing")
            top.key, top.state = self._string(), "colon"
        else:
            self._value(char)

    def _close(self, top: _Open) -> None:
        if top.state in ("colon", "value"):
            raise _Broken("a value is missing")
        self.result.trailing_commas += top.state == "comma"
        self.at += 1
        self.stack.pop()
        if not self.stack:
            self.result.values.append(top.value)

    def _value(self, char: str) -> None:
        if char not in _CLOSE:
            self._put(self._string() if char == '"' else self._atom())
            return
        made: Any = {} if char == "{" else []
        name = self.stack[-1].key if self.stack else None
        if self.stack:
            self._put(made)
        self.stack.append(_Open(made, name))
        self.at += 1

    def _put(self, value: Any) -> None:
        top = self.stack[-1]
        if isinstance(top.value, dict):
            assert top.key is not None
            top.value[top.key] = value
        else:
            top.value.append(value)
        top.state = "after"

    def _string(self) -> str:
        match = _STRING.match(self.text, self.at)
        if match is None:
            raise _Broken("a text has no end")
        self.at = match.end()
        inner = match[1]
        if "\\" not in inner:
            return inner
        try:
            return str(json.loads(match[0], strict=False))
        except ValueError:  # an escape that JSON does not know: the text as it stands
            return inner

    def _atom(self) -> Any:
        match = _ATOM.match(self.text, self.at)
        token = match[0] if match else ""
        if self.at + len(token) == len(self.text):
            raise _Broken("the text ends inside a value")  # more may have followed
        if token in _WORDS:
            value = _WORDS[token]
        elif token in _NOT_FINITE:
            self.result.refused, value = self.result.refused + 1, None
        elif number := _NUMBER.fullmatch(token):
            value = self._number(token, whole=not (number[1] or number[2]))
        else:
            raise _Broken("no JSON value")
        self.at += len(token)
        return value

    def _number(self, token: str, *, whole: bool) -> Any:
        if whole:
            return int(token)
        value = float(token)
        if value - value == 0:
            return value
        self.result.refused += 1
        return None

    def _prune(self) -> None:
        """Take back the containers that were open, up to a list worth keeping."""
        for depth in range(len(self.stack) - 1, -1, -1):
            entry = self.stack[depth]
            if isinstance(entry.value, list) and (depth == 0 or self.keep(entry.name or "")):
                self.result.values.append(self.stack[0].value)
                return
            if depth:
                parent = self.stack[depth - 1].value
                if isinstance(parent, list):
                    parent.pop()
                else:
                    parent.pop(entry.name, None)
