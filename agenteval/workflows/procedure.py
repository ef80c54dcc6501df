"""A procedure compiled from the charts of one or several scenarios: an automaton over tool calls.

A position is in a node, before one of the tools that the node calls or after the last one (its
exit). Edges leave from exits only; an exit without edges is an end. `chart.calls_by_node` says
which tools a node calls, and in which order.

The best reading of calls as a walk through a procedure.

Alignment-based conformance checking (Adriansyah, van Dongen, van der Aalst, "Conformance checking
using cost-based fitness analysis", EDOC 2011): the cheapest path through the product of the calls
and the automaton, found by Dijkstra's algorithm. Costs:

    0  a call is the next step                     1  a step of the walk is left out
    0  an edge whose condition holds, is not       1  a call is no step of the walk
       known, or is the user's will                1  an edge whose condition is false by the
    1  a step without a required parameter            values that were returned so far

A refused call, or a call of a tool that no node calls, is never a step. The values returned so far
are those of all executed calls, steps or not.

Ties are broken in this order:
1. a false transition before a step left out before an extra call before a false transition after
   the last call that can be a step (weights 1, 2, 3, 4). A call that repeats the last one that was
   carried out word for word is an extra call of weight 0: a loop. A scenario put aside costs
   nothing and weighs 2;
2. steps are left out as late as possible, then extra calls come as late as possible: of two swapped
   calls the first one is out of order, of two equal ones the second;
3. the shortest walk with the fewest unchecked transitions. A walk that may stop anywhere still goes
   on to an end if that costs nothing.

With several scenarios, any may begin, another may begin after each end, and between two nodes one
may be suspended for another. One scenario is suspended at a time; it can be resumed or abandoned,
but not restarted. If the walk may stop anywhere, resuming it can suspend the other scenario.
"""

from __future__ import annotations

import heapq
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Literal, NamedTuple

from pydantic import JsonValue

from agenteval.errors import InputError
from agenteval.records import Record
from agenteval.workflows.chart import Chart, Condition, Edge, attributed, calls_by_node, holds
from agenteval.workflows.mermaid import parse_chart
from agenteval.workflows.scenario import Role, WorkflowTool

Returned = Sequence[tuple[str, Mapping[str, Any]]]  # (tool, result) of calls, in their order


@dataclass(frozen=True, slots=True)
class Way:
    """An edge and its target position. `condition` is that of the edge, with the tools of its
    fields if the chart makes them clear."""

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
        """Whether it has several scenarios."""
        return len(self.scenarios) > 1

    @cached_property
    def steps(self) -> frozenset[str]:
        """The tools that nodes call."""
        return frozenset(p.tool for p in self.positions if p.tool is not None)

    def following(self, at: int, returned: Returned | None = None) -> list[int]:
        """Return the next positions, without those whose condition is false for the values in
        `returned`."""
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
        """The fewest calls from a start to an end, ignoring conditions; None if no end can be
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
        """Yield all positions that can be reached from these within their scenarios, nearest first;
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
    """Return the procedure of these scenarios (ids) of a role.

    Raises InputError for an unknown scenario or one without a chart, and as `parse_chart` and
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
                raise InputError(f"node {id} is also a node of {scenario_of[id]}", scenario)
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


# step: a call is the next step; skip: a step is left out; extra: a call is no step; edge: the walk
# continues; enter: a scenario begins; leave: it ends or is suspended; resume: it continues.
MoveKind = Literal["step", "skip", "extra", "edge", "enter", "leave", "resume"]
_Key = tuple[int, int, int]  # calls so far, position, suspended position


class _Cost(NamedTuple):
    """The criteria of the module's docstring, most important first; compared in this order."""

    cost: int = 0
    telling: int = 0
    skip_late: int = 0
    extra_late: int = 0
    length: int = 0

    def plus(self, other: _Cost) -> _Cost:
        """Return the sum, criterion by criterion."""
        a, b, c, d, e = self
        v, w, x, y, z = other
        return _Cost(a + v, b + w, c + x, d + y, e + z)


_FREE, _PASSED, _ASIDE = _Cost(), _Cost(length=1), _Cost(telling=2, length=1)


class Call(Record):
    """A call for alignment. `carried_out` is False if the tool refused it, with the reason in
    `problem`; `returned` is the result as JSON, None if it is not JSON."""

    tool: str
    arguments: JsonValue = None
    carried_out: bool = True
    problem: str = ""
    returned: JsonValue = None

    @property
    def unreadable(self) -> bool:
        """Whether its arguments are not a JSON object."""
        return not (self.arguments is None or isinstance(self.arguments, dict))


@dataclass(frozen=True, slots=True)
class Move:
    """One move of a reading, made after `at` calls.

    `position` is the node before it, `target` the node after it, or None between scenarios. `holds`
    is whether the condition of an edge holds (None: unknown, or no condition).
    """

    kind: MoveKind
    at: int
    position: int | None
    target: int | None
    edge: Edge | None = None
    holds: bool | None = None


@dataclass(frozen=True, slots=True)
class Alignment:
    """The best reading: its cost, its moves, and the cost of the worst reading."""

    cost: int
    worst: int
    moves: tuple[Move, ...]


def align(procedure: Procedure, calls: Sequence[Call], *, complete: bool = True) -> Alignment:
    """Return the best reading of calls as a walk from a start to an end of the procedure.

    With `complete=False` the walk may stop anywhere (the session was ended from outside). Time and
    memory are at most proportional to calls x positions (positions squared for several scenarios);
    readings that cost more than the best are not explored. Raises InputError if the walk must end
    and no end can be reached.
    """
    if complete and procedure.shortest is None:
        raise InputError("no end can be reached from the start", ", ".join(procedure.scenarios))
    search = _AlignmentSearch(procedure, calls, complete)
    start = (0, search.hub, search.hub)
    best = {start: _FREE}
    came_from: dict[_Key, tuple[_Key, Move]] = {}
    settled: set[_Key] = set()
    heap = [(_FREE, start)]
    while True:
        so_far, key = heapq.heappop(heap)
        if key == search.goal:
            break
        if key in settled:
            continue
        settled.add(key)
        for target, cost, move in search.moves(key):
            total = so_far.plus(cost)
            if target not in best or total < best[target]:
                best[target] = total
                came_from[target] = key, move
                heapq.heappush(heap, (total, target))
    moves = []
    key, _ = came_from[search.goal]  # the last move only says that the walk stops
    while key in came_from:
        key, move = came_from[key]
        moves.append(move)
    worst = len(calls) + ((procedure.shortest or 0) if complete else 0)
    return Alignment(so_far.cost, worst, tuple(reversed(moves)))


def returned_before(calls: Sequence[Call], at: int) -> list[tuple[str, Mapping[str, JsonValue]]]:
    """Return the results of the calls before number `at`, as `chart.holds` expects."""
    return [(c.tool, c.returned) for c in calls[:at] if isinstance(c.returned, dict)]


def steppable(procedure: Procedure, call: Call) -> bool:
    """Return whether a call can be a step at all."""
    return call.carried_out and call.tool in procedure.steps


def lacking(procedure: Procedure, call: Call) -> tuple[str, ...]:
    """Return the required parameters that a call lacks; none if its arguments are unreadable."""
    if not isinstance(call.arguments, Mapping):
        return ()
    return tuple(p for p in procedure.required.get(call.tool, ()) if p not in call.arguments)


class _AlignmentSearch:
    """The moves from each key with their costs. `hub` is the position between scenarios, and also
    means that no scenario is suspended."""

    def __init__(self, procedure: Procedure, calls: Sequence[Call], complete: bool) -> None:
        self.procedure, self.calls, self.complete = procedure, calls, complete
        self.hub = len(procedure.positions)
        self.goal = (len(calls) + 1, 0, 0)
        self.stopped = _Cost(length=8 * (self.hub + 2))  # longer than any walk without a call
        self.can = [steppable(procedure, call) for call in calls]
        self.until = max((at + 1 for at, can in enumerate(self.can) if can), default=0)
        self.returned = _returned(calls)
        self.repeats: list[bool] = []
        last: Call | None = None
        for call in calls:
            same = last is not None and (call.tool, call.arguments) == (last.tool, last.arguments)
            self.repeats.append(call.carried_out and same)
            last = call if call.carried_out else last
        self._verdicts: dict[tuple[int, int, int], bool | None] = {}

    def moves(self, key: _Key) -> Iterator[tuple[_Key, _Cost, Move]]:
        at, place, waits = key
        remaining = len(self.calls) - at
        position = None if place == self.hub else self.procedure.positions[place]
        here = None if position is None else place
        if position is None:
            yield from self._from_hub(at, waits)
        elif position.tool is None:
            yield from self._from_exit(at, place, position, waits)
        else:
            skip = Move("skip", at, here, place + 1)
            yield (at, place + 1, waits), _Cost(1, 2, skip_late=remaining), skip
            if remaining and self.can[at] and self.calls[at].tool == position.tool:
                cost = _Cost(int(bool(lacking(self.procedure, self.calls[at]))))
                yield (at + 1, place + 1, waits), cost, Move("step", at, here, place + 1)
        ended = position is not None and position.is_end
        if not remaining and (ended or not self.complete):
            yield self.goal, _FREE if ended else self.stopped, Move("leave", at, here, None)
        if remaining:
            telling = 3 if self.can[at] and not self.repeats[at] else 0
            extra = _Cost(1, telling, extra_late=remaining)
            yield (at + 1, place, waits), extra, Move("extra", at, here, here)

    def _from_hub(self, at: int, waits: int) -> Iterator[tuple[_Key, _Cost, Move]]:
        positions = self.procedure.positions
        waiting = positions[waits].scenario if waits != self.hub else None
        for entry in self.procedure.entries:
            if positions[entry].scenario != waiting:  # resume that one where it was suspended
                yield (at, entry, waits), _PASSED, Move("enter", at, None, entry)
        if waits != self.hub:
            yield (at, waits, self.hub), _PASSED, Move("resume", at, None, waits)

    def _from_exit(
        self, at: int, place: int, position: Position, waits: int
    ) -> Iterator[tuple[_Key, _Cost, Move]]:
        for number, way in enumerate(position.ways):
            verdict = None
            if way.condition is not None:
                version, returned = self.returned[at]
                if (key := (version, place, number)) not in self._verdicts:
                    self._verdicts[key] = holds(way.condition, returned)
                verdict = self._verdicts[key]
            cost = _Cost(length=1 + (verdict is None and way.edge.label != ""))
            if verdict is False:
                # After the last possible step, this would only avoid a due step.
                cost = _Cost(1, 1 if at < self.until else 4, length=1)
            move = Move("edge", at, place, way.target, way.edge, verdict)
            yield (at, way.target, waits), cost, move
        if not self.procedure.cross or place in self.procedure.entries:
            return
        leave = Move("leave", at, place, None)
        if position.is_end:
            yield (at, self.hub, waits), _PASSED, leave
        elif waits == self.hub:
            yield (at, self.hub, place), _ASIDE, leave
        elif not self.complete:
            # Back to the other one, suspending this one. If the walk must end, this would be a
            # way around every step that is missing before the end.
            yield (at, waits, place), _ASIDE, Move("resume", at, None, waits)


_Values = tuple[tuple[str, dict[str, JsonValue]], ...]


def _returned(calls: Sequence[Call]) -> list[tuple[int, _Values]]:
    """Return a version and the latest values before each call and after the last.

    Only the latest value of a field of a tool counts; older ones are dropped, and the order of the
    others is kept. The version changes with the values.
    """
    latest: dict[tuple[str, str], JsonValue] = {}
    versions: list[tuple[int, _Values]] = [(0, ())]
    for call in calls:
        version, values = versions[-1]
        if call.carried_out and isinstance(call.returned, dict) and call.returned:
            for field, value in call.returned.items():
                latest.pop((call.tool, field), None)
                latest[call.tool, field] = value
            values = tuple((tool, {field: value}) for (tool, field), value in latest.items())
            version = len(versions)
        versions.append((version, values))
    return versions
