"""agree, compare and what is stored, from Python: tables or files in, figures as attributes out."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

import agenteval
from agenteval.stats.scores import ScoreTable, score_table
from tests.cli.test_compare import fill, judge_of
from tests.store.making import ScriptedJudge, criteria, items

LEVELS = [0.0, 0.5, 1.0, 1.0]


def ratings(
    values: list[float], system: str | None = None, criterion: str = "clarity"
) -> ScoreTable:
    return score_table(
        {
            "run": f"{system}{i}",
            "case": f"c{i}",
            "system": system,
            "criterion": criterion,
            "value": v,
        }
        for i, v in enumerate(values)
    )


def test_two_tables_agree() -> None:
    report = agenteval.agree(ratings(LEVELS), scores=ratings([0.0, 0.5, 1.0, 0.5]))
    agreement = report.criteria["clarity"]
    assert agreement.exact.mean == 0.75
    assert report["agreement"].rows[0]["n"] == 4
    assert report.exit_code == 0
    enough = agenteval.agree(ratings(LEVELS), scores=ratings(LEVELS), min_runs=4, gate=True)
    assert (enough.exit_code, [gate.outcome for gate in enough.gates]) == (0, ["met"])
    short = agenteval.agree(ratings(LEVELS), scores=ratings(LEVELS), min_runs=5, gate=True)
    assert (short.exit_code, [gate.outcome for gate in short.gates]) == (4, ["undecided"])


def test_two_tables_are_compared(tmp_path: Path) -> None:
    first, second = ratings([0.25, 0.5] * 10, "a"), ratings([0.5, 1.0] * 10, "a")
    report = agenteval.compare(
        scores=first, other=second, fail_if="surely-worse", fail_under={"clarity": 0.9}
    )
    row = report.rows["clarity"]
    assert (row.n, row.difference.mean) == (20, 0.375)
    assert report.verdict("clarity") == "better"
    assert {gate.name: gate.outcome for gate in report.gates} == {
        "regression": "met",
        "fail-under": "missed",
    }
    assert report.exit_code == 1
    saved = json.loads(report.save(tmp_path / "a.json").read_text())
    assert saved["tables"]["rows"]["rows"][0]["difference"]["value"] == 0.375
    lines = report.save(tmp_path / "a.csv").read_text().splitlines()
    assert lines[0].split(",")[:4] == ["criterion_id", "criterion", "a", "b"]
    back = agenteval.compare(scores=second, other=first, fail_if="surely-worse")
    assert (back.verdict("clarity"), back.exit_code) == ("worse", 1)


def test_what_may_mislead_is_said() -> None:
    first, second = ratings([0.25, 0.5] * 10, "a"), ratings([0.5, 1.0] * 10, "a")
    said = " ".join(agenteval.compare(scores=first, other=second, min_cases=20).notes)
    assert "are needed" not in said
    said = " ".join(agenteval.compare(scores=first, other=second, min_cases=21).notes)
    assert "20 common cases; at least 21 are needed" in said
    holes = ratings([0.5, 1.0] * 6 + [float("nan")] * 8, "a")
    said = " ".join(agenteval.compare(scores=first, other=holes).notes)
    assert "clarity: 0% of A and 40% of B are not rated" in said


@pytest.fixture
def store(tmp_path: Path) -> Path:
    path = tmp_path / "s.db"
    fill(path, judge_of(lambda *_: 1, model="strict"), items(9))
    fill(path, ScriptedJudge(model="other"), items(9), criteria(2), repeats=2)
    return path
