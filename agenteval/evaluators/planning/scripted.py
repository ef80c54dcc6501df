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

import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from agenteval.agents import Agent, Toolbox
from agenteval.errors import InputError
from agenteval.evaluators.planning import scripts
from agenteval.evaluators.planning.dsl.lexicon import Lexicon, built_in
from agenteval.evaluators.planning.faults import (
    wrong_form,
    wrong_pattern,
    wrong_topic,
    wrong_word,
)
from agenteval.evaluators.planning.scripts import Day, Script
from agenteval.evaluators.planning.synthesis.dice import Dice
from agenteval.records import content_hash

_ALREADY_DONE = "All activities are done."


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
    "perfect": scripts.perfect,
    "reversed": scripts.reverse,
    "random": scripts.random,
    "text-order": scripts.text_order,
    "tool-order": scripts.tool_order,
    "parallel": scripts.parallel,
    "stubborn": scripts.stubborn,
    "slow": scripts.slow,
    "endless": scripts.endless,
    "hallucinating": scripts.hallucinating,
    "crash": scripts.crash,
}
VALUED: dict[str, _Valued] = {
    "chance": _Valued("P", _share(scripts.chance), "0.5"),
    "forgetful": _Valued("P", _share(scripts.forgetful), "0.5"),
    "wrong-word": _Valued("PHRASE", lambda v, lexicon: scripts.faulty(wrong_word(v, lexicon))),
    "wrong-topic": _Valued("ROLE", lambda v, _: scripts.faulty(wrong_topic(v))),
    "wrong-form": _Valued("FORM", lambda v, _: scripts.faulty(wrong_form(v))),
    "wrong-pattern": _Valued("PATTERN", lambda v, _: scripts.faulty(wrong_pattern(v))),
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
