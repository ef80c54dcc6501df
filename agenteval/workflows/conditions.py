"""Conditions at the end of an edge label, such as `Seats are left (free >= 1 and open = true)`.

condition  = all {"or" all}          all = comparison {"and" comparison}
comparison = [tool "."] field op value
op         = "=" | "!=" | "<" | "<=" | ">" | ">=" | "is" | "is not"
value      = number | true | false | "quoted" | unquoted words
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal

from pydantic import Field

from agenteval.errors import InputError
from agenteval.records import Record


class FieldComparison(Record):
    """Compares a returned value with a constant: `field`, or `tool.field` where `tool` is set."""

    field: str
    tool: str | None = None
    op: Literal["=", "!=", "<", "<=", ">", ">="]
    value: str | float | bool

    @property
    def name(self) -> str:
        """The field, with its tool where that is set."""
        return f"{self.tool}.{self.field}" if self.tool else self.field


class Condition(Record):
    """The returned values that a transition needs, in disjunctive normal form."""

    alternatives: tuple[tuple[FieldComparison, ...], ...] = Field(min_length=1)

    @property
    def comparisons(self) -> tuple[FieldComparison, ...]:
        """All comparisons, in their order."""
        return tuple(c for alternative in self.alternatives for c in alternative)


class ConditionError(InputError):
    """A label ends with what looks like a condition but cannot be read; `problem` says why."""

    def __init__(self, problem: str) -> None:
        self.problem = (
            f"{problem}; allowed is `field op value`, joined by `and` or `or`, with op "
            "one of = != < <= > >="
        )
        super().__init__(self.problem, "label")


_NUMBER = re.compile(r"[+-]?(?:\d+(?:\.\d+)?|\.\d+)(?:[eE][+-]?\d+)?")
_DATE = re.compile(r"\d{4}-\d\d-\d\d(?:[Tt ]\d\d:\d\d(?::\d\d)?)?|\d\d:\d\d(?::\d\d)?", re.ASCII)
_ORDER = {"<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge}


def is_date(text: str) -> bool:
    """Return whether the text is an ISO date or time, and so can be ordered."""
    return _DATE.fullmatch(text) is not None


def compare(returned: Any, op: str, value: str | float | bool) -> bool | None:
    """Return whether `returned op value` holds, None when the two have no order.

    Case and runs of blanks make no difference. Numbers are ordered, and so are ISO dates and
    times, as text; nothing else is.
    """
    result, operand = plain(returned), plain(value)
    if op in ("=", "!="):
        return bool(result == operand) == (op == "=")
    if isinstance(result, float) and isinstance(operand, float):
        return bool(_ORDER[op](result, operand))
    words = isinstance(result, str) and isinstance(operand, str)
    # A time has no order among dates.
    if (
        words
        and is_date(result)
        and is_date(operand)
        and (":" in result[:3]) == (":" in operand[:3])
    ):
        return bool(_ORDER[op](result.replace("t", " "), operand.replace("t", " ")))
    return None


def plain(value: Any) -> Any:
    """Return one spelling for all values that are equal: numbers as float, words in lower case,
    truth values as "true" and "false". Lists, objects and null stay as they are, and equal no
    constant."""
    if isinstance(value, bool):
        return str(value).lower()
    if not isinstance(value, int | float | str):
        return value
    text = " ".join(value.split()) if isinstance(value, str) else None
    if text is not None and (len(text) >= 400 or not _NUMBER.fullmatch(text)):
        return text.casefold()
    try:
        number = float(value)
    except OverflowError:
        return None
    if math.isfinite(number):
        return number
    return None if text is None else text.casefold()


_JOIN = re.compile(r'(?<![^\s"])(and|or)(?![^\s"])', re.I)
_SIGN = r"<=|>=|!=|==|≤|≥|≠|[=<>]"
_COMPARISON = re.compile(
    rf"\s*(?:(?P<tool>[^\W\d]\w*)\.)?(?P<field>[^\W\d]\w*)"
    rf'(?:\s*(?P<sign>{_SIGN})|\s+(?P<word>is\s+not|is)(?=[\s"]))'
    r'\s*(?:"(?P<quoted>[^"]*)"|(?!not\s*$)(?P<words>[^\s"=<>!≤≥≠()][^"=<>!≤≥≠()]*?))\s*',
    re.I,
)
_CONSTANT = re.compile(r"[+-]?(?:\d+(?:\.\d+)?|\.\d+)")
_LOOKS = re.compile(r"(?<![\w.])[^\W\d][\w.]*\s*(?:[<>=!]=|[<>=≤≥≠](?![<>]))")
_SIGNS = {"==": "=", "≤": "<=", "≥": ">=", "≠": "!="}


def split_label(label: str) -> tuple[str, Condition | None]:
    """Return the intent and the condition of a label.

    Parentheses at its end that hold no comparison belong to the intent. Raises ConditionError
    for what looks like a comparison and cannot be read.
    """
    label = label.strip()
    if not label.endswith(")"):
        return label, None
    unquoted, depth, start = _without_quoted(label), 0, len(label)
    while depth or start == len(label):  # back to the parenthesis that the end closes
        start -= 1
        if start < 0:
            return label, None
        depth += {")": 1, "(": -1}.get(unquoted[start], 0)
    try:
        condition = read_condition(label[start + 1 : -1])
    except ConditionError:
        if _LOOKS.search(unquoted[start + 1 : -1]):
            raise
        return label, None
    return label[:start].strip(), condition


def _without_quoted(text: str) -> str:
    return re.sub(r'"[^"]*"', lambda m: '"' * len(m.group()), text)


def read_condition(text: str) -> Condition:
    """Return the condition that a text states. Raises ConditionError."""
    alternatives: list[tuple[FieldComparison, ...]] = [()]
    begin = 0
    for join in _JOIN.finditer(_without_quoted(text)):
        alternatives[-1] += (_read_comparison(text[begin : join.start()]),)
        begin = join.end()
        if join[1].lower() == "or":
            alternatives.append(())
    alternatives[-1] += (_read_comparison(text[begin:]),)
    return Condition(alternatives=tuple(alternatives))


def _read_comparison(text: str) -> FieldComparison:
    match = _COMPARISON.fullmatch(text)
    if match is None:
        raise ConditionError(f"`{text.strip()}` is no comparison")
    sign = match["sign"] or ("!=" if match["word"].lower() != "is" else "=")
    value: str | float | bool = match["quoted"] or ""
    if match["words"]:
        value = " ".join(match["words"].split())
        if value.lower() in ("true", "false"):
            value = value.lower() == "true"
        elif _CONSTANT.fullmatch(value):
            value = float(value)
            if not math.isfinite(value):
                raise ConditionError("the number is too large")
    op: Any = _SIGNS.get(sign, sign)
    return FieldComparison(tool=match["tool"], field=match["field"], op=op, value=value)


def holds(condition: Condition, returned: Sequence[tuple[str, Mapping[str, Any]]]) -> bool | None:
    """Return whether the condition holds of what tools returned, None when that is unknown.

    `returned` are (tool, result) in the order of the calls; the latest value of a field counts. A
    field that was never returned makes its comparison unknown, and unknowns combine as in Kleene's
    three-valued logic: `and` is the minimum and `or` the maximum of false < unknown < true.
    """

    def comparison(c: FieldComparison) -> bool | None:
        for tool, result in reversed(returned):
            if c.tool in (None, tool) and c.field in result:
                return compare(result[c.field], c.op, c.value)
        return None

    rank = (False, None, True).index
    return max(
        (min(map(comparison, all_of), key=rank) for all_of in condition.alternatives), key=rank
    )


def attributed(
    condition: Condition, called: Sequence[str], fields: Mapping[str, Sequence[str]]
) -> Condition:
    """Return the condition with the tool set wherever it is clear which tool returns the field:
    the last of `called` that does, else the only tool in `fields` that does.

    Without this the `status` of one tool would be read as that of another.
    """

    def named(c: FieldComparison) -> FieldComparison:
        if c.tool is not None:
            return c
        owners = [tool for tool in called if c.field in fields.get(tool, ())][-1:]
        owners = owners or [tool for tool, names in fields.items() if c.field in names]
        return c.model_copy(update={"tool": owners[0]}) if len(owners) == 1 else c

    return Condition(alternatives=tuple(tuple(map(named, a)) for a in condition.alternatives))


def written(condition: Condition) -> str:
    """Return the condition in the form that `read_condition` reads."""
    return " or ".join(
        " and ".join(f"{c.name} {c.op} {constant(c.value)}" for c in alternative)
        for alternative in condition.alternatives
    )


def constant(value: str | float | bool) -> str:
    """Return a value as a condition writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{Decimal(repr(value)):f}".removesuffix(".0")
    return f'"{value}"'
