"""Rubrics of runs from the command's function to stored totals."""

from __future__ import annotations

import json
import random
import re
from pathlib import Path
from typing import Any

import pytest

import agenteval
from agenteval import Criterion, Run, Task
from agenteval.errors import InputError
from agenteval.readers.rubrics import read_rubric
from agenteval.testing import serve

TASK = Task(name="sums", description="Add the numbers.")
SHORT = [{"requirement": "Names 5.", "weight": 3}, {"requirement": "Names 9.", "weight": -1}]
LONG = [{"requirement": f"Names {n}.", "weight": 1 + n % 3} for n in range(90)]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTEVAL_STORE", raising=False)


def run(name: str, output: str, rubric: Any = None, **more: Any) -> Run:
    items = None if rubric is None else read_rubric(rubric, name)
    return Run(id=name, task="sums", input=f"{name}?", output=output, rubric=items, **more)


RUNS = [run("a", "5 and 9", SHORT), run("b", "only 5", SHORT), run("c", "nothing at all")]


def judge(run: Run, item: Criterion) -> str | None:
    """Whether the number of the statement is in the text; cannot tell about "maybe"."""
    if "maybe" in run.output:
        return "cannot tell"
    number = re.findall(r"\d+", item.description)
    return "yes" if number and number[0] in re.findall(r"\d+", run.output) else "no"


def answer(body: dict[str, Any], _: int) -> str:
    """A chat model that answers each statement, or each criterion, as `judge` does."""
    prompt = body["messages"][1]["content"]
    work = prompt.partition("<<BEGIN work")[2].partition("<<END work")[0].partition("\n")[2]
    items = re.findall(r"- id: (\S+)\n  (?:statement|name): (.*)", prompt)
    labels = {
        path: {"explanation": "seen", "label": "yes" if text in work.split() else "no"}
        for path, text in ((path, re.sub(r"\D", "", text)) for path, text in items)
    }
    return json.dumps(labels)


def totals(report: agenteval.ScoreReport) -> dict[str, float | None]:
    return {r.run_id: r.value for r in report.ratings if r.criterion_id == "rubric"}


def test_each_run_is_judged_by_its_own_rubric() -> None:
    heard: list[str] = []
    report = agenteval.quantify(RUNS, judge=judge, task=TASK, notify=heard.append)
    assert totals(report) == {"a": pytest.approx(2 / 3), "b": 1.0}
    assert "2 runs with rubrics of 2 items; 1 run without a rubric: not judged" in heard
    (row,) = report["rubrics"].rows
    assert (row["runs"], row["items"], row["cannot_tell"], row["missing"]) == (2, 4, 0, 0)
    assert row["satisfied"].value == 0.75
    assert agenteval.scores().to_json()["tables"] == report.to_json()["tables"]


def test_with_criteria_both_are_judged() -> None:
    criteria = [Criterion(name="Names 5", accepted_values=("no", "yes"))]
    report = agenteval.quantify(RUNS, criteria, judge=judge, task=TASK)
    rated = sorted((r.run_id, r.criterion_id) for r in report.ratings)
    shared = [(name, "names-5") for name in "abc"]
    assert rated == sorted([*shared, ("a", "rubric"), ("b", "rubric")])


def test_what_cannot_be_told_or_is_missing_is_no_score() -> None:
    runs = [*RUNS, run("d", "maybe", SHORT), run("e", "5 lost", SHORT)]

    def gaps(run: Run, item: Criterion) -> Any:
        if "lost" in run.output and "9" in item.description:
            return None
        if run.id == "a" and "9" in item.description:
            return "cannot tell"
        return judge(run, item)

    report = agenteval.quantify(runs, judge=gaps, task=TASK, version="1")
    assert totals(report) == {"a": 1.0, "b": 1.0, "d": None, "e": None}
    by_run = {r.run_id: r for r in report.ratings}
    assert by_run["d"].status == "not_applicable"
    assert (by_run["e"].status, by_run["e"].message[:8]) == ("unscored:missing", "rubric/2")
    row = report["rubrics"].rows[0]
    assert (row["cannot_tell"], row["missing"]) == (3, 2)


def test_one_request_for_a_rubric_and_several_for_a_long_one() -> None:
    runs = [*RUNS[:2], run("long", "1 2 3 and 80", LONG)]
    with serve(answer, ignore=[r"[0-9a-f]{24}"]) as server:
        options: dict[str, Any] = {
            "judge": "openai:m",
            "base_url": server.base_url,
            "task": TASK,
            "repeats": 2,
        }
        planned = agenteval.quantify(runs, dry_run=True, **options).estimate
        assert planned is not None
        assert planned.requests[0] == 2 * (1 + 1 + 3)
        report = agenteval.quantify(runs, **options)
        assert len(server.requests) == 10
        again = agenteval.quantify(runs, **options)
        assert len(server.requests) == 10
        assert totals(again) == totals(report)
        weights = {item["requirement"]: item["weight"] for item in LONG}
        met = sum(weights[f"Names {n}."] for n in (1, 2, 3, 80))
        assert totals(report)["long"] == pytest.approx(met / sum(weights.values()))
        agenteval.quantify(runs[:1], one_per_call=True, **options)
        assert len(server.requests) == 10 + 2 * 2


def test_swapped_and_corrected_rubrics_are_not_mixed() -> None:
    other = [{"requirement": "Names 9.", "weight": 1}]
    swapped = [run("a", "5 and 9", other), run("b", "only 5", SHORT)]
    right = [run("a", "5 and 9", SHORT), run("b", "only 5", other)]
    agenteval.quantify(swapped, judge=judge, task=TASK)
    assert totals(agenteval.quantify(right, judge=judge, task=TASK)) == {
        "a": pytest.approx(2 / 3),
        "b": 0.0,
    }
    assert totals(agenteval.scores()) == {"a": pytest.approx(2 / 3), "b": 0.0}


def test_rubrics_of_a_file(tmp_path: Path) -> None:
    path = tmp_path / "rubrics.jsonl"
    plain = [r.model_copy(update={"rubric": None}) for r in RUNS]
    lines: list[dict[str, Any]] = [
        {"run": "a", "rubric": SHORT},
        {"prompt_id": "x", "prompt": [{"role": "user", "content": "b?"}], "rubrics": SHORT},
        {"question": "z?", "rubric": SHORT},
    ]
    path.write_text("\n".join(map(json.dumps, lines)))
    heard: list[str] = []
    report = agenteval.quantify(plain, judge=judge, task=TASK, rubrics=path, notify=heard.append)
    assert totals(report) == {"a": pytest.approx(2 / 3), "b": 1.0}
    assert any("1 of 3 rubrics match no run (first: input 'z?')" in line for line in heard)
    for line, problem in (
        ({"rubric": SHORT}, "2: the record needs the run"),
        ({"run": "a", "rubric": SHORT}, "2: a second rubric for run 'a'"),
        ({"run": "b", "rubric": "good"}, "2: one of rubric, rubrics, criteria must hold"),
        ({"run": "b", "rubric": []}, "2: the rubric has no items"),
    ):
        path.write_text("\n".join(map(json.dumps, [lines[0], line])))
        with pytest.raises(InputError, match=problem):
            agenteval.quantify(plain, judge=judge, task=TASK, rubrics=path)


def _simulated(cases: int) -> list[Run]:
    """Runs of a good and a poor system that name facts of their rubric, or lack them."""
    rng, runs = random.Random(1), list[Run]()
    for case in range(cases):
        *facts, false = rng.sample(range(100, 999), 6)
        rubric = [
            {"requirement": f"States {fact} here.", "weight": weight}
            for fact, weight in zip(facts, "54322", strict=True)
        ]
        rubric.append({"requirement": f"Claims {false} falsely.", "weight": "-4"})
        for system, share in (("good", 0.95), ("poor", 0.4)):
            has = [fact for fact in facts if rng.random() < share]
            lines = [f"Here the number {fact} is stated and explained." for fact in has]
            lines += ["The weather is mild.", "More of it is found elsewhere.", "So much for this."]
            lines += [f"Clearly {false} is true."] if rng.random() > share else []
            rng.shuffle(lines)
            case_run = run(f"{system}{case}", " ".join(lines), rubric, system=system)
            changes = {"input": f"case {case}", "success": len(has) >= 4}
            runs.append(case_run.model_copy(update=changes))
    return runs


def always_yes(run: Run, item: Criterion) -> str:
    return "yes"


def upside_down(run: Run, item: Criterion) -> str:
    return "no" if judge(run, item) == "yes" else "yes"


@pytest.mark.parametrize(
    ("function", "verdict"),
    [(judge, "trustworthy"), (always_yes, "not trustworthy"), (upside_down, "not trustworthy")],
)
def test_verdicts_on_simulated_judges(
    function: Any, verdict: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("agenteval.utility.perturbed_runs.make_embedder", _no_embedder)
    report = agenteval.verify(_simulated(30), judge=function, task=TASK)
    assert report.judge.verdict == verdict
    effects = {
        (v.criterion_id, e.operator): e.outcome for v in report.criteria.values() for e in v.effects
    }
    noticed = "pass" if verdict == "trustworthy" else "fail"
    assert effects["rubric-items", "drop_item"] == noticed
    assert effects["rubric", "drop_item"] == noticed
    assert effects["rubric", "whitespace"] == "pass"


def _no_embedder(*_: Any, **__: Any) -> Any:
    raise agenteval.errors.ModelUnavailable("not installed")


def test_labels_of_people_on_items_are_pooled(tmp_path: Path) -> None:
    runs = [run(f"r{n}", "5" if n % 2 else "9", SHORT, system="s") for n in range(12)]
    agenteval.quantify(runs, judge=judge, task=TASK)
    labels = [
        {"run": r.id, "criterion": f"rubric/{n}", "label": label}
        for r in runs
        for n, label in ((1, "yes" if r.output == "5" else "no"), (2, "no"))
    ]
    path = tmp_path / "people.jsonl"
    path.write_text("\n".join(map(json.dumps, labels)))
    (pair,) = agenteval.agree(path).pairs
    (items,) = (c for c in pair.criteria if c.criterion_id == "rubric-items")
    assert items.n == 24
    assert items.exact.mean == pytest.approx(18 / 24)  # 6 runs have the fault that people deny
    path.write_text(json.dumps({"run": "r1", "criterion": "rubric/9", "label": "yes"}))
    with pytest.raises(InputError, match="rubric/9"):
        agenteval.agree(path)


def test_totals_are_compared_by_case() -> None:
    runs = [
        run(f"{n}", output, SHORT, system=system).model_copy(
            update={"id": f"{system}{n}", "input": f"case {n}"}
        )
        for n in range(8)
        for system, output in (("x", "5"), ("y", "5 and 9"))
    ]
    agenteval.quantify(runs, judge=judge, task=TASK)
    report = agenteval.compare("x", "y")
    (row,) = report.tables[0].rows
    assert row["criterion"] == "Rubric"
    assert (row["difference"].value, row["n"]) == (pytest.approx(-1 / 3), 8)
    assert not any("more than once" in note for note in report.notes)
    items = agenteval.results("y3")["rubric_items"].rows
    answers = [(row["item"], row["weight"], row["answer"]) for row in items]
    assert answers == [("1", 3, "yes"), ("2", -1, "yes")]
    agenteval.page("page.html")
    assert "Weighted total of the items" in Path("page.html").read_text()


@pytest.mark.parametrize("different", [1, 8])
def test_totals_of_different_rubrics_are_not_compared(different: int) -> None:
    runs = [
        run(f"{system}{n}", "5", rubric, system=system).model_copy(update={"input": f"case {n}"})
        for n in range(8)
        for system, rubric in (("x", SHORT), ("y", LONG[:5] if n < different else SHORT))
    ]
    agenteval.quantify(runs, judge=judge, task=TASK)
    if different == 8:
        with pytest.raises(InputError, match="different rubrics"):
            agenteval.compare("x", "y")
        return
    report = agenteval.compare("x", "y")
    (row,) = report.tables[0].rows
    assert (row["difference"].value, row["n"]) == (0, 7)
    assert "rubric: 1 case left out; their rubrics differ between A and B" in report.notes
