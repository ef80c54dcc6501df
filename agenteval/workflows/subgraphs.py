"""Arrows of a chart that lead to a subgraph or come from one, as arrows between its nodes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from agenteval.workflows.chart import Edge


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
            left = {e.source for e in inner if e.source != e.target and e.target != id}
            entries = [node for node in steps if node not in entered] or steps[:1]
            exits = [node for node in steps if node not in left]
            kept: list[Edge] = []
            for edge in edges:
                if id not in (edge.source, edge.target):
                    kept.append(edge)
                    continue
                ends: Sequence[str] = ()
                end = "source" if edge.source == id else "target"
                if not {edge.source, edge.target} <= inside:
                    ends = exits if end == "source" else entries
                kept += [edge.model_copy(update={end: node}) for node in ends]
                left_out += [] if ends else [edge]
                if len(kept) > most:
                    return kept, left_out
            edges = kept
        return edges, left_out
