"""Edit scripts turn the original into the copy, in the units of a browser."""

from __future__ import annotations

import time

from hypothesis import given
from hypothesis import strategies as st

from agenteval.report.diff import Edit, edits

text = st.text(st.sampled_from('ab. \n😀!é\t"12'), max_size=60) | st.text(max_size=40)


def applied(original: str, script: list[Edit]) -> str:
    """By the definition of an edit, on UTF-16 units."""
    left = original.encode("utf-16-le", "surrogatepass")
    out, at = b"", 0
    for edit in script:
        if isinstance(edit, str):
            out += edit.encode("utf-16-le", "surrogatepass")
        elif edit < 0:
            at -= 2 * edit
        else:
            out += left[at : at + 2 * edit]
            at += 2 * edit
    assert at == len(left)
    return out.decode("utf-16-le", "surrogatepass")


@given(text, text)
def test_the_script_makes_the_copy(original: str, copy: str) -> None:
    assert applied(original, edits(original, copy)) == copy


@given(text)
def test_equal_texts_have_one_step_at_most(same: str) -> None:
    assert len(edits(same, same)) <= 1


def test_a_dropped_sentence_is_one_step() -> None:
    assert edits("One is 1. Two is 2. Three is 3.", "One is 1. Three is 3.") == [10, -10, 11]


def test_a_changed_number_is_a_word() -> None:
    assert edits("The sum is 12 now.", "The sum is 21 now.") == [11, -3, "21 ", 4]


def test_long_texts_take_bounded_time() -> None:
    """Texts at the limit of what a page embeds, without a sentence end, nothing in common."""
    start = time.process_time()
    script = edits("a b " * 15_000, "c d " * 15_000)
    assert script == [-60_000, "c d " * 15_000]
    assert applied("x" * 60_000, edits("x" * 60_000, "y. " * 20_000)) == "y. " * 20_000
    assert time.process_time() - start < 5
