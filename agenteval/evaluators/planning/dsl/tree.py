"""The language of planning requests as typed trees (arXiv 2404.17833, figures 4 and 6).

A leaf is an action (its number, from 0, in the case's list) or a point of time (an hour). A tree
without words is a skeleton: every word number is UNSET. Word numbers index the lists of a Lexicon.

What a tree demands (section 4.1): a clause binds every action of its subject to every action of its
object. A relative clause binds the actions it stands behind in the same way, whatever the main
clause says, and so do relative clauses inside it. Fronting does not change the meaning: the order
is always read from the subject (of a pair: from the main clause) to the object. The words
themselves carry nothing more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from agenteval.evaluators.planning.case import (
    Before,
    Constraint,
    Side,
    Stated,
    TimeLimit,
    stated,
)

Direction = Literal["prec", "succ"]  # subject before object; subject after object
UNSET = -1


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb phrase that carries the order itself: "precedes", "comes after"."""

    direction: Direction
    verb: int = UNSET  # in VP_prec or VP_succ


@dataclass(frozen=True, slots=True)
class Preposition:
    """A neutral verb phrase and a preposition that carries the order: "occurs" + "before"."""

    direction: Direction
    verb: int = UNSET  # in VP_none
    preposition: int = UNSET  # in P_prec or P_succ


Link = Verb | Preposition


@dataclass(frozen=True, slots=True)
class Relative:
    """A "which" clause on the actions it stands behind, all of them."""

    link: Link
    object: Object


@dataclass(frozen=True, slots=True)
class Actions:
    """One or more different actions, and what a relative clause says of them."""

    ids: tuple[int, ...]
    relative: Relative | None = None


@dataclass(frozen=True, slots=True)
class Time:
    """A point of time, a full hour from 0 to 24; object of a Preposition only."""

    hour: int


Object = Actions | Time


@dataclass(frozen=True, slots=True)
class Clause:
    """An independent clause: "A precedes B", "A occurs before B", fronted "Before B, A occurs".

    Only a Preposition can be fronted.
    """

    subject: Actions
    link: Link
    object: Object
    fronted: bool = False


@dataclass(frozen=True, slots=True)
class Dependent:
    """A dependent clause: "A happens"."""

    subject: Actions
    verb: int = UNSET  # in VP_none


@dataclass(frozen=True, slots=True)
class Pair:
    """Two dependent clauses: "A happens before B happens", fronted "Before B happens, A happens".

    The order binds `main` to `other`, in both forms.
    """

    direction: Direction
    main: Dependent
    other: Dependent
    conjunction: int = UNSET  # in SC_prec or SC_succ
    fronted: bool = False


SubSentence = Clause | Pair


@dataclass(frozen=True, slots=True)
class Sentence:
    """Sub-sentences joined by conjunctions without meaning for the order ("and", "while")."""

    parts: tuple[SubSentence, ...]
    conjunctions: tuple[int, ...] = ()  # one less than parts, in CONJ

    def __post_init__(self) -> None:
        if len(self.conjunctions) != len(self.parts) - 1:
            raise ValueError("a sentence of k parts has k - 1 conjunctions")


@dataclass(frozen=True, slots=True)
class Paragraph:
    """The whole request: sentences in their order."""

    sentences: tuple[Sentence, ...]

    def parts(self) -> Iterator[SubSentence]:
        """All sub-sentences in their order; their position is the number a constraint cites."""
        for sentence in self.sentences:
            yield from sentence.parts


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
