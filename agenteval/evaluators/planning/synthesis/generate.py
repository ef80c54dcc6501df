"""Streams of cases from a seed. Case k of a seed is the same however many are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from agenteval.errors import InputError
from agenteval.evaluators.planning.case import Case
from agenteval.evaluators.planning.dsl.fill import fill
from agenteval.evaluators.planning.dsl.lexicon import Lexicon, built_in
from agenteval.evaluators.planning.dsl.render import render
from agenteval.evaluators.planning.dsl.tree import Paragraph
from agenteval.evaluators.planning.solver.choose import solver_for
from agenteval.evaluators.planning.suite import build_case
from agenteval.evaluators.planning.synthesis.grammar import Dice, Goal, Style, grow, join
from agenteval.evaluators.planning.synthesis.topics import Topic, action, built_in_topics

Span = tuple[int, int]  # from, to, both included

_ATTEMPTS = 500
_STYLES = tuple(Style(p, r) for p in (0.1, 0.25, 0.5) for r in (0.08, 0.2, 0.35))
# Lists say much in few words, one order at a time says it at length.
_TERSE, _WORDY = Style(0.65, 0.05), Style(0.0, 0.0, 0.0)
_LONGEST_HOURS, _HOURS_IN_ALL = 4, 18


@dataclass(frozen=True, slots=True)
class Shape:
    """How hard the cases are; each range by itself, both ends included.

    constraints: distinct constraints of the text, time limits included. Default: by the number of
    actions, from n - 1 to 2n. words: of the text, without the frame of the request. times: number
    of sub-sentences with a point of time, in extended cases.
    """

    actions: Span = (3, 5)
    constraints: Span | None = None
    words: Span | None = None
    times: Span = (1, 2)
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
        rng = np.random.default_rng([self.seed, number])
        dice = Dice(rng)
        n = dice.between(*self.shape.actions)
        topic = dice.choice(self.topics)
        chosen = [action(phrase) for phrase in dice.shuffled(topic.activities)[:n]]
        phrases = [a.phrase for a in chosen]
        style = None
        for _ in range(_ATTEMPTS):
            durations = self._durations(dice, n)
            paragraph = self.skeleton(dice, n, durations, style)
            if paragraph is None:
                continue
            filled = fill(paragraph, self.lexicon, rng)
            style = self._better_style(filled, phrases)
            if style is None:
                name = f"{'x' if self.shape.extended else 'n'}{n}-{self.seed}-{number:05d}"
                case = build_case(name, topic.role, chosen, filled, self.lexicon, durations)
                # Another shape makes another case of the same seed and number.
                more = {"seed": self.seed, "id": f"{name}-{case.sha256[:4]}"}
                return case.model_copy(update=more)
        length = f" and {_told(self.shape.words)} words" if self.shape.words else ""
        raise InputError(
            f"no text of {n} actions with {_told(self._goal_range(n))} constraints"
            f"{length} was found in {_ATTEMPTS} attempts; widen the ranges"
        )

    def skeleton(
        self,
        dice: Dice,
        n: int,
        durations: Sequence[int] | None = None,
        style: Style | None = None,
    ) -> Paragraph | None:
        """One attempt at a paragraph without words; None if it got stuck."""
        least, most = self._goal_range(n)
        times = dice.between(*self.shape.times) if self.shape.extended else 0
        goal = Goal(dice.between(least, most), most, max(7, n + 2), times)
        parts = grow(dice, solver_for(n, durations), goal, style or dice.choice(_STYLES))
        return None if parts is None else join(dice, parts)

    def _better_style(self, filled: Paragraph, phrases: Sequence[str]) -> Style | None:
        """None if the length is as asked; else the style for the next attempt."""
        if self.shape.words is None:
            return None
        count = len(render(filled, phrases, self.lexicon).split())
        if count > self.shape.words[1]:
            return _TERSE
        return _WORDY if count < self.shape.words[0] else None

    def _goal_range(self, n: int) -> Span:
        """Constraints from, to: as asked, cut to what n actions can have."""
        low, high = _possible(n, self.shape)
        if self.shape.constraints is None:
            return max(low, n - 1), min(high, 2 * n)
        return max(low, self.shape.constraints[0]), min(high, self.shape.constraints[1])

    def _durations(self, dice: Dice, n: int) -> list[int] | None:
        if not self.shape.extended:
            return None
        longest = max(1, min(_LONGEST_HOURS, _HOURS_IN_ALL // n))
        return [dice.between(1, longest) for _ in range(n)]


def _possible(n: int, shape: Shape) -> Span:
    """Fewest and most constraints of n actions: each is mentioned, each pair is ordered once."""
    times = shape.times[1] if shape.extended else 0
    return (n + 1) // 2, n * (n - 1) // 2 + 2 * n * bool(times)


def _check(shape: Shape, topics: Sequence[Topic]) -> None:
    low, high = shape.actions
    for name, span in (("n", shape.actions), ("constraints", shape.constraints),
                       ("words", shape.words), ("times", shape.times)):  # fmt: skip
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
            f"{poorest.role!r}", "--n",
        )  # fmt: skip
    if shape.extended and high > _HOURS_IN_ALL:
        raise InputError(f"a day holds at most {_HOURS_IN_ALL} activities", "--n")
    if shape.constraints is not None:
        for n in range(low, high + 1):
            least, most = _possible(n, shape)
            if shape.constraints[1] < least or shape.constraints[0] > most:
                raise InputError(
                    f"{n} actions have {least} to {most} constraints, "
                    f"not {_told(shape.constraints)}", "--constraints",
                )  # fmt: skip


def _told(span: Span) -> str:
    return str(span[0]) if span[0] == span[1] else f"{span[0]} to {span[1]}"
