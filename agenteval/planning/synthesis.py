"""Synthesis of cases: paragraphs grown at random, or made anew for demands that are given.

Random ones follow algorithm 1 of arXiv 2404.17833 and its grammar (figure 4): parts are grown from
the top down, one by one, as long as they can be satisfied. Beyond the paper every action is
mentioned, no part says only what is implied already, and the number of constraints is a target of
its own, apart from the number of actions. Case k of a seed is the same however many are asked for.

`resynthesize` (QuerySynthesize in algorithm 2) emits the transitive reduction of the orders edge by
edge, in random order and clause form; edges that share a source or a target are gathered into
lists, others hang on as relative clauses. Every time limit is said once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np

from agenteval.errors import InputError
from agenteval.planning.case import (
    Before,
    Case,
    Constraint,
    TimeLimit,
    actions,
    limits,
    orders,
)
from agenteval.planning.grammar import (
    DIRECTIONS,
    UNSET,
    Actions,
    Direction,
    Form,
    Link,
    Paragraph,
    Relative,
    RequestSentence,
    SubSentence,
    Time,
    demands,
    fill,
    render,
    strip,
    unfronted,
)
from agenteval.planning.solver import Graph, Timed, solver_for
from agenteval.planning.suite import build_case
from agenteval.planning.words import (
    Lexicon,
    Topic,
    action,
    built_in,
    built_in_topics,
)

T = TypeVar("T")
Range = tuple[int, int]  # from, to, both included
TRIES = 20  # K of algorithm 1: draws for one part
_BLOCK = 64
_FORMS: tuple[tuple[Form, bool], ...] = (
    ("verb", False),
    ("preposition", False),
    ("preposition", True),
    ("pair", False),
    ("pair", True),
)
# The ten patterns of a part without relative clauses, all equally likely.
_PATTERNS = tuple((form, fronted, d) for form, fronted in _FORMS for d in DIRECTIONS)
_FRESH = 0.7  # preference for actions that are not mentioned yet
_GATHER, _HANG = 0.5, 0.3  # chances of a list, and of a relative clause, in `resynthesize`
_ATTEMPTS = 500
_LONGEST_HOURS, _HOURS_IN_ALL = 4, 18


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


_STYLES = tuple(Style(p, r) for p in (0.1, 0.25, 0.5) for r in (0.08, 0.2, 0.35))
# Lists say much in few words, one order at a time says it at length.
_TERSE, _WORDY = Style(0.65, 0.05), Style(0.0, 0.0, 0.0)


class Picker:
    """Hands out different actions for one part, preferring those not mentioned yet."""

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
    """One skeleton of a part over at least two different actions, each at most once."""
    form, fronted, direction = picker.dice.choice(_PATTERNS)
    subject = _entity(picker, style, reserve=1)
    other = _entity(picker, style, reserve=0)
    return unfronted(SubSentence(subject, Link(form, direction), other, fronted))


def draw_time_part(picker: Picker, style: Style) -> SubSentence:
    """A skeleton that holds actions to a point of time (figure 6); times take prepositions."""
    dice = picker.dice
    subject = _entity(picker, style, reserve=0)
    time = Time(dice.between(1, 23))
    link = Link("preposition", dice.choice(DIRECTIONS))
    return SubSentence(subject, link, time, fronted=dice.unit() < 0.4)


def _entity(picker: Picker, style: Style, *, reserve: int, nested: bool = False) -> Actions:
    """Actions with or without a relative clause; `reserve` actions are left for what follows."""
    dice = picker.dice
    most = picker.left - reserve
    count = 1
    while count < most and count < 4 and dice.unit() < style.plural:
        count += 1
    ids = picker.take(count)
    chance = style.nested if nested else style.relative
    if picker.left <= reserve or dice.unit() >= chance:
        return Actions(ids)
    form: Form = "verb" if dice.unit() < 0.5 else "preposition"
    link = Link(form, dice.choice(DIRECTIONS))
    return Actions(ids, Relative(link, _entity(picker, style, reserve=reserve, nested=True)))


@dataclass(frozen=True, slots=True)
class GrowthGoal:
    """What a paragraph must reach: distinct constraints from `least` to `most`, in at most `parts`
    parts, `times` of which set a point of time. Growth ends once all actions are mentioned and the
    rest is reached."""

    least: int
    most: int
    parts: int
    times: int = 0


def grow(
    dice: Dice, solver: Graph | Timed, goal: GrowthGoal, style: Style
) -> list[SubSentence] | None:
    """Parts whose constraints are satisfiable together; None if this attempt got stuck.

    `solver` is empty at first and holds all constraints at the end.
    """
    parts: list[SubSentence] = []
    stated: set[Constraint] = set()
    fresh = set(range(solver.n))
    times = goal.times
    while fresh or times or len(stated) < goal.least:
        timed = times > 0 and (dice.unit() < 0.4 or not (fresh or len(stated) < goal.least))
        known = [i for i in range(solver.n) if i not in fresh]
        for _ in range(TRIES):
            picker = Picker(dice, sorted(fresh), known, _FRESH)
            part = draw_time_part(picker, style) if timed else draw_part(picker, style)
            new = demands(part)
            if (
                len(new) <= goal.most - len(stated)
                and not all(solver.implies(c) for c in new)
                and solver.allows(new)
            ):
                break
        else:
            return None
        if len(parts) >= goal.parts:
            return None
        solver.add(new)
        parts.append(part)
        stated.update(new)
        times -= timed
        for constraint in new:
            fresh.difference_update(actions(constraint))
    return parts


def join(dice: Dice, parts: Sequence[SubSentence], chance: float = 0.35) -> Paragraph:
    """Sentences of one to three parts in the order given."""
    sentences: list[list[SubSentence]] = []
    for part in parts:
        if sentences and len(sentences[-1]) < 3 and dice.unit() < chance:
            sentences[-1].append(part)
        else:
            sentences.append([part])
    return Paragraph(tuple(RequestSentence(tuple(s), (UNSET,) * (len(s) - 1)) for s in sentences))


# -- other sentences with equivalent demands -------------------------------------------------------


def resynthesize(
    dice: Dice, n: int, constraints: Sequence[Constraint], unlike: Paragraph | None = None
) -> Paragraph:
    """A skeleton whose constraints are equivalent to the given, satisfiable ones.

    It differs from the skeleton of `unlike` (for a single order there are ten to choose from).
    Raises ValueError for contradictory orders and for no constraint at all.
    """
    if not constraints:
        raise ValueError("without a constraint there is nothing to say")
    while True:
        paragraph = join(dice, _parts(dice, n, constraints))
        if unlike is None or _shape(paragraph) != _shape(unlike):
            return paragraph


def _shape(paragraph: Paragraph) -> list[SubSentence]:
    """The parts without words, whatever their order and however they are joined."""
    return sorted(strip(paragraph).parts(), key=repr)


def _parts(dice: Dice, n: int, constraints: Sequence[Constraint]) -> list[SubSentence]:
    edges = dice.shuffled(Graph(n, orders(constraints)).reduction())
    times = dice.shuffled(limits(constraints))
    parts: list[SubSentence] = []
    while edges:
        first, second = _gathered(dice, edges)
        subject = _hung(dice, Actions(first), {*first, *second}, edges, times)
        used = {*first, *second}
        if subject.relative is not None and isinstance(subject.relative.object, Actions):
            used.update(subject.relative.object.ids)
        other = _hung(dice, Actions(second), used, edges, times)
        form, fronted = dice.choice(_FORMS)
        if dice.unit() < 0.5:
            part = SubSentence(other, Link(form, "succ"), subject, fronted)
        else:
            part = SubSentence(subject, Link(form, "prec"), other, fronted)
        parts.append(unfronted(part))
    for limit in times:
        part = SubSentence(Actions((limit.action,)), *_limit(limit))
        parts.append(SubSentence(part.subject, part.link, part.object, dice.unit() < 0.4))
    return dice.shuffled(parts)


def _limit(limit: TimeLimit) -> tuple[Link, Time]:
    return Link("preposition", "prec" if limit.side == "before" else "succ"), Time(limit.hour)


def _gathered(dice: Dice, edges: list[Before]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Sources and targets of the next part: one edge, or several with a common end."""
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
            return Actions(node.ids, Relative(*_limit(limit)))
    for edge in edges:
        ends = {edge.first, edge.second}
        if action in ends and len(ends & used) == 1:
            edges.remove(edge)
            direction: Direction = "prec" if edge.first == action else "succ"
            form: Form = "verb" if dice.unit() < 0.5 else "preposition"
            return Actions(
                node.ids, Relative(Link(form, direction), Actions(tuple(ends - {action})))
            )
    return node


# -- cases -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shape:
    """How hard the cases are; each range by itself, both ends included.

    constraints: distinct constraints of the text, time limits included. Default: by the number of
    actions, from n - 1 to 2n. words: of the text, without the frame of the request. times: number
    of parts with a point of time, in extended cases.
    """

    actions: Range = (3, 5)
    constraints: Range | None = None
    words: Range | None = None
    times: Range = (1, 2)
    extended: bool = False


class Generator:
    """Cases of one shape, seed, set of topics and lexicon.

    Raises InputError for a shape that no case can have.
    """

    def __init__(
        self,
        shape: Shape,
        *,
        seed: int,
        topics: Sequence[Topic] | None = None,
        lexicon: Lexicon | None = None,
    ) -> None:
        self.shape, self.seed = shape, seed
        self.topics = tuple(built_in_topics() if topics is None else topics)
        self.lexicon = lexicon or built_in()
        _check(shape, self.topics)

    def cases(self, count: int) -> Iterator[Case]:
        """The first `count` cases."""
        return (self.case(number) for number in range(count))

    def case(self, number: int) -> Case:
        """Case `number`, from 0. InputError where no text of the shape was found."""
        shape = self.shape
        rng = np.random.default_rng([self.seed, number])
        dice = Dice(rng)
        n = dice.between(*shape.actions)
        topic = dice.choice(self.topics)
        chosen = [action(phrase) for phrase in dice.shuffled(topic.activities)[:n]]
        style = None
        for _ in range(_ATTEMPTS):
            durations = None
            if shape.extended:
                longest = max(1, min(_LONGEST_HOURS, _HOURS_IN_ALL // n))
                durations = [dice.between(1, longest) for _ in range(n)]
            paragraph = self.skeleton(dice, n, durations, style)
            if paragraph is None:
                continue
            filled = fill(paragraph, self.lexicon, rng)
            style = self._other_style(filled, [a.phrase for a in chosen])
            if style is None:
                name = f"{'x' if shape.extended else 'n'}{n}-{self.seed}-{number:05d}"
                case = build_case(name, topic.role, chosen, filled, self.lexicon, durations)
                # Another shape makes another case of the same seed and number.
                more = {"seed": self.seed, "id": f"{name}-{case.sha256[:4]}"}
                return case.model_copy(update=more)
        length = f" and {_told(shape.words)} words" if shape.words else ""
        raise InputError(
            f"no text of {n} actions with {_told(self._goal_range(n))} constraints"
            f"{length} was found in {_ATTEMPTS} attempts; widen the ranges"
        )

    def skeleton(
        self, dice: Dice, n: int, durations: Sequence[int] | None = None, style: Style | None = None
    ) -> Paragraph | None:
        """One attempt at a paragraph without words; None if it got stuck."""
        least, most = self._goal_range(n)
        times = dice.between(*self.shape.times) if self.shape.extended else 0
        goal = GrowthGoal(dice.between(least, most), most, max(7, n + 2), times)
        parts = grow(dice, solver_for(n, durations), goal, style or dice.choice(_STYLES))
        return None if parts is None else join(dice, parts)

    def _other_style(self, filled: Paragraph, phrases: Sequence[str]) -> Style | None:
        """Return the style to try next if the text has too few or too many words, else None."""
        if self.shape.words is None:
            return None
        low, high = self.shape.words
        words = len(render(filled, phrases, self.lexicon).split())
        if low <= words <= high:
            return None
        return _TERSE if words > high else _WORDY

    def _goal_range(self, n: int) -> Range:
        """Constraints from, to: as asked, cut to what n actions can have."""
        low, high = _possible(n, self.shape)
        least, most = self.shape.constraints or (n - 1, 2 * n)
        return max(low, least), min(high, most)


def _possible(n: int, shape: Shape) -> Range:
    """Fewest and most constraints of n actions: each is mentioned, each pair is ordered once."""
    times = shape.times[1] if shape.extended else 0
    return (n + 1) // 2, n * (n - 1) // 2 + 2 * n * bool(times)


def _check(shape: Shape, topics: Sequence[Topic]) -> None:
    low, high = shape.actions
    for name, span in (
        ("n", shape.actions),
        ("constraints", shape.constraints),
        ("words", shape.words),
        ("times", shape.times),
    ):
        if span is not None and (span[0] > span[1] or span[0] < 0):
            raise InputError(f"{_told(span)} is no range", f"--{name}")
    if low < 2:
        raise InputError("a plan needs at least 2 actions", "--n")
    if not topics:
        raise InputError("no topic is given", "--topic")
    poorest = min(topics, key=lambda t: len(t.activities))
    if high > len(poorest.activities):
        raise InputError(
            f"{high} actions are more than the {len(poorest.activities)} activities of the topic "
            f"{poorest.role!r}",
            "--n",
        )
    if shape.extended and high > _HOURS_IN_ALL:
        raise InputError(f"a day holds at most {_HOURS_IN_ALL} activities", "--n")
    for n in range(low, high + 1):
        least, most = _possible(n, shape)
        if shape.constraints and (shape.constraints[1] < least or shape.constraints[0] > most):
            raise InputError(
                f"{n} actions have {least} to {most} constraints, not {_told(shape.constraints)}",
                "--constraints",
            )


def _told(span: Range) -> str:
    return str(span[0]) if span[0] == span[1] else f"{span[0]} to {span[1]}"
