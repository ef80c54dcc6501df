"""Verification of judges of pairs: judges with known faults get the right verdict."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import agenteval
from agenteval import Run
from agenteval.utility.pairwise.api import preferences
from agenteval.utility.pairwise.verify import DAMAGE, LENGTH, MIRRORS, SUCCESS, TIES
from tests.support.pair_judges import pair_judges
from tests.support.world import WorldOptions, make_runs

WRONG = {
    "position": {TIES, MIRRORS},
    "length": {LENGTH},
    "upside down": {DAMAGE, SUCCESS},
    "random": {TIES, MIRRORS},
}


def world(seed: int, cases: int = 60) -> list[Run]:
    skills = {"old": 0.0, "new": 0.8}
    return make_runs(cases, np.random.default_rng(seed), WorldOptions(skills=skills))


def verified(name: str, seed: int, runs: list[Run], tmp_path: Path) -> agenteval.Report:
    return agenteval.prefer(
        runs=runs,
        judge=pair_judges(seed)[name],
        version=f"{name} {seed}",
        store=tmp_path / "s.db",
        verify=True,
    )


@pytest.mark.slow
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("name", ["good", *WRONG])
def test_the_verdict_on_a_judge_with_a_known_fault(name: str, seed: int, tmp_path: Path) -> None:
    report = verified(name, seed, world(seed), tmp_path)
    refuted = {e.name for e in report.judge.evidence if e.standing == "refuted"}
    if name == "good":
        assert report.judge.verdict == "trustworthy"
        assert refuted == set()
        assert report.judge_gate().exit_code == 0
        return
    assert report.judge.verdict == "not trustworthy"
    assert refuted >= WRONG[name]
    assert report.judge_gate().exit_code == 5


def test_few_cases_give_no_verdict(tmp_path: Path) -> None:
    report = verified("good", 1, world(1, cases=10), tmp_path)
    assert report.judge.verdict == "not enough data"
    assert report.judge_gate().exit_code == 4


def test_without_labels_the_verdict_says_so(tmp_path: Path) -> None:
    runs = [run.model_copy(update={"success": None}) for run in world(1)]
    report = verified("good", 1, runs, tmp_path)
    assert report.judge.verdict == "trustworthy for differences within a case"
    assert report.judge_gate().exit_code == 4


def test_a_judge_that_answers_damaged_copies_only_half_gets_no_verdict(tmp_path: Path) -> None:
    good = pair_judges(1)["good"]

    def refuses(first: Run, second: Run, criterion: agenteval.Criterion) -> str | None:
        return None if len(first.output) % 2 else good(first, second, criterion)

    report = agenteval.prefer(
        runs=world(1), judge=refuses, version="1", store=tmp_path / "s.db", verify=True
    )
    assert report.judge.verdict == "not enough data"
    assert "comparisons have no result" in report.judge.reasons[0]


def test_the_stored_verdict_is_shown_with_the_preferences(tmp_path: Path) -> None:
    report = verified("length", 1, world(1), tmp_path)
    stored = preferences(tmp_path / "s.db")
    assert stored.judge == report.judge
    assert [r.win_rate for r in stored.rows] == [r.win_rate for r in report.rows]
