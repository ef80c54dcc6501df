"""Every shape in which a judge may answer; expectations written by hand."""

from __future__ import annotations

from typing import Any

import pytest

from agenteval.records import Criterion
from agenteval.utility.answers import LevelAnswer, read_answers, speaks_of

CLARITY = Criterion(name="Clarity", accepted_values=("unclear", "fair", "clear"))
ACCURACY = Criterion(
    id="accuracy", name="Final Accuracy", accepted_values=("wrong", "right"), allow_na=True
)
BOTH = (CLARITY, ACCURACY)
SECONDS = Criterion(name="Seconds", scale="numeric", numeric_range=(60.0, 0.0))
OFF, PARSE, MISSING = "unscored:off_scale", "unscored:parse", "unscored:missing"


def labels(value: Any, *criteria: Criterion) -> dict[str, str | None]:
    read = read_answers(value, criteria or BOTH).by_path
    return {p: a.label if isinstance(a, LevelAnswer) else a.status for p, a in read.items()}


def test_missing_off_scale_and_extra_are_told_apart() -> None:
    value = {"clarity": "mostly fair", "humour": "good"}
    assert labels(value) == {"clarity": OFF, "accuracy": MISSING}
    answers = read_answers(value, BOTH)
    assert (answers.extra, answers.missing()) == (["humour"], ["clarity", "accuracy"])


@pytest.mark.parametrize(
    ("entry", "expected"),
    [
        ({"label": "fair", "score": 7}, "fair"),  # another scale beside it says nothing
        ({"label": "mostly", "score": "fair"}, OFF),
        ({"accepted_values": ["unclear", "fair"], "assessment": "fair"}, "fair"),
        # probabilities are those of the levels and sum to 1
        ({"probabilities": {"unclear": 0.2, "fair": 0.3, "clear": 0.5}}, "clear"),
        ({"probabilities": {"fair": 0.6, "clear": 0.4}, "label": "clear"}, PARSE),
        ({"probabilities": {"fair": 0.6, "clear": 0.4}, "label": "fair"}, "fair"),
        ({"probabilities": {"unclear": 0.5, "fair": 0.525}}, OFF),
        ({"probabilities": {"unclear": 0.5, "fair": 0.475}}, OFF),
        ({"probabilities": {"unclear": -0.5, "fair": 1.5}}, OFF),
        ({"probabilities": {"good": 1.0}}, OFF),
        ({"probabilities": {"fair": True}}, OFF),
        ({"probabilities": {"fair": 0.5, "Fair": 0.5}}, OFF),
        (0.5, OFF),
        ({"label": ["fair"]}, MISSING),
    ],
)
def test_an_entry(entry: Any, expected: str) -> None:
    assert labels({"clarity": entry})["clarity"] == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ({"evaluation": {"label": "fair"}}, "fair"),
        ([{"score": "fair"}, {"score": "clear"}], PARSE),
        ({"clarity": "clear", "score": "fair"}, PARSE),
        ({"accuracy": "fair", "score": "fair"}, MISSING),  # the score of accuracy?
        ({"criterion": "accuracy", "score": "fair"}, MISSING),
    ],
)
def test_a_single_criterion_need_not_be_named(value: Any, expected: str) -> None:
    assert labels(value, CLARITY) == {"clarity": expected}
    assert labels({"score": "fair"}) == {"clarity": MISSING, "accuracy": MISSING}


def test_a_score_counts_on_its_own_scale() -> None:
    points = Criterion(name="Points", scale="numeric", numeric_range=(0, 5))
    for value, expected in (
        ({"points": 4, "max_score": 5}, "4"),
        ({"points": {"score": 4, "scale": "0-10"}}, OFF),
        ({"scores": {"points": "4"}, "out of": 10}, OFF),
        ({"points": ".4"}, "0.4"),
    ):
        assert labels(value, points) == {"points": expected}


@pytest.mark.parametrize(("text", "label"), [(" 7.5 ", "7.5"), ("15/60", "15"), ("ten", "10")])
def test_a_number_may_be_written_as_text(text: str, label: str) -> None:
    answer = read_answers({"seconds": text}, (SECONDS,)).by_path["seconds"]
    assert isinstance(answer, LevelAnswer)
    assert (answer.label, answer.match) == (label, "tolerant")
    assert answer.value == pytest.approx((60 - float(label)) / 60)
    for other in ("15 s", "15/30", "1_0", "inf", "nan", "15%", "10-15", "61", "-1"):
        assert labels({"seconds": other}, SECONDS) == {"seconds": OFF}


@pytest.mark.parametrize(
    ("value", "speaks"),
    [
        ({"clarity": None}, True),  # nothing is said, but in answer
        ({"clarity": {"explanation": "hard to say"}}, True),
        ({"clarity": {"label": ["fair"]}}, True),
        ({"clarity": ["unclear", "fair", "clear"]}, False),
        ({"clarity": {"accepted_values": ["unclear", "clear"], "explanation": "x"}}, False),
        ({"clarity": {"type": "string"}}, False),
        ({"humour": "fair"}, False),
    ],
)
def test_what_speaks_of_a_criterion(value: Any, speaks: bool) -> None:
    assert speaks_of(value, BOTH) is speaks


@pytest.mark.parametrize("stated", ["clear", {"probabilities": {"clear": 0.75, "fair": 0.25}}, 7])
def test_while_the_order_is_unclear_an_answer_has_a_label_and_no_value(stated: Any) -> None:
    number = Criterion(name="Clarity", scale="numeric", numeric_range=(0, 10))
    for order, value in (("worst_to_best", True), ("unclear", False)):
        criterion = (number if stated == 7 else CLARITY).model_copy(update={"order": order})
        (answer,) = read_answers({"clarity": stated}, (criterion,)).by_path.values()
        assert isinstance(answer, LevelAnswer)
        assert (answer.label is not None, answer.value is not None) == (True, value)
        if value and isinstance(stated, dict):
            assert answer.value == pytest.approx(0.25 * 0.5 + 0.75)
