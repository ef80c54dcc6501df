"""What scripted agents do with a request: the scripts behind the names of `scripted`."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable, Mapping, Sequence

from agenteval.agents import Toolbox
from agenteval.errors import AgentevalError
from agenteval.evaluators.planning.case import DAY, RESTART, START, TimeLimit, holds, limits, orders
from agenteval.evaluators.planning.dsl.lexicon import Lexicon
from agenteval.evaluators.planning.faults import Fault, Reading, read, takes_hour
from agenteval.evaluators.planning.solver.graph import plans
from agenteval.evaluators.planning.solver.schedule import MAX_ACTIONS, nearest_schedule
from agenteval.evaluators.planning.solver.smt import schedule
from agenteval.evaluators.planning.synthesis.dice import Dice

_TOOK = re.compile(r"took (\d+) hours?")

Timed = list[tuple[int, int]]  # (action, start hour) in the order of the calls
Script = Callable[["Day"], Awaitable[None]]


class Day:
    """One run of one script: what it reads, its dice, and its calls."""

    def __init__(self, request: str, tools: Toolbox, dice: Dice, lexicon: Lexicon) -> None:
        self.request, self.tools, self.dice = request, tools, dice
        self._timed = {tool.name for tool in tools.tools if takes_hour(tool)}
        self.names = [tool.name for tool in tools.tools if tool.name != RESTART]
        self.hours: dict[int, int] = {}  # learned durations by action
        self._lexicon = lexicon
        self._reading: Reading | None = None

    @property
    def reading(self) -> Reading:
        """The request as it is understood; AgentevalError where it is not in the language."""
        if self._reading is None:
            self._reading = read(self.request, self.tools.tools, self._lexicon)
        return self._reading

    def valid_order(self) -> list[int]:
        """An order of all actions that keeps every order demanded, the first one by number."""
        found = next(plans(len(self.names), orders(self.reading.constraints)), None)
        if found is None:
            raise AgentevalError("the orders demanded contradict each other")
        return list(found)

    def follow(self, order: Sequence[int], *, earliest: Mapping[int, int] | None = None) -> Timed:
        """Call the tools in this order, each as soon as the last is over; returns the starts.

        `earliest` gives hours before which an action is not started. Durations are learned.
        """
        made: Timed = []
        now = 0
        for action in order:
            start = max(now, (earliest or {}).get(action, 0))
            self.start(action, start)
            made.append((action, start))
            now = start + self.hours.get(action, 0)
        return made

    def start(self, action: int, hour: int, turn: int | None = None) -> None:
        """One call; the hour matters in extended cases alone."""
        given = {START: min(hour, DAY - 1)} if self.names[action] in self._timed else {}
        told = _TOOK.search(self.tools.call(self.names[action], given, turn=turn))
        if told:
            self.hours[action] = int(told[1])


async def perfect(day: Day) -> None:
    constraints = day.reading.constraints
    earliest: dict[int, int] = {}
    for limit in limits(constraints):
        if limit.side == "after":
            earliest[limit.action] = max(limit.hour, earliest.get(limit.action, 0))
    made = day.follow(day.valid_order(), earliest=earliest)
    if not day.reading.timed or _works(day, made):
        return
    day.tools.call(RESTART)
    for action, start in _schedule(day):
        day.start(action, start)


def _works(day: Day, made: Timed) -> bool:
    """Did the first attempt keep everything, now that the durations are known?"""
    spans = [(0, 0)] * len(made)
    for action, start in made:
        spans[action] = (start, start + day.hours[action])
    return max(end for _, end in spans) <= DAY and all(
        holds(c, spans) for c in day.reading.constraints
    )


def _schedule(day: Day) -> Timed:
    """A feasible schedule in order of time, with all durations known."""
    n, constraints = len(day.names), day.reading.constraints
    durations = [day.hours[i] for i in range(n)]
    if n <= MAX_ACTIONS:
        found = nearest_schedule(n, constraints, durations, range(n))
        if found is not None:
            return list(found)
    elif starts := schedule(n, constraints, durations):
        return sorted(enumerate(starts), key=lambda item: item[1])
    raise AgentevalError("no schedule meets what the request demands")


async def reverse(day: Day) -> None:
    day.follow(day.valid_order()[::-1])


async def wrong(day: Day) -> None:
    """A whole plan that violates something: the orders turned round, or else a time limit."""
    constraints = day.reading.constraints
    real = [c for c in limits(constraints) if c.hour not in (0, DAY)]
    if orders(constraints):
        await reverse(day)
    elif real:
        day.follow(range(len(day.names)))
        day.tools.call(RESTART)
        for action, start in _late_or_early(day, day.dice.choice(real)):
            day.start(action, start)
    else:
        await perfect(day)


def _late_or_early(day: Day, limit: TimeLimit) -> Timed:
    """All actions one after another, the limited one at the wrong end of the day."""
    others = [i for i in range(len(day.names)) if i != limit.action]
    early = limit.side == "after"
    now, made = 0, []
    for action in [limit.action, *others] if early else [*others, limit.action]:
        start = now if early or action != limit.action else DAY - day.hours[action]
        made.append((action, start))
        now = start + day.hours[action]
    return made


async def random(day: Day) -> None:
    day.follow(day.dice.shuffled(range(len(day.names))))


async def text_order(day: Day) -> None:
    day.follow(day.reading.mentioned)


async def tool_order(day: Day) -> None:
    day.follow(range(len(day.names)))


async def parallel(day: Day) -> None:
    turn, now = day.tools.turn(), 0
    for action in day.valid_order():
        day.start(action, now, turn=turn)
        now += day.hours.get(action, 0)


async def stubborn(day: Day) -> None:
    while True:
        day.start(0, 0)
        await asyncio.sleep(0)  # lets the driver stop it


async def slow(day: Day) -> None:
    await asyncio.sleep(2 * day.tools.limits.seconds)
    await perfect(day)


async def endless(day: Day) -> None:
    await perfect(day)
    await asyncio.Event().wait()


async def hallucinating(day: Day) -> None:
    for name in day.names:
        day.tools.call(f"please_{name}", {})


async def crash(day: Day) -> None:
    raise RuntimeError("this scripted agent always fails")


def chance(p: float) -> Script:
    async def script(day: Day) -> None:
        await (perfect(day) if day.dice.unit() < p else wrong(day))

    return script


def forgetful(p: float) -> Script:
    async def script(day: Day) -> None:
        if day.dice.unit() >= p:
            await perfect(day)
            return
        order = day.valid_order()
        order.remove(day.dice.choice(order))
        day.follow(order)

    return script


def faulty(fault: Fault) -> Script:
    async def script(day: Day) -> None:
        await (wrong(day) if fault(day.reading) else perfect(day))

    return script
