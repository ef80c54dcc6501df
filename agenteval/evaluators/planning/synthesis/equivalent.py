"""Other sentences for the same constraints (QuerySynthesize in algorithm 2 of arXiv 2404.17833).

The orders' transitive reduction is emitted edge by edge, in random order and clause form; edges
that share a source or a target are gathered into lists, others hang on as relative clauses. Every
time limit is said once. The new text demands what the old one did: their sets imply each other.
"""

from __future__ import annotations

from collections.abc import Sequence

from agenteval.evaluators.planning.case import Before, Constraint, TimeLimit, limits, orders
from agenteval.evaluators.planning.dsl.fill import strip
from agenteval.evaluators.planning.dsl.tree import (
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
    SubSentence,
    Time,
    Verb,
)
from agenteval.evaluators.planning.solver.graph import reduction
from agenteval.evaluators.planning.synthesis.grammar import Dice, join, plain

_GATHER, _HANG = 0.5, 0.3  # chances of a list, and of a relative clause
_FORMS = ("verb", "preposition", "fronted", "pair", "fronted pair")


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
            return Actions(node.ids, Relative(_link(dice, direction), Actions((other,))))
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


def _link(dice: Dice, direction: Direction) -> Link:
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
