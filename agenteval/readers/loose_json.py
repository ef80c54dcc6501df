"""JSON of traces, read forgivingly where it is not strict: trailing commas, NaN, text that breaks
off, any depth. What was put right is a warning.

The second parse is written without recursion, because span trees nest deeper than Python's stack,
and keeps what was complete where the text ends too early or stops being JSON.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from agenteval.errors import InputError
from agenteval.readers.strict_json import (
    SURROGATES_REPLACED,
    Notes,
    refuse_too_many,
    whole_characters,
)

NOT_FINITE = "NaN or an infinite number was read as null"
TRAILING_COMMA = "a trailing comma was passed over"
REPEATED_KEY = "a key stands twice in one object; the last value counts"

_TOKEN = re.compile(
    r"""[ \t\n\r]*(?:(?P<sign>[{}\[\],:])|(?P<text>"[^"\\]*(?:\\.[^"\\]*)*")"""
    r"""|(?P<atom>-?[A-Za-z0-9.+-]+)|(?P<end>\Z))""",
    re.S,
)
_NUMBER = re.compile(r"-?(?:0|[1-9]\d{0,4000})(\.\d+)?([eE][+-]?\d+)?", re.A)
_WORDS = {"true": True, "false": False, "null": None}
_CLOSE = {"{": "}", "[": "]"}


class LooseDecoder:
    """Decodes the texts of one file of traces. `keep` tells the keys of lists of spans; `broken`
    is what stopped the reading first, if anything did."""

    def __init__(self, keep: Callable[[str], bool]) -> None:
        self.broken: InputError | None = None
        self._keep = keep
        self._refused = self._repeated = 0
        self._json = json.JSONDecoder(
            object_pairs_hook=self._object, parse_constant=self._refuse, parse_float=self._float
        )

    def decode(self, text: str, name: str, line: int | None, notes: Notes) -> Any:
        """The value of a text; several become a list. What was complete where the text breaks off.

        A line of which nothing is complete is an empty list; a document is an InputError that names
        line and column, and so is one of too many values.
        """
        place = name if line is None else f"{name}:{line}"
        refuse_too_many(text, place)
        self._refused = self._repeated = 0
        try:
            value = self._json.decode(text)
        except (ValueError, RecursionError):  # broken, nested too deep, or an endless integer
            self._repeated = 0
            value = self._loosely(text, name, line, notes)
        if self._refused:
            notes.add(NOT_FINITE, place)
        if self._repeated:
            notes.add(REPEATED_KEY, place)
        value, halves = whole_characters(text, value, place)
        for _ in range(halves):
            notes.add(SURROGATES_REPLACED, place)
        return value

    def _loosely(self, text: str, name: str, line: int | None, notes: Notes) -> Any:
        text = text.rstrip()  # so that the end of a line is not the beginning of the next
        loose = parse_loosely(text, self._keep)
        self._refused = loose.refused
        if loose.trailing_commas:
            notes.add(TRAILING_COMMA, name if line is None else f"{name}:{line}")
        if loose.broken is not None:
            row = text.count("\n", 0, loose.at) + 1
            column = loose.at - text.rfind("\n", 0, loose.at)
            at = f"{name}:{line or row}:{column}"
            error = InputError(f"broken JSON: {loose.broken}", at)
            self.broken = self.broken or error
            if not any(loose.values):
                if line is None:
                    raise error
                notes.add(f"broken JSON ({loose.broken}): the line was passed over", at)
                return []
            notes.add(f"broken JSON ({loose.broken}): only what stands before was read", at)
        return loose.values[0] if len(loose.values) == 1 else loose.values

    def _object(self, pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        made = dict(pairs)
        self._repeated += len(made) != len(pairs)
        return made

    def _refuse(self, text: str) -> None:
        self._refused += 1

    def _float(self, text: str) -> float | None:
        value = float(text)
        if math.isfinite(value):
            return value
        self._refused += 1
        return None


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
    """A container that is not closed yet. `state` is what came last or may come next."""

    value: Any
    name: str | None  # the key it stands under, None in a list or at the top
    key: str | None = None
    state: str = "first"  # first, colon, value, comma, after


def parse_loosely(text: str, keep: Callable[[str], bool]) -> Loose:
    """Read all JSON values of `text`, one after the other, in linear time.

    Where it breaks off, an object that is not complete is dropped, up to the next list whose key
    `keep` accepts: half a span is no span, but its elder siblings are whole.
    """
    loose, stack = Loose(), list[_Open]()
    try:
        while (token := _TOKEN.match(text, loose.at)) is None or token.lastgroup != "end":
            if token is None:
                while text[loose.at] in " \t\n\r":
                    loose.at += 1
                raise _Broken("a text has no end" if text[loose.at] == '"' else "no JSON value")
            loose.at = token.start(token.lastgroup or 0)
            _take(token, text, stack, loose)
            loose.at = token.end()
        loose.at = len(text)
        if stack:
            raise _Broken("the text ends inside a value")
    except _Broken as error:
        loose.broken = str(error)
        _prune(stack, keep, loose)
    return loose


def _take(token: re.Match[str], text: str, stack: list[_Open], loose: Loose) -> None:
    """One token, where it may stand. Raises _Broken where it may not."""
    sign, top = token["sign"], stack[-1] if stack else None
    if sign in ("{", "[") and (top is None or _wants_value(top)):
        made: Any = {} if sign == "{" else []
        if top is not None:
            _put(top, made)
        stack.append(_Open(made, top.key if top else None))
    elif top is None:
        raise _Broken("neither an object nor an array")
    elif sign == _CLOSE["{" if isinstance(top.value, dict) else "["]:
        _close(top, stack, loose)
    elif top.state == "after" or top.state == "colon":
        wanted, name, after = (",", "comma", "comma") if top.state == "after" else (
            ":", "colon", "value")  # fmt: skip
        if sign != wanted:
            raise _Broken(f"a {name} is missing")
        top.state = after
    elif not _wants_value(top):
        if token["text"] is None:
            raise _Broken("a key is missing")
        top.key, top.state = _string(token["text"]), "colon"
    elif token["text"] is not None:
        _put(top, _string(token["text"]))
    else:
        _put(top, _atom(token["atom"] or "", token.end() == len(text), loose))


def _close(top: _Open, stack: list[_Open], loose: Loose) -> None:
    if top.state in ("colon", "value"):
        raise _Broken("a value is missing")
    loose.trailing_commas += top.state == "comma"
    stack.pop()
    if not stack:
        loose.values.append(top.value)


def _wants_value(top: _Open) -> bool:
    return top.state == "value" or (isinstance(top.value, list) and top.state != "after")


def _put(top: _Open, value: Any) -> None:
    if isinstance(top.value, dict):
        top.value[top.key] = value
    else:
        top.value.append(value)
    top.state = "after"


def _string(quoted: str) -> str:
    try:
        return str(json.loads(quoted, strict=False))
    except ValueError:  # an escape that JSON does not know: the text as it stands
        return quoted[1:-1]


def _atom(token: str, last: bool, loose: Loose) -> Any:
    if last:
        raise _Broken("the text ends inside a value")  # more may have followed
    if token in _WORDS:
        return _WORDS[token]
    number = _NUMBER.fullmatch(token)
    if number and not (number[1] or number[2]):
        return int(token)
    if number is None and token not in ("NaN", "Infinity", "-Infinity"):
        raise _Broken("no JSON value")
    value = float(token)
    if math.isfinite(value):
        return value
    loose.refused += 1
    return None


def _prune(stack: list[_Open], keep: Callable[[str], bool], loose: Loose) -> None:
    """Take back the containers that were open, up to a list worth keeping."""
    for depth in range(len(stack) - 1, -1, -1):
        entry = stack[depth]
        if isinstance(entry.value, list) and (depth == 0 or keep(entry.name or "")):
            loose.values.append(stack[0].value)
            return
        if depth and isinstance(stack[depth - 1].value, list):
            stack[depth - 1].value.pop()
        elif depth:
            stack[depth - 1].value.pop(entry.name, None)
