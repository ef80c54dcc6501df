"""A flowchart as a typed graph."""

from __future__ import annotations

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
