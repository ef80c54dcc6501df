"""Scripted agents: agents whose ability is known, to test the tests and to compare against.

    --agent scripted:NAME            --agent "scripted:NAME=VALUE,seed=7"

NAME is one of `SCRIPTED`; "chance" and "forgetful" take a probability. `seed` is a whole number, 0
without it. "Wrong" is a whole plan, all actions once, that violates at least one constraint, as
far as there is one. Chance depends on the seed, the request, and how often an agent of the same
factory was given this request; never on what else runs. A scripted agent sees the request and the
tools, nothing of the case; it reads the sentences with the parser of the language.

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
"""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from difflib import get_close_matches
from functools import cached_property

import numpy as np

from agenteval.agents import Agent, Dialogue, Tool, Toolbox
from agenteval.errors import AgentevalError, InputError
from agenteval.evaluators.planning.case import (
    DAY,
    RESTART,
    START,
    Constraint,
    TimeLimit,
    holds,
    limits,
    orders,
)
from agenteval.evaluators.planning.grammar import Paragraph, constraints_of
from agenteval.evaluators.planning.parse import parse
from agenteval.evaluators.planning.solver import plans, schedule
from agenteval.evaluators.planning.synthesis import Dice
from agenteval.evaluators.planning.words import Lexicon, built_in
from agenteval.records import content_hash

_ALREADY_DONE = "All activities are done."
_ACTIVITY = re.compile(r"^Carry out the activity: ([^.]+)\.")
_TOOK = re.compile(r"took (\d+) hours?")

Timed = list[tuple[int, int]]  # (action, start hour) in the order of the calls
Script = Callable[["Day"], Awaitable[None]]


class Day:
    """One run of one script: what it reads, its dice, and its calls. Actions are numbered in the
    order of the tools."""

    def __init__(self, request: str, tools: Toolbox, dice: Dice, lexicon: Lexicon) -> None:
        self.request, self.tools, self.dice, self._lexicon = request, tools, dice, lexicon
        own = [tool for tool in tools.tools if tool.name != RESTART]
        self.names = [tool.name for tool in own]
        self.phrases = [_phrase(tool) for tool in own]
        self.timed = [_takes_hour(tool) for tool in own]
        self.hours: dict[int, int] = {}  # learned durations by action

    @cached_property
    def text(self) -> tuple[str, Paragraph]:
        """The sentences (a line, maybe behind a word and a colon) and their tree. AgentevalError
        where no line of the request is in the language."""
        for line in self.request.splitlines():
            for text in dict.fromkeys((line.strip(), line.partition(": ")[2].strip())):
                try:
                    return text, parse(text, self.phrases, self._lexicon)
                except InputError:
                    continue  # the frame of the request, or a line of it with another meaning
        raise AgentevalError("a scripted agent found no sentence of the language in the request")

    @cached_property
    def constraints(self) -> tuple[Constraint, ...]:
        """What the sentences demand."""
        return tuple(entry.constraint for entry in constraints_of(self.text[1]))

    def valid_order(self) -> list[int]:
        """An order of all actions that keeps every order demanded, the first one by number."""
        for plan in plans(len(self.names), orders(self.constraints)):
            return list(plan)
        raise AgentevalError("the orders demanded contradict each other")

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
        given = {START: min(hour, DAY - 1)} if self.timed[action] else {}
        took = _TOOK.search(self.tools.call(self.names[action], given, turn=turn))
        if took:
            self.hours[action] = int(took[1])


def _phrase(tool: Tool) -> str:
    """The activity; of tools that are not the usual mocks the name, with spaces."""
    stated = _ACTIVITY.match(tool.description)
    return stated[1] if stated else tool.name.replace("_", " ")


def _takes_hour(tool: Tool) -> bool:
    properties = tool.parameters.get("properties")
    return isinstance(properties, dict) and START in properties


async def perfect(day: Day) -> None:
    """A valid plan; in extended cases, one with the durations that the first attempt told."""
    earliest: dict[int, int] = {}
    for limit in limits(day.constraints):
        if limit.side == "after":
            earliest[limit.action] = max(limit.hour, earliest.get(limit.action, 0))
    made = day.follow(day.valid_order(), earliest=earliest)
    if not any(day.timed):
        return
    spans = {action: (start, start + day.hours[action]) for action, start in made}
    hours = [spans[i] for i in range(len(made))]
    if max(end for _, end in hours) <= DAY and all(holds(c, hours) for c in day.constraints):
        return
    day.tools.call(RESTART)
    n = len(day.names)
    starts = schedule(n, day.constraints, [day.hours[i] for i in range(n)])
    if starts is None:
        raise AgentevalError("no schedule meets what the request demands")
    for action, start in sorted(enumerate(starts), key=lambda step: step[1]):
        day.start(action, start)


async def wrong(day: Day) -> None:
    """A whole plan that violates something: the orders turned round, or else a time limit."""
    real = [c for c in limits(day.constraints) if c.hour not in (0, DAY)]
    if orders(day.constraints):
        day.follow(day.valid_order()[::-1])
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


async def _reversed(day: Day) -> None:
    day.follow(day.valid_order()[::-1])


async def _random(day: Day) -> None:
    day.follow(day.dice.shuffled(range(len(day.names))))


async def _text_order(day: Day) -> None:
    text = day.text[0].lower()
    first = [text.find(phrase.lower()) for phrase in day.phrases]
    # of two that begin at one place the longer phrase is the one that stands there
    day.follow(
        sorted(range(len(first)), key=lambda i: (first[i] < 0, first[i], -len(day.phrases[i])))
    )


async def _tool_order(day: Day) -> None:
    day.follow(range(len(day.names)))


async def _parallel(day: Day) -> None:
    turn, now = day.tools.turn(), 0
    for action in day.valid_order():
        day.start(action, now, turn=turn)
        now += day.hours.get(action, 0)


async def _stubborn(day: Day) -> None:
    while True:
        day.start(0, 0)
        await asyncio.sleep(0)  # lets the driver stop it


async def _slow(day: Day) -> None:
    await asyncio.sleep(2 * day.tools.limits.seconds)
    await perfect(day)


async def _endless(day: Day) -> None:
    await perfect(day)
    await asyncio.Event().wait()


async def _hallucinating(day: Day) -> None:
    for name in day.names:
        day.tools.call(f"please_{name}", {})


async def _crash(day: Day) -> None:
    raise RuntimeError("this scripted agent always fails")


def _chance(p: float) -> Script:
    async def script(day: Day) -> None:
        await (perfect(day) if day.dice.unit() < p else wrong(day))

    return script


def _forgetful(p: float) -> Script:
    async def script(day: Day) -> None:
        if day.dice.unit() >= p:
            await perfect(day)
            return
        order = day.valid_order()
        order.remove(day.dice.choice(order))
        day.follow(order)

    return script


class ScriptedAgent:
    """One agent of a factory; runs its script once per request."""

    def __init__(self, factory: Factory) -> None:
        self._factory = factory

    async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
        """Work on the request. AgentevalError where the script cannot read it."""
        request = dialogue.messages[-1].content
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


PLAIN: dict[str, Script] = {
    "perfect": perfect,
    "reversed": _reversed,
    "random": _random,
    "text-order": _text_order,
    "tool-order": _tool_order,
    "parallel": _parallel,
    "stubborn": _stubborn,
    "slow": _slow,
    "endless": _endless,
    "hallucinating": _hallucinating,
    "crash": _crash,
}
SHARES: dict[str, Callable[[float], Script]] = {"chance": _chance, "forgetful": _forgetful}
NAMES = (*PLAIN, *(f"{name}=P" for name in SHARES))


def scripted(spec: str, lexicon: Lexicon | None = None) -> Factory:
    """The factory of "NAME", "NAME=VALUE" or either with ",seed=N" behind it.

    InputError for an unknown name (all are listed) and for a value that does not fit.
    """
    where = f"scripted:{spec}"
    body, seed = spec, 0
    if stated := re.search(r",\s*seed=(.*)$", spec):
        body = spec[: stated.start()]
        if not stated[1].isdecimal():
            raise InputError(f"the seed {stated[1]!r} is no whole number from 0", where)
        seed = int(stated[1])
    name, equals, value = body.partition("=")
    if name in PLAIN and not equals:
        return Factory(PLAIN[name], seed, lexicon)
    if name in SHARES:
        try:
            share = float(value if equals else 0.5)
        except ValueError:
            share = -1.0
        if not 0 <= share <= 1:
            raise InputError(f"{value.strip()!r} is no probability from 0 to 1", where)
        return Factory(SHARES[name](share), seed, lexicon)
    near = get_close_matches(name, [*PLAIN, *SHARES], 1)
    hint = f"; is {near[0]!r} meant?" if near else ""
    raise InputError(f"no such scripted agent{hint} (known: {', '.join(NAMES)})", where)


class _Scripted(Mapping[str, Callable[[], Agent]]):
    """`SCRIPTED[spec]` for every spec that `scripted` reads; iterating gives the documented names.

    A name with a bad value counts as known, so that looking it up can say what is wrong with it.
    """

    def __getitem__(self, spec: str) -> Factory:
        if spec not in self:
            raise KeyError(spec)
        return scripted(spec)

    def __contains__(self, spec: object) -> bool:
        return isinstance(spec, str) and re.split("[=,]", spec)[0] in (*PLAIN, *SHARES)

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


SCRIPTED: Mapping[str, Callable[[], Agent]] = _Scripted()
