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
from agenteval.evaluators.workflows.chart.conditions import holds
from agenteval.evaluators.workflows.chart.nouns import Condition, Edge
from agenteval.evaluators.workflows.conformance import Call
from agenteval.evaluators.workflows.procedure import Position, Procedure

# step: a call is the next step; skip: a step is left out; extra: a call is no step; edge: the walk
# goes on; enter: a scenario begins; leave: it is over or put aside; resume: it is taken up again.
Kind = Literal["step", "skip", "extra", "edge", "enter", "leave", "resume"]
# How telling a unit of cost is, less being more. A false transition that no call follows which can
# be a step is only a way to avoid a step that is due.
_WRONG, _SKIP, _EXTRA, _WRONG_AT_END = 1, 2, 3, 4
_ASIDE = 2  # a scenario put aside costs nothing, but is no way round a deviation


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
    worst = len(calls) + ((procedure.shortest or 0) if complete else 0)
    search = _Search(procedure, calls, complete)
    cost, moves = search.best()
    return Alignment(cost, worst, moves)


def steppable(procedure: Procedure, call: Call) -> bool:
    """Whether a call can be a step at all."""
    return call.carried_out and call.tool in procedure.steps


def lacking(procedure: Procedure, call: Call) -> tuple[str, ...]:
    """Required parameters that a call does not have; none when its arguments are not known."""
    if not isinstance(call.arguments, Mapping):
        return ()
    return tuple(p for p in procedure.required.get(call.tool, ()) if p not in call.arguments)


class _Search:
    """Dijkstra over keys: calls behind, position (or hub), scenario that waits, as one integer.

    A distance is one integer too, its digits being the criteria of the module's docstring.
    """

    def __init__(self, procedure: Procedure, calls: Sequence[Call], complete: bool) -> None:
        self._p, self._calls, self._complete = procedure, calls, complete
        n, size = len(calls), len(procedure.positions)
        self._hub = size  # between scenarios
        self._slots = size + 1 if procedure.cross else 1
        self._nobody = self._slots - 1  # no scenario waits
        self._final = (n + 1) * (size + 1) * self._slots  # the key of the goal
        self._far = 8 * (size + 2)  # longer than any walk without a call
        self._extra_late = self._far * (n + 2) * self._slots
        self._skip_late = self._extra_late * (n * n + 2)
        units = n + 2 * size + 2  # no best reading of calls up to a position costs more
        self._telling = self._skip_late * (units * (n + 1) + 1)
        self._cost = self._telling * (4 * units + _ASIDE * (n + 2) * (size + 2))
        self._can = [steppable(procedure, call) for call in calls]
        self._until = max((at + 1 for at, can in enumerate(self._can) if can), default=0)
        self._price = [self._cost if lacking(procedure, call) else 0 for call in calls]
        self._again = _repeats(calls)
        self._returned = _returned(calls)
        self._verdicts: dict[tuple[int, int, int], bool | None] = {}

    def best(self) -> tuple[int, tuple[Move, ...]]:
        """The lowest cost and the moves of the reading that is taken."""
        start = self._key(0, self._hub, self._nobody)
        distance = {start: 0}
        came: dict[int, tuple[int, Move]] = {}
        settled: set[int] = set()
        heap = [(0, start)]
        while True:
            length, key = heapq.heappop(heap)
            if key == self._final:
                return length // self._cost, self._path(came)
            if key in settled:
                continue
            settled.add(key)
            for target, weight, move in self._moves(key):
                reach = length + weight
                if target not in distance or reach < distance[target]:
                    distance[target] = reach
                    came[target] = key, move
                    heapq.heappush(heap, (reach, target))

    def _path(self, came: dict[int, tuple[int, Move]]) -> tuple[Move, ...]:
        moves = []
        key, _ = came[self._final]  # the last move only says that the walk stops
        while key in came:
            key, move = came[key]
            moves.append(move)
        return tuple(reversed(moves))

    def _key(self, at: int, position: int, waits: int) -> int:
        return (at * (self._hub + 1) + position) * self._slots + waits

    def _moves(self, key: int) -> Iterator[tuple[int, int, Move]]:
        rest, waits = divmod(key, self._slots)
        at, place = divmod(rest, self._hub + 1)
        n = len(self._calls)
        if place == self._hub:
            yield from self._from_hub(at, waits)
            here = None
        else:
            here = place
            position = self._p.positions[place]
            if position.tool is None:
                yield from self._from_exit(at, place, position, waits)
            else:
                yield from self._from_step(at, place, position, waits)
            if at == n and (position.is_end or not self._complete):
                weight = 0 if position.is_end else self._far
                yield self._final, weight, Move("leave", at, here, None)
        if at < n:
            yield (
                self._key(at + 1, place, waits),
                self._extra_weight(at),
                Move("extra", at, here, here),
            )
        elif here is None and not self._complete:
            yield self._final, self._far, Move("leave", at, None, None)

    def _extra_weight(self, at: int) -> int:
        telling = _EXTRA if self._can[at] and not self._again[at] else 0
        late = (len(self._calls) - at) * self._extra_late
        return self._cost + telling * self._telling + late

    def _from_hub(self, at: int, waits: int) -> Iterator[tuple[int, int, Move]]:
        waiting = self._p.positions[waits].scenario if waits != self._nobody else None
        for entry in self._p.entries:
            if self._p.positions[entry].scenario == waiting:
                continue  # it is taken up where it was left
            yield self._key(at, entry, waits), 1, Move("enter", at, None, entry)
        if waits != self._nobody:
            yield self._key(at, waits, self._nobody), 1, Move("resume", at, None, waits)

    def _from_step(
        self, at: int, place: int, position: Position, waits: int
    ) -> Iterator[tuple[int, int, Move]]:
        late = (len(self._calls) - at) * self._skip_late
        skip = self._cost + _SKIP * self._telling + late
        yield self._key(at, place + 1, waits), skip, Move("skip", at, place, place + 1)
        if at < len(self._calls) and self._can[at] and self._calls[at].tool == position.tool:
            move = Move("step", at, place, place + 1)
            yield self._key(at + 1, place + 1, waits), self._price[at], move

    def _from_exit(
        self, at: int, place: int, position: Position, waits: int
    ) -> Iterator[tuple[int, int, Move]]:
        for number, way in enumerate(position.ways):
            verdict = self._holds(way.condition, at, place, number)
            weight = 1 + (verdict is None and way.edge.label != "")
            if verdict is False:
                telling = _WRONG if at < self._until else _WRONG_AT_END
                weight += self._cost + telling * self._telling
            move = Move("edge", at, place, way.target, way.edge, verdict)
            yield self._key(at, way.target, waits), weight, move
        if not self._p.cross or place in self._p.entries:
            return
        over = Move("leave", at, place, None)
        if position.is_end:
            yield self._key(at, self._hub, waits), 1, over
        elif waits == self._nobody:
            yield self._key(at, self._hub, place), 1 + _ASIDE * self._telling, over
        if waits != self._nobody and not self._complete and not position.is_end:
            # back to the other one, and this one waits. Where the walk must end this would be a
            # way round every step that is missing before the end.
            back = Move("resume", at, None, waits)
            yield self._key(at, waits, place), 1 + _ASIDE * self._telling, back

    def _holds(self, condition: Condition | None, at: int, place: int, number: int) -> bool | None:
        if condition is None:
            return None
        version, returned = self._returned[at]
        key = (version, place, number)
        if key not in self._verdicts:
            self._verdicts[key] = holds(condition, returned)
        return self._verdicts[key]


_Values = tuple[tuple[str, dict[str, JsonValue]], ...]


def _returned(calls: Sequence[Call]) -> list[tuple[int, _Values]]:
    """What was returned before each call and after the last: a version and the latest values.

    Only the latest value of a field of a tool counts, so older ones are left out; the order of the
    rest is kept. The version changes when the values do.
    """
    latest: dict[tuple[str, str], JsonValue] = {}
    values: _Values = ()
    found = [(0, values)]
    for call in calls:
        if call.carried_out and isinstance(call.returned, dict) and call.returned:
            for field, value in call.returned.items():
                latest.pop((call.tool, field), None)
                latest[call.tool, field] = value
            values = tuple((tool, {field: value}) for (tool, field), value in latest.items())
            found.append((len(found), values))
        else:
            found.append(found[-1])
    return found


def _repeats(calls: Sequence[Call]) -> list[bool]:
    """Whether each call repeats, word for word, the last one before it that was carried out."""
    last: Call | None = None
    found = []
    for call in calls:
        same = last is not None and (call.tool, call.arguments) == (last.tool, last.arguments)
        found.append(call.carried_out and same)
        last = call if call.carried_out else last
    return found
