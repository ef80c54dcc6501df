"""All trees of the grammar up to a depth, and the number of its expansions.

The paper (arXiv 2404.17833, section 4.1) states 340 expansions "without accounting for a+" and no
rule of counting. The rule here gives 340: single actions; relative clauses one deep on subject and
object; the second dependent clause of a pair without one; and each sub-sentence counts for both
alternatives of `sentence`, the last one and one that a conjunction joins to another.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import product

from agenteval.evaluators.planning.dsl.nodes import (
    Actions,
    Clause,
    Dependent,
    Direction,
    Link,
    Object,
    Pair,
    Preposition,
    Relative,
    SubSentence,
    Verb,
)

DIRECTIONS: tuple[Direction, ...] = ("prec", "succ")
LINKS: tuple[Link, ...] = tuple(form(d) for form in (Verb, Preposition) for d in DIRECTIONS)
SENTENCES = ("a sub-sentence", "a sentence, a conjunction and a sub-sentence")


def expansions() -> int:
    """Number of ways to expand one sub-sentence of a sentence, by listing them; the paper: 340."""
    return sum(1 for _ in product(trees(1), SENTENCES))


def trees(depth: int) -> Iterator[SubSentence]:
    """Every sub-sentence skeleton with single actions and relatives up to `depth` in each other.

    Each place has an action of its own, numbered from 0 in the order of the tree. There are 10,
    170 and 2,730 for depth 0, 1 and 2.
    """
    for part in _shapes(depth):
        yield _numbered(part)


def nouns(depth: int) -> list[Actions]:
    """A single action (always number 0) with every relative clause up to `depth`."""
    plain = Actions((0,))
    if depth == 0:
        return [plain]
    return [plain, *(Actions((0,), Relative(link, n)) for link in LINKS for n in nouns(depth - 1))]


def _shapes(depth: int) -> Iterator[SubSentence]:
    """The trees of `trees`, every action being number 0."""
    options = nouns(depth)
    for subject, object_ in product(options, options):
        for link in LINKS:
            yield Clause(subject, link, object_)
            if isinstance(link, Preposition):
                yield Clause(subject, link, object_, fronted=True)
    other = Dependent(Actions((0,)))
    for subject, direction, fronted in product(options, DIRECTIONS, (False, True)):
        yield Pair(direction, Dependent(subject), other, fronted=fronted)


def _numbered(part: SubSentence) -> SubSentence:
    """The same shape with a new number at each place."""
    count = 0

    def fresh(node: Object) -> Actions:
        nonlocal count
        assert isinstance(node, Actions)  # these trees hold no times
        number, count = count, count + 1
        if node.relative is None:
            return Actions((number,))
        return Actions((number,), Relative(node.relative.link, fresh(node.relative.object)))

    if isinstance(part, Clause):
        return replace(part, subject=fresh(part.subject), object=fresh(part.object))
    main = Dependent(fresh(part.main.subject))
    return replace(part, main=main, other=Dependent(fresh(part.other.subject)))
