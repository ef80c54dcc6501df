"""Scores against length: by hand and against scipy."""

import pytest
from scipy.stats import pearsonr, spearmanr

from agenteval.evaluators.traces.grades import against_length, levels_against_length
from agenteval.evaluators.traces.scorer import Scoring, make_case, score
from agenteval.evaluators.traces.taxonomy import built_in
from agenteval.records import Finding, Findings

QUICK = Scoring(resamples=200)
LENGTHS = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 5000]
SCORES = [1.0, 0.9, 0.8, 0.9, 0.6, 0.5, 0.7, 0.3, 0.2, 0.4, 0.1, 0.0]


def test_correlations_are_those_of_scipy() -> None:
    scores = {f"t{i}": s for i, s in enumerate(SCORES)}
    tokens = {f"t{i}": n for i, n in enumerate(LENGTHS)}
    found = against_length("joint", scores | {"lost": 1.0}, tokens | {"unused": 3}, QUICK)
    assert found.pearson.mean == pytest.approx(pearsonr(LENGTHS, SCORES).statistic, abs=1e-12)
    assert found.spearman.mean == pytest.approx(spearmanr(LENGTHS, SCORES).statistic, abs=1e-12)
    assert found.unknown == 1


def test_bins_are_quartiles_by_hand() -> None:
    scores = {f"t{i}": s for i, s in enumerate(SCORES)}
    tokens = {f"t{i}": n for i, n in enumerate(LENGTHS)}
    found = against_length("joint", scores, tokens, QUICK)
    assert [(b.low, b.high, b.traces) for b in found.bins] == [
        (10, 30, 3), (40, 60, 3), (70, 90, 3), (100, 5000, 3)
    ]  # fmt: skip
    assert [b.score.mean for b in found.bins] == pytest.approx([0.9, 2 / 3, 0.4, 0.5 / 3])
    assert all(b.score.low is None and b.answered is None for b in found.bins)  # three traces each


def test_traces_of_one_length_stay_together() -> None:
    scores = {f"t{i}": float(i % 2) for i in range(10)}
    found = against_length("x", scores, dict.fromkeys(scores, 7), QUICK)
    assert [(b.low, b.high, b.traces) for b in found.bins] == [(7, 7, 10)]
    assert (found.pearson.mean, found.pearson.reason) == (None, "constant")
    assert found.spearman.mean is None


def test_nothing_known() -> None:
    found = against_length("x", {"a": 1.0}, {}, QUICK)
    assert (found.bins, found.unknown, found.pearson.mean) == ((), 1, None)


def test_levels_of_a_scoring_with_lost_predictions() -> None:
    gold = [Findings(trace=str(i), findings=(Finding(span="a", category="Goal Deviation"),))
            for i in range(8)]  # fmt: skip
    cases = [make_case(g, g if i < 4 else None, built_in()) for i, g in enumerate(gold)]
    found = levels_against_length(score(cases, QUICK), {str(i): i + 1 for i in range(8)}, QUICK)
    assert [one.score for one in found] == ["location F1", "category F1", "joint F1"]
    for one in found:
        assert [b.score.mean for b in one.bins] == [1, 1, 0, 0]
        assert [b.answered for b in one.bins] == [2, 2, 0, 0]
        assert one.pearson.mean == pytest.approx(
            pearsonr(range(8), [1, 1, 1, 1, 0, 0, 0, 0]).statistic
        )
