"""The verdicts on eight recorded runs of a real judge over 20 labelled cases."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from agenteval.evaluators.utility.verify.verifier import verify
from agenteval.records import Criterion
from agenteval.records.verification import Verification
from agenteval.stats.scores import score_table

FOLDER = Path(__file__).parents[5] / "shared" / "reference" / "utility"

pytestmark = pytest.mark.skipif(not FOLDER.is_dir(), reason="the recorded data is not here")


@pytest.fixture(scope="module")
def verified() -> dict[str, Verification]:
    listed = json.loads((FOLDER / "samples" / "sample_math_criteria.json").read_text())
    criteria = {
        c["name"]: Criterion(
            name=c["name"], accepted_values=c["accepted_values"],
            allow_na=c["name"].startswith("Code"),
        )
        for c in listed
    }  # fmt: skip
    path = FOLDER / "quantifier_runs" / "prealgebra_8runs.jsonl"
    replies = [json.loads(line) for line in path.read_text().splitlines()]
    repeats = {run: i for i, run in enumerate(sorted({r["run"] for r in replies}))}
    labels = {r["problem_file"]: label_of(r["problem_file"]) for r in replies}
    rows: list[dict[str, Any]] = []
    for reply in replies:
        for name, criterion in criteria.items():
            label = reply["values"][name]
            row: dict[str, Any] = {
                "run": reply["problem_file"], "criterion": criterion.id,
                "repeat": repeats[reply["run"]], "success": labels[reply["problem_file"]],
            }  # fmt: skip
            if label in criterion.accepted_values:
                row["value"] = criterion.value_of(label)
            elif str(label).upper() in ("N/A", "NA", "NOT APPLICABLE"):
                row["status"] = "not_applicable"
            else:
                row["status"] = "unscored:off_scale"
            rows.append(row)
    result = verify(score_table(rows), list(criteria.values()))
    return {v.criterion_id: v for v in result.criteria}


def label_of(problem_file: str) -> bool:
    path = FOLDER / "conversations" / "agentchat_prealgebra" / problem_file
    return bool(json.loads(path.read_text())["is_correct"])


def test_agreement_and_discrimination_are_the_published_ones(
    verified: dict[str, Verification],
) -> None:
    found = {
        name: (round(one.checks[2].estimate or 0, 2), round(one.checks[3].estimate or 0, 3))
        for name, one in verified.items()
    }
    assert found == {
        "problem-interpretation": (0.21, 0.527),
        "mathematical-methodology": (0.47, 0.764),
        "calculation-correctness": (0.61, 0.747),
        "explanation-clarity": (0.22, 0.775),
        "code-efficiency": (0.18, 0.769),
        "code-correctness": (0.71, 0.758),
    }


def test_twenty_cases_carry_no_confident_verdict(verified: dict[str, Verification]) -> None:
    assert verified["problem-interpretation"].verdict != "keep"
    assert "keep" not in {one.verdict for one in verified.values()}
    for one in verified.values():
        area = one.check("discrimination")
        assert area is not None
        assert area.low is not None
        assert area.high is not None
        assert area.high - area.low > 0.3  # 13 against 7: nothing is better than another
        assert one.reasons
