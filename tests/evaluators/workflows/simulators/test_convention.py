"""The language of scripted users and agents."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.evaluators.workflows.simulators.convention import (
    NONE_OF_THESE,
    ask_for,
    asked_for,
    chosen,
    offer,
    offered,
    plain,
    read_value,
    says_goodbye,
    tell,
    told,
)

NAMES = st.from_regex(r"[a-z][a-z_0-9]{0,8}", fullmatch=True)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**6), 10**6) | st.text(max_size=12),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
    max_leaves=6,
)


def test_names_are_asked_for_in_backticks_or_brackets() -> None:
    assert asked_for("Give me `title` and [reader_id], `title` again.") == ("title", "reader_id")
    assert asked_for("Which title do you want (1)?") == ()


def test_options_are_lines_with_a_dash() -> None:
    text = "Which?\n- Ask for a book\n- Leave \n -not this"
    assert offered(text) == ("Ask for a book", "Leave")


@settings(max_examples=40, deadline=None)
@given(st.lists(NAMES, min_size=1, max_size=4, unique=True))
def test_what_is_asked_is_understood(names: list[str]) -> None:
    assert asked_for(ask_for(names)) == tuple(names)


@settings(max_examples=40, deadline=None)
@given(st.lists(st.text(max_size=20), min_size=1, max_size=4))
def test_offered_labels_are_understood_and_ask_for_nothing(labels: list[str]) -> None:
    shown = [plain(label) for label in labels if plain(label)]
    text = offer("Which?", shown)
    assert offered(text) == tuple(shown)
    assert asked_for(text) == ()


@settings(max_examples=40, deadline=None)
@given(st.dictionaries(NAMES, JSON, max_size=4))
def test_told_facts_come_back(facts: dict[str, object]) -> None:
    written, rest = told(tell(facts), tuple(facts))  # type: ignore[arg-type]
    assert rest == ()
    for name, value in facts.items():
        kind = "string" if isinstance(value, str) else "object"
        assert read_value(written[name], {"type": kind}) == value


def test_other_lines_are_told_apart() -> None:
    text = "title: Dune\nIs the reading room heated?\ncolour: red"
    assert told(text, ("title",)) == (
        {"title": "Dune"},
        ("Is the reading room heated?", "colour: red"),
    )


def test_text_that_looks_like_a_number_stays_text_for_a_text_parameter() -> None:
    assert read_value("4711", {"type": "string"}) == "4711"
    assert read_value("4711", {"type": "integer"}) == 4711
    assert read_value("many", {"type": "integer"}) == "many"


def test_the_longest_option_that_fits_is_chosen_and_a_whole_line_first() -> None:
    labels = ["Another book", "Another book will do"]
    assert chosen("Well, another book will do then", labels) == "Another book will do"
    assert chosen("Another book\nAnother book will do for my friend", labels) == "Another book"
    assert chosen(NONE_OF_THESE, labels) is None


def test_goodbye_is_none_where_something_is_asked() -> None:
    assert says_goodbye("Enjoy the book. Goodbye!")
    assert says_goodbye("Good-bye.")
    assert not says_goodbye("Before I say goodbye: `title`?")
    assert not says_goodbye("The byelaws forbid it.")
