"""Words in and out of skeletons, other words, other actions, names of the clause forms."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.evaluators.planning.dsl.fill import (
    fill,
    forms_in,
    refill,
    strip,
    words_in,
)
from agenteval.evaluators.planning.dsl.lexicon import Lexicon, Phrase, built_in
from agenteval.evaluators.planning.dsl.parse import parse
from agenteval.evaluators.planning.dsl.render import render
from agenteval.evaluators.planning.dsl.tree import (
    UNSET,
    Clause,
    Dependent,
    Pair,
    Paragraph,
    Preposition,
    Sentence,
    Time,
    Verb,
    constraints_of,
)
from tests.evaluators.planning.dsl.trees import LETTERS, act, one, paragraphs
from tests.thorough import often

LEXICON = built_in()
seeds = st.integers(0, 2**32)


def read(text: str) -> Paragraph:
    return parse(text, LETTERS, LEXICON)


@settings(max_examples=often(60, 100), deadline=None)
@given(paragraphs(LEXICON, 6), seeds)
def test_words_go_out_and_in(tree: Paragraph, seed: int) -> None:
    skeleton = strip(tree)
    assert {word for _, word in words_in(skeleton)} == {UNSET}
    assert [slot for slot, _ in words_in(skeleton)] == [slot for slot, _ in words_in(tree)]
    filled = fill(skeleton, LEXICON, np.random.default_rng(seed))
    assert filled == fill(skeleton, LEXICON, np.random.default_rng(seed))
    assert all(word != UNSET for _, word in words_in(filled))
    assert strip(filled) == skeleton
    assert fill(tree, LEXICON, np.random.default_rng(seed)) == tree  # words that are there stay
    render(filled, LETTERS, LEXICON)  # times have prepositions that fit them


@settings(max_examples=often(60, 100), deadline=None)
@given(paragraphs(LEXICON, 6), seeds)
def test_refill_changes_every_word_and_nothing_else(tree: Paragraph, seed: int) -> None:
    again = refill(tree, LEXICON, np.random.default_rng(seed))
    assert strip(again) == strip(tree)
    assert all(old != new for old, new in zip(words_in(tree), words_in(again), strict=True))
    assert constraints_of(again) == constraints_of(tree)
    assert render(again, LETTERS, LEXICON) != render(tree, LETTERS, LEXICON)


def test_a_word_without_an_alternative_stays() -> None:
    words = dict(LEXICON.words)
    words["P_prec"] = (Phrase("before", "before", True), Phrase("ahead of", "ahead of"))
    tree = one(Clause(act(0), Preposition("prec", 3, 0), Time(9)))
    again = refill(tree, Lexicon(words), np.random.default_rng(1))
    ((_, verb), (_, preposition)) = words_in(again)
    assert verb != 3
    assert preposition == 0


def test_words_are_drawn_evenly() -> None:
    """7 phrases in 7,000 draws: each count within 5 standard deviations of 1,000."""
    skeleton = Paragraph(tuple(Sentence((Clause(act(0), Verb("prec"), act(1)),)) for _ in range(7)))
    rng = np.random.default_rng(2)
    counts = Counter(
        word for _ in range(1000) for _, word in words_in(fill(skeleton, LEXICON, rng))
    )
    assert sorted(counts) == list(range(7))
    assert all(abs(count - 1000) < 5 * (7000 * 6 / 49) ** 0.5 for count in counts.values())


def test_words_are_listed_in_the_order_of_the_tree() -> None:
    link = Preposition("succ", 1, 2)
    tree = one(
        Clause(act(0, which=(Verb("prec", 3), act(1))), link, act(2), fronted=True),
        Pair("prec", Dependent(act(3), 4), Dependent(act(4), 5), 6),
        joined=(2,),
    )
    assert words_in(tree) == [
        ("VP_prec", 3),
        ("VP_none", 1),
        ("P_succ", 2),
        ("VP_none", 4),
        ("SC_prec", 6),
        ("VP_none", 5),
        ("CONJ", 2),
    ]


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("A precedes B.", {"verb prec"}),
        ("A follows B.", {"verb succ"}),
        ("A occurs before B.", {"preposition prec"}),
        ("After B, A occurs.", {"fronted preposition succ"}),
        ("A occurs before B occurs.", {"pair prec"}),
        ("Once B occurs, A and C occur.", {"fronted pair succ", "plural"}),
        ("A precedes B, which follows C.", {"verb prec", "relative succ"}),
        (
            "A, which follows C, which occurs before D and E, precedes B.",
            {"verb prec", "relative succ", "relative prec", "plural"},
        ),
        ("Before 15:00, A occurs.", {"fronted preposition prec", "time prec"}),
        (
            "A precedes B, which occurs after 15:00.",
            {"verb prec", "relative succ", "time succ"},
        ),
        (
            "A happens once B, which follows C, happens; D precedes E.",
            {"pair succ", "relative succ", "verb prec", "conjunction"},
        ),
        ("A precedes B. B is later than A.", {"verb prec", "verb succ"}),
    ],
)
def test_names_of_forms(text: str, forms: set[str]) -> None:
    tree = read(text)
    assert forms_in(tree) == forms
    assert forms_in(strip(tree)) == forms
