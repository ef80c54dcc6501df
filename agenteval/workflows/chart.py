"""The chart of a procedure: nodes, edges with conditions, and which node calls which tool.

`mermaid` reads charts from text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import Field

from agenteval.records import Record
from agenteval.workflows.conditions import Condition

Shape = Literal["start", "reply", "call"]  # (Start), >call a tool], and any other shape
RemarkKind = Literal["doubled", "no_label", "no_start", "no_arrow_head", "subgraph", "skipped"]
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
    one, what the user says decides whether the transition is right.
    """

    source: str
    target: str
    label: str = ""
    intent: str = ""
    condition: Condition | None = None
    line: int = Field(default=0, ge=0)


class Remark(Record):
    """How an ambiguous text was read, or what was skipped."""

    kind: RemarkKind
    message: str
    line: int = Field(default=0, ge=0)


class Chart(Record):
    """A procedure. `parameters` is the auxiliary text after the chart: name → description.

    `begins` is the node where it begins if no node has the shape of a start.
    """

    direction: str = "TD"
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
        """The nodes where the procedure can begin."""
        return tuple(n for n in self.nodes if n.shape == "start" or n.id == self.begins)

    @property
    def unchecked(self) -> int:
        """The number of edges that no returned value can check: they have no condition, and their
        node has other edges too."""
        several = {n.id for n in self.nodes if len(self.leaving(n.id)) > 1}
        return sum(e.source in several and e.condition is None for e in self.edges)


def calls_by_node(charts: Iterable[Chart], tools: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """Return the tools that each node calls, by its id, in the order in which its text names them.

    Each tool counts once per node: a cycle of the chart repeats a call. A reply does not call a
    tool that some `>call]` node of the charts names.
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
    """Return all nodes that can be reached, the first ones included."""
    todo = list(begin)
    seen = set(todo)
    while todo:
        new = set(to[todo.pop()]) - seen
        seen |= new
        todo += new
    return seen
