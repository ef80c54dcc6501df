"""Scorers of other frameworks as judges, on stand-ins of the frameworks."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest

import agenteval
from agenteval import Criterion, Run
from agenteval.errors import InputError
from agenteval.utility.function_judge import FunctionJudge
from agenteval.utility.scorers import FRAMEWORKS, ScorerGrade, Withheld, grade_for, scorer_of
from tests.support import scorers
from tests.support.scorers import MAKERS, BaseMetric

RIGHT = Criterion(name="Right answer", accepted_values=("wrong", "right"), scale="binary")
RUNS = [
    Run(id=f"r{i}", task="sums", input=f"{i} + {i}?", output=f"{i + i}", reference="4")
    for i in range(3)
]
every_framework = pytest.mark.parametrize("framework", sorted(MAKERS))


@pytest.fixture(autouse=True)
def frameworks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, module in scorers.modules().items():
        monkeypatch.setitem(sys.modules, name, module)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTEVAL_STORE", raising=False)


def test_there_is_a_stand_in_of_each() -> None:
    assert set(MAKERS) == FRAMEWORKS


@pytest.mark.slow
@every_framework
@pytest.mark.parametrize(
    ("value", "outcome"),
    [
        (0.25, 0.25),
        (True, 1.0),
        ("right", 1.0),
        (None, "unscored:missing"),
        (float("nan"), "unscored:missing"),
        ("splendid", "unscored:off_scale"),
        (7, "unscored:off_scale"),
        (ZeroDivisionError("a bug"), "error:judge"),
    ],
)
def test_what_it_gives_is_a_level_a_number_or_a_failure(
    framework: str, value: Any, outcome: Any
) -> None:
    def grade(answer: str, reference: Any) -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    report = agenteval.quantify(RUNS, [RIGHT], judge=MAKERS[framework](grade), version="1")
    got = [s.value for s in report.scores] + [f.status for f in report.failures]
    assert got == [outcome] * 3
    assert {s.explanation for s in report.scores} <= {"so it is"}
    if outcome == "error:judge":
        assert "ZeroDivisionError: a bug" in report.failures[0].message


@every_framework
def test_it_sees_problem_answer_and_the_reference_only_where_asked_for(framework: str) -> None:
    def grade(answer: str, reference: Any) -> Any:
        return answer == getattr(reference, "text", reference)

    judge = MAKERS[framework](grade)
    blind = agenteval.quantify(RUNS, [RIGHT], judge=judge, version="1")
    if framework in ("mlflow", "openevals"):  # None is what these hand over
        assert {s.value for s in blind.scores} == {0.0}
    else:
        assert {f.status for f in blind.failures} == {"error:judge"}
        assert "the reference is not shown to the judge" in blind.failures[0].message
    shown = agenteval.quantify(RUNS, [RIGHT], judge=judge, version="1", with_reference=True)
    assert sorted(s.value for s in shown.scores) == [0.0, 0.0, 1.0]


@every_framework
def test_code_and_settings_tell_it_from_others(framework: str) -> None:
    def good(answer: str, reference: Any) -> float:
        return 1.0

    def bad(answer: str, reference: Any) -> float:
        return 0.0

    make = MAKERS[framework]
    judges = [make(good), make(good), make(good, 1.0)]
    if framework in ("inspect_ai", "mlflow", "openevals"):  # functions, which close over another
        judges.append(make(bad))
    same, again, *others = [FunctionJudge(scorer_of(judge)).source for judge in judges]
    assert same.sha256 == again.sha256
    assert len({same.sha256, *(other.sha256 for other in others)}) == 1 + len(others)
    assert same.model.startswith(f"{framework}:")


def test_a_setting_that_cannot_be_described_needs_a_version() -> None:
    judge = MAKERS["deepeval"](lambda answer, reference: 1.0, object())
    with pytest.raises(
        InputError, match="a setting of type object has no source text: give version="
    ):
        agenteval.quantify(RUNS, [RIGHT], judge=judge)
    assert agenteval.quantify(RUNS, [RIGHT], judge=judge, version="2").scores


def test_one_answer_stands_for_every_criterion_but_where_results_have_names() -> None:
    asked: list[str] = []

    def grade(answer: str, reference: Any) -> float:
        asked.append(answer)
        return 0.5

    clear = Criterion(name="Clarity", accepted_values=("unclear", "clear"))
    report = agenteval.quantify(RUNS, [RIGHT, clear], judge=MAKERS["autoevals"](grade), version="1")
    assert len(report.scores) == 6
    assert sorted(asked) == ["0", "2", "4"]
    assert any("does not support criteria" in note for note in report.notes)
    grades = [ScorerGrade(1.0, name="clarity"), ScorerGrade(0.0, name="Right Answer")]
    assert [grade_for(grades, c).value for c in (clear, RIGHT)] == [1.0, 0.0]
    assert grade_for([*grades, grades[0]], clear).value is None
    assert grade_for([], clear).value is None


def test_without_criteria_it_is_its_own() -> None:
    judge = MAKERS["pydantic_evals"](lambda answer, reference: int(answer) / 4)
    (row,) = agenteval.quantify(RUNS, judge=judge)["scores"].rows
    assert (row["criterion"], row["mean"].value) == ("Graded", 0.5)
    with pytest.raises(InputError, match="no criteria for task 'sums'"):
        agenteval.quantify(RUNS, judge=lambda run, criterion: 0.5)


def test_a_decorated_function_of_inspect_is_called_first() -> None:
    report = agenteval.quantify(RUNS, [RIGHT], judge=scorers.of_inspect)
    assert {s.value for s in report.scores} == {1.0}
    assert report.source.model == "inspect_ai:of_inspect"


def test_correct_and_incorrect_of_inspect_are_numbers() -> None:
    said = dict(zip("024", "CPI", strict=True))
    judge = MAKERS["inspect_ai"](lambda answer, reference: said[answer])
    report = agenteval.quantify(RUNS, [RIGHT], judge=judge, version="1")
    assert sorted(s.value for s in report.scores) == [0.0, 0.5, 1.0]


@pytest.mark.parametrize(
    ("judge", "said"),
    [
        (BaseMetric, "BaseMetric is a class; give an instance of it"),
        (scorers.LLMTestCase("a", "b"), "cannot judge runs: it is no BaseMetric of deepeval"),
        (scorers.Feedback(1), "cannot judge runs: it is no mlflow Scorer"),
    ],
)
def test_what_is_no_scorer_is_refused(judge: Any, said: str) -> None:
    with pytest.raises(InputError, match=said):
        agenteval.quantify(RUNS, [RIGHT], judge=judge)
    assert not Path("agenteval.db").exists()


def test_whatever_is_done_with_what_is_withheld_is_an_error() -> None:
    withheld = Withheld("the reference")
    for use in (str, bool, len, list, lambda w: w == "4", lambda w: w < 1, lambda w: w.strip()):
        with pytest.raises(LookupError, match="the reference is not shown"):
            use(withheld)
