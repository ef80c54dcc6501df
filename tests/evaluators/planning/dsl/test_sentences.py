"""Sentences written by hand: their trees, their exact texts, what they demand."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from agenteval.evaluators.planning.case import Before, Constraint, Stated, TimeLimit
from agenteval.evaluators.planning.dsl.lexicon import built_in
from agenteval.evaluators.planning.dsl.parse import parse, parses
from agenteval.evaluators.planning.dsl.render import clock, render
from agenteval.evaluators.planning.dsl.tree import (
    Clause,
    Pair,
    Paragraph,
    Sentence,
    Time,
    constraints_of,
    demands,
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
    after,
    before,
    does,
    number,
    one,
    prec,
    succ,
)

SEMICOLON, AND, BUT, YET, WHILE, WHEREAS = range(6)


def said(text: str) -> set[Constraint]:
    """ "A<B 15>C D>9": A before B, C before 15:00, D after 9:00."""
    found: set[Constraint] = set()
    for rule in text.split():
        left, mark, right = rule.partition("<") if "<" in rule else rule.partition(">")
        if right.isdigit():
            side = "before" if mark == "<" else "after"
            found.add(TimeLimit(LETTERS.index(left), side, int(right)))
        else:
            found.add(Before(LETTERS.index(left), LETTERS.index(right)))
    return found


def pair(direction: str, main: object, other: object, word: str, *, fronted: bool = False) -> Pair:
    return Pair(direction, main, other, number(f"SC_{direction}", word), fronted)  # type: ignore[arg-type]


# text | tree | constraints
SENTENCES: list[tuple[str, Paragraph, str]] = [
    # independent clauses
    ("A precedes B.", one(Clause(act(A), prec("precedes"), act(B))), "A<B"),
    ("A is preceded by B.", one(Clause(act(A), succ("is preceded by"), act(B))), "B<A"),
    ("A is followed by B.", one(Clause(act(A), prec("is followed by"), act(B))), "A<B"),
    ("B occurs after A.", one(Clause(act(B), after("occurs", "after"), act(A))), "A<B"),
    (
        "A takes place in advance of B.",
        one(Clause(act(A), before("takes place", "in advance of"), act(B))),
        "A<B",
    ),
    (
        "Before B, A happens.",
        one(Clause(act(A), before("happens", "before"), act(B), fronted=True)),
        "A<B",
    ),
    (
        "In the wake of B, A and C are carried out.",
        one(Clause(act(A, C), after("are carried out", "in the wake of"), act(B), fronted=True)),
        "B<A B<C",
    ),
    # lists
    (
        "A and B precede C, D and E.",
        one(Clause(act(A, B), prec("precede"), act(C, D, E))),
        "A<C A<D A<E B<C B<D B<E",
    ),
    (
        "A, B, C and D follow E.",
        one(Clause(act(A, B, C, D), succ("follow"), act(E))),
        "E<A E<B E<C E<D",
    ),
    (
        "Before A, B and C occur.",
        one(Clause(act(B, C), before("occur", "before"), act(A), fronted=True)),
        "B<A C<A",
    ),
    (
        "Before A, B and C, D occurs.",
        one(Clause(act(D), before("occurs", "before"), act(A, B, C), fronted=True)),
        "D<A D<B D<C",
    ),
    (
        "After A and B, C and D are done.",
        one(Clause(act(C, D), after("are done", "after"), act(A, B), fronted=True)),
        "A<C A<D B<C B<D",
    ),
    # pairs
    (
        "A happens before B happens.",
        one(pair("prec", does(act(A), "happens"), does(act(B), "happens"), "before")),
        "A<B",
    ),
    (
        "After B happens, A happens.",
        one(pair("succ", does(act(A), "happens"), does(act(B), "happens"), "after", fronted=True)),
        "B<A",
    ),
    (
        "Once B is done, A and C take place.",
        one(
            pair(
                "succ", does(act(A, C), "take place"), does(act(B), "is done"), "once", fronted=True
            )
        ),
        "B<A B<C",
    ),
    (
        "A and B are executed prior to the time when C occurs.",
        one(
            pair(
                "prec",
                does(act(A, B), "are executed"),
                does(act(C), "occurs"),
                "prior to the time when",
            )
        ),
        "A<C B<C",
    ),
    # relative clauses
    (
        "A, which follows C, precedes B.",
        one(Clause(act(A, which=(succ("follows"), act(C))), prec("precedes"), act(B))),
        "C<A A<B",
    ),
    (
        "A precedes B, which is executed after C.",
        one(
            Clause(act(A), prec("precedes"), act(B, which=(after("is executed", "after"), act(C))))
        ),
        "A<B C<B",
    ),
    (
        "A, which follows C, which precedes D, happens before B.",
        one(
            Clause(
                act(A, which=(succ("follows"), act(C, which=(prec("precedes"), act(D))))),
                before("happens", "before"),
                act(B),
            )
        ),
        "A<B C<A C<D",
    ),
    (
        "A precedes B and C, which follow D and E, which come after F.",
        one(
            Clause(
                act(A),
                prec("precedes"),
                act(B, C, which=(succ("follow"), act(D, E, which=(succ("come after"), act(F))))),
            )
        ),
        "A<B A<C D<B D<C E<B E<C F<D F<E",
    ),
    (
        "Before B, which follows C, A, which follows D, occurs.",
        one(
            Clause(
                act(A, which=(succ("follows"), act(D))),
                before("occurs", "before"),
                act(B, which=(succ("follows"), act(C))),
                fronted=True,
            )
        ),
        "A<B C<B D<A",
    ),
    (
        "Before B, which follows C, D and E occur.",
        one(
            Clause(
                act(D, E),
                before("occur", "before"),
                act(B, which=(succ("follows"), act(C))),
                fronted=True,
            )
        ),
        "D<B E<B C<B",
    ),
    (
        "A, which comes before C, occurs after B, which follows D, occurs.",
        one(
            pair(
                "succ",
                does(act(A, which=(prec("comes before"), act(C))), "occurs"),
                does(act(B, which=(succ("follows"), act(D))), "occurs"),
                "after",
            )
        ),
        "A<C D<B B<A",
    ),
    # times
    ("A occurs before 15:00.", one(Clause(act(A), before("occurs", "before"), Time(15))), "A<15"),
    (
        "After 09:00, A and B are performed.",
        one(Clause(act(A, B), after("are performed", "after"), Time(9), fronted=True)),
        "A>9 B>9",
    ),
    (
        "A, which takes place later than 00:00, precedes B, which is done prior to 24:00.",
        one(
            Clause(
                act(A, which=(after("takes place", "later than"), Time(0))),
                prec("precedes"),
                act(B, which=(before("is done", "prior to"), Time(24))),
            )
        ),
        "A<B A>0 B<24",
    ),
    # conjunctions and several sentences
    (
        "A and B come before C; C precedes D, while E occurs after D.",
        one(
            Clause(act(A, B), prec("come before"), act(C)),
            Clause(act(C), prec("precedes"), act(D)),
            Clause(act(E), after("occurs", "after"), act(D)),
            joined=(SEMICOLON, WHILE),
        ),
        "A<C B<C C<D D<E",
    ),
    (
        "A precedes B and C, and before D, E occurs, but F follows A, which follows B.",
        one(
            Clause(act(A), prec("precedes"), act(B, C)),
            Clause(act(E), before("occurs", "before"), act(D), fronted=True),
            Clause(act(F), succ("follows"), act(A, which=(succ("follows"), act(B)))),
            joined=(AND, BUT),
        ),
        "A<B A<C E<D A<F B<A",
    ),
    (
        "A precedes B, which follows C, yet D precedes E. After F happens, A happens, whereas "
        "B is later than F.",
        Paragraph(
            (
                Sentence(
                    (
                        Clause(act(A), prec("precedes"), act(B, which=(succ("follows"), act(C)))),
                        Clause(act(D), prec("precedes"), act(E)),
                    ),
                    (YET,),
                ),
                Sentence(
                    (
                        pair(
                            "succ",
                            does(act(A), "happens"),
                            does(act(F), "happens"),
                            "after",
                            fronted=True,
                        ),
                        Clause(act(B), succ("is later than"), act(F)),
                    ),
                    (WHEREAS,),
                ),
            )
        ),
        "A<B C<B D<E F<A F<B",
    ),
]
each = pytest.mark.parametrize(("text", "tree", "rules"), SENTENCES, ids=[s[0] for s in SENTENCES])


def constraints(found: Iterable[Stated]) -> set[Constraint]:
    return {stated.constraint for stated in found}


def test_there_are_enough() -> None:
    assert len(SENTENCES) >= 25


@each
def test_text(text: str, tree: Paragraph, rules: str) -> None:
    assert render(tree, LETTERS, built_in()) == text


@each
def test_tree_is_the_only_reading(text: str, tree: Paragraph, rules: str) -> None:
    assert parses(text, LETTERS, built_in()) == [tree]


@each
def test_meaning(text: str, tree: Paragraph, rules: str) -> None:
    assert constraints(constraints_of(tree)) == said(rules)


@pytest.mark.parametrize(
    ("text", "rules"),
    [  # the examples of specification section 11, no. 17
        ("B occurs after A.", "A<B"),
        ("Before B, A happens.", "A<B"),
        ("After B happens, A happens.", "B<A"),
        ("A, which follows C, precedes B.", "C<A A<B"),
        ("A precedes B, which is executed after C.", "A<B C<B"),
        (
            "A and B come before C; C precedes D, while E occurs after D.",
            "A<C B<C C<D D<E",
        ),
    ],
)
def test_golden_sentences(text: str, rules: str) -> None:
    found = constraints_of(parse(text, LETTERS, built_in()))
    assert constraints(found) == said(rules)


def test_a_constraint_names_all_sub_sentences_that_state_it_and_stands_once() -> None:
    text = "A precedes B; C follows B. B, which is later than A, follows A. A precedes B and C."
    assert constraints_of(parse(text, LETTERS, built_in())) == (
        Stated(Before(A, B), (0, 2, 3)),
        Stated(Before(B, C), (1,)),
        Stated(Before(A, C), (3,)),
    )


def test_demands_of_one_part_stand_once_main_relation_first() -> None:
    part = Clause(act(A, which=(prec("precedes"), act(B))), prec("precedes"), act(C, B))
    assert demands(part) == [Before(A, C), Before(A, B)]


def test_the_case_of_the_first_letter_of_a_sentence_is_free() -> None:
    phrases = ("PDF export", "night shift", "éclair baking")
    tree = Paragraph(
        tuple(
            Sentence((Clause(act(a), prec("precedes"), act(b)),))
            for a, b in ((0, 1), (1, 2), (2, 0))
        )
    )
    text = (
        "PDF export precedes night shift. Night shift precedes éclair baking. "
        "Éclair baking precedes PDF export."
    )
    assert render(tree, phrases, built_in()) == text
    for variant in (text, text.replace("Night", "night").replace("Éclair", "éclair")):
        assert parse(variant, phrases, built_in()) == tree
    assert parse("before night shift, PDF export occurs.", phrases, built_in()) == one(
        Clause(act(0), before("occurs", "before"), act(1), fronted=True)
    )


def test_clock() -> None:
    assert [clock(h) for h in (0, 9, 24)] == ["00:00", "09:00", "24:00"]
    with pytest.raises(ValueError, match="25 is not an hour"):
        clock(25)
