"""Short names for trees, and paragraphs drawn by hypothesis, for the tests of the language."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from itertools import product

from hypothesis import strategies as st

from agenteval.evaluators.planning.dsl.lexicon import Kind, Lexicon, built_in
from agenteval.evaluators.planning.dsl.render import tangled
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
    Sentence,
    SubSentence,
    Time,
    Verb,
)

A, B, C, D, E, F = range(6)
LETTERS = tuple("ABCDEF")
DIRECTIONS: tuple[Direction, ...] = ("prec", "succ")
LINKS: tuple[Link, ...] = tuple(form(d) for form in (Verb, Preposition) for d in DIRECTIONS)


def number(kind: Kind, form: str) -> int:
    """The number of the built-in phrase with this form, singular or plural."""
    (found,) = [i for i, p in enumerate(built_in().words[kind]) if form in (p.singular, p.plural)]
    return found


def prec(form: str) -> Verb:
    return Verb("prec", number("VP_prec", form))


def succ(form: str) -> Verb:
    return Verb("succ", number("VP_succ", form))


def before(verb: str, preposition: str) -> Preposition:
    return Preposition("prec", number("VP_none", verb), number("P_prec", preposition))


def after(verb: str, preposition: str) -> Preposition:
    return Preposition("succ", number("VP_none", verb), number("P_succ", preposition))


def act(*ids: int, which: tuple[Link, Object] | None = None) -> Actions:
    return Actions(ids, None if which is None else Relative(*which))


def does(subject: Actions, verb: str) -> Dependent:
    return Dependent(subject, number("VP_none", verb))


def one(*parts: SubSentence, joined: tuple[int, ...] = ()) -> Paragraph:
    """A paragraph of one sentence."""
    return Paragraph((Sentence(parts, joined),))


def paragraphs(  # noqa: C901  a grammar in one place
    lexicon: Lexicon, actions: int, *, deep: int = 3
) -> st.SearchStrategy[Paragraph]:
    """Paragraphs with words: lists, relatives up to `deep` in each other, times, conjunctions.

    Parts are made once: a strategy that is new in every draw is checked in every draw.
    """
    directions = st.sampled_from(("prec", "succ"))
    chosen = st.lists(st.integers(0, actions - 1), min_size=1, max_size=4, unique=True).map(tuple)
    hours, third, fifth = st.integers(0, 24), st.integers(0, 2), st.integers(0, 4)

    @cache
    def word(kind: Kind, time: bool = False) -> st.SearchStrategy[int]:
        return st.sampled_from(lexicon.allowed(kind, time=time))

    @st.composite
    def links(draw: st.DrawFn, time: bool) -> Link:
        direction = draw(directions)
        if not time and draw(st.booleans()):
            return Verb(direction, draw(word(f"VP_{direction}")))
        return Preposition(direction, draw(word("VP_none")), draw(word(f"P_{direction}", time)))

    link_of = {time: links(time) for time in (False, True)}

    @cache
    @st.composite
    def nouns(draw: st.DrawFn, depth: int) -> Actions:
        ids = draw(chosen)
        if depth == 0 or draw(third):
            return Actions(ids)
        link, object_ = draw(relations(depth - 1))
        return Actions(ids, Relative(link, object_))

    @cache
    @st.composite
    def relations(draw: st.DrawFn, depth: int) -> tuple[Link, Object]:
        if draw(fifth) == 0:
            return draw(link_of[True]), Time(draw(hours))
        return draw(link_of[False]), draw(nouns(depth))

    @st.composite
    def clauses(draw: st.DrawFn) -> Clause:
        link, object_ = draw(relations(deep))
        fronted = isinstance(link, Preposition) and draw(st.booleans())
        clause = Clause(draw(nouns(deep)), link, object_, fronted)
        return replace(clause, fronted=False) if tangled(clause) else clause

    @st.composite
    def pairs(draw: st.DrawFn) -> Pair:
        direction = draw(directions)
        main, other = (Dependent(draw(nouns(deep)), draw(word("VP_none"))) for _ in range(2))
        conjunction = draw(word(f"SC_{direction}"))
        return Pair(direction, main, other, conjunction, draw(st.booleans()))

    parts_of = st.lists(st.one_of(clauses(), clauses(), pairs()), min_size=1, max_size=3)
    join = st.integers(0, len(lexicon.conjunctions) - 1)

    @st.composite
    def sentences(draw: st.DrawFn) -> Sentence:
        parts = draw(parts_of)
        return Sentence(tuple(parts), tuple(draw(join) for _ in parts[1:]))

    return st.lists(sentences(), min_size=1, max_size=3).map(lambda s: Paragraph(tuple(s)))


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
