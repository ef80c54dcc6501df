"""What the tables and the page of a planning campaign are made of."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from agenteval.evaluators.planning.dsl.lexicon import Lexicon
from agenteval.evaluators.planning.run import Attempt
from agenteval.evaluators.planning.tallies import Cause

EXTENDED = " (extended)"


@dataclass(frozen=True)
class Campaign:
    """Trials, causes as (case id, system, label), and the words of suites with words of their own.

    Made by `campaign`, which keeps base and extended cases apart.
    """

    attempts: tuple[Attempt, ...]
    causes: tuple[Cause, ...] = ()
    lexicon: Lexicon | None = None

    @property
    def kinds(self) -> tuple[bool, bool]:
        """Are there base cases, and extended ones?"""
        timed = {a.case.durations is not None for a in self.attempts}
        return False in timed, True in timed


def campaign(
    attempts: Iterable[Attempt], causes: Iterable[Cause] = (), lexicon: Lexicon | None = None
) -> Campaign:
    """The campaign; where it has base and extended cases, a system is two, one of each kind.

    The two kinds are hard in different ways, so that a common rate would mean nothing.
    """
    own = Campaign(tuple(attempts), tuple(causes), lexicon)
    if not all(own.kinds):
        return own
    timed = {a.case.id for a in own.attempts if a.case.durations is not None}

    def named(system: str, case: str) -> str:
        return system + EXTENDED if case in timed else system

    return replace(
        own,
        attempts=tuple(replace(a, system=named(a.system, a.case.id)) for a in own.attempts),
        causes=tuple((case, named(system, case), label) for case, system, label in own.causes),
    )
