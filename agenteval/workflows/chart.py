"""The chart of a procedure: nodes, edges with conditions, and the tools that nodes call.

`mermaid` reads charts from text. A condition is at the end of an edge label, as in `Seats are left
(free >= 1 and open = true)`:

condition  = all {"or" all}          all = comparison {"and" comparison}
comparison = [tool "."] field op value
op         = "=" | "!=" | "<" | "<=" | ">" | ">=" | "is" | "is not"
value      = number | true | false | "quoted" | unquoted words
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal

from pydantic import Field

from agenteval.errors import InputError
from agenteval.records import Record


class FieldComparison(Record):
    """Compares a returned value with a constant: `field`, or `tool.field` if `tool` is set."""

    field: str
    tool: str | None = None
    op: Literal["=", "!=", "<", "<=", ">", ">="]
    value: str | float | bool

    @property
    def name(self) -> str:
        """The field, with its tool if that is set."""
        return f"{self.tool}.{self.field}" if self.tool else self.field


class Condition(Record):
    """The returned values that a transition needs, in disjunctive normal form."""

    alternatives: tuple[tuple[FieldComparison, ...], ...] = Field(min_length=1)

    @property
    def comparisons(self) -> tuple[FieldComparison, ...]:
        """All comparisons, in their order."""
        return tuple(c for alternative in self.alternatives for c in alternative)


class ConditionError(InputError):
    """A label ends in an apparent condition that cannot be read; `problem` says why."""

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
    """Return whether the text is an ISO date or time. Only these texts can be ordered."""
    return _DATE.fullmatch(text) is not None


def compare(returned: Any, op: str, value: str | float | bool) -> bool | None:
    """Return whether `returned op value` holds, None if the two cannot be ordered.

    Case and repeated blanks are ignored. Only numbers and ISO dates and times (as text) are
    ordered.
    """
    result, operand = plain(returned), plain(value)
    if op in ("=", "!="):
        return bool(result == operand) == (op == "=")
    if isinstance(result, float) and isinstance(operand, float):
        return bool(_ORDER[op](result, operand))
    words = isinstance(result, str) and isinstance(operand, str)
    # A time cannot be ordered relative to a date.
    if (
        words
        and is_date(result)
        and is_date(operand)
        and (":" in result[:3]) == (":" in operand[:3])
    ):
        return bool(_ORDER[op](result.replace("t", " "), operand.replace("t", " ")))
    return None


def plain(value: Any) -> Any:
    """Return one form for equal values: numbers as float, words in lower case, booleans as "true"
    and "false". Lists, objects and null are unchanged and never equal a constant."""
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

    Final parentheses without a comparison belong to the intent. Raises ConditionError for an
    apparent comparison that cannot be read.
    """
    label = label.strip()
    if not label.endswith(")"):
        return label, None
    unquoted, depth, start = _without_quoted(label), 0, len(label)
    while depth or start == len(label):  # find the parenthesis that the last one closes
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
        raise ConditionError(f"`{text.strip()}` is not a comparison")
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
    """Return whether the condition holds for the returned values, None if that is unknown.

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
    """Return the condition with the tool of each field, if it is clear: the last tool in `called`
    that returns the field, else the only one in `fields`.

    Otherwise the `status` of one tool could be read as that of another.
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
    """Return a value as written in a condition."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, float):
        return f"{Decimal(repr(value)):f}".removesuffix(".0")
    return f'"{value}"'


Shape = Literal["start", "reply", "call"]  # (Start), >call a tool], and any other shape
RemarkKind = Literal["doubled", "no_label", "no_start", "no_arrow_head", "subgraph"]
WORD = re.compile(r"\w+")
_FIELD = re.compile(r"\.\w")


class Node(Record):
    """A step. `text` is its label, lines joined by "\\n"; `line` is where it is declared."""

    id: str
    shape: Shape
    text: str
    line: int = Field(default=0, ge=0)


class Edge(Record):
    """A transition. `intent` is the label without its condition.

    A condition is in parentheses at the end of the label: `Seats are left (free >= 1)`. Without
    one, what the user says decides whether the transition is correct.
    """

    source: str
    target: str
    label: str = ""
    intent: str = ""
    condition: Condition | None = None
    line: int = Field(default=0, ge=0)


class Remark(Record):
    """How an ambiguous text was read."""

    kind: RemarkKind
    message: str
    line: int = Field(default=0, ge=0)


class Chart(Record):
    """A procedure. `parameters` is the auxiliary text after the chart: name → description.

    `begins` is the start if no node has the shape of one.
    """

    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    parameters: dict[str, str] = Field(default_factory=dict)
    begins: str | None = None
    remarks: tuple[Remark, ...] = ()

    def node(self, id: str) -> Node:
        """Return the node with this id. Raises KeyError."""
        return {n.id: n for n in self.nodes}[id]

    def leaving(self, id: str) -> tuple[Edge, ...]:
        """Return the edges out of a node, in the order of the chart."""
        return tuple(e for e in self.edges if e.source == id)

    @property
    def starts(self) -> tuple[Node, ...]:
        """The start nodes."""
        return tuple(n for n in self.nodes if n.shape == "start" or n.id == self.begins)

    @property
    def unchecked(self) -> int:
        """The number of edges that cannot be checked: those without a condition at a node with
        several edges."""
        several = {n.id for n in self.nodes if len(self.leaving(n.id)) > 1}
        return sum(e.source in several and e.condition is None for e in self.edges)


def calls_by_node(charts: Iterable[Chart], tools: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the tools that each node calls, by node id, in the order of its text.

    A node calls a tool once; a cycle of the chart repeats a call. If a `>call]` node names a tool,
    replies that mention it do not call it.
    """
    tool_names = set(tools)
    names = [
        (n, dict.fromkeys(names_in(n.text, tool_names))) for chart in charts for n in chart.nodes
    ]
    drawn = {name for node, node_names in names if node.shape == "call" for name in node_names}
    return {
        node.id: tuple(name for name in node_names if node.shape != "reply" or name not in drawn)
        for node, node_names in names
    }


def names_in(text: str, names: Iterable[str]) -> tuple[str, ...]:
    """Return all occurrences of the names as whole words, in order. `lend_book.due` is a field and
    does not count."""
    known_names = set(names)
    return tuple(
        match.group()
        for match in WORD.finditer(text)
        if match.group() in known_names and not _FIELD.match(text, match.end())
    )


def reached(begin: Iterable[str], to: Mapping[str, Iterable[str]]) -> set[str]:
    """Return all nodes that can be reached, including the first ones."""
    todo = list(begin)
    seen = set(todo)
    while todo:
        new = set(to[todo.pop()]) - seen
        seen |= new
        todo += new
    return seen
