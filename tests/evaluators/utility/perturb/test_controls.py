"""whitespace, formatting and paraphrase: the same words, the same meaning."""

from __future__ import annotations

import pytest

from tests.evaluators.utility.perturb.cases import do, plain, tools


def test_whitespace_widens_gaps() -> None:
    text = "One is it. Two is it.\n\nThree is it.\n- Four."
    seen = {do(plain(text), "whitespace", seed=s).view.trajectory for s in range(20)}
    assert seen == {
        "One is it.  Two is it.\n\nThree is it.\n- Four.",
        "One is it. Two is it.\n\n\nThree is it.\n- Four.",
        "One is it.  Two is it.\n\n\nThree is it.\n- Four.",
    }


def test_whitespace_of_one_sentence() -> None:
    got = do(plain("All of it is `a b` here."), "whitespace")
    assert got.view.trajectory.split() == ["All", "of", "it", "is", "`a", "b`", "here."]
    assert "`a b`" in got.view.trajectory
    assert got.changed
    assert do(plain("One"), "whitespace").reason == "no gap between two words or sentences"


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("**Answer: 35**", "Answer: 35"),
        ("- one thing\n- two things", "* one thing\n* two things"),
        ("* one thing", "- one thing"),
        ("## The plan\n\nWe go on.", "**The plan**\n\nWe go on."),
        ("Only this.", "**Only this.**"),
        ("It is **very** good, `a ** b ** c` too.", "It is very good, `a ** b ** c` too."),
        ("**[assistant]**\n\nSays so.", "**[assistant]**\n\n**Says so.**"),
    ],
)
def test_formatting(text: str, changed: str) -> None:
    assert do(plain(text), "formatting").view.trajectory == changed


def test_formatting_of_a_paragraph() -> None:
    text = "One is it. Two is it. Three is it."
    seen = {do(plain(text), "formatting", seed=s).view.trajectory for s in range(30)}
    assert seen == {
        "- One is it.\n- Two is it.\n- Three is it.",
        "**One is it.** Two is it. Three is it.",
        "One is it. **Two is it.** Three is it.",
        "One is it. Two is it. **Three is it.**",
    }


def test_formatting_has_no_place() -> None:
    got = do(plain("The value $x$ is it."), "formatting")
    assert got.reason == "every sentence has signs of markup already"


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("So there are 35.", "Therefore there are 35."),
        ("So far there are 35. So that is it.", None),
        ("It is odd, so k is 3.", "It is odd, and so k is 3."),
        ("Hence it holds.", "Therefore it holds."),
        ("Since 2 and 7 have no factor, it holds.", "Because 2 and 7 have no factor, it holds."),
        ("Since Monday it is gone, they say.", None),
        ("It fails because of rain.", None),
        ("It fails, not because it rains.", None),
        ("Almost every one, every other day.", None),
        ("Every block has one.", "Each block has one."),
        (
            "It does not has to be so. It has to be even.",
            "It does not has to be so. It must be even.",
        ),
        ("I can't come.", "I cannot come."),
        ("Don't you see it?", None),
        ("I’m here.", "I am here."),
        ("The colour of a neighbour.", "The color of a neighbor."),
        ("The color of a neighbor.", "The colour of a neighbour."),
        ('He said "for example" and `for example`.', None),
        ("Read https://a.example/for/colour now.", None),
        ("$x, so y$ is all.", None),
    ],
)
def test_paraphrase(text: str, changed: str | None) -> None:
    got = do(plain(text), "paraphrase")
    assert got.view.trajectory == (text if changed is None else changed)
    assert got.reason == ("no rule fits" if changed is None else None)


def test_short_forms_only_where_the_text_has_them() -> None:
    assert not do(plain("It does not matter to us."), "paraphrase").changed
    seen = {do(plain("I can't go. It does not matter."), "paraphrase", seed=s).view.trajectory
            for s in range(20)}  # fmt: skip
    assert seen == {
        "I cannot go. It doesn't matter.",
        "I cannot go. It does not matter.",
        "I can't go. It doesn't matter.",
    }


def test_all_places_of_a_spelling_change_together() -> None:
    text = "The colour is grey. Another colour is there, so we stop."
    for seed in range(20):
        shown = do(plain(text), "paraphrase", seed=seed).view.trajectory
        assert ("colour" in shown, "grey" in shown) in ((True, True), (False, False))


def test_paraphrase_says_what_it_did() -> None:
    got = do(tools(), "paraphrase", seed=1)
    assert got.applied == len(got.removed) >= 1
    assert " → " in got.detail
    assert "Are you sure? 25 it is?" in got.view.trajectory
