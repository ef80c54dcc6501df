"""The operators of the bench change what they say, by the seed, and nothing else."""

from __future__ import annotations

import re
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.embedded import operators as op

TEXT = "First 12. Then 3.5 of 7.\nNow x1. So it ends at 9:40. The fifth is 480. We stop. Bye. End."
WORDS = st.lists(st.sampled_from(["Go 1.", "We add 25.", "Stop!", "A b c?"]), max_size=12)


def rng(seed: int) -> np.random.Generator:
    return np.random.default_rng(seed)


@pytest.mark.parametrize(("n", "gone"), [(2, 1), (4, 1), (5, 1), (6, 2), (8, 2), (10, 3), (14, 4)])
def test_a_quarter_of_the_sentences(n: int, gone: int) -> None:
    text = " ".join(f"Number {chr(65 + i)}." for i in range(n))
    assert op.count_dropped(text) == gone
    for changed in (op.drop(text, rng(1)), op.cut_tail(text), op.cut_head(text)):
        assert changed is not None
        assert len(op.sentences(changed)) == n - gone


@given(WORDS, st.integers(0, 99))
def test_drop_keeps_order_and_wording(words: list[str], seed: int) -> None:
    text = " ".join(words)
    changed = op.drop(text, rng(seed))
    if len(words) < 2:
        assert changed is None
        return
    assert changed is not None
    rest = iter(words)
    assert all(part in rest for part in op.sentences(changed))
    assert changed == op.drop(text, rng(seed))


def test_first_and_last_may_be_dropped() -> None:
    kept = [op.sentences(op.drop(TEXT, rng(s)) or "") for s in range(40)]
    assert any("First 12." not in k for k in kept)
    assert any("End." not in k for k in kept)


@given(WORDS, st.integers(0, 99))
def test_shuffle_keeps_the_sentences_and_changes_their_order(words: list[str], seed: int) -> None:
    text = " ".join(words)
    changed = op.shuffle(text, rng(seed))
    if len(set(words)) < 2:
        assert changed is None
        return
    assert changed is not None
    assert Counter(op.sentences(changed)) == Counter(words)
    assert op.sentences(changed) != words
    assert len(changed) == len(text)


def test_cuts() -> None:
    assert op.cut_tail(TEXT) == TEXT[: TEXT.index(" Bye.")]
    assert op.cut_head(TEXT) == TEXT[TEXT.index("Now x1.") :]
    assert op.cut_tail("Only one.") is None


@given(st.integers(0, 999))
def test_numbers_keep_their_length_and_names_and_times_stay(seed: int) -> None:
    changed = op.swap_numbers(TEXT, rng(seed))
    assert changed is not None
    assert len(changed) == len(TEXT)
    assert re.sub(r"\d", "#", changed) == re.sub(r"\d", "#", TEXT)
    assert "x1" in changed
    assert "9:40" in changed
    assert sum(a != b for a, b in zip(changed, TEXT, strict=True)) == 1
    assert not re.search(r"\b0\d", changed)


def test_texts_without_numbers_cannot_be_swapped() -> None:
    assert op.swap_numbers("No number, only x1 at 9:40.", rng(0)) is None


def test_padding_adds_phrases_and_removes_nothing() -> None:
    changed = op.pad(TEXT, rng(3))
    assert changed is not None
    assert len(changed) > len(TEXT)
    letters = iter(changed.casefold())
    assert all(c in letters for c in TEXT.casefold())
    assert len(op.sentences(changed)) == len(op.sentences(TEXT))
