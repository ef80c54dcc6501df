"""Nodes whose conditions leave a returned value without an edge, or give it two."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import combinations

from agenteval.evaluators.workflows.chart.defects import Defect, at_edge, at_node
from agenteval.evaluators.workflows.chart.follow import State, comparisons_of, relation
from agenteval.evaluators.workflows.chart.nouns import Chart, Comparison, Edge, Node
from agenteval.evaluators.workflows.chart.world import TooLarge, World, make_world
from agenteval.evaluators.workflows.scenario import WorkflowTool

_MOST_EDGES = 100  # of one node, that are compared two by two


def value_defects(chart: Chart, tools: Sequence[WorkflowTool]) -> list[Defect]:
    """Gaps and overlaps of conditions, for values that can be returned before the node.

    Values are gone through as far as conditions tell them apart: booleans, enumerated values,
    numbers around the constants. Edges without a condition stand for everything else.
    """
    try:
        world = make_world(tools, comparisons_of(chart))
        visited = relation(chart, tools, world).visited
    except TooLarge as error:
        told = f"conditions were not checked for gaps and overlaps: {error}"
        return [Defect(kind="too_large", message=told, severity="warning")]
    states: dict[str, set[State]] = {}
    for (_, state), nodes in visited.items():
        for id in nodes:
            states.setdefault(id, set()).add(state)
    found: list[Defect] = []
    leaving: dict[str, list[Edge]] = {}
    for edge in chart.edges:
        leaving.setdefault(edge.source, []).append(edge)
    for node in chart.nodes:
        edges = leaving.get(node.id, [])
        tested = [e for e in edges if e.condition is not None]
        if tested:
            here = sorted(states.get(node.id, ()))
            found += _gaps(node, edges, world, here)
            if len(tested) > _MOST_EDGES:
                said = f"{node.id} has over {_MOST_EDGES} conditions: not checked for overlaps"
                found.append(at_node("too_large", node, said, "warning"))
            else:
                found += _overlaps(tested, world, here)
    return found


def _gaps(
    node: Node, leaving: Sequence[Edge], world: World, states: list[State]
) -> Iterator[Defect]:
    if any(e.condition is None for e in leaving):
        return
    for state in states:
        verdicts = [world.holds(e.condition, state) for e in leaving if e.condition]
        if all(v is False for v in verdicts):
            told = f"no edge of {node.id} is right when {_values(leaving, world, state)}"
            yield at_node("gap", node, told, "warning")
            return


def _overlaps(tested: Sequence[Edge], world: World, states: list[State]) -> Iterator[Defect]:
    told: set[int] = set()  # edges with one overlap need no second
    for one, other in combinations(tested, 2):
        if id(other) in told:
            continue
        assert one.condition is not None
        assert other.condition is not None
        if one.target == other.target:
            continue
        for state in states:
            if world.holds(one.condition, state) and world.holds(other.condition, state):
                message = (
                    f"the edges of {one.source} to {one.target} and {other.target} are both right "
                    f"when {_values([one, other], world, state)}"
                )
                yield at_edge("overlap", other, message, "warning")
                told.add(id(other))
                break


def _values(edges: Sequence[Edge], world: World, state: State) -> str:
    tested: dict[str, Comparison] = {}
    for edge in edges:
        for alternative in edge.condition.alternatives if edge.condition else ():
            for c in alternative:
                tested.setdefault(f"{c.tool}.{c.field}" if c.tool else c.field, c)
    return " and ".join(f"{name} is {world.shown(c, state)}" for name, c in tested.items())
