"""The language of requests: texts and what they demand, one reading of each, errors, words."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.planning.case import Before, Constraint, StatedConstraint, TimeLimit
from agenteval.planning.grammar import (
    Actions,
    Link,
    Paragraph,
    Relative,
    RequestSentence,
    SubSentence,
    Time,
    constraints_of,
    fill,
    forms_in,
    from_json,
    refill,
    render,
    strip,
    to_json,
    unfronted,
)
from agenteval.planning.suite import paragraph_of
from agenteval.planning.synthesis import Generator, Shape
from agenteval.planning.words import words
from tests.support.english import parse, parses, words_in
from tests.thorough import often

LETTERS = tuple("ABCDEF")
# prefixes and suffixes of one another, and of the language's own words


def read(text: str) -> Paragraph:
    return parse(text, LETTERS)


def stated(text: str) -> set[Constraint]:
    """ "A<B 15>C D>9": A before B, C before 15:00, D after 9:00."""
    rules: set[Constraint] = set()
    for rule in text.split():
        left, mark, right = rule.partition("<") if "<" in rule else rule.partition(">")
        if right.isdigit():
            side = "before" if mark == "<" else "after"
            rules.add(TimeLimit(LETTERS.index(left), side, int(right)))
        else:
            rules.add(Before(LETTERS.index(left), LETTERS.index(right)))
    return rules


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("A precedes B.", "A<B"),
        ("A is preceded by B.", "B<A"),
        ("A is followed by B.", "A<B"),
        ("B occurs after A.", "A<B"),
        ("A takes place in advance of B.", "A<B"),
        ("Before B, A happens.", "A<B"),
        ("In the wake of B, A and C are carried out.", "B<A B<C"),
        ("A and B precede C, D and E.", "A<C A<D A<E B<C B<D B<E"),
        ("A, B, C and D follow E.", "E<A E<B E<C E<D"),
        ("Before A, B and C occur.", "B<A C<A"),
        ("Before A, B and C, D occurs.", "D<A D<B D<C"),
        ("After A and B, C and D are done.", "A<C A<D B<C B<D"),
        ("A happens before B happens.", "A<B"),
        ("After B happens, A happens.", "B<A"),
        ("Once B is done, A and C take place.", "B<A B<C"),
        ("A and B are executed prior to the time when C occurs.", "A<C B<C"),
        ("A, which follows C, precedes B.", "C<A A<B"),
        ("A precedes B, which is executed after C.", "A<B C<B"),
        ("A, which follows C, which precedes D, happens before B.", "A<B C<A C<D"),
        (
            "A precedes B and C, which follow D and E, which come after F.",
            "A<B A<C D<B D<C E<B E<C F<D F<E",
        ),
        ("Before B, which follows C, A, which follows D, occurs.", "A<B C<B D<A"),
        ("Before B, which follows C, D and E occur.", "D<B E<B C<B"),
        ("A, which comes before C, occurs after B, which follows D, occurs.", "A<C D<B B<A"),
        ("A occurs before 15:00.", "A<15"),
        ("After 09:00, A and B are performed.", "A>9 B>9"),
        (
            "A, which takes place later than 00:00, precedes B, which is done prior to 24:00.",
            "A<B A>0 B<24",
        ),
        ("A and B come before C; C precedes D, while E occurs after D.", "A<C B<C C<D D<E"),
        (
            "A precedes B and C, and before D, E occurs, but F follows A, which follows B.",
            "A<B A<C E<D A<F B<A",
        ),
        (
            "A precedes B, which follows C, yet D precedes E. "
            "After F happens, A happens, whereas B is later than F.",
            "A<B C<B D<E F<A F<B",
        ),
    ],
)
def test_texts_come_back_and_demand_what_they_say(text: str, rules: str) -> None:
    (tree,) = parses(text, LETTERS)
    assert render(tree, LETTERS) == text
    assert {entry.constraint for entry in constraints_of(tree)} == stated(rules)


def test_a_constraint_names_all_parts_that_state_it_and_stands_once() -> None:
    text = "A precedes B; C follows B. B, which is later than A, follows A. A precedes B and C."
    assert constraints_of(read(text)) == (
        StatedConstraint(Before(0, 1), (0, 2, 3)),
        StatedConstraint(Before(1, 2), (1,)),
        StatedConstraint(Before(0, 2), (3,)),
    )


@settings(max_examples=often(80, 300), deadline=None)
@given(number=st.integers(0, 10**6), n=st.integers(2, 7), extended=st.booleans())
def test_generated_texts_have_one_reading_and_other_words_mean_the_same(
    number: int, n: int, extended: bool
) -> None:
    case = Generator(Shape((n, n), extended=extended), seed=1).case(number)
    tree = paragraph_of(case)
    assert parses(case.text, [a.phrase for a in case.actions]) == [tree]
    assert from_json(json.loads(json.dumps(to_json(tree)))) == tree
    assert not any(wrong in case.text for wrong in ("  ", ",,", ", ."))
    again = fill(strip(tree), np.random.default_rng(number))
    assert strip(again) == strip(tree)
    assert constraints_of(again) == constraints_of(tree)
    other = refill(tree, np.random.default_rng(number))
    assert strip(other) == strip(tree)
    assert all(a != b for a, b in zip(words_in(other), words_in(tree), strict=True))


def test_an_ambiguous_clause_is_not_fronted() -> None:
    """Either E and F happen before A, B and C; or B and C happen before A."""
    text = "Before A, B and C, which follow D, E and F, which precede A, happen."
    (sentence,) = read(text).sentences
    (part,) = sentence.parts
    assert part.subject.ids == (1, 2)
    assert {e.constraint for e in constraints_of(read(text))} >= stated("B<A C<A")
    follow, precede = Link("verb", "succ", (0,)), Link("verb", "prec", (0,))
    outer = Actions((0, 1, 2), Relative(follow, Actions((3,))))
    main = Actions((4, 5), Relative(precede, Actions((0,))))
    other = SubSentence(main, part.link, outer, fronted=True)
    assert render(Paragraph((RequestSentence((other,)),)), LETTERS) == text
    assert unfronted(other) == SubSentence(main, part.link, outer)
    assert unfronted(part) is part


@pytest.mark.parametrize(
    "value", [{}, {"sentences": 3}, {"sentences": [{"parts": [{"subject": {"ids": [-1]}}]}]}]
)
def test_what_is_not_a_tree_is_refused(value: object) -> None:
    with pytest.raises(ValueError, match="sentences"):
        from_json(value)


def test_trees_that_have_no_text() -> None:
    a, b = Actions((0,)), Actions((1,))
    clock_word = next(i for i, w in enumerate(words()["P_prec"]) if not w.time)
    for part, message in (
        (SubSentence(a, Link("verb", "prec"), b), "a VP_prec has no word yet"),
        (SubSentence(a, Link("verb", "prec", (0,)), b, fronted=True), "only a preposition"),
        (
            SubSentence(a, Link("verb", "prec", (0,)), Time(9)),
            "a time can only be the object of a preposition",
        ),
        (
            SubSentence(a, Link("preposition", "prec", (0, clock_word)), Time(9)),
            "not used with a time",
        ),
        (SubSentence(Actions((0, 0)), Link("verb", "prec", (0,)), b), "different actions"),
    ):
        with pytest.raises(ValueError, match=message):
            render(Paragraph((RequestSentence((part,)),)), LETTERS)
    with pytest.raises(ValueError, match="k - 1 conjunctions"):
        RequestSentence((), (1,))


@pytest.mark.parametrize(
    ("text", "forms"),
    [
        ("A precedes B. B follows A.", {"verb prec", "verb succ"}),
        ("A occurs before B.", {"preposition prec"}),
        ("After B, A occurs.", {"fronted preposition succ"}),
        ("A occurs before B occurs.", {"pair prec"}),
        ("Once B occurs, A and C occur.", {"fronted pair succ", "plural"}),
        ("A precedes B, which follows C.", {"verb prec", "relative succ"}),
        ("Before 15:00, A occurs.", {"fronted preposition prec", "time prec"}),
        ("A precedes B, which occurs after 15:00.", {"verb prec", "relative succ", "time succ"}),
        ("A precedes B; D precedes E.", {"verb prec", "conjunction"}),
    ],
)
def test_names_of_forms(text: str, forms: set[str]) -> None:
    assert forms_in(read(text)) == forms_in(strip(read(text))) == forms
