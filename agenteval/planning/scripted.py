"""Scripted agents with a known success rate, as a check of the tests and as baselines.

    --agent scripted:NAME            --agent "scripted:chance=0.6,seed=7"

They receive the case and do not read the request. `seed` is an integer, 0 by default. Randomness
depends on the seed, the request, the number of the attempt, and how often this factory's agents
have received the request in it, never on other running agents.

perfect        a valid plan
random         any order of the tools, all equally likely
chance=P       a valid plan with probability P (0.5), otherwise one that violates a constraint
crash          fails, so there is no verdict
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence

import numpy as np

from agenteval.agents import Agent, Dialogue, Toolbox
from agenteval.errors import AgentevalError, InputError
from agenteval.planning.case import DAY, START, Case, limits, orders
from agenteval.planning.oracle import PlanStep
from agenteval.planning.solver import plans, schedule
from agenteval.planning.synthesis import Dice
from agenteval.records import content_hash
from agenteval.text import did_you_mean

Script = Callable[[Case, Dice], Sequence[PlanStep]]
"""Returns the calls to make in a case, in order."""


def in_order(case: Case, order: Sequence[int], start: int = 0) -> list[PlanStep]:
    """Return the plan of the actions in this order.

    In an extended case, the first action starts at `start`, the others when the previous one ends.
    """
    steps = []
    for i in order:
        hour = None if case.hours is None else min(start, DAY - 1)
        steps.append(PlanStep(tool=case.actions[i].tool, start=hour))
        start += 0 if case.hours is None else case.hours[i]
    return steps


def valid_order(case: Case) -> list[int]:
    """Return the first order, by action numbers, that satisfies all order constraints.

    Raises AgentevalError if they contradict each other.
    """
    for plan in plans(case.n, orders(s.constraint for s in case.stated)):
        return list(plan)
    raise AgentevalError("the constraints of the case contradict each other")


def perfect(case: Case, _: Dice) -> list[PlanStep]:
    """Return a valid plan. Raises AgentevalError without one."""
    if case.hours is None:
        return in_order(case, valid_order(case))
    starts = schedule(case.n, [s.constraint for s in case.stated], case.hours)
    if starts is None:
        raise AgentevalError("the constraints of the case contradict each other")
    by_hour = sorted(enumerate(starts), key=lambda action: action[1])
    return [PlanStep(tool=case.actions[i].tool, start=start) for i, start in by_hour]


def wrong(case: Case, dice: Dice) -> list[PlanStep]:
    """Return a complete plan that violates a constraint, or a valid one without constraints.

    Orders are reversed; without orders, an action is placed at the wrong end of the day.
    """
    rules = [s.constraint for s in case.stated]
    if orders(rules):
        return in_order(case, valid_order(case)[::-1])
    violable = [limit for limit in limits(rules) if limit.hour not in (0, DAY)]
    if not violable or case.hours is None:
        return perfect(case, dice)
    limit = dice.choice(violable)
    remaining = [i for i in range(case.n) if i != limit.action]
    if limit.side == "after":
        return in_order(case, [limit.action, *remaining])
    last = in_order(case, [limit.action], DAY - case.hours[limit.action])
    return in_order(case, remaining) + last


def _chance(p: float) -> Script:
    return lambda case, dice: perfect(case, dice) if dice.unit() < p else wrong(case, dice)


def _random(case: Case, dice: Dice) -> list[PlanStep]:
    return in_order(case, dice.shuffled(range(case.n)))


def _crash(_case: Case, _dice: Dice) -> list[PlanStep]:
    raise RuntimeError("this scripted agent always fails")


class ScriptedAgent:
    """Executes a script's plan for the case set with `on`."""

    def __init__(self, factory: Factory, case: Case | None = None) -> None:
        self._factory, self._case = factory, case

    def on(self, case: Case) -> Agent:
        """Return the agent for this case."""
        return ScriptedAgent(self._factory, case)

    async def run(self, dialogue: Dialogue, tools: Toolbox) -> str:
        """Make the calls of the plan. Raises AgentevalError without a case."""
        if self._case is None:
            raise AgentevalError("a scripted agent works on planning cases only")
        dice = self._factory.dice(dialogue.messages[-1].content, tools.trial)
        for step in self._factory.script(self._case, dice):
            tools.call(step.tool, {} if step.start is None else {START: step.start})
        return "All activities are done."


class Factory:
    """Creates agents of one script; counts requests, so that tries differ but are reproducible."""

    def __init__(self, script: Script, seed: int = 0) -> None:
        self.script, self.seed = script, seed
        self._tries: Counter[tuple[str, int]] = Counter()

    def __call__(self) -> ScriptedAgent:
        """Return a fresh agent."""
        return ScriptedAgent(self)

    def dice(self, request: str, trial: int = 0) -> Dice:
        """Return the random source of the next try at this request in attempt number `trial`."""
        digest = content_hash(request)
        number = trial + self._tries[digest, trial]
        self._tries[digest, trial] += 1
        return Dice(np.random.default_rng([self.seed, int(digest[:16], 16), number]))


_SCRIPTS: dict[str, Script] = {"perfect": perfect, "random": _random, "crash": _crash}
NAMES = (*_SCRIPTS, "chance=P")


def scripted(spec: str) -> Factory:
    """Return the factory for "NAME" or "chance=P", each optionally with ",seed=N".

    Raises InputError for an unknown name (listing all) and for an invalid value.
    """
    where = f"scripted:{spec}"
    body, seed = spec, 0
    if written := re.search(r",\s*seed=(.*)$", spec):
        body = spec[: written.start()]
        if not written[1].isdecimal():
            raise InputError(f"the seed must be an integer from 0, not {written[1]!r}", where)
        seed = int(written[1])
    if body in _SCRIPTS:
        return Factory(_SCRIPTS[body], seed)
    name, equals, value = body.partition("=")
    if name == "chance":
        try:
            share = float(value if equals else 0.5)
        except ValueError:
            share = -1.0
        if not 0 <= share <= 1:
            raise InputError(f"must be a probability from 0 to 1, not {value.strip()!r}", where)
        return Factory(_chance(share), seed)
    hint = did_you_mean(name, [*_SCRIPTS, "chance"]) or f"known: {', '.join(NAMES)}"
    raise InputError(f"no such scripted agent; {hint}", where)


class _Scripted(Mapping[str, Callable[[], Agent]]):
    """`SCRIPTED[spec]` for every spec that `scripted` accepts; iterates over the documented names.

    Contains names with an invalid value, so that the lookup can report the problem.
    """

    def __contains__(self, spec: object) -> bool:
        return isinstance(spec, str) and re.split("[=,]", spec)[0] in (*_SCRIPTS, "chance")

    def __getitem__(self, spec: str) -> Factory:
        if spec not in self:
            raise KeyError(spec)
        return scripted(spec)

    def __iter__(self) -> Iterator[str]:
        return iter(NAMES)

    def __len__(self) -> int:
        return len(NAMES)


SCRIPTED: Mapping[str, Callable[[], Agent]] = _Scripted()
