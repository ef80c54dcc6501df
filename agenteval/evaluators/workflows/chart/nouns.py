"""Charts, what their nodes name, and what is wrong with them."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from agenteval.records import Record

Shape = Literal["start", "reply", "call"]  # (Start), [what is said or decided], >a tool is called]


class Node(Record):
    """A step. `text` is its label as written, lines joined by "\\n"; `line` where it is declared.

    Names of tools stand literally in the text of a `call` node, in the order of their calls.
    """

    id: str
    shape: Shape
    text: str
    line: int = Field(default=0, ge=0)


class Comparison(Record):
    """A returned value against a constant: `field`, or `tool.field` where that must be said."""

    field: str
    tool: str | None = None
    op: Literal["=", "!=", "<", "<=", ">", ">="]
    value: str | float | bool


class Condition(Record):
    """What must hold of returned values for a transition: one of the alternatives, all of whose
    comparisons hold (disjunctive normal form)."""

    alternatives: tuple[tuple[Comparison, ...], ...] = Field(min_length=1)


class Edge(Record):
    """A transition. `label` is all that stands on it; `intent` the label without its condition.

    A condition stands in parentheses at the end of the label: `Seats are left (free >= 1)`.
    Without one, whether the transition is right depends on what the user says.
    """

    source: str
    target: str
    label: str = ""
    intent: str = ""
    condition: Condition | None = None
    line: int = Field(default=0, ge=0)


class Chart(Record):
    """A procedure. `parameters` is the auxiliary text after the chart: name → description."""

    direction: str = "TD"
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    parameters: dict[str, str] = Field(default_factory=dict)

    def node(self, id: str) -> Node:
        """The node of that id. Raises KeyError."""
        return {n.id: n for n in self.nodes}[id]

    def leaving(self, id: str) -> tuple[Edge, ...]:
        """Edges out of a node, in the order of the chart."""
        return tuple(e for e in self.edges if e.source == id)

    @property
    def start(self) -> Node:
        """The first start node. Raises StopIteration when there is none."""
        return next(n for n in self.nodes if n.shape == "start")


WORD = re.compile(r"\w+")
_FIELD = re.compile(r"\.\w")


def calls_in(node: Node, tools: Iterable[str]) -> tuple[str, ...]:
    """Names of `tools` that occur as whole words in the node's text, in order of first occurrence.

    Each stands once, however often it occurs: a call is repeated by a cycle of the chart.
    `lend_book.due` names a returned value and no call. The shape of the node is not looked at: a
    name in a reply node is found as well.
    """
    return tuple(dict.fromkeys(names_in(node.text, tools)))


def names_in(text: str, names: Iterable[str]) -> tuple[str, ...]:
    """All occurrences in any text, in order."""
    known = set(names)
    return tuple(
        match.group()
        for match in WORD.finditer(text)
        if match.group() in known and not _FIELD.match(text, match.end())
    )


Severity = Literal["error", "warning"]
Kind = Literal[
    "unreadable",  # a format that cannot be read
    # the shape of a chart
    "no_start", "several_starts", "edge_into_start", "unreachable", "dead_end", "no_exit",
    # tools
    "no_tool", "unknown_tool", "tool_in_reply", "repeated_tool", "unused_tool",
    # conditions
    "unknown_field", "field_not_yet", "bad_value", "same_label", "gap", "overlap", "too_large",
    "parameter",
    # one format against another
    "missing_tool", "order", "missing_field", "unknown_intent",
    "annotation", "profile", "backend",
]  # fmt: skip


class Defect(Record):
    """One defect. `node` or `edge` (source, target) says where; `line` is 0 when no line is meant.

    An error makes the procedure wrong; a warning may be meant so.
    """

    kind: Kind
    message: str
    severity: Severity = "error"
    node: str | None = None
    edge: tuple[str, str] | None = None
    line: int = 0


def at_node(kind: Kind, node: Node, message: str, severity: Severity = "error") -> Defect:
    """A defect of a node."""
    return Defect(kind=kind, message=message, severity=severity, node=node.id, line=node.line)


def at_edge(kind: Kind, edge: Edge, message: str, severity: Severity = "error") -> Defect:
    """A defect of an edge."""
    return Defect(
        kind=kind, message=message, severity=severity, edge=(edge.source, edge.target),
        line=edge.line,
    )  # fmt: skip
