"""Random sub-sentences, grown from the top down by the grammar (arXiv 2404.17833, figure 4)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from agenteval.evaluators.planning.dsl.nodes import (
    Actions,
    Clause,
    Dependent,
    Direction,
    Link,
    Pair,
    Preposition,
    Relative,
    SubSentence,
    Time,
    Verb,
)
from agenteval.evaluators.planning.dsl.render import tangled
from agenteval.evaluators.planning.synthesis.dice import Dice

_DIRECTIONS: tuple[Direction, Direction] = ("prec", "succ")
# The ten patterns of a sub-sentence without relative clauses, all equally likely.
_PATTERNS = tuple(
    (form, direction)
    for form in ("verb", "preposition", "fronted", "pair", "fronted pair")
    for direction in _DIRECTIONS
)


@dataclass(frozen=True, slots=True)
class Style:
    """How rich the sentences are: chances of a further action in a list, of a relative clause,
    and of one inside it."""

    plural: float = 0.25
    relative: float = 0.2
    nested: float = 0.3


class Picker:
    """Hands out different actions for one sub-sentence, preferring those not mentioned yet."""

    __slots__ = ("_fresh", "_known", "_preference", "dice", "left")

    def __init__(
        self, dice: Dice, fresh: Iterable[int], known: Iterable[int], preference: float
    ) -> None:
        self.dice = dice
        self._fresh = dice.shuffled(list(fresh))
        self._known = dice.shuffled(list(known))
        self._preference = preference
        self.left = len(self._fresh) + len(self._known)

    def take(self, count: int) -> tuple[int, ...]:
        """`count` actions that were not handed out before."""
        taken = []
        for _ in range(count):
            first = self._fresh and (not self._known or self.dice.unit() < self._preference)
            taken.append((self._fresh if first else self._known).pop())
        self.left -= count
        return tuple(taken)


def draw_part(picker: Picker, style: Style) -> SubSentence:
    """One skeleton of a sub-sentence over at least two different actions, each at most once."""
    dice = picker.dice
    form, direction = dice.choice(_PATTERNS)
    subject = _entity(picker, style, depth=0, reserve=1)
    other = _entity(picker, style, depth=0, reserve=0)
    if form == "pair" or form == "fronted pair":
        return Pair(direction, Dependent(subject), Dependent(other), fronted=form != "pair")
    return plain(Clause(subject, _link(form, direction), other, fronted=form == "fronted"))


def plain(clause: Clause) -> Clause:
    """The clause, not fronted where its text would have two readings then."""
    return replace(clause, fronted=False) if tangled(clause) else clause


def draw_time_part(picker: Picker, style: Style) -> SubSentence:
    """A skeleton that holds actions to a point of time (figure 6); times take prepositions."""
    dice = picker.dice
    subject = _entity(picker, style, depth=0, reserve=0)
    time = Time(dice.between(1, 23))
    return Clause(subject, Preposition(dice.choice(_DIRECTIONS)), time, fronted=dice.unit() < 0.4)


def _entity(picker: Picker, style: Style, *, depth: int, reserve: int) -> Actions:
    """Actions with or without a relative clause; `reserve` actions are left for what follows."""
    dice = picker.dice
    most = picker.left - reserve
    count = 1
    while count < most and count < 4 and dice.unit() < style.plural:
        count += 1
    ids = picker.take(count)
    chance = style.relative if depth == 0 else style.nested
    if picker.left <= reserve or dice.unit() >= chance:
        return Actions(ids)
    form = "verb" if dice.unit() < 0.5 else "preposition"
    link = _link(form, dice.choice(_DIRECTIONS))
    other = _entity(picker, style, depth=depth + 1, reserve=reserve)
    return Actions(ids, Relative(link, other))


def _link(form: str, direction: Direction) -> Link:
    return Verb(direction) if form == "verb" else Preposition(direction)
