"""Figures of a capable model's readings, where the annotations of their traces are at hand."""

from __future__ import annotations

import json
from collections import defaultdict
from pathlib import Path

import pytest

from agenteval.traces.official import OfficialCase, official_case, score_official
from benchmarks.detectors import DATA

KEPT = Path(__file__).parents[1] / "golden/capable/locator.jsonl"
# prompts, reading: weighted F1 of categories, location, joint, Pearson's r of the overall grade
FIGURES = {
    ("before", 1): (0.349, 0.955, 0.320, 0.691),
    ("before", 2): (0.563, 0.955, 0.518, 0.580),
    ("after", 2): (0.421, 0.909, 0.321, 0.304),
    ("after, faults", 3): (0.517, 0.955, 0.505, None),  # of errors alone
    ("after, place", 4): (0.491, 0.818, 0.505, 0.520),
    ("after, place", 5): (0.524, 0.818, 0.456, 0.507),
}


@pytest.mark.skipif(not DATA.is_dir(), reason="the annotated traces are not here")
def test_readings_score_as_told() -> None:
    cases: dict[tuple[str, int], list[OfficialCase]] = defaultdict(list)
    for line in KEPT.read_text("utf-8").splitlines():
        row = json.loads(line)
        gold = (DATA / "gaia/gold" / f"{row['trace']}.json").read_text("utf-8")
        said = json.dumps({"errors": row["errors"], "scores": [row["scores"]]})
        cases[row["prompts"], row["reading"]].append(official_case(row["trace"], gold, said))
    for reading, expected in FIGURES.items():
        scores = score_official(cases[reading], resamples=100)
        overall = scores.pearson["overall"].r if "overall" in scores.pearson else None
        figures = (scores.weighted_f1.mean, scores.location.mean, scores.joint.mean, overall)
        assert figures[:3] == pytest.approx(expected[:3], abs=0.0006), reading
        assert figures[3] == (expected[3] and pytest.approx(expected[3], abs=0.0006)), reading
        assert scores.traces == 11  # one gold file is no JSON, as published
    assert set(cases) == set(FIGURES)
