"""Short names for trees, and paragraphs drawn by hypothesis, for the tests of the language."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

from hypothesis import strategies as st

from agenteval.evaluators.planning.dsl.lexicon import Kind, Lexicon, built_in
from agenteval.evaluators.planning.dsl.nodes import (
    Actions,
    Clause,
    Dependent,
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
from agenteval.evaluators.planning.dsl.render import tangled

A, B, C, D, E, F = range(6)
LETTERS = tuple("ABCDEF")


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
