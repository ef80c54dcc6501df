"""What a chart of a procedure is: nodes, edges with conditions, and which node calls which tool.

`mermaid` reads charts from text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Literal

from pydantic import Field

from agenteval.records import Record
from agenteval.workflows.conditions import Condition

Shape = Literal["start", "reply", "call"]  # (Start), >a tool is called], and every other one
RemarkKind = Literal["doubled", "no_label", "no_start", "no_arrow_head", "skipped"]


class Node(Record):
    """A step. `text` is its label as written, lines joined by "\\n"; `line` where it is declared.

    Names of tools stand literally in the text, in the order of their calls (see `calls_by_node`).
    """

    id: str
    shape: Shape
    text: str
    line: int = Field(default=0, ge=0)


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


class Remark(Record):
    """What was made of a text that can be read in more ways than one, or was passed over."""

    kind: RemarkKind
    message: str
    line: int = Field(default=0, ge=0)


class Chart(Record):
    """A procedure. `parameters` is the auxiliary text after the chart: name → description.

    `begins` is the node that it begins with where none has the shape of a start. `remarks` say
    what was passed over in the text that it was read from, and what was assumed.
    """

    direction: str = "TD"
    nodes: tuple[Node, ...]
    edges: tuple[Edge, ...]
    parameters: dict[str, str] = Field(default_factory=dict)
    begins: str | None = None
    remarks: tuple[Remark, ...] = ()

    def node(self, id: str) -> Node:
        """The node of that id. Raises KeyError."""
        return {n.id: n for n in self.nodes}[id]

    def leaving(self, id: str) -> tuple[Edge, ...]:
        """Edges out of a node, in the order of the chart."""
        return tuple(e for e in self.edges if e.source == id)

    @property
    def starts(self) -> tuple[Node, ...]:
        """The nodes that the procedure can begin with."""
        return tuple(n for n in self.nodes if n.shape == "start" or n.id == self.begins)

    @property
    def unchecked(self) -> int:
        """The edges that are one of several out of their node and have no condition: whether they
        are taken rightly, no returned value can tell."""
        several = {n.id for n in self.nodes if len(self.leaving(n.id)) > 1}
        return sum(e.source in several and e.condition is None for e in self.edges)


def calls_by_node(charts: Iterable[Chart], tools: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """The tools that each node calls, by its id, in the order in which its text first names them.

    Each stands once, however often it occurs: a call is repeated by a cycle of the chart. A reply
    calls the tools that it names and that no `>call]` of the charts names: who draws calls in a
    shape of their own only speaks of them elsewhere.
    """
    known = set(tools)
    nodes = [node for chart in charts for node in chart.nodes]
    named = [(node, tuple(dict.fromkeys(names_in(node.text, known)))) for node in nodes]
    drawn = {name for node, names in named if node.shape == "call" for name in names}
    return {
        node.id: tuple(name for name in names if node.shape != "reply" or name not in drawn)
        for node, names in named
    }


WORD = re.compile(r"\w+")
_FIELD = re.compile(r"\.\w")


def names_in(text: str, names: Iterable[str]) -> tuple[str, ...]:
    """All occurrences of the names as whole words, in order; `lend_book.due` names a field."""
    known = set(names)
    return tuple(
        match.group()
        for match in WORD.finditer(text)
        if match.group() in known and not _FIELD.match(text, match.end())
    )


def reached(begin: Iterable[str], to: Mapping[str, Iterable[str]]) -> set[str]:
    """All nodes that can be reached, the first ones included."""
    todo = list(begin)
    seen = set(todo)
    while todo:
        new = set(to[todo.pop()]) - seen
        seen |= new
        todo += new
    return seen
