"""Synthesize cases: grow random paragraphs, or write new paragraphs for given constraints.

Random ones follow algorithm 1 of arXiv 2404.17833 and its grammar (figure 4): parts are grown
top-down, one by one, as long as they can be satisfied. Beyond the paper, every action is mentioned,
every part adds a constraint, and the number of constraints is a separate target. Case k of a seed
does not depend on the number of cases.

`resynthesize` (QuerySynthesize in algorithm 2) emits the transitive reduction of the orders edge by
edge, in random order and clause form; edges that share a source or a target are gathered into
lists, others become relative clauses. Every time limit is stated once.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TypeVar

import numpy as np

from agenteval.errors import InputError
from agenteval.planning.case import Before, Case, Constraint, TimeLimit, actions, limits, orders
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
    followed,
    render,
    strip,
    unfronted,
)
from agenteval.planning.solver import Graph, Timed, solver_for
from agenteval.planning.suite import build_case
from agenteval.planning.words import Topic, action, built_in_topics, ends_in_phrase

T = TypeVar("T")
MinMax = tuple[int, int]  # inclusive
TRIES = 20  # K of algorithm 1: draws for one part
_BLOCK = 64
_FORMS: tuple[tuple[Form, bool], ...] = (
    ("verb", False),
    ("preposition", False),
    ("preposition", True),
    ("pair", False),
    ("pair", True),
)
# The ten equally likely patterns of a part without relative clauses
_PATTERNS = tuple((form, fronted, d) for form, fronted in _FORMS for d in DIRECTIONS)
_FRESH = 0.7  # preference for actions that are not mentioned yet
_JOIN = 0.35  # chance that a part joins the sentence before it
_GATHER, _HANG = 0.5, 0.3  # chances of a list, and of a relative clause, in `resynthesize`
_FRONTED_TIME = 0.4
_ATTEMPTS = 500
_LONGEST_HOURS, _HOURS_IN_ALL = 4, 18


class Dice:
    """Uniform random choices, reproducible from the state of the generator."""

    __slots__ = ("_numbers", "_rng")

    def __init__(self, rng: np.random.Generator) -> None:
        self._rng = rng
        self._numbers: list[float] = []

    def unit(self) -> float:
        """Return a number in [0, 1)."""
        if not self._numbers:
            self._numbers = self._rng.random(_BLOCK).tolist()
        return self._numbers.pop()

    def below(self, n: int) -> int:
        """Return an integer in [0, n)."""
        return int(self.unit() * n)

    def between(self, low: int, high: int) -> int:
        """Return an integer from low to high, inclusive."""
        return low + self.below(high - low + 1)

    def choice(self, values: Sequence[T]) -> T:
        """Return one of the values."""
        return values[self.below(len(values))]

    def shuffled(self, values: Sequence[T]) -> list[T]:
        """Return the values in random order."""
        mixed = list(values)
        for i in range(len(mixed) - 1, 0, -1):
            j = self.below(i + 1)
            mixed[i], mixed[j] = mixed[j], mixed[i]
        return mixed


@dataclass(frozen=True, slots=True)
class Style:
    """Complexity of sentences: chances of another action in a list, of a relative clause, and of a
    nested one."""

    plural: float = 0.25
    relative: float = 0.2
    nested: float = 0.3


_STYLES = tuple(Style(p, r) for p in (0.1, 0.25, 0.5) for r in (0.08, 0.2, 0.35))
# Lists make texts short; stating one order at a time makes them long.
_TERSE, _WORDY = Style(0.65, 0.05), Style(0.0, 0.0, 0.0)


class _PartDrawer:
    """Draws the skeleton of one part over distinct actions, preferring unmentioned ones."""

    def __init__(
        self, dice: Dice, fresh: Iterable[int], mentioned: Iterable[int], style: Style
    ) -> None:
        self.dice, self.style = dice, style
        self.fresh = dice.shuffled(list(fresh))
        self.mentioned = dice.shuffled(list(mentioned))

    def part(self) -> SubSentence:
        """Return a part over at least two actions."""
        form, fronted, direction = self.dice.choice(_PATTERNS)
        subject = self._actions(reserve=1)
        other = self._actions(reserve=0)
        return unfronted(SubSentence(subject, Link(form, direction), other, fronted))

    def time_part(self) -> SubSentence:
        """Return a part with a time (figure 6), which needs a preposition."""
        subject = self._actions(reserve=0)
        time = Time(self.dice.between(1, 23))
        link = Link("preposition", self.dice.choice(DIRECTIONS))
        return SubSentence(subject, link, time, fronted=self.dice.unit() < _FRONTED_TIME)

    def _actions(self, *, reserve: int, nested: bool = False) -> Actions:
        """Draw actions, possibly with a relative clause, leaving `reserve` actions for later."""
        dice, style = self.dice, self.style
        most = min(4, len(self.fresh) + len(self.mentioned) - reserve)
        count = 1
        while count < most and dice.unit() < style.plural:
            count += 1
        ids = tuple(self._take() for _ in range(count))
        chance = style.nested if nested else style.relative
        if len(self.fresh) + len(self.mentioned) <= reserve or dice.unit() >= chance:
            return Actions(ids)
        form: Form = "verb" if dice.unit() < 0.5 else "preposition"
        link = Link(form, dice.choice(DIRECTIONS))
        return Actions(ids, Relative(link, self._actions(reserve=reserve, nested=True)))

    def _take(self) -> int:
        fresh = self.fresh and (not self.mentioned or self.dice.unit() < _FRESH)
        return (self.fresh if fresh else self.mentioned).pop()


@dataclass(frozen=True, slots=True)
class GrowthGoal:
    """The goal of a paragraph: `least` to `most` distinct constraints in at most `parts` parts,
    including `times` parts with a time. Growth ends once all actions are mentioned and the goal is
    reached."""

    least: int
    most: int
    parts: int
    times: int = 0


def grow(
    dice: Dice, solver: Graph | Timed, goal: GrowthGoal, style: Style
) -> list[SubSentence] | None:
    """Return parts with jointly satisfiable constraints, or None if this attempt got stuck.

    `solver` must be empty; at the end, it has all constraints.
    """
    parts: list[SubSentence] = []
    stated: set[Constraint] = set()
    fresh = set(range(solver.n))
    times = goal.times
    while fresh or times or len(stated) < goal.least:
        timed = times > 0 and (dice.unit() < 0.4 or not (fresh or len(stated) < goal.least))
        mentioned = [i for i in range(solver.n) if i not in fresh]
        for _ in range(TRIES):
            drawer = _PartDrawer(dice, sorted(fresh), mentioned, style)
            part = drawer.time_part() if timed else drawer.part()
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


def join(dice: Dice, parts: Sequence[SubSentence]) -> Paragraph:
    """Return sentences of one to three parts in the given order."""
    sentences: list[list[SubSentence]] = []
    for part in parts:
        if sentences and len(sentences[-1]) < 3 and dice.unit() < _JOIN:
            sentences[-1].append(part)
        else:
            sentences.append([part])
    return Paragraph(tuple(RequestSentence(tuple(s), (UNSET,) * (len(s) - 1)) for s in sentences))


# -- other sentences with equivalent demands -------------------------------------------------------


def resynthesize(
    dice: Dice, n: int, constraints: Sequence[Constraint], unlike: Paragraph | None = None
) -> Paragraph:
    """Return a skeleton with constraints equivalent to the given, satisfiable ones.

    It differs from the skeleton of `unlike` (for a single order, there are ten choices). Raises
    ValueError for contradictory orders and without constraints.
    """
    if not constraints:
        raise ValueError("at least one constraint is needed")
    while True:
        paragraph = join(dice, _parts(dice, n, constraints))
        if unlike is None or _shape(paragraph) != _shape(unlike):
            return paragraph


def _shape(paragraph: Paragraph) -> list[SubSentence]:
    """Return the sorted parts without words, to compare paragraphs in any order of parts."""
    return sorted(strip(paragraph).parts(), key=repr)


def _parts(dice: Dice, n: int, constraints: Sequence[Constraint]) -> list[SubSentence]:
    edges = dice.shuffled(Graph(n, orders(constraints)).reduction())
    times = dice.shuffled(limits(constraints))
    parts: list[SubSentence] = []
    while edges:
        first, second = _gathered(dice, edges)
        used = {*first, *second}
        subject = _hung(dice, Actions(first), used, edges, times)
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
        fronted = dice.unit() < _FRONTED_TIME
        parts.append(SubSentence(Actions((limit.action,)), *_limit(limit), fronted))
    return dice.shuffled(parts)


def _limit(limit: TimeLimit) -> tuple[Link, Time]:
    return Link("preposition", "prec" if limit.side == "before" else "succ"), Time(limit.hour)


def _gathered(dice: Dice, edges: list[Before]) -> tuple[tuple[int, ...], tuple[int, ...]]:
    """Remove the edges of the next part (one, or several with a common end) and return their
    sources and targets."""
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
    """Return the actions, sometimes with a relative clause that states (and removes) another edge
    or limit."""
    if len(node.ids) > 1 or dice.unit() >= _HANG:
        return node
    (action,) = node.ids
    for limit in times:
        if limit.action == action:
            times.remove(limit)
            return replace(node, relative=Relative(*_limit(limit)))
    for edge in edges:
        ends = {edge.first, edge.second}
        if action in ends and len(ends & used) == 1:
            edges.remove(edge)
            direction: Direction = "prec" if edge.first == action else "succ"
            form: Form = "verb" if dice.unit() < 0.5 else "preposition"
            other = Actions(tuple(ends - {action}))
            return replace(node, relative=Relative(Link(form, direction), other))
    return node


def placed(activities: Sequence[str], n: int, paragraph: Paragraph) -> list[str]:
    """Return the first n activities as the phrases of the actions.

    If the words after an activity that ends in a prepositional phrase could be read as part of the
    phrase, the activity is swapped with another one or replaced by a later one, if possible.
    """
    phrases, spare, places = list(activities[:n]), list(activities[n:]), followed(paragraph)
    free = [i for i in range(n) if i not in places]
    for place in sorted(places):
        if not ends_in_phrase(phrases[place]):
            continue
        for pool, candidates in ((phrases, free), (spare, range(len(spare)))):
            other = next((i for i in candidates if not ends_in_phrase(pool[i])), None)
            if other is not None:
                phrases[place], pool[other] = pool[other], phrases[place]
                break
    return phrases


# -- cases -----------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Shape:
    """Difficulty of cases, as independent, inclusive ranges.

    `constraints`: distinct constraints of the text, including time limits; by default n - 1 to 2n.
    `words`: words of the text, without the template of the request. `times`: number of parts with a
    time, in extended cases.
    """

    actions: MinMax = (3, 5)
    constraints: MinMax | None = None
    words: MinMax | None = None
    times: MinMax = (1, 2)
    extended: bool = False

    def goal(self, n: int) -> MinMax:
        """Return the number of constraints to generate for n actions."""
        low, high = self.possible(n)
        least, most = self.constraints or (n - 1, 2 * n)
        return max(low, least), min(high, most)

    def possible(self, n: int) -> MinMax:
        """Return the minimum and maximum number of constraints: each action is mentioned, each pair
        ordered once."""
        times = self.times[1] if self.extended else 0
        return (n + 1) // 2, n * (n - 1) // 2 + 2 * n * bool(times)


class Generator:
    """Generates cases of one shape, seed and set of topics.

    Raises InputError for an impossible shape.
    """

    def __init__(self, shape: Shape, *, seed: int, topics: Sequence[Topic] | None = None) -> None:
        self.shape, self.seed = shape, seed
        self.topics = tuple(built_in_topics() if topics is None else topics)
        _check(shape, self.topics)

    def cases(self, count: int) -> Iterator[Case]:
        """Return the first `count` cases."""
        return (self.case(number) for number in range(count))

    def case(self, number: int) -> Case:
        """Return case `number`, from 0. Raises InputError if no text of the shape was found."""
        shape = self.shape
        rng = np.random.default_rng([self.seed, number])
        dice = Dice(rng)
        n = dice.between(*shape.actions)
        topic = dice.choice(self.topics)
        activities = dice.shuffled(topic.activities)
        style = None
        for _ in range(_ATTEMPTS):
            durations = None
            if shape.extended:
                longest = max(1, min(_LONGEST_HOURS, _HOURS_IN_ALL // n))
                durations = [dice.between(1, longest) for _ in range(n)]
            paragraph = self._skeleton(dice, n, durations, style)
            if paragraph is None:
                continue
            filled = fill(paragraph, rng)
            phrases = placed(activities, n, paragraph)
            if shape.words:
                words = len(render(filled, phrases).split())
                if not shape.words[0] <= words <= shape.words[1]:
                    style = _TERSE if words > shape.words[1] else _WORDY
                    continue
            name = f"{'x' if shape.extended else 'n'}{n}-{self.seed}-{number:05d}"
            chosen = [action(phrase) for phrase in phrases]
            case = build_case(name, topic.role, chosen, filled, durations)
            # A different shape gives a different case for the same seed and number.
            identity = f"{name}-{case.sha256[:4]}"
            return case.model_copy(update={"seed": self.seed, "id": identity})
        length = f" and {_range(shape.words)} words" if shape.words else ""
        raise InputError(
            f"no text of {n} actions with {_range(shape.goal(n))} constraints"
            f"{length} was found in {_ATTEMPTS} attempts; widen the ranges"
        )

    def _skeleton(
        self, dice: Dice, n: int, durations: Sequence[int] | None, style: Style | None
    ) -> Paragraph | None:
        """Return one attempt at a paragraph without words, or None for a dead end."""
        least, most = self.shape.goal(n)
        times = dice.between(*self.shape.times) if self.shape.extended else 0
        goal = GrowthGoal(dice.between(least, most), most, max(7, n + 2), times)
        parts = grow(dice, solver_for(n, durations), goal, style or dice.choice(_STYLES))
        return None if parts is None else join(dice, parts)


def _check(shape: Shape, topics: Sequence[Topic]) -> None:
    low, high = shape.actions
    for name, span in (
        ("n", shape.actions),
        ("constraints", shape.constraints),
        ("words", shape.words),
        ("times", shape.times),
    ):
        if span is not None and (span[0] > span[1] or span[0] < 0):
            raise InputError(f"{_range(span)} is not a range", f"--{name}")
    if low < 2:
        raise InputError("a plan needs at least 2 actions", "--n")
    if not topics:
        raise InputError("no topics given", "--topic")
    poorest = min(topics, key=lambda t: len(t.activities))
    if high > len(poorest.activities):
        raise InputError(
            f"{high} actions are more than the {len(poorest.activities)} activities of the topic "
            f"{poorest.role!r}",
            "--n",
        )
    if shape.extended and high > _HOURS_IN_ALL:
        raise InputError(f"a day has room for at most {_HOURS_IN_ALL} activities", "--n")
    for n in range(low, high + 1):
        least, most = shape.possible(n)
        if shape.constraints and (shape.constraints[1] < least or shape.constraints[0] > most):
            raise InputError(
                f"{n} actions have {least} to {most} constraints, not {_range(shape.constraints)}",
                "--constraints",
            )


def _range(span: MinMax) -> str:
    return str(span[0]) if span[0] == span[1] else f"{span[0]} to {span[1]}"
