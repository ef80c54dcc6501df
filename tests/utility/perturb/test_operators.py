"""What holds for every operator and every text, names and seeds, and the texts of the tasks."""

from __future__ import annotations

import hashlib
import math
from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.errors import InputError
from agenteval.readers.view import HEADING
from agenteval.records import View
from agenteval.utility import critic_reply
from agenteval.utility.perturb import CONTROLS, OPERATORS, REMOVED, perturb, rng_for, variant_name
from agenteval.utility.perturb.layout import MARKER, read_layout
from agenteval.utility.sentences import split_sentences
from tests.thorough import often
from tests.utility.perturb.cases import PROSE, SEEDS, SHARES, TEXTS, do, plain, views

KEEPING = sorted(set(OPERATORS) - {"truncate"})
WITH_SHARE = {"drop_sentences", "drop_words", "truncate", "swap_numbers", "pad"}


def headings(text: str) -> list[str]:
    return [line for line in text.replace("\r", "\n").split("\n") if HEADING.match(line)]


def of_kind(text: str, *kinds: str) -> list[str]:
    return [text[u.start : u.end] for u in split_sentences(text) if u.kind in kinds]


def of_others(text: str) -> list[tuple[str, str]]:
    return [
        (s, text[u.start : u.end])
        for u in split_sentences(text)
        if (s := u.speaker) in ("user", "system", "tool")
    ]


def visible(text: str) -> Counter[str]:
    return Counter("".join(text.replace("\\", "").split()))


@settings(max_examples=often(60, 150), deadline=None)
@given(TEXTS, st.sampled_from(sorted(OPERATORS)), SHARES, SEEDS)
def test_account_and_repeat(view: View, operator: str, share: float, seed: int) -> None:
    """The account fits the text; the same seed gives the same; nothing is emptied."""
    got = do(view, operator, share, seed)
    assert got == do(view, operator, share, seed)
    assert got.changed == (got.view.trajectory != view.trajectory) == (not got.reason)
    assert got.view == view.model_copy(update={"trajectory": got.view.trajectory})
    assert bool(view.trajectory.strip()) == bool(got.view.trajectory.strip())


@pytest.mark.slow
@settings(max_examples=often(80, 250), deadline=None)
@given(TEXTS, st.sampled_from(KEEPING), SHARES, SEEDS)
def test_only_the_systems_prose_moves(view: View, operator: str, share: float, seed: int) -> None:
    """Headings, code, calls, and what tools and users said are the same, in the same order."""
    before, after = view.trajectory, do(view, operator, share, seed).view.trajectory
    assert headings(after) == headings(before)
    assert of_kind(after, "output") == of_kind(before, "output")
    assert of_others(after) == of_others(before)
    code = of_kind(before, "code", "call"), of_kind(after, "code", "call")
    if operator == "swap_numbers":  # it may change numbers in code
        assert len(code[0]) == len(code[1])
    else:
        assert code[0] == code[1]


@settings(max_examples=often(60, 150), deadline=None)
@given(TEXTS, SEEDS)
def test_shuffle_keeps_every_sentence(view: View, seed: int) -> None:
    """The visible characters are the same as a multiset (a backslash may keep a line from being
    a heading), and every sentence is found again."""
    after = do(view, "shuffle_sentences", seed=seed).view.trajectory
    assert visible(after) == visible(view.trajectory)
    layout = read_layout(view.trajectory)
    assert all(view.trajectory[slice(*layout.body(i))] in after for i in layout.own("sentence"))


@pytest.mark.slow
@settings(max_examples=often(60, 100), deadline=None)
@given(TEXTS, SEEDS)
def test_controls_keep_the_words(view: View, seed: int) -> None:
    """White space: every visible character. Formatting: every one that is no sign of Markdown."""
    blank = do(view, "whitespace", seed=seed).view.trajectory
    assert blank.split() == view.trajectory.split()
    for formula in ("$a^2 + 1$", "`f(x)`", "\\(n = 3\\)", "\\boxed{14}", "\\[\nx = 1. Y\n\\]"):
        wanted, original = (
            "".join("0" if c.isdigit() else c for c in t) for t in (formula, view.trajectory)
        )
        for operator in ("formatting", "pad", "swap_numbers", "shuffle_sentences"):
            copy = do(view, operator, seed=seed).view.trajectory
            fixed = "".join("0" if c.isdigit() else c for c in copy)
            assert fixed.count(wanted) == original.count(wanted)

    def bare(text: str) -> str:
        return "".join(c for c in text if c not in "*-#" and not c.isspace())

    assert bare(do(view, "formatting", seed=seed).view.trajectory) == bare(view.trajectory)


@settings(max_examples=often(60, 100), deadline=None)
@given(TEXTS, st.sampled_from(sorted(WITH_SHARE)), st.integers(0, 3))
def test_doses_are_nested(view: View, operator: str, seed: int) -> None:
    """A larger share does all that a smaller one does, and more."""
    before = view.trajectory
    doses = [do(view, operator, share, seed).view.trajectory for share in (0.1, 0.25, 0.5, 0.75)]
    for less, more in pairwise(doses):
        if operator == "truncate":
            assert before.startswith(less)
            assert less.startswith(more)
            assert less == before or not HEADING.match(less.splitlines()[-1])
        elif operator == "swap_numbers":  # what a small dose wrote stands in the larger one
            assert len(before) == len(less) == len(more)
            for old, small, large in zip(before, less, more, strict=True):
                assert old == small or small == large
                assert old == small or (old.isdigit() and small.isdigit())
        else:
            smaller, larger = (less, more) if operator == "pad" else (more, less)
            assert not visible(smaller) - visible(larger)


@settings(max_examples=often(60, 100), deadline=None)
@given(TEXTS)
def test_the_parts_cover_what_is_visible(view: View) -> None:
    """Parts are disjoint, in order, and with the headings hold every visible character."""
    layout = read_layout(view.trajectory)
    at, rest = 0, []
    for part in layout.parts:
        assert at <= part.start < part.end
        rest.append(view.trajectory[at : part.start])
        at = part.end
    rest.append(view.trajectory[at:])
    assert "".join("".join(rest).split()) == "".join("".join(headings(view.trajectory)).split())
    for i in layout.own("sentence"):
        start, end = layout.body(i)
        assert start < end
        assert start == layout.parts[i].start or MARKER.match(layout.of(i))


# ---- names and seeds -----------------------------------------------------------------------------


def test_the_table() -> None:
    # critics are still asked about a removed perturbation: their prompt is a key of stored replies
    assert set(OPERATORS) == {*critic_reply.CRITIC_OPERATORS, *CONTROLS} - set(REMOVED)
    assert CONTROLS - set(REMOVED) == {"whitespace", "formatting"}
    assert {n for n, o in OPERATORS.items() if o.takes_share} == WITH_SHARE


def test_the_generator_is_fixed() -> None:
    """A change of these numbers would orphan every stored perturbed score."""
    view = plain("One. Two.")
    seed = int(hashlib.sha256(f"7|pad|{view.sha256}".encode()).hexdigest(), 16)
    assert rng_for(7, "pad", view).random() == np.random.default_rng(seed).random()


@given(st.sampled_from(sorted(OPERATORS)), st.floats(1e-9, 1), st.integers(-5, 2**40))
def test_variant_names_read_back(operator: str, share: float, seed: int) -> None:
    name, written, number = variant_name(operator, share, seed).split(":")
    assert (name, int(number)) == (operator, seed)
    assert float(written) == share if operator in WITH_SHARE else written == "-"


@pytest.mark.parametrize("share", [0, 1.5, math.nan])
def test_impossible_shares(share: float) -> None:
    with pytest.raises(InputError, match="share is"):
        do(plain(PROSE), "pad", share)
    with pytest.raises(InputError, match="share is"):
        variant_name("pad", share, 0)


def test_an_unknown_operator_names_the_known_ones() -> None:
    view = plain(PROSE)
    for name in ("drop", *REMOVED):
        with pytest.raises(
            InputError, match=rf"'{name}' .*; there are drop_sentences, "
        ) as refused:
            perturb(view, name, rng=rng_for(0, name, view))
        assert ("was removed" in str(refused.value)) == (name in REMOVED)


# ---- the tasks -----------------------------------------------------------------------------------

DIGESTS = {
    "drop_sentences": "3a470c49ebc3",
    "drop_words": "5d865b5422dd",
    "drop_middle": "952cd5136176",
    "shuffle_sentences": "652eff114976",
    "truncate": "e304d0f45509",
    "swap_numbers": "b760a76ac3c4",
    "pad": "1cd687ad18b7",
    "whitespace": "1d2b1a4f7c96",
    "formatting": "8f1951ed9083",
}


@pytest.mark.parametrize("operator", sorted(OPERATORS))
def test_the_copies_of_the_tasks_are_fixed(operator: str) -> None:
    """One hash over 90 copies: a copy of another text is another copy than the one that is stored
    and judged under the same name."""
    copies = (do(v, operator).view.trajectory for task in ("math", "support") for v in views(task))
    assert hashlib.sha256("\0".join(copies).encode()).hexdigest()[:12] == DIGESTS.get(operator)
