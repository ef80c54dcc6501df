"""Which tool may follow which in a chart, after which returned values.

A chart is walked through with all values that its conditions tell apart. What can be seen from
outside: the calls, and what they returned.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from agenteval.evaluators.workflows.chart.names import calls_in
from agenteval.evaluators.workflows.chart.nouns import Chart, Comparison, Edge
from agenteval.evaluators.workflows.chart.world import TooLarge, World
from agenteval.evaluators.workflows.scenario import WorkflowTool

START, END = "the start", "the end"
State = tuple[int, ...]
_Place = tuple[str, int]  # a node, and how many of its calls are done
_MOST = 200_000  # steps of a walk; more is no procedure that a person follows


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
        self._left = _MOST
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
