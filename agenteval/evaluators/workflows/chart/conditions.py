"""Conditions at the end of a label, `Seats are left (free >= 1 and open = true)`.

condition  = all {"or" all}          all = comparison {"and" comparison}
comparison = [tool "."] field op value
op         = "=" | "!=" | "<" | "<=" | ">" | ">=" | "is" | "is not"
value      = number | true | false | "quoted" | bare words
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Literal, NoReturn

from agenteval.errors import InputError
from agenteval.evaluators.workflows.chart.nouns import Comparison, Condition

_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?: \d\d:\d\d(?::\d\d)?)?|\d\d:\d\d(?::\d\d)?", re.ASCII)
_ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def compare(returned: Any, op: str, value: str | float | bool) -> bool | None:
    """Whether `returned op value` holds, None when order has no meaning for the two.

    Words are compared without regard to case and runs of blanks. Numbers are ordered, and so are
    ISO dates and times, as text; nothing else is.
    """
    left, right = plain(returned), plain(value)
    if op in ("=", "!="):
        return bool(left == right) == (op == "=")
    if isinstance(left, float) and isinstance(right, float):
        return bool(_ORDER[op](left, right))
    if isinstance(left, str) and isinstance(right, str):
        before, after = (text.replace("t", " ") for text in (left, right))
        if (
            _DATE.fullmatch(before)
            and _DATE.fullmatch(after)
            and (":" in before[:3]) == (":" in after[:3])
        ):
            return bool(_ORDER[op](before, after))
    return None


def plain(value: Any) -> Any:
    """One spelling for all that count as equal: numbers as float, words in lower case.

    Truth values become "true" and "false"; lists, objects and null stay what they are, and equal
    no constant.
    """
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return _finite(value)
    if not isinstance(value, str):
        return value
    text = " ".join(value.split())
    number = _finite(text) if len(text) < 400 and _NUMBER.fullmatch(text) else None
    return text.casefold() if number is None else number


def _finite(value: int | float | str) -> float | None:
    try:
        number = float(value)
    except OverflowError:
        return None
    return number if math.isfinite(number) else None


_TOKEN = re.compile(
    r"""(?P<space>\s+)|(?P<quoted>"[^"]*")|(?P<op><=|>=|!=|==|≤|≥|≠|[=<>])"""
    r"""|(?P<word>[^\s"=<>!≤≥≠()]+)|(?P<other>.)""",
    re.DOTALL,
)
_FIELD = re.compile(r"(?:([^\W\d]\w*)\.)?([^\W\d]\w*)")
_CONSTANT = re.compile(r"[+-]?(?:\d+(?:\.\d+)?|\.\d+)")
_LOOKS = re.compile(r"(?<![\w.])[^\W\d][\w.]*\s*(?:[<>=!]=|[<>=≤≥≠](?![<>]))")
_OPS = {"==": "=", "≤": "<=", "≥": ">=", "≠": "!="}
_ALLOWED = "allowed is `field op value`, joined by `and` or `or`, with op one of = != < <= > >="


class ConditionError(InputError):
    """What stands at the end of a label looks like a condition and is none.

    `column` counts from 1, in the label.
    """

    def __init__(self, problem: str, column: int) -> None:
        self.problem, self.column = f"{problem}; {_ALLOWED}", column
        super().__init__(self.problem, f"label, column {column}")


@dataclass(frozen=True, slots=True)
class _Token:
    kind: str
    text: str
    at: int

    def says(self, *words: str) -> bool:
        return self.kind == "word" and self.text.lower() in words


def split_label(label: str) -> tuple[str, Condition | None]:
    """The intent and the condition of a label.

    Parentheses at its end that hold no comparison belong to the intent. Raises ConditionError,
    with its column, for what looks like a comparison and cannot be read.
    """
    stripped = label.rstrip()
    start = _opening(stripped)
    if start is None:
        return label.strip(), None
    inner = stripped[start + 1 : -1]
    looks = _LOOKS.search(_without_quoted(inner)) is not None
    try:
        condition = read_condition(inner, start + 1)
    except ConditionError:
        if looks:
            raise
        return label.strip(), None
    return stripped[:start].strip(), condition


def _opening(label: str) -> int | None:
    """Where the parenthesis opens that the end of the label closes. Quoted ones do not count."""
    if not label.endswith(")"):
        return None
    depth = 0
    bare = _without_quoted(label)
    for at in range(len(bare) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(bare[at], 0)
        if depth == 0:
            return at
    return None


def _without_quoted(text: str) -> str:
    return re.sub(r'"[^"]*"', lambda m: '"' * len(m.group()), text)


def read_condition(text: str, offset: int = 0) -> Condition:
    """The condition that a text states. Columns are counted from `offset` characters before it.

    Raises ConditionError.
    """
    return _Reader(text, offset).condition()


class _Reader:
    def __init__(self, text: str, offset: int) -> None:
        self._tokens = list(_tokens(text, offset))
        self._end = offset + len(text)
        self._at = 0

    def condition(self) -> Condition:
        alternatives = [[self._comparison()]]
        while (token := self._peek()) is not None:
            self._at += 1  # a value ends at `and`, `or` or the end
            if token.says("and"):
                alternatives[-1].append(self._comparison())
            elif token.says("or"):
                alternatives.append([self._comparison()])
            else:
                self._fail(f"{token.text!r} cannot stand here", token)
        return Condition(alternatives=tuple(map(tuple, alternatives)))

    def _comparison(self) -> Comparison:
        token = self._next("a field")
        named = _FIELD.fullmatch(token.text) if token.kind == "word" else None
        if named is None:
            self._fail(f"{token.text!r} is no name of a field", token)
        op = self._op()
        value = self._value()
        return Comparison(tool=named[1], field=named[2], op=op, value=value)

    def _op(self) -> Literal["=", "!=", "<", "<=", ">", ">="]:
        token = self._next("an operator")
        if token.says("is"):
            following = self._peek()
            if following is not None and following.says("not"):
                self._at += 1
                return "!="
            return "="
        if token.kind != "op":
            self._fail(f"{token.text!r} is no operator", token)
        op: Any = _OPS.get(token.text, token.text)
        return op  # type: ignore[no-any-return]

    def _value(self) -> str | float | bool:
        first = self._next("a value")
        if first.kind == "quoted":
            return first.text[1:-1]
        words = [first]
        while (token := self._peek()) is not None and not token.says("and", "or"):
            words.append(token)
            self._at += 1
        for word in words:
            if word.kind != "word" or word.says("and", "or"):
                self._fail(f"{word.text!r} is no value", word)
        text = " ".join(word.text for word in words)
        if text.lower() in ("true", "false"):
            return text.lower() == "true"
        if not _CONSTANT.fullmatch(text):
            return text
        if not math.isfinite(float(text)):
            self._fail("the number is too large", first)
        return float(text)

    def _peek(self) -> _Token | None:
        return self._tokens[self._at] if self._at < len(self._tokens) else None

    def _next(self, wanted: str) -> _Token:
        token = self._peek()
        if token is None:
            raise ConditionError(f"{wanted} is missing", self._end + 1)
        self._at += 1
        return token

    def _fail(self, problem: str, token: _Token) -> NoReturn:
        raise ConditionError(problem, token.at + 1)


def _tokens(text: str, offset: int) -> Iterator[_Token]:
    for match in _TOKEN.finditer(text):
        if match.lastgroup != "space":
            yield _Token(str(match.lastgroup), match.group(), offset + match.start())


def holds(condition: Condition, returned: Sequence[tuple[str, Mapping[str, Any]]]) -> bool | None:
    """Whether the condition holds of what tools returned; None when that cannot be said.

    `returned` are (tool, result) in the order of the calls: the latest value of a field counts. A
    field that was never returned makes its comparison unknown; unknowns combine as in Kleene's
    three-valued logic.
    """
    return any_of(
        all_of(_comparison_holds(c, returned) for c in alternative)
        for alternative in condition.alternatives
    )


def attributed(
    condition: Condition, own: Sequence[str], fields: Mapping[str, Sequence[str]]
) -> Condition:
    """The condition with the tool named wherever it is clear whose field is meant: that of the
    last of `own` that returns it, else of the only tool in `fields` that does.

    Without this the `status` that one tool returned would be read as that of another.
    """

    def named(comparison: Comparison) -> Comparison:
        if comparison.tool is not None:
            return comparison
        found = [t for t in own if comparison.field in fields.get(t, ())][-1:]
        found = found or [t for t, names in fields.items() if comparison.field in names]
        return comparison.model_copy(update={"tool": found[0] if len(found) == 1 else None})

    return Condition(
        alternatives=tuple(tuple(map(named, alternative)) for alternative in condition.alternatives)
    )


def all_of(values: Iterator[bool | None]) -> bool | None:
    """Kleene's conjunction: False wins over unknown, unknown over True."""
    found = list(values)
    return False if False in found else None if None in found else True


def any_of(values: Iterator[bool | None]) -> bool | None:
    """Kleene's disjunction: True wins over unknown, unknown over False."""
    found = list(values)
    return True if True in found else None if None in found else False


def _comparison_holds(
    comparison: Comparison, returned: Sequence[tuple[str, Mapping[str, Any]]]
) -> bool | None:
    for tool, result in reversed(returned):
        if comparison.tool in (None, tool) and comparison.field in result:
            return compare(result[comparison.field], comparison.op, comparison.value)
    return None


def written(condition: Condition) -> str:
    """The condition as `read_condition` reads it; equal up to the spelling of values."""
    return " or ".join(
        " and ".join(_written(c) for c in alternative) for alternative in condition.alternatives
    )


def _written(c: Comparison) -> str:
    name = f"{c.tool}.{c.field}" if c.tool else c.field
    return f"{name} {c.op} {constant(c.value)}"


def constant(value: str | float | bool) -> str:
    """A value as a condition writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{Decimal(repr(value)):f}".removesuffix(".0")
    return f'"{value}"'
