"""Ratings of ``tasks/math`` and ``tasks/household``: legal, whole, as agreeing as printed.

Read with ``json`` alone, and alpha is computed from its definition (Krippendorff 2011), so that the
data are not judged by the package they serve to test.
"""

from __future__ import annotations

import itertools
import json
import re
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).resolve().parents[2]
RATED = {"math": 60, "household": 30}  # runs that the first rater rated
KEYS = {"run", "criterion", "rater", "label", "evidence", "status"}
FACTS_MIN = 27  # of 30 runs: a slip in one of ten is allowed for counting over up to 24 turns


def read_lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


@dataclass
class Material:
    task: str
    runs: dict[str, dict[str, Any]]
    criteria: dict[str, dict[str, Any]]
    lines: list[dict[str, Any]]

    def rank(self, line: dict[str, Any]) -> int:
        """Position of the label among the accepted values, 0 is worst."""
        values: list[str] = self.criteria[line["criterion"]]["accepted_values"]
        return values.index(line["label"])

    def by(self, rater: str) -> list[dict[str, Any]]:
        return [line for line in self.lines if line["rater"] == rater]

    def rated(self, rater: str) -> list[str]:
        return list(dict.fromkeys(line["run"] for line in self.by(rater)))


@pytest.fixture(scope="module", params=RATED)
def material(request: pytest.FixtureRequest) -> Material:
    return load(request.param)


def load(task: str) -> Material:
    folder = ROOT / "tasks" / task
    document = json.loads((ROOT / "criteria" / f"{task}.reviewed.json").read_text(encoding="utf-8"))
    return Material(
        task,
        {run["id"]: run for run in read_lines(folder / "runs.jsonl")},
        {criterion["id"]: criterion for criterion in document["criteria"]},
        read_lines(folder / "ratings.jsonl"),
    )


def test_labels_are_accepted_and_evidence_stands_in_what_the_system_wrote(
    material: Material,
) -> None:
    for line in material.lines:
        assert set(line) == KEYS
        assert (line["status"], line["rater"] in "AB") == ("scored", True)
        assert line["label"] in material.criteria[line["criterion"]]["accepted_values"]
        written = [
            m["content"]
            for m in material.runs[line["run"]]["messages"]
            if m["role"] in ("assistant", "tool")
        ]
        assert 10 <= len(line["evidence"]) <= 160
        assert any(line["evidence"] in text for text in written)


def test_each_rater_rated_every_criterion_of_a_run_once(material: Material) -> None:
    assert len(material.rated("A")) == RATED[material.task]
    assert set(material.rated("B")) <= set(material.rated("A"))
    for rater in "AB":
        count = Counter((line["run"], line["criterion"]) for line in material.by(rater))
        due = itertools.product(material.rated(rater), material.criteria)
        assert count == Counter(due)


def ordinal_alpha(pairs: list[tuple[int, int]]) -> float | None:
    """Krippendorff's ordinal alpha of two raters; None where all values are equal."""
    values = Counter(value for pair in pairs for value in pair)

    def distance(a: int, b: int) -> float:
        between = sum(n for value, n in values.items() if min(a, b) <= value <= max(a, b))
        return (between - (values[a] + values[b]) / 2) ** 2

    observed = sum(2 * distance(a, b) for a, b in pairs)
    expected = sum(values[a] * values[b] * distance(a, b) for a in values for b in values)
    return 1 - (values.total() - 1) * observed / expected if expected else None


def test_alpha_of_a_hand_computed_example() -> None:
    # Units (0, 0), (0, 1), (2, 2): counts 3, 1, 2 of 6 values. Squared distances: 0-1
    # (4 - 2)^2 = 4, 1-2 (3 - 1.5)^2 = 2.25, 0-2 (6 - 2.5)^2 = 12.25. Observed: 2 pairs of 4 = 8.
    # Expected: 2·(3·1·4 + 1·2·2.25 + 3·2·12.25) = 180. Alpha = 1 - 5·8/180 = 7/9.
    assert ordinal_alpha([(0, 0), (0, 1), (2, 2)]) == pytest.approx(7 / 9)
    assert ordinal_alpha([(1, 1), (1, 1)]) is None


def test_agreement_is_what_the_readme_prints(material: Material) -> None:
    ranks = {
        (line["rater"], line["run"], line["criterion"]): material.rank(line)
        for line in material.lines
    }
    readme = (ROOT / "tasks" / material.task / "README.md").read_text(encoding="utf-8")
    for name in material.criteria:
        pairs = [(ranks["A", run, name], ranks["B", run, name]) for run in material.rated("B")]
        alpha = ordinal_alpha(pairs)
        printed = re.search(rf"^\| `?{name}`? \| (\d+) \| (\S+) \|$", readme, re.M)
        assert printed, name
        assert int(printed[1]) == len(pairs)
        if alpha is None:
            assert printed[2] == "undefined"
        else:
            digits = len(printed[2].partition(".")[2])
            assert printed[2].replace("−", "-") == f"{alpha:.{digits}f}", name


def test_correctness_of_household_agrees_with_the_world() -> None:
    material = load("household")
    lines = [r for r in material.by("A") if r["criterion"] == "correctness-of-action"]
    agreeing = [
        (line["label"] == "Correct") == material.runs[line["run"]]["success"] for line in lines
    ]
    assert sum(agreeing) >= FACTS_MIN


def test_execution_in_household_agrees_with_the_refused_commands() -> None:
    material = load("household")
    distances = []
    for line in (r for r in material.by("A") if r["criterion"] == "action-execution"):
        counted = material.runs[line["run"]]["metadata"]["measured"]
        refused, steps = counted["invalid_actions"], counted["steps"]
        level = ("Excellent", "Good", "Average", "Average", "Poor")[min(refused, 4)]
        due = "Terrible" if 2 * refused > steps else level  # as the criterion's description says
        distances.append(abs(material.rank(line) - material.rank({**line, "label": due})))
    assert distances.count(0) >= FACTS_MIN
    assert max(distances) <= 1
