"""Degenerate answers, and short real answers that are none."""

from __future__ import annotations

import pytest

from agenteval.readers import degenerate
from agenteval.records import Message, Run, Span, ToolCall

PROBLEM = "What is $x^2 + 1$ for x = 3?"
DEGENERATE = [
    ("", "white space"),
    (" \n\t", "white space"),
    ("...", "white space"),
    ("?!", "white space"),
    ("```\n```", "white space"),
    ("---", "white space"),
    ("\u200b", "white space"),
    ("Answer:", "opener"),
    ("**Final answer**", "opener"),
    ("## Solution\n\nAnswer:\n", "opener"),
    ("Thought process:", "opener"),
    ("TERMINATE", "opener"),
    ("Let’s think step by step.", "opener"),
    (PROBLEM, "echo"),
    ("what is  $X^2 + 1$\nfor x = 3", "echo"),
    (f"{PROBLEM}\n{PROBLEM}", "echo"),
    ("a" * 200, "one character"),
    ("a " * 150, "one character"),
    ("no " * 100 + "yes", "one word"),
    ("x" * 190 + "y" * 19, "one character"),
]
REAL = [
    "42",
    "Paris",
    "yes",
    "x",
    "∞",
    "👍",
    "<",
    "=",
    "7.",
    "答え",
    "Answer: 10",
    "The answer is 10.",
    "Solution\n10",
    "What is $x^2 - 1$ for x = 3?",
    f"{PROBLEM} It is 10.",
    "a" * 199,
    "x" * 180 + "y" * 20,
    "no " * 60 + "but then again it may be ten after all, who knows it well",
    "Answer: ∞",
    "Answer: <",
    "Final answer: 👍",
    "0 1 " * 60,
]


@pytest.mark.parametrize(("text", "reason"), DEGENERATE)
def test_degenerate(text: str, reason: str) -> None:
    for run in (
        Run(id="r", input=PROBLEM, output=text),
        Run(id="r", input=PROBLEM, messages=(Message(role="assistant", content=text),)),
    ):
        found = degenerate(run)
        assert found is not None
        assert reason in found


@pytest.mark.parametrize("text", REAL)
def test_real(text: str) -> None:
    assert degenerate(Run(id="r", input=PROBLEM, output=text)) is None


def test_all_texts_count_together() -> None:
    said = Message(role="assistant", content="It is 10.")
    stop = Message(role="assistant", content="TERMINATE")
    assert degenerate(Run(id="r", messages=(said, stop), output="TERMINATE")) is None
    assert degenerate(Run(id="r", messages=(stop,), output="Answer:")) == "only a stock opener"


def test_words_of_others_do_not_count() -> None:
    other = Message(role="user", content="It is 10.")
    assert degenerate(Run(id="r", messages=(other,))) is not None


def test_acting_without_words() -> None:
    call = Message(role="assistant", tool_calls=(ToolCall(name="submit", arguments={"x": 10}),))
    assert degenerate(Run(id="r", messages=(call,))) is None
    assert degenerate(Run(id="r", spans=(Span(id="s"),))) is None


def test_a_short_input_can_be_its_own_answer() -> None:
    assert degenerate(Run(id="r", input="Paris?", output="Paris")) is None
