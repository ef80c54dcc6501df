"""Numbers, order, padding, white space and formatting."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from agenteval.utility.perturb.changes import FILLERS
from tests.utility.perturb.cases import PROSE, do, plain, run_id, shown, tools


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("1. Take 5 of 12 at 9:40.\n2) Pay $3.50 or 1,000 euros.", ["5", "12", "3.50", "1,000"]),
        ("Version 4.2.0 of 12/03/2025 and 2025-03-12, x1 is 7k and 3D.", ["7"]),
        ("See https://a.example/17 or a9@b.example, room 21st, 297,50 euros.", ["297,50"]),
        ("Then $\\frac{1}{2} + x_{12} = 34$ and 5^2 = 25.", ["1", "2", "34", "5", "2", "25"]),
        ("Step 2: we get 14m + 10 ≤ 490.", ["14", "10", "490"]),
        ("```py3\nrange(1, 501)\n```", ["1", "501"]),
    ],
)
def test_which_numbers_are_swapped(text: str, numbers: list[str]) -> None:
    """All of them at a share of 1, each by one digit; no other character changes."""
    copy = do(plain(text), "swap_numbers", 1.0).view.trajectory
    differ = [i for i, (a, b) in enumerate(zip(text, copy, strict=True)) if a != b]
    found = [
        m
        for m in re.finditer(r"\d+(?:[.,]\d+)*", text)
        if any(m.start() <= i < m.end() for i in differ)
    ]
    assert [m.group() for m in found] == numbers
    assert len(differ) == len(numbers)


def test_days_and_years_stay_possible() -> None:
    text = "On 14 March 2025 and May 3 and 30 June."
    form = r"On (\d\d) March (20\d\d) and May (\d) and (\d\d) June\."
    for copy in shown(text, "swap_numbers", 1.0, seeds=25):
        found = re.fullmatch(form, copy)
        assert found
        day, year, may, june = map(int, found.groups())
        assert 10 <= day <= 28
        assert 10 <= june <= 28
        assert may in {1, 2, 4, 5, 6, 7, 8, 9}
        assert (day, year) != (14, 2025)


def test_first_digits_never_become_zero() -> None:
    for text in shown("It is 7 of 10.", "swap_numbers", 1.0, seeds=80):
        assert re.fullmatch(r"It is [1-689] of (?!10)[1-9]\d\.", text)


def test_shuffle_keeps_list_numbers_in_place() -> None:
    got = do(plain(PROSE), "shuffle_sentences", seed=3)
    lines = got.view.trajectory.splitlines()
    assert [line[:3] for line in lines if re.match(r"\d\. ", line)] == ["1. ", "2. "]
    contents = re.split(r"(?<=[.*]) |\n+(?:\d\. )?", got.view.trajectory)
    original = re.split(r"(?<=[.*]) |\n+(?:\d\. )?", PROSE)
    assert Counter(contents) == Counter(original)
    assert contents != original


def test_shuffle_keeps_speakers_apart() -> None:
    """The coder has 6 sentences over its turns, the checker 2, [final output] only 1."""
    seen = {do(tools(), "shuffle_sentences", seed=s).view.trajectory for s in range(20)}
    assert len(seen) > 10
    for text in seen:
        checker = text.split("[assistant: checker]\n")[1].split("\n\n[final")[0]
        assert sorted(checker.strip(".").split(". ")) == ["I agree with that", "It is well done"]
        assert text.endswith("[final output]\nSo the answer is 25.")


def test_shuffle_of_two_is_a_swap() -> None:
    assert shown("One is it. Two is it.", "shuffle_sentences") == {"Two is it. One is it."}


def test_greeting_and_name_keep_lines_of_their_own() -> None:
    view = run_id("support", "support-06-warm")
    for seed in range(20):
        lines = do(view, "shuffle_sentences", seed=seed).view.trajectory.splitlines()
        assert "Hi Lukas," in lines
        assert "Mara from Quillmoor" in lines


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_pad_adds_its_share_and_nothing_else(share: float) -> None:
    """Without the fillers the text is the original."""
    for view in (plain(PROSE), run_id("math", "math-15-stepwise")):
        copy = text = do(view, "pad", share).view.trajectory
        for filler in FILLERS:
            text = text.replace(" " + filler, "")
        assert text == view.trajectory
        assert abs(len(copy) - len(text) - share * len(text)) <= 40


def test_pad_where_no_sentence_ends() -> None:
    first, second = do(plain("Answer: 36"), "pad").view.trajectory.split("\n")
    assert (first, second in FILLERS) == ("Answer: 36", True)


@pytest.mark.parametrize(
    ("operator", "text", "seen"),
    [
        (
            "whitespace",
            "One is it. Two is it.\n\nThree is it.\n- Four.",
            {
                "One is it.  Two is it.\n\nThree is it.\n- Four.",
                "One is it. Two is it.\n\n\nThree is it.\n- Four.",
                "One is it.  Two is it.\n\n\nThree is it.\n- Four.",
            },
        ),
        (
            "formatting",
            "One is it. Two is it. Three is it.",
            {
                "- One is it.\n- Two is it.\n- Three is it.",
                "**One is it.** Two is it. Three is it.",
                "One is it. **Two is it.** Three is it.",
                "One is it. Two is it. **Three is it.**",
            },
        ),
        ("formatting", "**Answer: 35**", {"Answer: 35"}),
        ("formatting", "- one thing\n- two things", {"* one thing\n* two things"}),
        ("formatting", "## The plan\n\nWe go on.", {"**The plan**\n\nWe go on."}),
        (
            "formatting",
            "It is **very** good, `a ** b ** c` too.",
            {"It is very good, `a ** b ** c` too."},
        ),
        ("formatting", "**[assistant]**\n\nSays so.", {"**[assistant]**\n\n**Says so.**"}),
    ],
)
def test_all_that_a_control_may_do(operator: str, text: str, seen: set[str]) -> None:
    assert shown(text, operator) == seen
