"""drop_answer: which sentence is the answer, and that it goes wherever it is said."""

from __future__ import annotations

import json
import re

import pytest

from agenteval.readers.view import make_view
from agenteval.records import Message, Run
from tests.evaluators.utility.perturb.cases import PROSE, TASKS, do, plain, run_id, tools, views


@pytest.mark.parametrize(
    ("text", "removed"),
    [
        (
            "We add. $3 + 4 = 7$ it is.\n\nThe total is $\\boxed{7}$.\n\nThis is small.",
            ["The total is $\\boxed{7}$."],
        ),
        ("It works. 3 + 4 = 7.\n\n**Answer: 7**", ["3 + 4 = 7.", "**Answer: 7**"]),
        ("It works. The answer is 7 pens. A check: 7 - 4 = 3.", ["The answer is 7 pens."]),
        ("The result is exact. It is 12.50 or so.", ["It is 12.50 or so."]),
        ("Add up. So there are 36 of them. To check, 40 - 4 = 36 again, not 35.",
         ["So there are 36 of them."]),
        ("So far we have 3.\n\nA box has 9 pens.", ["A box has 9 pens."]),
        ("Sum: 3/4 + 1/4.\n\nThe area is 12π - 18·sqrt(3), about 6.5.\n\nWell done.",
         ["The area is 12π - 18·sqrt(3), about 6.5."]),
        ("Dear Ann,\n\nWe will send it. You need not pay.\n\nBob from Fix", ["You need not pay."]),
        ("Half a day each, so 3 days. In total that makes 3 days.",
         ["In total that makes 3 days."]),  # a single digit without a sign may be chance
        ("One is 36. Of the 36 doors 4 are red. The count is 36.",
         ["One is 36.", "The count is 36."]),
    ],
)  # fmt: skip
def test_what_is_taken_for_the_answer(text: str, removed: list[str]) -> None:
    assert list(do(plain(text), "drop_answer").removed) == removed


def test_answer_said_thrice() -> None:
    got = do(plain(PROSE), "drop_answer")
    assert got.removed == ("That makes 60.", "So there are 60 pens on the table.", "**Answer: 60**")
    assert not re.search(r"\b60\b", got.view.trajectory)
    assert got.detail == "labelled answer"


def test_the_final_output_goes_too() -> None:
    """Said in the last message but one and under [final output]; tool output stays."""
    got = do(tools(), "drop_answer")
    said = "So the answer is 25."
    assert got.removed == ("That makes 25 of them.", said, said)
    assert got.view.trajectory.endswith("[final output]\n")
    assert "[tool: check]\n25" in got.view.trajectory


def test_the_bare_value_under_final_output() -> None:
    run = Run(
        id="r",
        input="q",
        messages=(Message(role="assistant", content="We add. Hence the sum is 14. I am sure."),
                  Message(role="assistant", content="Very good.")),
        output="14",
    )  # fmt: skip
    got = do(make_view(run), "drop_answer")
    assert got.removed == ("Hence the sum is 14.", "14")


def test_the_value_in_other_words_under_final_output() -> None:
    """A sentence there that holds the value goes, wherever in it the value stands."""
    run = Run(
        id="r",
        input="q",
        messages=(Message(role="assistant", content="We add. **Answer: 140**"),),
        output="All 140 of them will do. It was fun.",
    )
    assert do(make_view(run), "drop_answer").removed == (
        "**Answer: 140**",
        "All 140 of them will do.",
    )


def test_what_cannot_be_dropped() -> None:
    assert do(plain("42"), "drop_answer").reason == "the final answer is all that the system wrote"
    assert do(plain("```\n1\n```"), "drop_answer").reason == "the system wrote nothing but code"


@pytest.mark.parametrize(
    ("run", "removed"),
    [
        ("math-01-stepwise", ["So there are 35 such numbers.", "**Answer: 35**"]),
        ("math-20-coder", ["Expected value: 161/36, about 4.47."]),
        ("math-01-duo",
         ["That one belongs to the count, which makes 35 + 1 = 36.", "The count is 36."]),
    ],
)  # fmt: skip
def test_one_of_each_style(run: str, removed: list[str]) -> None:
    assert list(do(run_id("math", run), "drop_answer").removed) == removed


def test_the_recorded_answer_is_never_last() -> None:
    """No math run ends in its recorded answer once the answer is dropped."""
    lines = (TASKS / "math" / "runs.jsonl").read_text(encoding="utf-8").splitlines()
    answers = {r["id"]: str(r["metadata"]["answer"]) for r in map(json.loads, lines)}
    for view in views("math"):
        got = do(view, "drop_answer").view.trajectory
        assert got != view.trajectory
        last = got.rstrip(" \n*$.").splitlines()[-1]
        assert not last.endswith((f"= {answers[view.run_id]}", f"Answer: {answers[view.run_id]}"))
