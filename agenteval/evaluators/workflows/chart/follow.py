"""Which tool may follow which in a chart, after which returned values.

A chart is walked through with all returned values that its conditions tell apart; values that none
tells apart count as one. What can be seen from outside: the calls, and what they returned.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations, product
from math import prod
from typing import Any

from agenteval.errors import InputError
from agenteval.evaluators.workflows.chart.conditions import all_of, any_of, compare
from agenteval.evaluators.workflows.chart.nouns import (
    Chart,
    Comparison,
    Condition,
    Defect,
    Edge,
    Node,
    at_edge,
    at_node,
    calls_in,
)
from agenteval.evaluators.workflows.chart.schemas import OTHER, representatives, schema_of
from agenteval.evaluators.workflows.scenario import WorkflowTool

# Field as conditions name it: with its tool, or (None, field) for the latest of any tool.
Variable = tuple[str | None, str]
_UNKNOWN = -1
_MOST_RESULTS = 4096  # results of a tool that conditions tell apart


class TooLarge(InputError):
    """There are too many ways through a procedure to go through them all."""


@dataclass(frozen=True)
class World:
    """The variables that conditions test, and the values of each that they tell apart.

    A state is a tuple of indices into `values`, -1 for what was not returned so far.
    """

    variables: tuple[Variable, ...]
    values: tuple[tuple[Any, ...], ...]
    returns: Mapping[str, tuple[tuple[tuple[int, int], ...], ...]]

    @property
    def start(self) -> tuple[int, ...]:
        """Nothing was returned."""
        return (_UNKNOWN,) * len(self.variables)

    def after(self, state: tuple[int, ...], tool: str) -> Iterator[tuple[int, ...]]:
        """Every state that a call of the tool may lead to."""
        for outcome in self.returns.get(tool, ((),)):
            new = list(state)
            for variable, value in outcome:
                new[variable] = value
            yield tuple(new)

    def holds(self, condition: Condition, state: tuple[int, ...]) -> bool | None:
        """Whether the condition holds in the state; None when a field was not returned."""
        return any_of(
            all_of(self.compares(c, state) for c in alternative)
            for alternative in condition.alternatives
        )

    def shown(self, c: Comparison, state: tuple[int, ...]) -> str:
        """The value that a comparison tests, for a person."""
        variable = self.variables.index((c.tool, c.field))
        return self.name(variable, state[variable])

    def name(self, variable: int, value: int) -> str:
        """A value of a variable, for a person."""
        if value == _UNKNOWN:
            return "not returned yet"
        found = self.values[variable][value]
        if found == OTHER:
            return "something else"
        return found if isinstance(found, str) else json.dumps(found)

    def compares(self, c: Comparison, state: tuple[int, ...]) -> bool | None:
        """The same for one comparison."""
        variable = self.variables.index((c.tool, c.field))
        value = state[variable]
        return None if value == _UNKNOWN else compare(self.values[variable][value], c.op, c.value)


def make_world(tools: Sequence[WorkflowTool], comparisons: Iterable[Comparison]) -> World:
    """The world of these tools, told apart by these comparisons."""
    tested = list(comparisons)
    variables = tuple(dict.fromkeys((c.tool, c.field) for c in tested))
    by_field: dict[str, list[Comparison]] = {}
    for c in tested:
        by_field.setdefault(c.field, []).append(c)
    values: list[list[Any]] = [[] for _ in variables]
    returns = {}
    for tool in tools:
        fields = [f for f in tool.fields if f in by_field]
        options = [representatives(schema_of(tool, f), by_field[f]) for f in fields]
        if prod(map(len, options)) > _MOST_RESULTS:
            raise TooLarge(
                f"conditions tell more than {_MOST_RESULTS:,} results of {tool.name} apart"
            )
        outcomes = []
        for chosen in product(*options):
            outcome = []
            for returned, value in zip(fields, chosen, strict=True):
                for i, (owner, name) in enumerate(variables):
                    if name == returned and owner in (None, tool.name):
                        outcome.append((i, _index(values[i], value)))
            outcomes.append(tuple(outcome))
        returns[tool.name] = tuple(outcomes)
    return World(variables, tuple(map(tuple, values)), returns)


def _index(values: list[Any], value: Any) -> int:
    for i, known in enumerate(values):
        if type(known) is type(value) and known == value:
            return i
    values.append(value)
    return len(values) - 1


START, END = "the start", "the end"
State = tuple[int, ...]
_Place = tuple[str, int]  # a node, and how many of its calls are done
_MOST_STEPS = 200_000  # steps of a walk; more is no procedure that a person follows


@dataclass
class Relation:
    """`follows`: (last call, state) → next calls or END; `visited`: → nodes passed on the way."""

    follows: dict[tuple[str, State], set[str]] = field(default_factory=dict)
    visited: dict[tuple[str, State], set[str]] = field(default_factory=dict)


def relation(chart: Chart, tools: Sequence[WorkflowTool], world: World) -> Relation:
    """Walk through everything. Raises TooLarge."""
    return _Walk(chart, tools, world).whole()


class _Walk:
    def __init__(self, chart: Chart, tools: Sequence[WorkflowTool], world: World) -> None:
        names = [t.name for t in tools]
        self._calls = {n.id: calls_in(n, names) if n.shape == "call" else () for n in chart.nodes}
        self._leaving: dict[str, list[Edge]] = {n.id: [] for n in chart.nodes}
        for edge in chart.edges:
            self._leaving[edge.source].append(edge)
        self._starts = [(n.id, 0) for n in chart.nodes if n.shape == "start"][:1]
        self._world = world
        self._left = _MOST_STEPS
        self._found = Relation()

    def whole(self) -> Relation:
        begin = self._world.start
        todo: list[tuple[_Place, str, State]] = [(place, START, begin) for place in self._starts]
        seen = set(todo)
        while todo:
            place, last, state = todo.pop()
            nexts = self._found.follows.setdefault((last, state), set())
            for tool, to in self._onward(place, last, state):
                nexts.add(tool)
                if to is None:
                    continue
                for after in self._world.after(state, tool):
                    self._left -= 1
                    new = (to, tool, after)
                    if new not in seen:
                        seen.add(new)
                        todo.append(new)
        return self._found

    def _onward(
        self, begin: _Place, last: str, state: State
    ) -> Iterator[tuple[str, _Place | None]]:
        """The next calls with the places behind them, and END with none."""
        todo, seen = [begin], {begin}
        while todo:
            self._left -= 1
            if self._left < 0:
                raise TooLarge("there are too many ways through this procedure to compare them")
            node, done = todo.pop()
            if done < len(self._calls[node]):
                yield self._calls[node][done], (node, done + 1)
                continue
            self._found.visited.setdefault((last, state), set()).add(node)
            if not self._leaving[node]:
                yield END, None
            for edge in self._leaving[node]:
                if edge.condition and self._world.holds(edge.condition, state) is False:
                    continue
                if (edge.target, 0) not in seen:
                    seen.add((edge.target, 0))
                    todo.append((edge.target, 0))


def comparisons_of(chart: Chart) -> list[Comparison]:
    """All comparisons on the edges of a chart."""
    return [
        c
        for e in chart.edges
        if e.condition is not None
        for alternative in e.condition.alternatives
        for c in alternative
    ]


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
