"""The static check: each kind is found, and good rubrics are left in peace."""

from __future__ import annotations

from pathlib import Path

import pytest

from agenteval.records import Criterion
from agenteval.utility.bank import load_bank
from agenteval.utility.criteria_file import load_criteria
from agenteval.utility.rubric_check import check_criteria

REVIEWED = sorted((Path(__file__).parents[2] / "criteria").glob("*.reviewed.json"))
SEEN = "What an examiner can see in the work: wording, order and symbols."


def criterion(name: str = "Clarity", *levels: str, **more: object) -> Criterion:
    fields: dict[str, object] = {"description": SEEN, **more}
    return Criterion(name=name, accepted_values=levels or ("poor", "fair", "good"), **fields)


def kinds(*criteria: Criterion) -> list[tuple[str, str, str]]:
    return [(i.criterion_id, i.kind, i.severity) for i in check_criteria(criteria)]


def listed(text: str) -> list[str]:
    """The names in a text with commas between them."""
    return [" ".join(name.split()) for name in text.split(",")]


def test_duplicates_by_name_and_by_id() -> None:
    same = kinds(criterion("Clarity"), criterion("clarity "))
    assert same == [("clarity", "duplicate", "error")]
    by_id = kinds(criterion("Clarity"), criterion("Readability", id="clarity"))
    assert by_id == [("clarity", "duplicate", "error")]


def test_order_and_scale() -> None:
    assert kinds(criterion("A b", "good", "fair", "poor")) == [("a-b", "best_first", "error")]
    unclear = criterion("A b", "good", "poor", "fair", order="unclear")
    assert kinds(unclear) == [("a-b", "unclear_order", "error")]
    stated = criterion("A b", "red", "green", scale="nominal", order="unclear")
    assert kinds(stated) == [("a-b", "nominal", "warning")]
    unstated = criterion("A b", "algebra", "geometry", "calculus")
    assert kinds(unstated) == [("a-b", "nominal", "error")]


@pytest.mark.parametrize(
    ("levels", "counted"),
    [
        ((">40 seconds", "10-40 seconds", "<10 seconds"), True),
        (("$1 - $5", "< $1"), True),
        (("10+ tool calls", "5-9 tool calls", "0-4 tool calls"), True),
        (("0% of the steps", "100% of the steps"), False),
        (("slow (> 5 s)", "fast (< 5 s)"), False),
        (("1", "2", "3"), False),
    ],
)
def test_levels_in_units_of_time_cost_or_count_belong_to_a_program(
    levels: tuple[str, ...], counted: bool
) -> None:
    expected = [("a-b", "measurable", "warning")] if counted else []
    assert kinds(criterion("A b", *levels)) == expected


def test_number_of_levels() -> None:
    eight = criterion("A b", *(str(n) for n in range(1, 9)))
    assert kinds(eight) == [("a-b", "too_many", "warning")]
    assert kinds(criterion("A b", *(str(n) for n in range(1, 8)))) == []


@pytest.mark.parametrize(
    ("levels", "overlap"),
    [
        (("wrong", "correct", "the correct answer"), True),
        (("unclear", "somewhat clear", "partially clear", "clear"), True),
        (("unclear", "very clear", "highly clear"), True),
        (("irrelevant", "relevent", "relevant"), True),
        (("unclear", "clear", "very clear"), False),
        (("not clear", "slightly clear", "somewhat clear", "mostly clear", "clear"), False),
        (("incomplete", "complete"), False),
        (("1 - low quality", "2 - low quality"), False),
        (("minor errors", "no errors"), False),
        (("level 1", "level 2", "level 3"), False),
    ],
)
def test_labels_that_cannot_be_told_apart(levels: tuple[str, ...], overlap: bool) -> None:
    found = [k for _, k, _ in kinds(criterion("A b", *levels))]
    assert found == (["overlap"] if overlap else [])


def test_a_label_that_stands_twice() -> None:
    twice = {**dict(criterion("A b")), "accepted_values": ("poor", "good", "Good.")}
    assert kinds(Criterion.model_construct(**twice)) == [("a-b", "same_label", "error")]


def test_what_a_program_should_measure() -> None:
    measured = """
        Response time, Number of steps, Token usage, Latency, Tool call count, API cost,
        Response length, Execution speed, Number of tool calls, Time taken, Lines of code,
        Time to completion, Speed of response, Runtime, Memory usage
    """
    only_sounds = """
        Timeliness of the warning, Step justification, Token of gratitude, Cost awareness,
        Handling of long inputs, Stepwise reasoning, Tool call arguments, Real-time safety,
        Number theory, Sense of time
    """
    for name in listed(measured):
        assert [k for _, k, _ in kinds(criterion(name))] == ["measurable"], name
    for name in listed(only_sounds):
        assert kinds(criterion(name)) == [], name
    for description in (
        "How quickly the system reaches the end.",
        "The number of tool calls used.",
        "Whether the time taken is acceptable.",
        "The duration from question to answer.",
    ):
        told_kinds = [k for _, k, _ in kinds(criterion("Efficiency", description=description))]
        assert told_kinds == ["measurable"], description


@pytest.mark.parametrize(
    ("name", "description", "constant"),
    [
        ("Level", "Rates the level of difficulty of the given problem.", True),
        ("Problem difficulty", SEEN, True),
        ("Difficulty level", SEEN, True),
        ("Complexity of the task", SEEN, True),
        ("Problem type", SEEN, True),
        ("Level", "The difficulty of the problem given.", True),
        ("Mathematics discipline", SEEN, True),
        ("Stays on the topic of the question", SEEN, False),
        ("Handling difficulty", "How the work deals with difficult parts of the problem.", False),
        ("Problem understanding", SEEN, False),
    ],
)
def test_constant_by_construction(name: str, description: str, constant: bool) -> None:
    found = [k for _, k, _ in kinds(criterion(name, description=description))]
    assert found == (["constant"] if constant else [])


@pytest.mark.parametrize(
    ("description", "vague"),
    [
        ("", True),
        ("Clarity.", True),
        ("The overall clarity of the solution", True),
        ("Whether symbols are introduced before use.", False),
    ],
)
def test_vague(description: str, vague: bool) -> None:
    found = kinds(criterion("Clarity", description=description))
    assert found == ([("clarity", "vague", "warning")] if vague else [])


@pytest.mark.parametrize(
    ("name", "mixed"),
    [
        ("Clarity and correctness", True),
        ("Accuracy & efficiency", True),
        ("Readability/completeness", True),
        ("Clarity and readability", False),
        ("Correctness and accuracy", False),
        ("Logic and structure", False),
        ("Use of concepts and formulas", False),
        ("Inputs and outputs", False),
    ],
)
def test_two_things_in_one(name: str, mixed: bool) -> None:
    assert [k for _, k, _ in kinds(criterion(name))] == (["mixed"] if mixed else [])


def test_sub_criteria_are_checked_under_their_path() -> None:
    parts = (criterion("Wording"), criterion("Order", "good", "poor"), criterion("wording"))
    parent = Criterion(name="Clarity", description=SEEN, sub_criteria=parts)
    assert kinds(parent) == [
        ("clarity/wording", "duplicate", "error"),
        ("clarity/order", "best_first", "error"),
    ]


@pytest.mark.parametrize("phrasing", [0, 1, 2])
def test_no_false_alarm_on_the_bank(phrasing: int) -> None:
    bank = [concept.criterion(phrasing) for concept in load_bank()]
    assert len(bank) >= 40
    assert check_criteria(bank) == []


@pytest.mark.parametrize("path", REVIEWED, ids=lambda path: path.name)
def test_no_false_alarm_on_the_reviewed_criteria(path: Path) -> None:
    criteria = load_criteria(path).criteria.criteria
    assert len(criteria) >= 5
    assert check_criteria(criteria) == []
