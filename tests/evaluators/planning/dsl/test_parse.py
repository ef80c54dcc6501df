"""What parse says of texts that are not of the language, and how many readings shapes have."""

from __future__ import annotations

from itertools import count, product

import pytest

from agenteval.errors import InputError
from agenteval.evaluators.planning.dsl.lexicon import Lexicon, Phrase, built_in
from agenteval.evaluators.planning.dsl.parse import parse, parses
from agenteval.evaluators.planning.dsl.render import render, tangled
from agenteval.evaluators.planning.dsl.tree import (
    Actions,
    Clause,
    Dependent,
    Pair,
    Preposition,
    Relative,
    SubSentence,
    Verb,
)
from tests.evaluators.planning.dsl.trees import LETTERS, one

LEXICON = built_in()


@pytest.mark.parametrize(
    ("text", "position", "expected", "found"),
    [
        ("", 1, "an activity", "the end"),
        ("Hello there.", 1, "an activity or a preposition", "'Hello there.'"),
        ("A precede B.", 3, "a verb phrase in the singular", "'precede B.'"),
        ("A and B precedes C.", 9, "a verb phrase in the plural", "'precedes C.'"),
        ("A precedes B, which follow C.", 21, "a verb phrase in the singular", "'follow C.'"),
        ("A precedes X.", 12, "an activity", "'X.'"),
        ("A precedes B", 13, "a period", "the end"),
        ("A precedes B. ", 15, "an activity", "the end"),
        ("A precedes B.  C precedes D.", 15, "an activity", "' C precedes D.'"),
        ("A precedes B.C precedes D.", 14, "a space or the end", "'C precedes D.'"),
        ("A precedes B C precedes D.", 13, "a comma.*a period", "' C precedes D.'"),
        ("A and A precede B.", 7, "another activity", "'A precede B.'"),
        ("A, B, and C precede D.", 7, "another activity", "'and C precede D.'"),
        ("A, which follows C precedes B.", 19, "a comma", "' precedes B.'"),
        ("A precedes 15:00.", 12, "an activity", "'15:00.'"),
        ("A occurs before 9:00.", 17, "a time or an activity", "'9:00.'"),
        ("A occurs before 25:00.", 17, "a time or an activity", "'25:00.'"),
        ("A occurs before 15:30.", 17, "a time or an activity", "'15:30.'"),
        ("A occurs in advance of 15:00.", 24, "an activity", "'15:00.'"),
        ("A occurs.", 9, "a preposition or a conjunction of time", "'.'"),
        ("A occurs until B.", 10, "a preposition or a conjunction of time", "'until B.'"),
        ("A precedes B, c precedes D.", 15, "another activity", "'c precedes D.'"),
        ("A precedes B.\nC precedes D.", 14, "a space or the end", r"'\\nC precedes D.'"),
        ("A precedes B. A precedes X.", 26, "an activity", "'X.'"),
    ],
)
def test_errors_name_the_place_and_what_was_expected(
    text: str, position: int, expected: str, found: str
) -> None:
    with pytest.raises(InputError, match=rf"expected .*{expected}.*, found {found}$") as error:
        parse(text, LETTERS, LEXICON)
    assert str(error.value).startswith(f"request, character {position}: ")


def test_activities_must_be_fit() -> None:
    with pytest.raises(InputError, match="activity 'A' is there twice"):
        parse("A precedes A.", ["A", "A"], LEXICON)


def test_a_text_nested_beyond_measure_is_refused() -> None:
    text = "A precedes B" + ", which follows C" * 5000 + "."
    with pytest.raises(InputError, match="sentence 1 is nested too deeply"):
        parse(text, LETTERS, LEXICON)


def _noun(sizes: tuple[int, ...], numbers: count[int]) -> Actions:
    """A list of sizes[0] actions with a relative clause on a list of sizes[1], and so on."""
    ids = tuple(next(numbers) for _ in range(sizes[0]))
    if len(sizes) == 1:
        return Actions(ids)
    return Actions(ids, Relative(Verb("prec", 0), _noun(sizes[1:], numbers)))


def test_commas_of_lists_and_clauses_are_never_confused() -> None:
    """All forms, lists of 1 to 3, relatives up to 2 deep: every text has exactly one reading."""
    names = [f"x{i}" for i in range(18)]
    shapes = [sizes for depth in (1, 2, 3) for sizes in product((1, 2, 3), repeat=depth)]
    link = Preposition("prec", 0, 0)
    read = refused = 0
    for first, second in product(shapes, shapes):
        numbers = count()
        a, b = _noun(first, numbers), _noun(second, numbers)
        main, other = Dependent(a, 0), Dependent(b, 0)
        forms: list[SubSentence] = [
            Clause(a, link, b),
            Clause(a, link, b, fronted=True),
            Clause(a, Verb("prec", 0), b),
            Pair("prec", main, other, 0),
            Pair("prec", main, other, 0, fronted=True),
        ]
        for part in forms:
            if tangled(part):
                refused += 1
                continue
            tree = one(part)
            text = render(tree, names, LEXICON)
            assert parses(text, names, LEXICON) == [tree], text
            read += 1
    assert (read, refused) == (5 * 39**2 - 24 * 36, 24 * 36)


class Unchecked(Lexicon):
    """Lists that the rules would refuse."""

    def __post_init__(self) -> None:
        pass


def test_a_text_with_two_readings_is_refused_not_guessed() -> None:
    extra = Phrase("happens before", "happen before")
    words = dict(LEXICON.words)
    words["VP_prec"] += (extra,)
    lists = Unchecked(words)
    with pytest.raises(InputError, match="'happens' of VP_none and the preposition 'before'"):
        Lexicon(words)
    assert len(parses("A happens before B.", LETTERS, lists)) == 2
    with pytest.raises(InputError, match="can be read in 2 ways"):
        parse("A happens before B.", LETTERS, lists)
