"""Which nodes and edges of a chart did sessions walk, and which never?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import TypeVar

from pydantic import Field

from agenteval.evaluators.workflows.chart.nouns import Chart
from agenteval.evaluators.workflows.conformance import Conformance
from agenteval.evaluators.workflows.scenario import RecordedSession
from agenteval.records import Record

_K = TypeVar("_K", str, tuple[str, str])


class Walk(Record):
    """Nodes and edges (source, target) that one session walked, in order."""

    nodes: tuple[str, ...] = ()
    edges: tuple[tuple[str, str], ...] = ()


class Covered(Record):
    """How often a node or edge was walked, and in how many sessions."""

    times: int = Field(ge=0)
    sessions: int = Field(ge=0)


class NodeCount(Covered):
    """Of a node."""

    node: str


class EdgeCount(Covered):
    """Of an edge; edges that join the same two nodes are one."""

    edge: tuple[str, str]


class Coverage(Record):
    """What `sessions` walked of a chart, in the order of the chart.

    The shares are of nodes and edges walked at least once; `edge_share` is None for a chart
    without edges.
    """

    sessions: int = Field(ge=0)
    nodes: tuple[NodeCount, ...]
    edges: tuple[EdgeCount, ...]
    node_share: float = Field(ge=0, le=1)
    edge_share: float | None = Field(ge=0, le=1)

    @property
    def never_nodes(self) -> tuple[str, ...]:
        """Nodes that no session walked."""
        return tuple(n.node for n in self.nodes if not n.times)

    @property
    def never_edges(self) -> tuple[tuple[str, str], ...]:
        """Edges that no session walked."""
        return tuple(e.edge for e in self.edges if not e.times)


def coverage(chart: Chart, walks: Iterable[Walk | Conformance]) -> Coverage:
    """What walks through a chart cover of it; what they walked of other charts is passed over.

    A Conformance of a session that was ended early covers what its calls show: replies after the
    last call are not seen.
    """
    seen = list(walks)
    nodes = _counts(tuple(n.id for n in chart.nodes), [w.nodes for w in seen])
    edges = _counts(
        tuple(dict.fromkeys((e.source, e.target) for e in chart.edges)), [w.edges for w in seen]
    )
    return Coverage(
        sessions=len(seen),
        nodes=tuple(NodeCount(node=n, times=t, sessions=s) for n, (t, s) in nodes.items()),
        edges=tuple(EdgeCount(edge=e, times=t, sessions=s) for e, (t, s) in edges.items()),
        node_share=sum(t > 0 for t, _ in nodes.values()) / len(nodes),
        edge_share=sum(t > 0 for t, _ in edges.values()) / len(edges) if edges else None,
    )


def annotated_walk(chart: Chart, session: RecordedSession, scenario: str) -> Walk:
    """The walk that the annotations of a recorded session tell, within one scenario.

    It begins at the start node when there is a turn of the scenario. Where the node changes, and
    where an intent leads from a node to itself, the edge was walked, if the chart has it; a turn
    that names a node which the chart has not is passed over.
    """
    known = {n.id for n in chart.nodes}
    edges = {(e.source, e.target) for e in chart.edges}
    turns = [t for t in session.turns if t.scenario == scenario and t.node in known]
    if not turns:
        return Walk()
    here = chart.start.id
    nodes, walked = [here], []
    for turn in turns:
        stays = turn.node == here and not (
            (here, here) in edges and _leads(chart, here, turn.intent)
        )
        if stays:
            continue
        if (here, turn.node) in edges:
            walked.append((here, turn.node))
        here = turn.node
        nodes.append(here)
    return Walk(nodes=tuple(nodes), edges=tuple(walked))


def _leads(chart: Chart, node: str, intent: str) -> bool:
    """Whether the intent is that of an edge from the node to itself."""
    return bool(intent) and any(
        e.target == node and intent in (e.intent, e.label) for e in chart.leaving(node)
    )


def _counts(keys: tuple[_K, ...], walks: list[tuple[_K, ...]]) -> dict[_K, tuple[int, int]]:
    times = Counter(item for walk in walks for item in walk)
    sessions = Counter(item for walk in walks for item in set(walk))
    return {key: (times[key], sessions[key]) for key in keys}
