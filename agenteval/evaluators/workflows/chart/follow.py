"""Which tool may follow which, after which returned values: the relation procedures share.

A procedure in any format is walked through with all values that its conditions tell apart. What is
compared is what can be seen from outside: the calls, what they returned, what the user chose.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Protocol

from agenteval.evaluators.workflows.chart.names import calls_in
from agenteval.evaluators.workflows.chart.nouns import Chart, Comparison, Edge
from agenteval.evaluators.workflows.chart.world import TooLarge, World

START, END = "the start", "the end"
State = tuple[int, ...]
Choices = frozenset[str]
_MOST = 200_000  # steps of a walk; more is no procedure that a person follows


@dataclass(frozen=True, slots=True)
class Step:
    """One way on from a place: to another place, by a call of `tool` or to the end, with what the
    user chose there ("" for nothing)."""

    to: object = None
    tool: str = ""
    end: bool = False
    choice: str = ""


class Procedure(Protocol):
    """Anything that can be walked through."""

    entry: object

    def steps(self, place: object, last: str, state: State) -> Iterable[Step]:
        """The ways on from a place, where `last` was called last and left this state."""


@dataclass
class Relation:
    """(last call, state) → {(choices on the way, next call or END)}."""

    follows: dict[tuple[str, State], set[tuple[Choices, str]]] = field(default_factory=dict)

    def pairs(self) -> set[tuple[str, str]]:
        """(call, next call), whatever was returned."""
        return {(last, to) for (last, _), found in self.follows.items() for _, to in found}


def relation(procedure: Procedure, world: World) -> Relation:
    """Walk through everything. Raises TooLarge."""
    found = Relation()
    budget = [_MOST]
    todo: list[tuple[object, str, State]] = [(procedure.entry, START, world.start)]
    seen = set(todo)
    while todo:
        place, last, state = todo.pop()
        reached = found.follows.setdefault((last, state), set())
        for step, choices in _onward(procedure, (place, last, state), budget):
            reached.add((choices, END if step.end else step.tool))
            if step.end:
                continue
            for after in world.after(state, step.tool):
                budget[0] -= 1
                new = (step.to, step.tool, after)
                if new not in seen:
                    seen.add(new)
                    todo.append(new)
    return found


def _onward(
    procedure: Procedure, begin: tuple[object, str, State], budget: list[int]
) -> Iterator[tuple[Step, Choices]]:
    """The next calls and ends, with the choices on the way to each."""
    first, last, state = begin
    todo: list[tuple[object, Choices]] = [(first, frozenset())]
    seen = set(todo)
    while todo:
        place, choices = todo.pop()
        for step in procedure.steps(place, last, state):
            budget[0] -= 1
            if budget[0] < 0:
                raise TooLarge("there are too many ways through this procedure to compare them")
            made = choices | {step.choice} if step.choice else choices
            if step.end or step.tool:
                yield step, made
            elif (step.to, made) not in seen:
                seen.add((step.to, made))
                todo.append((step.to, made))


class ChartProcedure:
    """A chart to walk through. `visited`: (last call, state) → nodes passed without a call.

    Choices are those at nodes with an edge whose intent is in `asked`; others are not looked at.
    """

    def __init__(
        self, chart: Chart, tools: Iterable[str], world: World, asked: Choices = frozenset()
    ) -> None:
        names = list(tools)
        self._calls = {n.id: calls_in(n, names) if n.shape == "call" else () for n in chart.nodes}
        self._leaving: dict[str, list[Edge]] = {n.id: [] for n in chart.nodes}
        for edge in chart.edges:
            self._leaving[edge.source].append(edge)
        self._world = world
        self._asked = {n for n, out in self._leaving.items() if asked & {e.intent for e in out}}
        self.visited: dict[tuple[str, State], set[str]] = {}
        self.entry: object = next(((n.id, 0) for n in chart.nodes if n.shape == "start"), None)

    def steps(self, place: object, last: str, state: State) -> Iterable[Step]:
        """A place is (node, number of its calls that are done)."""
        if place is None:
            return
        assert isinstance(place, tuple)
        node, done = place
        calls = self._calls[node]
        if done < len(calls):
            yield Step(to=(node, done + 1), tool=calls[done])
            return
        self.visited.setdefault((last, state), set()).add(node)
        if not self._leaving[node]:
            yield Step(end=True)
        for edge in self.open_edges(node, state):
            yield Step(to=(edge.target, 0), choice=edge.intent if node in self._asked else "")

    def open_edges(self, node: str, state: State) -> list[Edge]:
        """Edges out of a node whose condition does not fail."""
        return [
            e
            for e in self._leaving[node]
            if e.condition is None or self._world.holds(e.condition, state) is not False
        ]

    @property
    def all_groups(self) -> set[Choices]:
        """The intents of each node's edges."""
        found = {frozenset(e.intent for e in out if e.intent) for out in self._leaving.values()}
        return found - {frozenset()}

    def groups(self, last: str, state: State) -> set[Choices]:
        """The sets of intents that the user may choose from after a call."""
        return {
            frozenset(e.intent for e in self.open_edges(node, state) if e.intent)
            for node in self.visited.get((last, state), ())
        } - {frozenset()}


def comparisons_of(chart: Chart) -> list[Comparison]:
    """All comparisons on the edges of a chart."""
    return [
        c
        for e in chart.edges
        if e.condition is not None
        for alternative in e.condition.alternatives
        for c in alternative
    ]
