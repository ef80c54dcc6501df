"""What is dropped, from texts made by hand and from the tasks."""

from __future__ import annotations

import re

import pytest

from agenteval.readers.view import make_view
from agenteval.records import Message, Run, Span
from tests.utility.perturb.cases import PROSE, do, plain, shown, tools

SENTENCES = [
    "There are 12 boxes with 30 pens each.",
    "So we need 12·30 = 360 pens, of which 45 are blue.",
    "Then $x^2 + 4 = 20$ must hold.",
    "That gives `x = 4` at once.",
    "1. First we take 16 pens.",
    "They are red.",
    "2. Next we take 44 more.",
    "That makes 60.",
    "So there are 60 pens on the table.",
    "**Answer: 60**",
]


@pytest.mark.parametrize(("share", "count"), [(0.01, 1), (0.15, 2), (0.25, 3), (1, 9)])
def test_drop_sentences_counts_half_up(share: float, count: int) -> None:
    left = do(plain(PROSE), "drop_sentences", share).view.trajectory
    assert sum(s not in left for s in SENTENCES) == count


@pytest.mark.parametrize(
    ("text", "operator", "share", "seen"),
    [
        # whichever sentence goes, paragraphs stay paragraphs and no gap is doubled
        (
            "A one. B two.\n\nC three. D four.\n\nE five.",
            "drop_sentences",
            0.2,
            {
                "B two.\n\nC three. D four.\n\nE five.",
                "A one.\n\nC three. D four.\n\nE five.",
                "A one. B two.\n\nD four.\n\nE five.",
                "A one. B two.\n\nC three.\n\nE five.",
                "A one. B two.\n\nC three. D four.",
            },
        ),
        # a word takes one blank and its comma
        ("Yes, we go.", "drop_words", 0.3, {"we go.", "Yes, go.", "Yes, we."}),
        # of six paragraphs the third and fourth are the middle
        (
            "\n\n".join(f"Step {w} begins. It ends." for w in "abcdef"),
            "drop_middle",
            1,
            {
                "\n\n".join(f"Step {w} begins. It ends." for w in kept)
                for kept in ("abdef", "abcef")
            },
        ),
        # steps are few: a sentence
        (
            "One a. Two b. Three c. Four d. Five e. Six f.",
            "drop_middle",
            1,
            {"One a. Two b. Four d. Five e. Six f.", "One a. Two b. Three c. Five e. Six f."},
        ),
    ],
)
def test_all_that_may_be_dropped(text: str, operator: str, share: float, seen: set[str]) -> None:
    assert shown(text, operator, share) == seen


def test_all_assistant_turns_are_one_pool() -> None:
    """Two of eight own sentences; the final output repeats one and goes with it, not alone."""
    own = [
        "I count the 50 numbers.",
        "A loop does it.",
        "Let me look once more.",
        "Every second number is even.",
        "That makes 25 of them.",
        "So the answer is 25.",
        "I agree with that.",
        "It is well done.",
    ]
    gone: set[str] = set()
    for seed in range(40):
        left = do(tools(), "drop_sentences", 0.25, seed).view.trajectory
        lost = {s for s in own if s not in left}
        assert len(lost) == 2
        assert left.count("So the answer is 25.") == 2 * (own[5] not in lost)
        gone |= lost
    assert gone == set(own)


@pytest.mark.parametrize(
    ("text", "operator", "reason"),
    [
        ("```\nx = 1\n```", "drop_sentences", "the system wrote only code"),
        ("Only this.", "drop_sentences", "there is only one sentence, and one must remain"),
        (
            "## Title\n\n| a | b |\n|---|---|\n\n---",
            "drop_sentences",
            "the system wrote no sentence",
        ),
        ("One a. Two b.", "drop_middle", "2 sentences have no middle"),
        ("Only this.", "truncate", "only one sentence, block of code or call"),
        ("Word.", "drop_words", "fewer than two words can be dropped"),
        ("Red. Big.", "drop_words", "every sentence has only one word that can be dropped"),
        ("Two and two is four.", "swap_numbers", "there is no number to swap"),
        ("One. One.", "shuffle_sentences", "no speaker has two different sentences to exchange"),
        ("One", "whitespace", "there is no gap between two words or sentences"),
        ("The value $x$ is it.", "formatting", "every sentence already has markup"),
    ],
)
def test_nothing_to_change(text: str, operator: str, reason: str) -> None:
    got = do(plain(text), operator)
    assert (got.changed, got.reason, got.view.trajectory) == (False, reason, text)


def test_structure_is_no_sentence() -> None:
    """Headings and tables stay; bold that spans sentences and LaTeX environments go whole."""
    text = (
        "## Plan. Part one\n\nOne is here. **Two is here. Three is here.** Four.\n\n"
        "| a | b |\n|---|---|\n| 1. x | 2. y |\n\n"
        "\\begin{align}\na &= 1. \\\\\nb &= 2.\n\\end{align}\n\nTERMINATE"
    )
    for share, gone in ((0.25, 1), (0.5, 2), (1.0, 3)):
        for left in shown(text, "drop_sentences", share, seeds=20):
            assert left.startswith("## Plan. Part one\n\n")
            assert "| a | b |\n|---|---|\n| 1. x | 2. y |" in left
            assert left.endswith("TERMINATE")
            assert left.count("\\begin") == left.count("\\end{align}")
            assert left.count("**") in (0, 2)
            units = ("One is here.", "**Two is here. Three is here.**", "Four.", "\\begin")
            assert sum(u not in left for u in units) == gone


def test_drop_words() -> None:
    """Four words of 15 at 25 %; punctuation, formula, marker and code stay."""
    text = (
        "1. Take the big red box now.\n\n"
        "Then $x + y$ is seven, see `a b` for more. Yes, we (both) agree."
    )
    for left in shown(text, "drop_words"):
        assert len(re.findall(r"[A-Za-z]+", left)) == 20 - 4  # x, y, a, b and "both" stay
        assert left.startswith("1. ")
        assert all(kept in left for kept in ("$x + y$", "`a b`", "(both)"))
        assert (left.count("."), "  " in left, " ." in left) == (4, False, False)


def test_every_sentence_keeps_a_word() -> None:
    """Three sentences of two words: only three may go, also where five are asked for."""
    for left in shown("Red box. Big car. Old man.", "drop_words", 1.0):
        assert [len(s.split()) for s in left.strip(".").split(".")] == [1, 1, 1]


def test_no_heading_appears_where_a_word_went() -> None:
    """The line would begin with a speaker's heading, so it gets a backslash."""
    seen = shown("Well [assistant] wrote that. And more of it.", "drop_words", 0.5)
    assert any(t.startswith("\\[assistant]") for t in seen)
    assert not any(t.startswith("[assistant]") for t in seen)


@pytest.mark.parametrize(
    ("share", "end"),
    [
        # own units: 2 sentences, code, sentence, call, 3 sentences, 2 sentences = 10
        (0.2, "25 it is?"),
        (0.5, '[tool call] check {"upto": 50}\n\n[tool: check]\n25'),
        (0.8, "I count the 50 numbers. A loop does it."),
    ],
)
def test_truncate_cuts_others_turns_too(share: float, end: str) -> None:
    assert do(tools(), "truncate", share).view.trajectory.endswith(end)


def test_truncate_leaves_no_bare_heading() -> None:
    """Also not that of a turn that said nothing."""
    messages = tuple(Message(role="assistant", content=c) for c in ("One is it.", "", "Two is it."))
    got = do(make_view(Run(id="r", input="q", messages=messages)), "truncate")
    assert got.view.trajectory == "[assistant]\nOne is it."


def test_what_the_reader_wrote_into_spans_stays() -> None:
    """ "status: error" is a line of the view; the agent's own sentences may go."""
    output = {"output": "One is it. Two is it."}
    span = Span(id="s", name="plan", kind="agent", status="error", attributes=output)
    view = make_view(Run(id="r", input="q", spans=(span,)))
    head = "[span assistant: agent plan]\nstatus: error\n"
    seen = {do(view, "drop_sentences", 1.0, seed).view.trajectory for seed in range(10)}
    assert seen == {f"{head}One is it.", f"{head}Two is it."}
