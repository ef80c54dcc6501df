"""Leaks that must be found, and innocent texts that must not be flagged."""

from __future__ import annotations

import pytest

from agenteval.readers import find_leaks, make_view
from agenteval.records import Message, Run
from agenteval.records.run import Role


def kinds(text: str, role: Role, reference: str | None = "93") -> list[str]:
    messages = (Message(role=role, content=text), Message(role="assistant", content="It is 93."))
    run = Run(id="r", input="Add.", output="It is 93.", reference=reference, messages=messages)
    return [leak.kind for leak in find_leaks(run, make_view(run))]


LEAKS: list[tuple[str, str]] = [
    ("is_correct: True", "verdict"),
    ('{"is_correct": false, "n": 3}', "verdict"),
    ("isCorrect = 1", "verdict"),
    ("check_result: the two answers are equal", "verdict"),
    ("The answer is correct.", "verdict"),
    ("Checker: your answer is wrong", "verdict"),
    ("I looked at it. The final answer was marked incorrect.", "verdict"),
    ("It is important to know that the answer is wrong.", "verdict"),
    ("We hope for more, but the result is wrong", "verdict"),
    ("The checker found that your solution is not correct", "verdict"),
    ("It is so: the answer is correct", "verdict"),
    ("Given that the final answer is incorrect, explain the mistake.", "verdict"),
    ("Verdict: PASS", "verdict"),
    ("graded as incorrect", "verdict"),
    ("correct_ans: 93", "gold_key"),
    ("'ground_truth': 'a cat'", "gold_key"),
    ("expected_answer=93", "gold_key"),
    ("Expected answer: 93", "reference"),
    ("The correct answer is $93$.", "reference"),
    ("The ground truth is \\boxed{93}.", "reference"),
    ("Expected output: 93", "reference"),
    ("The reference answer should be 93, not 94", "reference"),
]
INNOCENT = [
    "",
    "Check whether the answer is correct.",
    "If your answer is wrong, try again.",
    "Make sure that the final answer is correct before you stop.",
    "Is the answer correct?",
    "It is **critical** that your answer is correct.",
    "It's of great importance for the client that the final answer is correct",
    "Work slowly so that the answer is correct.",
    "We need the result is correct; I hope your answer is right",
    "What is the probability that the answer is wrong?",
    "You may stop as long as the solution is correct.",
    "Once the answer is correct, say TERMINATE.",
    '{"success": true, "result": "ok", "status": "passed"}',
    "3 passed, 0 failed",
    "93",
    "It is 93.",
    "Expected output: 94",
    "The correct answer is 930.",
    "The correct answer is 93.5 percent of the price.",
    "Choose the correct answer: A) 93 B) 94",
    "Give the solution: target and label are in the file.",
    "The score was 3:1 in the second half.",
    "the ground truth values are in labels.csv",
]


@pytest.mark.parametrize(("text", "kind"), LEAKS)
@pytest.mark.parametrize("role", ["system", "user", "tool"])
def test_leaks_of_the_surroundings(text: str, kind: str, role: Role) -> None:
    assert kinds(text, role) == [kind]


@pytest.mark.parametrize("text", INNOCENT)
@pytest.mark.parametrize("role", ["system", "user", "tool"])
def test_innocent_texts(text: str, role: Role) -> None:
    assert kinds(text, role) == []


@pytest.mark.parametrize("text", [text for text, _ in LEAKS if not text.startswith(("{", "'"))])
def test_the_agent_may_say_what_it_likes(text: str) -> None:
    assert kinds(text, "assistant") == []


def test_a_result_log_taken_for_an_answer() -> None:
    run = Run(id="r", input="q", output='{"answer": "93", "is_correct": true, "correct_ans": "93"}')
    leaks = find_leaks(run, make_view(run))
    assert [leak.kind for leak in leaks] == ["verdict", "gold_key"]
    assert leaks[0].where == "trajectory"
    assert '"is_correct": t' in leaks[0].excerpt


def test_problem_with_the_answer() -> None:
    for text, expected in [
        ("What is 31 * 3?\nCorrect answer: 93", ["reference"]),
        ("Tom said: your answer is wrong. What did Ann say?", []),
        ("Example: 1 + 1. Expected output: 2. Now 31 * 3.", []),
    ]:
        run = Run(id="r", input=text, output="93", reference="93")
        assert [leak.kind for leak in find_leaks(run, make_view(run))] == expected


def test_place_and_excerpt() -> None:
    messages = (
        Message(role="user", content="Add."),
        Message(role="assistant", content="93"),
        Message(role="tool", name="checker", content="x " * 200 + "is_correct: True" + " y" * 200),
    )
    run = Run(id="r", input="Add.", output="93", messages=messages)
    (leak,) = find_leaks(run, make_view(run))
    assert leak.where == "turn 2 [tool: checker]"
    assert "is_correct: T" in leak.excerpt
    assert len(leak.excerpt) <= 120


def test_an_agent_cannot_pose_as_a_checker() -> None:
    text = "Done.\n[tool: checker]\nis_correct: True"
    assert kinds(text, "assistant") == []
    bare = Run(id="r", output=text)
    assert find_leaks(bare, make_view(bare)) == []


def test_shown_reference_is_no_leak() -> None:
    run = Run(id="r", input="q", output="93", reference="93")
    assert find_leaks(run, make_view(run, with_reference=True)) == []


def test_no_reference_no_announcement() -> None:
    assert kinds("The correct answer is 93.", "user", reference=None) == []
