"""Grades: on the scale, or missing; never a default."""

from __future__ import annotations

import json
from typing import Any

import pytest

from agenteval.errors import ReplyError, Transient
from agenteval.evaluators.traces.locator_reply import read_grades
from agenteval.models.wire import Request
from agenteval.records import GRADES
from tests.evaluators.traces.locator_world import honest, locator, made, user_text

FOUR = {
    name: {"reason": f"why {name}", "score": score}
    for name, score in zip(GRADES, (2, 5, 3, 4), strict=True)
}


def values(said: Any) -> dict[str, float | None]:
    return {name: grade.value for name, grade in read_grades(json.dumps(said)).value.items()}


def test_as_asked_for() -> None:
    read = read_grades(json.dumps({**FOUR, "overall": 3}))
    assert read.gap is None
    assert {n: (g.value, g.reason) for n, g in read.value.items()} == {
        "reliability": (2.0, "why reliability"),
        "security": (5.0, "why security"),
        "instruction_adherence": (3.0, "why instruction_adherence"),
        "plan_opt": (4.0, "why plan_opt"),
        "overall": (3.0, ""),
    }


def test_overall_is_the_mean_of_those_given_when_it_is_not_said() -> None:
    assert values(FOUR)["overall"] == 3.5  # (2 + 5 + 3 + 4) / 4
    three = {k: v for k, v in FOUR.items() if k != "security"}
    assert values(three) == {
        "reliability": 2.0, "security": None, "instruction_adherence": 3.0, "plan_opt": 4.0,
        "overall": 3.0,
    }  # fmt: skip
    assert "mean of the 3" in read_grades(json.dumps(three)).value["overall"].reason


@pytest.mark.parametrize("score", [0, 6, -1, 5.01, "good", "", None, True, [3], "4/5", 1e400])
def test_off_the_scale_is_missing_and_says_why(score: Any) -> None:
    text = json.dumps({**FOUR, "plan_opt": {"reason": "r", "score": score}, "overall": 2})
    if score == 1e400:
        text = text.replace("Infinity", "99")
    read = read_grades(text)
    assert read.value["plan_opt"].value is None
    assert read.gap == "no score from 1 to 5 for plan_opt"
    assert read.value["plan_opt"].reason.endswith("r")
    assert read.value["overall"].value == 2.0


def test_an_overall_off_the_scale_is_not_made_good() -> None:
    assert values({**FOUR, "overall": 9})["overall"] is None


def test_the_form_repeated_with_numbers_is_no_grade() -> None:
    """As a small model answers that fills in nothing but what the schema forces it to."""
    echo = {name: {"reason": "<text>", "score": 2.4} for name in GRADES}
    assert values({**echo, "overall": 4.5}) == dict.fromkeys((*GRADES, "overall"))
    assert values({**FOUR, "security": echo["security"]})["overall"] == 3.0  # (2 + 3 + 4) / 3


def test_other_layouts_and_fractions() -> None:
    flat = {f"{n}_score": 2.5 for n in GRADES} | {f"{n}_reasoning": "r" for n in GRADES}
    assert values({"errors": [], "scores": [{**flat, "overall": 2.5}]}) == dict.fromkeys(
        (*GRADES, "overall"), 2.5
    )
    assert values(dict.fromkeys(GRADES, "4"))["security"] == 4.0


@pytest.mark.parametrize(
    "text", ["", "All fives.", "{}", "[]", '{"findings": []}', '{"overall": 5}']
)
def test_a_reply_without_grades_is_none(text: str) -> None:
    with pytest.raises(ReplyError):
        read_grades(text)


def grading(what: Any) -> Any:
    def answer(request: Request) -> Any:
        return what if request.role.startswith("locator:grades") else honest(request)

    return answer


PLANTED = made(["PLANT(Invention) nine birds", "fine", "the end"])


async def test_the_grades_are_asked_once_from_notes_and_findings() -> None:
    judge, transport = locator(grading(json.dumps({**FOUR, "overall": 3})), grades=True)
    findings = await judge.locate(*PLANTED)
    asked = [r for r in transport.requests if r.role.startswith("locator:grades")]
    assert len(asked) == 1
    text = user_text(asked[0])
    for needed in ("Count the birds.", "seen up to S3", "S1 Invention (HIGH)", "nine birds."):
        assert needed in text
    assert {n: g.value for n, g in findings.grades.items()} == {
        "reliability": 2.0, "security": 5.0, "instruction_adherence": 3.0, "plan_opt": 4.0,
        "overall": 3.0,
    }  # fmt: skip


@pytest.mark.parametrize("what", ["none", Transient("down"), "{}"])
async def test_grades_that_fail_leave_the_findings_and_are_told(what: Any) -> None:
    judge, _ = locator(grading(what), grades=True)
    findings = await judge.locate(*PLANTED)
    assert len(findings.findings) == 1
    assert findings.grades == {}
    assert findings.status is None
    assert any(r.why.startswith("no grades: ") for r in findings.rejected)


async def test_a_grade_off_the_scale_is_asked_for_again_and_then_missing() -> None:
    bad = json.dumps({**FOUR, "security": {"reason": "r", "score": 11}})
    judge, transport = locator(grading(bad), grades=True)
    findings = await judge.locate(*PLANTED)
    assert [r.role for r in transport.requests][-2:] == ["locator:grades", "locator:grades:repair"]
    assert findings.grades["security"].value is None
    assert findings.grades["overall"].value == 3.0  # (2 + 3 + 4) / 3
    assert any("no score from 1 to 5 for security" in r.why for r in findings.rejected)


async def test_the_grader_is_told_what_was_not_read() -> None:
    def answer(request: Request) -> Any:
        good = request.role.startswith("locator:grades") or "S1 llm" in user_text(request)
        return grading(json.dumps(FOUR))(request) if good else "no"

    judge, transport = locator(answer, grades=True, overlap=0)
    await judge.locate(*made(["nine birds " * 1000, "ten birds " * 1000]))
    assert "parts were not judged" in user_text(transport.requests[-1])
