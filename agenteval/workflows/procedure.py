"""A procedure compiled from the charts of one or several scenarios: an automaton over tool calls.

A position is in a node, before one of the tools that the node calls or after the last one (its
exit). Edges leave from exits only; an exit without edges is an end. `chart.calls_by_node` says
which tools a node calls, and in which order. `align` says how a walk passes between scenarios.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from agenteval.errors import InputError
from agenteval.workflows.chart import Chart, Edge, calls_by_node
from agenteval.workflows.conditions import Condition, attributed, holds
from agenteval.workflows.mermaid import parse_chart
from agenteval.workflows.scenario import Role, WorkflowTool

Returned = Sequence[tuple[str, Mapping[str, Any]]]  # (tool, result) of calls, in their order


@dataclass(frozen=True, slots=True)
class Way:
    """An edge, and the position where it leads. `condition` is that of the edge, with the tools of
    its fields named where that is clear within the chart."""

    edge: Edge
    target: int
    condition: Condition | None = None


@dataclass(frozen=True, slots=True)
class Position:
    """Before the call of `tool`, with the next position after it; or an exit (`tool` is None)."""

    scenario: str
    node: str
    tool: str | None = None
    ways: tuple[Way, ...] = ()

    @property
    def is_end(self) -> bool:
        """Nothing follows."""
        return self.tool is None and not self.ways


@dataclass(frozen=True, eq=False)
class Procedure:
    """The automaton. `entries` are the positions of the start nodes, one for each scenario.

    `required` are the required parameters of all tools of the scenarios, by tool.
    """

    scenarios: tuple[str, ...]
    positions: tuple[Position, ...]
    entries: tuple[int, ...]
    required: Mapping[str, tuple[str, ...]]

    @property
    def cross(self) -> bool:
        """Made of several scenarios."""
        return len(self.scenarios) > 1

    @cached_property
    def steps(self) -> frozenset[str]:
        """The tools that some node calls."""
        return frozenset(p.tool for p in self.positions if p.tool is not None)

    def following(self, at: int, returned: Returned | None = None) -> list[int]:
        """Return the positions right after one, without those whose condition is false by the
        values in `returned`."""
        position = self.positions[at]
        if position.tool is not None:
            return [at + 1]
        return [
            way.target
            for way in position.ways
            if returned is None
            or way.condition is None
            or holds(way.condition, returned) is not False
        ]

    @cached_property
    def shortest(self) -> int | None:
        """The fewest calls from a start to an end, whatever the conditions; None when no end can be
        reached. Breadth-first search with weights 0 and 1."""
        best = dict.fromkeys(self.entries, 0)
        queue = deque(self.entries)
        while queue:
            at = queue.popleft()
            position = self.positions[at]
            if position.is_end:
                return best[at]
            for target in self.following(at):
                calls = best[at] + (position.tool is not None)
                if calls < best.get(target, calls + 1):
                    best[target] = calls
                    (queue.appendleft if position.tool is None else queue.append)(target)
        return None

    def reached(
        self, *begin: int, returned: Returned | None = None, calling: bool = True
    ) -> Iterator[int]:
        """Yield all positions on some walk from these within their scenarios, nearest first;
        without `calling`, only up to the next call. `returned` is as in `following`."""
        queue, seen = deque(begin), set(begin)
        while queue:
            at = queue.popleft()
            yield at
            if calling or self.positions[at].tool is None:
                new = [t for t in dict.fromkeys(self.following(at, returned)) if t not in seen]
                seen.update(new)
                queue.extend(new)

    def due(self, at: int, returned: Returned | None = None) -> tuple[str, ...]:
        """Return the tools that may be called next, in the order of the ways to them."""
        reached = self.reached(at, returned=returned, calling=False)
        return tuple(dict.fromkeys(t for p in reached if (t := self.positions[p].tool) is not None))


def procedure(role: Role, scenarios: Sequence[str]) -> Procedure:
    """Return the procedure of scenarios of a role, by their ids.

    Raises InputError for an unknown scenario, one without a chart, and as `parse_chart` and
    `compiled`.
    """
    by_id = {s.id: s for s in role.scenarios}
    charts: dict[str, Chart] = {}
    for id in scenarios:
        if id not in by_id:
            raise InputError(f"no scenario {id!r}; known: {', '.join(by_id)}", role.id)
        if not by_id[id].flowchart.strip():
            raise InputError(f"the scenario {id} has no chart", role.id)
        charts[id] = parse_chart(by_id[id].flowchart, f"{role.id}/{id}")
    return compiled(charts, role.tools_of(tuple(charts)))


def compiled(charts: Mapping[str, Chart], tools: Sequence[WorkflowTool]) -> Procedure:
    """Return the procedure of charts, by the ids of their scenarios; `tools` can be called.

    Raises InputError for a chart without a start, an edge to a node that is not declared, and a
    node that two charts have.
    """
    fields = {tool.name: tool.fields for tool in tools}
    by_node = calls_by_node(charts.values(), fields)
    positions: list[Position] = []
    entries: list[int] = []
    scenario_of: dict[str, str] = {}
    for scenario, chart in charts.items():
        calls_of = {node.id: by_node[node.id] for node in chart.nodes}
        fields_here = {tool: fields[tool] for calls in calls_of.values() for tool in calls}
        first: dict[str, int] = {}
        size = len(positions)
        for id, calls in calls_of.items():
            if scenario_of.setdefault(id, scenario) != scenario:
                raise InputError(f"node {id} is a node of {scenario_of[id]} too", scenario)
            first[id] = size
            size += len(calls) + 1
        for edge in chart.edges:
            for end in (edge.source, edge.target):
                if end not in first:
                    raise InputError(f"line {edge.line}: node {end} is not declared", scenario)
        for id, calls in calls_of.items():
            positions += [Position(scenario, id, tool) for tool in calls]
            ways = [
                Way(e, first[e.target], e.condition and attributed(e.condition, calls, fields_here))
                for e in chart.leaving(id)
            ]
            positions.append(Position(scenario, id, None, tuple(ways)))
        if not chart.starts:
            raise InputError("the chart has no start", scenario)
        entries.append(first[chart.starts[0].id])
    return Procedure(
        tuple(charts), tuple(positions), tuple(entries), {t.name: t.required for t in tools}
    )
