"""The static check: each kind is found, and good rubrics are left in peace."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.records import Criterion
from agenteval.utility.bank import load_bank
from agenteval.utility.criteria_file import load_criteria
from agenteval.utility.rubric_check import check_criteria

CRITERIA = Path(__file__).parents[2] / "criteria"
SEEN = "What an examiner can see in the work: wording, order and symbols."


def criterion(name: str = "A b", *levels: str, **more: object) -> Criterion:
    fields: dict[str, object] = {"description": SEEN, **more}
    return Criterion(name=name, accepted_values=levels or ("poor", "fair", "good"), **fields)


def issues(*criteria: Criterion) -> list[str]:
    return [f"{i.criterion_id} {i.kind} {i.severity}" for i in check_criteria(criteria)]


@pytest.mark.parametrize(
    ("criteria", "expected"),
    [
        ([criterion("Clarity"), criterion("clarity ")], "clarity duplicate error"),
        ([criterion("Clarity"), criterion("Legible", id="clarity")], "clarity duplicate error"),
        ([criterion("A b", "good", "fair", "poor")], "a-b best_first error"),
        ([criterion("A b", "good", "poor", "fair", order="unclear")], "a-b unclear_order error"),
        ([criterion("A b", "red", "green", scale="nominal")], "a-b nominal warning"),
        ([criterion("A b", "algebra", "geometry", "calculus")], "a-b nominal error"),
        ([criterion("A b", *"12345678")], "a-b too_many warning"),
        ([criterion("A b", *"1234567")], ""),
        ([criterion(sub_criteria=(criterion("C", "good", "poor"),))], "a-b/c best_first error"),
        (
            [criterion(sub_criteria=(criterion("C"), criterion("c", id="d")))],
            "a-b/d duplicate error",
        ),
    ],
)
def test_issues_of_names_orders_and_numbers(criteria: list[Criterion], expected: str) -> None:
    assert issues(*criteria) == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("levels", "expected"),
    [
        (">40 seconds | 10-40 seconds | <10 seconds", "measurable"),
        ("$1 - $5 | < $1", "measurable"),
        ("10+ tool calls | 5-9 tool calls | 0-4 tool calls", "measurable"),
        ("0% of the steps | 100% of the steps", ""),
        ("slow (> 5 s) | fast (< 5 s)", ""),
        ("wrong | correct | the correct answer", "overlap"),
        ("unclear | somewhat clear | partially clear | clear", "overlap"),
        ("unclear | very clear | highly clear", "overlap"),
        ("irrelevant | relevent | relevant", "overlap"),
        ("unclear | clear | very clear", ""),
        ("not clear | slightly clear | somewhat clear | mostly clear | clear", ""),
        ("incomplete | complete", ""),
        ("1 - low quality | 2 - low quality", ""),
        ("minor errors | no errors", ""),
        ("level 1 | level 2 | level 3", ""),
    ],
)
def test_levels_that_a_program_counts_or_nobody_can_tell_apart(levels: str, expected: str) -> None:
    found = issues(criterion("A b", *levels.split(" | ")))
    assert found == ([f"a-b {expected} warning"] if expected else [])


def test_a_label_that_stands_twice() -> None:
    twice = {**dict(criterion()), "accepted_values": ("poor", "good", "Good.")}
    assert issues(Criterion.model_construct(**twice)) == ["a-b same_label error"]


@pytest.mark.parametrize(
    ("kind", "names"),
    [
        (
            "measurable",
            "Response time, Number of steps, Latency, Tool call count, API cost, Response length, "
            "Execution speed, Time taken, Lines of code, Time to completion, Memory usage",
        ),
        (
            "",
            "Timeliness of the warning, Step justification, Token of gratitude, Cost awareness, "
            "Handling of long inputs, Tool call arguments, Real-time safety, Sense of time",
        ),
        (
            "constant",
            "Problem difficulty, Difficulty level, Complexity of the task, Problem type, "
            "Mathematics discipline",
        ),
        ("", "Stays on the topic of the question, Handling difficulty, Problem understanding"),
        ("mixed", "Clarity and correctness, Accuracy & efficiency, Readability/completeness"),
        (
            "",
            "Clarity and readability, Correctness and accuracy, Logic and structure, "
            "Use of concepts and formulas",
        ),
    ],
)
def test_what_a_name_asks_for(kind: str, names: str) -> None:
    for name in names.split(", "):
        assert [i.kind for i in check_criteria([criterion(name)])] == [kind] * bool(kind), name


@pytest.mark.parametrize(
    ("name", "description", "kind"),
    [
        ("Efficiency", "How quickly the system reaches the end.", "measurable"),
        ("Efficiency", "The number of tool calls used.", "measurable"),
        ("Efficiency", "The duration from question to answer.", "measurable"),
        ("Level", "Rates the level of difficulty of the given problem.", "constant"),
        ("Handling", "How the work deals with difficult parts of the problem.", ""),
        ("Clarity", "", "vague"),
        ("Clarity", "The overall clarity of the solution", "vague"),
        ("Clarity", "Whether symbols are introduced before use.", ""),
    ],
)
def test_what_a_description_asks_for(name: str, description: str, kind: str) -> None:
    found = check_criteria([criterion(name, description=description)])
    assert [i.kind for i in found] == [kind] * bool(kind)


def test_no_false_alarm_on_the_bank_and_the_reviewed_criteria() -> None:
    for phrasing in range(3):
        assert check_criteria([concept.criterion(phrasing) for concept in load_bank()]) == []
    for path in CRITERIA.glob("*.reviewed.json"):
        assert check_criteria(load_criteria(path).criteria.criteria) == []
