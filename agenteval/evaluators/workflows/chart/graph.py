"""Reachability in a chart."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from agenteval.evaluators.workflows.chart.nouns import Chart


def successors(chart: Chart) -> dict[str, list[str]]:
    """Targets of each node's edges."""
    found: dict[str, list[str]] = {n.id: [] for n in chart.nodes}
    for edge in chart.edges:
        found[edge.source].append(edge.target)
    return found


def predecessors(chart: Chart) -> dict[str, list[str]]:
    """Sources of the edges into each node."""
    found: dict[str, list[str]] = {n.id: [] for n in chart.nodes}
    for edge in chart.edges:
        found[edge.target].append(edge.source)
    return found


def reached(begin: Iterable[str], to: Mapping[str, Iterable[str]]) -> set[str]:
    """All nodes that can be reached, the first ones included."""
    todo = list(begin)
    seen = set(todo)
    while todo:
        for node in to[todo.pop()]:
            if node not in seen:
                seen.add(node)
                todo.append(node)
    return seen
