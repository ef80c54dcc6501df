"""Grades against gold and scores against length: by hand and against scipy."""

import pytest
from scipy.stats import pearsonr, spearmanr

from agenteval.records import GRADES, Findings, Grade
from agenteval.traces.evaluation import (
    GradeScore,
    against_length,
    score_grades,
    values,
)
from agenteval.traces.score import Scoring

QUICK = Scoring(resamples=200).bootstrap


def graded(trace: str, **grades: float | None) -> Findings:
    return Findings(trace=trace, grades={k: Grade(value=v) for k, v in grades.items()})


def scored(gold: list[float | None], said: list[float | None]) -> GradeScore:
    pairs = [
        (graded(str(i), security=g), graded(str(i), security=p))
        for i, (g, p) in enumerate(zip(gold, said, strict=True))
    ]
    return score_grades(pairs, QUICK)[0]


def test_by_hand_and_scipy() -> None:
    gold, said = [1.0, 1.0, 5.0, 4.0, 3.0], [2.0, 2.0, 4.0, 5.0, 1.0]
    found = scored([*gold, None, 3.0], [*said, 4.0, None])
    assert found.pearson.mean == pytest.approx(pearsonr(gold, said).statistic, abs=1e-12)
    assert found.error.mean == pytest.approx((1 + 1 + 1 + 1 + 2) / 5)
    assert found.constant == pytest.approx((2 + 2 + 2 + 1 + 0) / 5)  # all given the median, 3
    assert (found.pearson.n, found.missing, found.no_gold) == (5, 1, 1)


def test_overall_is_the_mean_of_four_where_it_is_not_given() -> None:
    four = dict(zip(GRADES, (1.0, 2.0, 4.0, 5.0), strict=True))
    assert values(graded("a", **four))["overall"] == 3
    assert values(graded("a", **four, overall=1))["overall"] == 1
    assert "overall" not in values(graded("a", reliability=4))


LENGTHS = [10, 20, 30, 40, 50, 60, 70, 80, 90, 100, 110, 5000]
SCORES = [1.0, 0.9, 0.8, 0.9, 0.6, 0.5, 0.7, 0.3, 0.2, 0.4, 0.1, 0.0]


def test_correlations_are_those_of_scipy() -> None:
    scores = [(f"t{i}", s, True) for i, s in enumerate(SCORES)]
    tokens = {f"t{i}": n for i, n in enumerate(LENGTHS)}
    found = against_length("joint", [*scores, ("lost", 1.0, True)], tokens | {"unused": 3}, QUICK)
    assert found.pearson.mean == pytest.approx(pearsonr(LENGTHS, SCORES).statistic, abs=1e-12)
    assert found.spearman.mean == pytest.approx(spearmanr(LENGTHS, SCORES).statistic, abs=1e-12)
    assert found.unknown == 1


def test_bins_are_quartiles_by_hand() -> None:
    scores = [(f"t{i}", s, i < 8) for i, s in enumerate(SCORES)]
    tokens = {f"t{i}": n for i, n in enumerate(LENGTHS)}
    found = against_length("joint", scores, tokens, QUICK)
    assert [(b.low, b.high, b.score.n) for b in found.bins] == [
        (10, 30, 3),
        (40, 60, 3),
        (70, 90, 3),
        (100, 5000, 3),
    ]
    assert [b.score.mean for b in found.bins] == pytest.approx([0.9, 2 / 3, 0.4, 0.5 / 3])
    assert all(b.score.low is None for b in found.bins)  # three traces each
    assert [b.answered for b in found.bins] == [3, 3, 2, 0]
