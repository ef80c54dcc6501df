"""Every shape in which a judge may answer; expectations written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.records import Criterion
from agenteval.utility.answers import (
    LevelAnswer,
    NoAnswer,
    read_answers,
    speaks_of,
)

CLARITY = Criterion(name="Clarity", accepted_values=("unclear", "fair", "clear"))
ACCURACY = Criterion(
    id="accuracy", name="Final Accuracy", accepted_values=("wrong", "right"), allow_na=True
)
BOTH = (CLARITY, ACCURACY)


def labels(value: Any, criteria: tuple[Criterion, ...] = BOTH) -> dict[str, str | None]:
    read = read_answers(value, criteria).by_path
    return {p: a.label if isinstance(a, LevelAnswer) else a.status for p, a in read.items()}


GOOD = {"clarity": "fair", "accuracy": "right"}


def test_missing_off_scale_and_extra_are_told_apart() -> None:
    answers = read_answers({"clarity": "mostly fair", "humour": "good"}, BOTH)
    assert labels({"clarity": "mostly fair", "humour": "good"}) == {
        "clarity": "unscored:off_scale",
        "accuracy": "unscored:missing",
    }
    assert answers.extra == ["humour"]
    assert answers.missing() == ["clarity", "accuracy"]


def test_probabilities_give_the_expected_value() -> None:
    value = {"clarity": {"probabilities": {"unclear": 0.2, "fair": 0.3, "clear": 0.5}}}
    answer = read_answers(value, (CLARITY,)).by_path["clarity"]
    assert isinstance(answer, LevelAnswer)
    assert answer.value == pytest.approx(0.2 * 0 + 0.3 * 0.5 + 0.5 * 1)
    assert answer.label == "clear"


@pytest.mark.parametrize(
    "masses",
    [
        {"unclear": 0.2, "fair": 0.3},  # does not sum to 1
        {"unclear": 0.6, "fair": 0.6},
        {"unclear": 0.4, "fair": 0.4},
        {"unclear": 0.5, "fair": 0.525},
        {"unclear": 0.5, "fair": 0.475},
        {"unclear": -0.5, "fair": 1.5},
        {"good": 1.0},
        {"fair": True},
        {"fair": 0.5, "Fair": 0.5},
    ],
)
def test_bad_probabilities_are_off_scale(masses: dict[str, Any]) -> None:
    assert labels({"clarity": {"probabilities": masses}})["clarity"] == "unscored:off_scale"


def test_sub_criteria_are_leaves_with_paths() -> None:
    parent = Criterion(
        name="Quality",
        sub_criteria=(CLARITY, Criterion(name="Tone", accepted_values=("rude", "kind"))),
    )
    for value in (
        {"quality": {"clarity": "clear", "tone": "kind"}},
        {"quality/clarity": "clear", "quality/tone": "kind"},
        {"ratings": {"quality": {"clarity": {"label": "clear"}, "tone": {"label": "kind"}}}},
    ):
        assert labels(value, (parent,)) == {"quality/clarity": "clear", "quality/tone": "kind"}


@pytest.mark.parametrize(
    ("said", "label"),
    [("15", "15"), (" 7.5 ", "7.5"), ("15/60", "15"), ("ten", "10"), (0, "0")],
)
def test_a_number_may_be_written_as_text(said: Any, label: str) -> None:
    seconds = Criterion(name="Seconds", scale="numeric", numeric_range=(60.0, 0.0))
    answer = read_answers({"seconds": said}, (seconds,)).by_path["seconds"]
    assert isinstance(answer, LevelAnswer)
    assert (answer.label, answer.match) == (label, "tolerant" if said else "exact")
    assert answer.value == pytest.approx((60 - float(label)) / 60)


@pytest.mark.parametrize("said", ["15 s", "15/30", "1_0", "inf", "nan", "15%", "10-15", "61", "-1"])
def test_a_number_on_another_scale_is_off_scale(said: str) -> None:
    seconds = Criterion(name="Seconds", scale="numeric", numeric_range=(60.0, 0.0))
    answer = read_answers({"seconds": said}, (seconds,)).by_path["seconds"]
    assert isinstance(answer, NoAnswer)
    assert answer.status == "unscored:off_scale"


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"label": "fair", "rating": "clear"}, "unscored:parse"),
        ({"label": "fair", "rating": "Fair."}, "fair"),
        ({"label": "fair", "score": 7}, "fair"),  # another scale beside it says nothing
        ({"label": "mostly", "score": "fair"}, "unscored:off_scale"),
        ({"label": None, "score": "fair"}, "unscored:missing"),
        ({"accepted_values": ["unclear", "fair"], "assessment": "fair"}, "fair"),
        ({"probabilities": {"fair": 0.6, "clear": 0.4}, "label": "clear"}, "unscored:parse"),
        ({"probabilities": {"fair": 0.6, "clear": 0.4}, "label": "fair"}, "fair"),
    ],
)
def test_an_entry_must_not_contradict_itself(entry: dict[str, Any], expected: str) -> None:
    assert labels({"clarity": entry}, (CLARITY,)) == {"clarity": expected}


@pytest.mark.parametrize(
    ("value", "speaks"),
    [
        ({"clarity": None}, True),  # nothing is said, but in answer
        ({"clarity": {"explanation": "hard to say"}}, True),
        ({"clarity": {"label": ["fair"]}}, True),
        ({"clarity": ["unclear", "fair", "clear"]}, False),
        ({"clarity": {"accepted_values": ["unclear", "clear"], "explanation": "x"}}, False),
        ({"clarity": {"type": "string"}}, False),
        ({"clarity": {}}, False),
        ({"humour": "fair"}, False),
    ],
)
def test_what_speaks_of_a_criterion(value: Any, speaks: bool) -> None:
    assert speaks_of(value, BOTH) is speaks


@pytest.mark.parametrize(
    ("criterion", "said"),
    [
        (CLARITY, "clear"),
        (CLARITY, {"probabilities": {"clear": 0.75, "fair": 0.25}}),
        (Criterion(name="Clarity", scale="numeric", numeric_range=(0, 10)), 7),
    ],
)
def test_while_the_order_is_unclear_an_answer_has_a_label_and_no_value(
    criterion: Criterion, said: Any
) -> None:
    for order, has_value in (("worst_to_best", True), ("unclear", False)):
        asked = criterion.model_copy(update={"order": order})
        (answer,) = read_answers({"clarity": said}, (asked,)).by_path.values()
        assert isinstance(answer, LevelAnswer)
        assert answer.label is not None
        assert (answer.value is not None) is has_value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"score": "fair", "reason": "x"}, "fair"),
        ([{"rating": "fair"}], "fair"),
        ({"evaluation": {"label": "fair"}}, "fair"),
        ([{"score": "fair"}, {"score": "clear"}], "unscored:parse"),
        ({"clarity": "clear", "score": "fair"}, "unscored:parse"),
        ({"accuracy": "fair", "score": "fair"}, "unscored:missing"),  # the score of accuracy?
        ({"criterion": "accuracy", "score": "fair"}, "unscored:missing"),
        ({"accuracy": {"score": "fair"}}, "unscored:missing"),
    ],
)
def test_a_single_criterion_need_not_be_named(value: Any, expected: str) -> None:
    assert labels(value, (CLARITY,)) == {"clarity": expected}
    assert labels({"score": "fair"}) == dict.fromkeys(GOOD, "unscored:missing")


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"points": 4, "max_score": 5}, "4"),
        ({"points": 4, "max_score": 10}, "unscored:off_scale"),
        ({"points": {"score": 4, "scale": "0-10"}}, "unscored:off_scale"),
        ({"scores": {"points": "4"}, "out of": 10}, "unscored:off_scale"),
        ({"points": ".4"}, "0.4"),
    ],
)
def test_a_score_counts_on_its_own_scale(value: Any, expected: str) -> None:
    points = Criterion(name="Points", scale="numeric", numeric_range=(0, 5))
    assert labels(value, (points,)) == {"points": expected}


@pytest.mark.parametrize("bad", [True, 1, 0.5, None, [], {}, {"label": ["fair"]}, {"label": None}])
def test_other_types_are_never_a_label(bad: Any) -> None:
    assert labels({"clarity": bad})["clarity"] in ("unscored:off_scale", "unscored:missing")
