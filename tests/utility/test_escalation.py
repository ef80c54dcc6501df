"""Escalation: who decides, what labels prove, what is asked, and what is refused."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import pytest

import agenteval
from agenteval import Criterion, Run
from agenteval.errors import InputError
from agenteval.models.limits import Limits, Price
from agenteval.records import CellKey, Failure, Score, Task
from agenteval.stats.scores import ScoreTable, score_table
from agenteval.store import Store
from agenteval.store.labels import Labels
from agenteval.utility.escalating_judge import ConfidentAnswer, confident_answer
from agenteval.utility.options import Escalation

RIGHT = Criterion(name="Right", accepted_values=("no", "yes"), scale="binary")
SIZE = Criterion(name="Size", scale="numeric", numeric_range=(0.0, 1.0))
RUNS = [
    Run(id=f"r{i}", task="sums", input=f"{i}?", output=f"It is {i}.", success=i % 2 == 0)
    for i in range(200)
]
ASKED: Counter[tuple[str, str]] = Counter()


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTEVAL_STORE", raising=False)
    ASKED.clear()


def truth(run: Run) -> str:
    return "yes" if int(run.input[:-1]) % 2 == 0 else "no"


def cheap(run: Run, criterion: Criterion) -> str:
    """Right on three of four runs in each of its repeats; on the others it takes turns."""
    ASKED["cheap", run.id] += 1
    if int(run.input[:-1]) // 2 % 4:
        return truth(run)
    return ("yes", "no")[ASKED["cheap", run.id] % 2]


def strong(run: Run, criterion: Criterion) -> str:
    """Always right, and sure except on every tenth run."""
    ASKED["strong", run.id] += 1
    wavers = int(run.input[:-1]) % 10 == 0 and ASKED["strong", run.id] % 2
    return {"yes": "no", "no": "yes"}[truth(run)] if wavers else truth(run)


def labels(count: int) -> ScoreTable:
    return score_table(
        {
            "run": run.id,
            "criterion": "right",
            "label": truth(run),
            "value": float(truth(run) == "yes"),
        }
        for run in RUNS[:count]
    )


def escalated(count: int, **options: Any) -> Any:
    plan = Escalation(strong, agreement=0.9, confidence=0.9, **options)
    return agenteval.quantify(
        RUNS, [RIGHT], judge=cheap, escalation=plan, labels=labels(count), repeats=4
    )


def rows(report: Any, key: str) -> list[Any]:
    (table,) = (t for t in report.tables if t.key == key)
    return list(table.rows)


def test_who_decides_and_what_is_asked() -> None:
    report = escalated(160)
    sure = {r.id for r in RUNS if int(r.input[:-1]) // 2 % 4}
    wavering = {r.id for r in RUNS if int(r.input[:-1]) % 10 == 0} - sure
    decided = {s.key.run: s.evidence["decided_by"] for s in report.scores}
    by_run = {r.run_id: decided.get(r.run_key, "people") for r in report.ratings}
    assert {run for run, who in by_run.items() if who == "cheap"} == sure
    assert {run for run, who in by_run.items() if who == "people"} == wavering
    assert {run for judge, run in ASKED if judge == "strong"} == {r.id for r in RUNS} - sure
    assert {s.label == "yes" for s in report.scores if s.evidence["confidence"] < 1} == set()
    (row,) = rows(report, "escalation")
    rest = [r.id for r in RUNS[160:]]
    assert row["first"] == row["second"] == 1
    assert row["first_share"] == pytest.approx(len(sure & {*rest}) / 40)
    assert row["people"] == len(wavering & {*rest})
    # limits of Clopper and Pearson at 95 % without errors
    assert row["first_agreement"] == pytest.approx(0.05 ** (1 / len(sure - {*rest})))
    costs = {row["judge"]: row for row in rows(report, "escalation_cost")}
    assert costs["cheap"]["requests"] == 800
    assert costs["strong"]["requests"] == 4 * (200 - len(sure))
    assert costs["strong alone (estimate)"]["requests"] == 800
    assert costs["people"]["decided"] == len(wavering & {*rest})
    with Store("agenteval.db") as store:
        (queue,) = Labels(store).queues().values()
        items = store.items()
    assert {items[key]["run_id"] for key in queue.items} == wavering & {*rest}
    (table,) = (t for t in report.tables if t.key == "escalation")
    assert "agenteval view agenteval.db --label" in table.notes[-1]
    assert report.exit_code == 0
    ASKED.clear()
    again = escalated(160)
    assert (ASKED, again.source) == (Counter(), report.source)
    with Store("agenteval.db") as store:
        assert len(Labels(store).queues()) == 1


@pytest.mark.parametrize(("unproven", "who"), [("escalate", "people"), ("keep", "cheap")])
def test_labels_that_prove_nothing(unproven: str, who: str) -> None:
    report = escalated(10, unproven=unproven)
    costs = {row["judge"]: row["decided"] for row in rows(report, "escalation_cost")}
    assert costs[who] == (190 if who == "people" else 200)  # 10 runs have labels already
    assert any("the labels prove no threshold for cheap" in note for note in report.notes)
    (row,) = rows(report, "escalation")
    assert row["first"] is None
    if unproven == "escalate":  # it may not decide, so it is not asked about the other runs
        assert {run for judge, run in ASKED if judge == "strong"} == {r.id for r in RUNS[:10]}
    else:
        assert {judge for judge, _ in ASKED} == {"cheap"}


def result(label: str | None, probability: float | None = None) -> Score | Failure:
    key = CellKey(run="r", criterion="c", source="s", repeat=0)
    if label is None:
        return Failure(key=key, criterion_id="right", status="unscored:parse")
    masses = None if probability is None else {label: probability, "no": 1 - probability}
    value = RIGHT.value_of(label)
    return Score(key=key, criterion_id="right", label=label, value=value, probabilities=masses)


@pytest.mark.parametrize(
    ("results", "label", "confidence"),
    [
        ([("yes", None)] * 3, "yes", 1),
        ([("yes", None), ("yes", None), ("no", None)], "yes", 2 / 3),
        ([("yes", None), ("yes", None), (None, None)], "yes", 2 / 3),  # a failure is no answer
        ([("yes", None), ("no", None)], "no", 0.5),
        ([("yes", 0.8), ("yes", 0.9)], "yes", 0.85),
    ],
)
def test_confidence(results: list[Any], label: str, confidence: float) -> None:
    answer = confident_answer([result(*r) for r in results], RIGHT, len(results))
    assert isinstance(answer, ConfidentAnswer)
    assert (answer.label, answer.confidence) == (label, pytest.approx(confidence))


def test_a_broken_request_is_tried_again_and_not_escalated() -> None:
    key = CellKey(run="r", criterion="c", source="s", repeat=0)
    broken = Failure(key=key, criterion_id="right", status="error:timeout")
    assert confident_answer([result("yes"), broken], RIGHT, 2) is broken
    assert confident_answer([result(None)], RIGHT, 1) is None


def chat(**options: Any) -> Any:
    fields = {
        "judge": "a",
        "task": Task(name="sums", description="Say the number."),
        "base_url": "http://127.0.0.1:1/v1",
        "limits": Limits(price=Price(1.0, 2.0)),
        "dry_run": True,
        "labels": labels(50),
        "repeats": 2,
    }
    return agenteval.quantify(RUNS, **{"criteria": [RIGHT], **fields, **options})


def test_a_dry_run_asks_the_stronger_judge_between_nothing_and_everything() -> None:
    plan = chat(escalation=Escalation("b")).estimate.to_json()
    cheap_part, strong_part = plan["parts"]
    assert (strong_part["least"]["requests"], strong_part["most"]["requests"]) == (0, 800)
    assert plan["cost"]["most"] == pytest.approx(
        cheap_part["most"]["cost"] + strong_part["most"]["cost"]
    )


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"escalation": Escalation("a")}, "a is the same judge twice"),
        ({"escalation": Escalation("b", agreement=1.0)}, "--agreement: 1 is not between 0 and 1"),
        ({"escalation": Escalation("b", confidence=0.99)}, "--confidence: 0.99 is not between"),
        ({"escalation": Escalation("b", unproven="ask")}, "--unproven: must be escalate or keep"),
        ({"escalation": Escalation("b"), "labels": None}, "--escalate: needs labels"),
        ({"escalation": Escalation("b"), "repeats": 1}, "needs --repeats 2 or more"),
        ({"escalation": Escalation("b"), "judge": ["a", "c"]}, "not with a panel"),
        ({"escalation": Escalation("b"), "until": "0.1"}, "cannot be combined with --until"),
        ({"escalation": Escalation("b"), "criteria": [SIZE]}, "size has no levels"),
    ],
)
def test_escalations_that_cannot_work(options: dict[str, Any], said: str) -> None:
    with pytest.raises(InputError, match=r"^[^\n]*$") as refused:
        chat(**options)
    assert said in str(refused.value)
