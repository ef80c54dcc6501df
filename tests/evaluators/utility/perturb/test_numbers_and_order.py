"""swap_numbers, shuffle_sentences and pad on texts made by hand and on the tasks."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from agenteval.evaluators.utility.perturb.pad import FILLERS
from tests.evaluators.utility.perturb.cases import PROSE, do, plain, run_id, tools


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
    got = do(plain(text), "swap_numbers", 1.0)
    assert list(got.removed) == numbers
    assert got.applied == got.of == len(numbers)
    assert len(got.view.trajectory) == len(text)
    swaps = [pair.split(" → ") for pair in got.detail.split("; ")]
    assert sorted(old for old, _ in swaps) == sorted(numbers)
    assert all(old != new and len(old) == len(new) for old, new in swaps)


def test_tool_output_and_words_stay() -> None:
    for seed in range(20):
        got = do(tools(), "swap_numbers", 1.0, seed)
        text = got.view.trajectory
        assert "[tool: python]\n25 numbers." in text
        assert "[tool: check]\n25" in text
        assert '{"upto": 50}' in text
        assert "Are you sure? 25 it is?" in text
        assert (
            re.findall(r"So the answer is (\d\d)\.", text)
            == [
                re.search(r"answer is (\d\d)\.", text).group(1)  # type: ignore[union-attr]
            ]
            * 2
        )
        assert "So the answer is 25." not in text


@pytest.mark.parametrize("seed", range(25))
def test_days_and_years_stay_possible(seed: int) -> None:
    got = do(plain("On 14 March 2025 and May 3 and 30 June."), "swap_numbers", 1.0, seed)
    found = re.fullmatch(r"On (\d\d) March (20\d\d) and May (\d) and (\d\d) June\.",
                         got.view.trajectory)  # fmt: skip
    assert found
    day, year, may, june = (int(g) for g in found.groups())
    assert 10 <= day <= 28
    assert day != 14
    assert year != 2025
    assert 1 <= may <= 9
    assert may != 3
    assert 10 <= june <= 28


def test_no_numbers() -> None:
    got = do(plain("Two and two is four."), "swap_numbers")
    assert (got.changed, got.reason) == (False, "no number that may be swapped")


def test_first_digits_never_become_zero() -> None:
    texts = {do(plain("It is 7 of 10."), "swap_numbers", 1.0, s).view.trajectory for s in range(80)}
    pairs = [re.fullmatch(r"It is (\d) of (\d\d)\.", t) for t in texts]
    assert all(p and p[1] in "12345689" and p[2][0] != "0" and p[2] != "10" for p in pairs)


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
    for seed in range(20):
        text = do(tools(), "shuffle_sentences", seed=seed).view.trajectory
        checker = text.split("[assistant: checker]\n")[1].split("\n\n[final")[0]
        assert checker in ("I agree with that. It is well done.",
                           "It is well done. I agree with that.")  # fmt: skip
        assert text.endswith("[final output]\nSo the answer is 25.")
    seen = {do(tools(), "shuffle_sentences", seed=s).view.trajectory for s in range(20)}
    assert len(seen) > 10


def test_shuffle_of_two_is_a_swap() -> None:
    for seed in range(10):
        got = do(plain("One is it. Two is it."), "shuffle_sentences", seed=seed)
        assert got.view.trajectory == "Two is it. One is it."
    assert do(plain("One. One."), "shuffle_sentences").reason == (
        "no speaker has two different sentences"
    )


def test_greeting_and_name_keep_lines_of_their_own() -> None:
    for seed in range(20):
        view = run_id("support", "support-06-warm")
        lines = do(view, "shuffle_sentences", seed=seed).view.trajectory.splitlines()
        assert "Hi Lukas," in lines
        assert "Mara from Quillmoor" in lines


def test_fillers_are_short_distinct_and_empty() -> None:
    assert len(set(FILLERS)) == len(FILLERS) >= 20
    assert all(25 <= len(f) <= 65 and f.endswith(".") and not re.search(r"\d", f) for f in FILLERS)


@pytest.mark.parametrize("share", [0.25, 0.5, 1.0])
def test_pad_adds_its_share_and_nothing_else(share: float) -> None:
    """Without the fillers the text is the original."""
    for view in (plain(PROSE), tools(), run_id("math", "math-15-stepwise")):
        got = do(view, "pad", share)
        text = got.view.trajectory
        for filler in FILLERS:
            text = text.replace(" " + filler, "")
        assert text == view.trajectory
        assert got.applied == len(got.view.trajectory) - len(view.trajectory)
        assert abs(got.applied - share * got.of) <= 33 or got.applied <= 66


def test_pad_where_no_sentence_ends() -> None:
    got = do(plain("Answer: 36"), "pad")
    first, second = got.view.trajectory.split("\n")
    assert (first, second in FILLERS) == ("Answer: 36", True)
