"""What was taken out and put in turns the original into the copy."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from agenteval.reporting.text import Edit, edits

text = st.text(st.sampled_from('ab. \n😀!é\t"12'), max_size=60) | st.text(max_size=40)


def sides(script: list[Edit]) -> tuple[str, str]:
    """The original, which is what was not put in, and the copy, what was not taken out."""
    before = "".join(t for kind, t in script if kind != "ins")
    return before, "".join(t for kind, t in script if kind != "del")


@given(text, text)
def test_both_sides_are_the_texts(original: str, copy: str) -> None:
    assert sides(edits(original, copy)) == (original, copy)


@given(text)
def test_equal_texts_have_one_step_at_most(same: str) -> None:
    assert len(edits(same, same)) <= 1


def test_a_dropped_sentence_is_one_step() -> None:
    assert edits("One is 1. Two is 2. Three is 3.", "One is 1. Three is 3.") == [
        ("", "One is 1. "),
        ("del", "Two is 2. "),
        ("", "Three is 3."),
    ]


def test_a_changed_number_is_a_word() -> None:
    assert edits("The sum is 12 now.", "The sum is 21 now.") == [
        ("", "The sum is "),
        ("del", "12 "),
        ("ins", "21 "),
        ("", "now."),
    ]


def test_long_texts_take_bounded_time() -> None:
    """Texts at the limit of what a page embeds, without a sentence end, nothing in common."""
    start = time.process_time()
    original, copy = "a b " * 15_000, "c d " * 15_000
    assert edits(original, copy) == [("del", original), ("ins", copy)]
    assert sides(edits("x" * 60_000, "y. " * 20_000)) == ("x" * 60_000, "y. " * 20_000)
    assert time.process_time() - start < 5
