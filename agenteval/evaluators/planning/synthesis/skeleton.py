"""Algorithm 1 of arXiv 2404.17833: grow a satisfiable paragraph, sub-sentence by sub-sentence.

Beyond the paper: every action is mentioned, no sub-sentence says only what is implied already, and
the number of constraints is a target of its own, apart from the number of actions.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agenteval.evaluators.planning.case import Constraint, actions
from agenteval.evaluators.planning.dsl.derive import demands
from agenteval.evaluators.planning.dsl.nodes import UNSET, Paragraph, Sentence, SubSentence
from agenteval.evaluators.planning.solver.base import Solver
from agenteval.evaluators.planning.synthesis.dice import Dice
from agenteval.evaluators.planning.synthesis.grammar import (
    Picker,
    Style,
    draw_part,
    draw_time_part,
)

TRIES = 20  # K of algorithm 1: draws for one sub-sentence
_FRESH = 0.7  # preference for actions that are not mentioned yet


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
