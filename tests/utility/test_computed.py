"""Criteria computed from a reference: right, wrong, or no score, by hand."""

from __future__ import annotations

import asyncio
import json
import re
from pathlib import Path
from typing import Any

import pytest

import agenteval
from agenteval.engine.judging import JudgeUnit, judge
from agenteval.errors import InputError
from agenteval.readers import make_view
from agenteval.records import Criterion, Failure, Run, Score
from agenteval.testing import serve
from agenteval.utility.computed import (
    KINDS,
    WithComputed,
    check_computed,
)
from agenteval.utility.embedded import EmbeddedJudge

ROOT = Path(__file__).parents[2]


def criterion(kind: str, **options: Any) -> Criterion:
    return Criterion(
        name="Right",
        accepted_values=("wrong", "right"),
        scale="binary",
        judge=kind,
        judge_options=options,
    )


def test_right_and_wrong() -> None:
    for line in (ROOT / "tests/data/computed.jsonl").read_text("utf-8").splitlines():
        row = json.loads(line)
        score = result(row["judge"], row["output"], row["reference"], **row["options"])
        assert isinstance(score, Score), line
        expected = ("right", 1.0) if row["right"] else ("wrong", 0.0)
        assert (score.label, score.value) == expected, line
        assert score.explanation


def result(kind: str, output: str, reference: str | None, **options: Any) -> Score | Failure:
    run = Run(id="r", input="q", output=output, reference=reference)
    unit = JudgeUnit(run, make_view(run), (criterion(kind, **options),))
    (only,) = asyncio.run(judge(WithComputed(EmbeddedJudge()), unit)).results
    return only


@pytest.mark.parametrize(
    ("kind", "output", "reference", "status", "why"),
    [
        ("numeric", "7", None, "unscored:unsupported", "reference"),
        ("numeric", "7", "seven", "unscored:unsupported", "'seven' does not contain a number"),
        ("json", "7", "{", "unscored:unsupported", "the reference cannot be used"),
        ("regex", "a" * 40, "(a+)+b", "error:timeout", "not finished after"),
    ],
)
def test_what_cannot_be_judged_has_no_score(
    kind: str, output: str, reference: str | None, status: str, why: str, monkeypatch: Any
) -> None:
    monkeypatch.setattr("agenteval.utility.computed.SECONDS", 1.0)
    failure = result(kind, output, reference)
    assert isinstance(failure, Failure)
    assert (failure.status, why in failure.message) == (status, True)


PARTS = (
    "It is 3π.|It is 3*sqrt(5).|3^7|2**3|3²|Answer: 3,14|Answer: 1.234,56|Answer: 3-20|"
    "Answer: 2024-05-03|Answer: 3:30|Answer: 3 1/2|Answer: 5 + 3|Answer: 3×10^3|x = 3, 9|"
    "It is 3 or 9."
)


@pytest.mark.parametrize("output", [*PARTS.split("|"), "3" * 500])
def test_a_number_that_is_a_part_of_something_else_is_no_answer(output: str) -> None:
    failure = result("numeric", output, "3")
    assert isinstance(failure, Failure)
    assert failure.status == "unscored:parse"
    assert "no single plain number" in failure.message


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"judge": "magic"}, "no judge 'magic'; known: exact, numeric, "),
        ({"judge": "expression"}, "criterion r: the judge 'expression' was removed"),
        ({"judge": "unit_test"}, "criterion r: the judge 'unit_test' was removed"),
        ({"judge": "numeric", "judge_options": {"keys": []}}, "numeric has no option 'keys'"),
        ({"judge": "regex", "judge_options": {"pattern": "("}}, "invalid pattern"),
        ({"judge": "numeric", "scale": "nominal"}, "levels from wrong to right"),
        ({"judge": "numeric", "allow_na": True}, "levels from wrong to right"),
        ({"judge": "json"}, "no run has a reference that json can use"),
        ({"judge_options": {"case": True}}, "judge_options need a judge"),
    ],
)
def test_what_is_refused(change: dict[str, Any], told: str) -> None:
    asked = Criterion.model_validate(
        {"name": "R", "accepted_values": ["no", "yes"], "scale": "binary"} | change
    )
    with pytest.raises(InputError, match=told):
        check_computed([asked], ["seven", None])


def test_beside_a_model_that_is_not_asked_for_it(tmp_path: Path) -> None:
    """One table, one request for a run; the copy without its answer is wrong."""
    clear = Criterion(name="Clear", accepted_values=("no", "yes"), scale="binary")
    runs = [
        Run(id=f"r{n}", task="t", input=f"q{n}", output=f"We add.\nAnswer: {n}", reference="2")
        for n in (1, 2)
    ]
    notes: list[object] = []

    def reply(body: dict[str, Any], _: int) -> str:
        assert "Right" not in body["messages"][1]["content"]
        return '{"clear": {"explanation": "it is", "label": "yes"}}'

    with serve(reply) as server:
        report = agenteval.quantify(
            runs,
            [clear, criterion("numeric")],
            judge="m",
            base_url=server.base_url,
            notify=notes.append,
            task=agenteval.Task(name="t", description="d"),
            store=tmp_path / "s.db",
        )
        assert len(server.requests) == 2
    values = {(s.criterion_id, s.explanation): s.value for s in report.scores}
    assert values["right", "states 1, the reference is 2"] == 0
    assert values["right", "states 2, the reference is 2"] == 1
    assert len(values) == 3  # both are clear in the same words
    assert "computed from the references, without a model: Right" in map(str, notes)


def test_a_corrected_reference_is_judged_anew(tmp_path: Path) -> None:
    for reference, label in (("4", "right"), ("5", "wrong"), ("4", "right")):
        run = Run(id="r", task="t", output="Answer: 4", reference=reference)
        report = agenteval.quantify(
            [run],
            [criterion("numeric")],
            judge="embedded",
            task=agenteval.Task(name="t", description="d"),
            store=tmp_path / "s.db",
        )
        assert [score.label for score in report.scores] == [label]


def test_mathematics(tmp_path: Path) -> None:
    """Success was set by those who wrote the runs; one system states an answer in passing."""
    report = agenteval.quantify(
        ROOT / "tasks/math/runs.jsonl",
        ROOT / "criteria/math.answer.json",
        judge="embedded",
        store=tmp_path / "s.db",
    )
    rows = list(report.records())
    unscored = {row["run_id"] for row in rows if row["label"] is None}
    systems = ("coder", "duo", "stepwise")  # the reference is an expression or a list
    unusable = {f"math-{n}-{system}" for n in ("05", "11", "12", "13") for system in systems}
    assert unscored == unusable | {"math-06-coder", "math-08-coder", "math-14-duo"}  # the answer is
    scored = [row for row in rows if row["label"] is not None]
    assert len(scored) == 45
    wrong = {row["run_id"] for row in scored if (row["label"] == "right") != row["success"]}
    assert wrong == {"math-20-coder"}


def test_the_page_names_every_kind_and_its_example_is_read() -> None:
    page = (ROOT / "docs/computed.md").read_text("utf-8")
    assert set(re.findall(r"^\| `(\w+)` \|", page, re.M)) - {"judge"} == set(KINDS)
    example = json.loads(page.split("```json")[1].split("```")[0])
    criteria = [Criterion.model_validate(one) for one in example["criteria"]]
    check_computed(criteria, ["3.50"])
    assert [c.judge for c in criteria] == ["numeric", None]
