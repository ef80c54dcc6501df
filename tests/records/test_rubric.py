"""Totals of rubrics are Autorubric's."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agenteval.readers.rubrics import read_rubric
from agenteval.records import CellKey
from agenteval.records.rubric import rubric_total
from agenteval.utility.answers import answer_of, to_result

PUBLISHED = Path(__file__).parent.parent / "golden/published/autorubric_totals.json"
CASES = json.loads(PUBLISHED.read_text())["cases"]
MET = {"yes": 1.0, "no": 0.0, "cannot tell": None}
KEY = CellKey(run="r", criterion="c", source="s", repeat=0)


def test_totals_of_autorubric() -> None:
    assert len(CASES) == 200
    for case in CASES:
        met = [MET[verdict] for verdict in case["verdicts"]]
        total = rubric_total(case["weights"], met)
        assert total == pytest.approx(case["total"], abs=1e-12), case


def test_answers_become_the_same_totals() -> None:
    """From the labels of a reply to the stored score; a rubric without a positive weight is
    refused, so those cases are left out."""
    compared = 0
    for case in CASES:
        if max(case["weights"]) <= 0:
            continue
        items = [{"requirement": f"item {n}", "weight": w} for n, w in enumerate(case["weights"])]
        rubric = read_rubric(items, "here")
        answers = {
            path: answer_of(verdict, leaf)
            for (path, leaf), verdict in zip(rubric.leaves(), case["verdicts"], strict=True)
        }
        result = to_result(rubric, KEY, answers, None)
        assert getattr(result, "value", "no score") == pytest.approx(case["total"], abs=1e-12)
        compared += 1
    assert compared > 150
