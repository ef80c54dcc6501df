"""The language of planning requests as typed trees (arXiv 2404.17833, figures 4 and 6).

A leaf is an action (its number, from 0, in the case's list) or a point of time (an hour). A tree
without words is a skeleton: every word number is UNSET. Word numbers index the lists of a Lexicon.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

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
