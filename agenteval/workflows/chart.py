"""The chart of a procedure: nodes, edges with conditions, which node calls which tool, and
subgraphs, whose arrows become arrows between nodes.

`mermaid` reads charts from text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
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


@dataclass(slots=True)
class Subgraphs:
    """The subgraphs of a chart by id, in the order in which they end: inner ones first.

    A node is in all subgraphs around the place where it is mentioned. As in Mermaid, a subgraph
    that mentions a node of an earlier one does not have it.
    """

    nodes: dict[str, list[str]] = field(default_factory=dict)
    _open: list[tuple[int, str | None, dict[str, None]]] = field(default_factory=list)
    _placed: set[str] = field(default_factory=set)

    @property
    def unclosed(self) -> int | None:
        """The offset of the last subgraph that was begun and not ended."""
        return self._open[-1][0] if self._open else None

    def begin(self, at: int, id: str | None) -> None:
        """Begin a subgraph at an offset of the text; `id` is None if nothing can refer to it."""
        self._open.append((at, id, {}))

    def mention(self, node: str) -> None:
        """Put a node into the subgraph that was begun last and has not ended."""
        if self._open and node not in self._placed:
            self._open[-1][2][node] = None

    def end(self) -> None:
        """End the last subgraph that was begun."""
        _, id, nodes = self._open.pop()
        self._placed |= nodes.keys()
        if id is not None:
            self.nodes[id] = list(dict.fromkeys([*self.nodes.get(id, ()), *nodes]))
        if self._open:
            self._open[-1][2].update(nodes)

    def resolved(self, edges: Sequence[Edge], most: int) -> tuple[list[Edge], list[Edge]]:
        """Return the edges between nodes, and those left out because the subgraph has no such node.

        An edge to a subgraph leads to its entries, the nodes that no edge from within it enters, or
        to its first node if there are none. An edge from a subgraph leaves the nodes that no edge
        within it leaves. An edge between a subgraph and what is in it is left out. Stops when there
        are more than `most`.
        """
        edges, left_out = list(edges), list[Edge]()
        for id, nodes in self.nodes.items():
            if not any(id in (edge.source, edge.target) for edge in edges):
                continue
            inside = {id, *nodes}
            steps = [node for node in nodes if node not in self.nodes]
            inner = [e for e in edges if e.source in inside and e.target in inside]
            entered = {e.target for e in inner if e.source != e.target and e.source != id}
            outer_sources = {e.source for e in inner if e.source != e.target and e.target != id}
            entries = [node for node in steps if node not in entered] or steps[:1]
            exits = [node for node in steps if node not in outer_sources]
            edges_kept: list[Edge] = []
            for edge in edges:
                if id not in (edge.source, edge.target):
                    edges_kept.append(edge)
                    continue
                ends: Sequence[str] = ()
                end = "source" if edge.source == id else "target"
                if not {edge.source, edge.target} <= inside:
                    ends = exits if end == "source" else entries
                edges_kept += [edge.model_copy(update={end: node}) for node in ends]
                left_out += [] if ends else [edge]
                if len(edges_kept) > most:
                    return edges_kept, left_out
            edges = edges_kept
        return edges, left_out
