"""Sentences: where they end, what is left out, and that no visible character is lost."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agenteval.readers.view import HEADING, make_view
from agenteval.records import Message, Run, ToolCall
from agenteval.utility.sentences import split_sentences, split_turns


def parts(text: str) -> list[str]:
    return [text[s.start : s.end] for s in split_sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", []),
        (" \n\t ", []),
        ("One. Two! Three? Four", ["One.", "Two!", "Three?", "Four"]),
        ("It is 3.14 m. Then 1,000.5 kg.", ["It is 3.14 m.", "Then 1,000.5 kg."]),
        ("Dr. Lee, e.g. at 5 p.m. on Monday. Then", ["Dr. Lee, e.g. at 5 p.m. on Monday.", "Then"]),
        ("We stop at 5 p.m. The shop closes.", ["We stop at 5 p.m.", "The shop closes."]),
        (
            "See Fig. 3 and No. 7. It is no. We go.",
            ["See Fig. 3 and No. 7.", "It is no.", "We go."],
        ),
        ("J. R. Smith came. A. Okoye left.", ["J. R. Smith came.", "A. Okoye left."]),
        ('"Really?" he asked. "Yes." So be it.', ['"Really?" he asked.', '"Yes."', "So be it."]),
        ("Well... maybe. So...", ["Well... maybe.", "So..."]),
        ("x = 2. y is 3.", ["x = 2.", "y is 3."]),
        ("(It holds.) We go on.", ["(It holds.)", "We go on."]),
        ("Read https://a.b/c.d?e=1. Good.", ["Read https://a.b/c.d?e=1.", "Good."]),
        ("好。真的！走", ["好。", "真的！", "走"]),
        # formulas and inline code hold together
        (
            r"So $f(x) = 1. A$ holds. Next \(a. B\) too.",
            [r"So $f(x) = 1. A$ holds.", r"Next \(a. B\) too."],
        ),
        ("Thus\n\\[\nx = 1. Y\n\\]\nDone.", ["Thus", "\\[\nx = 1. Y\n\\]", "Done."]),
        ("It costs $5. He has $10. Fine.", ["It costs $5.", "He has $10.", "Fine."]),
        ("Call `a. B()` now. Then stop.", ["Call `a. B()` now.", "Then stop."]),
        # steps and bullets
        ("1. Boil it. Wait.\n2) Pour. \n- Drink", ["1. Boil it.", "Wait.", "2) Pour.", "- Drink"]),
        ("Step 1: go\nStep 2: stop", ["Step 1: go", "Step 2: stop"]),
        # a margin breaks lines, not sentences; a blank line always ends one
        (
            "This line was broken by the margin of an\neditor in the middle. Next.",
            ["This line was broken by the margin of an\neditor in the middle.", "Next."],
        ),
        ("a title\n\nand text", ["a title", "and text"]),
    ],
)
def test_boundaries(text: str, expected: list[str]) -> None:
    assert parts(text) == expected


def test_an_unclosed_fence_runs_to_the_end() -> None:
    assert parts("Go.\n~~~\na. b\n```\nc. d") == ["Go.", "~~~\na. b\n```\nc. d"]


def test_a_conversation() -> None:
    """Headings are no units; only the system's own sentences are prose."""
    run = Run(
        id="r",
        input="What is 2 + 3?",
        output="It is 5. Sure.",
        messages=(
            Message(role="user", content="What is 2 + 3?"),
            Message(
                role="assistant",
                content="I ask. Wait.",
                tool_calls=(ToolCall(name="add", arguments={"a": 2, "b": "x. Y"}),),
            ),
            Message(role="tool", name="add", content="5. Five\n[assistant] no"),
            Message(role="user", content="And? Now."),
        ),
    )
    text = make_view(run).trajectory
    seen = [(u.kind, u.speaker, u.own, text[u.start : u.end]) for u in split_sentences(text)]
    assert seen == [
        ("prose", "assistant", True, "I ask."),
        ("prose", "assistant", True, "Wait."),
        ("call", "assistant", True, '[tool call] add {"a": 2, "b": "x. Y"}'),
        ("output", "tool", False, "5. Five"),
        ("output", "tool", False, "\\[assistant] no"),
        ("prose", "user", False, "And?"),
        ("prose", "user", False, "Now."),
        ("prose", "assistant", True, "It is 5."),
        ("prose", "assistant", True, "Sure."),
    ]
    assert [u.prose for u in split_sentences(text)].count(True) == 4


def test_a_turn_without_content_is_a_turn() -> None:
    turns = list(split_turns("[user]\n[assistant]\nYes."))
    assert [(t.speaker, t.start, t.end) for t in turns] == [("user", 7, 7), ("assistant", 19, 23)]
    assert [t.heading for t in split_turns("Yes.\n")] == [None]


def test_the_mark_of_a_cut_is_nobodys_sentence() -> None:
    text = make_view(Run(id="r", output="Word. " * 200), max_chars=300).trajectory
    marks = [u for u in split_sentences(text) if u.kind == "mark"]
    assert len(marks) == 1
    assert not marks[0].own


PIECES = st.sampled_from(
    [
        *"aB1.!? \n$`\u2028\x0b…。",
        *("\n\n", "\r\n", "```", "~~~", "\\[", "\\]", "\\(", "\\)", "$$"),
        *("[assistant]\n", "\n[tool: x]\n", "[final output]", "[tool call] f"),
        *("- ", "1. ", "e.g. "),
        "[... 12 characters cut out here ...]",
    ]
)


@given(st.lists(PIECES, max_size=40).map("".join) | st.text(max_size=60))
def test_spans_are_ordered_disjoint_and_lose_nothing(text: str) -> None:
    units = split_sentences(text)
    at = 0
    lost = ""
    for unit in units:
        assert at <= unit.start < unit.end <= len(text)
        assert not text[unit.start].isspace()
        assert not text[unit.end - 1].isspace()
        lost += text[at : unit.start] + "\n"
        at = unit.end
    lost += text[at:]
    for line in lost.splitlines():
        assert not line.strip() or HEADING.match(line.strip())


@pytest.mark.slow
def test_long_texts_are_split_in_reasonable_time() -> None:
    import time

    began = time.perf_counter()
    units = split_sentences("One sentence with $x. y$ in it. " * 6000)
    assert len(units) == 6000
    split_sentences("$" * 100_000)
    split_sentences("\\[" * 50_000)
    split_sentences("`a " * 50_000)
    assert time.perf_counter() - began < 20
