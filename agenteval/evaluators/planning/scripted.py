"""Scripted agents: agents whose ability is known, to test the tests and to compare against.

    --agent scripted:NAME            --agent "scripted:NAME=VALUE,seed=7"

NAME is one of `SCRIPTED`; those shown with "=" take a value ("wrong-word=P_prec/prior to",
"wrong-form=fronted pair prec", "wrong-pattern=chain3", "chance=0.4"). `seed` is a whole number,
0 without it. "Wrong" is a whole plan, all actions once, that violates at least one constraint, as
far as there is one. Chance depends on the seed, the request, and how often an agent of the same
factory was given this request; never on what else runs.

perfect        a valid plan; in extended cases it tries one, and plans again with what it learned
reversed       the reverse of an order that keeps all orders demanded
random         any order, all alike
text-order     the order of first mention
tool-order     the order of the tools; the request is not read
parallel       an order that keeps all orders demanded, all calls in one turn
forgetful=P    a valid plan that lacks one action with probability P (0.5)
chance=P       a valid plan with probability P (0.5), else a wrong one
stubborn       the first tool over and over, until it is stopped
slow           waits past the time limit before it begins
endless        a valid plan, and then it never stops
hallucinating  calls tools that do not exist, and no other
crash          fails itself: no verdict on it
wrong-word=PHRASE, wrong-topic=ROLE, wrong-form=FORM, wrong-pattern=PATTERN: wrong wherever the
               request has it (see `faults`), else perfect
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from agenteval.agents import Agent, Toolbox
from agenteval.errors import AgentevalError, InputError
from agenteval.evaluators.planning.case import DAY, RESTART, START, TimeLimit, holds, limits, orders
from agenteval.evaluators.planning.dsl.lexicon import Lexicon, built_in
from agenteval.evaluators.planning.faults import (
    Fault,
    Reading,
    read,
    takes_hour,
    wrong_form,
    wrong_pattern,
    wrong_topic,
    wrong_word,
)
from agenteval.evaluators.planning.solver.graph import MAX_ACTIONS, nearest_schedule, plans
from agenteval.evaluators.planning.solver.smt import schedule
from agenteval.evaluators.planning.synthesis.grammar import Dice
from agenteval.records import content_hash

_ALREADY_DONE = "All activities are done."
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


class ScriptedAgent:
    """One agent of a factory; runs its script once per request."""

    def __init__(self, factory: Factory) -> None:
        self._factory = factory

    async def run(self, request: str, tools: Toolbox) -> str:
        """Work on the request. AgentevalError where the script cannot read it."""
        dice = self._factory.dice(request)
        await self._factory.script(Day(request, tools, dice, self._factory.lexicon))
        return _ALREADY_DONE


class Factory:
    """Makes agents of one script; counts per request, so that tries differ and can be repeated."""

    def __init__(self, script: Script, seed: int = 0, lexicon: Lexicon | None = None) -> None:
        self.script, self.seed = script, seed
        self.lexicon = lexicon or built_in()
        self._tries: Counter[str] = Counter()

    def __call__(self) -> Agent:
        """A fresh agent."""
        return ScriptedAgent(self)

    def dice(self, request: str) -> Dice:
        """The dice of the next try at this request."""
        digest = content_hash(request)
        number = self._tries[digest]
        self._tries[digest] += 1
        return Dice(np.random.default_rng([self.seed, int(digest[:16], 16), number]))


@dataclass(frozen=True, slots=True)
class _Valued:
    """A script that takes a value: what stands for it in help, how to read it, its default."""

    sign: str
    make: Callable[[str, Lexicon], Script]
    default: str | None = None


def _share(make: Callable[[float], Script]) -> Callable[[str, Lexicon], Script]:
    def of(value: str, _lexicon: Lexicon) -> Script:
        try:
            share = float(value)
        except ValueError:
            share = -1.0
        if not 0 <= share <= 1:
            raise InputError(f"{value!r} is no probability from 0 to 1")
        return make(share)

    return of


PLAIN: dict[str, Script] = {
    "perfect": perfect,
    "reversed": reverse,
    "random": random,
    "text-order": text_order,
    "tool-order": tool_order,
    "parallel": parallel,
    "stubborn": stubborn,
    "slow": slow,
    "endless": endless,
    "hallucinating": hallucinating,
    "crash": crash,
}
VALUED: dict[str, _Valued] = {
    "chance": _Valued("P", _share(chance), "0.5"),
    "forgetful": _Valued("P", _share(forgetful), "0.5"),
    "wrong-word": _Valued("PHRASE", lambda v, lexicon: faulty(wrong_word(v, lexicon))),
    "wrong-topic": _Valued("ROLE", lambda v, _: faulty(wrong_topic(v))),
    "wrong-form": _Valued("FORM", lambda v, _: faulty(wrong_form(v))),
    "wrong-pattern": _Valued("PATTERN", lambda v, _: faulty(wrong_pattern(v))),
}
NAMES = (*PLAIN, *(f"{name}={valued.sign}" for name, valued in VALUED.items()))


def scripted(spec: str, lexicon: Lexicon | None = None) -> Factory:
    """The factory of "NAME", "NAME=VALUE" or either with ",seed=N" behind it.

    InputError for an unknown name (all are listed) and for a value that does not fit.
    """
    name, equals, value = spec.partition("=")
    body, seed = spec, 0
    if found := re.search(r",\s*seed=(.*)$", spec):
        body = spec[: found.start()]
        if not found[1].isdecimal():
            raise InputError(f"the seed {found[1]!r} is no whole number from 0", _where(spec))
        seed = int(found[1])
        name, equals, value = body.partition("=")
    known = built_in() if lexicon is None else lexicon
    if name in PLAIN and not equals:
        return Factory(PLAIN[name], seed, known)
    if name in VALUED:
        valued = VALUED[name]
        given = value.strip() if equals else valued.default
        if not given:
            raise InputError(f"needs a value: {name}={valued.sign}", _where(spec))
        try:
            return Factory(valued.make(given, known), seed, known)
        except InputError as error:
            raise InputError(str(error), _where(spec)) from error
    near = get_close_matches(name, [*PLAIN, *VALUED], 1)
    hint = f"; is {near[0]!r} meant?" if near else ""
    raise InputError(f"no such scripted agent{hint} (known: {', '.join(NAMES)})", _where(spec))


class _Scripted(Mapping[str, Callable[[], Agent]]):
    """`SCRIPTED[spec]` for every spec that `scripted` reads; iterating gives the documented names.

    A name with a bad value counts as known, so that looking it up can say what is wrong with it.
    """

    def __getitem__(self, spec: str) -> Factory:
        if spec not in self:
            raise KeyError(spec)
        return scripted(spec)

    def __contains__(self, spec: object) -> bool:
        return isinstance(spec, str) and re.split("[=,]", spec)[0] in (*PLAIN, *VALUED)

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


SCRIPTED: Mapping[str, Callable[[], Agent]] = _Scripted()


def _where(spec: str) -> str:
    return f"scripted:{spec}"
