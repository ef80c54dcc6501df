"""drop_sentences, drop_words, drop_middle, truncate on texts made by hand and on the tasks."""

from __future__ import annotations

import pytest

from agenteval.readers.view import make_view
from agenteval.records import Message, Run, Span
from tests.evaluators.utility.perturb.cases import PROSE, do, plain, run_id, tools

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


@pytest.mark.parametrize(
    ("share", "count"), [(0.01, 1), (0.1, 1), (0.15, 2), (0.25, 3), (0.5, 5), (0.95, 9), (1, 9)]
)
def test_drop_sentences_counts_half_up(share: float, count: int) -> None:
    got = do(plain(PROSE), "drop_sentences", share)
    assert (got.applied, got.of) == (count, 10)
    assert set(got.removed) <= set(SENTENCES)
    kept = [s for s in SENTENCES if s not in got.removed]
    assert all(s in got.view.trajectory for s in kept)
    assert not any(s in got.view.trajectory for s in got.removed)


def test_places_close_up_to_the_widest_gap() -> None:
    """Whichever sentence goes, paragraphs stay paragraphs and no gap is doubled."""
    text = "A one. B two.\n\nC three. D four.\n\nE five."
    seen = {do(plain(text), "drop_sentences", 0.2, seed).view.trajectory for seed in range(60)}
    assert seen == {
        "B two.\n\nC three. D four.\n\nE five.",
        "A one.\n\nC three. D four.\n\nE five.",
        "A one. B two.\n\nD four.\n\nE five.",
        "A one. B two.\n\nC three.\n\nE five.",
        "A one. B two.\n\nC three. D four.",
    }


def test_all_assistant_turns_are_one_pool() -> None:
    """Eight own sentences; the final output repeats one and goes with it, not alone."""
    view = tools()
    gone: set[str] = set()
    for seed in range(40):
        got = do(view, "drop_sentences", 0.25, seed)
        assert (got.applied, got.of) == (2, 8)
        gone |= set(got.removed)
        answers = got.view.trajectory.count("So the answer is 25.")
        assert answers == (0 if "So the answer is 25." in got.removed else 2)
    assert gone == {
        "I count the 50 numbers.", "A loop does it.", "Let me look once more.",
        "Every second number is even.", "That makes 25 of them.", "So the answer is 25.",
        "I agree with that.", "It is well done.",
    }  # fmt: skip


def test_a_turn_that_loses_all_keeps_its_heading() -> None:
    view = run_id("math", "math-06-coder")
    text = do(view, "drop_sentences", 1.0).view.trajectory
    assert text.count("[assistant]") == view.trajectory.count("[assistant]")
    assert text.count("```") == view.trajectory.count("```")


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "the system wrote no sentence"),
        ("```\nx = 1\n```", "the system wrote nothing but code"),
        ("Only this.", "only one sentence, and one must stay"),
        ("## Title\n\n| a | b |\n|---|---|\n\n---", "the system wrote no sentence"),
    ],
)
def test_nothing_to_drop(text: str, reason: str) -> None:
    got = do(plain(text), "drop_sentences")
    assert (got.changed, got.reason) == (False, reason)


def test_structure_is_no_sentence() -> None:
    """Headings and tables stay; bold that spans sentences and LaTeX environments go whole."""
    text = (
        "## Plan. Part one\n\nOne is here. **Two is here. Three is here.** Four.\n\n"
        "| a | b |\n|---|---|\n| 1. x | 2. y |\n\n"
        "\\begin{align}\na &= 1. \\\\\nb &= 2.\n\\end{align}\n\nTERMINATE"
    )
    got = do(plain(text), "drop_sentences", 1.0)
    assert got.of == 4
    for seed in range(20):
        for share in (0.25, 0.5, 1.0):
            left = do(plain(text), "drop_sentences", share, seed).view.trajectory
            assert left.startswith("## Plan. Part one\n\n")
            assert "| a | b |\n|---|---|\n| 1. x | 2. y |" in left
            assert left.count("\\begin") == left.count("\\end{align}")
            assert left.count("**") in (0, 2)
            assert left.endswith("TERMINATE")


def test_drop_words() -> None:
    """Four words of 15 at 25 %; punctuation, formula, marker and code stay."""
    text = (
        "1. Take the big red box now.\n\n"
        "Then $x + y$ is seven, see `a b` for more. Yes, we (both) agree."
    )
    view = plain(text)
    words = ["Take", "the", "big", "red", "box", "now",
             "Then", "is", "seven", "see", "for", "more", "Yes", "we", "agree"]  # fmt: skip
    for seed in range(30):
        got = do(view, "drop_words", 0.25, seed)
        assert (got.applied, got.of) == (4, len(words))
        assert set(got.removed) <= set(words)
        left = got.view.trajectory
        assert left.startswith("1. ")
        assert "$x + y$" in left
        assert "`a b`" in left
        assert "(both)" in left
        assert (left.count("."), "  " in left, " ." in left) == (4, False, False)


def test_every_sentence_keeps_a_word() -> None:
    """Three sentences of two words: only three may go, also where five are asked for."""
    for seed in range(20):
        got = do(plain("Red box. Big car. Old man."), "drop_words", 1.0, seed)
        assert (got.applied, got.of) == (3, 6)
        assert [len(s.split()) for s in got.view.trajectory.strip(".").split(".")] == [1, 1, 1]


def test_a_dropped_word_takes_one_blank_and_its_comma() -> None:
    seen = {do(plain("Yes, we go."), "drop_words", 0.3, s).view.trajectory for s in range(30)}
    assert seen == {"we go.", "Yes, go.", "Yes, we."}


def test_no_heading_appears_where_a_word_went() -> None:
    """The line would begin with a speaker's heading, so it gets a backslash."""
    text = "Well [assistant] wrote that. And more of it."
    seen = {do(plain(text), "drop_words", 0.5, s).view.trajectory for s in range(40)}
    assert any(t.startswith("\\[assistant]") for t in seen)
    assert not any(t.startswith("[assistant]") for t in seen)


def test_drop_middle_takes_a_paragraph() -> None:
    """Of six paragraphs the third and fourth are the middle."""
    text = "\n\n".join(f"Step {w} begins. It ends." for w in "abcdef")
    seen = {do(plain(text), "drop_middle", seed=s).removed for s in range(30)}
    assert seen == {(f"Step {w} begins.", "It ends.") for w in "cd"}


def test_drop_middle_takes_a_sentence_where_steps_are_few() -> None:
    text = "One a. Two b. Three c. Four d. Five e. Six f."
    seen = {do(plain(text), "drop_middle", seed=s).removed for s in range(30)}
    assert seen == {("Three c.",), ("Four d.",)}
    assert do(plain("One a. Two b."), "drop_middle").reason == "2 sentences have no middle"


def test_truncate_cuts_others_turns_too() -> None:
    """Own units: 2 sentences, code, sentence, call, 3 sentences, 2 sentences = 10."""
    view = tools()
    got = do(view, "truncate", 0.5)
    assert (got.applied, got.of) == (5, 10)
    assert got.view.trajectory.endswith('[tool call] check {"upto": 50}\n\n[tool: check]\n25')
    more = do(view, "truncate", 0.8)
    assert more.view.trajectory.endswith("I count the 50 numbers. A loop does it.")
    assert do(view, "truncate", 0.2).view.trajectory.endswith("25 it is?")


def test_what_the_reader_wrote_into_spans_stays() -> None:
    """ "status: error" is a line of the view; the agent's own sentences may go."""
    span = Span(id="s", name="plan", kind="agent", status="error",
                attributes={"output": "One is it. Two is it."})  # fmt: skip
    view = make_view(Run(id="r", input="q", spans=(span,)))
    for seed in range(10):
        got = do(view, "drop_sentences", 1.0, seed)
        assert got.of == 2
        assert got.view.trajectory.startswith("[span assistant: agent plan]\nstatus: error\n")


def test_truncate_leaves_no_bare_heading() -> None:
    """Also not that of a turn that said nothing."""
    messages = tuple(Message(role="assistant", content=c) for c in ("One is it.", "", "Two is it."))
    got = do(make_view(Run(id="r", input="q", messages=messages)), "truncate")
    assert got.view.trajectory == "[assistant]\nOne is it."
