"""quantify, verify and perturb from Python: reports, rows, figures, gates."""

from __future__ import annotations

import json
import pickle
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

import agenteval
from agenteval import Criterion, Run, Task

TASK = Task(name="sums", description="Add the numbers.")
CRITERIA = [
    Criterion(name="Clarity", accepted_values=("unclear", "clear")),
    Criterion(name="Depth", accepted_values=("shallow", "deep")),
]
RUNS = [
    Run(id=f"{s}{i}", task="sums", system=s, input=f"{i}?", output="word " * i, success=i % 2 == 0)
    for s in ("hen", "cock")
    for i in range(1, 7)
]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("AGENTEVAL_STORE", raising=False)


def judge(run: Run, criterion: Criterion) -> float:
    return len(run.output) / 40


def test_a_report_of_scores(tmp_path: Path) -> None:
    heard: list[str] = []
    counts: list[tuple[int, int]] = []
    with agenteval.Store("own.db") as store:
        report = agenteval.quantify(
            RUNS,
            CRITERIA,
            judge=judge,
            store=store,
            repeats=2,
            notify=heard.append,
            progress=lambda p: counts.append((p.done, p.total)),
        )
        assert store.sources()  # still open
    assert len(report.scores) == len(report.records()) == 12 * 2 * 2
    assert report.failures == []
    assert report.source.evaluator == "utility.function"
    assert counts[0] == (0, 24)
    assert counts[-1] == (24, 24)
    assert any("48 cells; 48 to judge in 24 calls" in line for line in heard)
    once = agenteval.quantify(RUNS, CRITERIA, judge=judge, store="own.db")
    assert [score.key.repeat for score in once.scores] == [0] * 24  # those it was asked for
    saved = json.loads(report.save(tmp_path / "r.json").read_text())
    assert saved["runs"] == {"success": 6, "failed": 6, "unknown": 0}
    assert report.save(tmp_path / "r.csv").read_text().count("\n") == 49


def test_reports_can_be_pickled() -> None:
    scored = agenteval.quantify(RUNS, CRITERIA, judge=judge, repeats=2)
    assert scored.scores  # read from the store, and kept
    for report in (
        scored,
        scored.gate(min_mean={"clarity": 0.5}),
        agenteval.verify(RUNS, CRITERIA, judge=judge),
        agenteval.quantify(RUNS, CRITERIA, judge=judge, repeats=3, dry_run=True),
    ):
        again = pickle.loads(pickle.dumps(report))
        assert type(again) is type(report)
        assert again.to_json() == report.to_json()
        assert again.records() == report.records()
    again = pickle.loads(pickle.dumps(scored))
    assert again.rows == scored.rows
    assert again.scores == scored.scores


def test_figures_are_axes() -> None:
    three = [*CRITERIA, Criterion(name="Order", accepted_values=("none", "some"))]
    report = agenteval.quantify(RUNS, three, judge=judge, repeats=2)
    for axes in (
        report.plot.radar(),
        report.plot.bars(),
        report.plot.boxes(),
        report.plot.heatmap(),
    ):
        assert axes.figure is not None


def test_a_gate_goes_by_the_whole_interval() -> None:
    report = agenteval.quantify(RUNS, CRITERIA, judge=judge)
    mean = report.rows[2].overall  # of clarity over all systems
    assert mean.low is not None
    assert mean.high is not None
    for least, outcome, code in (
        (mean.low - 0.01, "met", 0),
        (mean.mean, "undecided", 4),
        (mean.high + 0.01, "missed", 1),
    ):
        gated = report.gate(min_mean={"clarity": least or 0.0})
        assert (gated.gates[-1].outcome, gated.exit_code) == (outcome, code)
    assert report.gate(min_mean={"Clarity": mean.mean or 0}, undecided_passes=True).exit_code == 0
    with pytest.raises(KeyError, match="clarity"):
        report.gate(min_mean={"truth": 0.5})


def test_ratings_made_elsewhere_are_verified() -> None:
    rows = agenteval.perturb(RUNS, ["pad", "drop_words"]).records()
    assert {row["variant"].partition(":")[0] for row in rows} == {"original", "pad", "drop_words"}
    lines = [
        json.dumps(row | {"criterion": "length", "value": min(1, len(row["text"]) / 80)})
        for row in rows
    ]
    Path("rated.jsonl").write_text("\n".join(lines))
    report = agenteval.verify(scores="rated.jsonl")
    assert report.criteria["length"].verdict == "undecided"
    assert report.judge.verdict == "not enough data"
    assert report.gate().exit_code == 4


def test_a_key_that_is_missing_leaves_no_store() -> None:
    with pytest.raises(agenteval.AgentevalError):
        agenteval.quantify(RUNS, CRITERIA, judge="replay:none.jsonl", task="math")
    assert not Path("agenteval.db").exists()


def test_a_dry_run_says_what_would_be_asked_and_leaves_nothing(
    capsys: pytest.CaptureFixture[str],
) -> None:
    asked: dict[str, Any] = {"judge": "openai:m", "dry_run": True}  # no key is needed
    report = agenteval.quantify(RUNS, CRITERIA, task=TASK, repeats=2, **asked)
    assert report.estimate is not None
    least, most = report.estimate.requests
    assert 0 < least < most == 2 * 2 * len(RUNS)  # two repeats, each with one repair
    assert (report.ratings, report.exit_code) == ((), 0)
    assert report.to_json()["requests"] == {"least": least, "most": most}
    report.print()
    assert f"at least {least:,}, at most {most:,}" in capsys.readouterr().out
    verified = agenteval.verify(RUNS, CRITERIA, task=TASK, perturbations=["pad"], **asked)
    assert verified.estimate is not None
    assert verified.estimate.requests[0] > least
    own = agenteval.quantify(RUNS, CRITERIA, judge=judge, dry_run=True).estimate
    assert own is not None
    assert (own.requests, own.lines) == ((0, 0), ())
    proposed = agenteval.propose(TASK, model="openai:m", seeds=3, dry_run=True)
    assert proposed.estimate is not None
    assert proposed.estimate.requests[0] == 3
    with pytest.raises(ValueError, match="there are no criteria"):
        _ = proposed.criteria
    assert not Path("agenteval.db").exists()


def test_too_many_unscored_are_a_gate_of_the_report() -> None:
    def silent(run: Run, criterion: Criterion) -> float:
        raise ValueError("no")

    report = agenteval.quantify(RUNS, CRITERIA, judge=silent, version="1")
    assert (report.exit_code, report.gates[-1].outcome) == (3, "missed")
    assert report.gate(max_unscored=1).exit_code == 0


def test_what_a_judge_cannot_see_is_not_held_against_it() -> None:
    criteria = [*CRITERIA, Criterion(name="Truth", accepted_values=("no", "yes"))]
    report = agenteval.quantify(RUNS, CRITERIA, judge=judge)
    blind = [
        replace(r, status="unscored:unsupported", label=None, value=None)
        for r in report.ratings[:20]
    ]
    mixed = replace(report, criteria=tuple(criteria), ratings=(*blind, *report.ratings[20:]))
    assert mixed.gate(max_unscored=0).exit_code == 0


def test_a_stored_judge_that_used_other_levels_is_left_out() -> None:
    agenteval.quantify(RUNS, CRITERIA, judge=judge)
    changed = [Criterion(name="Clarity", accepted_values=("none", "some", "all")), CRITERIA[1]]
    labels = [
        {"run": r.id, "criterion": c.id, "label": c.accepted_values[0], "status": "scored"}
        for r in RUNS
        for c in changed
    ]
    Path("labels.jsonl").write_text("\n".join(map(json.dumps, labels)))
    report = agenteval.agree("labels.jsonl", criteria=changed)
    assert list(report.criteria) == ["depth"]
    assert any("clarity: skipped, because its levels" in note for note in report.notes)
