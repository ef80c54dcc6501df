"""Paragraphs of the language, drawn by hypothesis."""

from __future__ import annotations

from functools import cache

from hypothesis import strategies as st

from agenteval.planning.grammar import (
    DIRECTIONS,
    Actions,
    Link,
    Object,
    Paragraph,
    Relative,
    RequestSentence,
    SubSentence,
    Time,
    unfronted,
)
from agenteval.planning.words import Kind, Lexicon

LETTERS = tuple("ABCDEF")
LINKS = tuple(Link(form, d) for form in ("verb", "preposition") for d in DIRECTIONS)
PAIRS = tuple(Link("pair", d) for d in DIRECTIONS)


def paragraphs(lexicon: Lexicon, actions: int, *, deep: int = 3) -> st.SearchStrategy[Paragraph]:
    """Paragraphs with words: lists, relatives up to `deep` in each other, times, conjunctions."""
    chosen = st.lists(st.integers(0, actions - 1), min_size=1, max_size=4, unique=True).map(tuple)
    hours, third, fifth = st.integers(0, 24), st.integers(0, 2), st.integers(0, 4)

    @cache
    def word(kind: Kind, time: bool = False) -> st.SearchStrategy[int]:
        return st.sampled_from(lexicon.allowed(kind, time=time))

    def worded(draw: st.DrawFn, link: Link, *, time: bool = False) -> Link:
        fits = [draw(word(kind, time and kind.startswith("P_"))) for kind in link.slots]
        return Link(link.form, link.direction, tuple(fits))

    @cache
    @st.composite
    def nouns(draw: st.DrawFn, depth: int) -> Actions:
        ids = draw(chosen)
        if depth == 0 or draw(third):
            return Actions(ids)
        return Actions(ids, Relative(*draw(relations(depth - 1))))

    @cache
    @st.composite
    def relations(draw: st.DrawFn, depth: int) -> tuple[Link, Object]:
        if draw(fifth) == 0:
            return worded(draw, draw(st.sampled_from(LINKS[2:])), time=True), Time(draw(hours))
        return worded(draw, draw(st.sampled_from(LINKS))), draw(nouns(depth))

    @st.composite
    def parts(draw: st.DrawFn) -> SubSentence:
        link, object_ = draw(relations(deep))
        if draw(third) == 0:
            link, object_ = worded(draw, draw(st.sampled_from(PAIRS))), draw(nouns(deep))
        fronted = link.form != "verb" and draw(st.booleans())
        return unfronted(SubSentence(draw(nouns(deep)), link, object_, fronted))

    @st.composite
    def sentences(draw: st.DrawFn) -> RequestSentence:
        some = draw(st.lists(parts(), min_size=1, max_size=3))
        joint = st.integers(0, len(lexicon.conjunctions) - 1)
        return RequestSentence(tuple(some), tuple(draw(joint) for _ in some[1:]))

    return st.lists(sentences(), min_size=1, max_size=3).map(lambda s: Paragraph(tuple(s)))
