"""Judges that are functions: what they may return, what goes wrong, what tells them apart."""

from __future__ import annotations

import asyncio
import functools
import runpy
import sys
from pathlib import Path
from typing import Any

import pytest

import agenteval
from agenteval import Criterion, Run
from agenteval.errors import InputError
from agenteval.utility.function_judge import FunctionJudge, read_judgement

MATH = Path(__file__).parents[2] / "tasks" / "math" / "runs.jsonl"
CLEAR = Criterion(name="Clarity", accepted_values=("unclear", "partly clear", "clear"))
STYLE = Criterion(name="Style", accepted_values=("plain", "ornate"), scale="nominal")
RUNS = [
    Run(id=f"r{i}", task="sums", input=f"{i} + {i}?", output=f"It is {2 * i}.", success=i > 1)
    for i in range(4)
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTEVAL_STORE", raising=False)


def by_length(run: Run, criterion: Criterion) -> float:
    return min(1, len(run.output) / 2000)


@pytest.mark.slow
def test_a_judge_that_counts_characters_is_not_trustworthy() -> None:
    report = agenteval.verify(MATH, judge=lambda run, criterion: min(1, len(run.output) / 2000))
    assert report.judge.verdict == "not trustworthy"
    assert any("length" in reason for reason in report.judge.reasons)
    assert report.gate().exit_code == 5
    assert {one.verdict for one in report.criteria.values()} <= {"repair", "drop", "undecided"}


@pytest.mark.parametrize(
    ("returned", "status", "why"),
    [
        (7, "off_scale", "7, not in [0, 1]"),
        ([0.5], "off_scale", "[0.5] (list)"),
        ((0.5, 3), "off_scale", "(0.5, 3) (tuple)"),
        ("splendid", "off_scale", "'splendid' is none of the accepted values"),
        ({"clear": 0.5}, "off_scale", "sum to 0.500"),
        ({"splendid": 1.0}, "off_scale", "'splendid': 1.0 is no probability of a level"),
        (None, "missing", "no value"),
        (float("nan"), "missing", "no value"),
        ((None, "no idea"), "missing", "no idea"),
    ],
)
def test_anything_else_is_a_failure_that_says_what_came(
    returned: Any, status: str, why: str
) -> None:
    answer: Any = read_judgement(returned, CLEAR)
    assert answer.status == f"unscored:{status}"
    assert why in answer.message
    number: Any = read_judgement(0.5, STYLE)
    assert number.status == "unscored:off_scale"
    assert "no order" in number.message


def test_a_bug_is_shown_with_its_line_and_the_run_goes_on() -> None:
    def judge(run: Run, criterion: Criterion) -> float:
        return 1 / (int(run.id[1:]) - 1)  # of the second run

    report = agenteval.quantify(RUNS[1:], [CLEAR], judge=judge)
    (failure,) = report.failures
    assert failure.status == "error:judge"
    assert failure.message.startswith("ZeroDivisionError: ")
    assert f"({__file__}, line " in failure.message
    assert "return 1 / (int(run.id[1:]) - 1)" in failure.message
    assert {s.value for s in report.scores} == {1.0, 0.5}
    assert report.gate(max_unscored=0.1).exit_code == 3


def test_it_sees_what_any_judge_sees() -> None:
    seen: list[Run] = []

    def judge(run: Run, criterion: Criterion) -> str:
        seen.append(run)
        return "clear"

    gold = [run.model_copy(update={"reference": "42", "metadata": {"x": 1}}) for run in RUNS]
    agenteval.quantify(gold, [CLEAR], judge=judge)
    assert {(r.success, r.reference, str(r.metadata)) for r in seen} == {(None, None, "{}")}
    agenteval.quantify(gold, [CLEAR], judge=judge, with_reference=True)
    assert {r.reference for r in seen[4:]} == {"42"}


def test_what_is_stored_is_not_asked_again_and_another_text_is_another_judge() -> None:
    count = 0

    def judge(run: Run, criterion: Criterion) -> float:
        nonlocal count
        count += 1
        return 0.5

    def other(run: Run, criterion: Criterion) -> float:
        nonlocal count
        count += 1
        return 1.0

    for function, asked in ((judge, 4), (judge, 4), (other, 8)):
        report = agenteval.quantify(RUNS, [CLEAR], judge=function)
        assert count == asked
    assert report.rows[0].overall.mean == 1.0


@pytest.mark.parametrize("judge", [functools.partial(by_length), max, eval("lambda r, c: 1")])
def test_what_has_no_source_text_needs_a_version(judge: Any) -> None:
    with pytest.raises(InputError, match="version="):
        agenteval.quantify(RUNS, [CLEAR], judge=judge)
    first, second = (FunctionJudge(judge, version=version).source for version in "12")
    assert first.sha256 != second.sha256


def test_inside_a_running_loop_as_in_a_notebook() -> None:
    async def notebook() -> agenteval.Report:
        return agenteval.quantify(RUNS, [CLEAR], judge=by_length)

    async def awaited() -> agenteval.Report:
        return await agenteval.aquantify(RUNS, [CLEAR], judge=by_length)

    first, second = asyncio.run(notebook()), asyncio.run(awaited())
    assert first["scores"].rows == second["scores"].rows


@pytest.mark.parametrize("version", [None, "1"])
def test_a_function_is_one_judge_in_a_script_and_in_a_module(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: str | None
) -> None:
    text = "def polite(run, criterion):\n    return 'please' in run.output\n"
    for name in ("judges.py", "other.py"):
        (tmp_path / name).write_text(text)
    monkeypatch.setattr(
        sys.modules["__main__"], "__file__", str(tmp_path / "judges.py"), raising=False
    )
    script = runpy.run_path("judges.py", run_name="__main__")["polite"]
    module = runpy.run_path("judges.py", run_name="package.judges")["polite"]
    elsewhere = runpy.run_path("other.py", run_name="other")["polite"]
    keys = [FunctionJudge(f, version=version).source.sha256 for f in (script, module, elsewhere)]
    assert keys[0] == keys[1]
    assert (keys[0] == keys[2]) is (version is None)  # a version names no code: modules stay apart


def test_an_empty_answer_is_the_worst_by_rule() -> None:
    runs = [*RUNS, Run(id="empty", task="sums", input="1?", output="  ", success=False)]
    report = agenteval.quantify(runs, [CLEAR], judge=lambda run, criterion: "clear")
    ratings = {r["run_id"]: (r["status"], r["value"]) for r in report.records()}
    assert ratings["empty"] == ("degenerate", 0.0)
    assert ratings["r1"] == ("scored", 1.0)
    # earlier versions asked the function about such runs; their scores have another source
    assert "guard" in FunctionJudge(by_length).source.parameters
