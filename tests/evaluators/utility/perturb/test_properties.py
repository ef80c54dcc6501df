"""What holds for every operator or every text: nothing breaks, nothing is emptied."""

from __future__ import annotations

import math
from collections import Counter
from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from agenteval.evaluators.utility.perturb import BANK_OPERATORS, Perturbed
from agenteval.evaluators.utility.perturb.layout import MARKER, read_layout
from agenteval.evaluators.utility.sentences import split_sentences
from agenteval.readers.view import HEADING
from agenteval.records import View
from tests.evaluators.utility.perturb.cases import SEEDS, SHARES, TEXTS, do
from tests.thorough import often

NAMES = st.sampled_from(sorted(BANK_OPERATORS))
KEEPING = st.sampled_from(sorted(set(BANK_OPERATORS) - {"truncate"}))


def headings(text: str) -> list[str]:
    return [line for line in text.replace("\r", "\n").split("\n") if HEADING.match(line)]


def of_kind(text: str, *kinds: str) -> list[str]:
    return [text[u.start : u.end] for u in split_sentences(text) if u.kind in kinds]


@settings(max_examples=often(60, 150), deadline=None)
@given(TEXTS, NAMES, SHARES, SEEDS)
def test_account_and_repeat(view: View, operator: str, share: float, seed: int) -> None:
    """The account fits the text; the same seed gives the same; nothing is emptied."""
    got = do(view, operator, share, seed)
    assert got == do(view, operator, share, seed)
    assert got.changed == (got.view.trajectory != view.trajectory)
    assert (got.reason is None) == got.changed
    assert (got.view.run_id, got.view.problem, got.view.reference) == (
        view.run_id, view.problem, view.reference,
    )  # fmt: skip
    if view.trajectory.strip():
        assert got.view.trajectory.strip()
    assert got.applied >= 0
    if got.changed:
        assert got.applied >= 1
    else:
        assert got.view is view


@settings(max_examples=often(80, 250), deadline=None)
@given(TEXTS, KEEPING, SHARES, SEEDS)
def test_only_the_systems_prose_moves(view: View, operator: str, share: float, seed: int) -> None:
    """Headings, code, calls, and what tools and users said are the same, in the same order."""
    before, after = view.trajectory, do(view, operator, share, seed).view.trajectory
    assert headings(after) == headings(before)
    if operator != "swap_numbers":  # it may change numbers in code
        assert of_kind(after, "code", "call") == of_kind(before, "code", "call")
    assert len(of_kind(after, "code", "call")) == len(of_kind(before, "code", "call"))
    assert of_kind(after, "output") == of_kind(before, "output")
    others = [(s, before[a.start : a.end]) for a in split_sentences(before)
              if (s := a.speaker) in ("user", "system", "tool")]  # fmt: skip
    kept = [(s, after[a.start : a.end]) for a in split_sentences(after)
            if (s := a.speaker) in ("user", "system", "tool")]  # fmt: skip
    assert kept == others


@settings(max_examples=often(60, 100), deadline=None)
@given(TEXTS, SHARES, SEEDS)
def test_truncate_is_a_beginning(view: View, share: float, seed: int) -> None:
    got = do(view, "truncate", share, seed)
    assert view.trajectory.startswith(got.view.trajectory)
    if got.changed:
        assert not HEADING.match(got.view.trajectory.splitlines()[-1])


def bodies(view: View) -> Counter[str]:
    layout = read_layout(view.trajectory)
    return Counter(
        view.trajectory[slice(*layout.body(i))] for i in layout.with_copies(layout.sentences())
    )


@settings(max_examples=often(60, 150), deadline=None)
@given(TEXTS, SEEDS)
def test_shuffle_keeps_every_sentence(view: View, seed: int) -> None:
    """The visible characters are the same as a multiset (a backslash may keep a line from being
    a heading), and every sentence is found again."""
    got = do(view, "shuffle_sentences", seed=seed)

    def visible(text: str) -> Counter[str]:
        return Counter("".join(text.replace("\\", "").split()))

    assert visible(got.view.trajectory) == visible(view.trajectory)
    for sentence in bodies(view):
        assert sentence in got.view.trajectory


@settings(max_examples=often(60, 150), deadline=None)
@given(TEXTS, SHARES, SEEDS)
def test_swapped_numbers_keep_all_lengths(view: View, share: float, seed: int) -> None:
    got = do(view, "swap_numbers", share, seed)
    before, after = view.trajectory, got.view.trajectory
    assert len(before) == len(after)
    differ = [(a, b) for a, b in zip(before, after, strict=True) if a != b]
    assert all(a.isdigit() and b.isdigit() for a, b in differ)
    if got.changed:
        assert got.applied == min(got.of, max(1, math.floor(share * got.of + 0.5)))


@settings(max_examples=often(60, 100), deadline=None)
@given(TEXTS, SEEDS)
def test_controls_keep_the_words(view: View, seed: int) -> None:
    """White space: every visible character. Formatting: every one that is no sign of Markdown."""
    blank = do(view, "whitespace", seed=seed).view.trajectory
    assert blank.split() == view.trajectory.split()
    for formula in ("$a^2 + 1$", "`f(x)`", "\\(n = 3\\)", "\\boxed{14}", "\\[\nx = 1. Y\n\\]"):
        for operator in ("formatting", "paraphrase", "pad", "swap_numbers", "shuffle_sentences"):
            seen = do(view, operator, seed=seed).view.trajectory
            fixed = "".join("0" if c.isdigit() else c for c in seen)
            wanted = "".join("0" if c.isdigit() else c for c in formula)
            original = "".join("0" if c.isdigit() else c for c in view.trajectory)
            assert fixed.count(wanted) == original.count(wanted)

    def bare(text: str) -> str:
        return "".join(c for c in text if c not in "*-#" and not c.isspace())

    assert bare(do(view, "formatting", seed=seed).view.trajectory) == bare(view.trajectory)


@settings(max_examples=often(60, 150), deadline=None)
@given(TEXTS, st.sampled_from(["drop_sentences", "drop_words", "truncate"]), SHARES, SEEDS)
def test_the_share_is_what_was_asked(view: View, operator: str, share: float, seed: int) -> None:
    """Half up, at least 1, at most all but 1; words may run short in short sentences."""
    got = do(view, operator, share, seed)
    if not got.changed:
        assert got.reason
        return
    wanted = min(got.of - 1, max(1, math.floor(share * got.of + 0.5)))
    assert got.applied == wanted or (operator == "drop_words" and 0 < got.applied < wanted)


def smaller(first: Perturbed, second: Perturbed) -> None:
    assert not Counter(first.removed) - Counter(second.removed)
    assert first.applied <= second.applied


@settings(max_examples=often(60, 100), deadline=None)
@given(
    TEXTS,
    st.sampled_from(["drop_sentences", "drop_words", "swap_numbers", "truncate", "pad"]),
    st.integers(0, 3),
)
def test_doses_are_nested(view: View, operator: str, seed: int) -> None:
    doses = [do(view, operator, share, seed) for share in (0.1, 0.25, 0.5, 0.75)]
    for first, second in pairwise(doses):
        if operator == "truncate":
            assert first.view.trajectory.startswith(second.view.trajectory)
        elif operator == "pad":
            assert len(first.view.trajectory) <= len(second.view.trajectory)
        else:
            smaller(first, second)
        if operator == "swap_numbers":  # what a small dose wrote stands in the larger one
            triples = zip(view.trajectory, first.view.trajectory, second.view.trajectory,
                          strict=True)  # fmt: skip
            assert all(c == b for a, b, c in triples if a != b)


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
    for i in layout.sentences():
        start, end = layout.body(i)
        assert start < end
        assert start == layout.parts[i].start or MARKER.match(layout.of(i))
