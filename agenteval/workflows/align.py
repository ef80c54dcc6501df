"""The best reading of calls as a walk through a procedure.

Alignment-based conformance checking of process mining (Adriansyah, van Dongen, van der Aalst,
"Conformance checking using cost-based fitness analysis", EDOC 2011): the cheapest path through the
product of the calls and the automaton, found by Dijkstra's algorithm. Costs:

    0  a call is the next step                     1  a step of the walk is left out
    0  an edge whose condition holds, is not       1  a call is no step of the walk
       known, or is the user's will                1  an edge whose condition is false by the
    1  a step without a required parameter            values that were really returned so far

A call that was refused, or whose tool no node calls, is never a step. The values returned so far
are those of all calls that were carried out, steps or not.

Of readings that cost the same the most telling one is taken, in this order:
1. a false transition before a step left out before an extra call before a false transition after
   the last call that can be a step (weights 1, 2, 3, 4); but a call that repeats the last one that
   was carried out word for word is an extra call (weight 0): a loop. A scenario put aside costs
   nothing and weighs 2;
2. steps are left out as late as can be, then extra calls come as late as can be: of two swapped
   calls the first one is out of order, of two equal ones the second;
3. the shortest walk with the fewest unchecked transitions; where it may stop anywhere it still
   goes on to an end if that costs nothing.

Over several scenarios any may begin, another may begin after each end, and between two nodes one
may be put aside for another. One at a time waits; it can be taken up where it was left, or be
left for good, but not begin anew. Where the walk may stop anywhere, the one that it was left for
may then wait in its turn.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from pydantic import JsonValue

from agenteval.errors import InputError
from agenteval.records import Record
from agenteval.workflows.chart import Edge
from agenteval.workflows.conditions import holds
from agenteval.workflows.procedure import Position, Procedure, Way

# step: a call is the next step; skip: a step is left out; extra: a call is no step; edge: the walk
# goes on; enter: a scenario begins; leave: it is over or put aside; resume: it is taken up again.
Kind = Literal["step", "skip", "extra", "edge", "enter", "leave", "resume"]
# Units of the criteria above, most important first: digits of one number, none of which overflows.
_COST, _TELLING, _SKIP_LATE, _EXTRA_LATE, _LENGTH = (1 << 40 * digit for digit in range(4, -1, -1))
# How telling a unit of cost is, less being more. A false transition that no call follows which can
# be a step is only a way to avoid a step that is due; a scenario put aside is no way round either.
_WRONG, _SKIP, _EXTRA, _WRONG_AT_END = _TELLING, 2 * _TELLING, 3 * _TELLING, 4 * _TELLING
_ASIDE = 2 * _TELLING + _LENGTH
_Key = tuple[int, int, int]  # calls behind, position, the one that waits


class Call(Record):
    """A call as conformance sees it. `carried_out` is False when the tool refused it; `returned`
    is the result as JSON, None when it is none."""

    tool: str
    arguments: JsonValue = None
    carried_out: bool = True
    problem: str = ""  # why it was refused
    returned: JsonValue = None

    @property
    def unreadable(self) -> bool:
        """Its arguments are no JSON object."""
        return not (self.arguments is None or isinstance(self.arguments, dict))


@dataclass(frozen=True, slots=True)
class Move:
    """One move of a reading, made when `at` calls are behind.

    `position` is where the walk stands before it, `target` after it, None between scenarios.
    `holds` says of an edge whether its condition does (None: not known, or there is none).
    """

    kind: Kind
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
    """The cheapest reading of calls as a walk from a start to an end of the procedure.

    With `complete=False` the walk may stop anywhere (the session was ended from outside). Time and
    memory grow with calls x positions, over several scenarios with positions squared, but only as
    far as a reading costs no more than the best. Raises InputError when the walk must end and the
    procedure has no end that can be reached.
    """
    if complete and procedure.shortest is None:
        raise InputError("no end can be reached from the start", ", ".join(procedure.scenarios))
    search = _AlignmentSearch(procedure, calls, complete)
    start = (0, search.hub, search.hub)
    distance = {start: 0}
    came: dict[_Key, tuple[_Key, Move]] = {}
    settled: set[_Key] = set()
    heap = [(0, start)]
    while True:
        length, key = heapq.heappop(heap)
        if key == search.goal:
            break
        if key in settled:
            continue
        settled.add(key)
        for target, weight, move in search.moves(key):
            reach = length + weight
            if target not in distance or reach < distance[target]:
                distance[target] = reach
                came[target] = key, move
                heapq.heappush(heap, (reach, target))
    moves = []
    key, _ = came[search.goal]  # the last move only says that the walk stops
    while key in came:
        key, move = came[key]
        moves.append(move)
    worst = len(calls) + ((procedure.shortest or 0) if complete else 0)
    return Alignment(length // _COST, worst, tuple(reversed(moves)))


def returned_before(calls: Sequence[Call], at: int) -> list[tuple[str, Mapping[str, JsonValue]]]:
    """What the calls before one returned, as `conditions.holds` takes it."""
    return [(c.tool, c.returned) for c in calls[:at] if isinstance(c.returned, dict)]


def steppable(procedure: Procedure, call: Call) -> bool:
    """Whether a call can be a step at all."""
    return call.carried_out and call.tool in procedure.steps


def lacking(procedure: Procedure, call: Call) -> tuple[str, ...]:
    """Required parameters that a call does not have; none when its arguments are not known."""
    if not isinstance(call.arguments, Mapping):
        return ()
    return tuple(p for p in procedure.required.get(call.tool, ()) if p not in call.arguments)


class _AlignmentSearch:
    """The moves from each key with their weights. `hub` stands for between scenarios, and for
    nobody who waits."""

    def __init__(self, procedure: Procedure, calls: Sequence[Call], complete: bool) -> None:
        self.procedure, self.calls, self.complete = procedure, calls, complete
        self.hub = len(procedure.positions)
        self.goal = (len(calls) + 1, 0, 0)
        self.far = 8 * (self.hub + 2) * _LENGTH  # longer than any walk without a call
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

    def moves(self, key: _Key) -> Iterator[tuple[_Key, int, Move]]:
        at, place, waits = key
        n, here = len(self.calls), None if place == self.hub else place
        if here is None:
            yield from self._from_hub(at, waits)
            if at == n and not self.complete:
                yield self.goal, self.far, Move("leave", at, None, None)
        else:
            position = self.procedure.positions[here]
            if position.tool is None:
                yield from self._from_exit(at, here, position, waits)
            else:
                late = (n - at) * _SKIP_LATE
                skip = Move("skip", at, here, here + 1)
                yield (at, here + 1, waits), _COST + _SKIP + late, skip
                if at < n and self.can[at] and self.calls[at].tool == position.tool:
                    price = _COST if lacking(self.procedure, self.calls[at]) else 0
                    yield (at + 1, here + 1, waits), price, Move("step", at, here, here + 1)
            if at == n and (position.is_end or not self.complete):
                yield self.goal, 0 if position.is_end else self.far, Move("leave", at, here, None)
        if at < n:
            telling = _EXTRA if self.can[at] and not self.repeats[at] else 0
            late = (n - at) * _EXTRA_LATE
            yield (at + 1, place, waits), _COST + telling + late, Move("extra", at, here, here)

    def _from_hub(self, at: int, waits: int) -> Iterator[tuple[_Key, int, Move]]:
        positions = self.procedure.positions
        waiting = positions[waits].scenario if waits != self.hub else None
        for entry in self.procedure.entries:
            if positions[entry].scenario != waiting:  # that one is taken up where it was left
                yield (at, entry, waits), _LENGTH, Move("enter", at, None, entry)
        if waits != self.hub:
            yield (at, waits, self.hub), _LENGTH, Move("resume", at, None, waits)

    def _from_exit(
        self, at: int, place: int, position: Position, waits: int
    ) -> Iterator[tuple[_Key, int, Move]]:
        for number, way in enumerate(position.ways):
            verdict = self._holds(way, at, place, number)
            weight = _LENGTH * (1 + (verdict is None and way.edge.label != ""))
            if verdict is False:
                weight += _COST + (_WRONG if at < self.until else _WRONG_AT_END)
            move = Move("edge", at, place, way.target, way.edge, verdict)
            yield (at, way.target, waits), weight, move
        if not self.procedure.cross or place in self.procedure.entries:
            return
        leave = Move("leave", at, place, None)
        if position.is_end:
            yield (at, self.hub, waits), _LENGTH, leave
        elif waits == self.hub:
            yield (at, self.hub, place), _ASIDE, leave
        elif not self.complete:
            # back to the other one, and this one waits. Where the walk must end this would be a
            # way round every step that is missing before the end.
            yield (at, waits, place), _ASIDE, Move("resume", at, None, waits)

    def _holds(self, way: Way, at: int, place: int, number: int) -> bool | None:
        if way.condition is None:
            return None
        version, returned = self.returned[at]
        key = (version, place, number)
        if key not in self._verdicts:
            self._verdicts[key] = holds(way.condition, returned)
        return self._verdicts[key]


_Values = tuple[tuple[str, dict[str, JsonValue]], ...]


def _returned(calls: Sequence[Call]) -> list[tuple[int, _Values]]:
    """What was returned before each call and after the last: a version and the latest values.

    Only the latest value of a field of a tool counts, so older ones are left out; the order of the
    rest is kept. The version changes when the values do.
    """
    latest: dict[tuple[str, str], JsonValue] = {}
    values: _Values = ()
    versions = [(0, values)]
    for call in calls:
        version = versions[-1][0]
        if call.carried_out and isinstance(call.returned, dict) and call.returned:
            for field, value in call.returned.items():
                latest.pop((call.tool, field), None)
                latest[call.tool, field] = value
            values = tuple((tool, {field: value}) for (tool, field), value in latest.items())
            version = len(versions)
        versions.append((version, values))
    return versions
