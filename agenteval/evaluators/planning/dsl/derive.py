"""What a tree demands (arXiv 2404.17833, section 4.1): its orders and its time limits.

A clause binds every action of its subject to every action of its object. A relative clause binds
the actions it stands behind in the same way, whatever the main clause says, and so do relative
clauses inside it. Fronting does not change the meaning: the order is always read from the subject
(of a pair: from the main clause) to the object. The words themselves carry nothing more.
"""

from __future__ import annotations

from agenteval.evaluators.planning.case import (
    Before,
    Constraint,
    Side,
    Stated,
    TimeLimit,
    stated,
)
from agenteval.evaluators.planning.dsl.nodes import (
    Actions,
    Direction,
    Object,
    Pair,
    Paragraph,
    SubSentence,
    Time,
)

_SIDE: dict[Direction, Side] = {"prec": "before", "succ": "after"}


def demands(part: SubSentence) -> list[Constraint]:
    """Return all constraints of one sub-sentence, each once, in the order of reading the tree.

    The order: the main relation (subject by subject), then the relative clauses of the subject,
    then those of the object.
    """
    found: dict[Constraint, None] = {}
    if isinstance(part, Pair):
        subject, object_ = part.main.subject, part.other.subject
        _bind(subject.ids, part.direction, object_, found)
        _relatives(subject, found)
        _relatives(object_, found)
    else:
        _bind(part.subject.ids, part.link.direction, part.object, found)
        _relatives(part.subject, found)
        _relatives(part.object, found)
    return list(found)


def constraints_of(paragraph: Paragraph) -> tuple[Stated, ...]:
    """Return every constraint of the paragraph once, in order of first mention.

    Each comes with the numbers (from 0, over the whole paragraph) of the sub-sentences stating it.
    """
    return stated((c, i) for i, part in enumerate(paragraph.parts()) for c in demands(part))


def _bind(
    subject: tuple[int, ...],
    direction: Direction,
    object_: Object,
    found: dict[Constraint, None],
) -> None:
    """Add the cross product of the subject's actions and the object's actions or time."""
    if isinstance(object_, Time):
        for action in subject:
            found[TimeLimit(action, _SIDE[direction], object_.hour)] = None
    elif direction == "prec":
        for first in subject:
            for second in object_.ids:
                found[Before(first, second)] = None
    else:
        for second in subject:
            for first in object_.ids:
                found[Before(first, second)] = None


def _relatives(node: Object, found: dict[Constraint, None]) -> None:
    """Add what the relative clauses under a subject or object say, from the outside inwards."""
    while isinstance(node, Actions) and node.relative is not None:
        relative = node.relative
        _bind(node.ids, relative.link.direction, relative.object, found)
        node = relative.object
