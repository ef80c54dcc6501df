"""Paragraphs without words: grown at random, or made anew for demands that are given.

Random ones follow algorithm 1 of arXiv 2404.17833 and its grammar (figure 4): sub-sentences are
grown from the top down, one by one, as long as they can be satisfied. Beyond the paper every action
is mentioned, no sub-sentence says only what is implied already, and the number of constraints is a
target of its own, apart from the number of actions.

`resynthesize` (QuerySynthesize in algorithm 2) emits the transitive reduction of the orders edge by
edge, in random order and clause form; edges that share a source or a target are gathered into
lists, others hang on as relative clauses. Every time limit is said once.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from agenteval.evaluators.planning.case import (
    Before,
    Constraint,
    TimeLimit,
    actions,
    limits,
    orders,
)
from agenteval.evaluators.planning.dsl.fill import strip
from agenteval.evaluators.planning.dsl.render import tangled
from agenteval.evaluators.planning.dsl.tree import (
    UNSET,
    Actions,
    Clause,
    Dependent,
    Direction,
    Link,
    Object,
    Pair,
    Paragraph,
    Preposition,
    Relative,
    Sentence,
    SubSentence,
    Time,
    Verb,
    demands,
)
from agenteval.evaluators.planning.solver.choose import Solver
from agenteval.evaluators.planning.solver.graph import reduction

T = TypeVar("T")
_BLOCK = 64
_DIRECTIONS: tuple[Direction, Direction] = ("prec", "succ")
# The ten patterns of a sub-sentence without relative clauses, all equally likely.
_PATTERNS = tuple(
    (form, direction)
    for form in ("verb", "preposition", "fronted", "pair", "fronted pair")
    for direction in _DIRECTIONS
)
TRIES = 20  # K of algorithm 1: draws for one sub-sentence
_FRESH = 0.7  # preference for actions that are not mentioned yet
_FORMS = ("verb", "preposition", "fronted", "pair", "fronted pair")


class Dice:
    """Uniform choices; the same generator state gives the same row of choices."""

    __slots__ = ("_left", "_rng")

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._left: list[float] = []

    def unit(self) -> float:
        """A number in [0, 1)."""
        if not self._left:
            self._left = self._rng.random(_BLOCK).tolist()
        return self._left.pop()

    def below(self, n: int) -> int:
        """An integer in [0, n)."""
        return int(self.unit() * n)

    def between(self, low: int, high: int) -> int:
        """An integer from low to high, both possible."""
        return low + self.below(high - low + 1)

    def choice(self, values: Sequence[T]) -> T:
        """One of the values."""
        return values[self.below(len(values))]

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """The values in random order."""
        mixed = list(values)
        for i in range(len(mixed) - 1, 0, -1):
            j = self.below(i + 1)
            mixed[i], mixed[j] = mixed[j], mixed[i]
        return mixed


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


@dataclass(frozen=True, slots=True)
class Goal:
    """What a paragraph must reach: distinct constraints from `least` to `most`, in at most
    `parts` sub-sentences, `times` of which set a point of time. Growth ends once all actions are
    mentioned and the rest is reached."""

    least: int
    most: int
    parts: int
    times: int = 0


def grow(dice: Dice, solver: Solver, goal: Goal, style: Style) -> list[SubSentence] | None:
    """Sub-sentences whose constraints are satisfiable together; None if this attempt got stuck.

    `solver` is empty at first and holds all constraints at the end.
    """
    parts: list[SubSentence] = []
    found: set[Constraint] = set()
    fresh = set(range(solver.n))
    times = goal.times
    while fresh or times or len(found) < goal.least:
        timed = times > 0 and (dice.unit() < 0.4 or not (fresh or len(found) < goal.least))
        part = _next(dice, solver, goal.most - len(found), fresh, style, timed=timed)
        if part is None or len(parts) >= goal.parts:
            return None
        new = demands(part)
        solver.add(new)
        parts.append(part)
        found.update(new)
        times -= timed
        for constraint in new:
            fresh.difference_update(actions(constraint))
    return parts


def _next(
    dice: Dice, solver: Solver, room: int, fresh: set[int], style: Style, *, timed: bool
) -> SubSentence | None:
    """A sub-sentence that may join, at the K-th draw at the latest; else None."""
    known = [i for i in range(solver.n) if i not in fresh]
    for _ in range(TRIES):
        picker = Picker(dice, sorted(fresh), known, _FRESH)
        part = draw_time_part(picker, style) if timed else draw_part(picker, style)
        if fits(solver, demands(part), room):
            return part
    return None


def fits(solver: Solver, new: Sequence[Constraint], room: int) -> bool:
    """May the sub-sentence join: not too many constraints, something new, no contradiction?"""
    return len(new) <= room and not all(solver.implies(c) for c in new) and solver.allows(new)


def join(dice: Dice, parts: Sequence[SubSentence], chance: float = 0.35) -> Paragraph:
    """Sentences of one to three sub-sentences in the order given."""
    sentences: list[list[SubSentence]] = []
    for part in parts:
        if sentences and len(sentences[-1]) < 3 and dice.unit() < chance:
            sentences[-1].append(part)
        else:
            sentences.append([part])
    return Paragraph(tuple(Sentence(tuple(s), (UNSET,) * (len(s) - 1)) for s in sentences))


_GATHER, _HANG = 0.5, 0.3  # chances of a list, and of a relative clause


def resynthesize(
    dice: Dice, n: int, constraints: Sequence[Constraint], unlike: Paragraph | None = None
) -> Paragraph:
    """A skeleton whose constraints are equivalent to the given, satisfiable ones.

    It differs from the skeleton of `unlike` (for a single order there are ten to choose from).
    Raises ValueError for contradictory orders and for no constraint at all.
    """
    if not constraints:
        raise ValueError("without a constraint there is nothing to say")
    avoid = None if unlike is None else _shape(unlike)
    while True:
        paragraph = join(dice, _parts(dice, n, constraints))
        if avoid is None or _shape(paragraph) != avoid:
            return paragraph


def _shape(paragraph: Paragraph) -> tuple[SubSentence, ...]:
    """The sub-sentences without words, whatever their order and however they are joined."""
    return tuple(sorted(strip(paragraph).parts(), key=repr))


def _parts(dice: Dice, n: int, constraints: Sequence[Constraint]) -> list[SubSentence]:
    edges = dice.shuffled(reduction(n, orders(constraints)))
    times = dice.shuffled(limits(constraints))
    parts: list[SubSentence] = []
    while edges:
        first, second = _gathered(dice, edges)
        subject = _hung(dice, Actions(first), {*first, *second}, edges, times)
        used = {*first, *second, *_mentioned(subject)}
        other = _hung(dice, Actions(second), used, edges, times)
        parts.append(_clause(dice, subject, other))
    for limit in times:
        link = Preposition(_direction(limit))
        clause = Clause(Actions((limit.action,)), link, Time(limit.hour), dice.unit() < 0.4)
        parts.append(clause)
    return dice.shuffled(parts)


def _gathered(dice: Dice, edges: list[Before]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sources and targets of the next clause: one edge, or several with a common end."""
    edge = edges.pop()
    if dice.unit() >= _GATHER:
        return (edge.first,), (edge.second,)
    fan_out = dice.unit() < 0.5
    shared = [e for e in edges if (e.first == edge.first if fan_out else e.second == edge.second)][
        : 1 + dice.below(3)
    ]
    for other in shared:
        edges.remove(other)
    if fan_out:
        return (edge.first,), tuple(e.second for e in (edge, *shared))
    return tuple(e.first for e in (edge, *shared)), (edge.second,)


def _hung(
    dice: Dice, node: Actions, used: set[int], edges: list[Before], times: list[TimeLimit]
) -> Actions:
    """The actions with a relative clause that says a further edge or limit, now and then."""
    if len(node.ids) > 1 or dice.unit() >= _HANG:
        return node
    (action,) = node.ids
    for limit in times:
        if limit.action == action:
            times.remove(limit)
            return Actions(node.ids, Relative(Preposition(_direction(limit)), Time(limit.hour)))
    for edge in edges:
        ends = {edge.first, edge.second}
        if action in ends and len(ends & used) == 1:
            edges.remove(edge)
            direction: Direction = "prec" if edge.first == action else "succ"
            (other,) = ends - {action}
            return Actions(node.ids, Relative(_drawn_link(dice, direction), Actions((other,))))
    return node


def _clause(dice: Dice, first: Actions, second: Actions) -> SubSentence:
    """Some form of "first before second"; whichever of the two is the grammatical subject."""
    form = dice.choice(_FORMS)
    direction: Direction = "prec"
    if dice.unit() < 0.5:
        first, second, direction = second, first, "succ"
    if "pair" in form:
        return Pair(direction, Dependent(first), Dependent(second), fronted=form != "pair")
    link: Link = Verb(direction) if form == "verb" else Preposition(direction)
    return plain(Clause(first, link, second, fronted=form == "fronted"))


def _drawn_link(dice: Dice, direction: Direction) -> Link:
    return Verb(direction) if dice.unit() < 0.5 else Preposition(direction)


def _direction(limit: TimeLimit) -> Direction:
    return "prec" if limit.side == "before" else "succ"


def _mentioned(node: Object) -> set[int]:
    found: set[int] = set()
    while isinstance(node, Actions):
        found.update(node.ids)
        if node.relative is None:
            break
        node = node.relative.object
    return found
