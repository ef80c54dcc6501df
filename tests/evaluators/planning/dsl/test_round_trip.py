"""parse is the exact inverse of render, and no text has two readings."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.evaluators.planning.dsl.fill import CONJ, fill, strip, words_in
from agenteval.evaluators.planning.dsl.lexicon import KINDS, Kind, built_in
from agenteval.evaluators.planning.dsl.parse import parse, parses
from agenteval.evaluators.planning.dsl.render import render, tangled
from agenteval.evaluators.planning.dsl.tree import (
    Clause,
    Dependent,
    Pair,
    Paragraph,
    Preposition,
    Sentence,
    SubSentence,
    Time,
    Verb,
    constraints_of,
)
from tests.evaluators.planning.dsl.trees import (
    LETTERS,
    A,
    B,
    C,
    D,
    E,
    F,
    act,
    does,
    nouns,
    number,
    one,
    paragraphs,
    prec,
    succ,
    trees,
)
from tests.thorough import often

LEXICON = built_in()
# prefixes and suffixes of one another, and of the language's own words
TANGLED = (
    "desk",
    "front desk",
    "front desk call",
    "desk call",
    "call",
    "call time",
    "time",
    "is front",
    "time is",
    "the time",
    "some time",
    "place",
    "performed call",
    "A",
)


def test_every_tree_to_depth_two_has_one_reading_itself() -> None:
    rng = np.random.default_rng(5)
    count = 0
    for part in trees(2):
        tree = fill(one(part), LEXICON, rng)
        text = render(tree, LETTERS, LEXICON)
        assert parses(text, LETTERS, LEXICON) == [tree], text
        assert constraints_of(parse(text, LETTERS, LEXICON)) == constraints_of(tree)
        count += 1
    assert count == 2730


def test_no_two_trees_to_depth_two_have_one_text() -> None:
    """With the first word of every kind: "before" is preposition and conjunction."""
    texts = {render(_first_words(part), LETTERS, LEXICON) for part in trees(2)}
    assert len(texts) == 2730


def _first_words(part: SubSentence) -> Paragraph:
    """The part with word 0 in every slot, set by the generic replacement of dataclass fields."""

    def filled(node: object) -> object:
        if isinstance(node, tuple):
            return tuple(filled(item) for item in node)
        if not is_dataclass(node) or isinstance(node, type):
            return node
        return type(node)(
            *(
                0
                if f.name in ("verb", "preposition", "conjunction") and f.type == "int"
                else filled(getattr(node, f.name))
                for f in fields(node)
            )
        )

    tree = filled(one(part))
    assert isinstance(tree, Paragraph)
    return tree


def test_pairs_with_relatives_on_both_sides() -> None:
    rng = np.random.default_rng(6)
    for main in nouns(1):
        for other in nouns(2):
            for direction in ("prec", "succ"):
                for fronted in (False, True):
                    pair = Pair(direction, Dependent(main), Dependent(other), fronted=fronted)
                    tree = fill(one(pair), LEXICON, rng)
                    assert parses(render(tree, LETTERS, LEXICON), LETTERS, LEXICON) == [tree]


def _uses(kind: Kind, word: int) -> list[SubSentence]:
    """Every place where a word of this kind can stand, with one subject and with two."""
    group, direction = kind.split("_")
    found: list[SubSentence] = []
    for subject in (act(A), act(A, B)):
        if group == "SC":
            found += [
                Pair(direction, Dependent(subject, 0), Dependent(act(C), 0), word, fronted)
                for fronted in (False, True)
            ]
            continue
        if group == "P":
            link = Preposition(direction, 0, word)
        elif direction == "none":
            link = Preposition("prec", word, 0)
            found.append(Pair("prec", Dependent(subject, word), Dependent(subject, word), 0))
        else:
            link = Verb(direction, word)
        found.append(Clause(subject, link, act(C)))
        found.append(Clause(act(*subject.ids, which=(link, act(C))), link, act(C)))
        if isinstance(link, Preposition):
            found.append(Clause(subject, link, act(C), fronted=True))
            if LEXICON.words[f"P_{link.direction}"][link.preposition].time:
                found += [Clause(subject, link, Time(15), fronted) for fronted in (False, True)]
    return found


@pytest.mark.parametrize(
    ("kind", "word"), [(kind, word) for kind in KINDS for word in range(len(LEXICON.words[kind]))]
)
def test_every_phrase_in_singular_and_plural(kind: Kind, word: int) -> None:
    phrase = LEXICON.words[kind][word]
    seen: set[str] = set()
    for part in _uses(kind, word):
        tree = one(part)
        text = render(tree, LETTERS, LEXICON)
        assert parses(text, LETTERS, LEXICON) == [tree], text
        seen |= {form for form in (phrase.singular, phrase.plural) if form in text.lower()}
    assert seen == {phrase.singular, phrase.plural}


@settings(max_examples=often(80, 300), deadline=None)
@given(paragraphs(LEXICON, 6))
def test_paragraphs_come_back_whole(tree: Paragraph) -> None:
    text = render(tree, LETTERS, LEXICON)
    assert parses(text, LETTERS, LEXICON) == [tree]
    assert text.endswith(".")
    assert "  " not in text
    assert ",," not in text
    assert ", ." not in text


@settings(max_examples=often(60, 150), deadline=None)
@given(paragraphs(LEXICON, len(TANGLED), deep=2))
def test_activities_that_begin_and_end_one_another(tree: Paragraph) -> None:
    assert parses(render(tree, TANGLED, LEXICON), TANGLED, LEXICON) == [tree]


@settings(max_examples=often(60, 100), deadline=None)
@given(paragraphs(LEXICON, 6), st.integers(0, 2**32))
def test_other_words_do_not_change_the_meaning(tree: Paragraph, seed: int) -> None:
    again = fill(strip(tree), LEXICON, np.random.default_rng(seed))
    assert strip(again) == strip(tree)
    assert constraints_of(again) == constraints_of(tree)
    assert parse(render(again, LETTERS, LEXICON), LETTERS, LEXICON) == again


def test_every_conjunction() -> None:
    clause = Clause(act(A), Verb("prec", 0), act(B))
    for word in range(len(LEXICON.conjunctions)):
        tree = Paragraph((Sentence((clause, clause, clause), (word, 0)),))
        assert (CONJ, word) in words_in(tree)
        assert parses(render(tree, LETTERS, LEXICON), LETTERS, LEXICON) == [tree]


def test_a_tangled_clause_has_no_text_and_the_text_has_the_other_reading() -> None:
    """ "Before A, B and C, which follow D, E and F, which precede A, happen."

    Either E and F happen before A, B and C; or B and C happen before A. The first is refused.
    """
    outer = act(A, B, C, which=(succ("follow"), act(D)))
    main = act(E, F, which=(prec("precede"), act(A)))
    link = Preposition("prec", number("VP_none", "happen"), number("P_prec", "before"))
    clause = Clause(main, link, outer, fronted=True)
    assert tangled(clause)
    with pytest.raises(ValueError, match="tangled"):
        render(one(clause), LETTERS, LEXICON)
    inner = act(D, E, F, which=(prec("precede"), act(A)))
    other = Clause(act(B, C, which=(succ("follow"), inner)), link, act(A), fronted=True)
    assert not tangled(other)
    text = "Before A, B and C, which follow D, E and F, which precede A, happen."
    assert render(one(other), LETTERS, LEXICON) == text
    assert parses(text, LETTERS, LEXICON) == [one(other)]
    for free in (
        Clause(main, link, outer),  # in order
        Clause(act(E, F), link, outer, fronted=True),
        Clause(act(E, which=(prec("precede"), act(A))), link, outer, fronted=True),
    ):
        assert not tangled(free)
        assert parses(render(one(free), LETTERS, LEXICON), LETTERS, LEXICON) == [one(free)]


def test_trees_that_have_no_text() -> None:
    plain, verb = act(A), Verb("prec", 0)
    for part, message in (
        (Clause(plain, verb, act(B), fronted=True), "only a preposition"),
        (Clause(plain, verb, Time(9)), "object of a preposition"),
        (Clause(plain, Preposition("prec", 0, 4), Time(9)), "'in advance of' is not used"),
        (Clause(plain, Verb("prec"), act(B)), "VP_prec has no word"),
        (Clause(plain, Preposition("succ", 0), act(B)), "P_succ has no word"),
        (Pair("prec", does(plain, "happens"), Dependent(act(B)), 0), "VP_none has no word"),
        (Pair("prec", Dependent(plain, 0), Dependent(act(B), 0)), "SC_prec has no word"),
        (Clause(act(A, A), verb, act(B)), "different actions"),
        (Clause(act(), verb, act(B)), "different actions"),
        (Clause(plain, Preposition("prec", 0, 0), Time(25)), "25 is not an hour"),
    ):
        with pytest.raises(ValueError, match=message):
            render(one(part), LETTERS, LEXICON)
    clause = Clause(plain, verb, act(B))
    with pytest.raises(ValueError, match="conjunction has no word"):
        render(Paragraph((Sentence((clause, clause), (-1,)),)), LETTERS, LEXICON)
    with pytest.raises(IndexError):
        render(one(Clause(plain, verb, act(9))), LETTERS, LEXICON)
