"""Defects of a chart as a graph: start, reachability, ends."""

from __future__ import annotations

from agenteval.evaluators.workflows.chart.defects import Defect, at_edge, at_node
from agenteval.evaluators.workflows.chart.graph import predecessors, reached, successors
from agenteval.evaluators.workflows.chart.nouns import Chart, Edge


def shape_defects(chart: Chart) -> list[Defect]:
    """What is wrong whatever the tools are."""
    return [*_starts(chart), *_reach(chart), *_same_labels(chart)]


def _starts(chart: Chart) -> list[Defect]:
    starts = [n for n in chart.nodes if n.shape == "start"]
    found = [
        at_node("several_starts", n, f"{n.id} is a second start beside {starts[0].id}")
        for n in starts[1:]
    ]
    if not starts:
        found.append(Defect(kind="no_start", message="no node has the shape (Start)"))
    ids = {n.id for n in starts}
    return found + [
        at_edge("edge_into_start", e, f"an edge leads back into the start {e.target}")
        for e in chart.edges
        if e.target in ids
    ]


def _reach(chart: Chart) -> list[Defect]:
    forward, back = successors(chart), predecessors(chart)
    starts = [n.id for n in chart.nodes if n.shape == "start"]
    seen = reached(starts, forward) if starts else set(forward)
    ends = [id for id, targets in forward.items() if not targets]
    leads_out = reached(ends, back)
    found = [
        at_node("unreachable", n, f"{n.id} cannot be reached from the start")
        for n in chart.nodes
        if n.id not in seen
    ]
    found += [
        at_node("dead_end", n, f"nothing follows {n.id}, which calls a tool", "warning")
        for n in chart.nodes
        if n.id in ends and n.shape == "call"
    ]
    stuck = {id for id in seen if id not in leads_out}
    beside = {id: [n for n in (*forward[id], *back[id]) if n in stuck] for id in stuck}
    for node in chart.nodes:
        if node.id not in stuck:
            continue
        around = reached([node.id], beside)
        stuck -= around
        names = ", ".join(n.id for n in chart.nodes if n.id in around)
        found.append(at_node("no_exit", node, f"a cycle without exit: no end follows {names}"))
    return found


def _same_labels(chart: Chart) -> list[Defect]:
    first: dict[tuple[str, str], Edge] = {}
    found = []
    for edge in chart.edges:
        known = first.setdefault((edge.source, edge.label.casefold()), edge)
        if known is edge:
            continue
        twice = known.target == edge.target
        label = f"the label {edge.label!r}" if edge.label else "no label"
        what = "the same edge twice" if twice else f"to {known.target} and to {edge.target}"
        found.append(
            at_edge("same_label", edge, f"{edge.source} has two edges with {label}: {what}",
                    "warning" if twice else "error")
        )  # fmt: skip
    return found
